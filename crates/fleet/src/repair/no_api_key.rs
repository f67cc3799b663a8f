//! Rule 1: the provider has no key. The stored one is written into the configuration, which a running gateway takes over by itself.

use base::{Error, Result};
use openclaw::config::{Found, PROVIDER, Problem};
use openclaw::rule::{Detail, Finding, Rule};
use store::gateway_key;

use super::{Case, Handler, Proof};
use crate::assistant::{debt, settings};
use crate::reconcile;
use crate::task::Context;

pub(super) const HANDLER: Handler = Handler {
    rule: Rule::NoApiKey,
    plan: "write the stored key into the configuration",
    confirm: |case, finding| Box::pin(confirm(case, finding)),
    repair: Some(|context, case| Box::pin(repair(context, case))),
};

/// A log line names what was; the configuration says what is. A key that is not stored yet is not made by a look.
async fn confirm(case: &Case<'_>, finding: Option<&Finding>) -> Result<Proof> {
    let instance = &case.assistant.instance;
    let Some(document) = case.document else { return Ok(Proof::Refuted) };
    if settings::models(case.app, instance).await?.is_none() {
        return Ok(Proof::Refuted);
    }
    let found = Found::read(document);
    if let Some(Detail::NoApiKey { provider }) = finding.map(|finding| &finding.detail)
        && provider != PROVIDER
        && found.problems().contains(&Problem::ForeignPrimary)
    {
        // Its people gave it a model of another provider: that key is theirs.
        return Ok(Proof::Refuted);
    }
    let stored = match gateway_key::of_instance(&case.app.db, &instance.id).await? {
        Some(key) => Some(key.key(&case.app.sealer)?),
        None => None,
    };
    Ok(match (found.key, stored) {
        (None, _) => Proof::Confirmed("the configuration has no key for the LLM gateway".into()),
        (Some(is), Some(stored)) if is.expose() != stored.expose() => {
            Proof::Confirmed("the configuration has another key than the stored one".into())
        }
        _ => Proof::Refuted,
    })
}

async fn repair(context: &Context, case: &Case<'_>) -> Result<String> {
    let access = settings::access(case.app, &case.assistant.instance)
        .await?
        .ok_or_else(|| Error::conflict("no model is enabled"))?;
    let edit = |document: &mut openclaw::Document| access.apply(document, case.version);
    debt::owe_start(case.app, case.assistant).await?;
    reconcile::edit(context, case.assistant, case.version, &edit).await?;
    Ok("wrote the stored key into the configuration".into())
}
