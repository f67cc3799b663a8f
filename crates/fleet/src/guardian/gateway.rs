//! guardian_gateway: the LLM gateway answers and takes our management token, its log says what it should, and no key
//! opens it that should not.

use std::sync::Arc;

use base::{Result, When};
use jiff::SignedDuration;
use queue::alert::{self, Rule};

use super::{Dimension, Finding};
use crate::App;

pub(super) const DIMENSION: Dimension = Dimension {
    name: "guardian_gateway",
    label: "LLM gateway",
    when: When::minutes(5),
    check: |app| Box::pin(check(app)),
};

/// The management token is tried again if that was not done within this time.
const TRIED: SignedDuration = SignedDuration::from_secs(30);

async fn check(app: Arc<App>) -> Result<Vec<Finding>> {
    let health = app.upstream.gateway.health().await;
    let down = (!health.ok).then(|| format!("the LLM gateway does not answer: {}", health.detail));
    alert::set_state(&app, Rule::GatewayDown, "gateway", down.as_deref()).await?;
    // Of a gateway that is away nothing can be said about the token.
    let token = match down {
        Some(_) => None,
        None => llm::gateway::admin_token_problem(&app, TRIED).await?,
    };
    alert::set_state(&app, Rule::GatewayDown, "management token", token.as_deref()).await?;
    let log = llm::log_watch::problem(&app).await?.map(|state| state.problem);
    let keys = if app.upstream.embedded { None } else { llm::key::unrevoked(&app).await? };
    let found = [("gateway", down), ("management token", token), ("gateway log", log), ("keys", keys)];
    Ok(found.into_iter().filter_map(|(target, problem)| Some(Finding::new(target, problem?))).collect())
}
