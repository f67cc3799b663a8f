//! The containers of a server.

use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;

use super::command::Command;
use super::error::{Error, Result};
use super::journal::{Cursor, Entry};
use super::systemd::{self, Active, Exit, State, Unit};
use super::{Host, Output};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    pub id: String,
    pub name: String,
    pub image: String,
    /// Docker's description: `Up 3 hours`, `Exited (1) 2 days ago`.
    pub status: String,
    /// One word: `running`, `exited`, `paused`…
    pub state: String,
    pub ports: String,
    pub created_at: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Start,
    Stop,
    Restart,
}

/// Docker gives a container 10 s to stop.
const SLOW: Duration = Duration::from_secs(60);
const LOG_LINES: &str = "200";
const LOG_KEPT: usize = 1 << 20;

pub async fn list(host: &Host) -> Result<Vec<Container>> {
    let command = Command::new("docker").args(["ps", "-a", "--no-trunc", "--format", "{{json .}}"]);
    let output = host.run(&command).await?;
    let text = checked(output, "")?.text();
    text.lines().filter(|line| !line.is_empty()).map(parse).collect()
}

pub async fn act(host: &Host, container: &str, action: Action) -> Result<()> {
    let verb = match action {
        Action::Start => "start",
        Action::Stop => "stop",
        Action::Restart => "restart",
    };
    let output = host.run(&Command::new("docker").args([verb, "--", named(container)?]).limit(SLOW)).await?;
    checked(output, container).map(drop)
}

/// The last lines of its log, with standard output and standard error interleaved.
pub async fn logs(host: &Host, container: &str) -> Result<String> {
    let script = Command::script("read-container-log", &[r#"exec docker logs --tail "$1" -- "$2" 2>&1"#]);
    let command = script.args([LOG_LINES, named(container)?]).limit(SLOW).keep(LOG_KEPT);
    let mut output = host.run(&command).await?;
    if !output.succeeded() {
        output.stderr = std::mem::take(&mut output.stdout);
    }
    Ok(checked(output, container)?.text())
}

/// The ports of the server that Docker publishes for a running container.
pub async fn published(host: &Host, container: &str) -> Result<Vec<u16>> {
    const FORMAT: &str =
        "{{if .State.Running}}{{range .NetworkSettings.Ports}}{{range .}}{{.HostPort}} {{end}}{{end}}{{end}}";
    let command = Command::new("docker").args(["inspect", "--type", "container", "--format", FORMAT, "--"]);
    let output = host.run(&command.arg(named(container)?)).await?;
    let text = checked(output, container)?.text();
    Ok(text.split_whitespace().filter_map(|port| port.parse().ok()).collect())
}

/// Refuses what is no name or id of a container: it becomes an argument of Docker's client.
pub(super) fn named(container: &str) -> Result<&str> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    let whole = container.starts_with(|c: char| c.is_ascii_alphanumeric()) && container.chars().all(allowed);
    if whole && container.len() <= 255 {
        Ok(container)
    } else {
        Err(Error::NoContainer(container.escape_debug().to_string()))
    }
}

/// A container's state, in the words of a unit: `unit` is the name that the answer gets.
pub async fn state(host: &Host, container: &str, unit: &Unit) -> Result<State> {
    const FORMAT: &str = "{{.State.Status}} {{.State.Pid}} {{.State.ExitCode}} {{.State.OOMKilled}} {{.RestartCount}} \
        {{.State.StartedAt}} {{.State.FinishedAt}}";
    let command = Command::new("docker").args(["inspect", "--type", "container", "--format", FORMAT, "--"]);
    let output = host.run(&command.arg(named(container)?)).await?;
    match checked(output, container) {
        Ok(output) => state_of(&output.text(), unit).ok_or_else(|| Error::odd("docker inspect", output.text())),
        Err(Error::NoContainer(_)) => Ok(State::missing(unit)),
        Err(error) => Err(error),
    }
}

fn state_of(text: &str, unit: &Unit) -> Option<State> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let &[status, pid, exit, oom, restarts, started, finished] = words.as_slice() else { return None };
    let main_pid = pid.parse().ok().filter(|pid| *pid != 0);
    let exit: i32 = exit.parse().ok()?;
    let active = match status {
        "running" => Active::Active,
        "restarting" => Active::Activating,
        "removing" => Active::Deactivating,
        "exited" | "dead" if exit != 0 => Active::Failed,
        "created" | "exited" | "dead" | "paused" => Active::Inactive,
        _ => Active::Unknown,
    };
    let result = match (oom, exit) {
        ("true", _) => "oom-kill",
        (_, 0) => "success",
        _ => "exit-code",
    };
    let since = if main_pid.is_some() { started } else { finished };
    Some(State {
        active,
        sub: status.to_owned(),
        is_loaded: true,
        is_enabled: true,
        main_pid,
        exit: main_pid.is_none().then_some(Exit::Status(exit)),
        result: result.to_owned(),
        restarts: restarts.parse().unwrap_or(0),
        since: since.parse().ok(),
        ..State::missing(unit)
    })
}

/// A gateway finishes its work before it ends, which a unit gives it 330 s for.
pub async fn stop_in_time(host: &Host, container: &str) -> Result<()> {
    let command = Command::new("docker").args(["stop", "-t", "330", "--", named(container)?]);
    let output = host.run(&command.limit(systemd::STOP)).await?;
    checked(output, container).map(drop)
}

/// The last lines of its log, oldest first.
pub async fn last(host: &Host, container: &str, lines: usize) -> Result<Vec<Entry>> {
    let script =
        Command::script("read-container-lines", &[r#"exec docker logs --timestamps --tail "$1" -- "$2" 2>&1"#]);
    let command = script.args([&lines.to_string(), named(container)?]).limit(SLOW).keep(LOG_KEPT);
    let mut output = host.run(&command).await?;
    if !output.succeeded() {
        output.stderr = std::mem::take(&mut output.stdout);
    }
    let text = checked(output, container)?.text();
    Ok(text.lines().filter_map(entry).collect())
}

/// The command that prints the lines that it writes from now on, or after a time.
pub(super) fn follow(container: &str, since: Option<Timestamp>) -> Result<Vec<String>> {
    let place = match since {
        Some(at) => ["--since".to_owned(), at.to_string()],
        None => ["--tail".to_owned(), "0".to_owned()],
    };
    let words = ["docker", "logs", "--follow", "--timestamps"].map(str::to_owned).into_iter().chain(place);
    Ok(words.chain(["--".to_owned(), named(container)?.to_owned()]).collect())
}

/// `2026-11-15T05:33:00.123456789Z text`. The time is the place of the line, too.
pub(super) fn entry(line: &str) -> Option<Entry> {
    let (time, message) = line.split_once(' ').unwrap_or((line, ""));
    let at: Timestamp = time.parse().ok()?;
    Some(Entry { cursor: Cursor::kept(time), at, message: message.to_owned(), ..Entry::default() })
}

fn checked(output: Output, container: &str) -> Result<Output> {
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status {
        0 => Ok(output),
        127 => Err(Error::NoDocker("it is not installed".into())),
        _ if said.contains("No such container") => Err(Error::NoContainer(container.to_owned())),
        _ if said.contains("Cannot connect to the Docker daemon") => Err(Error::NoDocker("it is not running".into())),
        _ => Err(Error::failed("docker", &output)),
    }
}

fn parse(line: &str) -> Result<Container> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Raw {
        #[serde(rename = "ID")]
        id: String,
        names: String,
        image: String,
        status: String,
        #[serde(default)]
        state: String,
        #[serde(default)]
        ports: String,
        #[serde(default)]
        created_at: String,
    }
    let raw: Raw = serde_json::from_str(line).map_err(|e| Error::odd("docker ps", e))?;
    Ok(Container {
        id: raw.id,
        name: raw.names,
        image: raw.image,
        status: raw.status,
        state: raw.state,
        ports: raw.ports,
        created_at: time(&raw.created_at),
    })
}

/// `2026-11-15 05:33:00 +0000 UTC`: the zone's name says nothing that the offset does not.
fn time(text: &str) -> Option<Timestamp> {
    let mut words = text.splitn(4, ' ');
    let text = [words.next()?, words.next()?, words.next()?].join(" ");
    jiff::fmt::strtime::parse("%Y-%m-%d %H:%M:%S %z", text).ok()?.to_timestamp().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_is_read_from_what_docker_prints() {
        let line = r#"{"Command":"\"python3 -m http.se…\"","CreatedAt":"2026-11-15 06:33:00 +0100 CET","ID":"0a1b","Image":"deb:12",
            "Labels":"","LocalVolumes":"0","Mounts":"","Names":"web","Networks":"bridge","Ports":"127.0.0.1:8080-\u003e80/tcp",
            "RunningFor":"2 seconds ago","Size":"0B","State":"running","Status":"Up 1 second"}"#;
        let container = parse(line).unwrap();
        assert_eq!(
            (container.id.as_str(), container.name.as_str(), container.state.as_str()),
            ("0a1b", "web", "running")
        );
        assert_eq!(container.ports, "127.0.0.1:8080->80/tcp");
        assert_eq!(container.created_at.unwrap().to_string(), "2026-11-15T05:33:00Z");
        assert!(parse("not json").is_err());
        assert_eq!(time("yesterday"), None);
    }

    #[test]
    fn the_state_of_a_container_is_told_like_a_units() {
        let unit = Unit::parse("openclaw-a").unwrap();
        let of = |text: &str| state_of(text, &unit).unwrap();
        let runs = of("running 4711 0 false 2 2026-11-15T05:33:00.123456789Z 0001-01-01T00:00:00Z");
        assert!(runs.is_running() && runs.is_loaded);
        assert_eq!((runs.main_pid, runs.restarts, runs.exit), (Some(4711), 2, None));
        assert_eq!(runs.since.unwrap().as_second(), 1_794_720_780);
        let failed = of("exited 0 78 false 0 2026-11-15T05:33:00Z 2026-11-15T05:34:00Z");
        assert!(failed.refused_its_config() && !failed.is_running());
        let stopped = of("exited 0 0 false 0 2026-11-15T05:33:00Z 2026-11-15T05:34:00Z");
        assert_eq!((stopped.active, stopped.result.as_str()), (Active::Inactive, "success"));
        assert_eq!(of("exited 0 137 true 0 x y").result, "oom-kill");
        assert!(state_of("running", &unit).is_none());
    }

    #[test]
    fn a_line_of_its_log_has_its_time() {
        let line = entry("2026-11-15T05:33:00.123456789Z [gateway] ready").unwrap();
        assert_eq!((line.message.as_str(), line.at.as_second()), ("[gateway] ready", 1_794_720_780));
        assert_eq!(entry("2026-11-15T05:33:00Z").unwrap().message, "");
        assert!(entry("no time").is_none());
    }

    #[test]
    fn a_name_is_never_an_option_or_a_path() {
        assert!(named("web-1.a_b").is_ok());
        for bad in ["", "-f", "a b", "a/b", "$(id)", "a\n", &"x".repeat(256)] {
            assert!(matches!(named(bad), Err(Error::NoContainer(_))), "{bad}");
        }
    }
}
