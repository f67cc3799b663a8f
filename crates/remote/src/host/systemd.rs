//! systemd units: their state, and actions on them.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;

use super::command::{Actor, Command};
use super::error::{Error, Result};
use super::file::{Expect, Write, Written};
use super::{Host, Output};

/// OpenClaw's exit status for a refused configuration. The unit forbids a restart then.
pub const REFUSED_CONFIG: i32 = 78;
/// Stopping waits for requests under way; units allow 330 s for it.
pub(super) const STOP: Duration = Duration::from_secs(345);
const QUICK: Duration = Duration::from_secs(60);

/// A service unit: its name, with its `.service`, and whose systemd has it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Unit {
    name: String,
    /// `None` for a unit of the system.
    user: Option<String>,
}

impl Unit {
    /// Accepts `openclaw-a` and `openclaw-a.service`.
    pub fn parse(name: &str) -> Result<Unit> {
        let stem = name.strip_suffix(".service").unwrap_or(name);
        let allowed = |c: char| c.is_ascii_alphanumeric() || ":_.@-".contains(c);
        let whole = !stem.is_empty() && stem.len() <= 200 && !stem.starts_with(['-', '.']) && stem.chars().all(allowed);
        if whole {
            Ok(Unit { name: format!("{stem}.service"), user: None })
        } else {
            Err(Error::BadCommand("the name of a unit"))
        }
    }

    /// The unit of this name of a user's own systemd. What that says of the unit is the user's word.
    pub fn of_user(self, user: impl Into<String>) -> Unit {
        Unit { user: Some(user.into()), ..self }
    }

    pub fn as_str(&self) -> &str {
        &self.name
    }

    /// The user whose systemd has it; `None` for a unit of the system.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// The file of a unit of the system, in the folder for the administrator's own units.
    pub fn path(&self) -> String {
        format!("/etc/systemd/system/{}", self.name)
    }

    /// What scripts about it begin with. A user's systemd is found by this variable, while the user is logged in or
    /// lingers.
    fn prelude(&self) -> &'static str {
        match self.user {
            None => "",
            Some(_) => {
                r#"
XDG_RUNTIME_DIR=/run/user/$(id -u)
export XDG_RUNTIME_DIR
systemctl() { command systemctl --user "$@"; }
"#
            }
        }
    }

    /// A user's systemd obeys that user alone.
    fn actor(&self) -> Actor {
        self.user.clone().map_or(Actor::Root, Actor::User)
    }

    /// A unit without `User=` runs as whoever its systemd runs as.
    fn owned(&self, state: State) -> State {
        match &self.user {
            None => state,
            Some(user) => State { unit: self.clone(), user: state.is_loaded.then(|| user.clone()), ..state },
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Active {
    Active,
    Reloading,
    Inactive,
    Failed,
    Activating,
    Deactivating,
    /// A state that only a newer systemd knows.
    Unknown,
}

/// How the main process ended last time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Status(i32),
    Signal(i32),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    pub unit: Unit,
    pub active: Active,
    /// systemd's detailed state: `running`, `auto-restart`, `dead`…
    pub sub: String,
    /// Whether there is a unit file.
    pub is_loaded: bool,
    pub is_enabled: bool,
    pub main_pid: Option<u32>,
    /// How it ended, if it is not running.
    pub exit: Option<Exit>,
    /// systemd's name for how it ended: `success`, `exit-code`, `oom-kill`…
    pub result: String,
    /// Whether systemd gave up starting it, because it was started too often in too short a time.
    pub hit_start_limit: bool,
    /// How often systemd restarted it by itself.
    pub restarts: u32,
    /// When its state changed last.
    pub since: Option<Timestamp>,
    /// In bytes, if the server measures it.
    pub memory: Option<u64>,
    /// The user that it runs as; `None` if there is no unit.
    pub user: Option<String>,
}

impl State {
    /// The state of a unit that there is not.
    pub(super) fn missing(unit: &Unit) -> State {
        State {
            unit: unit.clone(),
            active: Active::Inactive,
            sub: "dead".to_owned(),
            is_loaded: false,
            is_enabled: false,
            main_pid: None,
            exit: None,
            result: "success".to_owned(),
            hit_start_limit: false,
            restarts: 0,
            since: None,
            memory: None,
            user: None,
        }
    }

    pub fn is_running(&self) -> bool {
        self.active == Active::Active && self.main_pid.is_some()
    }

    /// Whether it is down because its configuration was refused: starting it again would change nothing.
    pub fn refused_its_config(&self) -> bool {
        self.active == Active::Failed && self.exit == Some(Exit::Status(REFUSED_CONFIG))
    }

    fn describe(&self) -> String {
        match self.exit {
            Some(Exit::Status(status)) => format!("{}, exit status {status}", self.result),
            Some(Exit::Signal(signal)) => format!("{}, signal {signal}", self.result),
            None => format!("{} ({})", self.result, self.sub),
        }
    }
}

// After a refused start, `Result` still describes the end of the process before. Only the journal shows that systemd
// refused; `_PID=1` makes sure that systemd itself wrote the entry.
/// Defines the shell function `show UNIT…`, which prints what `parse` reads.
const SHOW: &str = r#"
show() {
  systemctl show --timestamp=unix -p Id,LoadState,ActiveState,SubState,UnitFileState,MainPID,ExecMainCode,ExecMainStatus,Result,NRestarts,StateChangeTimestamp,MemoryCurrent,User -- "$@" || return
  echo
  for u in $(systemctl list-units --state=failed --plain --no-legend --no-pager -- "$@" | cut -d' ' -f1); do
    if journalctl -b -q -o cat -n 4 _PID=1 UNIT="$u" | grep -q 'Start request repeated too quickly'; then echo "StartLimit=$u"; fi
  done
}
"#;

// Prints the units after what was done to the first of them, and ends with the status of that.
const SHOW_AFTER: &str = r#"
status=$?
show "$@"
exit $status
"#;

/// What can be done to a unit.
#[derive(Clone, Copy)]
enum Verb {
    Start,
    Stop,
    Restart,
    ResetFailed,
    Enable,
    Disable,
}

impl Verb {
    /// The script that does it, and prints the unit's state afterwards.
    fn script(self, unit: &Unit) -> Command {
        let prelude = unit.prelude();
        let script = match self {
            Verb::Start => Command::script("start-unit", &[prelude, SHOW, r#"systemctl start -- "$1""#, SHOW_AFTER]),
            Verb::Stop => Command::script("stop-unit", &[prelude, SHOW, r#"systemctl stop -- "$1""#, SHOW_AFTER]),
            Verb::Restart => {
                Command::script("restart-unit", &[prelude, SHOW, r#"systemctl restart -- "$1""#, SHOW_AFTER])
            }
            Verb::ResetFailed => {
                Command::script("reset-failed-unit", &[prelude, SHOW, r#"systemctl reset-failed -- "$1""#, SHOW_AFTER])
            }
            Verb::Enable => Command::script("enable-unit", &[prelude, SHOW, r#"systemctl enable -- "$1""#, SHOW_AFTER]),
            Verb::Disable => {
                Command::script("disable-unit", &[prelude, SHOW, r#"systemctl disable -- "$1""#, SHOW_AFTER])
            }
        };
        script.by(unit.actor()).arg(unit.as_str())
    }
}

/// The question about units of the same systemd as this one.
fn show(unit: &Unit) -> Command {
    Command::script("show-units", &[unit.prelude(), SHOW, "true", SHOW_AFTER]).by(unit.actor())
}

/// The states of several units of the system, in one round trip.
pub async fn states(host: &Host, units: &[Unit]) -> Result<Vec<State>> {
    let Some(first) = units.first() else { return Ok(vec![]) };
    let output = host.succeed(&show(first).args(units.iter().map(Unit::as_str))).await?;
    let states = parse(&output.text())?;
    if states.len() == units.len() { Ok(states) } else { Err(Error::odd("systemctl show", "units are missing")) }
}

pub async fn state(host: &Host, unit: &Unit) -> Result<State> {
    one(&host.succeed(&show(unit).arg(unit.as_str())).await?, unit)
}

pub async fn start(host: &Host, unit: &Unit) -> Result<State> {
    act(host, unit, Verb::Start, QUICK).await
}

/// Waits until it has stopped, however long that takes.
pub async fn stop(host: &Host, unit: &Unit) -> Result<State> {
    act(host, unit, Verb::Stop, STOP).await
}

pub async fn restart(host: &Host, unit: &Unit) -> Result<State> {
    act(host, unit, Verb::Restart, STOP + QUICK).await
}

/// Allows a unit to be started again after systemd gave it up, and clears its failed state.
pub async fn reset_failed(host: &Host, unit: &Unit) -> Result<State> {
    act(host, unit, Verb::ResetFailed, QUICK).await
}

pub async fn enable(host: &Host, unit: &Unit) -> Result<State> {
    act(host, unit, Verb::Enable, QUICK).await
}

pub async fn disable(host: &Host, unit: &Unit) -> Result<State> {
    act(host, unit, Verb::Disable, QUICK).await
}

pub async fn daemon_reload(host: &Host) -> Result<()> {
    host.succeed(&Command::new("systemctl").arg("daemon-reload").limit(QUICK)).await.map(drop)
}

/// Writes the file of a unit of the system, and reloads systemd if the file changed.
pub async fn write_unit(host: &Host, unit: &Unit, text: &str, expect: Expect) -> Result<Written> {
    if unit.user().is_some() {
        return Err(Error::BadCommand("a unit of a user, which is not ours to write"));
    }
    let written = host.write(&Write::new(unit.path(), text, expect).mode(0o644)).await?;
    if written != Written::Same {
        daemon_reload(host).await?;
    }
    Ok(written)
}

async fn act(host: &Host, unit: &Unit, verb: Verb, limit: Duration) -> Result<State> {
    let output = host.run(&verb.script(unit).limit(limit)).await?;
    let state = one(&output, unit).map_err(|_| Error::failed("systemctl", &output))?;
    let unit = unit.to_string();
    match output.status {
        0 => Ok(state),
        _ if !state.is_loaded => Err(Error::UnitMissing { unit }),
        _ if state.hit_start_limit => Err(Error::StartLimit { unit }),
        _ if matches!(verb, Verb::Start | Verb::Restart) => Err(Error::NotStarted { unit, why: state.describe() }),
        _ => Err(Error::failed("systemctl", &output)),
    }
}

fn one(output: &Output, unit: &Unit) -> Result<State> {
    let mut states = parse(&output.text())?;
    let state =
        states.pop().filter(|_| states.is_empty()).ok_or_else(|| Error::odd("systemctl show", "not one unit"))?;
    Ok(unit.owned(state))
}

/// Parses the output of `show`: one property per line, an empty line between units, then the units that systemd gave
/// up.
pub fn parse(text: &str) -> Result<Vec<State>> {
    let given_up: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("StartLimit=")).collect();
    let blocks =
        text.split("\n\n").map(str::trim).filter(|block| !block.is_empty() && !block.starts_with("StartLimit="));
    blocks.map(|block| parse_one(block, &given_up)).collect()
}

fn parse_one(block: &str, given_up: &[&str]) -> Result<State> {
    let value = |name: &str| {
        let found = block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        found.ok_or_else(|| Error::odd("systemctl show", format_args!("no {name}")))
    };
    let number = |name: &str| Ok::<i64, Error>(value(name)?.parse().unwrap_or(0));
    let unit = Unit::parse(value("Id")?)?;
    let main_pid = u32::try_from(number("MainPID")?).ok().filter(|pid| *pid != 0);
    let status = number("ExecMainStatus")? as i32;
    // CLD_EXITED, CLD_KILLED and CLD_DUMPED of waitid(2).
    let exit = match number("ExecMainCode")? {
        1 => Some(Exit::Status(status)),
        2 | 3 => Some(Exit::Signal(status)),
        _ => None,
    };
    let active = match value("ActiveState")? {
        "active" => Active::Active,
        "reloading" => Active::Reloading,
        "inactive" => Active::Inactive,
        "failed" => Active::Failed,
        "activating" => Active::Activating,
        "deactivating" => Active::Deactivating,
        _ => Active::Unknown,
    };
    let result = value("Result")?.to_owned();
    let hit_start_limit = result == "start-limit-hit" || given_up.contains(&unit.as_str());
    Ok(State {
        unit,
        active,
        sub: value("SubState")?.to_owned(),
        is_loaded: value("LoadState")? == "loaded",
        is_enabled: value("UnitFileState")? == "enabled",
        main_pid,
        exit: exit.filter(|_| main_pid.is_none()),
        hit_start_limit,
        result,
        restarts: u32::try_from(number("NRestarts")?).unwrap_or(0),
        since: value("StateChangeTimestamp")?
            .strip_prefix('@')
            .and_then(|seconds| Timestamp::from_second(seconds.parse().ok()?).ok()),
        memory: value("MemoryCurrent")?.parse().ok(),
        // A unit without `User=` is root's.
        user: (value("LoadState")? == "loaded").then(|| match value("User") {
            Ok(user) if !user.is_empty() => user.to_owned(),
            _ => "root".to_owned(),
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // As systemd 252 prints them.
    const FAILED: &str = "MainPID=0\nResult=exit-code\nNRestarts=0\nExecMainCode=1\nExecMainStatus=78\nMemoryCurrent=[not set]\nId=cfg.service\n\
        LoadState=loaded\nActiveState=failed\nSubState=failed\nUnitFileState=static\nStateChangeTimestamp=@1794720777\nUser=claw\n";
    const RUNNING: &str = "MainPID=32\nResult=success\nNRestarts=2\nExecMainCode=0\nExecMainStatus=0\nMemoryCurrent=7340032\nId=ssh.service\n\
        LoadState=loaded\nActiveState=active\nSubState=running\nUnitFileState=enabled\nStateChangeTimestamp=@1794720777\nUser=\n";
    const MISSING: &str = "MainPID=0\nResult=success\nNRestarts=0\nExecMainCode=0\nExecMainStatus=0\nMemoryCurrent=[not set]\nId=no.service\n\
        LoadState=not-found\nActiveState=inactive\nSubState=dead\nUnitFileState=\nStateChangeTimestamp=\nUser=\n";

    #[test]
    fn states_are_read_from_what_systemctl_prints() {
        let limited = FAILED.replace("cfg", "lim");
        let states = parse(&format!("{FAILED}\n{RUNNING}\n{MISSING}\n{limited}\nStartLimit=lim.service\n")).unwrap();
        let [refused, running, missing, given_up] = states.as_slice() else { panic!("{states:?}") };
        assert!(refused.refused_its_config() && !refused.is_running() && !refused.hit_start_limit);
        assert_eq!(refused.describe(), "exit-code, exit status 78");
        assert!(running.is_running() && running.is_enabled);
        assert_eq!((running.main_pid, running.restarts, running.memory), (Some(32), 2, Some(7340032)));
        assert_eq!(running.since.map(|at| at.as_second()), Some(1794720777));
        assert!(!missing.is_loaded && missing.exit.is_none() && missing.since.is_none());
        assert!(given_up.hit_start_limit);
        let users = [refused, running, missing].map(|state| state.user.as_deref());
        assert_eq!(users, [Some("claw"), Some("root"), None]);
    }

    #[test]
    fn what_is_no_state_is_refused() {
        assert!(parse("Id=a.service\nActiveState=active\n").is_err());
        assert!(parse("").unwrap().is_empty());
    }

    #[test]
    fn names_of_units_are_safe_as_arguments_and_paths() {
        assert_eq!(Unit::parse("openclaw-a.b_1@x").unwrap().as_str(), "openclaw-a.b_1@x.service");
        assert_eq!(Unit::parse("a.service").unwrap().path(), "/etc/systemd/system/a.service");
        for bad in ["", ".service", "-a", "../x", "a/b", "a b", "a\n", "ä", "$(id)", &"x".repeat(201)] {
            assert!(Unit::parse(bad).is_err(), "{bad}");
        }
    }
}
