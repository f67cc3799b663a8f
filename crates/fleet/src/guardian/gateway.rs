//! guardian_gateway: the LLM gateway answers.

use std::sync::Arc;

use base::{Result, When};
use queue::alert::{self, Rule};

use super::{Dimension, Finding};
use crate::App;

pub(super) const DIMENSION: Dimension = Dimension {
    name: "guardian_gateway",
    label: "LLM gateway",
    when: When::minutes(5),
    check: |app| Box::pin(check(app)),
};

async fn check(app: Arc<App>) -> Result<Vec<Finding>> {
    let health = app.upstream.gateway.health().await;
    let trouble = (!health.ok).then(|| format!("the LLM gateway does not answer: {}", health.detail));
    alert::set_state(&app, Rule::GatewayDown, "gateway", trouble.as_deref()).await?;
    Ok(trouble.map(|trouble| Finding::new("gateway", trouble)).into_iter().collect())
}
