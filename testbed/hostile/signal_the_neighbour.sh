#!/bin/sh
# Tries: to send a signal to the neighbour's main process, to root's and to the login user's
# Refused by: the kernel: another uid
# Enforced where:
# Signal 0 asks only whether a signal would be allowed.
exec python3 - <<'P'
import os, sys
for pid in (int(os.environ["NEIGHBOUR_PID"]), 1):
    try:
        os.kill(pid, 0)
        sys.exit(print(f"may send signals to {pid}") or 0)
    except OSError:
        pass
# Signals by number reach processes that /proc does not show.
for pid in range(2, 4000):
    try:
        os.kill(pid, 0)
    except OSError:
        continue
    try:
        uid = os.stat(f"/proc/{pid}").st_uid
    except OSError:
        continue  # one of its own outside of the cell: signal_a_process_of_its_own_outside_the_cell.sh is about that
    if uid != os.getuid():
        sys.exit(print(f"may send signals to {pid} of {uid}") or 0)
print("no process of another user takes a signal")
sys.exit(1)
P
