//! Rule 1: the provider has no key. The stored one is written into the configuration, which a running gateway takes over by itself.

use base::{Error, Result};
use openclaw::config::{self as openclaw_config, Access};
use openclaw::rule::{Finding, Rule};

use super::{Case, Handler, Proof};
use crate::assistant::{config, service, settings};
use crate::task::Context;

pub(super) const HANDLER: Handler = Handler {
    rule: Rule::NoApiKey,
    plan: "write the stored key into the configuration",
    confirm: |case, finding| Box::pin(confirm(case, finding)),
    repair: Some(|context, case| Box::pin(repair(context, case))),
};

async fn access(case: &Case<'_>) -> Result<Option<Access>> {
    settings::access(case.app, &case.assistant.instance).await
}

/// A log line names what was; the configuration says what is.
async fn confirm(case: &Case<'_>, _: Option<&Finding>) -> Result<Proof> {
    let (Some(document), Some(access)) = (case.document, access(case).await?) else { return Ok(Proof::Refuted) };
    let found = openclaw_config::Found::read(document);
    let same = found.key.as_ref().is_some_and(|key| key.expose() == access.key.expose());
    Ok(match (found.key.is_some(), same) {
        (_, true) => Proof::Refuted,
        (false, _) => Proof::Confirmed("the configuration has no key for the LLM gateway".into()),
        (true, _) => Proof::Confirmed("the configuration has another key than the stored one".into()),
    })
}

async fn repair(context: &Context, case: &Case<'_>) -> Result<String> {
    let access = access(case).await?.ok_or_else(|| Error::conflict("no model is enabled"))?;
    let told = |document: &mut openclaw::Document| access.apply(document, case.version);
    config::bring(context, case.assistant, case.version, &told).await?;
    if !service::state(case.assistant).await?.is_running() {
        service::start(context, case.assistant).await?;
    }
    Ok("wrote the stored key into the configuration".into())
}
