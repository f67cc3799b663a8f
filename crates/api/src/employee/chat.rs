//! Chat through the platform: the question forwarded to the LLM gateway, the answer stored.

use axum::body::Bytes;
use axum::extract::DefaultBodyLimit;
use axum::response::{IntoResponse, Response};
use base::id::InstanceId;
use base::{Error, Text};
use fleet::chat::{self, Piece, Question, Streaming};
use futures_util::stream;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::envelope::Data;
use crate::error::{ApiError, error_event};
use crate::event_stream;
use crate::extract::{Body, Employee, State};
use crate::state::Shared;

/// A conversation may be long.
const BODY_LIMIT: usize = 8 * 1024 * 1024;

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default().routes(routes!(ask)).layer(DefaultBodyLimit::max(BODY_LIMIT))
}

#[derive(Deserialize, ToSchema)]
pub struct Ask {
    #[schema(value_type = String, max_length = 100, example = "assistant-01")]
    instance_id: Text<100>,
    /// What the employee says; this or `messages`.
    #[schema(example = "What is a tide pool?")]
    message: Option<String>,
    /// The conversation in the chat-completions shape; the last message is the user's.
    #[schema(value_type = Option<Vec<Object>>)]
    messages: Option<Vec<Value>>,
    /// The instance's when omitted; where it has none, the first of the fallback chain, as the assistant itself does.
    #[schema(value_type = Option<String>, max_length = 100, example = "claude-sonnet-4-6")]
    model: Option<Text<100>>,
    /// Answer as server-sent events.
    #[serde(default)]
    stream: bool,
}

#[derive(Serialize, ToSchema)]
pub struct Usage {
    prompt_tokens: i64,
    completion_tokens: i64,
    total_tokens: i64,
}

#[derive(Serialize, ToSchema)]
pub struct Reply {
    /// The gateway's own id of the answer.
    id: String,
    model: String,
    content: String,
    #[schema(example = "stop")]
    finish_reason: Option<String>,
    usage: Usage,
    latency_ms: i64,
}

/// Asks a model with the instance's own key; question and answer are stored (5,000 messages per user and instance).
///
/// With `stream`, the answer is an event stream: chat-completions chunks byte for byte as the LLM gateway sends
/// them, ended by `[DONE]`; when it breaks off after its beginning, an event `error` carries the envelope. An unknown model
/// is 400; a used-up daily quota 429 (4291). Leaving early stops the model. The body may have 8 MiB.
#[utoipa::path(post, path = "/me/chat", tag = "chat", request_body = Ask, responses(
    (status = 200, description = "the answer, or with `stream` an event stream", content(
        (Reply = "application/json"),
        (String = "text/event-stream"),
    )),
    (status = 429, description = "daily quota used up, or the model is busy"),
    (status = 502, description = "the LLM gateway answered badly"),
    (status = 503, description = "the LLM gateway cannot be reached"),
    (status = 504, description = "the LLM gateway took too long"),
))]
async fn ask(who: Employee, api: State, Body(body): Body<Ask>) -> Result<Response, ApiError> {
    let messages = match (body.message, body.messages) {
        (Some(message), None) => vec![json!({"role": "user", "content": message})],
        (None, Some(messages)) => messages,
        (Some(_), Some(_)) => return Err(Error::field("message", "and messages exclude each other").into()),
        (None, None) => return Err(Error::field("message", "is missing, and so is messages").into()),
    };
    let instance_id = InstanceId::named(body.instance_id.as_str());
    let question = Question { instance_id, messages, model: body.model.map(Into::into) };
    if body.stream {
        return Ok(events(chat::ask_stream(&api.app, &who.0, question).await?));
    }
    let answer = chat::ask(&api.app, &who.0, question).await?;
    let reply = Reply {
        id: answer.id,
        model: answer.model,
        content: answer.content,
        finish_reason: answer.finish_reason,
        usage: Usage {
            prompt_tokens: answer.prompt_tokens,
            completion_tokens: answer.completion_tokens,
            total_tokens: answer.prompt_tokens + answer.completion_tokens,
        },
        latency_ms: answer.latency_ms,
    };
    Ok(Data(reply).into_response())
}

fn events(answer: Streaming) -> Response {
    let pieces = stream::unfold(answer, |mut answer| async move {
        let bytes = match answer.next().await? {
            Piece::Bytes(bytes) => bytes,
            Piece::Failed(error) => error_event(error),
        };
        Some((Bytes::from(bytes), answer))
    });
    event_stream::response(pieces)
}
