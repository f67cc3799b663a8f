# shellcheck shell=sh
# What one instance is asked. Runs by itself under `timeout`, as `sh -c <this> sweep <arguments>`.
#
# Every line of the answer begins with a word of ours. What comes from elsewhere, a log line or an answer of
# somebody's server, stands behind `word|`, so that it can never pass for a line of ours.
runner=$1 unit=$2 port=$3 home=$4 limit=$5 since=$6 measure=$7
shift 7
export LC_ALL=C
@AS_OWNER@
files=@FILES@

# The last line of what is quoted may have no end; an empty line more is passed over.
behind() {
    sed "s/^/$1|/"
    echo
}

# The unit that a process belongs to, and the configuration it was started with. Its other variables may be secrets.
process() {
    head -c 64 "/proc/$1/comm" 2>/dev/null | behind comm
    sed -n 's/^0:://p; s/^[0-9]*:name=systemd://p' "/proc/$1/cgroup" 2>/dev/null | head -c 2048 | behind cgroup
    tr '\0' '\n' <"/proc/$1/environ" 2>/dev/null | grep -a '^OPENCLAW_CONFIG_PATH=' | head -n 1 | cut -c 22-1024 | behind config-path
}

ask() {
    if command -v curl >/dev/null 2>&1; then
        curl -q -s -i -m 3 --noproxy '*' "http://127.0.0.1:$port$1"
    else
        # Perl's base package is a part of every Debian.
        perl -MIO::Socket::INET -e '
            $SIG{ALRM} = sub { exit 1 }; alarm 3;
            my $s = IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => $ARGV[0], Timeout => 3) or exit 1;
            print $s "GET $ARGV[1] HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n"; $s->flush;
            while (sysread($s, my $b, 4096)) { print $b; }' "$port" "$1"
    fi 2>/dev/null | head -c 8192
}

# For how long a process has been running, as systemd says it of a unit.
started() {
    ticks=$(sed 's/^.*) //' "/proc/$1/stat" 2>/dev/null | cut -d ' ' -f 20)
    [ -n "$ticks" ] && echo "ExecMainStartTimestampMonotonic=$((ticks * 1000000 / $(getconf CLK_TCK)))"
}

# The state of what runs it, as systemd prints it of a unit. What a user's own systemd says is that user's word.
shown=
case $runner in
unit) shown=$(systemctl show --property="@PROPERTIES@" -- "$unit" 2>/dev/null | head -c 4096) ;;
user)
    shown=$(as_owner 5 "$home" sh -c '
        XDG_RUNTIME_DIR=/run/user/$(id -u)
        export XDG_RUNTIME_DIR
        exec systemctl --user show --property="$1" -- "$2"' sh "@PROPERTIES@" "$unit" </dev/null 2>/dev/null |
        head -c 4096 | grep -vE '^(User|Container)='
        [ -L "$home" ] || stat -c 'User=%U' -- "$home" 2>/dev/null)
    ;;
container)
    shown=$(timeout -k 1 5 docker inspect --type container --format \
        '{{.State.Status}} {{.State.Pid}} {{.State.ExitCode}} {{.State.OOMKilled}} {{.RestartCount}} {{.Id}}' -- "$unit" 2>/dev/null |
        head -n 1 | while read -r status pid code oom restarts id; do
        case $status in
        running) active=active ;;
        restarting) active=activating ;;
        *) if [ "$code" = 0 ]; then active=inactive; else active=failed; fi ;;
        esac
        result=success
        [ "$code" = 0 ] || result=exit-code
        [ "$oom" != true ] || result=oom-kill
        printf '%s\n' LoadState=loaded "ActiveState=$active" "SubState=$status" "Result=$result" "MainPID=$pid" \
            "NRestarts=$restarts" ExecMainCode=1 "ExecMainStatus=$code" "Container=$id"
        [ "$pid" = 0 ] || stat -c '%U %u' -- "/proc/$pid" 2>/dev/null | sed 's/^UNKNOWN //; s/ .*//; s/^/User=/'
        started "$pid"
    done)
    ;;
esac
printf '%s\n' "$shown" | behind unit
main=$(printf '%s\n' "$shown" | sed -n 's/^MainPID=\([1-9][0-9]*\)$/\1/p')

# Whether the unit is ours, and confines what it runs; and its hash, by which it is known whether it is still what was written. Only root
# can write there.
file=/etc/systemd/system/$unit
if [ "$runner" = unit ] && [ -f "$file" ]; then
    if ! head -n 1 -- "$file" | grep -q '^# Written by tidepool\.'; then
        word=foreign
    elif grep -q '^# The cell\.' "$file"; then
        word=confined
    else
        word=unconfined
    fi
    echo "cell $word $(sha256sum <"$file" | cut -c 1-64)"
fi

# A container's home is not a folder of the server.
[ "$runner" != container ] || measure=no

# Whose the home is. Only the folder itself is asked: what lies in it is its owner's to replace.
if [ "$runner" != container ] && [ -d "$home" ] && [ ! -L "$home" ]; then
    stat -c 'home %U %u' -- "$home" 2>/dev/null
fi

# Who holds the port. A process's name may say anything, also `pid=1`: a process counts that has the socket open.
sockets=$(ss -Hltnpe "sport = :$port" 2>/dev/null | head -c 8192)
printf '%s\n' "$sockets" | behind port
for pid in $(printf '%s\n' "$sockets" | grep -o 'pid=[0-9]*' | cut -d= -f2 | sort -un | head -n 8); do
    for socket in $(printf '%s\n' "$sockets" | grep -o ' ino:[0-9]*' | cut -d: -f2 | sort -un | head -n 8); do
        # A file cannot be called that: the text is the kernel's own.
        if find "/proc/$pid/fd" -lname "socket:\[$socket\]" 2>/dev/null | grep -q .; then
            echo "owner $pid"
            process "$pid"
            # A process that nothing starts is the instance's if it is its user's.
            if [ "$runner" = process ] && [ ! -L "$home" ] && [ "$(stat -c %u -- "/proc/$pid")" = "$(stat -c %u -- "$home")" ]; then
                {
                    printf '%s\n' LoadState=loaded ActiveState=active SubState=running Result=success "MainPID=$pid" NRestarts=0
                    stat -c 'User=%U' -- "$home"
                    started "$pid"
                } 2>/dev/null | behind unit
                main=$pid
            fi
            break
        fi
    done
done

if [ -n "$main" ]; then
    sed -n 's/^VmRSS:[^0-9]*\([0-9]*\) kB$/rss \1/p' "/proc/$main/status" 2>/dev/null
elif [ "$runner" = process ]; then
    {
        printf '%s\n' LoadState=loaded ActiveState=inactive SubState=dead Result=success
        [ -L "$home" ] || stat -c 'User=%U' -- "$home" 2>/dev/null
    } | behind unit
fi

ask /healthz | behind healthz
ask /readyz | behind readyz

# What systemd says of the unit, and the lines of a start that failed before it had a log file.
records() {
    journalctl "$@" --since="-${since}s" --lines=2000 --output=json --quiet --no-pager \
        --output-fields=MESSAGE,MESSAGE_ID,COMMAND,EXIT_CODE,EXIT_STATUS,UNIT,UNIT_RESULT,N_RESTARTS,_PID,_UID 2>/dev/null
}
case $runner in
unit) records --unit="$unit" ;;
user) [ -L "$home" ] || records "_SYSTEMD_USER_UNIT=$unit" "_UID=$(stat -c %u -- "$home" 2>/dev/null)" ;;
esac |
    grep -aE '"_PID":"1"|"MESSAGE":"([^"]* )?(FATAL ERROR: |Gateway failed to start: |Refusing to |Config auto-restored )' |
    tail -n 300 | tail -c "$limit" | behind journal
# Docker's time comes first; a line of OpenClaw's has one of its own.
if [ "$runner" = container ]; then
    timeout -k 1 5 docker logs --timestamps --since "${since}s" --tail 2000 -- "$unit" 2>&1 </dev/null |
        sed 's/^[^ ]* \(20[0-9-]*T[^ ]* \)/\1/' |
        grep -aE '^[^ ]+ (FATAL ERROR: |([^ ]* )?(Gateway failed to start: |Refusing to |Config auto-restored ))' |
        tail -n 300 | tail -c "$limit" | behind console
fi

# The instance's files are looked at as the user whose home it is: root would follow whatever links that user puts in the way. What
# comes back is that user's word about its own files, so only lines about those pass, and no more than belongs there.
look() {
    if [ "$runner" = container ]; then
        timeout -k 1 8 docker exec -i "$unit" sh -c "$files" sweep "$limit" "$@"
    else
        as_owner 8 "$home" sh -c "$files" sweep "$limit" "$@"
    fi
}
if [ "$runner" = container ] || [ -e "$home" ] || [ -L "$home" ]; then
    { look "$@" </dev/null 2>/dev/null || echo "config unreadable"; } |
        head -c "$((limit * 12 + 8192))" |
        grep -aE '^(config (missing|unreadable|[0-9a-f]{64} [0-9]+)|legacy-auth|log [0-9]+ [0-9]+ [0-9]+|rotated [0-9]+)$|^(log|rotated)\|'
else
    echo "config missing"
fi

# What a change that failed left of the state is kept for a week.
if [ "$measure" = yes ] && [ -d "$home" ]; then
    as_owner 10 "$home" sh -c '
        cd -- "$1" && [ -d .openclaw.failed ] && [ ! -L .openclaw.failed ] || exit
        [ -n "$(find .openclaw.failed -maxdepth 0 -ctime +6)" ] || exit
        chmod -R u+rwX -- .openclaw.failed
        rm -rf -- .openclaw.failed' sh "$home" </dev/null >/dev/null 2>&1
fi

# What it takes of the disk, in KiB: its home, and its unit's own /tmp and /var/tmp. Its owner can hide folders from itself, and stop or end
# what runs as itself. So nobody counts, with the one right to look into every folder: du reads no file, writes nothing and follows no link.
# It stays on one file system, except on an overlay: there files and folders may show different devices, and -x would leave all files out.
if [ "$measure" = yes ] && [ -d "$home" ] && [ ! -L "$home" ]; then
    one_file_system=x
    [ "$(stat -f -c %T -- "$home")" != overlayfs ] || one_file_system=
    set -- nice -n 19 du "-skc$one_file_system" -- "$home"
    for folder in /tmp/systemd-private-*-"$unit"-*/tmp /var/tmp/systemd-private-*-"$unit"-*/tmp; do
        if [ -d "$folder" ] && [ "$(stat -c %u -- "${folder%/tmp}")" = 0 ]; then set -- "$@" "$folder"; fi
    done
    if [ "$(id -u)" = 0 ]; then
        right=-all,+dac_read_search
        set -- setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps="$right" --ambient-caps="$right" --bounding-set="$right" \
            --no-new-privs -- "$@"
    fi
    (cd / && timeout -k 2 10 "$@") </dev/null 2>/dev/null | tail -n 1 | head -c 64 | sed -n 's/^\([0-9][0-9]*\)[[:space:]]total$/home-kib \1/p'
fi
echo "end"
