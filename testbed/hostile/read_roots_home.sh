#!/bin/sh
# Tries: to list root's home and every home below /home
# Refused by: ProtectHome= (and the 0700 of the homes)
# Enforced where:
for folder in /root /home/* /run/user/*; do
  [ -d "$folder" ] && [ "$folder" != "$OWN_HOME" ] || continue
  if listed=$(ls -A "$folder" 2>/dev/null) && [ -n "$listed" ]; then
    echo "listed $folder"
    exit 0
  fi
done
# Which people have an account's home here is worth knowing to somebody who guesses passwords.
names=$(ls -A /home 2>/dev/null | head -n 3 | tr '\n' ' ')
if [ -n "$names" ]; then
  echo "sees who has a home: $names"
  exit 0
fi
echo "/root, /home and /run/user show nothing"
exit 1
