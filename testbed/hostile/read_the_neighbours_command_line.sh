#!/bin/sh
# Tries: to read the command line and the state of the neighbour's main process in /proc
# Refused by: ProtectProc=invisible
# Enforced where:
for file in cmdline status stat cgroup; do
  if text=$(cat "/proc/$NEIGHBOUR_PID/$file" 2>/dev/null | tr '\0' ' ') && [ -n "$text" ]; then
    echo "read /proc/$NEIGHBOUR_PID/$file: $(printf '%s' "$text" | head -n 1 | cut -c 1-60)"
    exit 0
  fi
done
echo "/proc/$NEIGHBOUR_PID is not there"
exit 1
