//! Rule 1: the provider has no key. The stored one is written into the configuration, which a running gateway takes over by itself.

use base::Result;
use openclaw::config::{Found, Problem, is_ours};
use openclaw::rule::{Detail, Finding, Rule};
use store::gateway_key;

use super::{Case, Handler, Reconcile, Remedy, Verdict};
use crate::assistant::access;
use crate::assistant::desired::Part;
use crate::reconcile::Wish;

pub(super) const HANDLER: Handler = Handler {
    rule: Rule::NoApiKey,
    plan: "write the stored key into the configuration",
    confirm: |case, finding| Box::pin(confirm(case, finding)),
    remedy: Remedy::Reconcile(Reconcile {
        wish: Wish::Run,
        part: Some(Part::Access),
        makes_key: true,
        also: |_| Ok(()),
        done: "wrote the stored key into the configuration",
    }),
};

/// A log line names what was; the configuration says what is. A key that is not stored yet is not made by a look.
async fn confirm(case: &Case<'_>, finding: Option<&Finding>) -> Result<Verdict> {
    let instance = &case.assistant.instance;
    let Some(document) = case.document else { return Ok(Verdict::Refuted) };
    if access::models(case.app, instance).await?.is_none() {
        return Ok(Verdict::Refuted);
    }
    let found = Found::read(document);
    if let Some(Detail::NoApiKey { provider }) = finding.map(|finding| &finding.detail)
        && !is_ours(provider)
        && found.problems().contains(&Problem::ForeignPrimary)
    {
        // Its people gave it a model of another provider: that key is theirs.
        return Ok(Verdict::Refuted);
    }
    let stored = match gateway_key::of_instance(&case.app.db, &instance.id).await? {
        Some(key) => Some(key.key(&case.app.sealer)?),
        None => None,
    };
    Ok(match (found.key, stored) {
        (None, _) => Verdict::Confirmed("the configuration has no key for the LLM gateway".into()),
        (Some(is), Some(stored)) if is.expose() != stored.expose() => {
            Verdict::Confirmed("the configuration has another key than the stored one".into())
        }
        _ => Verdict::Refuted,
    })
}
