//! guardian_webchat: POST /me/chat has what it needs: an enabled model, a platform key that the LLM gateway accepts,
//! and the table of messages.

use std::sync::Arc;

use base::{Result, When};
use llm::key;
use remote::llm::KeyState;
use store::{chat_message, model};

use super::{Dimension, Finding};
use crate::App;

pub(super) const DIMENSION: Dimension = Dimension {
    name: "guardian_webchat",
    label: "Employee chat",
    when: When::minutes(5),
    check: |app| Box::pin(check(app)),
};

const TARGET: &str = "webchat";

async fn check(app: Arc<App>) -> Result<Vec<Finding>> {
    let mut found = vec![];
    if let Err(error) = chat_message::look(&app.db).await {
        found.push(Finding::new(TARGET, format!("messages cannot be kept: {error}")));
    }
    if !model::all(&app.db).await?.iter().any(|model| model.enabled) {
        found.push(Finding::new(TARGET, "no model is enabled"));
    }
    let state = match key::platform(&app).await {
        Ok(key) => app.upstream.gateway.check_key(&key.key(&app.sealer)?).await,
        Err(error) => KeyState::Unreachable(error.client.into_owned()),
    };
    let trouble = match state {
        KeyState::Valid | KeyState::Throttled => None,
        KeyState::Invalid | KeyState::Denied => Some("the LLM gateway refuses the platform's own key".to_owned()),
        KeyState::Exhausted => Some("what the platform's own key may spend is spent".to_owned()),
        KeyState::Unreachable(why) => Some(format!("the LLM gateway cannot be reached: {why}")),
    };
    found.extend(trouble.map(|trouble| Finding::new(TARGET, trouble)));
    Ok(found)
}
