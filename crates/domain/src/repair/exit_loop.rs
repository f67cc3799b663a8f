//! Rule 2: it ends with status 1 again and again, or waits for OpenClaw's doctor. The doctor is run while it is stopped, and judged
//! by the start that follows, never by what it says itself.

use std::time::Duration;

use base::{Error, Result};
use openclaw::rule::{Finding, Rule};
use remote::host::Command;
use remote::host::ports::{self, Instance, Verdict};
use remote::host::systemd::Active;

use super::{Case, Handler, Proof};
use crate::assistant::{install, service};
use crate::task::Context;

pub(super) const HANDLER: Handler = Handler {
    rule: Rule::ExitLoop,
    plan: "stop it, run OpenClaw's doctor with --fix, start it",
    confirm: |case, finding| Box::pin(confirm(case, finding)),
    repair: Some(|context, case| Box::pin(repair(context, case))),
};

/// The doctor takes 15 to 30 s.
const DOCTOR: Duration = Duration::from_secs(120);
const RESTARTS: i64 = 3;

/// systemd says whether it is down or was started again and again; somebody else on its port makes it end too, and is rule 7's.
async fn confirm(case: &Case<'_>, _: Option<&Finding>) -> Result<Proof> {
    let assistant = case.assistant;
    let state = service::state(assistant).await?;
    let alive = matches!(
        crate::assistant::health::stage(&assistant.host, assistant.port()?).await?,
        crate::assistant::health::Stage::Ready(_)
    );
    let down =
        state.active == Active::Failed || i64::from(state.restarts) >= RESTARTS || state.active == Active::Activating;
    if alive || !down {
        return Ok(Proof::Refuted);
    }
    let state_dir = assistant.place.state_dir();
    let whose = Instance { unit: &assistant.place.unit, state_dir: &state_dir };
    let listening = ports::look(&assistant.host, assistant.port()?).await?;
    if let Some(other) = listening.owners.iter().find(|owner| owner.judge(&whose) != Verdict::Own) {
        return Ok(Proof::HandsOff(format!("its port is held by {}", other.told())));
    }
    Ok(Proof::Confirmed(format!("the service is {}, {} restarts, {}", state.sub, state.restarts, state.result)))
}

async fn repair(context: &Context, case: &Case<'_>) -> Result<String> {
    let assistant = case.assistant;
    service::stop(context, assistant).await?;
    let place = &assistant.place;
    let command = Command::new(install::program(case.version))
        .args(["doctor", "--fix"])
        .env("HOME", &place.home)
        .env("OPENCLAW_STATE_DIR", place.state_dir())
        .env("OPENCLAW_CONFIG_PATH", place.config_path())
        .limit(DOCTOR)
        .by(place.actor());
    let output = assistant.host.run(&command).await?;
    context.log(&format!("doctor --fix ended with {}", output.status)).await?;
    service::start(context, assistant).await.map_err(|error| {
        let told = format!("OpenClaw's doctor did not help: {}", error.client);
        Error::conflict(told).with_operator(error)
    })?;
    Ok("stopped it, ran OpenClaw's doctor with --fix, started it".into())
}
