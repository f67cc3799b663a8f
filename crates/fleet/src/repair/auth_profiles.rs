//! Rule 5: `auth.profiles` in the configuration. It is taken out, with the order that names it, once the key stands where it belongs.

use base::Result;
use openclaw::Document;
use openclaw::rule::{Finding, Rule, remove_auth_profiles};

use super::{Case, Handler, Proof};
use crate::assistant::{debt, settings};
use crate::reconcile;
use crate::task::Context;

pub(super) const HANDLER: Handler = Handler {
    rule: Rule::AuthProfiles,
    plan: "delete auth.profiles and auth.order",
    confirm: |case, finding| Box::pin(confirm(case, finding)),
    repair: Some(|context, case| Box::pin(repair(context, case))),
};

async fn confirm(case: &Case<'_>, _: Option<&Finding>) -> Result<Proof> {
    let profiles = case.document.map(|document| document.keys(["auth", "profiles"])).unwrap_or_default();
    Ok(match profiles.as_slice() {
        [] => Proof::Refuted,
        some => Proof::Confirmed(format!("auth.profiles has {} entries", some.len())),
    })
}

async fn repair(context: &Context, case: &Case<'_>) -> Result<String> {
    // Whoever had its key only there must not lose it.
    let access = settings::access(case.app, &case.assistant.instance).await?;
    let edit = |document: &mut Document| {
        if let Some(access) = &access {
            access.apply(document, case.version)?;
        }
        remove_auth_profiles(document).map(drop)
    };
    debt::owe_start(case.app, case.assistant).await?;
    reconcile::edit(context, case.assistant, case.version, &edit).await?;
    Ok("deleted auth.profiles and auth.order".into())
}
