//! What assistants run: Node and OpenClaw, each version in a folder of its own, so that instances of one server can differ, and a version
//! that was there stays as it was while another is installed. How they get there: `install.sh`.
//!
//! Nothing that came from a registry is ever run as root. Node and npm are archives whose checksums we know; a release of OpenClaw that we
//! name is installed from a lockfile (`openclaw::lock`), any other is not pinned, and shown so.

use std::time::Duration;

use base::{Error, Kind, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use openclaw::{Version, lock};
use remote::host::{Actor, Command, Host, home};
use store::instance;
use store::server::{self, Server};

use super::{Assistant, health};
use crate::App;

const FOLDER: &str = "/opt/tidepool";
/// One that every supported OpenClaw runs on, and an npm to install it with.
const NODE: &str = "26.10.0";
const NPM: &str = "11.21.1";
/// Their archives, as npm writes checksums: Node for x86-64 and for ARM, npm.
const NODE_SUMS: [&str; 2] = [
    "sha512-OmAztarr1gK4PD+sNyoku4N5Q40d8eqMuLjNa/zRvxF33aCsVKVIQLs4V5HYPWSWWlMiTdkmbZE/6Phigma0hw==",
    "sha512-idArV/cmqW9M9ODyGlbOIiyxFourDh1mJB0SdKCdMbSZjjef9CLEN3o1/eE4yf+B0+5BD+F74MpTTHiB3XXTBQ==",
];
const NPM_SUMS: [&str; 1] =
    ["sha512-YTzL6QBEJXyHcTu0JiUc7RKMp+mzlJtl7rGLmERaXUQeFHIMc9atdr6G9M9C8vDWbv40epoTQAzNL2/PtZVDhQ=="];
/// Who fetches and installs, and has no other rights on a server.
const BUILDER: &str = "tidepool-install";

/// Hundreds of packages over somebody's line.
const INSTALL: Duration = Duration::from_secs(900);
const ASK: Duration = Duration::from_secs(20);

const SCRIPT: &str = include_str!("install.sh");
/// The script's status for an archive whose checksum is not known.
const UNKNOWN_SUM: i32 = 70;

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
pub fn desired_version(app: &App, server: &Server) -> Version {
    version_of(server.openclaw_version.as_deref()).unwrap_or_else(|| app.assistants.version.clone())
}

/// A recorded version, if there is one that can be read.
pub fn version_of(recorded: Option<&str>) -> Option<Version> {
    recorded?.parse().ok()
}

/// The version that an instance runs: as it is recorded, or as it says itself while it runs; else its server's.
pub async fn of_instance(app: &App, assistant: &Assistant) -> Result<Version> {
    if let Some(version) = version_of(assistant.instance.openclaw_version.as_deref()) {
        return Ok(version);
    }
    match health::version(assistant).await? {
        Some(version) => {
            instance::set_version(&app.db, &assistant.id(), &version.to_string()).await?;
            Ok(version)
        }
        None => Ok(desired_version(app, &assistant.server)),
    }
}

/// What is installed on a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// What the program says of itself.
    pub said: String,
    /// Whether every package of it was checked against a lockfile.
    pub pinned: bool,
}

impl std::fmt::Display for Installed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.said)?;
        if self.pinned { Ok(()) } else { f.write_str(", not pinned") }
    }
}

/// The program of a version, asked as somebody without rights; `None` where it is not installed.
pub async fn installed(host: &Host, version: &Version) -> Result<Option<Installed>> {
    let script = r#"
        [ -x "$1" ] || exit 3
        if [ -e "${1%/*}/pinned.json" ]; then echo pinned; else echo not pinned; fi
        exec "$1" --version
    "#;
    let command =
        Command::script("find-installed-version", &[script]).arg(program(version)).limit(ASK).by(Actor::nobody());
    let output = host.run(&command).await?;
    if output.status == 3 {
        return Ok(None);
    }
    let text = output.ok("openclaw --version")?.text();
    let (pinned, said) = text.split_once('\n').unwrap_or_default();
    match Version::find(said) {
        Some(found) if found == *version => {
            let said = said.trim().chars().take(100).collect();
            Ok(Some(Installed { said, pinned: pinned == "pinned" }))
        }
        _ => {
            Err(Error::new(Kind::Gateway, "the installed OpenClaw is not the version it should be").with_operator(said))
        }
    }
}

/// Installs a version, unless it is there.
pub async fn ensure(app: &App, server: &Server, host: &Host, version: &Version) -> Result<Installed> {
    let found = match installed(host, version).await? {
        Some(found) => found,
        None => {
            install(app, host, version).await?;
            let found = installed(host, version).await?;
            found.ok_or_else(|| Error::internal("OpenClaw was installed and is not there"))?
        }
    };
    // What a server has is what new instances get: another one, for a single instance, changes nothing of that.
    if *version == app.assistants.version {
        let id = server.id.clone();
        server::set_prepared(&app.db, &id, &version.to_string(), found.pinned, app.clock.now()).await?;
    }
    Ok(found)
}

async fn install(app: &App, host: &Host, version: &Version) -> Result<()> {
    let registry = app.assistants.npm_registry.trim_end_matches('/');
    if !app.assistants.npm_registry_allow_http && is_plain_http(registry) {
        let message = "the npm registry is asked without TLS, over the network: \
                    set TIDEPOOL_NPM_REGISTRY_ALLOW_HTTP if that is meant";
        return Err(Error::conflict(message));
    }
    let given = &app.assistants.npm_checksums;
    let sums = |ours: &[&str]| {
        let all = ours.iter().copied().chain(given.iter().map(String::as_str));
        Ok::<_, Error>(all.map(hex_sum).collect::<Result<Vec<_>>>()?.join(" "))
    };
    let (node_sums, npm_sums) = (sums(&NODE_SUMS)?, sums(&NPM_SUMS)?);
    let version_text = version.to_string();
    let command = Command::script("install-openclaw", &[home::SHELL, SCRIPT])
        .args([FOLDER, registry, NODE, NPM, &version_text, &node_sums, &npm_sums, BUILDER])
        .stdin(lock::of(version).unwrap_or_default())
        .limit(INSTALL);
    let output = host.run(&command).await?;
    if output.status == UNKNOWN_SUM {
        let message = "the registry's archive of Node or npm is not the one that is known";
        return Err(Error::conflict(message).with_operator(String::from_utf8_lossy(&output.stderr).trim()));
    }
    home::checked(output, FOLDER)?;
    Ok(())
}

/// Whether what the registry answers could be changed on its way.
fn is_plain_http(registry: &str) -> bool {
    let Ok(url) = url::Url::parse(registry) else { return true };
    let loopback = match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    url.scheme() != "https" && !loopback
}

/// A checksum as npm writes it, `sha512-` and base64, in hexadecimal digits.
pub fn hex_sum(text: &str) -> Result<String> {
    let bytes = text.trim().strip_prefix("sha512-").and_then(|sum| STANDARD.decode(sum).ok());
    let bytes = bytes.filter(|bytes| bytes.len() == 64);
    let bytes = bytes.ok_or_else(|| Error::conflict("a checksum must be `sha512-` and 64 bytes in base64"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_is_asked_over_tls_or_on_the_server_itself() {
        for good in ["https://registry.npmjs.org", "http://127.0.0.1:4873", "http://localhost/npm", "http://[::1]:1"] {
            assert!(!is_plain_http(good), "{good}");
        }
        for bad in [
            "http://npm.example.com",
            "http://10.0.0.7:4873",
            "http://127.0.0.1@npm.example.com",
            "http://localhost.example.com",
            "HTTP://npm.example.com",
            "nonsense",
        ] {
            assert!(is_plain_http(bad), "{bad}");
        }
    }

    #[test]
    fn checksums_are_npms() {
        for sum in NODE_SUMS.iter().chain(&NPM_SUMS) {
            assert_eq!(hex_sum(sum).unwrap().len(), 128);
        }
        for bad in ["", "sha512-", "sha512-AAAA", "sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=", "x"] {
            assert!(hex_sum(bad).is_err(), "{bad}");
        }
    }
}
