#!/usr/bin/env bash
# db.sh pg-run DIR PORT [OPTION…] | maria-run DIR PORT     a private database server on 127.0.0.1 in the foreground, data in DIR
# db.sh pg-url PORT     | maria-url PORT         its address
# The server ends with the process that started it, or by SIGINT (PostgreSQL), SIGTERM (MariaDB); DIR is the caller's to remove. Durability is off: these
# databases live for one test run (OPTION `-c synchronous_commit=on` keeps what was committed when the server is killed). Needs: testbed/install.sh postgres | mariadb. As root the server runs as Debian's own
# user of that database, which must be able to reach DIR (so not below /root).
set -euo pipefail
cmd=${1:-} dir=${2:-} port=${3:-}

# foreground USER SIGNAL COMMAND…: replaces this shell, drops root, and gets SIGNAL when its parent dies.
foreground() {
  local user=$1 signal=$2
  shift 2
  if [ "$(id -u)" = 0 ]; then
    exec setpriv --reuid "$user" --regid "$user" --clear-groups --pdeathsig "$signal" "$@"
  fi
  exec setpriv --pdeathsig "$signal" "$@"
}

# own USER DIR: DIR exists and belongs to the user that the server runs as.
own() {
  mkdir -p "$2"
  if [ "$(id -u)" = 0 ]; then chown "$1:" "$2"; fi
  chmod 700 "$2"
}

case $cmd in
  pg-run)
    bin=$(compgen -G '/usr/lib/postgresql/*/bin' | sort -V | tail -n1)
    own postgres "$dir"
    cd "$dir"
    if [ ! -e data/PG_VERSION ]; then
      (foreground postgres INT "$bin/initdb" -D "$dir/data" -U postgres -A trust --no-sync --locale=C.UTF-8 -E UTF8) >"$dir/initdb.log"
    fi
    # SIGINT is PostgreSQL's fast shutdown; at SIGTERM it would wait for its clients to leave.
    foreground postgres INT "$bin/postgres" -D "$dir/data" -p "$port" -c listen_addresses=127.0.0.1 -c unix_socket_directories= \
      -c fsync=off -c synchronous_commit=off -c full_page_writes=off -c shared_buffers=64MB -c max_connections=300 \
      -c log_min_messages=warning "${@:4}"
    ;;
  pg-url) echo "postgres://postgres@127.0.0.1:$dir/postgres" ;;
  maria-run)
    own mysql "$dir"
    cd "$dir"
    if [ ! -d data/mysql ]; then
      (foreground mysql TERM mariadb-install-db --no-defaults --datadir="$dir/data" --auth-root-authentication-method=normal --skip-test-db) \
        >"$dir/install.log" 2>&1
    fi
    printf "CREATE DATABASE IF NOT EXISTS test;\nCREATE OR REPLACE USER t@'127.0.0.1' IDENTIFIED BY 't';\nGRANT ALL ON *.* TO t@'127.0.0.1';\n" \
      >"$dir/init.sql"
    chmod 644 "$dir/init.sql"
    foreground mysql TERM /usr/sbin/mariadbd --no-defaults --datadir="$dir/data" --bind-address=127.0.0.1 --port="$port" \
      --socket="$dir/socket" --pid-file="$dir/pid" --init-file="$dir/init.sql" --skip-name-resolve --innodb-buffer-pool-size=32M \
      --innodb-flush-log-at-trx-commit=0 --skip-log-bin --performance-schema=off
    ;;
  maria-url) echo "mysql://t:t@127.0.0.1:$dir/test" ;;
  *)
    sed -n '2,3s/^# //p' "$0"
    exit 2
    ;;
esac
