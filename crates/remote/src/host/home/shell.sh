# shellcheck shell=sh
# Functions for scripts that root runs and that need something below a user's home. Root itself looks at nothing there: whoever owns
# a folder can put a link in it, at any moment, to whatever root can reach.

# protected HOME: nobody but root and the user who logged in can put something else in the home's place. Every folder above it is
# theirs, and nobody else can write into it (where everybody can, as in /tmp, the sticky bit keeps others' entries).
protected() (
    at=$(cd -P -- "${1%/*}/" 2>/dev/null && pwd -P) || exit 1
    set -- /
    while [ -n "$at" ] && [ "$at" != / ]; do
        set -- "$@" "$at"
        at=${at%/*}
    done
    found=$(stat -c '%u %a' -- "$@") || exit 1
    printf '%s\n' "$found" | while read -r owner mode; do
        [ "$owner" = 0 ] || [ "$owner" = "${SUDO_UID:-0}" ] || exit 1
        [ $((0$mode & 022)) = 0 ] || [ $((0$mode & 01000)) != 0 ] || exit 1
    done
)

# as_owner SECONDS HOME PROGRAM ARGUMENT…: runs a program as the user whose home this is, without any other right, for so long at most.
# Status 97: there is no home. 98: something else is in its place, or nobody has it. 96: it is root's, where others can replace it.
as_owner() {
    as_limit=$1 as_home=$2
    shift 2
    if [ ! -e "$as_home" ] && [ ! -L "$as_home" ]; then return 97; fi
    if [ ! -d "$as_home" ] || [ -L "$as_home" ]; then return 98; fi
    as_user=$(stat -c '%u %U' -- "$as_home") || return 98
    as_uid=${as_user%% *}
    as_user=${as_user#* }
    if [ "$as_uid" = 0 ]; then protected "$as_home" || return 96; fi
    if [ "$as_uid" = "$(id -u)" ]; then
        (cd / && exec timeout -k 2 "$as_limit" "$@") 9>&-
    else
        as_group=$(id -g -- "$as_user" 2>/dev/null) || return 98
        # The descriptor of a lock would be a way into a folder of root's.
        (cd / && exec timeout -k 2 "$as_limit" setpriv --reuid "$as_uid" --regid "$as_group" --clear-groups --no-new-privs -- "$@") 9>&-
    fi
}
