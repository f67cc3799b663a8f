//! A request in one of the protocols: from the body to the answer. Only a quota near its limit makes it wait for the
//! database.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue};
use http::request::Parts;
use http::{Request, Response};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout};

use crate::Gateway;
use crate::body::{self, joined};
use crate::error::{Refusal, Shape};
use crate::fallback::{self, Passed, Question};
use crate::header::{self, ANTHROPIC_ID, MODEL, REQUEST_ID};
use crate::keys::Caller;
use crate::limit::{Reserved, Used};
use crate::protocol::Protocol;
use crate::provider::{self, Answer};
use crate::read_on::Attended;
use crate::relay::Relay;
use crate::reply::Reply;
use crate::request::Asked;
use crate::sticky::{Place, StickyKey};
use crate::ticket::{Outcome, Ticket};
use crate::turn::{self, Chooser};

/// The limit for an answer that is not streamed.
const ANSWER_LIMIT: usize = 64 * 1024 * 1024;

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

/// Answers a request in a protocol.
pub async fn handle(
    gateway: &Arc<Gateway>,
    protocol: &'static Protocol,
    caller: Arc<Caller>,
    request: Request<Incoming>,
) -> Response<Reply> {
    if protocol.is_billed && !gateway.log.is_writable() {
        metrics::counter!("tidepool_gateway_refused_total", "code" => "unavailable").increment(1);
        return Refusal::unavailable("the request log cannot be written").response(protocol.shape, None);
    }
    let ticket = Ticket::new(gateway.clone(), caller.clone(), protocol);
    let id = ticket.id.clone();
    let (head, body) = request.into_parts();
    let mut response = match body::read(gateway, &head.headers, body).await {
        Ok((body, room)) => match Asked::parse(protocol, body) {
            Ok(asked) => {
                let (key, progress) = (ticket.key().clone(), ticket.progress().clone());
                let work = answer(gateway.clone(), caller, head, asked, room, ticket);
                Attended::new(gateway.clone(), key, progress, work).await
            }
            Err(refusal) => refuse(ticket, refusal.into()),
        },
        Err(refusal) => refuse(ticket, refusal.into()),
    };
    if let Ok(value) = HeaderValue::from_str(&id) {
        let headers = response.headers_mut();
        if protocol.shape == Shape::Anthropic && !headers.contains_key(ANTHROPIC_ID) {
            headers.insert(ANTHROPIC_ID, value.clone());
        }
        headers.insert(REQUEST_ID, value);
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
    let shape = ticket.protocol().shape;
    match ticket.finish(&outcome) {
        Ok(()) => refusal.response(shape, Some(&ticket.id)),
        Err(_) => Refusal::unavailable("the request log cannot be written").response(shape, Some(&ticket.id)),
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

/// Gets the answer. It continues when the client disconnects: see `Attended`.
async fn answer(
    gateway: Arc<Gateway>,
    caller: Arc<Caller>,
    head: Parts,
    asked: Asked,
    room: Option<OwnedSemaphorePermit>,
    mut ticket: Ticket,
) -> Response<Reply> {
    let answered = forward(&gateway, &caller, &head, asked, &mut ticket).await;
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
    head: &Parts,
    asked: Asked,
    ticket: &mut Ticket,
) -> Result<Answered, Failed> {
    let table = gateway.models.now();
    let protocol = asked.protocol;
    let chooser = Chooser { providers: &gateway.providers, pins: &gateway.pins, of: ticket.key(), protocol };
    let mut turns = chooser.turns(&table, asked.model())?;
    let sticky_key = StickyKey { key: ticket.key().clone(), model: turns[0].model.id.clone(), protocol: protocol.name };
    let first = turns[0].place(&gateway.echo);
    if let Some(place) = gateway.sticky.find(&sticky_key) {
        turn::put_first(&mut turns, &place, &gateway.echo);
    }
    // The maximum over the chain: whichever model answers, it costs no more than this.
    let input = turns.iter().map(|turn| asked.input.tokens(turn.kind(), &turn.model.id)).max().unwrap_or(0);
    ticket.asks(sticky_key.model.clone(), turns[0].by(&gateway.echo), &asked, input);
    if let Some(answer) = &asked.fields.previous {
        ticket.continues(gateway.owners.tokens_of(answer, caller).await?);
    }
    if protocol.is_billed {
        let (input, output) = (ticket.input(), asked.fields.output.tokens);
        let tokens = input.saturating_add(output);
        let units = turns.iter().filter_map(|turn| Some(turn.model.prices()?.most(input, output))).max().unwrap_or(0);
        ticket.holds(Reserved::take(&gateway.app, caller, Used { tokens, units }).await?);
    }
    let from = provider::ClientRequest { protocol, headers: &head.headers, query: head.uri.query() };
    let question =
        Question { asked: &asked, from, deadline: Instant::now() + gateway.timing.answer, echo: &gateway.echo };
    let asking = fallback::ask(&gateway.providers, &gateway.waits, &turns, question, ticket);
    let passed = asking.await.map_err(|(refusal, detail)| Failed { refusal, detail: Some(detail) })?;
    let Passed { response, by, sticks, pinned, key } = passed;
    if let Some((key, is_first)) = pinned {
        gateway.pins.keep(ticket.key(), &by.model.id, (!is_first).then_some(&key));
    }
    let place = Place { model: by.model.id.clone(), provider: by.provider.clone() };
    if place == first {
        gateway.sticky.forget(&sticky_key);
    } else if sticks {
        gateway.sticky.keep(&sticky_key, &place);
    }
    let (mut parts, answer) = response.into_parts();
    header::clean(&mut parts.headers);
    if *by.model.id != *asked.model()
        && let Ok(model) = HeaderValue::from_str(&by.model.id)
    {
        parts.headers.insert(MODEL, model);
    }
    if parts.status.is_success() && is_stream(&parts.headers) {
        let hide_usage = asked.hides_usage();
        return Ok(Answered::Stream { head: Response::from_parts(parts, ()), answer, hide_usage });
    }
    let pieces = read_answer(answer, gateway, ticket).await.map_err(|why| Failed {
        refusal: Refusal::bad_gateway(format!("{} at {} broke off its answer", by.model.id, by.provider)),
        detail: Some(why),
    })?;
    let whole = joined(&pieces);
    let written = if parts.status.is_success() {
        (protocol.whole)(&whole, &mut ticket.seen);
        ticket.finish(&Outcome::Answered(ticket.seen.usage))
    } else {
        let message = fallback::message(&whole, key.as_deref());
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

/// Reads an answer to its end: its usage must be logged before it is sent, and half an answer is of no use.
async fn read_answer(mut answer: Answer, gateway: &Gateway, ticket: &mut Ticket) -> Result<VecDeque<Bytes>, String> {
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
        ticket.answer_came();
        size += piece.len();
        let limit = if ticket.progress().has_left() { gateway.timing.read_on.whole_bytes } else { ANSWER_LIMIT };
        if size > limit {
            return Err(format!("the answer has more than {limit} bytes"));
        }
        pieces.push_back(piece);
        if answer.is_end_stream() {
            return Ok(pieces);
        }
    }
}

fn is_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    kind.len() >= 17 && kind[..17].eq_ignore_ascii_case(b"text/event-stream") && !headers.contains_key(CONTENT_ENCODING)
}
