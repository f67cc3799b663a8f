//! POST /me/chat: a conversation's next turn, forwarded to the LLM gateway with the instance's own sub key.
//!
//! The question is stored before the gateway is asked, the answer before its end is passed on. Usage comes from the
//! gateway's log; the token counts that are stored with messages are for display only.

mod event;
mod forward;
pub mod message;
mod stream;

use std::sync::Arc;
use std::time::Instant;

use base::id::{InstanceId, MessageId, UserId};
use base::{Error, Kind, Result};
use llm::input::Input;
use llm::quota::{Reservation, Subject};
use llm::{key, model};
use people::holder;
use people::session::Employee;
use serde_json::{Value, json};
use store::chat_message::{ChatMessage, Role, Unconfirmed};
use store::model::ProviderKind;
use store::request_log::{self, NewRequest};

use crate::App;
use crate::assistant::settings;
pub use stream::{Piece, Streaming};

/// Tokens that are reserved for a reply, whose length is not known in advance.
const REPLY_TOKENS: i64 = 4096;

/// What an employee asks.
pub struct Question {
    pub instance_id: InstanceId,
    /// The conversation so far in the chat-completions shape, its last message the new one.
    pub messages: Vec<Value>,
    pub model: Option<String>,
}

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    pub id: String,
    pub model: String,
    pub content: String,
    pub finish_reason: Option<String>,
    pub prompt_tokens: i64,
    pub completion_tokens: i64,
    pub latency_ms: i64,
}

/// The state of a turn while it is under way.
struct Turn {
    app: Arc<App>,
    user: UserId,
    instance: InstanceId,
    model: String,
    is_stream: bool,
    began: Instant,
    /// Only used with a foreign gateway: the embedded one makes its own reservations.
    reservation: Option<Reservation>,
}

/// Asks and waits for the whole answer.
pub async fn ask(app: &Arc<App>, who: &Employee, question: Question) -> Result<Answer> {
    let (turn, body, key) = begin(app, who, question, false).await?;
    let answer = match forward::whole(&turn, &body, &key).await {
        Ok(answer) => answer,
        Err(failure) => return Err(turn.failed(failure).await),
    };
    turn.finish(answer.content.clone(), answer.completion_tokens).await?;
    Ok(answer)
}

/// Asks and streams the answer.
pub async fn ask_stream(app: &Arc<App>, who: &Employee, question: Question) -> Result<Streaming> {
    let (turn, body, key) = begin(app, who, question, true).await?;
    match forward::stream(&turn, &body, &key).await {
        Ok(answer) => Ok(Streaming::new(turn, answer)),
        Err(failure) => Err(turn.failed(failure).await),
    }
}

/// Checks, reserves and stores the question; returns the request to send.
async fn begin(
    app: &Arc<App>,
    who: &Employee,
    question: Question,
    is_stream: bool,
) -> Result<(Turn, Vec<u8>, base::Secret)> {
    let instance = holder::own(app, &who.id, &question.instance_id).await?;
    let model = match question.model.as_ref().unwrap_or(&instance.model).as_str() {
        // Use the assistant's own primary model.
        "" => {
            let models = settings::models(app, &instance).await?;
            models.ok_or_else(|| Error::conflict("no model may be used: see GET /models"))?.primary
        }
        named => model::usable(app, named).await?.id,
    };
    let text = last_text(&question.messages)?;
    let mut body = json!({"model": model, "messages": question.messages, "stream": is_stream});
    if is_stream {
        body["stream_options"] = json!({"include_usage": true});
    }
    let body = serde_json::to_vec(&body).map_err(Error::internal)?;
    let reservation = match app.upstream.embedded {
        true => None,
        false => reserve(app, &who.id, &model, &body).await?,
    };
    let key = key::of_instance(app, &question.instance_id).await?.key(&app.sealer)?;
    let mut turn = Turn {
        app: app.clone(),
        user: who.id.clone(),
        instance: question.instance_id,
        model,
        is_stream,
        began: Instant::now(),
        reservation,
    };
    if let Err(error) = turn.write(Role::User, &text, 0).await {
        // The gateway was not asked, so its log gets no row. Release the reservation at once.
        turn.reservation = None;
        return Err(error);
    }
    Ok((turn, body, key))
}

async fn reserve(app: &App, user: &UserId, model: &str, body: &[u8]) -> Result<Option<Reservation>> {
    app.feed.pull().await;
    let limit = store::user::find(&app.db, user).await?.map_or(0, |u| u.quota_daily);
    match Subject::user(app, user, limit) {
        Some(subject) => {
            // If the model is no longer in the list, assume the kind of provider that bills most for an image.
            let kind = store::model::find(&app.db, model).await?.map_or(ProviderKind::Openai, |known| known.kind);
            let estimate = Input::of(body).tokens(kind, model).saturating_add(REPLY_TOKENS);
            Ok(Some(app.quotas.reserve(app, &subject, estimate).await?))
        }
        None => Ok(None),
    }
}

/// The text of the last message, which must be the user's.
fn last_text(messages: &[Value]) -> Result<String> {
    let last = messages.last().ok_or_else(|| Error::field("messages", "must not be empty"))?;
    for message in messages {
        if !message["role"].is_string() {
            return Err(Error::field("messages", "every message needs a role"));
        }
    }
    if last["role"] != "user" {
        return Err(Error::field("messages", "the last message must be the user's"));
    }
    let text = match &last["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|p| p["text"].as_str()).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    };
    if text.trim().is_empty() {
        return Err(Error::field("message", "must not be empty"));
    }
    Ok(text)
}

/// A failed call.
struct Failure {
    error: Error,
    /// The gateway answered, so its log may have a row for the failure.
    answered: bool,
}

impl Turn {
    async fn write(&self, role: Role, content: &str, tokens: i64) -> Result<()> {
        let message = ChatMessage {
            id: MessageId::fresh(),
            user_id: self.user.clone(),
            instance_id: self.instance.clone(),
            role,
            content: message::kept(content),
            tokens,
            session_key: String::new(),
            client_id: None,
            unconfirmed: Unconfirmed::Stored,
            created_at: self.app.clock.now(),
        };
        message::keep(&self.app, &message).await
    }

    /// Stores the assistant's reply unless it is empty.
    async fn store(&self, content: &str, tokens: i64) -> Result<()> {
        if content.trim().is_empty() {
            return Ok(());
        }
        self.write(Role::Assistant, content, tokens).await
    }

    /// Stores a complete answer. It does so in a task of its own: a client that has read everything may disconnect at
    /// once.
    async fn finish(self, content: String, tokens: i64) -> Result<()> {
        let storing = tokio::spawn(async move { self.store(&content, tokens).await });
        storing.await.map_err(Error::internal)?
    }

    /// Stores an incomplete answer.
    async fn store_half(&self, content: &str, tokens: i64) {
        if let Err(error) = self.store(content, tokens).await {
            tracing::error!(%error, "half an answer was not stored");
        }
    }

    /// Releases the reservation, and logs the failure if the gateway has no row for it.
    async fn failed(mut self, failure: Failure) -> Error {
        self.reservation = None;
        if !failure.answered || !self.app.upstream.gateway.kind().logs_failures {
            let row = NewRequest {
                request_id: format!("tidepool-{}", base::id::fresh()),
                token_name: self.instance.as_str().to_owned(),
                model: self.model.clone(),
                provider: String::new(),
                kind: request_log::RequestType::ERROR,
                is_stream: self.is_stream,
                prompt_tokens: 0,
                completion_tokens: 0,
                quota: 0,
                duration_ms: self.began.elapsed().as_millis() as i64,
                error_message: failure.error.client.to_string(),
                estimated: false,
                created_at: self.app.clock.now(),
            };
            if let Err(error) = self.record(&row).await {
                tracing::error!(%error, "a failed request was not recorded");
            }
        }
        failure.error
    }

    async fn record(&self, row: &NewRequest) -> Result<()> {
        let mut tx = self.app.db.begin().await?;
        request_log::add(&mut tx, &self.app.zone, std::slice::from_ref(row)).await?;
        Ok(tx.commit().await?)
    }
}

impl Drop for Turn {
    /// Keeps the reservation until the row for this request must be in the gateway's log, also if the client
    /// disconnects.
    fn drop(&mut self) {
        let delay = self.app.upstream.gateway.kind().row_delay;
        if let (Some(reservation), Ok(runtime)) = (self.reservation.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(async move {
                tokio::time::sleep(delay).await;
                drop(reservation);
            });
        }
    }
}

impl Failure {
    fn unanswered(error: Error) -> Failure {
        Failure { error, answered: false }
    }

    fn odd(why: impl std::fmt::Display) -> Failure {
        Failure { error: Error::from(Kind::Gateway).with_operator(why), answered: true }
    }
}
