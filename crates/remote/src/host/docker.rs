//! The containers of a server.

use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;

use super::command::Command;
use super::error::{Error, Result};
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

fn named(container: &str) -> Result<&str> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    let whole = container.starts_with(|c: char| c.is_ascii_alphanumeric()) && container.chars().all(allowed);
    if whole && container.len() <= 255 {
        Ok(container)
    } else {
        Err(Error::NoContainer(container.escape_debug().to_string()))
    }
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
    fn a_name_is_never_an_option_or_a_path() {
        assert!(named("web-1.a_b").is_ok());
        for bad in ["", "-f", "a b", "a/b", "$(id)", "a\n", &"x".repeat(256)] {
            assert!(matches!(named(bad), Err(Error::NoContainer(_))), "{bad}");
        }
    }
}
