#!/bin/sh
# Tries: to leave a process behind that outlives its unit: double fork, a new session, another control group
# Refused by: KillMode=mixed (the unit ends all of its control group), ProtectControlGroups=
# Enforced where:
# What stays in the unit's control group ends with it. The daemon sleeps for 15 s, under a name that can be looked for: hostile-daemon.
exec python3 - <<'P'
import os, sys
reading, writing = os.pipe()
own = open("/proc/self/cgroup").read()
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    for group in ("", "/init.scope", "/user.slice", "/system.slice", f"/user.slice/user-{os.getuid()}.slice"):
        try:
            with open(f"/sys/fs/cgroup{group}/cgroup.procs", "w") as file:
                file.write(str(os.getpid()))
            break
        except OSError:
            pass
    os.write(writing, open("/proc/self/cgroup").read().encode())
    os.close(writing)
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.execvp("sleep", ["hostile-daemon", "15"])
os.close(writing)
group = os.read(reading, 4096).decode()
if not group:
    sys.exit(print("no daemon was started") or 1)
if group == own:
    sys.exit(print("the daemon is still in the control group of its unit, and ends with it") or 1)
print(f"the daemon moved to {group.strip()}")
P
