#!/usr/bin/env bash
# hosts.sh     real servers for the tests: Debian with systemd as process 1, journald, logind, sshd, sudo and Docker, several on one machine.
#   hosts.sh check               exit code 69 and one line that says why, where this machine cannot run them
#   hosts.sh build               the tree that all of them boot from, once (some minutes, 0.5 GB, into the cache folder)
#   hosts.sh run N DIR           h1…hN in the foreground, everything of theirs in DIR; prints "hosts ready DIR"; ends with its parent or by SIGTERM
#   hosts.sh up N DIR            the same in the background; hosts.sh down DIR ends it
#   hosts.sh stop|start|crash|reboot DIR hK     power off cleanly, boot again (the disk is kept), pull the plug, restart
#   hosts.sh cable DIR hK down|up               pull its network cable, put it back
#   hosts.sh ssh DIR [USER@]hK COMMAND…         as root, or as ops (sudo without password), fisher (the same, shell fish), guest (no sudo)
#   hosts.sh exec DIR COMMAND…                  inside the hosts' network
#   hosts.sh status DIR
# DIR/hosts.json lists names, addresses and host keys; DIR/id is the key that logs in everywhere; DIR/hK/root is a host's file tree.
# The hosts live in a network namespace without a way out. Inside it they are 10.77.n.(10+K):22 (the bridge 10.77.n.1), from the machine
# itself 127.77.n.(10+K):22, through hosts_relay.py; n is a free number, so that several runs can go on at once.
# The hosts in HOSTS_DOCKER (default "h1") run a Docker engine. HOSTS_OPENCLAW names folders by testbed/install.sh openclaw, with colons
# between them: h4 has those releases and their Node where prepare_server puts them, hosts with Docker below /opt/images, for containers to
# mount. The hosts in HOSTS_CHROMIUM (default none) have this machine's Chromium, by testbed/install.sh chromium. Needs root; packages by
# testbed/install.sh hosts.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
self=$here/hosts.sh
cache=${XDG_CACHE_HOME:-$HOME/.cache}/tidepool
base=$cache/hosts-base
registry=/run/tidepool-hosts
suite=bookworm
packages=systemd,systemd-sysv,dbus,libpam-systemd,dbus-user-session,openssh-server,iproute2,procps,sudo,e2fsprogs,python3,ca-certificates,curl,fish,libatomic1,docker.io,iptables
# What stands in the tree besides the packages has a version too.
made=3:$suite:$packages
docker=${HOSTS_DOCKER-h1}
chromium=${HOSTS_CHROMIUM-}
IFS=: read -r -a openclaws <<<"${HOSTS_OPENCLAW-}"
readonly UNAVAILABLE=69
cgroups=/sys/fs/cgroup/unified
[ -e $cgroups/cgroup.procs ] || cgroups=/sys/fs/cgroup

fail() { printf 'hosts.sh: %s\n' "$*" >&2; exit 1; }
cannot() { printf 'hosts: %s\n' "$*"; exit $UNAVAILABLE; }

# ── what the machine must be able to do ──

check() {
  [ "$(id -u)" = 0 ] || cannot "not root"
  local tool
  for tool in systemd-nspawn mmdebstrap ssh-keygen ip nsenter unshare setpriv python3; do
    command -v $tool >/dev/null || cannot "$tool is not installed"
  done
  local why
  why=$(unshare --mount --net --propagation private bash -c '
    set -e
    ip link add name br0 type bridge && ip link add name test0 type veth peer name test1
    mount -t tmpfs tmpfs /mnt && mkdir /mnt/{lower,upper,work,root,cgroup}
    mount -t overlay overlay -o lowerdir=/mnt/lower,upperdir=/mnt/upper,workdir=/mnt/work /mnt/root
    mount -t cgroup2 none /mnt/cgroup' 2>&1) || cannot "no namespaces, bridges, overlayfs or cgroup v2: ${why##*$'\n'}"
}

# ── the tree ──

built() { [ "$(cat "$base/.made" 2>/dev/null)" = "$made" ]; }

# Debian's own entries of this machine's apt sources, so that a mirror or proxy is used where there is one.
debian_sources() {
  [ "$(. /etc/os-release && echo "${VERSION_CODENAME:-}")" = $suite ] || return 0
  find /etc/apt/sources.list /etc/apt/sources.list.d -maxdepth 1 -size +0 \( -name sources.list -o -name 'debian*.sources' -o -name 'debian*.list' \) 2>/dev/null
}

build() {
  built && return
  exec 8>"$cache/hosts-base.lock"
  flock 8
  built && return
  local tree=$base.new sources=() unit user
  rm -rf "$tree"
  mkdir -p "$tree"
  mapfile -t sources < <(debian_sources)
  mmdebstrap --quiet --variant=minbase --format=directory --include="$packages" --aptopt='Acquire::Languages "none"' \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    $suite "$tree" "${sources[@]}" 8>&-
  rm -rf "$tree"/etc/ssh/ssh_host_* "$tree"/var/lib/apt/lists/* "$tree"/var/cache/apt/*
  : >"$tree/etc/machine-id"
  mkdir -p "$tree/var/log/journal" "$tree/root/.ssh" # the journal outlives a reboot
  chmod 700 "$tree/root/.ssh"
  printf 'PermitRootLogin prohibit-password\nPasswordAuthentication no\nUseDNS no\nMaxStartups 100\n' >"$tree/etc/ssh/sshd_config.d/tests.conf"
  # sysctl is masked because a host must not write the real kernel's settings; the others have nothing to do here.
  for unit in systemd-sysctl.service systemd-udevd.service systemd-udevd-control.socket systemd-udevd-kernel.socket systemd-timesyncd.service \
    systemd-networkd.service systemd-resolved.service systemd-update-utmp.service getty.target console-getty.service \
    apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer; do
    ln -sf /dev/null "$tree/etc/systemd/system/$unit"
  done
  rm -f "$tree"/etc/systemd/system/{multi-user.target.wants/{docker,containerd}.service,sockets.target.wants/docker.socket}
  mkdir -p "$tree/etc/docker" "$tree/var/lib/systemd/linger"
  echo '{"bip":"10.79.0.1/24","storage-driver":"overlay2"}' >"$tree/etc/docker/daemon.json"
  chroot "$tree" useradd -m -s /bin/bash -u 1000 ops
  chroot "$tree" useradd -m -s /usr/bin/fish -u 1001 fisher
  chroot "$tree" useradd -m -s /bin/bash -u 1002 guest
  for user in ops fisher guest; do
    install -d -o "$(chroot "$tree" id -u $user)" -g "$(chroot "$tree" id -g $user)" -m 700 "$tree/home/$user/.ssh"
    [ $user = guest ] || printf '%s ALL=(ALL) NOPASSWD:ALL\n' $user >"$tree/etc/sudoers.d/$user"
  done
  chmod 440 "$tree"/etc/sudoers.d/*
  : >"$tree/var/lib/systemd/linger/ops"
  echo "$made" >"$tree/.made"
  ! grep -q "lowerdir=$base," /proc/mounts || fail "hosts are running from the tree that is to be replaced; end them first"
  rm -rf "$base"
  mv "$tree" "$base"
  exec 8>&-
}

# ── names of one run; `number` is what they are made of ──

run_folder() {
  [ -n "${1:-}" ] || usage
  dir=$(cd "$1" 2>/dev/null && pwd) || fail "no such folder: $1"
  number=$(cat "$dir/number" 2>/dev/null) || fail "no hosts in $dir"
  net=tidepool-$number
  group=$cgroups/tidepool-hosts.$number
}
host_folder() {
  [[ ${1:-} =~ ^h[0-9]+$ && -d $dir/$1 ]] || fail "no host ${1:-} in $dir"
  host=$1 k=${1#h}
}
inside() { nsenter --net="/run/netns/$net" "$@"; }
# A process that has ended, but that nobody has collected, is no living one.
alive() { kill -0 "$1" 2>/dev/null && ! grep -q '^State:.[ZX]' "/proc/$1/status" 2>/dev/null; }
running() { [ -e "$dir/$1/pid" ] && alive "$(cat "$dir/$1/pid" 2>/dev/null)"; }

# The name of a cgroup is the machine's, whatever root this is run in: making it claims the number.
claim() {
  mkdir -p $registry
  exec 7>$registry/lock
  flock 7
  sweep
  for number in $(seq 1 250); do
    mkdir "$cgroups/tidepool-hosts.$number" 2>/dev/null && break
    number=
  done
  [ -n "$number" ] || fail "250 runs of hosts at once?"
  printf '%s\n' "$number" >"$dir/number"
  printf '%s\n%s\n' "$$" "$dir" >"$registry/$number"
  remove_namespaces "tidepool-$number" # of a run that the machine's restart ended: the files of its namespaces may outlive its cgroup
  exec 7>&-
}

# What a run left that was killed before it could tidy up.
sweep() {
  local entry owner folder
  for entry in "$registry"/[0-9]*; do
    [ -e "$entry" ] || continue
    { read -r owner; read -r folder; } <"$entry"
    alive "$owner" || (dir=$folder number=${entry##*/}; net=tidepool-$number group=$cgroups/tidepool-hosts.$number; tear_down) 7>&-
  done
}

# ── one run ──

remove_namespaces() { # NET: the network's own and those of its hosts
  local name
  for name in /run/netns/"$1" /run/netns/"$1"-h[0-9]*; do
    [ ! -e "$name" ] || ip netns del "${name##*/}" 2>/dev/null || true
  done
}

network_up() {
  ip netns add "$net"
  ip -n "$net" link set lo up
  ip -n "$net" link add name br0 type bridge
  ip -n "$net" addr add "10.77.$number.1/24" dev br0
  ip -n "$net" link set br0 up
}

plug_in() { # K: its namespace, and the cable to the bridge
  ip netns add "$net-h$1"
  ip -n "$net-h$1" link set lo up
  ip -n "$net" link add name "h$1" type veth peer name eth0 netns "$net-h$1"
  ip -n "$net" link set "h$1" master br0 up
  ip -n "$net-h$1" addr add "10.77.$number.$((10 + $1))/24" dev eth0
  ip -n "$net-h$1" link set eth0 up
}

# give_chromium ROOT: what Chromium needs beside its own folder, which keep_host shows to the host: the libraries that the host does not
# have, a font, and a launcher where OpenClaw looks for one.
give_chromium() {
  local library
  { ldd /usr/lib/chromium/chromium | awk '$2 == "=>" && $3 ~ /^\// { print $3 }'; ls /usr/lib/*/lib{softokn3,freebl3,freeblpriv3}.so; } |
    while read -r library; do
      library=$(readlink -f "${library%/*}")/${library##*/}
      [ -e "$1$library" ] || install -D -m 644 "$library" "$1$library"
    done
  mkdir -p "$1/usr/lib/chromium" "$1/usr/share/fonts/truetype"
  cp -r /etc/fonts "$1/etc/"
  cp -r /usr/share/fontconfig "$1/usr/share/"
  cp -r /usr/share/fonts/truetype/liberation "$1/usr/share/fonts/truetype/"
  printf '#!/bin/sh\nexec /usr/lib/chromium/chromium "$@"\n' >"$1/usr/bin/chromium"
  chmod 755 "$1/usr/bin/chromium"
}

mount_disk() { # K
  local d=$dir/h$1
  mkdir -p "$d"/disk/{upper,work,docker}
  chmod 755 "$d/disk/upper"
  mount -t overlay "$net-h$1" -o "lowerdir=$base,upperdir=$d/disk/upper,workdir=$d/disk/work" "$d/root"
}

prepare() { # K: its disk, host key, name, and who may log in
  local d=$dir/h$1 root=$dir/h$1/root user
  mkdir -p "$d"/{disk,root}
  # What is an overlay itself, as the root of a container often is, cannot carry another: then the disk is in memory.
  mount_disk "$1" 2>/dev/null || { mount -t tmpfs "$net-h$1" "$d/disk" && mount_disk "$1"; }
  ssh-keygen -q -t ed25519 -N '' -C "root@h$1" -f "$root/etc/ssh/ssh_host_ed25519_key"
  echo "h$1" >"$root/etc/hostname"
  printf '127.0.0.1 localhost\n127.0.1.1 h%s\n' "$1" >"$root/etc/hosts"
  install -m 600 "$dir/id.pub" "$root/root/.ssh/authorized_keys"
  for user in ops fisher guest; do
    install -m 600 "$dir/id.pub" "$root/home/$user/.ssh/authorized_keys"
    chown --reference="$root/home/$user" "$root/home/$user/.ssh/authorized_keys"
  done
  if [[ " $docker " == *" h$1 "* ]]; then
    ln -s /lib/systemd/system/docker.service "$root/etc/systemd/system/multi-user.target.wants/docker.service"
    ln -s /lib/systemd/system/docker.socket "$root/etc/systemd/system/sockets.target.wants/docker.socket"
  fi
  [[ " $chromium " != *" h$1 "* ]] || give_chromium "$root"
  local folder version node
  for folder in "${openclaws[@]}"; do
    [ "$1" = 4 ] || break
    read -r version node <"$folder/installed.txt"
    mkdir -p "$root/opt/tidepool/node/$node/bin" "$root/opt/tidepool/openclaw/$version/node_modules"
    printf '#!/bin/sh\nunset NODE_OPTIONS\nexec /opt/tidepool/node/%s/bin/node /opt/tidepool/openclaw/%s/node_modules/openclaw/openclaw.mjs "$@"\n' \
      "$node" "$version" >"$root/opt/tidepool/openclaw/$version/openclaw"
    chmod 755 "$root/opt/tidepool/openclaw/$version/openclaw"
  done
  mkfifo "$d/control"
}

# keep_host K: boots it whenever `start` is written to its control pipe. systemd wants a cgroup v2 tree of its own, so this runs in a mount
# namespace that shows nothing else; the host's processes are in a cgroup, by which a crash ends them all at once.
keep_host() {
  local d=$dir/h$1 options=() code
  if [[ " $docker " == *" h$1 "* ]]; then
    options=(--bind="$d/disk/docker:/var/lib/docker" --capability=CAP_NET_ADMIN --system-call-filter='add_key keyctl bpf')
    export SYSTEMD_NSPAWN_API_VFS_WRITABLE=network
  fi
  [[ " $chromium " != *" h$1 "* ]] || options+=(--bind-ro=/usr/lib/chromium)
  local folder version node
  for folder in "${openclaws[@]}"; do
    read -r version node <"$folder/installed.txt"
    [[ " $docker " != *" h$1 "* ]] || options+=(--bind-ro="$folder/node_modules:/opt/images/openclaw/$version/node_modules")
    [ "$1" = 4 ] || continue
    options+=(--bind-ro="$folder/node_modules:/opt/tidepool/openclaw/$version/node_modules")
    [[ "${options[*]}" == *":/opt/tidepool/node/$node/bin"* ]] ||
      options+=(--bind-ro="$folder/node_modules/node/bin:/opt/tidepool/node/$node/bin")
  done
  if [ "$(stat -fc %T /sys/fs/cgroup)" != cgroup2fs ]; then
    umount -R /sys/fs/cgroup
    mount -t cgroup2 none /sys/fs/cgroup
  fi
  local own=/sys/fs/cgroup/tidepool-hosts.$number/h$1
  trap 'echo 1 >"$own/cgroup.kill" 2>/dev/null; exit 0' TERM
  exec 5<>"$d/control"
  while read -r _ <&5; do
    code=133 # nspawn's way to say that the host asked for a reboot
    while [ $code = 133 ]; do
      mkdir -p "$own"
      (
        echo $BASHPID >"$own/cgroup.procs"
        exec systemd-nspawn -q -b -D "$d/root" -M "h$1" --register=no --keep-unit --console=pipe --link-journal=no --resolv-conf=off \
          --timezone=off --network-namespace-path="/run/netns/$net-h$1" "${options[@]}" </dev/null >>"$d/console.log" 2>&1 5>&-
      ) &
      echo $! >"$d/pid"
      code=0
      wait $! || code=$?
      echo 1 >"$own/cgroup.kill" 2>/dev/null || true
      tidy_cgroup "$own"
      rm -f "$d/pid"
    done
  done
}

tidy_cgroup() { # a cgroup can be removed once its last process is gone
  local try
  for try in $(seq 100); do
    [ -d "$1" ] || return 0
    find "$1" -depth -type d -exec rmdir {} + 2>/dev/null || true
    [ ! -d "$1" ] || sleep 0.02
  done
}

boot() { # K: asks its keeper, waits for sshd
  local try address=10.77.$number.$((10 + $1))
  running "h$1" || timeout 5 bash -c 'echo start >"$1"' _ "$dir/h$1/control" || fail "nobody keeps h$1"
  for try in $(seq 600); do
    if inside timeout 2 bash -c 'exec 3<>/dev/tcp/$1/22 && read -t 1 -r line <&3 && [[ $line == SSH-* ]]' _ "$address" 2>/dev/null; then return 0; fi
    [ "$try" -lt 20 ] || running "h$1" || { tail -n 20 "$dir/h$1/console.log" >&2; fail "h$1 did not boot"; }
    sleep 0.05
  done
  tail -n 20 "$dir/h$1/console.log" >&2
  fail "h$1 has no sshd after 30 s"
}

down_within() { # hK TENTHS: whether it went down in that time
  local try
  for try in $(seq "$2"); do
    running "$1" || [ -d "$group/$1" ] || return 0
    sleep 0.1
  done
  return 1
}
stop() { running "$1" && kill -TERM "$(cat "$dir/$1/pid")" 2>/dev/null; down_within "$1" 300 || fail "$1 does not power off"; }
crash() { [ ! -e "$group/$1/cgroup.kill" ] || echo 1 >"$group/$1/cgroup.kill"; down_within "$1" 100 || fail "$1 does not go down"; }

describe() {
  local k sep='' key
  printf '{"netns": "/run/netns/%s", "bridge": "10.77.%s.1", "key": "%s/id", "hosts": [' "$net" "$number" "$dir"
  for k in $(seq "$1"); do
    key=$(cut -d' ' -f1,2 "$dir/h$k/root/etc/ssh/ssh_host_ed25519_key.pub")
    printf '%s\n  {"name": "h%s", "address": "10.77.%s.%s", "relay": "127.77.%s.%s", "port": 22, "host_key": "%s", "docker": %s}' \
      "$sep" "$k" "$number" $((10 + k)) "$number" $((10 + k)) "$key" "$([[ " $docker " == *" h$k "* ]] && echo true || echo false)"
    sep=,
    printf '127.77.%s.%s,10.77.%s.%s %s\n' "$number" $((10 + k)) "$number" $((10 + k)) "$key" >>"$dir/known_hosts"
  done
  printf '\n]}\n'
}

unmount() {
  local try
  for try in $(seq 50); do
    mountpoint -q "$1" || return 0
    umount "$1" 2>/dev/null || sleep 0.05
  done
  umount -l "$1"
}

tear_down() {
  trap '' TERM INT HUP
  local pid d
  for pid in $(jobs -p); do kill -TERM "$pid" 2>/dev/null || true; done
  for d in "$group"/h[0-9]*; do [ ! -e "$d/cgroup.kill" ] || echo 1 >"$d/cgroup.kill"; done
  wait
  for d in "$group"/h[0-9]*; do [ ! -d "$d" ] || tidy_cgroup "$d"; done
  for d in "$dir"/h[0-9]*; do
    [ -d "$d" ] || continue
    unmount "$d/root"
    unmount "$d/disk"
    rm -rf --one-file-system "$d"
  done
  remove_namespaces "$net"
  rm -f "$dir"/{number,keeper.pid,hosts.json,known_hosts,id,id.pub,relay.log} "$registry/$number"
  rmdir "$group" 2>/dev/null || true
}

# keep N DIR: one run from its beginning to its end; `run` and `up` are ways to call it
keep() {
  local n=$1 k pairs=()
  mkdir -p "$2"
  dir=$(cd "$2" && pwd)
  [ ! -e "$dir/number" ] || fail "$dir holds hosts already"
  claim
  net=tidepool-$number group=$cgroups/tidepool-hosts.$number
  trap tear_down EXIT
  trap 'exit 0' TERM INT HUP
  echo $$ >"$dir/keeper.pid"
  ssh-keygen -q -t ed25519 -N '' -C tests -f "$dir/id"
  network_up
  for k in $(seq "$n"); do
    plug_in "$k"
    prepare "$k"
    setpriv --pdeathsig TERM unshare --mount --propagation private "$self" keep-host "$dir" "$k" </dev/null &
    pairs+=("127.77.$number.$((10 + k)):22=10.77.$number.$((10 + k)):22")
  done
  setpriv --pdeathsig TERM python3 "$here/hosts_relay.py" "/run/netns/$net" "${pairs[@]}" </dev/null >"$dir/relay.log" 2>&1 &
  for k in $(seq "$n"); do timeout 5 bash -c 'echo start >"$1"' _ "$dir/h$k/control"; done
  for k in $(seq "$n"); do boot "$k"; done
  describe "$n" >"$dir/hosts.json.new"
  mv "$dir/hosts.json.new" "$dir/hosts.json"
  echo "hosts ready $dir"
  wait # for a signal: the keepers never end by themselves
}

usage() { sed -n '2,12s/^# \{0,1\}//p' "$self" >&2; exit 2; }

cmd=${1:-}
[ $# -eq 0 ] || shift
case $cmd in
  check) check ;;
  build) check; build ;;
  built) built ;;
  run)
    [ $# -eq 2 ] || usage
    check
    build
    exec setpriv --pdeathsig TERM "$self" keep "$1" "$2"
    ;;
  up)
    [ $# -eq 2 ] || usage
    check
    build
    mkdir -p "$2"
    setsid "$self" keep "$1" "$2" </dev/null >"$2/keeper.log" 2>&1 &
    for try in $(seq 1200); do
      [ ! -e "$2/hosts.json" ] || exit 0
      alive $! || { cat "$2/keeper.log" >&2; fail "the hosts did not come up"; }
      sleep 0.05
    done
    kill $!
    fail "the hosts are not up after a minute"
    ;;
  keep) keep "$1" "$2" ;;
  keep-host) run_folder "$1"; keep_host "$2" ;;
  down)
    run_folder "${1:-}"
    keeper=$(cat "$dir/keeper.pid")
    kill -TERM "$keeper"
    for try in $(seq 600); do alive "$keeper" || break; sleep 0.05; done
    rm -f "$dir/keeper.log"
    ;;
  stop | crash) run_folder "${1:-}"; host_folder "${2:-}"; $cmd "$host" ;;
  start) run_folder "${1:-}"; host_folder "${2:-}"; boot "$k" ;;
  reboot) run_folder "${1:-}"; host_folder "${2:-}"; stop "$host"; boot "$k" ;;
  cable) run_folder "${1:-}"; host_folder "${2:-}"; ip -n "$net" link set "$host" "${3:?down or up}" ;;
  ssh)
    run_folder "${1:-}"
    user=${2%@*} name=${2#*@}
    [ "$user" != "$2" ] || user=root
    host_folder "$name"
    shift 2
    exec ssh -i "$dir/id" -o IdentitiesOnly=yes -o UserKnownHostsFile="$dir/known_hosts" -o StrictHostKeyChecking=yes -o BatchMode=yes \
      -o LogLevel=ERROR "$user@127.77.$number.$((10 + k))" "$@"
    ;;
  exec) run_folder "${1:-}"; shift; exec nsenter --net="/run/netns/$net" "$@" ;;
  status)
    run_folder "${1:-}"
    for d in "$dir"/h[0-9]*; do running "${d##*/}" && echo "${d##*/} up" || echo "${d##*/} down"; done
    ;;
  *) usage ;;
esac
