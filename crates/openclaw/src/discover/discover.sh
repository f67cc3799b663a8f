# shellcheck shell=sh
# Finds every OpenClaw gateway that runs on a server or is configured there: processes, units, containers and homes. It changes nothing.
#
# Every line of the answer begins with a word of ours. What comes from elsewhere, a name or a file, stands behind `word|`, so that it can
# never pass for a line of ours. Of environments only the variables that say where a gateway lives are printed: others may be secrets.
export LC_ALL=C
@AS_OWNER@
@LIST_GATEWAYS@
look=@LOOK@
base=@BASE@
email_file=@EMAIL_FILE@
most=200

behind() {
    sed "s/^/$1|/"
    echo
}

variables='^(HOME|OPENCLAW_(HOME|STATE_DIR|CONFIG_PATH|PROFILE|GATEWAY_PORT|SERVICE_VERSION))='

# The sockets on which a process listens, as the kernel of its own network knows them.
sockets() {
    own=" $(find "/proc/$1/fd" -lname 'socket:\[*' -printf '%l ' 2>/dev/null | tr -cd '0-9 ' | head -c 16384) "
    for table in tcp tcp6; do
        grep ' 0A ' "/proc/$1/net/$table" 2>/dev/null | head -n 1000 | while read -r _ address _ _ _ _ _ _ _ inode _; do
            case $own in *" $inode "*) echo "listens $address" ;; esac
        done
    done | sort -u | head -n 16
}

echo "discover 1"
echo "time $(date +%s)"

# Gateways of older releases call themselves `openclaw`, as every command of it does; but a command listens nowhere.
units=
network=$(readlink /proc/self/ns/net)
until=$(($(date +%s) + 50))
late() { [ "$(date +%s)" -ge "$until" ]; }
for pid in $(gateways '^openclaw(-gatewa)?$' "$most"); do
    listens=$(sockets "$pid")
    [ -n "$listens" ] || continue
    echo "process $pid"
    # A container may have users that the server does not know by name.
    stat -c '%U %u' -- "/proc/$pid" 2>/dev/null | sed 's/^UNKNOWN //; s/ .*//' | head -c 64 | behind user
    # A server may have both hierarchies, and use one of them.
    cgroup=$(sed -n 's/^0:://p; s/^[0-9]*:name=systemd://p' "/proc/$pid/cgroup" 2>/dev/null |
        awk 'length > length(longest) { longest = $0 } END { print longest }' | head -c 2048)
    printf '%s\n' "$cgroup" | behind cgroup
    { tr '\0' '\n' <"/proc/$pid/environ"; } 2>/dev/null | grep -aE "$variables" | head -n 16 | head -c 8192 | behind variable
    # A socket in another network is at no port of the server's, whatever its number.
    if [ "$(readlink "/proc/$pid/ns/net")" = "$network" ]; then
        printf '%s\n' "$listens"
    else
        printf '%s\n' "$listens" | sed 's/^listens /inner /'
    fi
    case $cgroup in
    /system.slice/*.service) units="$units ${cgroup##*/}" ;;
    esac
done

# Units of the system: of those processes, and those whose files name OpenClaw. Of a template, its instances.
for file in $(grep -lsi openclaw /etc/systemd/system/*.service /run/systemd/system/*.service /usr/local/lib/systemd/system/*.service \
    /usr/lib/systemd/system/*.service 2>/dev/null | head -n "$most"); do
    name=${file##*/}
    case $name in
    *@.service)
        units="$units $(systemctl list-units --all --plain --no-legend --full "${name%.service}*.service" 2>/dev/null | cut -d ' ' -f 1 | head -n "$most" | tr '\n' ' ')"
        ;;
    *) units="$units $name" ;;
    esac
done
for unit in $(printf '%s\n' $units | grep -E '^[A-Za-z0-9:_.@\\-]+\.service$' | sort -u | head -n "$most"); do
    echo "unit"
    timeout -k 1 5 systemctl show --property=Id,LoadState,ActiveState,SubState,UnitFileState,MainPID,User,FragmentPath,ExecStart -- "$unit" 2>/dev/null |
        head -c 8192 | behind show
    timeout -k 1 5 systemctl show --property=Environment --value -- "$unit" 2>/dev/null |
        tr ' ' '\n' | grep -aE "$variables" | head -n 16 | head -c 8192 | behind variable
done

# Containers that name OpenClaw, or in which one of the processes above runs: the reader of this decides.
if command -v docker >/dev/null 2>&1; then
    for id in $(timeout -k 1 10 docker ps -a -q --no-trunc 2>/dev/null | head -n "$most"); do
        timeout -k 1 5 docker inspect --type container --format \
            '{"id":{{json .Id}},"name":{{json .Name}},"image":{{json .Config.Image}},"status":{{json .State.Status}},"user":{{json .Config.User}},"path":{{json .Path}},"args":{{json .Args}},"mounts":{{json .Mounts}},"privileged":{{json .HostConfig.Privileged}},"ports":{{json .NetworkSettings.Ports}}}' \
            -- "$id" 2>/dev/null | head -c 32768 | grep -ai openclaw | behind container
    done
    # Its home is looked at from inside, as the user that it runs as. What comes back is the container's own word.
    for id in $(timeout -k 1 10 docker ps -q --no-trunc 2>/dev/null | head -n "$most"); do
        if late; then break; fi
        timeout -k 1 5 docker inspect --type container --format '{{json .}}' -- "$id" 2>/dev/null | grep -qi openclaw || continue
        echo "inside $id"
        { timeout -k 1 8 docker exec -i "$id" sh -c "$look" look '' "$email_file" </dev/null 2>/dev/null || echo "config unreadable"; } |
            head -c 600000 | grep -aE '^(config (missing|unreadable|large)|session [0-9]+)$|^(config|path|email)\|'
    done
fi

# Homes: of everybody who has a state folder of OpenClaw, and those below the folder in which the platform makes them. The files in
# a home are looked at as the user whose home it is. What comes back is that user's word about its own files, so only lines about those pass.
{
    getent passwd | cut -d : -f 6
    for home in "$base"/*; do printf '%s\n' "$home"; done
} | sort -u | while read -r home; do
    if [ -d "$home/.openclaw" ] && [ ! -L "$home" ] && [ "$home" != / ]; then printf '%s\n' "$home"; fi
done | head -n "$most" | while read -r home; do
    if late; then break; fi
    echo "home"
    printf '%s\n' "$home" | behind path
    owner=$(stat -c %U -- "$home" 2>/dev/null | head -c 64)
    printf '%s\n' "$owner" | behind user
    if [ -e "/var/lib/systemd/linger/$owner" ]; then echo "lingers"; fi
    { as_owner 8 "$home" sh -c "$look" look "$home" "$email_file" </dev/null 2>/dev/null || echo "config unreadable"; } | head -c 600000 |
        grep -aE '^(config (missing|unreadable|large)|session [0-9]+|user-unit)$|^(config|email|user-show|user-variable)\|'
done
# Without this word the answer is incomplete.
if ! late; then echo "done"; fi
