//! POST /me/chat: a conversation's next turn, forwarded to the LLM gateway with the instance's own sub key.
//!
//! The question is stored before the gateway is asked, the answer before its end is passed on. Usage comes from the
//! gateway's log; the token counts that are stored with messages are for display only.

mod event;
mod forward;
pub mod message;
mod refusal;
mod stream;

use std::sync::Arc;
use std::time::Instant;

use base::id::{InstanceId, MessageId, UserId};
use base::{Error, Kind, Result};
use llm::input::{Input, text_tokens};
use llm::quota::{Reservation, Subject};
use llm::unlogged::{self, Answered};
use llm::{key, model};
use people::holder;
use people::session::Employee;
use serde_json::{Value, json};
use store::chat_message::{ChatMessage, Role, Unconfirmed};
use store::model::ProviderKind;
use store::request_log::{self, NewRequest};

use crate::App;
use crate::assistant::access;
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

/// What an answer used, as far as it says so.
#[derive(Clone, Debug, Default)]
struct Used {
    prompt_tokens: Option<i64>,
    completion_tokens: Option<i64>,
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
    began_at: jiff::Timestamp,
    /// The gateway's own id of the request, once it has answered.
    request_id: String,
    /// The most tokens that its input may be.
    input_tokens: i64,
    /// Only used with a foreign gateway: the embedded one makes its own reservations.
    reservation: Option<Reservation>,
}

/// Asks and waits for the whole answer.
pub async fn ask(app: &Arc<App>, who: &Employee, question: Question) -> Result<Answer> {
    let (mut turn, body, key) = begin(app, who, question, false).await?;
    let mut outcome = forward::whole(&mut turn, &body, &key).await;
    if let Err(failure) = outcome {
        outcome = match refusal::of_key(&turn, failure, &key).await {
            Ok(key) => forward::whole(&mut turn, &body, &key).await,
            Err(failure) => Err(failure),
        };
    }
    let (answer, used) = match outcome {
        Ok(answered) => answered,
        Err(failure) => return Err(turn.failed(failure).await),
    };
    turn.finish(answer.content.clone(), used).await?;
    Ok(answer)
}

/// Asks and streams the answer.
pub async fn ask_stream(app: &Arc<App>, who: &Employee, question: Question) -> Result<Streaming> {
    let (mut turn, body, key) = begin(app, who, question, true).await?;
    let mut outcome = forward::stream(&mut turn, &body, &key).await;
    if let Err(failure) = outcome {
        outcome = match refusal::of_key(&turn, failure, &key).await {
            Ok(key) => forward::stream(&mut turn, &body, &key).await,
            Err(failure) => Err(failure),
        };
    }
    match outcome {
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
            let models = access::models(app, &instance).await?;
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
    let (input_tokens, reservation) = match app.upstream.embedded {
        true => (0, None),
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
        began_at: app.clock.now(),
        request_id: String::new(),
        input_tokens,
        reservation,
    };
    if let Err(error) = turn.write(Role::User, &text, 0).await {
        // The gateway was not asked, so its log gets no row. Release the reservation at once.
        turn.reservation = None;
        return Err(error);
    }
    Ok((turn, body, key))
}

/// Reserves what the request may use of the daily quota, if there is one. Returns the estimate of its input too.
async fn reserve(app: &App, user: &UserId, model: &str, body: &[u8]) -> Result<(i64, Option<Reservation>)> {
    app.feed.pull().await;
    // If the model is no longer in the list, assume the kind of provider that bills most for an image.
    let kind = store::model::find(&app.db, model).await?.map_or(ProviderKind::Openai, |known| known.kind);
    let input = Input::of(body).tokens(kind, model);
    let limit = store::user::find(&app.db, user).await?.map_or(0, |u| u.quota_daily);
    let Some(subject) = Subject::user(app, user, limit) else { return Ok((input, None)) };
    if llm::log_watch::holds_keys(app).await? {
        return Err(Error::new(Kind::Unavailable, refusal::UNCOUNTED));
    }
    let estimate = input.saturating_add(REPLY_TOKENS);
    Ok((input, Some(app.quotas.reserve(app, &subject, estimate).await?)))
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
    /// It refused a key: the sub key, or its own at a provider.
    of_key: bool,
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

    /// Stores a complete answer, and counts what it used. It does so in a task of its own: a client that has read
    /// everything may disconnect at once.
    async fn finish(mut self, content: String, used: Used) -> Result<()> {
        let finishing = tokio::spawn(async move {
            self.count(&content, &used).await;
            self.store(&content, used.completion_tokens.unwrap_or(0)).await
        });
        finishing.await.map_err(Error::internal)?
    }

    /// Stores an incomplete answer, and counts what it used so far.
    async fn store_half(&mut self, content: &str, used: &Used) {
        self.count(content, used).await;
        if let Err(error) = self.store(content, used.completion_tokens.unwrap_or(0)).await {
            tracing::error!(%error, "half an answer was not stored");
        }
    }

    /// What the request used, by estimates that err upwards where the answer does not say so.
    fn answered(&self, content: &str, used: &Used) -> Answered {
        Answered {
            request_id: self.request_id.clone(),
            token_name: self.instance.as_str().to_owned(),
            user_id: Some(self.user.clone()),
            prompt_tokens: used.prompt_tokens.unwrap_or(self.input_tokens),
            completion_tokens: used.completion_tokens.unwrap_or_else(|| text_tokens(content.len())),
            estimated: used.prompt_tokens.is_none() || used.completion_tokens.is_none(),
            began_at: self.began_at,
        }
    }

    /// Counts an answer against the daily quota until the gateway's log has it. From then on nothing is reserved for it.
    async fn count(&mut self, content: &str, used: &Used) {
        let answered = self.answered(content, used);
        match unlogged::count(&self.app, answered).await {
            Ok(()) => self.reservation = None,
            // What was reserved is held until the row must be there.
            Err(error) => tracing::error!(%error, "an answer is not counted before it is in the gateway's log"),
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
                detail: request_log::Detail { protocol: "chat".into(), ..request_log::Detail::default() },
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
    /// The client left before the answer, or what it used could not be written down. The gateway may have asked the
    /// model all the same: its input counts until the row is there, and the reservation is kept until it must be.
    fn drop(&mut self) {
        let (Some(reservation), Ok(runtime)) = (self.reservation.take(), tokio::runtime::Handle::try_current()) else {
            return;
        };
        let (app, answered) =
            (self.app.clone(), self.answered("", &Used { completion_tokens: Some(0), ..Used::default() }));
        runtime.spawn(async move {
            if let Err(error) = unlogged::count(&app, answered).await {
                tracing::error!(%error, "a request is not counted before it is in the gateway's log");
            }
            tokio::time::sleep(app.upstream.gateway.kind().row_delay).await;
            drop(reservation);
        });
    }
}

impl Failure {
    fn unanswered(error: Error) -> Failure {
        Failure { error, answered: false, of_key: false }
    }

    fn odd(why: impl std::fmt::Display) -> Failure {
        Failure { error: Error::from(Kind::Gateway).with_operator(why), answered: true, of_key: false }
    }
}
