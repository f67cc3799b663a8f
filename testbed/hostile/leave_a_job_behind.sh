#!/bin/sh
# Tries: to leave a job of cron or at behind that runs outside of its unit
# Refused by: NoNewPrivileges= (crontab and at are set-gid), ProtectSystem=strict
# Enforced where: cron or at is installed; cleaning removes such jobs
tried=
for folder in /var/spool/cron/crontabs /var/spool/cron /var/spool/cron/atjobs /var/spool/at /etc/cron.d; do
  [ -d "$folder" ] || continue
  case $folder in /etc/*) ;; *) tried="$tried $folder" ;; esac
  if touch "$folder/hostile" 2>/dev/null; then
    rm -f "$folder/hostile"
    echo "wrote to $folder"
    exit 0
  fi
done
if command -v crontab >/dev/null; then
  tried="$tried crontab"
  if [ -z "$(crontab -l 2>/dev/null)" ] && echo '0 0 1 1 * /bin/true' | crontab - 2>/dev/null; then
    crontab -r
    echo "left a crontab"
    exit 0
  fi
fi
if command -v at >/dev/null; then
  tried="$tried at"
  if echo /bin/true | at now + 1 year >"$SCRATCH/at" 2>&1; then
    atrm "$(sed -n 's/^job \([0-9]*\) .*/\1/p' "$SCRATCH/at")"
    rm -f "$SCRATCH/at"
    echo "left a job of at"
    exit 0
  fi
  rm -f "$SCRATCH/at"
fi
if [ -z "$tried" ]; then
  echo "this server has neither cron nor at, and none of their folders can be written"
  exit 2
fi
echo "refused:$tried"
exit 1
