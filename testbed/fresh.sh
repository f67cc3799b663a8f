#!/usr/bin/env bash
# fresh.sh [lint] [test] [demo]     proves that a newcomer's first commands work: in an empty Debian tree, which has Rust, Node,
# Python and apt and nothing else of this machine's, a fresh clone of the last commit runs `make lint`, `make test` and `make demo`.
# Needs: root, mount and PID namespaces, overlayfs, apt (mmdebstrap); 10 GB of disk; 30 minutes and more, since nothing is cached.
# Rust and Node are lent by this machine (read-only, copied), so is its package registries' configuration.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
repo=${here%/*}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/tidepool/fresh
base=$cache/base
packages=build-essential,ca-certificates,git,python3

fail() { printf 'make fresh: %s\n' "$*" >&2; exit 1; }

needs() {
  [ "$(id -u)" = 0 ] || fail "needs root"
  unshare --mount --pid --fork true 2>/dev/null || fail "needs mount and PID namespaces, and this machine allows none"
  for tool in rustc cargo node npm git; do command -v $tool >/dev/null || fail "needs $tool, to lend it to the empty tree"; done
  "$here/install.sh" mmdebstrap || fail "needs mmdebstrap"
}

# Debian's own entries of this machine's apt sources, so that a mirror or proxy is used where there is one.
debian_sources() { find /etc/apt/sources.list /etc/apt/sources.list.d -maxdepth 1 -size +0 \( -name 'sources.list' -o -name 'debian*.sources' -o -name 'debian*.list' \) 2>/dev/null; }

build_base() {
  [ "$(cat "$base/.packages" 2>/dev/null)" = "$packages" ] && return
  echo "── the empty Debian tree (once) ──"
  rm -rf "$base"
  mkdir -p "$base"
  local suite
  suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-bookworm}")
  local sources=()
  mapfile -t sources < <(debian_sources)
  mmdebstrap --quiet --variant=apt --format=directory --include="$packages" --aptopt='Acquire::Languages "none"' \
    "$suite" "$base" "${sources[@]}"
  # Otherwise the databases that apt installs would start on this machine's ports.
  printf '#!/bin/sh\nexit 101\n' >"$base/usr/sbin/policy-rc.d"
  chmod +x "$base/usr/sbin/policy-rc.d"
  echo "$packages" >"$base/.packages"
}

# lend PATH: the same file or folder inside the tree, if this machine has it
lend() { [ -e "$1" ] || return 0; mkdir -p "$root$(dirname "$1")"; cp -aL "$1" "$root$(dirname "$1")/"; }

fill_tree() {
  # Rust: the toolchain alone, without rustup and without what was installed beside it.
  mkdir -p "$root/opt/rust"
  mount --bind "$(rustc --print sysroot)" "$root/opt/rust"
  mount -o remount,bind,ro "$root/opt/rust"
  # Node: the binary and npm, wherever this machine keeps them.
  mkdir -p "$root/usr/local/bin" "$root/usr/local/lib/node_modules"
  cp -L "$(node -p process.execPath)" "$root/usr/local/bin/node"
  cp -a "$(npm root -g)/npm" "$root/usr/local/lib/node_modules/"
  ln -s ../lib/node_modules/npm/bin/npm-cli.js "$root/usr/local/bin/npm"
  ln -s ../lib/node_modules/npm/bin/npx-cli.js "$root/usr/local/bin/npx"
  # How this machine reaches its package registries.
  for path in /etc/resolv.conf /etc/hosts /etc/ssl/certs/ca-certificates.crt /usr/local/share/ca-certificates /etc/pip.conf /etc/npmrc; do
    lend "$path"
  done
  local home
  for home in .npmrc .config/pip/pip.conf .pip/pip.conf; do
    [ ! -e "$HOME/$home" ] || install -D -m 600 "$HOME/$home" "$root/root/$home"
  done
  [ ! -e "${CARGO_HOME:-$HOME/.cargo}/config.toml" ] || install -D -m 600 "${CARGO_HOME:-$HOME/.cargo}/config.toml" "$root/root/.cargo/config.toml"
  git clone --quiet --no-local "$repo" "$root/src/tidepool"
}

mount_system() {
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  mount --rbind /sys "$root/sys"
  mount -t tmpfs tmpfs "$root/dev/shm"
  mount -t tmpfs -o size=50% tmpfs "$root/tmp"
}

# in_tree COMMAND…: in the clone, with a newcomer's environment and what the registries need of ours
in_tree() {
  local keep=() name
  for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY SSL_CERT_FILE SSL_CERT_DIR CURL_CA_BUNDLE NODE_EXTRA_CA_CERTS \
    REQUESTS_CA_BUNDLE GIT_SSL_CAINFO PIP_CERT PIP_INDEX_URL PIP_DEFAULT_TIMEOUT NPM_CONFIG_REGISTRY; do
    [ -z "${!name:-}" ] || keep+=("$name=${!name}")
  done
  env -i HOME=/root LANG=C.UTF-8 TERM=dumb PATH=/opt/rust/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "${keep[@]}" \
    chroot "$root" bash -c 'cd /src/tidepool && exec "$@"' in_tree "$@"
}

# This shell is process 1 of its namespace: between two steps nobody else may be alive. No command is called to look, since that
# would be a process too.
nothing_left() {
  local folder name state left wait
  for wait in 1 2 3; do
    left=
    for folder in /proc/[0-9]*; do
      [ "$folder" != /proc/1 ] && read -r _ name state _ 2>/dev/null <"$folder/stat" && [ "$state" != Z ] && left+=" $name"
    done
    [ -n "$left" ] || return 0
    sleep 1
  done
  fail "still running after $1:$left"
}

run_steps() {
  root=$work/root
  mkdir -p "$root" "$work/upper" "$work/work"
  chmod 755 "$work/upper"
  mount -t overlay overlay -o "lowerdir=$base,upperdir=$work/upper,workdir=$work/work" "$root" || fail "needs overlayfs"
  mount -t proc proc /proc
  mount_system
  fill_tree
  local step start=$SECONDS
  for step in "$@"; do
    echo "── make $step in the empty tree ──"
    case $step in
      test)
        in_tree make test | tee "$work/test.log"
        # This tree is root's and has apt: nothing has a reason to be skipped.
        tail -n1 "$work/test.log" | grep -q ', 0 skipped$' || fail "make test skipped something"
        ;;
      lint) in_tree make lint ;;
      demo) in_tree testbed/demo_check.py ;;
      *) fail "no such step: $step" ;;
    esac
    nothing_left "make $step"
    echo "make $step: good, $((SECONDS - start)) s since the start"
  done
}

if [ "${1:-}" = --inside ]; then
  work=$2
  shift 2
  run_steps "$@"
  exit
fi

needs
build_base
work=$(mktemp -d "$cache/run.XXXXXX")
# The mounts are the namespace's and go with it, so only plain files are left to be removed.
trap 'rm -rf --one-file-system "$work"' EXIT
[ $# -gt 0 ] || set -- lint test demo
unshare --mount --propagation private --pid --fork --kill-child "$here/fresh.sh" --inside "$work" "$@"
echo "make fresh: a fresh clone works in an empty Debian tree ($*)"
