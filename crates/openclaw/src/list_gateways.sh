# shellcheck shell=sh
# Defines `gateways COMM MOST`, which prints the numbers of the processes that are gateways: those whose name matches COMM, an extended
# regular expression, since a gateway that was started by the command `openclaw` calls itself so; and Node with the file of OpenClaw's
# package, which units start that OpenClaw wrote itself, and which keeps its name. Both are their user's word.
gateways() {
    {
        grep -lsE "$1" /proc/[0-9]*/comm | head -n "$2" | sed 's/^/titled /'
        grep -lsaE '/openclaw/(openclaw\.mjs|dist/(index|entry)\.js)' /proc/[0-9]*/cmdline | head -n "$2" | sed 's/^/node /'
    } | tr / ' ' | while read -r kind _ pid _; do
        if [ "$kind" = node ]; then
            # Programs that start it, such as timeout, have the same words.
            case $(head -c 64 "/proc/$pid/comm" 2>/dev/null) in node* | MainThread) ;; *) continue ;; esac
            tr '\0' '\n' <"/proc/$pid/cmdline" 2>/dev/null | head -n 20 | grep -qx gateway || continue
        fi
        echo "$pid"
    done | sort -un | head -n "$2"
}
