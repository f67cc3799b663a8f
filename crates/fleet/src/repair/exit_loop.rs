//! Rule 2: it ends with status 1 again and again, or waits for OpenClaw's doctor. The doctor is run while it is stopped, and judged
//! by the start that follows, never by what it says itself.

use std::time::Duration;

use base::{Error, Result};
use openclaw::Document;
use openclaw::config::remove_unknown;
use openclaw::program;
use openclaw::rule::{Finding, Rule};
use remote::host::Command;
use remote::host::ports;
use remote::host::systemd::{Active, State};

use super::{Case, Handler, Remedy, Verdict};
use crate::assistant::desired::Desired;
use crate::assistant::health::{self, Stage};
use crate::assistant::{Assistant, cell, config, install, service};
use crate::reconcile::step::{self, Step};
use crate::task::Context;

pub(super) const HANDLER: Handler = Handler {
    rule: Rule::ExitLoop,
    plan: "stop it, run OpenClaw's doctor with --fix, start it",
    confirm: |case, finding| Box::pin(confirm(case, finding)),
    remedy: Remedy::Own(|context, case| Box::pin(repair(context, case))),
};

/// The doctor takes 15 to 30 s.
const DOCTOR: Duration = Duration::from_secs(120);
/// One that is started again runs for up to 20 s before it ends again, on a busy server longer: it is looked at this often, a second
/// apart.
const LOOKS: usize = 45;

/// systemd says whether it is down now; somebody else on its port makes it end too, and is rule 7's; keys that it does not know
/// do as well, and are rule 4's: the doctor would put an older file in the place of this one. Keys of a channel are not: no log of a
/// start names them, and the doctor knows what the older ones were for.
async fn confirm(case: &Case<'_>, _: Option<&Finding>) -> Result<Verdict> {
    let assistant = case.assistant;
    let Some(state) = ended(assistant).await? else { return Ok(Verdict::Refuted) };
    if let Some(document) = case.document
        && let Some(validation) = config::validate(assistant, case.version, document).await?
        && validation.issues.iter().any(|issue| issue.is_told_at_start())
        && !remove_unknown(&mut document.clone(), &validation)?.removed.is_empty()
    {
        return Ok(Verdict::Refuted);
    }
    let state_dir = assistant.place.state_dir();
    let whose = assistant.place.gateway(&state_dir);
    let listening = ports::look(&assistant.host, assistant.port()).await?;
    if let Some(other) = listening.owners.iter().find(|owner| owner.judge(&whose) != ports::Verdict::Own) {
        return Ok(Verdict::LeftToPeople(format!("its port is held by {}", other.describe())));
    }
    Ok(Verdict::Confirmed(format!("the service is {}, {} restarts, {}", state.sub, state.restarts, state.result)))
}

/// The state of one that has ended and is not left running; `None` where it runs.
async fn ended(assistant: &Assistant) -> Result<Option<State>> {
    for look in 0..LOOKS {
        if look > 0 {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let state = service::state(assistant).await?;
        if state.active == Active::Failed || state.sub == "auto-restart" {
            return Ok(Some(state));
        }
        let ready = matches!(health::stage(assistant).await?, Stage::Ready(_));
        if ready || state.active == Active::Inactive {
            break;
        }
    }
    Ok(None)
}

async fn repair(context: &Context, case: &Case<'_>) -> Result<String> {
    let assistant = case.assistant;
    step::serve(context, assistant, Step::Stop).await?;
    let place = &assistant.place;
    let command = Command::new(install::program(case.version))
        .args(program::DOCTOR.iter().copied())
        .env(program::STATE_DIR, place.state_dir())
        .env(program::CONFIG_PATH, place.config_path())
        .limit(DOCTOR);
    let output = cell::run(assistant, command).await?;
    context.log(&format!("doctor --fix ended with {}", output.status)).await?;
    let restored = restore(context, case).await;
    step::serve(context, assistant, Step::Start).await.map_err(|error| {
        let message = format!("OpenClaw's doctor did not help: {}", error.client);
        Error::conflict(message).with_operator(error)
    })?;
    Ok(format!("stopped it, ran OpenClaw's doctor with --fix{}, started it", restored?))
}

/// What our records say is brought back: the doctor may have put an older file in the place of the one that was, and what makes it
/// end may be a setting of ours that the doctor finds nothing wrong with, such as an address that the server does not have.
async fn restore(context: &Context, case: &Case<'_>) -> Result<&'static str> {
    let assistant = case.assistant;
    let is = config::read(assistant).await?.map(|found| found.document.hash());
    let changed = is != case.document.map(Document::hash);
    if changed {
        context.log("the doctor changed the configuration").await?;
    }
    if assistant.instance.config_hash.is_empty() {
        // It was adopted as it is: the platform never wrote its configuration.
        return Ok(if changed { ", which changed the configuration" } else { "" });
    }
    let desired = Desired::known(case.app, assistant, case.version).await?;
    let edit = |document: &mut Document| desired.apply(document);
    let edited = config::change(context, assistant, case.version, &edit).await?;
    Ok(match (changed, edited.written) {
        (true, true) => ", which changed the configuration, brought our settings back",
        (true, false) => ", which changed the configuration",
        (false, true) => ", brought our settings back",
        (false, false) => "",
    })
}
