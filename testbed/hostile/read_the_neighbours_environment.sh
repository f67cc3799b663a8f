#!/bin/sh
# Tries: to read the environment of the neighbour's main process, where tokens may stand
# Refused by: ProtectProc=invisible (and the kernel's check of the user)
# Enforced where:
if [ -n "$(head -c 1 "/proc/$NEIGHBOUR_PID/environ" 2>/dev/null | od -c | sed -n 2p)" ]; then
  echo "read /proc/$NEIGHBOUR_PID/environ"
  exit 0
fi
echo "not read: $(cat "/proc/$NEIGHBOUR_PID/environ" 2>&1 >/dev/null | head -n 1)"
exit 1
