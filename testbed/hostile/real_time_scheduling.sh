#!/bin/sh
# Tries: to run before everybody else by real-time scheduling or a negative nice value
# Refused by: RestrictRealtime=, CapabilityBoundingSet= (and RLIMIT_RTPRIO, RLIMIT_NICE)
# Enforced where:
exec python3 - <<'P'
import os, sys
for policy in (os.SCHED_FIFO, os.SCHED_RR):
    try:
        os.sched_setscheduler(0, policy, os.sched_param(1))
        sys.exit(print(f"got the real-time policy {policy}") or 0)
    except OSError as error:
        last = error
before = os.getpriority(os.PRIO_PROCESS, 0)
try:
    os.setpriority(os.PRIO_PROCESS, 0, before - 1)
    sys.exit(print(f"got the nice value {before - 1}") or 0)
except OSError:
    pass
print(f"sched_setscheduler: {last.strerror}")
sys.exit(1)
P
