#!/bin/sh
# Tries: to reach, by ptrace, /proc/PID/mem or /proc/PID/root, a process with its own uid that runs outside of the cell
# Refused by: PrivateUsers= (a process of another user namespace cannot be traced), ProtectProc=invisible, SystemCallFilter=~@debug
# Enforced where:
# A command that the platform runs as this user beside the cell would be a way out of it: the same uid may trace it, and its
# /proc/PID/root is the whole file system. OUTSIDE_PID names such a process; otherwise every own process in another cgroup is tried.
exec python3 - <<'P'
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
own = open("/proc/self/cgroup").read()
def others():
    if os.environ.get("OUTSIDE_PID"):
        yield int(os.environ["OUTSIDE_PID"])
        return
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.stat(f"/proc/{name}").st_uid == os.getuid() and open(f"/proc/{name}/cgroup").read() != own:
                yield int(name)
        except OSError:
            pass
tried = 0
for pid in others():
    tried += 1
    try:
        os.listdir(f"/proc/{pid}/root/")
        sys.exit(print(f"walked through /proc/{pid}/root") or 0)
    except OSError:
        pass
    try:
        os.close(os.open(f"/proc/{pid}/mem", os.O_RDWR))
        sys.exit(print(f"opened /proc/{pid}/mem for writing") or 0)
    except OSError:
        pass
    if libc.ptrace(16, pid, 0, 0) == 0:  # PTRACE_ATTACH
        os.waitpid(pid, 0)
        libc.ptrace(17, pid, 0, 0)  # PTRACE_DETACH
        sys.exit(print(f"traced {pid}") or 0)
if os.environ.get("OUTSIDE_PID"):
    try:
        os.kill(int(os.environ["OUTSIDE_PID"]), 0)
    except ProcessLookupError:
        sys.exit(print("the process outside has ended before it was tried") or 2)
    print("the process outside can be neither walked through, read nor traced")
else:
    print(f"{tried} own processes outside of this cgroup are seen, none can be entered")
sys.exit(1)
P
