//! guardian_models_check: an instance has models, and its primary model is one of them.

use std::sync::Arc;

use base::{Result, When};
use openclaw::config::{Found, Problem};

use super::{Dimension, Finding, brief, each_instance, read};
use crate::App;
use crate::reconcile::pass;

const NAME: &str = "guardian_models_check";

pub(super) const DIMENSION: Dimension =
    Dimension { name: NAME, label: "Models", when: When::hourly(15), check: |app| Box::pin(check(app)) };

async fn check(app: Arc<App>) -> Result<Vec<Finding>> {
    each_instance(&app, brief(), |app, _, member, _| async move {
        let id = &member.instance.id;
        let document = match read(&app, &member).await {
            Ok(Some(document)) => document,
            Ok(None) => return vec![],
            Err(error) => return vec![Finding::new(id, error.client)],
        };
        let describe = |problem: Problem| match problem {
            Problem::NoModels => Some("its list of models is empty"),
            Problem::NoPrimary => Some("it has no primary model"),
            Problem::UnlistedPrimary => Some("its primary model is not in its list"),
            Problem::NoProvider => Some("it has no entry for the platform's provider"),
            // guardian_inst_auth reports these.
            Problem::NoKey | Problem::ForeignPrimary => None,
        };
        let problems = Found::read(&document).problems().into_iter().filter_map(describe);
        let mut found: Vec<Finding> = problems.map(|problem| Finding::new(id, problem)).collect();
        if !found.is_empty() {
            match pass::follow(&app, &member).await {
                Ok(drift) => found.iter_mut().for_each(|finding| finding.repaired.clone_from(&drift.done)),
                Err(error) => found.push(Finding::new(id, error.client)),
            }
        }
        found
    })
    .await
}
