//! OpenClaw's program: the commands that we run, the variables that it reads, and how its running gateway is recognised.

use serde_json::Value;

/// The environment variables that say where its state and its configuration are.
pub const STATE_DIR: &str = "OPENCLAW_STATE_DIR";
pub const CONFIG_PATH: &str = "OPENCLAW_CONFIG_PATH";

/// The path at which a gateway says, without a login, that it is alive.
pub const HEALTH: &str = "/healthz";

/// The arguments of its own repair of a configuration.
pub const DOCTOR: &[&str] = &["doctor", "--fix", "--yes", "--non-interactive"];

/// The arguments of a call of one method of the gateway, which finds address and token in the configuration.
pub fn call(method: &str, params: &Value) -> [String; 6] {
    ["gateway", "call", method, "--params", &params.to_string(), "--json"].map(str::to_owned)
}

/// A shell script that has the program `$1` validate the configuration on its standard input, in a folder of its own.
/// It exits with 3 if there is no such program.
pub const VALIDATE: &str = r#"
    [ -x "$1" ] || exit 3
    umask 077
    dir=$(mktemp -d) || exit 4
    trap 'rm -rf -- "$dir"' EXIT
    trap 'exit 143' HUP INT TERM PIPE
    cat >"$dir/openclaw.json" || exit 4
    HOME=$dir OPENCLAW_STATE_DIR=$dir OPENCLAW_CONFIG_PATH=$dir/openclaw.json "$1" config validate --json </dev/null
    [ $? -le 1 ] || exit 5
"#;

/// Whether a command line is that of a gateway. A running gateway sets its title to `openclaw-gateway`, or to
/// `openclaw` in releases up to 2026.5. Until then its command line is node with OpenClaw's script.
pub fn is_gateway(command: &[String]) -> bool {
    let Some(program) = command.first() else { return false };
    let titled = program.split(' ').next() == Some("openclaw-gateway") || command == ["openclaw"];
    let script = |word: &String| matches!(word.rsplit('/').next(), Some("openclaw" | "openclaw.mjs"));
    titled || command.iter().take(3).any(script) && command.iter().any(|word| word == "gateway")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_is_recognised_by_its_title_or_its_script() {
        let is = |command: &[&str]| is_gateway(&command.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert!(is(&["openclaw-gateway"]) && is(&["openclaw-gateway --port 1"]) && is(&["openclaw"]));
        assert!(is(&["node", "/opt/oc/openclaw.mjs", "gateway", "run"]));
        assert!(!is(&[]) && !is(&["vi", "/srv/openclaw-gateway"]) && !is(&["node", "/opt/oc/openclaw.mjs", "doctor"]));
    }
}
