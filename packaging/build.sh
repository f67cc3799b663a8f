#!/usr/bin/env bash
# build.sh TARGET     makes the Debian package of TARGET/release/tidepool and looks at what is in it; `make package` runs it.
# The package is left in TARGET/debian. Needs cargo-deb (testbed/install.sh deb), dpkg.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
target=$1
binary=$target/release/tidepool
most=45000000
cache=${XDG_CACHE_HOME:-$HOME/.cache}/tidepool
export PATH=$cache/tools/bin:$PATH

fail() { printf 'package: %s\n' "$*" >&2; exit 1; }

size=$(stat -c %s "$binary")
[ "$size" -le $most ] || fail "the binary has $size bytes, more than $most"

mkdir -p "$target/release/completions"
"$binary" completions bash >"$target/release/completions/tidepool.bash"
"$binary" completions zsh >"$target/release/completions/_tidepool"
"$binary" completions fish >"$target/release/completions/tidepool.fish"

rm -rf "$target/debian"
(cd "$root" && CARGO_TARGET_DIR=$target cargo deb --no-build --no-strip --locked -p tidepool -o "$target/debian/") >/dev/null
package=$(compgen -G "$target/debian/tidepool_*.deb") || fail "cargo-deb made no package"

# What a machine would have after `apt install`, without its scripts: those would change this one.
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
dpkg-deb --extract "$package" "$tree"
dpkg-deb --control "$package" "$tree/DEBIAN"
"$root/packaging/check.sh" "$tree"
said=$("$tree/usr/bin/tidepool" --version)
[ "$said" = "tidepool $(sed -n 's/^version = "\(.*\)"/\1/p' "$root/Cargo.toml" | head -n 1)" ] || fail "the binary says it is $said"
printf '%s: %s MB, the binary %s MB\n' "$package" $(($(stat -c %s "$package") / 1000000)) $((size / 1000000))
