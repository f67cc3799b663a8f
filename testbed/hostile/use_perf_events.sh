#!/bin/sh
# Tries: to watch the processor by perf_event_open
# Refused by: SystemCallFilter=~@debug (and kernel.perf_event_paranoid)
# Enforced where: a kernel that has perf events
exec python3 - <<'P'
import ctypes, errno, os, platform, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
call = {"x86_64": 298, "aarch64": 241}.get(platform.machine())
if not call:
    sys.exit(print("the number of the system call is not known for this machine") or 2)
# A software counter (the task's clock) of its own process, without the kernel's part: what the default setting allows to everybody.
attributes = ctypes.create_string_buffer(struct.pack("=IIQQQQQ", 1, 112, 1, 0, 0, 0, 0x61), 112)
if libc.syscall(call, attributes, 0, ctypes.c_int(-1), ctypes.c_int(-1), ctypes.c_ulong(0)) >= 0:
    sys.exit(print("opened a counter of its own process") or 0)
said = ctypes.get_errno()
print(f"perf_event_open: {os.strerror(said)}")
sys.exit(2 if said == errno.ENOSYS else 1)
P
