# shellcheck shell=sh
# What an instance's files say, asked as the user whose they are: `sh -c <this> sweep <arguments>`. The lines are described in section.sh.
limit=$1 config=$2 state=$3 log=$4 inode=$5 offset=$6
export LC_ALL=C
most=16777216

behind() {
    sed "s/^/$1|/"
    echo
}

if [ -f "$config" ] && [ -r "$config" ] && [ "$(stat -L -c %s -- "$config")" -le "$most" ]; then
    echo "config $(head -c "$most" -- "$config" | sha256sum | cut -c 1-64) $(stat -L -c %s -- "$config")"
else
    # Whoever may not look into a folder finds nothing in it; only a plain "no such file" says that it is missing.
    case $(ls -d -- "$config" 2>&1) in
    *"No such file"*) echo "config missing" ;;
    *) echo "config unreadable" ;;
    esac
fi
if [ -e "$state/agents/main/agent/auth-profiles.json" ]; then
    echo "legacy-auth"
fi

# The log from the mark on; from its end backwards where the mark is of another file or too far behind.
if [ -f "$log" ] && [ -r "$log" ]; then
    now=$(stat -L -c %i -- "$log")
    size=$(stat -L -c %s -- "$log")
    from=$offset
    # Another file under the same name: what came after the mark is in the old one, which lies beside it by another name.
    if [ "$now" != "$inode" ] && [ "$inode" != 0 ]; then
        old=$(find "$(dirname -- "$log")" -maxdepth 1 -type f -inum "$inode" 2>/dev/null | head -n 1)
        if [ -n "$old" ] && [ -r "$old" ]; then
            left=$(($(stat -L -c %s -- "$old") - offset))
            if [ "$left" -ge 0 ] && [ "$left" -le "$limit" ]; then
                echo "rotated $left"
                tail -c "+$((offset + 1))" -- "$old" 2>/dev/null | head -c "$left" | behind rotated
            fi
        fi
    fi
    if [ "$now" != "$inode" ] || [ "$size" -lt "$offset" ]; then from=0; fi
    if [ $((size - from)) -gt "$limit" ]; then from=$((size - limit)); fi
    bytes=$((size - from))
    echo "log $now $from $bytes"
    tail -c "+$((from + 1))" -- "$log" 2>/dev/null | head -c "$bytes" | behind log
fi
exit 0
