#!/bin/sh
# Tries: to stop the kernel in the middle of its own work by userfaultfd, as exploits do to win races
# Refused by: SystemCallFilter=~userfaultfd
# Enforced where: a kernel that has userfaultfd
exec python3 - <<'P'
import ctypes, errno, os, platform, sys
libc = ctypes.CDLL(None, use_errno=True)
call = {"x86_64": 323, "aarch64": 282}.get(platform.machine())
if not call:
    sys.exit(print("the number of the system call is not known for this machine") or 2)
for flags, what in ((0, "for the kernel's faults too"), (1, "for its own faults")):
    if libc.syscall(call, flags) >= 0:
        sys.exit(print(f"made a userfaultfd {what}") or 0)
said = ctypes.get_errno()
print(f"userfaultfd: {os.strerror(said)}")
sys.exit(2 if said == errno.ENOSYS else 1)
P
