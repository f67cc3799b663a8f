//! POST /v1/chat/completions: from the body to the answer. Only a quota near its limit makes it wait for the database.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    ALT_SVC, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HeaderMap, HeaderName, HeaderValue,
    PROXY_AUTHENTICATE, SET_COOKIE, STRICT_TRANSPORT_SECURITY, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{Request, Response};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout};

use crate::Gateway;
use crate::error::Refusal;
use crate::fallback::{self, Passed, Question};
use crate::keys::Caller;
use crate::limit::{Reserved, Used};
use crate::progress::Progress;
use crate::provider::Answer;
use crate::read_on::Attended;
use crate::relay::Relay;
use crate::reply::Reply;
use crate::request::Asked;
use crate::ticket::{Outcome, Ticket};
use crate::tokens;

/// Bodies over this are 413.
pub const BODY_LIMIT: usize = 8 * 1024 * 1024;
/// Smaller bodies need no permit.
const SMALL_BODY: u64 = 64 * 1024;
/// How long the rest of a refused body is read.
const DISCARD: Duration = Duration::from_secs(3);
/// The limit for an answer that is not streamed.
const ANSWER_LIMIT: usize = 64 * 1024 * 1024;

pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The provider's own request id.
const UPSTREAM_ID: HeaderName = HeaderName::from_static("x-upstream-request-id");
/// The model that answered, where it is not the one that was asked for.
const MODEL: HeaderName = HeaderName::from_static("x-tidepool-model");

/// Response headers that are about the provider's connection or site, not about the answer.
const NOT_PASSED_ON: [HeaderName; 12] = [
    CONNECTION,
    CONTENT_LENGTH,
    TRANSFER_ENCODING,
    TE,
    TRAILER,
    UPGRADE,
    PROXY_AUTHENTICATE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    SET_COOKIE,
    STRICT_TRANSPORT_SECURITY,
    ALT_SVC,
];

/// Why there is no answer: the refusal for the client, and the detail for the log.
struct Failed {
    refusal: Refusal,
    detail: Option<String>,
}

impl From<Refusal> for Failed {
    fn from(refusal: Refusal) -> Failed {
        Failed { refusal, detail: None }
    }
}

pub async fn completions(gateway: &Arc<Gateway>, caller: Arc<Caller>, request: Request<Incoming>) -> Response<Reply> {
    if !gateway.log.is_writable() {
        metrics::counter!("tidepool_gateway_refused_total", "code" => "unavailable").increment(1);
        return Refusal::unavailable("the request log cannot be written").response();
    }
    let ticket = Ticket::new(gateway.clone(), caller.clone());
    let id = ticket.id.clone();
    let (head, body) = request.into_parts();
    let mut response = match read(gateway, &head.headers, body).await {
        Ok((asked, room)) => {
            let (key, progress) = (ticket.key().clone(), ticket.progress().clone());
            let work = answer(gateway.clone(), caller, head.headers, asked, room, ticket);
            Attended::new(gateway.clone(), key, progress, work).await
        }
        Err(refusal) => refuse(ticket, refusal.into()),
    };
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    response
}

fn refuse(mut ticket: Ticket, failed: Failed) -> Response<Reply> {
    let Failed { refusal, detail } = failed;
    metrics::counter!("tidepool_gateway_refused_total", "code" => refusal.code).increment(1);
    let why = detail.as_deref().unwrap_or(&refusal.message);
    let progress = ticket.progress();
    let outcome = match progress.has_left() && progress.is_asked() {
        // The provider may bill the request, but its answer was not read: the reserved amount counts.
        true => Outcome::BrokenOff(why),
        false => Outcome::Failed(why),
    };
    match ticket.finish(&outcome) {
        Ok(()) => refusal.response(),
        Err(_) => Refusal::unavailable("the request log cannot be written").response(),
    }
}

enum Answered {
    /// Read to its end and logged.
    Whole(Response<Reply>),
    Stream {
        head: Response<()>,
        answer: Answer,
        hide_usage: bool,
    },
}

/// Reads and parses the body. A large one has a permit for as long as it is in memory.
async fn read(
    gateway: &Arc<Gateway>,
    headers: &HeaderMap,
    body: Incoming,
) -> Result<(Asked, Option<OwnedSemaphorePermit>), Refusal> {
    let room = match room_for(gateway, &body).await {
        Ok(room) => room,
        Err(refusal) => {
            discard(headers, body).await;
            return Err(refusal);
        }
    };
    let body = match timeout(gateway.timing.body, read_body(headers, body)).await {
        Ok(body) => body?,
        Err(_) => return Err(Refusal::slow_body()),
    };
    Ok((Asked::parse(body)?, room))
}

/// Gets the answer. It continues when the client disconnects: see `Attended`.
async fn answer(
    gateway: Arc<Gateway>,
    caller: Arc<Caller>,
    headers: HeaderMap,
    asked: Asked,
    room: Option<OwnedSemaphorePermit>,
    mut ticket: Ticket,
) -> Response<Reply> {
    let answered = forward(&gateway, &caller, &headers, asked, &mut ticket).await;
    drop(room);
    match answered {
        Ok(Answered::Whole(response)) => response,
        Ok(Answered::Stream { head, answer, hide_usage }) => {
            let relay = Relay::new(answer, hide_usage, ticket, gateway.timing.silence);
            head.map(|()| Reply::Stream(relay))
        }
        Err(failed) => refuse(ticket, failed),
    }
}

async fn forward(
    gateway: &Arc<Gateway>,
    caller: &Caller,
    headers: &HeaderMap,
    asked: Asked,
    ticket: &mut Ticket,
) -> Result<Answered, Failed> {
    let table = gateway.models.now();
    let turns = fallback::turns(&table, &gateway.providers, &asked.model)?;
    // The maximum over the chain: whichever model answers, it costs no more than this.
    let input = turns.iter().map(|turn| asked.input.tokens(turn.model.kind, &turn.model.id)).max().unwrap_or(0);
    ticket.asks(turns[0].by(&gateway.echo), &asked, input);
    let tokens = input.saturating_add(asked.output.tokens);
    let units = turns.iter().map(|turn| turn.model.price.quota(tokens)).max().unwrap_or(0);
    ticket.holds(Reserved::take(&gateway.app, caller, Used { tokens, units }).await?);
    let question =
        Question { asked: &asked, headers, deadline: Instant::now() + gateway.timing.answer, echo: &gateway.echo };
    let asking = fallback::ask(&gateway.providers, &gateway.waits, &turns, question, ticket);
    let Passed { response, by } = asking.await.map_err(|(refusal, detail)| Failed { refusal, detail: Some(detail) })?;
    let (mut parts, answer) = response.into_parts();
    clean(&mut parts.headers);
    if *by.model.id != *asked.model
        && let Ok(model) = HeaderValue::from_str(&by.model.id)
    {
        parts.headers.insert(MODEL, model);
    }
    if parts.status.is_success() && is_stream(&parts.headers) {
        let hide_usage = asked.stream && !asked.wants_usage;
        return Ok(Answered::Stream { head: Response::from_parts(parts, ()), answer, hide_usage });
    }
    let pieces = read_answer(answer, gateway, ticket.progress()).await.map_err(|why| Failed {
        refusal: Refusal::bad_gateway(format!("{} at {} broke off its answer", by.model.id, by.provider)),
        detail: Some(why),
    })?;
    let whole = joined(&pieces);
    let written = if parts.status.is_success() {
        let usage = tokens::of_answer(&whole);
        if usage.is_none() {
            (ticket.seen.written, ticket.seen.thought) = (tokens::written(&whole), tokens::thought(&whole));
        }
        ticket.finish(&Outcome::Answered(usage))
    } else {
        let message = fallback::message(&whole);
        let message = format!("{} at {} answered {}: {message}", by.model.id, by.provider, parts.status.as_u16());
        ticket.finish(&Outcome::Failed(&message))
    };
    if ticket.overdrawn {
        // In a task of its own: a client that disconnects would drop `hand_back` in the middle, and the amount that it
        // had just taken out of an account would be lost.
        let app = gateway.app.clone();
        let returned = tokio::spawn(async move { app.quotas.hand_back(&app, false).await }).await;
        if let Err(error) = returned.map_err(base::Error::internal).flatten() {
            tracing::warn!(%error, "what was used beyond an estimate is not told yet");
        }
    }
    match written {
        Ok(()) => Ok(Answered::Whole(Response::from_parts(parts, Reply::Whole(pieces)))),
        Err(_) => Err(Refusal::unavailable("the request log cannot be written").into()),
    }
}

/// Waits for a permit for a large body. Large bodies stay in memory until the answer begins, so their sum is limited.
async fn room_for(gateway: &Gateway, body: &Incoming) -> Result<Option<OwnedSemaphorePermit>, Refusal> {
    // A body without a length may be as long as the limit.
    let size = body.size_hint().exact().unwrap_or(BODY_LIMIT as u64);
    if size > BODY_LIMIT as u64 {
        return Err(Refusal::too_large(BODY_LIMIT));
    }
    let units = (size / SMALL_BODY) as u32;
    if units == 0 {
        return Ok(None);
    }
    match timeout(gateway.timing.body, gateway.room.clone().acquire_many_owned(units)).await {
        Ok(Ok(room)) => Ok(Some(room)),
        _ => Err(Refusal::unavailable("too many large requests at once")),
    }
}

/// The permits for large bodies, one for each `SMALL_BODY` bytes: 256 MiB in all.
pub const ROOM: usize = 256 * 1024 * 1024 / SMALL_BODY as usize;

/// Reads and drops what a client still sends, within limits. If the connection closed with unread bytes, the client
/// would lose the answer. A client that sent `Expect` has not sent the body yet, and need not.
pub async fn discard(headers: &HeaderMap, mut body: Incoming) {
    if headers.contains_key(EXPECT) {
        return;
    }
    let mut left = 2 * BODY_LIMIT;
    let discarding = async {
        while let Some(Ok(frame)) = body.frame().await {
            left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
            if left == 0 {
                break;
            }
        }
    };
    timeout(DISCARD, discarding).await.ok();
}

async fn read_body(headers: &HeaderMap, mut body: Incoming) -> Result<Bytes, Refusal> {
    let mut pieces: VecDeque<Bytes> = VecDeque::new();
    let mut size = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Refusal::bad_request("the body could not be read"))?;
        let Ok(piece) = frame.into_data() else { continue };
        size += piece.len();
        if size > BODY_LIMIT {
            discard(headers, body).await;
            return Err(Refusal::too_large(BODY_LIMIT));
        }
        pieces.push_back(piece);
        if body.is_end_stream() {
            break;
        }
    }
    Ok(joined(&pieces))
}

/// Reads an answer to its end: its usage must be logged before it is sent, and half an answer is of no use.
async fn read_answer(mut answer: Answer, gateway: &Gateway, progress: &Progress) -> Result<VecDeque<Bytes>, String> {
    let silence = gateway.timing.silence;
    let mut pieces = VecDeque::new();
    let mut size = 0;
    loop {
        let frame = match timeout(silence, answer.frame()).await {
            Ok(Some(Ok(frame))) => frame,
            Ok(Some(Err(error))) => return Err(format!("the provider broke off: {error}")),
            Ok(None) => return Ok(pieces),
            Err(_) => return Err("the provider fell silent in the middle of its answer".into()),
        };
        let Ok(piece) = frame.into_data() else { continue };
        size += piece.len();
        let limit = if progress.has_left() { gateway.timing.read_on.whole_bytes } else { ANSWER_LIMIT };
        if size > limit {
            return Err(format!("the answer has more than {limit} bytes"));
        }
        pieces.push_back(piece);
        if answer.is_end_stream() {
            return Ok(pieces);
        }
    }
}

/// Joins the pieces; a single piece, the usual case, is not copied.
fn joined(pieces: &VecDeque<Bytes>) -> Bytes {
    match pieces.len() {
        0 => Bytes::new(),
        1 => pieces[0].clone(),
        _ => {
            let mut all = Vec::with_capacity(pieces.iter().map(Bytes::len).sum());
            pieces.iter().for_each(|piece| all.extend_from_slice(piece));
            all.into()
        }
    }
}

fn is_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    kind.len() >= 17 && kind[..17].eq_ignore_ascii_case(b"text/event-stream") && !headers.contains_key(CONTENT_ENCODING)
}

fn clean(headers: &mut HeaderMap) {
    for name in &NOT_PASSED_ON {
        headers.remove(name);
    }
    if let Some(id) = headers.remove(REQUEST_ID) {
        headers.insert(UPSTREAM_ID, id);
    }
}
