#!/usr/bin/env bash
# check.sh TREE     whether an unpacked package has what it should, and whether what it has is well-formed. TREE/DEBIAN is its control data.
set -euo pipefail
tree=$1

fail() { printf 'package: %s\n' "$*" >&2; exit 1; }

for file in usr/bin/tidepool etc/tidepool/tidepool.toml usr/lib/systemd/system/tidepool.service \
  usr/share/bash-completion/completions/tidepool usr/share/zsh/vendor-completions/_tidepool usr/share/fish/vendor_completions.d/tidepool.fish \
  usr/share/doc/tidepool/{README,CHANGELOG,SECURITY}.md usr/share/doc/tidepool/docs/install.md usr/share/doc/tidepool/examples/sudoers \
  usr/share/doc/tidepool/copyright DEBIAN/{control,conffiles,postinst,prerm,postrm}; do
  [ -s "$tree/$file" ] || fail "$file is missing or empty"
done
strange=$(cd "$tree" && find . -type f ! -path './DEBIAN/*' ! -path './usr/bin/tidepool' ! -path './usr/share/*' ! -path './usr/lib/systemd/system/*' ! -path './etc/tidepool/*')
[ -z "$strange" ] || fail "has what it should not: $strange"
[ "$(stat -c %a "$tree/usr/bin/tidepool")" = 755 ] || fail "the binary cannot be run by everybody"
grep -qx /etc/tidepool/tidepool.toml "$tree/DEBIAN/conffiles" || fail "an upgrade would overwrite the settings"
for script in postinst prerm postrm; do
  sh -n "$tree/DEBIAN/$script"
done
bash -n "$tree/usr/share/bash-completion/completions/tidepool"
if command -v visudo >/dev/null; then visudo -cqf "$tree/usr/share/doc/tidepool/examples/sudoers"; fi
# The settings that are shipped must be ones that the binary takes, and need nothing that is not there.
"$tree/usr/bin/tidepool" --config "$tree/etc/tidepool/tidepool.toml" --data-dir "$tree/var/lib/tidepool" check >/dev/null ||
  fail "the binary does not take the settings that come with it"
if command -v systemd-analyze >/dev/null; then
  # It looks for the program where it will be, not where it is unpacked.
  sed "s|^ExecStart=/usr|ExecStart=$tree/usr|; /^Documentation=/d" "$tree/usr/lib/systemd/system/tidepool.service" >"$tree/DEBIAN/tidepool.service"
  wrong=$(systemd-analyze verify "$tree/DEBIAN/tidepool.service" 2>&1 | grep -F tidepool.service || true)
  [ -z "$wrong" ] || fail "$wrong"
  exposed=$(systemd-analyze security --offline=true "$tree/DEBIAN/tidepool.service" 2>/dev/null | sed -n 's/.*exposure level for .*: \([0-9.]*\) .*/\1/p')
  awk -v found="$exposed" 'BEGIN { exit !(found != "" && found <= 2.0) }' || fail "the unit's exposure is $exposed, more than 2.0"
fi
