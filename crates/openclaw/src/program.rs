//! OpenClaw's program: the commands that we run, the variables that it reads, and how its running gateway is recognised.

use base::{Error, Kind, Result};
use serde_json::Value;

/// The environment variables that say where its state and its configuration are.
pub const STATE_DIR: &str = "OPENCLAW_STATE_DIR";
pub const CONFIG_PATH: &str = "OPENCLAW_CONFIG_PATH";

/// The path at which a gateway says, without a login, that it is alive.
pub const HEALTH: &str = "/healthz";

/// The arguments of its own repair of a configuration.
pub const DOCTOR: &[&str] = &["doctor", "--fix", "--yes", "--non-interactive"];

/// The arguments of a call of one method of the gateway, which finds address and token in the configuration. Its own limit
/// of ten seconds is too short for a busy server.
pub fn call(method: &str, params: &Value) -> [String; 8] {
    ["gateway", "call", method, "--params", &params.to_string(), "--timeout", "30000", "--json"].map(str::to_owned)
}

/// The arguments that list the devices which wait for approval.
pub const LIST_DEVICES: [&str; 3] = ["devices", "list", "--json"];

/// The arguments that approve one of them. A gateway may call its request anything, but it becomes an argument.
pub fn approve_device(request: &str) -> Result<[String; 4]> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    if request.is_empty() || request.len() > 64 || request.starts_with('-') || !request.chars().all(plain) {
        return Err(Error::new(Kind::Gateway, "the gateway's request for a device has an unusual number"));
    }
    Ok(["devices", "approve", request, "--json"].map(str::to_owned))
}

/// OpenClaw's program where somebody else installed it, as in a container.
pub const NAME: &str = "openclaw";

/// A shell script that has the program `$1` validate the configuration on its standard input, in a folder of its own.
/// It exits with 3 if there is no such program.
pub const VALIDATE: &str = r#"
    command -v "$1" >/dev/null 2>&1 || exit 3
    umask 077
    dir=$(mktemp -d) || exit 4
    trap 'rm -rf -- "$dir"' EXIT
    trap 'exit 143' HUP INT TERM PIPE
    cat >"$dir/openclaw.json" || exit 4
    HOME=$dir OPENCLAW_STATE_DIR=$dir OPENCLAW_CONFIG_PATH=$dir/openclaw.json "$1" config validate --json </dev/null
    [ $? -le 1 ] || exit 5
"#;

/// Shell text that defines a function which lists a server's gateways, by the same rule as `is_gateway`.
pub const LIST_GATEWAYS: &str = include_str!("list_gateways.sh");

/// Whether a command line is that of a gateway. A running gateway sets its title to `openclaw-gateway`, or to
/// `openclaw` in releases up to 2026.5. Until then its command line is node with OpenClaw's script. If node was started
/// with a file of the package, as in the units that OpenClaw writes itself, it stays so.
pub fn is_gateway(command: &[String]) -> bool {
    let Some(program) = command.first() else { return false };
    let titled = program.split(' ').next() == Some("openclaw-gateway") || command == ["openclaw"];
    let of_package =
        |word: &str| word.ends_with("/openclaw/dist/index.js") || word.ends_with("/openclaw/dist/entry.js");
    let script =
        |word: &String| matches!(word.rsplit('/').next(), Some("openclaw" | "openclaw.mjs")) || of_package(word);
    titled || command.iter().take(3).any(script) && command.iter().any(|word| word == "gateway")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_of_a_device_is_a_plain_word() {
        assert!(approve_device("61a35f7a-c1e6-4eee-b390-1ecc53935ef9").is_ok());
        for odd in ["", "--latest", "a b", "a;b", "ä", &"x".repeat(65)] {
            assert!(approve_device(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn a_gateway_is_recognised_by_its_title_or_its_script() {
        let is = |command: &[&str]| is_gateway(&command.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert!(is(&["openclaw-gateway"]) && is(&["openclaw-gateway --port 1"]) && is(&["openclaw"]));
        assert!(is(&["node", "/opt/oc/openclaw.mjs", "gateway", "run"]));
        assert!(is(&["/usr/bin/node", "/usr/lib/node_modules/openclaw/dist/index.js", "gateway", "--port", "18789"]));
        assert!(!is(&["node", "/srv/app/dist/index.js", "gateway"]));
        assert!(!is(&["node", "/usr/lib/node_modules/openclaw/dist/index.js", "doctor"]));
        assert!(!is(&[]) && !is(&["vi", "/srv/openclaw-gateway"]) && !is(&["node", "/opt/oc/openclaw.mjs", "doctor"]));
    }
}
