//! The text of an instance's unit file. Values are escaped so that systemd reads them unchanged; a value that cannot be
//! escaped is refused.

use base::{Error, GatewayPort, Result};

use super::Name;
use super::cell::Cell;

/// The first words of every unit that we write.
const MARK: &str = "# Written by tidepool.";

/// Whether the platform wrote this unit.
pub fn is_ours(text: &str) -> bool {
    text.starts_with(MARK)
}

/// The input for a unit.
#[derive(Clone, Debug)]
pub struct Unit {
    pub name: Name,
    /// For the people who read `systemctl status`.
    pub description: String,
    /// The Unix user that it runs as; without one, systemd's default applies.
    pub user: Option<String>,
    /// The instance's home, which is also its working directory.
    pub home: String,
    pub state_dir: String,
    pub config_path: String,
    /// The program and its arguments before `gateway run`: node and OpenClaw's script, or OpenClaw alone. The program's
    /// path is absolute.
    pub program: Vec<String>,
    /// The variable `PATH`.
    pub path: String,
    pub port: GatewayPort,
    /// Its cell; `None` for an instance from before there were cells.
    pub cell: Option<Cell>,
}

impl Unit {
    pub fn render(&self) -> Result<String> {
        let service = self.name.service();
        let [program, arguments @ ..] = self.program.as_slice() else {
            return Err(refused("program", "must not be empty"));
        };
        // systemd expands no variables in the program itself, so a `$` cannot be escaped there.
        if program.contains('$') {
            return Err(refused("program", "must not contain `$`"));
        }
        let port = self.port.get().to_string();
        let fixed = ["gateway", "run", "--port", &port, "--allow-unconfigured"];
        let mut exec = vec![word("program", path("program", program)?)?];
        for argument in arguments.iter().map(String::as_str).chain(fixed) {
            exec.push(word("program", argument)?.replace('$', "$$"));
        }
        let environment: [(&str, &str); 7] = [
            ("HOME", path("home", &self.home)?),
            ("PATH", line("path", &self.path)?),
            ("OPENCLAW_STATE_DIR", path("state_dir", &self.state_dir)?),
            ("OPENCLAW_CONFIG_PATH", path("config_path", &self.config_path)?),
            // Without it OpenClaw looks for a unit with its default name, and halves its time to finish work.
            ("OPENCLAW_SYSTEMD_UNIT", &service),
            // OpenClaw's own repair must not change our unit.
            ("OPENCLAW_SERVICE_REPAIR_POLICY", "external"),
            ("OPENCLAW_DISABLE_BONJOUR", "1"),
        ];
        let mut out = format!("{MARK} Changes are overwritten.\n[Unit]\n");
        out += &format!("Description={}\n", percent(line("description", &self.description)?));
        out += "Wants=network-online.target\nAfter=network-online.target\n";
        out += "StartLimitBurst=10\nStartLimitIntervalSec=300\n\n[Service]\n";
        if let Some(user) = &self.user {
            out += &format!("User={}\n", user_name(user)?);
        }
        out += &format!("WorkingDirectory={}\n", percent(path("home", &self.home)?));
        for (name, value) in environment {
            out += &format!("Environment={}\n", word(name, &format!("{name}={value}"))?);
        }
        out += "UnsetEnvironment=NODE_OPTIONS\n";
        out += &format!("ExecStart={}\n", exec.join(" "));
        // 78 means that the configuration is refused: a restart would change nothing.
        out += "Restart=always\nRestartSec=5\nRestartPreventExitStatus=78\nSuccessExitStatus=0 143\n";
        // A gateway finishes running answers when it is stopped, up to 315 s.
        out += "TimeoutStartSec=30\nTimeoutStopSec=330\nKillMode=mixed\nOOMPolicy=continue\n";
        if let Some(cell) = &self.cell {
            out += "\n";
            out += &cell.render()?;
        }
        out += "\n[Install]\nWantedBy=multi-user.target\n";
        Ok(out)
    }
}

/// A unit's text with another port for its gateway, otherwise unchanged; `None` if it has that port already, or names
/// none.
pub fn with_port(text: &str, port: GatewayPort) -> Option<String> {
    const OPTION: &str = " --port ";
    let start = text.lines().find(|line| line.starts_with("ExecStart="))?;
    let (before, rest) = start.rsplit_once(OPTION)?;
    let (is, after) = rest.split_at(rest.find(' ').unwrap_or(rest.len()));
    let desired = port.get().to_string();
    (is != desired).then(|| text.replacen(start, &format!("{before}{OPTION}{desired}{after}"), 1))
}

fn refused(field: &str, why: &str) -> Error {
    Error::conflict(format!("the unit cannot be written: {field} {why}"))
}

/// Refuses text that would end the line or continue it on the next.
fn line<'a>(field: &str, text: &'a str) -> Result<&'a str> {
    if text.chars().any(char::is_control) {
        return Err(refused(field, "must not contain control characters"));
    }
    if text.ends_with('\\') {
        return Err(refused(field, "must not end with a backslash"));
    }
    if text.trim() != text || text.is_empty() {
        return Err(refused(field, "must not be empty, nor have white space around it"));
    }
    Ok(text)
}

pub(super) fn path<'a>(field: &str, text: &'a str) -> Result<&'a str> {
    if !text.starts_with('/') || text.contains('\\') {
        return Err(refused(field, "must be an absolute path without backslashes"));
    }
    line(field, text)
}

fn user_name(text: &str) -> Result<&str> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    let begins = text.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    if begins && text.len() <= 31 && text.bytes().all(allowed) {
        Ok(text)
    } else {
        Err(refused("user", "must be a plain user name"))
    }
}

/// Escapes `%`, which begins a specifier.
pub(super) fn percent(text: &str) -> String {
    text.replace('%', "%%")
}

/// Quotes one word in a list of words.
fn word(field: &str, text: &str) -> Result<String> {
    if text.chars().any(char::is_control) {
        return Err(refused(field, "must not contain control characters"));
    }
    let plain =
        |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'.' | b'_' | b'-' | b'=' | b':' | b',' | b'@' | b'+');
    let text = percent(text);
    if !text.is_empty() && text.bytes().all(|b| plain(b) || b == b'%') {
        return Ok(text);
    }
    Ok(format!("\"{}\"", text.replace('\\', r"\\").replace('"', "\\\"")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::id::InstanceId;

    fn unit() -> Unit {
        Unit {
            name: Name::of_instance(&InstanceId::named("a-1")).unwrap(),
            description: "Assistant a-1".into(),
            user: Some("assistant-1".into()),
            home: "/srv/assistants/1".into(),
            state_dir: "/srv/assistants/1/.openclaw".into(),
            config_path: "/srv/assistants/1/.openclaw/openclaw.json".into(),
            program: vec!["/opt/oc/node".into(), "/opt/oc/openclaw.mjs".into()],
            path: "/opt/oc:/usr/bin:/bin".into(),
            port: GatewayPort::try_from(18789).unwrap(),
            cell: None,
        }
    }

    #[test]
    fn a_unit_has_openclaws_own_restart_policy() {
        let expected = "\
# Written by tidepool. Changes are overwritten.
[Unit]
Description=Assistant a-1
Wants=network-online.target
After=network-online.target
StartLimitBurst=10
StartLimitIntervalSec=300

[Service]
User=assistant-1
WorkingDirectory=/srv/assistants/1
Environment=HOME=/srv/assistants/1
Environment=PATH=/opt/oc:/usr/bin:/bin
Environment=OPENCLAW_STATE_DIR=/srv/assistants/1/.openclaw
Environment=OPENCLAW_CONFIG_PATH=/srv/assistants/1/.openclaw/openclaw.json
Environment=OPENCLAW_SYSTEMD_UNIT=openclaw-a-1.service
Environment=OPENCLAW_SERVICE_REPAIR_POLICY=external
Environment=OPENCLAW_DISABLE_BONJOUR=1
UnsetEnvironment=NODE_OPTIONS
ExecStart=/opt/oc/node /opt/oc/openclaw.mjs gateway run --port 18789 --allow-unconfigured
Restart=always
RestartSec=5
RestartPreventExitStatus=78
SuccessExitStatus=0 143
TimeoutStartSec=30
TimeoutStopSec=330
KillMode=mixed
OOMPolicy=continue

[Install]
WantedBy=multi-user.target
";
        assert_eq!(unit().render().unwrap(), expected);
    }

    #[test]
    fn another_port_changes_nothing_else() {
        let (is, other) = (unit(), GatewayPort::try_from(19500).unwrap());
        let text = is.render().unwrap();
        assert_eq!(with_port(&text, is.port), None);
        let expected = Unit { port: other, ..is }.render().unwrap();
        assert_eq!(with_port(&text, other), Some(expected));
        let last = "ExecStart=/x gateway run --port 1";
        assert_eq!(with_port(last, other).as_deref(), Some("ExecStart=/x gateway run --port 19500"));
        assert_eq!(with_port("ExecStart=/x gateway run\n# --port 1\n", other), None);
    }

    #[test]
    fn values_reach_systemd_as_they_are() {
        let odd = Unit {
            description: "100% of \"it\"".into(),
            home: "/srv/a b/%h $HOME".into(),
            program: vec!["/opt/o c/node".into(), "--x=$Y %i \"q\" \\ ;".into(), ";".into(), String::new()],
            user: None,
            ..unit()
        };
        let text = odd.render().unwrap();
        assert!(text.contains("\nDescription=100%% of \"it\"\n"));
        assert!(text.contains("\nWorkingDirectory=/srv/a b/%%h $HOME\n"));
        assert!(text.contains("\nEnvironment=\"HOME=/srv/a b/%%h $HOME\"\n"));
        assert!(text.contains(r#"ExecStart="/opt/o c/node" "--x=$$Y %%i \"q\" \\ ;" ";" "" gateway run"#));
        assert!(!text.contains("User=") && !text.contains("PrivateTmp="));
    }

    #[test]
    fn what_would_become_another_line_is_refused() {
        let change = |change: fn(&mut Unit)| {
            let mut unit = unit();
            change(&mut unit);
            unit.render()
        };
        assert!(change(|_| ()).is_ok());
        for (i, bad) in [
            change(|u| u.description = "a\nExecStartPre=/bin/x".into()),
            change(|u| u.description = "a\\".into()),
            change(|u| u.description = String::new()),
            change(|u| u.home = "/srv/a\nUser=root".into()),
            change(|u| u.home = "srv".into()),
            change(|u| u.home = "/srv/a\\x20".into()),
            change(|u| u.home = "/srv/a ".into()),
            change(|u| u.state_dir = "/a\0".into()),
            change(|u| u.config_path = "~/x".into()),
            change(|u| u.path = "/bin\r".into()),
            change(|u| u.program = vec![]),
            change(|u| u.program = vec!["node".into()]),
            change(|u| u.program = vec!["/$x".into()]),
            change(|u| u.program = vec!["/x".into(), "a\nb".into()]),
            change(|u| u.user = Some("a b".into())),
            change(|u| u.user = Some("%i".into())),
            change(|u| u.user = Some(String::new())),
        ]
        .iter()
        .enumerate()
        {
            assert!(bad.is_err(), "{i}");
        }
    }
}
