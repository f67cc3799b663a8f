#!/bin/sh
# Tries: to raise the limits of its own control group, or to move to another group
# Refused by: ProtectControlGroups= (and the modes of the files)
# Enforced where:
exec python3 - <<'P'
import glob, os, sys
own = "/sys/fs/cgroup" + open("/proc/self/cgroup").read().strip().split("::")[-1]
tries = [(own + "/" + name, value) for name, value in (("memory.max", "max"), ("memory.high", "max"), ("pids.max", "max"), ("cpu.max", "max"), ("cgroup.subtree_control", "+pids"))]
tries += [(path + "/cgroup.procs", str(os.getpid())) for path in ("/sys/fs/cgroup", "/sys/fs/cgroup/init.scope", *glob.glob("/sys/fs/cgroup/*.slice"))]
for path, value in tries:
    try:
        with open(path, "w") as file:
            file.write(value)
        sys.exit(print(f"wrote {value} to {path}") or 0)
    except OSError as error:
        last = error
for parent in (own, "/sys/fs/cgroup"):
    try:
        os.mkdir(parent + "/hostile")
        os.rmdir(parent + "/hostile")
        sys.exit(print(f"made a group below {parent}") or 0)
    except OSError:
        pass
print(f"{last.filename}: {last.strerror}")
sys.exit(1)
P
