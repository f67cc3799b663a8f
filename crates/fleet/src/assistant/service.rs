//! Stopping and starting an instance's gateway, and watching it come up. Only a gateway of the very instance is ever ended to free its
//! port; a configuration that OpenClaw refuses is not tried again and again.

use std::time::{Duration, Instant};

use base::{Error, Kind, Result};
use remote::host::Error as HostError;
use remote::host::ports::{self, Freed, Verdict};
use remote::host::runner::Runner;
use remote::host::systemd::{Active, State};

use super::health::{self, Stage};
use super::pending::{self, Pending};
use super::{Assistant, config, logs, unit};
use crate::progress::Progress;

/// How often a starting gateway is looked at.
const LOOK: Duration = Duration::from_millis(500);
/// Most edits are taken over within a second. On a server that is short of processors it can be half a minute, and a restart there
/// would end the chats of people for nothing.
const RELOAD: Duration = Duration::from_secs(45);

/// The state of what runs it; an instance that nothing runs cannot be started or stopped.
pub async fn state(assistant: &Assistant) -> Result<State> {
    let state = assistant.service().await?;
    match &assistant.place.runner {
        _ if state.is_loaded => Ok(state),
        Runner::Container { id } => Err(HostError::NoContainer(id.clone()).into()),
        _ => Err(HostError::UnitMissing { unit: assistant.place.unit.to_string() }.into()),
    }
}

/// Stops the gateway and makes room on its port. It is to be started again: that is pending from here on.
pub async fn stop(progress: &impl Progress, assistant: &Assistant) -> Result<()> {
    state(assistant).await?;
    pending::set(progress.app(), assistant, Pending::Restart).await?;
    stop_for_good(progress, assistant).await
}

/// The same where nobody is to start it again.
pub async fn stop_for_good(progress: &impl Progress, assistant: &Assistant) -> Result<()> {
    require_ours(assistant).await?;
    let began = Instant::now();
    assistant.place.runner.stop(&assistant.host).await?;
    progress.log(&format!("stopped after {:.1} s", began.elapsed().as_secs_f32())).await?;
    free_port(progress, assistant).await
}

/// A unit that the platform did not write is somebody else's program, whatever its name: it is stopped and started only where a super
/// administrator named it, or where it was adopted.
async fn require_ours(assistant: &Assistant) -> Result<()> {
    if let Runner::Process { .. } = assistant.place.runner {
        return Err(HostError::OnlyObserved.into());
    }
    if assistant.instance.is_adopted() || unit::read(assistant).await?.is_some_and(|text| unit::is_ours(&text)) {
        return Ok(());
    }
    let name = &assistant.place.unit;
    Err(Error::conflict(format!("unit {name} is not ours, and nobody adopted it: it is neither stopped nor started")))
}

async fn free_port(progress: &impl Progress, assistant: &Assistant) -> Result<()> {
    if let Runner::Container { .. } = assistant.place.runner {
        // Docker has the port, and frees it.
        return Ok(());
    }
    let (port, state_dir) = (assistant.port(), assistant.place.state_dir());
    let whose = assistant.place.gateway(&state_dir);
    match ports::free(&assistant.host, port, &whose).await? {
        Freed::WasFree => Ok(()),
        Freed::Ended(owners) => {
            let describe: Vec<String> = owners.iter().map(ports::Owner::describe).collect();
            progress.log(&format!("port {port} freed of a gateway of this instance: {}", describe.join(", "))).await
        }
        Freed::Held { by, verdict } => {
            let who = if verdict == Verdict::Stranger { "another program" } else { "another assistant" };
            let message = format!("port {port} is held by {who}, which is left alone");
            Err(Error::conflict(message).with_operator(by.describe()))
        }
    }
}

/// Starts the gateway and waits until it is ready.
pub async fn start(progress: &impl Progress, assistant: &Assistant) -> Result<()> {
    let (host, runner) = (&assistant.host, &assistant.place.runner);
    let state = state(assistant).await?;
    require_ours(assistant).await?;
    if state.active == Active::Failed {
        runner.reset_failed(host).await?;
    }
    if unit::follow_port(progress.app(), assistant).await? {
        progress.log(&format!("its unit starts it on port {} now", assistant.port())).await?;
    }
    pending::set(progress.app(), assistant, Pending::Start).await?;
    let began = Instant::now();
    match runner.start(host).await {
        Ok(()) => {}
        Err(HostError::StartLimit { .. }) => {
            progress.log("systemd had given it up: it may try again").await?;
            runner.reset_failed(host).await?;
            runner.start(host).await?;
        }
        Err(error) => return Err(error.into()),
    }
    wait(progress, assistant, began).await?;
    pending::set(progress.app(), assistant, Pending::Nothing).await
}

/// Stop, free the port, start, wait.
pub async fn restart(progress: &impl Progress, assistant: &Assistant) -> Result<()> {
    stop(progress, assistant).await?;
    start(progress, assistant).await
}

async fn wait(progress: &impl Progress, assistant: &Assistant, began: Instant) -> Result<()> {
    let limit = progress.app().assistants.start_limit;
    let port = assistant.port();
    let mut alive = false;
    loop {
        match health::stage(assistant).await? {
            Stage::Silent => {}
            Stage::Alive => {
                if !alive {
                    progress.log(&format!("alive after {:.1} s", began.elapsed().as_secs_f32())).await?;
                }
                alive = true;
            }
            Stage::Ready(failing) => {
                require_own(assistant, port).await?;
                progress.log(&format!("ready after {:.1} s", began.elapsed().as_secs_f32())).await?;
                if !failing.is_empty() {
                    progress.log(&format!("ready but for: {}", failing.join(", "))).await?;
                }
                return Ok(());
            }
        }
        let state = state(assistant).await?;
        if state.refused_its_config() {
            return Err(refused(assistant).await);
        }
        if state.active == Active::Failed || state.hit_start_limit {
            let why = format!("{} {:?}", state.result, state.exit);
            return Err(Error::new(Kind::Gateway, "the assistant did not start").with_operator(why));
        }
        if began.elapsed() >= limit {
            let how = if alive { "alive, but not ready" } else { "not answering" };
            let message = format!("the assistant was {how} after {} s", limit.as_secs());
            return Err(
                Error::new(Kind::TimedOut, message).with_operator(format!("unit {} ({})", state.sub, state.result))
            );
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Another gateway on the port would answer as well.
async fn require_own(assistant: &Assistant, port: u16) -> Result<()> {
    if let Runner::Container { .. } = assistant.place.runner {
        // Whoever asked it proved that Docker publishes the port for it.
        return Ok(());
    }
    let listening = ports::look(&assistant.host, port).await?;
    let state_dir = assistant.place.state_dir();
    let whose = assistant.place.gateway(&state_dir);
    match listening.owners.iter().find(|owner| owner.judge(&whose) != Verdict::Own) {
        None => Ok(()),
        Some(other) => {
            Err(Error::conflict(format!("another program answers on port {port}")).with_operator(other.describe()))
        }
    }
}

/// What OpenClaw said when it ended with the status that means: not with this configuration.
async fn refused(assistant: &Assistant) -> Error {
    let said = logs::last(assistant, 20).await.unwrap_or_default();
    let line = said.iter().rev().map(|line| line.text.as_str()).find(|text| {
        ["Invalid config", "Unrecognized key", "expected", "JSON5 parse failed", "start blocked", "Missing config"]
            .iter()
            .any(|words| text.contains(words))
    });
    let error = Error::conflict("OpenClaw refuses its configuration and was left down");
    error.with_operator(line.map_or("exit status 78", |line| line))
}

/// How large the instance's log is: what comes after is new.
pub async fn log_size(assistant: &Assistant) -> Result<u64> {
    Ok(assistant.home()?.size(&assistant.place.log_file()).await?)
}

/// Waits until the running gateway has taken over what was written. A gateway that is down reads it when it starts.
/// Returns false if it has not: it must be restarted for that.
pub async fn reload(progress: &impl Progress, assistant: &Assistant) -> Result<bool> {
    let app = progress.app();
    if !state(assistant).await?.is_running() {
        progress.log("it is not running, and reads its configuration when it starts").await?;
        pending::set(app, assistant, Pending::Nothing).await?;
        return Ok(true);
    }
    let recorded = pending::of(app, assistant).await?;
    let is_there = config::read(assistant).await?.map(|found| found.document.hash());
    if is_there.is_some_and(|hash| hash == recorded.previous) {
        // The worker that was about to write it went away before.
        pending::set(app, assistant, Pending::Nothing).await?;
        return Ok(true);
    }
    match reloaded(assistant, recorded.log_size).await? {
        Reload::Applied => {
            progress.log("taken over without a restart").await?;
            pending::set(app, assistant, Pending::Nothing).await?;
            Ok(true)
        }
        Reload::Skipped => Err(Error::conflict("OpenClaw did not take the new configuration over: it is not valid")),
        Reload::No => Ok(false),
    }
}

/// What a running gateway says of a new configuration, behind a place in its log.
async fn reloaded(assistant: &Assistant, log_size: i64) -> Result<Reload> {
    const APPLIED: &str = "config hot reload applied";
    const SKIPPED: &str = "config reload skipped";
    const RESTART: &str = "config change requires gateway restart";
    let (log, from) = (assistant.place.log_file(), u64::try_from(log_size).unwrap_or(0));
    let said = assistant.home()?.await_in_log(&log, from, &[APPLIED, SKIPPED, RESTART], RELOAD).await?;
    Ok(match said.as_deref() {
        Some(APPLIED) => Reload::Applied,
        Some(SKIPPED) => Reload::Skipped,
        _ => Reload::No,
    })
}

enum Reload {
    Applied,
    /// The configuration is not valid.
    Skipped,
    /// It asks for a restart, or says nothing.
    No,
}
