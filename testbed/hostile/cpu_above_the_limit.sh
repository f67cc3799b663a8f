#!/bin/sh
# Tries: to take more CPU time than its limit
# Refused by: CPUQuota=
# Enforced where: the cpu controller, and more CPUs than the limit allows
# CPU_LIMIT_PERCENT is the limit (200 is two CPUs). One busy process a CPU runs for three seconds.
exec python3 - <<'P'
import os, resource, sys, time
limit = int(os.environ.get("CPU_LIMIT_PERCENT") or 0)
cpus = min(len(os.sched_getaffinity(0)), 16)
if limit <= 0 or cpus * 100 <= limit * 1.3:
    sys.exit(print(f"CPU_LIMIT_PERCENT is {limit or 'not set'}, and the server has {cpus} CPUs: nothing to exceed") or 2)
began = time.monotonic()
children = []
for _ in range(cpus):
    child = os.fork()
    if child == 0:
        while time.monotonic() < began + 3:
            pass
        os._exit(0)
    children.append(child)
for child in children:
    os.waitpid(child, 0)
wall = time.monotonic() - began
used = resource.getrusage(resource.RUSAGE_CHILDREN)
percent = round((used.ru_utime + used.ru_stime) / wall * 100)
if percent <= limit * 1.25:
    # A busy server gives it less than the limit too: only the counter of the cgroup proves that it was held back.
    own = "/sys/fs/cgroup" + open("/proc/self/cgroup").read().strip().split("::")[-1]
    try:
        throttled = "nr_throttled 0\n" not in open(own + "/cpu.stat").read() + "\n" and "nr_throttled" in open(own + "/cpu.stat").read()
    except OSError:
        throttled = False
    if throttled:
        sys.exit(print(f"got {percent} % of a CPU, held back by its limit of {limit} %") or 1)
    sys.exit(print(f"got {percent} % of a CPU; nothing says that the limit of {limit} % held it back") or 2)
if os.path.exists("/sys/fs/cgroup/cgroup.controllers") and "cpu" not in open("/sys/fs/cgroup/cgroup.controllers").read().split():
    sys.exit(print(f"got {percent} % of a CPU: this server has no cpu controller") or 2)
print(f"got {percent} % of a CPU, above its limit of {limit} %")
P
