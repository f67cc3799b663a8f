#!/bin/sh
# Tries: to see which other assistants have a home on this server
# Refused by: TemporaryFileSystem= over the parent of all homes
# Enforced where:
# Names, owners and times of the homes say how many assistants there are, whose, and when they were last used.
parent=$(dirname "$OWN_HOME")
own=$(basename "$OWN_HOME")
others=$(ls -A "$parent" 2>/dev/null | grep -vxF -- "$own" | head -n 3 | tr '\n' ' ')
if [ -n "$others" ]; then
  echo "sees other homes in $parent: $others"
  exit 0
fi
if seen=$(stat -c '%U %a' "$NEIGHBOUR_HOME" 2>/dev/null); then
  echo "sees $NEIGHBOUR_HOME: $seen"
  exit 0
fi
echo "sees its own home only"
exit 1
