#!/bin/sh
# Tries: to load a module into the kernel, or another kernel
# Refused by: ProtectKernelModules=, CapabilityBoundingSet=, SystemCallFilter=~@privileged
# Enforced where:
# init_module with something that is no module: a permitted caller is told ENOEXEC or EFAULT, everybody else EPERM.
exec python3 - <<'P'
import ctypes, errno, os, platform, sys
libc = ctypes.CDLL(None, use_errno=True)
calls = {"x86_64": (175, 313, 246), "aarch64": (105, 273, 104)}.get(platform.machine())
if not calls:
    sys.exit(print("the numbers of the system calls are not known for this machine") or 2)
for name, call in zip(("init_module", "finit_module", "kexec_load"), calls):
    ctypes.set_errno(0)
    libc.syscall(call, ctypes.c_long(-1), ctypes.c_long(64 if name != "kexec_load" else 0), b"", ctypes.c_long(1 << 30))
    said = ctypes.get_errno()
    if said not in (errno.EPERM, errno.EACCES, errno.ENOSYS):
        sys.exit(print(f"{name} was not refused: {os.strerror(said)}") or 0)
print(f"init_module, finit_module, kexec_load: {os.strerror(said)}")
sys.exit(1)
P
