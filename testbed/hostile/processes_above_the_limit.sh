#!/bin/sh
# Tries: to start more processes than its limit
# Refused by: TasksMax=
# Enforced where: the pids controller
# TASKS_LIMIT is the limit; the attack starts 20 more, which only sleep, and only where that is at most 1000.
exec python3 - <<'P'
import os, signal, sys
limit = int(os.environ.get("TASKS_LIMIT") or 0)
if not 0 < limit <= 1000:
    sys.exit(print("TASKS_LIMIT is not set, or too much to be tried") or 2)
children, error = [], None
for _ in range(limit + 20):
    try:
        child = os.fork()
    except OSError as refused:
        error = refused
        break
    if child == 0:
        signal.alarm(10)
        signal.pause()
        os._exit(0)
    children.append(child)
for child in children:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
if error:
    sys.exit(print(f"refused after {len(children)} processes: {error.strerror}") or 1)
if os.path.exists("/sys/fs/cgroup/cgroup.controllers") and "pids" not in open("/sys/fs/cgroup/cgroup.controllers").read().split():
    sys.exit(print(f"started {len(children)} processes: this server has no pids controller") or 2)
print(f"started {len(children)} processes")
P
