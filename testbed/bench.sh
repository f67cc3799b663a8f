#!/usr/bin/env bash
# bench.sh LAB [PART…]     runs `tidepool-lab bench` on SQLite, then on a private PostgreSQL where the machine can give one.
# Parts of this script: `web`, the web apps in a browser; `hosts`, a sweep of ten real hosts beside ssh; `cell`, the real OpenClaw in its
# cell beside itself without one; `copy`, ten million rows of a foreign gateway's log read into ours.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
binary=$(realpath "$1")
shift

web() {
  if "$here/install.sh" web chromium; then
    TIDEPOOL_TEST_BIN=$(dirname "$binary")/tidepool npm --silent --prefix "$here/../web" run bench
  else
    echo "no numbers for the web apps: this machine cannot give a browser" >&2
  fi
}

hosts() (
  if ! "$here/install.sh" hosts; then
    echo "no numbers for real hosts: this machine cannot give any" >&2
    return
  fi
  folder=$(mktemp -d)
  trap '"$here/hosts.sh" down "$folder/hosts" >/dev/null 2>&1 || true; rm -rf "$folder"' EXIT
  "$here/hosts.sh" run 10 "$folder/hosts" >"$folder/log" 2>&1 &
  for _ in $(seq 1200); do
    ! grep -q "^hosts ready" "$folder/log" || break
    sleep 0.1
  done
  "$binary" bench sweep --hosts "$folder/hosts"
)

cell() {
  "$here/run.py" --test what_a_cell_costs_is_measured_beside_an_assistant_without_one
}

copy() {
  cargo run --quiet --release --locked --manifest-path "$here/../Cargo.toml" -p sim --example read_log -- 10000000
}

own=() others=()
for part in "$@"; do
  case $part in
    web | hosts | cell | copy) own+=("$part") ;;
    *) others+=("$part") ;;
  esac
done
[ $# -gt 0 ] || own=(web hosts cell copy)
for part in "${own[@]}"; do "$part"; done
[ $# = 0 ] || [ ${#others[@]} -gt 0 ] || exit 0
set -- "${others[@]}"
# Forwarding is measured beside nginx where there is one.
case " $* " in
  "  " | *" forward "*) "$here/install.sh" nginx || echo "no numbers for nginx: this machine cannot give it" >&2 ;;
esac
"$binary" bench "$@"
if ! "$here/install.sh" postgres; then
  echo "no numbers for PostgreSQL: this machine cannot give one" >&2
  exit 0
fi
folder=$(mktemp -d)
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$here/db.sh" pg-run "$folder" "$port" >"$folder.log" 2>&1 &
server=$!
trap 'kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; rm -rf "$folder" "$folder.log"' EXIT
for _ in $(seq 300); do
  (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break
  sleep 0.1
done
parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=(claims tasks pages usage)
# Each part wants an empty database.
for part in "${parts[@]}"; do
  [ "$part" != start ] || continue
  psql -q -h 127.0.0.1 -p "$port" -U postgres -c "CREATE DATABASE bench_$part" postgres
  TIDEPOOL_DATABASE_URL="postgres://postgres@127.0.0.1:$port/bench_$part" "$binary" bench "$part"
done
