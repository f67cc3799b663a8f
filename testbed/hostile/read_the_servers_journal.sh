#!/bin/sh
# Tries: to read the journal and the log files of the server and of other units
# Refused by: the modes of the files (and InaccessiblePaths=-/var/log)
# Enforced where:
for path in /var/log/journal/*/system.journal /run/log/journal/*/system.journal /var/log/auth.log /var/log/syslog /var/log/btmp; do
  if head -c 1 "$path" >/dev/null 2>&1; then
    echo "read $path"
    exit 0
  fi
done
lines=$(timeout 8 journalctl --no-pager -q -n 5 _UID=0 2>/dev/null | head -n 1)
if [ -n "$lines" ]; then
  echo "journalctl showed lines of root"
  exit 0
fi
# Who logged in, when and from where.
for path in /var/log/wtmp /var/log/lastlog /run/utmp; do
  if [ -s "$path" ] && head -c 1 "$path" >/dev/null 2>&1; then
    echo "read who logged in, from $path"
    exit 0
  fi
done
echo "no journal and no log of others can be read"
exit 1
