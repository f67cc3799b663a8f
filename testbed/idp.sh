#!/usr/bin/env bash
# idp.sh     runs the tests' OpenID provider in the foreground and prints "idp ready ISSUER"; idp/idp.mjs says what can be set.
# It ends with the process that started it. By hand: PORT=4000 testbed/idp.sh
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
"$here/install.sh" idp
export IDP_MODULES=${IDP_MODULES:-${XDG_CACHE_HOME:-$HOME/.cache}/tidepool/idp/node_modules}
exec setpriv --pdeathsig TERM node "$here/idp/idp.mjs"
