//! Rule 7: the service is active and does not listen where it should. The address in the configuration is set right, what is left over of
//! the instance on its port is ended, and it is restarted. A stranger on its port is left alone.

use base::Result;
use jiff::SignedDuration;
use openclaw::config::Bind;
use openclaw::rule::{Finding, Rule};

use super::port_taken::{Holder, holder};
use super::{Case, Handler, Reconcile, Remedy, Verdict};
use crate::assistant::desired::Part;
use crate::assistant::service;
use crate::reconcile::Wish;
use crate::tenant;

pub(super) const HANDLER: Handler = Handler {
    rule: Rule::NotListening,
    plan: "set the address in the configuration, stop it, free its port, start it",
    confirm: |case, finding| Box::pin(confirm(case, finding)),
    remedy: Remedy::Reconcile(Reconcile {
        wish: Wish::Restart,
        part: Some(Part::Gateway),
        makes_key: false,
        also: |_| Ok(()),
        done: "set the address in the configuration, stopped it, freed its port, started it",
    }),
};

/// A start takes up to 45 s in which nobody listens.
const START: SignedDuration = SignedDuration::from_secs(90);

async fn confirm(case: &Case<'_>, _: Option<&Finding>) -> Result<Verdict> {
    let (listening, holder) = holder(case).await?;
    // Where a container listens is not ours to say.
    let Some(bind) = tenant::bind(&case.assistant.instance) else { return Ok(Verdict::Refuted) };
    let right = match bind {
        Bind::Loopback => listening.addresses.iter().all(|address| address.starts_with("127.") || address == "[::1]"),
        Bind::Lan => listening.addresses.iter().any(|address| matches!(address.as_str(), "0.0.0.0" | "*" | "[::]")),
    };
    let addresses = || listening.addresses.join(", ");
    let state = service::state(case.assistant).await?;
    if !state.is_running() {
        return Ok(Verdict::Refuted);
    }
    let settled = state.since.is_some_and(|since| case.app.clock.now().duration_since(since) >= START);
    Ok(match holder {
        // It may only just have been started.
        Holder::Nobody if !settled => Verdict::Refuted,
        Holder::Other(who) => Verdict::LeftToPeople(format!("its port is held by another: {who}")),
        Holder::LeftOver(who) => Verdict::Confirmed(format!("its port is held by a gateway that is left over: {who}")),
        Holder::Nobody => Verdict::Confirmed("the service is active and nobody listens on its port".into()),
        Holder::Own if right => Verdict::Refuted,
        Holder::Own => Verdict::Confirmed(format!("it listens on {}, and should on {}", addresses(), bind.as_str())),
    })
}
