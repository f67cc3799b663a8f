#!/bin/sh
# Tries: to go around the system call filter by the 32-bit system calls of the same processor
# Refused by: SystemCallArchitectures=native
# Enforced where: x86-64, with a kernel that has 32-bit system calls
exec python3 - <<'P'
import ctypes, mmap, os, platform, signal, sys
if platform.machine() != "x86_64":
    sys.exit(print("not an x86-64 machine") or 2)
child = os.fork()
if child == 0:
    # mov eax, 20 (getpid); int 0x80; ret
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(b"\x53\xb8\x14\x00\x00\x00\xcd\x80\x5b\xc3")
    call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    os._exit(0 if call() == os.getpid() else 7)
_, status = os.waitpid(child, 0)
if status == 0:
    sys.exit(print("a 32-bit system call was answered") or 0)
if os.WIFSIGNALED(status):
    by = signal.Signals(os.WTERMSIG(status)).name
    # A kernel without 32-bit calls answers with a general protection fault.
    sys.exit(print(f"ended by {by}") or (1 if by == "SIGSYS" else 2))
print("a 32-bit system call was refused")
sys.exit(1)
P
