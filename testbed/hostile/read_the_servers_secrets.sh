#!/bin/sh
# Tries: to read the server's own secrets: password hashes, host keys, sudoers, credentials of units, boot images
# Refused by: the modes of the files
# Enforced where:
for path in /etc/shadow /etc/gshadow /etc/shadow- /etc/ssh/ssh_host_*_key /etc/sudoers /etc/sudoers.d/* /run/credentials/*/* \
  /var/lib/systemd/random-seed /var/lib/systemd/credential.secret /etc/security/opasswd /var/backups/*shadow* /var/lib/tidepool/* /var/lib/docker/*; do
  case $path in */README) continue ;; esac
  if [ -f "$path" ] && head -c 1 "$path" >/dev/null 2>&1; then
    echo "read $path"
    exit 0
  fi
done
echo "none of them can be read"
exit 1
