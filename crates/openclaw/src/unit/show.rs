//! The state of a unit, from `systemctl show`.

use std::collections::HashMap;

/// The requested properties, as the value of `--property=`.
pub const PROPERTIES: &str = "LoadState,ActiveState,SubState,Result,MainPID,NRestarts,ExecMainCode,ExecMainStatus,\
ExecMainStartTimestampMonotonic,MemoryCurrent,UnitFileState,User,DropInPaths";

/// A unit as systemd sees it at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Whether there is such a unit.
    pub loaded: bool,
    pub active: Active,
    /// `running`, `dead`, `auto-restart`, `failed` and others.
    pub sub: String,
    /// `success`, `exit-code`, `signal`, `oom-kill`, `start-limit-hit` and others: how it ended last.
    pub result: String,
    pub main_pid: Option<u32>,
    pub restarts: u32,
    /// How the main process ended, if it has.
    pub exit: Option<Exit>,
    /// When the main process was started, in microseconds since the machine booted.
    pub started_us: Option<u64>,
    /// In bytes; `None` on machines without the memory controller.
    pub memory: Option<u64>,
    /// Whether it starts when the machine boots.
    pub enabled: bool,
    /// The user that it runs as; `None` if there is no such unit.
    pub user: Option<String>,
    /// The id of the container, if it is one.
    pub container: Option<String>,
    /// Whether drop-in files change it. Those that the distribution installs for all units do not count.
    pub has_drop_ins: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Active {
    Active,
    Activating,
    Deactivating,
    Inactive,
    Failed,
    /// Any other state, or none.
    #[default]
    Unknown,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this status.
    Status(i32),
    /// By this signal, with or without a core file.
    Signal(i32),
}

impl Exit {
    /// The configuration is refused: a restart would change nothing.
    pub const CONFIG: Exit = Exit::Status(78);
    pub const KILL: Exit = Exit::Signal(9);
    pub const ABORT: Exit = Exit::Signal(6);
}

impl State {
    /// Parses lines of `Name=value` in any order; unknown and missing ones are ignored.
    pub fn parse(output: &str) -> State {
        let values: HashMap<&str, &str> = output.lines().filter_map(|line| line.trim_end().split_once('=')).collect();
        let text = |name: &str| values.get(name).copied().unwrap_or_default();
        let number = |name: &str| text(name).parse::<u64>().ok();
        // CLD_EXITED, CLD_KILLED and CLD_DUMPED of waitid(2); 0 means that it has not ended.
        let status = text("ExecMainStatus").parse::<i32>().ok();
        let exit = match (text("ExecMainCode"), status) {
            ("1" | "exited", Some(status)) => Some(Exit::Status(status)),
            ("2" | "3" | "killed" | "dumped", Some(signal)) => Some(Exit::Signal(signal)),
            _ => None,
        };
        let loaded = text("LoadState") == "loaded";
        // A unit without `User=` is root's.
        let user = match text("User") {
            "" => "root",
            user => user,
        };
        let is_local = |path: &str| !path.starts_with("/usr/lib/") && !path.starts_with("/lib/");
        State {
            loaded,
            has_drop_ins: text("DropInPaths").split(' ').any(|path| !path.is_empty() && is_local(path)),
            user: loaded.then(|| user.chars().take(64).collect()),
            container: Some(text("Container")).filter(|id| !id.is_empty()).map(|id| id.chars().take(64).collect()),
            active: match text("ActiveState") {
                "active" | "reloading" => Active::Active,
                "activating" => Active::Activating,
                "deactivating" => Active::Deactivating,
                "inactive" => Active::Inactive,
                "failed" => Active::Failed,
                _ => Active::Unknown,
            },
            sub: text("SubState").chars().take(40).collect(),
            result: text("Result").chars().take(40).collect(),
            main_pid: number("MainPID").filter(|pid| *pid > 0).and_then(|pid| u32::try_from(pid).ok()),
            restarts: number("NRestarts").and_then(|n| u32::try_from(n).ok()).unwrap_or(0),
            exit,
            started_us: number("ExecMainStartTimestampMonotonic").filter(|us| *us > 0),
            // It is "[not set]", or the largest number, if it is not measured.
            memory: number("MemoryCurrent").filter(|bytes| *bytes < u64::MAX),
            enabled: text("UnitFileState") == "enabled",
        }
    }

    /// Ended with the status for a refused configuration, and not restarted by systemd.
    pub fn is_refused(&self) -> bool {
        self.active == Active::Failed && self.exit == Some(Exit::CONFIG)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn files_beside_a_unit_are_seen() {
        let has = |paths: &str| State::parse(&format!("LoadState=loaded\nDropInPaths={paths}\n")).has_drop_ins;
        assert!(!has("") && !has("/usr/lib/systemd/system/service.d/10-timeout-abort.conf"));
        assert!(has("/etc/systemd/system/a.service.d/more.conf"));
        assert!(has(
            "/usr/lib/systemd/system/service.d/10-timeout-abort.conf /run/systemd/system.control/a.service.d/50-x.conf"
        ));
    }

    #[test]
    fn recorded_states_are_read() {
        let killed = "MainPID=0\nStatusText=\nResult=signal\nNRestarts=0\nExecMainCode=2\nExecMainStatus=9\n\
                      ActiveState=activating\nSubState=auto-restart\n";
        let state = State::parse(killed);
        assert_eq!((state.active, state.exit, state.main_pid), (Active::Activating, Some(Exit::KILL), None));
        assert_eq!((state.sub.as_str(), state.result.as_str(), state.loaded), ("auto-restart", "signal", false));

        let refused = "LoadState=loaded\nMainPID=0\nResult=exit-code\nNRestarts=0\nExecMainCode=1\nExecMainStatus=78\n\
                       ActiveState=failed\nSubState=failed\n";
        assert!(State::parse(refused).is_refused());
        assert_eq!(State::parse(refused).user.as_deref(), Some("root"), "systemd names no user for what is root's");
        assert_eq!(State::parse("LoadState=loaded\nUser=assistant-7").user.as_deref(), Some("assistant-7"));
        assert_eq!(State::parse("LoadState=not-found\nUser=").user, None);

        let running = "MainPID=389\r\nResult=success\r\nNRestarts=3\r\nExecMainCode=0\r\nExecMainStatus=0\r\nActiveState=active\r\n\
                       SubState=running\r\nMemoryCurrent=[not set]\r\nExecMainStartTimestampMonotonic=5784816033\r\nUnitFileState=enabled\r\n";
        let state = State::parse(running);
        assert_eq!((state.active, state.exit, state.main_pid), (Active::Active, None, Some(389)));
        assert_eq!((state.restarts, state.memory, state.started_us), (3, None, Some(5_784_816_033)));
        assert!(state.enabled && !state.is_refused());
        assert_eq!(State::parse("MemoryCurrent=18446744073709551615").memory, None);
        assert_eq!(State::parse("MemoryCurrent=734003200").memory, Some(734_003_200));
    }

    #[test]
    fn nothing_is_nothing() {
        assert_eq!(State::parse(""), State::default());
        assert_eq!(State::parse("LoadState=not-found\nActiveState=inactive").active, Active::Inactive);
    }

    proptest! {
        #[test]
        fn fuzz_any_output_is_read(output in "((LoadState|ActiveState|MainPID|ExecMainCode|NRestarts|\\PC{0,5})=?(\\PC{0,20}|[0-9-]{0,25})\n?){0,8}") {
            let state = State::parse(&output);
            prop_assert!(state.sub.len() <= 160 && state.result.len() <= 160);
        }
    }
}
