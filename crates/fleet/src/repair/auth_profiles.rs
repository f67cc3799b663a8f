//! Rule 5: `auth.profiles` in the configuration. It is taken out, with the order that names it, once the key stands where it belongs.

use base::Result;
use openclaw::rule::{Finding, Rule, remove_auth_profiles};

use super::{Case, Handler, Reconcile, Remedy, Verdict};
use crate::assistant::desired::Part;
use crate::reconcile::Wish;

pub(super) const HANDLER: Handler = Handler {
    rule: Rule::AuthProfiles,
    plan: "delete auth.profiles and auth.order",
    confirm: |case, finding| Box::pin(confirm(case, finding)),
    remedy: Remedy::Reconcile(Reconcile {
        wish: Wish::Run,
        part: Some(Part::Access),
        makes_key: true,
        also: |document| remove_auth_profiles(document).map(drop),
        done: "deleted auth.profiles and auth.order",
    }),
};

async fn confirm(case: &Case<'_>, _: Option<&Finding>) -> Result<Verdict> {
    let profiles = case.document.map(|document| document.keys(["auth", "profiles"])).unwrap_or_default();
    Ok(match profiles.as_slice() {
        [] => Verdict::Refuted,
        some => Verdict::Confirmed(format!("auth.profiles has {} entries", some.len())),
    })
}
