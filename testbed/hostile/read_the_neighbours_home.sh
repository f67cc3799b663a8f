#!/bin/sh
# Tries: to list the home of another assistant and to read files in it
# Refused by: TemporaryFileSystem= over the parent of all homes (and the 0700 of each home)
# Enforced where:
# A neighbour may open its own home by mistake (chmod 755): the cell must hold then too.
listed=$(ls -A "$NEIGHBOUR_HOME" 2>/dev/null | head -n 3 | tr '\n' ' ')
for file in .openclaw/openclaw.json .openclaw/logs/openclaw.jsonl .bash_history secret.txt; do
  if head -c 1 "$NEIGHBOUR_HOME/$file" >/dev/null 2>&1; then
    echo "read $NEIGHBOUR_HOME/$file"
    exit 0
  fi
done
if [ -n "$listed" ]; then
  echo "listed $NEIGHBOUR_HOME: $listed"
  exit 0
fi
echo "neither listed nor read: $(ls -A "$NEIGHBOUR_HOME" 2>&1 | head -n 1)"
exit 1
