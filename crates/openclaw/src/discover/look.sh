# shellcheck shell=sh
# What a home says of its gateway, asked as the user whose home it is: `sh -c <this> look <home> <file with an e-mail address>`. Without a
# home, in a container, it is the one that the environment names. The lines are described in discover.sh.
home=$1 email_file=$2
export LC_ALL=C
XDG_RUNTIME_DIR=/run/user/$(id -u)
export XDG_RUNTIME_DIR
config=$home/.openclaw/openclaw.json
most=262144

behind() {
    sed "s/^/$1|/"
    echo
}

if [ -z "$home" ]; then
    state=${OPENCLAW_STATE_DIR:-${OPENCLAW_HOME:-$HOME}/.openclaw}
    case $state in
    /*/.openclaw) home=${state%/.openclaw} ;;
    *) exit 0 ;;
    esac
    printf '%s\n' "$home" | behind path
    config=$home/.openclaw/openclaw.json
fi
HOME=$home
export HOME

if [ -f "$config" ] && [ -r "$config" ]; then
    if [ "$(stat -L -c %s -- "$config")" -le "$most" ]; then
        head -c "$most" -- "$config" | behind config
    else
        echo "config large"
    fi
else
    # Whoever may not look into a folder finds nothing in it; only a plain "no such file" says that it is missing.
    case $(ls -d -- "$config" 2>&1) in
    *"No such file"*) echo "config missing" ;;
    *) echo "config unreadable" ;;
    esac
fi
# Only a line that is nothing but an e-mail address is printed: other files have secrets with an @.
if [ -n "$email_file" ] && [ -f "$home/$email_file" ]; then
    head -c 4096 -- "$home/$email_file" | sed 's/^[[:space:]]*//; s/[[:space:]]*$//' |
        grep -axE '[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9.-]{1,190}' | head -n 1 | behind email
fi
# The newest file of its sessions.
newest=$(find "$home/.openclaw/agents" -maxdepth 4 -type f \( -name '*.jsonl' -o -name '*.sqlite*' \) -printf '%T@\n' 2>/dev/null | sort -n | tail -n 1)
newest=${newest%%.*}
if [ -n "$newest" ]; then echo "session $newest"; fi
# Units of the user's own.
for file in $(grep -lsi openclaw "$home"/.config/systemd/user/*.service | head -n 20); do
    echo "user-unit"
    {
        echo "Id=${file##*/}"
        timeout -k 1 3 systemctl --user show --property=LoadState,ActiveState,SubState,UnitFileState,MainPID,FragmentPath,ExecStart -- "${file##*/}" 2>/dev/null
    } | head -c 8192 | behind user-show
    timeout -k 1 3 systemctl --user show --property=Environment --value -- "${file##*/}" 2>/dev/null |
        tr ' ' '\n' | grep -aE '^(HOME|OPENCLAW_(HOME|STATE_DIR|CONFIG_PATH|PROFILE|GATEWAY_PORT|SERVICE_VERSION))=' |
        head -n 16 | head -c 8192 | behind user-variable
done
exit 0
