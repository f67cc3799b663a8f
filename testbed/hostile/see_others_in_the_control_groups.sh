#!/bin/sh
# Tries: to see the other assistants' units, their processes and what they use, in the tree of control groups
# Refused by: TemporaryFileSystem=/sys/fs/cgroup
# Enforced where:
# The kernel lets everybody read that tree, also the numbers of processes that ProtectProc= hides.
exec python3 - <<'P'
import os, sys
own = open("/proc/self/cgroup").read().strip().split("::")[-1]
for folder, _, files in os.walk("/sys/fs/cgroup"):
    group = folder.removeprefix("/sys/fs/cgroup")
    if not group.endswith((".service", ".scope")) or own.startswith(group):
        continue
    try:
        pids = open(folder + "/cgroup.procs").read().split()
    except OSError:
        pids = []
    sys.exit(print(f"sees {group} with {len(pids)} processes") or 0)
print("sees no other unit")
sys.exit(1)
P
