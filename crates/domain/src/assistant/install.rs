//! What assistants run: Node and OpenClaw, each version in a folder of its own, so that instances of one server can differ, and a version
//! that was there stays as it was while another is installed.

use std::time::Duration;

use base::id::ServerId;
use base::{Error, Kind, Result};
use openclaw::Version;
use remote::host::{Command, Host};
use store::instance;
use store::server::{self, Server};

use super::{Assistant, health};
use crate::App;

const FOLDER: &str = "/opt/tidepool";
/// One that every supported OpenClaw runs on, and an npm to install it with.
const NODE: &str = "26.10.0";
const NPM: &str = "11.21.1";

/// Hundreds of packages over somebody's line.
const INSTALL: Duration = Duration::from_secs(900);
const ASK: Duration = Duration::from_secs(20);

/// The program of a version; a script that starts it with the right Node.
pub fn program(version: &Version) -> String {
    format!("{FOLDER}/openclaw/{version}/openclaw")
}

pub fn node() -> String {
    format!("{FOLDER}/node/{NODE}/bin/node")
}

/// Where an assistant finds programs.
pub fn path() -> String {
    format!("{FOLDER}/node/{NODE}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
}

/// The version that a server has, or shall have.
pub fn wanted(app: &App, server: &Server) -> Version {
    server.openclaw_version.parse().unwrap_or_else(|_| app.assistants.version.clone())
}

/// The version that an instance runs: as it was told, or as it says itself while it runs; else its server's.
pub async fn of_instance(app: &App, assistant: &Assistant) -> Result<Version> {
    if let Ok(version) = assistant.instance.openclaw_version.parse() {
        return Ok(version);
    }
    match health::version(&assistant.host, assistant.port()?).await? {
        Some(version) => {
            instance::set_version(&app.db, &assistant.id(), &version.to_string()).await?;
            Ok(version)
        }
        None => Ok(wanted(app, &assistant.server)),
    }
}

/// What the program of a version says of itself; `None` where it is not installed.
pub async fn installed(host: &Host, version: &Version) -> Result<Option<String>> {
    let script = r#"[ -x "$1" ] || exit 3; exec "$1" --version"#;
    let output = host.run(&Command::script(script).arg(program(version)).limit(ASK)).await?;
    if output.status == 3 {
        return Ok(None);
    }
    let said = output.ok("openclaw --version")?.text();
    match Version::find(&said) {
        Some(found) if found == *version => Ok(Some(said.trim().chars().take(100).collect())),
        _ => {
            Err(Error::new(Kind::Gateway, "the installed OpenClaw is not the version it should be").with_operator(said))
        }
    }
}

// Node and npm come as packages of the registry, so that nothing but curl and tar need be there. A version is built aside and moved into
// place as a whole; whoever comes at the same time waits, and finds it done.
const SCRIPT: &str = r#"
set -eu
umask 022
folder=$1 registry=$2 node=$3 npm=$4 version=$5
case $(uname -m) in
  x86_64) arch=x64 ;;
  aarch64) arch=arm64 ;;
  *) echo "no Node for $(uname -m)" >&2; exit 1 ;;
esac
mkdir -p "$folder/node" "$folder/openclaw"
exec 9>"$folder/.lock"
flock -w 800 9
fetch() {
  mkdir -p "$2"
  curl -fsSL --retry 2 --max-time 600 -o "$2.tgz" -- "$registry/$1"
  tar -xzf "$2.tgz" -C "$2" --strip-components=1 --no-same-owner
  rm -f "$2.tgz"
}
if [ ! -x "$folder/node/$node/bin/node" ]; then
  new=$folder/node/.new; rm -rf "$new"
  fetch "node-linux-$arch/-/node-linux-$arch-$node.tgz" "$new"
  chmod 755 "$new/bin/node"
  fetch "npm/-/npm-$npm.tgz" "$new/npm"
  rm -rf "$folder/node/$node"
  mv -T "$new" "$folder/node/$node"
fi
target=$folder/openclaw/$version
[ ! -x "$target/openclaw" ] || exit 0
new=$folder/openclaw/.new; rm -rf "$new"; mkdir -p "$new"
printf '{"private":true}\n' >"$new/package.json"
PATH=$folder/node/$node/bin:$PATH HOME=$new/.home npm_config_cache=$new/.npm npm_config_update_notifier=false \
  "$folder/node/$node/bin/node" "$folder/node/$node/npm/bin/npm-cli.js" install --prefix "$new" --registry "$registry" \
  --no-fund --no-audit --omit=dev --loglevel=error "openclaw@$version" </dev/null >&2
rm -rf "$new/.npm" "$new/.home"
[ -f "$new/node_modules/openclaw/openclaw.mjs" ]
printf '#!/bin/sh\nunset NODE_OPTIONS\nexec %s %s "$@"\n' "$folder/node/$node/bin/node" "$target/node_modules/openclaw/openclaw.mjs" >"$new/openclaw"
chmod 755 "$new/openclaw"
rm -rf "$target"
mv -T "$new" "$target"
"#;

/// Installs a version, unless it is there. Answers what it says of itself.
pub async fn ensure(app: &App, server: &Server, host: &Host, version: &Version) -> Result<String> {
    let said = match installed(host, version).await? {
        Some(said) => said,
        None => {
            let registry = app.assistants.npm_registry.trim_end_matches('/');
            let command = Command::script(SCRIPT).args([FOLDER, registry, NODE, NPM, &version.to_string()]);
            host.succeed(&command.limit(INSTALL)).await?;
            let said = installed(host, version).await?;
            said.ok_or_else(|| Error::internal("OpenClaw was installed and is not there"))?
        }
    };
    // What a server has is what new instances get: another one, for a single instance, changes nothing of that.
    if *version == app.assistants.version {
        let id = ServerId::named(&server.id);
        server::set_prepared(&app.db, &id, &version.to_string(), app.clock.now()).await?;
    }
    Ok(said)
}
