# shellcheck shell=sh
# Installs Node, npm and an OpenClaw below a folder of root's. Everything that comes from the registry is fetched, unpacked and run by a
# user who can do nothing else; it becomes root's when none of that user's processes is left to change it, and is then moved into place
# as a whole. Root runs none of it. Whoever comes at the same time waits, and finds it done.
#
# Standard input: the lockfile that npm installs from, or nothing where there is none. `protected` comes from shell.sh.
set -eu
umask 022
folder=$1 registry=$2 node=$3 npm=$4 version=$5 node_sums=$6 npm_sums=$7 builder=$8
# The largest archive that is fetched: Node has some 60 MB.
most=300000000

case $(uname -m) in
x86_64) arch=x64 ;;
aarch64) arch=arm64 ;;
*)
    echo "no Node for $(uname -m)" >&2
    exit 1
    ;;
esac
mkdir -p -- "$folder"
protected "$folder/x" || exit 96
mkdir -p -- "$folder/node" "$folder/openclaw"
exec 9>"$folder/.lock"
flock -w 800 9
target=$folder/openclaw/$version
[ ! -x "$target/openclaw" ] || exit 0

if ! id -u "$builder" >/dev/null 2>&1; then
    useradd --system --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin -- "$builder" >&2
fi
uid=$(id -u "$builder")
gid=$(id -g "$builder")
[ "$uid" != 0 ]

# as_builder SECONDS PROGRAM ARGUMENT…
as_builder() {
    seconds=$1
    shift
    (cd / && exec timeout -k 5 "$seconds" setpriv --reuid "$uid" --regid "$gid" --clear-groups --no-new-privs -- "$@") 9>&-
}

# Ends every process of the builder's.
end_builder() {
    tries=100
    # A process that ends meanwhile makes grep fail, whatever it found.
    while left=$(grep -lsE "^Uid:([[:space:]]+[0-9]+)*[[:space:]]+$uid([[:space:]]|\$)" /proc/[0-9]*/status || :) && [ -n "$left" ]; do
        [ "$tries" -gt 0 ] || return 1
        tries=$((tries - 1))
        for process in $left; do
            process=${process#/proc/}
            kill -KILL "${process%/status}" 2>/dev/null || :
        done
        sleep 0.05
    done
}

# What an attempt left that was broken off.
rm -rf --one-file-system -- "$folder"/.build.*
work=$(mktemp -d -- "$folder/.build.XXXXXXXX")
trap 'chmod 700 -- "$work"; end_builder; rm -rf --one-file-system -- "$work"' EXIT
trap 'exit 143' HUP INT TERM PIPE
cat >"$work/package-lock.json"

# begin: an empty folder for the builder to work in.
begin() {
    end_builder
    chmod 711 -- "$work"
    rm -rf -- "$work/out"
    mkdir -m 755 -- "$work/out"
    chown -h "$uid:$gid" -- "$work/out"
}

# seal: what the builder made becomes root's, to be read and run by everybody. No process of the builder's is left that has a way into
# it, and a new one finds none. A file with another name elsewhere would be changed there too.
seal() {
    chmod 700 -- "$work"
    end_builder
    if find "$work/out" -type f -links +1 | grep -q .; then
        echo "what was unpacked has hard links" >&2
        exit 1
    fi
    chown -hR root:root -- "$work/out"
    find "$work/out" -type f -perm /7000 -exec chmod a-st -- {} +
    chmod -R u+rwX,go+rX,go-w -- "$work/out"
}

# fetch PATH NAME SUMS: an archive, into a file of root's. It must be one that we know.
fetch() {
    {
        as_builder 620 curl -fsSL --retry 2 --max-time 600 -- "$registry/$1" </dev/null || : >"$work/failed"
    } | head -c "$most" >"$work/$2"
    [ ! -e "$work/failed" ] || exit 1
    sum=$(sha512sum <"$work/$2")
    sum=${sum%% *}
    case " $3 " in
    *" $sum "*) ;;
    *)
        echo "$1 has the SHA-512 $sum, which is not known" >&2
        exit 70
        ;;
    esac
}

if [ ! -x "$folder/node/$node/bin/node" ]; then
    fetch "node-linux-$arch/-/node-linux-$arch-$node.tgz" node.tgz "$node_sums"
    fetch "npm/-/npm-$npm.tgz" npm.tgz "$npm_sums"
    begin
    as_builder 300 tar -xz -f - -C "$work/out" --strip-components=1 --no-same-owner <"$work/node.tgz"
    as_builder 10 mkdir -- "$work/out/npm"
    as_builder 300 tar -xz -f - -C "$work/out/npm" --strip-components=1 --no-same-owner <"$work/npm.tgz"
    seal
    if [ -L "$work/out/bin" ] || [ -L "$work/out/bin/node" ]; then exit 1; fi
    chmod 755 -- "$work/out/bin/node"
    rm -rf -- "$folder/node/$node"
    mv -T -- "$work/out" "$folder/node/$node"
fi

begin
if [ -s "$work/package-lock.json" ]; then
    printf '{"private":true,"dependencies":{"openclaw":"%s"}}\n' "$version" >"$work/package.json"
    set -- ci
else
    printf '{"private":true}\n' >"$work/package.json"
    set -- install "openclaw@$version"
fi
chmod 644 -- "$work/package.json" "$work/package-lock.json"
# OpenClaw finishes its installation when it is first run, in its own folder; later nobody but root can write there.
# shellcheck disable=SC2016
as_builder 850 sh -c '
    umask 022
    out=$1 node=$2 npm=$3 registry=$4
    shift 4
    cd -- "$out" || exit 1
    cp ../package.json . || exit 1
    [ ! -s ../package-lock.json ] || cp ../package-lock.json . || exit 1
    unset NODE_OPTIONS
    export PATH="${node%/*}:$PATH" HOME="$out/.home" npm_config_cache="$out/.npm" npm_config_update_notifier=false
    "$node" "$npm" "$@" --prefix "$out" --registry "$registry" --ignore-scripts --no-fund --no-audit --omit=dev --loglevel=error || exit 1
    exec "$node" node_modules/openclaw/openclaw.mjs --version' \
    sh "$work/out" "$folder/node/$node/bin/node" "$folder/node/$node/npm/bin/npm-cli.js" "$registry" "$@" </dev/null >&2
seal
modules=$work/out/node_modules
if [ -L "$modules" ] || [ -L "$modules/openclaw" ] || [ ! -f "$modules/openclaw/openclaw.mjs" ]; then
    echo "npm installed no OpenClaw" >&2
    exit 1
fi
mkdir -m 755 -- "$work/new"
mv -T -- "$modules" "$work/new/node_modules"
printf '#!/bin/sh\nunset NODE_OPTIONS\nexec %s %s "$@"\n' "$folder/node/$node/bin/node" "$target/node_modules/openclaw/openclaw.mjs" >"$work/new/openclaw"
chmod 755 -- "$work/new/openclaw"
if [ -s "$work/package-lock.json" ]; then cp -- "$work/package-lock.json" "$work/new/pinned.json"; fi
rm -rf -- "$target"
mv -T -- "$work/new" "$target"
