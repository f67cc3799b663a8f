//! guardian_models_check: an instance has models, and its primary model is one of them.

use std::sync::Arc;

use base::{Result, When};
use openclaw::config::{Found, Problem};

use super::{Dimension, Finding, brief, each_instance, read};
use crate::App;

pub(super) const DIMENSION: Dimension = Dimension {
    name: "guardian_models_check",
    label: "Models",
    when: When::hourly(15),
    check: |app| Box::pin(check(app)),
};

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
        Found::read(&document)
            .problems()
            .into_iter()
            .filter_map(describe)
            .map(|problem| Finding::new(id, problem))
            .collect()
    })
    .await
}
