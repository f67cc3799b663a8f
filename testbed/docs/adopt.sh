# shellcheck shell=bash disable=SC2034
# Before the blocks of docs/adopt.md: the demo runs, ADMIN and AUTH are of its super administrator, and the server ams-1 is added, on which
# somebody made assistants before.
demo=$TMPDIR/demo.log
tidepool-lab demo >"$demo" 2>&1 &
until grep -qs '^Ctrl-C ' "$demo"; do
    kill -0 $! || { cat "$demo"; exit 1; }
    sleep 0.1
done

found() { sed -nE "s|$1|\1|p" "$demo"; }
ADMIN=$(found '^administrators +(http[^ ]*)/ .*')/api/v1
TOKEN=$(curl -sS "$ADMIN/auth/login" --json '{"email": "admin@demo.example", "password": "tidepool-demo"}' | jq -r .data.token)
AUTH="Authorization: Bearer $TOKEN"

# The simulated server takes any key: this one is 32 random bytes, as an Ed25519 key of PKCS #8.
{
    echo '-----BEGIN PRIVATE KEY-----'
    { printf '\60\56\2\1\0\60\5\6\3\53\145\160\4\42\4\40' && head -c 32 /dev/urandom; } | base64
    echo '-----END PRIVATE KEY-----'
} >"$TMPDIR/key"
jq -n --rawfile key "$TMPDIR/key" --argjson port "$(found '.* host 127\.0\.0\.1, SSH port ([0-9]+),.*')" \
    '{id: "ams-1", name: "Amsterdam 1", host: "127.0.0.1", ssh_port: $port, ssh_user: "root", ssh_key: $key}' |
    curl -sS --fail-with-body "$ADMIN/servers" -H "$AUTH" --json @-
