//! Rule 6: another gateway has its port. One that is left over from this instance is ended; another instance's, and a stranger, never.

use base::Result;
use openclaw::rule::{Finding, Rule};
use remote::host::ports::{self, Listening};

use super::{Case, Handler, Reconcile, Remedy, Verdict};
use crate::assistant::service;
use crate::reconcile::Wish;

pub(super) const HANDLER: Handler = Handler {
    rule: Rule::PortTaken,
    plan: "stop it, end the gateway that is left over on its port, start it",
    confirm: |case, finding| Box::pin(confirm(case, finding)),
    remedy: Remedy::Reconcile(Reconcile {
        wish: Wish::Restart,
        part: None,
        makes_key: false,
        also: |_| Ok(()),
        done: "stopped it, freed its port, started it",
    }),
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
    let whose = assistant.place.gateway(&state_dir);
    let listening = ports::look(&assistant.host, assistant.port()).await?;
    let other = listening.owners.iter().find(|owner| owner.judge(&whose) != ports::Verdict::Own);
    let left = listening.owners.iter().find(|owner| owner.unit.as_deref() != Some(assistant.place.unit.as_str()));
    let holder = match (other, left) {
        (Some(other), _) => Holder::Other(other.describe()),
        (None, Some(left)) => Holder::LeftOver(left.describe()),
        (None, None) if listening.is_free() => Holder::Nobody,
        (None, None) => Holder::Own,
    };
    Ok((listening, holder))
}

async fn confirm(case: &Case<'_>, _: Option<&Finding>) -> Result<Verdict> {
    let running = service::state(case.assistant).await?.is_running();
    Ok(match holder(case).await?.1 {
        Holder::Own => Verdict::Refuted,
        // It gave up, and whoever had the port is gone: all it needs is a start.
        Holder::Nobody if running => Verdict::Refuted,
        Holder::Nobody => Verdict::Confirmed("it gave up for its port, which is free now".into()),
        Holder::LeftOver(who) => Verdict::Confirmed(format!("its port is held by a gateway that is left over: {who}")),
        Holder::Other(who) => Verdict::LeftToPeople(format!("its port is held by another: {who}")),
    })
}
