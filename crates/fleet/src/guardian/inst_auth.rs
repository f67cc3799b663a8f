//! guardian_inst_auth: an instance has its key where this release looks for it, and its models are our provider's.

use std::sync::Arc;

use base::{Result, When};
use jiff::SignedDuration;
use openclaw::config::{Found, Problem};
use openclaw::sweep::{Answer, ConfigFile};
use store::gateway_key;

use super::{Dimension, Finding, brief, document, each_instance, read};
use crate::App;
use crate::reconcile::pass::{self, Followed};
use crate::sweep::Member;

const NAME: &str = "guardian_inst_auth";

pub(super) const DIMENSION: Dimension =
    Dimension { name: NAME, label: "Instance keys", when: When::minutes(5), check: |app| Box::pin(check(app)) };

/// For this long after a change of the key or of the instance's record, the configuration is read even if it is what we
/// wrote last. (The job key_validity_check reads all configurations.)
const RECENT: SignedDuration = SignedDuration::from_hours(1);

async fn check(app: Arc<App>) -> Result<Vec<Finding>> {
    each_instance(&app, brief(), |app, _, member, answer| async move { look(&app, &member, &answer).await }).await
}

async fn look(app: &Arc<App>, member: &Member, answer: &Answer) -> Vec<Finding> {
    let id = &member.instance.id;
    let mut found = vec![];
    match &answer.config {
        Some(ConfigFile::Missing) => found.push(Finding::new(id, "there is no configuration on the server")),
        Some(ConfigFile::Unreadable) => found.push(Finding::new(id, "the configuration on the server cannot be read")),
        _ => {}
    }
    if answer.legacy_auth {
        found.push(Finding::new(id, "there is an auth-profiles.json, which newer releases stumble over"));
    }
    let stored = gateway_key::of_instance(&app.db, &member.instance.id).await.ok().flatten();
    // What we wrote last may have the old key.
    let recent = |at| app.clock.now().duration_since(at) < RECENT;
    let changed = stored.as_ref().is_some_and(|key| recent(key.updated_at)) || recent(member.instance.updated_at);
    let document = if changed { read(app, member).await } else { document(app, member, answer).await };
    match document {
        Ok(None) => {}
        Ok(Some(document)) => {
            let is = Found::read(&document);
            if is.problems().contains(&Problem::ForeignPrimary) {
                found.push(Finding::new(id, "its primary model is not one of the platform's provider"));
            }
            if let Some(key) = stored.and_then(|key| key.key(&app.sealer).ok())
                && is.key.is_none_or(|is| is.expose() != key.expose())
            {
                found.push(Finding::new(id, "its key is not the stored one"));
            }
            match pass::follow(app, member).await {
                Ok(Followed { differs, done }) => {
                    if !differs.is_empty() && found.is_empty() {
                        found.push(Finding::new(id, format!("it is not what our records want: {differs}")));
                    }
                    found.iter_mut().for_each(|finding| finding.repaired.clone_from(&done));
                }
                Err(error) => found.push(Finding::new(id, error.client)),
            }
        }
        Err(error) => found.push(Finding::new(id, error.client)),
    }
    found
}
