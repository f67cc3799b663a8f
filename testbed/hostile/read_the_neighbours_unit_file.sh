#!/bin/sh
# Tries: to read the unit files of the other assistants: users, homes, ports, limits
# Refused by: InaccessiblePaths= (systemd's own folders of units)
# Enforced where:
for folder in /etc/systemd/system /run/systemd/system /run/systemd/transient /etc/systemd/system/multi-user.target.wants; do
  for unit in "$folder"/openclaw-*.service "$folder/${NEIGHBOUR_UNIT:-none}"; do
    case $unit in */"$OWN_UNIT") continue ;; esac
    if head -c 1 "$unit" >/dev/null 2>&1; then
      echo "read $unit"
      exit 0
    fi
  done
done
echo "no unit of another assistant can be read"
exit 1
