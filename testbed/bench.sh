#!/usr/bin/env bash
# bench.sh BINARY [PART…]     runs `tidepool bench` on SQLite, then on a private PostgreSQL where the machine can give one;
# the part `web` measures the web apps in a browser.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
binary=$(realpath "$1")
shift
web() {
  if "$here/install.sh" web chromium; then
    TIDEPOOL_TEST_BIN=$binary npm --silent --prefix "$here/../web" run bench
  else
    echo "no numbers for the web apps: this machine cannot give a browser" >&2
  fi
}
case " $* " in
  "  ") with_web=yes ;;
  *" web "*)
    with_web=yes
    others=()
    for part in "$@"; do [ "$part" = web ] || others+=("$part"); done
    if [ ${#others[@]} = 0 ]; then
      web
      exit
    fi
    set -- "${others[@]}"
    ;;
  *) with_web=no ;;
esac
# Forwarding is measured beside nginx where there is one.
case " $* " in
  "  " | *" forward "*) "$here/install.sh" nginx || echo "no numbers for nginx: this machine cannot give it" >&2 ;;
esac
"$binary" bench "$@"
[ $with_web = no ] || web
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
