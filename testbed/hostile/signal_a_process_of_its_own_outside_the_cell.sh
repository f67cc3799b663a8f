#!/bin/sh
# Tries: to find and stop a process with its own uid that runs outside of the cell, as a command of the platform would
# Refused by: nothing: the kernel looks at the uid alone. The platform does not wait for what is stopped (its time limits are root's)
# Enforced where: a PID namespace of its own, which the cell does not have
# Signals by number reach what /proc does not show. A runuser whose command is stopped stops itself, so whoever waits for it waits on.
exec python3 - <<'P'
import os, signal, sys, time
own, until = open("/proc/self/cgroup").read(), time.monotonic() + 6
last, limit = int(open("/proc/loadavg").read().split()[-1]), int(open("/proc/sys/kernel/pid_max").read())
# From the newest down, then what was given before the numbers began again, as far as the time goes.
for pid in (*range(last, 1, -1), *range(last + 1, limit)):
    if pid % 1000 == 0 and time.monotonic() > until:
        break
    try:
        os.kill(pid, 0)
    except OSError:
        continue
    try:
        if open(f"/proc/{pid}/cgroup").read() == own:
            continue
    except OSError:
        pass  # hidden, although it may be signalled: outside of the cell, or just ended, which the next line finds out
    try:
        os.kill(pid, signal.SIGSTOP)
        os.kill(pid, signal.SIGCONT)
    except OSError:
        continue
    sys.exit(print(f"stopped and continued {pid}, which runs outside") or 0)
print("no process of its own outside of the cell takes a signal")
sys.exit(1)
P
