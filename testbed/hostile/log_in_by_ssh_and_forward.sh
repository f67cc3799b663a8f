#!/bin/sh
# Tries: to log in to its own account by ssh with a key of its own, and to reach the system bus through that connection
# Refused by: the account, which is expired from the moment it is made: sshd asks PAM
# Enforced where:
# A login without a shell is enough: sshd opens sockets for whoever is logged in, as the tenant's user, outside of the cell.
command -v ssh >/dev/null && command -v ssh-keygen >/dev/null || { echo "there is no ssh here"; exit 2; }
work=$SCRATCH/ssh.$$
keys=$OWN_HOME/.ssh/authorized_keys
pid=
tidy() {
  [ -z "$pid" ] || kill "$pid" 2>/dev/null
  if [ -e "$work/keys" ]; then mv -f "$work/keys" "$keys"; else rm -f "$keys"; fi
  rmdir "$OWN_HOME/.ssh" 2>/dev/null
  rm -rf "$work"
}
umask 077
mkdir -p "$work" "$OWN_HOME/.ssh" || exit 2
[ ! -e "$keys" ] || cp -p "$keys" "$work/keys"
trap tidy EXIT
ssh-keygen -q -t ed25519 -N '' -C hostile -f "$work/key" && cat "$work/key.pub" >>"$keys" || { echo "no key could be made"; exit 2; }
timeout 15 ssh -F /dev/null -i "$work/key" -o BatchMode=yes -o IdentitiesOnly=yes -o StrictHostKeyChecking=no \
  -o UserKnownHostsFile=/dev/null -o ConnectTimeout=5 -o ExitOnForwardFailure=yes \
  -N -L "$work/bus:/run/dbus/system_bus_socket" "$OWN_USER@127.0.0.1" >"$work/said" 2>&1 &
pid=$!
round=0
while [ ! -S "$work/bus" ] && kill -0 "$pid" 2>/dev/null && [ "$round" -lt 50 ]; do
  sleep 0.2
  round=$((round + 1))
done
if [ -S "$work/bus" ]; then
  version=$(timeout 5 busctl --address="unix:path=$work/bus" get-property org.freedesktop.systemd1 /org/freedesktop/systemd1 \
    org.freedesktop.systemd1.Manager Version 2>/dev/null)
  echo "logged in as $OWN_USER; the system bus answers through it: ${version:-nothing}"
  exit 0
fi
said=$(tail -n 1 "$work/said")
case $said in *refused*) echo "nobody listens for ssh here: $said"; exit 2 ;; esac
echo "no login: $said"
exit 1
