#!/bin/sh
# Tries: to take more memory than its limit
# Refused by: MemoryMax=, MemorySwapMax=
# Enforced where: the memory controller
# MEMORY_LIMIT_MIB is the limit; the attack takes 64 MiB more in a child, and only where that is at most 1 GiB.
exec python3 - <<'P'
import mmap, os, signal, sys
limit = int(os.environ.get("MEMORY_LIMIT_MIB") or 0)
if not 0 < limit <= 1024:
    sys.exit(print("MEMORY_LIMIT_MIB is not set, or too much to be tried") or 2)
reading, writing = os.pipe()
child = os.fork()
if child == 0:
    signal.alarm(15)
    # The child alone may be ended for it, not the shell that started the attack.
    open("/proc/self/oom_score_adj", "w").write("1000")
    held = []
    for mib in range(0, limit + 64, 8):
        held.append(mmap.mmap(-1, 8 << 20))
        held[-1].write(b"\1" * (8 << 20))
    os.write(writing, b"x")
    os._exit(0)
os.close(writing)
took = os.read(reading, 1)
_, status = os.waitpid(child, 0)
if not took:
    sys.exit(print(f"ended while it took {limit + 64} MiB, by signal {os.WTERMSIG(status) if os.WIFSIGNALED(status) else status}") or 1)
if os.path.exists("/sys/fs/cgroup/cgroup.controllers") and "memory" not in open("/sys/fs/cgroup/cgroup.controllers").read().split():
    sys.exit(print(f"took {limit + 64} MiB: this server has no memory controller") or 2)
print(f"took {limit + 64} MiB")
P
