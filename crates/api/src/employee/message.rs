//! The employee's own messages: saved beside what a client sends elsewhere, looked through, exported.

use axum::body::{Body as HttpBody, Bytes};
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use base::id::{InstanceId, MessageId, UserId};
use base::{Error, Kind, Listing, Page, Text};
use fleet::chat::message::{self, ChatMessage, MessageFilter, Save};
use futures_util::{Stream, StreamExt as _, stream};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::envelope::{self, Data};
use crate::error::ApiError;
use crate::extract::{Answer, Body, Employee, Paging, Query, State};
use crate::state::{Api, Shared};
use crate::words::ChatRole;

/// A reply may be long.
const BODY_LIMIT: usize = 8 * 1024 * 1024;

/// Messages that are in memory at once, whatever is asked for: each may be long.
const BATCH: i64 = 10;

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(save))
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .routes(routes!(history))
        .routes(routes!(history_by_its_older_name))
        .routes(routes!(conversations))
        .routes(routes!(export))
}

#[derive(Deserialize, ToSchema)]
pub struct SaveMessage {
    #[schema(value_type = String, min_length = 1, max_length = 100, example = "assistant-01")]
    instance_id: Text<100>,
    role: ChatRole,
    /// At most 256 KiB.
    #[schema(min_length = 1, example = "What is a tide pool?")]
    content: String,
    /// Of an assistant's reply; 0 for the user's own words.
    #[serde(default)]
    #[schema(minimum = 0)]
    tokens: i64,
    /// The client's own id of the message: saved again under the same, it is not stored again.
    client_id: Option<Uuid>,
    /// Groups messages into conversations.
    #[serde(default)]
    #[schema(value_type = Option<String>, max_length = 200, example = "agent:main:main")]
    session_key: Option<Text<200>>,
}

/// Stores a message of a chat with an own instance.
///
/// What POST /me/chat stored itself (the same role and words within ten minutes) is recognised once and not stored twice; so is
/// what is saved up to a minute before POST /me/chat. Of each user on each instance the newest 5,000 messages are kept. Every refusal of the body is
/// "bad request"; the body may have 8 MiB, the content 256 KiB.
#[utoipa::path(post, path = "/me/chat/save", tag = "chat", request_body = SaveMessage, responses(
    (status = 200, description = "stored"),
    (status = 403, description = "the instance is not one's own"),
    (status = 500, description = "save failed"),
))]
async fn save(who: Employee, api: State, body: Result<Body<SaveMessage>, ApiError>) -> Answer<()> {
    let plain = |ApiError(error): ApiError| match error.kind {
        // The interface fixes this message; what was wrong is in the log.
        Kind::BadRequest => Error::from(Kind::BadRequest).with_operator(error),
        _ => error,
    };
    let Body(body) = body.map_err(plain)?;
    let save = Save {
        instance_id: InstanceId::named(body.instance_id.as_str()),
        role: body.role.into(),
        content: body.content,
        tokens: body.tokens,
        client_id: body.client_id.map(|id| id.to_string()),
        session_key: body.session_key.map(Into::into).unwrap_or_default(),
    };
    if save.instance_id.as_str().is_empty() {
        return Err(Kind::BadRequest.into());
    }
    message::save(&api.app, &who.0, save).await?;
    Ok(Data(()))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Which {
    /// Messages with this instance only.
    instance_id: Option<String>,
    /// Messages of this conversation only.
    session_key: Option<String>,
    /// Messages that contain this text, in whatever case. A list looks through the newest 20,000 messages.
    q: Option<String>,
}

impl Which {
    fn instance(&self) -> Option<InstanceId> {
        self.instance_id.as_ref().filter(|id| !id.is_empty()).map(InstanceId::named)
    }

    fn filter<'a>(&'a self, instance: Option<&'a InstanceId>) -> MessageFilter<'a> {
        MessageFilter {
            instance,
            session_key: self.session_key.as_deref().filter(|key| !key.is_empty()),
            q: self.q.as_deref(),
            search_before: None,
            searched_since: None,
        }
    }
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Before {
    /// Only what is older than the message with this id.
    before: Option<String>,
    /// Searches further back: the `searched_since` of the answer before.
    #[param(value_type = Option<String>, format = DateTime)]
    search_before: Option<Timestamp>,
}

#[derive(Serialize, ToSchema)]
pub struct Message {
    id: String,
    instance_id: String,
    role: ChatRole,
    content: String,
    tokens: i64,
    /// Empty outside of a conversation.
    session_key: String,
    #[schema(example = "2026-11-15T09:30:00.000+01:00")]
    created_at: String,
}

impl Message {
    fn new(api: &Api, message: ChatMessage) -> Message {
        Message {
            id: message.id.into(),
            instance_id: message.instance_id.into(),
            role: message.role.into(),
            content: message.content,
            tokens: message.tokens,
            session_key: message.session_key,
            created_at: api.zone().show(message.created_at),
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct History {
    messages: Vec<Message>,
    /// How many there are in all; with `before`, how many are older.
    total: i64,
    page: i64,
    size: i64,
    /// Where a text is asked for: only messages since then were looked through, and `total` is of these. null when there are no
    /// older ones. `search_before` goes on from here.
    #[schema(example = "2026-11-10T09:30:00.000+01:00")]
    searched_since: Option<String>,
}

/// Messages as they are asked for, batch by batch, so that a long history is never in memory as a whole.
struct Reading {
    api: Shared,
    user: UserId,
    which: Which,
    format: Format,
    order: Order,
    /// How far back a search came.
    searched_since: Option<Timestamp>,
    /// A batch that was read already.
    ready: Option<Vec<ChatMessage>>,
    last: Option<ChatMessage>,
    /// How many may still come.
    left: i64,
}

enum Order {
    NewestFirst,
    OldestFirst,
}

impl Reading {
    /// The next messages as a text.
    async fn next(mut self) -> Result<Option<(Bytes, Reading)>, Error> {
        let size = self.left.min(BATCH);
        let batch = match self.ready.take() {
            Some(batch) => batch,
            None if size > 0 => self.read(size).await?,
            None => vec![],
        };
        let mut first = self.last.is_none();
        let Some(last) = batch.last() else { return Ok(None) };
        self.last = Some(last.clone());
        self.left = if (batch.len() as i64) < size { 0 } else { self.left - size };
        let mut text = String::new();
        for message in batch {
            let message = Message::new(&self.api, message);
            match self.format {
                Format::Json => {
                    text.push_str(if first { "\n" } else { ",\n" });
                    text.push_str(&serde_json::to_string(&message).map_err(Error::internal)?);
                }
                Format::Markdown => text.push_str(&markdown(&message)),
            }
            first = false;
        }
        Ok(Some((Bytes::from(text), self)))
    }

    async fn read(&self, size: i64) -> Result<Vec<ChatMessage>, Error> {
        let (app, user, instance) = (&self.api.app, &self.user, self.which.instance());
        let filter = MessageFilter { searched_since: self.searched_since, ..self.which.filter(instance.as_ref()) };
        match (&self.order, &self.last) {
            (Order::NewestFirst, Some(last)) => message::older(app, user, filter, last, size).await,
            (Order::NewestFirst, None) => Ok(vec![]),
            (Order::OldestFirst, last) => message::after(app, user, filter, last.as_ref(), size).await,
        }
    }
}

fn piece(text: impl Into<Bytes>) -> impl Stream<Item = Result<Bytes, Error>> {
    stream::iter([Ok(text.into())])
}

async fn found(api: Shared, user: UserId, which: Which, before: Before, paging: Paging) -> Result<Response, ApiError> {
    let page = paging.page(20)?;
    let instance = which.instance();
    let (before, search_before) = (before.before.map(MessageId::named), before.search_before);
    let first = Page { offset: page.offset, limit: page.limit.min(BATCH) };
    // Whatever is to be refused is refused here, before the answer begins.
    let filter = MessageFilter { search_before, ..which.filter(instance.as_ref()) };
    let listed = message::history(&api.app, &user, filter, before.as_ref(), first).await?;
    let searched_since = listed.searched_since.map(|at| api.zone().show(at));
    let (page, size) = (page.number(), page.limit);
    let around = History { messages: vec![], total: listed.total, page, size, searched_since };
    let around = serde_json::to_string(&around).map_err(Error::internal)?;
    let (head, tail) = around.split_once("[]").unwrap_or_default();
    let (head, tail) = (format!("{head}["), format!("]{tail}"));
    let reading = Reading {
        api,
        user,
        which,
        format: Format::Json,
        order: Order::NewestFirst,
        searched_since: listed.searched_since,
        ready: Some(listed.list),
        last: None,
        left: size,
    };
    let batches = stream::try_unfold(reading, Reading::next);
    Ok(envelope::in_pieces(piece(head).chain(batches).chain(piece(tail))))
}

/// One's own messages, newest first, those with instances that were given back included.
#[utoipa::path(get, path = "/me/chat/history", tag = "chat", params(Which, Before, Paging), responses(
    (status = 200, body = History),
    (status = 404, description = "there is no message `before`"),
))]
async fn history(
    who: Employee,
    api: State,
    Query(which): Query<Which>,
    Query(before): Query<Before>,
    paging: Paging,
) -> Result<Response, ApiError> {
    found(api.0, who.0.id, which, before, paging).await
}

/// The same as GET /me/chat/history, by its older name.
#[utoipa::path(get, path = "/me/history", tag = "chat", params(Which, Before, Paging), responses(
    (status = 200, body = History),
    (status = 404, description = "there is no message `before`"),
))]
async fn history_by_its_older_name(
    who: Employee,
    api: State,
    Query(which): Query<Which>,
    Query(before): Query<Before>,
    paging: Paging,
) -> Result<Response, ApiError> {
    found(api.0, who.0.id, which, before, paging).await
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct With {
    /// Conversations with this instance only.
    instance_id: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct Conversation {
    instance_id: String,
    /// For `session_key` of GET /me/chat/history.
    #[schema(example = "agent:main:main")]
    session_key: String,
    /// How many of its messages are kept.
    messages: i64,
    #[schema(example = "2026-11-15T09:30:00.000+01:00")]
    last_message_at: String,
}

/// One's own conversations, the last used first (beyond the spec): the session keys of the messages that are kept.
#[utoipa::path(get, path = "/me/chat/conversations", tag = "chat", params(With, Paging), responses((status = 200, body = Listing<Conversation>)))]
async fn conversations(
    who: Employee,
    api: State,
    Query(with): Query<With>,
    paging: Paging,
) -> Answer<Listing<Conversation>> {
    let instance = with.instance_id.filter(|id| !id.is_empty()).map(InstanceId::named);
    let found = message::conversations(&api.app, &who.0.id, instance.as_ref(), paging.page(50)?).await?;
    Ok(Data(found.map(|conversation| Conversation {
        instance_id: conversation.instance_id.into(),
        session_key: conversation.session_key,
        messages: conversation.messages,
        last_message_at: api.zone().show(conversation.last_at),
    })))
}

#[derive(Clone, Copy, Default, PartialEq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    #[default]
    Json,
    Markdown,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct As {
    #[serde(default)]
    #[param(inline, required = false)]
    format: Format,
}

/// What the file holds, as JSON.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it is written piece by piece")]
pub struct Exported {
    messages: Vec<Message>,
}

/// One's own messages as a file, oldest first, streamed.
///
/// JSON: `{"messages": […]}` with the items of GET /me/chat/history, without the envelope. Markdown: a heading for every
/// message, and its words as they are.
#[utoipa::path(get, path = "/me/chat/export", tag = "chat", extensions(("x-plain" = json!(true))), params(Which, As), responses((status = 200, description = "the file", content(
    (Exported = "application/json"),
    (String = "text/markdown"),
))))]
async fn export(
    who: Employee,
    api: State,
    Query(which): Query<Which>,
    Query(As { format }): Query<As>,
) -> Result<Response, ApiError> {
    let (api, user) = (api.0, who.0.id);
    let (kind, name, head, tail) = match format {
        Format::Json => ("application/json", "attachment; filename=\"messages.json\"", "{\"messages\":[", "]}\n"),
        Format::Markdown => ("text/markdown; charset=utf-8", "attachment; filename=\"messages.md\"", "", ""),
    };
    let (order, ready, last, left) = (Order::OldestFirst, None, None, i64::MAX);
    let reading = Reading { api, user, which, format, order, searched_since: None, ready, last, left };
    let batches = stream::try_unfold(reading, Reading::next);
    let body = HttpBody::from_stream(piece(head).chain(batches).chain(piece(tail)));
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (header::CONTENT_DISPOSITION, HeaderValue::from_static(name)),
    ];
    Ok((headers, body).into_response())
}

fn markdown(message: &Message) -> String {
    let who = match message.role {
        ChatRole::User => "You",
        ChatRole::Assistant => message.instance_id.as_str(),
    };
    format!("## {who} · {}\n\n{}\n\n", message.created_at, message.content.trim_end())
}
