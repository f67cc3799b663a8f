# shellcheck shell=sh
# What a server is asked, around the sections of its instances. `@SECTIONS@` is replaced by one line per instance.
export LC_ALL=C
section=@SECTION@
folder=$(mktemp -d 2>/dev/null) || folder=
running=0
count=0

behind() {
    sed "s/^/$1|/"
    echo
}

@LIST_GATEWAYS@

quit() {
    if [ -n "$folder" ]; then rm -rf "$folder"; fi
}
trap quit EXIT
trap 'exit 1' HUP INT TERM PIPE

# Eight at a time: one that does not answer holds back nobody for longer than its own time. Without a folder for the
# answers, one after the other.
one() {
    if [ -z "$folder" ]; then
        echo "begin $count"
        timeout -k 2 "@TIMEOUT@" sh -c "$section" sweep "$@" 2>/dev/null </dev/null
        echo
        echo "over $count"
    else
        timeout -k 2 "@TIMEOUT@" sh -c "$section" sweep "$@" >"$folder/$count" 2>/dev/null </dev/null &
        running=$((running + 1))
        if [ "$running" -ge 8 ]; then
            wait
            running=0
        fi
    fi
    count=$((count + 1))
}

echo "sweep 1"
echo "time $(date +%s)"
head -n 1 /proc/stat | behind cpu
@SECTIONS@
wait
if [ -n "$folder" ]; then
    number=0
    while [ "$number" -lt "$count" ]; do
        echo "begin $number"
        cat "$folder/$number"
        echo
        echo "over $number"
        number=$((number + 1))
    done
fi

head -c 64 /proc/uptime | behind uptime
head -c 64 /proc/loadavg | behind load
grep -E '^(MemTotal|MemAvailable):' /proc/meminfo | behind memory
df -Pk / @FOLDERS@ 2>/dev/null | head -c 4096 | behind disk
echo "cores $(getconf _NPROCESSORS_ONLN)"
# Every gateway of the server, registered or not.
for pid in $(gateways '^openclaw-gatewa$' 500); do
    echo "gateway $pid"
    sed -n 's/^0:://p; s/^[0-9]*:name=systemd://p' "/proc/$pid/cgroup" 2>/dev/null | head -c 2048 | behind cgroup
    { tr '\0' '\n' <"/proc/$pid/environ"; } 2>/dev/null | grep -a '^OPENCLAW_CONFIG_PATH=' | head -n 1 | cut -c 22-1024 | behind config-path
done
# The processors' load is the difference of two looks; a short sweep waits until there is one to see.
sleep 0.3
head -n 1 /proc/stat | behind cpu
echo "done"
