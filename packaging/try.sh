#!/usr/bin/env bash
# try.sh PACKAGE     installs a Debian package as docs/install.md says, on a Debian with systemd of its own (testbed/hosts.sh), and looks at
# what an administrator would: settings kept by an upgrade, a service that runs and comes back, data that outlives the package.
# `make package` runs it. Exit code 69 where this machine cannot run such a host.
set -euo pipefail

if [ "${1:-}" != --inside ]; then
  root=$(cd "$(dirname "$0")/.." && pwd)
  hosts=$root/testbed/hosts.sh
  package=$1
  "$root/testbed/install.sh" hosts
  "$hosts" check
  work=$(mktemp -d)
  trap '"$hosts" down "$work" 2>/dev/null || true; rm -rf --one-file-system "$work"' EXIT
  HOSTS_DOCKER='' "$hosts" up 1 "$work"
  install -m 644 "$package" "$work/h1/root/root/tidepool.deb"
  install -m 755 "$0" "$work/h1/root/root/try.sh"
  "$hosts" ssh "$work" h1 /root/try.sh --inside /root/tidepool.deb
  exit
fi

# ── on the host ──

package=$2
settings=/etc/tidepool/tidepool.toml
data=/var/lib/tidepool
console=http://127.0.0.1:8081
email=you@example.com

fail() { printf 'package: %s\n' "$*" >&2; journalctl --no-pager -n 20 -u tidepool >&2 || true; exit 1; }
quiet() { "$@" >/root/said 2>&1 || { cat /root/said >&2; fail "$* failed"; }; }
is() { [ "$(systemctl is-active tidepool)" = "$1" ] || fail "$2: the service is $(systemctl is-active tidepool), not $1"; }
ready() { curl -sS --fail --retry 30 --retry-all-errors --retry-delay 1 --max-time 5 $console/readyz >/root/said 2>&1 || fail "$1: $(tail -n 1 /root/said)"; }
log_in() {
  curl -sS $console/api/v1/auth/login --json "{\"email\": \"$email\", \"password\": \"$(cat /root/password)\"}" | grep -q '"token":"' ||
    fail "$1: the administrator cannot log in"
}
started() { systemctl show --property=ActiveEnterTimestampMonotonic --value tidepool; }

quiet dpkg -i "$package"
is inactive "after the installation"
[ "$(systemctl is-enabled tidepool)" = disabled ] || fail "it is enabled before anybody has looked at its settings"
[ "$(stat -c '%U %a' $data)" = "tidepool 700" ] || fail "$data is $(stat -c '%U %a' $data)"

runuser -u tidepool -- tidepool --config $settings admin create --email $email >/root/said 2>&1 || { cat /root/said >&2; fail "no administrator"; }
sed -n 's/^password: \(.*\) (shown only now)$/\1/p' /root/said >/root/password
[ -s /root/password ] || fail "the administrator's password was not printed"
quiet systemctl enable --now tidepool
ready "after the start"
log_in "after the start"
[ "$(ps -o user= -p "$(systemctl show --property=MainPID --value tidepool)")" = tidepool ] || fail "it does not run as its own user"
strange=$(find $data -not -user tidepool -or -perm /077)
[ -z "$strange" ] || fail "others can read, or own: $strange"
exposed=$(systemd-analyze security --no-pager tidepool | sed -n 's/.*exposure level for .*: \([0-9.]*\) .*/\1/p')
awk -v found="$exposed" 'BEGIN { exit !(found != "" && found <= 2.0) }' || fail "the service's exposure is $exposed, more than 2.0"

# Whatever ends it, it comes back.
systemctl kill --signal=KILL tidepool
sleep 1
ready "after a kill"
quiet systemctl restart tidepool
ready "after a restart"

# An upgrade keeps what the administrator wrote, and runs the new program.
echo 'timezone = "Europe/Berlin"' | cat - $settings >/root/changed
cat /root/changed >$settings
before=$(started)
quiet dpkg -i "$package"
cmp -s $settings /root/changed || fail "an upgrade has overwritten the settings"
[ "$(started)" != "$before" ] || fail "an upgrade has left the old program running"
ready "after an upgrade"
log_in "after an upgrade"
journalctl --no-pager -u tidepool | grep -Ff /root/password && fail "the password is in the journal"

quiet dpkg -r tidepool
is inactive "after the removal"
[ -s $settings ] || fail "a removal has taken the settings"
quiet dpkg -P tidepool
[ ! -e $settings ] || fail "a purge has left the settings"
[ -s $data/tidepool.db ] || fail "a purge has taken the database"
quiet dpkg -i "$package"
quiet systemctl start tidepool
ready "installed once more"
log_in "installed once more"
echo "package: installed, started, killed, upgraded, removed, purged and installed again on a Debian with systemd; exposure $exposed; nothing is lost"
