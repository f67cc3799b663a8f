//! Rule 6: another gateway has its port. One that is left over from this instance is ended; another instance's, and a stranger, never.

use base::Result;
use openclaw::rule::{Finding, Rule};
use remote::host::ports::{self, Instance, Listening, Verdict};

use super::{Case, Handler, Proof};
use crate::assistant::service;
use crate::task::Context;

pub(super) const HANDLER: Handler = Handler {
    rule: Rule::PortTaken,
    plan: "stop it, end the gateway that is left over on its port, start it",
    confirm: |case, finding| Box::pin(confirm(case, finding)),
    repair: Some(|context, case| Box::pin(repair(context, case))),
};

pub(super) enum Holder {
    Nobody,
    Own,
    /// Of this instance, but not of its unit: left over.
    LeftOver(String),
    Other(String),
}

/// Who holds the port, by the kernel's own word.
pub(super) async fn holder(case: &Case<'_>) -> Result<(Listening, Holder)> {
    let assistant = case.assistant;
    let state_dir = assistant.place.state_dir();
    let whose = Instance { unit: &assistant.place.unit, state_dir: &state_dir };
    let listening = ports::look(&assistant.host, assistant.port()).await?;
    let other = listening.owners.iter().find(|owner| owner.judge(&whose) != Verdict::Own);
    let left = listening.owners.iter().find(|owner| owner.unit.as_deref() != Some(assistant.place.unit.as_str()));
    let holder = match (other, left) {
        (Some(other), _) => Holder::Other(other.describe()),
        (None, Some(left)) => Holder::LeftOver(left.describe()),
        (None, None) if listening.is_free() => Holder::Nobody,
        (None, None) => Holder::Own,
    };
    Ok((listening, holder))
}

async fn confirm(case: &Case<'_>, _: Option<&Finding>) -> Result<Proof> {
    let running = service::state(case.assistant).await?.is_running();
    Ok(match holder(case).await?.1 {
        Holder::Own => Proof::Refuted,
        // It gave up, and whoever had the port is gone: all it needs is a start.
        Holder::Nobody if running => Proof::Refuted,
        Holder::Nobody => Proof::Confirmed("it gave up for its port, which is free now".into()),
        Holder::LeftOver(who) => Proof::Confirmed(format!("its port is held by a gateway that is left over: {who}")),
        Holder::Other(who) => Proof::HandsOff(format!("its port is held by another: {who}")),
    })
}

async fn repair(context: &Context, case: &Case<'_>) -> Result<String> {
    service::restart(context, case.assistant).await?;
    Ok("stopped it, freed its port, started it".into())
}
