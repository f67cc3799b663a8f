#!/bin/sh
# Tries: to stop the neighbour's unit, to start one of its own as root and to shut the server down, by systemctl
# Refused by: InaccessiblePaths=-/run/dbus (and polkit, or systemd without it)
# Enforced where:
# A signal that does nothing (SIGCONT) is sent instead of stopping it: the same permission is asked for, and nobody is hurt.
for unit in ${NEIGHBOUR_UNIT:-} $(ls /etc/systemd/system 2>/dev/null | grep '^openclaw-.*\.service$' | grep -vxF -- "$OWN_UNIT" | head -n 3); do
  if timeout 5 systemctl --no-ask-password kill --signal=CONT "$unit" 2>/dev/null; then
    echo "systemd took an order about $unit"
    exit 0
  fi
done
if timeout 5 systemd-run --no-ask-password --quiet --collect --wait true 2>/dev/null; then
  echo "started a unit as root"
  exit 0
fi
if timeout 5 systemctl --no-ask-password set-environment HOSTILE=1 2>/dev/null; then
  echo "changed the environment of systemd"
  exit 0
fi
echo "refused: $(timeout 5 systemctl --no-ask-password kill --signal=CONT "${NEIGHBOUR_UNIT:-dbus.service}" 2>&1 | head -n 1)"
exit 1
