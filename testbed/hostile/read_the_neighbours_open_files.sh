#!/bin/sh
# Tries: to read the open files, memory, root and working folder of the neighbour's processes through /proc
# Refused by: ProtectProc=invisible, PrivateUsers= (and the kernel's check of the user)
# Enforced where:
base=/proc/$NEIGHBOUR_PID
for path in fd map_files; do
  if listed=$(ls "$base/$path" 2>/dev/null) && [ -n "$listed" ]; then
    echo "listed $base/$path"
    exit 0
  fi
done
for path in cwd root exe; do
  if target=$(readlink "$base/$path" 2>/dev/null); then
    echo "read $base/$path: $target"
    exit 0
  fi
done
for path in maps mem io mountinfo; do
  if [ -n "$(head -c 1 "$base/$path" 2>/dev/null | od -c | sed -n 2p)" ]; then
    echo "read $base/$path"
    exit 0
  fi
done
echo "nothing below $base can be read"
exit 1
