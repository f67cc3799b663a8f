#!/bin/sh
# Tries: to run something outside of its unit by a user manager of its own: enable-linger, systemd-run --user
# Refused by: InaccessiblePaths=-/run/dbus, ProtectHome= (hides /run/user); polkit where it asks
# Enforced where:
XDG_RUNTIME_DIR=/run/user/$(id -u)
DBUS_SESSION_BUS_ADDRESS=unix:path=$XDG_RUNTIME_DIR/bus
export XDG_RUNTIME_DIR DBUS_SESSION_BUS_ADDRESS
if loginctl --no-ask-password enable-linger "$OWN_USER" >"$SCRATCH/said" 2>&1; then
  sleep 1
  systemd-run --user --quiet --collect true >/dev/null 2>&1 && ran=" and ran a command by it"
  loginctl --no-ask-password disable-linger "$OWN_USER" >/dev/null 2>&1
  rm -f "$SCRATCH/said"
  echo "got a lingering manager${ran-}"
  exit 0
fi
said=$(head -n 1 "$SCRATCH/said")
rm -f "$SCRATCH/said"
if timeout 5 systemd-run --user --quiet --collect true >/dev/null 2>&1; then
  echo "ran a command by a user manager"
  exit 0
fi
echo "no user manager: $said"
exit 1
