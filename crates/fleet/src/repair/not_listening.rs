//! Rule 7: the service is active and does not listen where it should. The address in the configuration is set right, what is left over of
//! the instance on its port is ended, and it is restarted. A stranger on its port is left alone.

use base::Result;
use jiff::SignedDuration;
use openclaw::Document;
use openclaw::config::Bind;
use openclaw::rule::{Finding, Rule};

use super::port_taken::{Holder, holder};
use super::{Case, Handler, Proof};
use crate::assistant::{config, service, settings};
use crate::task::Context;

pub(super) const HANDLER: Handler = Handler {
    rule: Rule::NotListening,
    plan: "set the address in the configuration, stop it, free its port, start it",
    confirm: |case, finding| Box::pin(confirm(case, finding)),
    repair: Some(|context, case| Box::pin(repair(context, case))),
};

/// A start takes up to 45 s in which nobody listens.
const START: SignedDuration = SignedDuration::from_secs(90);

async fn confirm(case: &Case<'_>, _: Option<&Finding>) -> Result<Proof> {
    let (listening, holder) = holder(case).await?;
    let bind = Bind::for_url(&case.assistant.instance.gateway_url);
    let right = match bind {
        Bind::Loopback => listening.addresses.iter().all(|address| address.starts_with("127.") || address == "[::1]"),
        Bind::Lan => listening.addresses.iter().any(|address| matches!(address.as_str(), "0.0.0.0" | "*" | "[::]")),
    };
    let addresses = || listening.addresses.join(", ");
    let state = service::state(case.assistant).await?;
    if !state.is_running() {
        return Ok(Proof::Refuted);
    }
    let settled = state.since.is_some_and(|since| case.app.clock.now().duration_since(since) >= START);
    Ok(match holder {
        // It may only just have been started.
        Holder::Nobody if !settled => Proof::Refuted,
        Holder::Other(who) => Proof::HandsOff(format!("its port is held by another: {who}")),
        Holder::LeftOver(who) => Proof::Confirmed(format!("its port is held by a gateway that is left over: {who}")),
        Holder::Nobody => Proof::Confirmed("the service is active and nobody listens on its port".into()),
        Holder::Own if right => Proof::Refuted,
        Holder::Own => Proof::Confirmed(format!("it listens on {}, and should on {}", addresses(), bind.as_str())),
    })
}

async fn repair(context: &Context, case: &Case<'_>) -> Result<String> {
    let all = settings::known(case.app, case.assistant).await?;
    let edit = |document: &mut Document| all.gateway.apply(document, case.version);
    let edited = config::change(context, case.assistant, case.version, &edit).await?;
    service::restart(context, case.assistant).await?;
    if edited.written {
        config::confirm(case.app, case.assistant, case.version, &edit).await?;
        return Ok("set the address in the configuration, restarted it".into());
    }
    Ok("stopped it, freed its port, started it".into())
}
