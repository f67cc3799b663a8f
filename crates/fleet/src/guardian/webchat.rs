//! guardian_webchat: the employee page and its API answer, and POST /me/chat has what it needs: the table of messages, an
//! enabled model, and an LLM gateway that accepts the platform's own key and lists such a model. If a setting says so,
//! one short chat is sent too. It is paid for, and logged by the gateway under the name of the platform's own key.

use std::sync::Arc;
use std::time::Duration;

use base::{Error, Kind, Result, Secret, When};
use llm::{key, own_request};
use remote::llm::KeyState;
use reqwest::redirect::Policy;
use serde_json::{Value, json};
use store::model::{Model, Purpose};
use store::{chat_message, model};

use super::{Dimension, Finding};
use crate::App;

pub(super) const DIMENSION: Dimension = Dimension {
    name: "guardian_webchat",
    label: "Employee chat",
    when: When::minutes(5),
    check: |app| Box::pin(check(app)),
};

/// The settings of this dimension.
#[derive(Clone, Debug)]
pub struct Webchat {
    /// The address at which this process reaches the employee side, without a slash at its end.
    pub employee_url: String,
    /// Whether every check sends a chat that is paid for.
    pub is_paid: bool,
}

const TARGET: &str = "webchat";
/// Timeout of a request to the employee side.
const LIMIT: Duration = Duration::from_secs(10);

async fn check(app: Arc<App>) -> Result<Vec<Finding>> {
    let mut found = vec![];
    let mut problem = |problem: String| found.push(Finding::new(TARGET, problem));
    if let Err(error) = page(&app).await {
        problem(format!("the employee page is not there: {}", error.client));
    }
    if let Err(error) = api(&app).await {
        problem(format!("the employee API is not there: {}", error.client));
    }
    if let Err(error) = chat_message::look(&app.db).await {
        problem(format!("messages cannot be kept: {error}"));
    }
    let mut enabled: Vec<Model> = model::all(&app.db)
        .await?
        .into_iter()
        .filter(|model| model.enabled && model.purpose == Purpose::Chat)
        .collect();
    if enabled.is_empty() {
        problem("no model is enabled".into());
        return Ok(found);
    }
    let key = match accepted_key(&app).await? {
        Ok(key) => key,
        Err(why) => {
            problem(why);
            return Ok(found);
        }
    };
    let listed = match own_request::models(&app, &key).await {
        Ok(listed) => listed,
        Err(error) => {
            problem(format!("the LLM gateway does not list its models: {}", error.client));
            return Ok(found);
        }
    };
    enabled.retain(|model| listed.contains(&model.id));
    // The first of the fallback chain is what an employee gets who names no model.
    let Some(model) = enabled.iter().min_by_key(|model| (model.chain.unwrap_or(i64::MAX), model.sort_order)) else {
        problem("the LLM gateway lists none of the enabled models: has their provider a key?".into());
        return Ok(found);
    };
    if app.webchat.is_paid {
        found.push(paid_chat(&app, &key, &model.id).await);
    }
    Ok(found)
}

/// The platform's own key, or why the gateway does not accept it.
async fn accepted_key(app: &App) -> Result<std::result::Result<Secret, String>> {
    let key = match key::platform(app).await {
        Ok(key) => key.key(&app.sealer)?,
        Err(error) => return Ok(Err(format!("the LLM gateway cannot be reached: {}", error.client))),
    };
    Ok(match app.upstream.gateway.check_key(&key).await {
        KeyState::Valid | KeyState::Throttled => Ok(key),
        KeyState::Invalid | KeyState::Denied => Err("the LLM gateway refuses the platform's own key".to_owned()),
        KeyState::Exhausted => Err("what the platform's own key may spend is spent".to_owned()),
        KeyState::Unreachable(why) => Err(format!("the LLM gateway cannot be reached: {why}")),
    })
}

async fn paid_chat(app: &App, key: &Secret, model: &str) -> Finding {
    match own_request::chat(app, key, model).await {
        Ok(reply) => {
            let chat = json!({"model": reply.model, "answer": reply.content, "latency_ms": reply.latency_ms});
            Finding::passed(TARGET, json!({"chat": chat}))
        }
        Err(error) => {
            let mut finding = Finding::new(TARGET, format!("a chat with {model} failed: {}", error.client));
            finding.extra = json!({"model": model});
            finding
        }
    }
}

/// Requests the page that employees see first.
async fn page(app: &App) -> Result<()> {
    let response = get(app, "/", "text/html").await?;
    let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if kind.starts_with("text/html") { Ok(()) } else { Err(Error::new(Kind::Gateway, "its address sends no page")) }
}

/// Requests the one route of the API that every page needs first and that needs no login.
async fn api(app: &App) -> Result<()> {
    let response = get(app, "/api/v1/auth/options", "application/json").await?;
    let said: Value = response.json().await.unwrap_or_default();
    if said["code"] == "0000" { Ok(()) } else { Err(Error::new(Kind::Gateway, "its address sends no envelope")) }
}

async fn get(app: &App, path: &str, accept: &str) -> Result<reqwest::Response> {
    let url = format!("{}{path}", app.webchat.employee_url);
    // The company's own pages are not asked for through a proxy that leads to the internet.
    let client = reqwest::Client::builder().no_proxy().redirect(Policy::none()).timeout(LIMIT);
    let client = client.build().map_err(Error::internal)?;
    let sent = client.get(url).header("accept", accept).send().await;
    let response = sent.map_err(|error| {
        let why = if error.is_timeout() { "it does not answer in time" } else { "nothing answers at its address" };
        Error::new(Kind::Unavailable, why)
    })?;
    match response.status().as_u16() {
        200 => Ok(response),
        status => Err(Error::new(Kind::Gateway, format!("it answers {status}"))),
    }
}
