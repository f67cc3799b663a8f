//! The gateway's own listener: HTTP/1.1 with a timeout for every wait, its routes, and the authentication by sub key.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use http::header::{ALLOW, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use listener::Turn;
use serde::Serialize;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::Gateway;
use crate::error::{Refusal, Shape};
use crate::keys::{Caller, NotNow, Refused};
use crate::patient::Patient;
use crate::reply::Reply;
use crate::{body, forward, model_list, protocol};

/// Serves until `stop` is true. Then answers under way have `Timing::drain` to finish, and the rest is cut.
pub async fn serve(gateway: Arc<Gateway>, listener: TcpListener, stop: watch::Receiver<bool>) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(gateway.timing.head);
    let served = gateway.clone();
    let connected = move |stream, _, turn: Turn| {
        let (gateway, requests, http) = (served.clone(), turn.requests(), http.clone());
        async move {
            let stream = TokioIo::new(Patient::new(stream, gateway.timing.reader));
            let service = service_fn(move |request| {
                requests.begun();
                respond(gateway.clone(), request)
            });
            turn.serve(http.serve_connection(stream, service)).await;
        }
    };
    let mut ending = listener::serve(listener, gateway.timing.head, stop, connected).await;
    if tokio::time::timeout(gateway.timing.drain, ending.finished()).await.is_err() {
        tracing::warn!("some answers of the gateway are cut short");
        gateway.cuts_short();
        ending.cut();
    }
    ending.finished().await;
}

async fn respond(gateway: Arc<Gateway>, request: Request<Incoming>) -> Result<Response<Reply>, Infallible> {
    let shape = shape_of(&request);
    match AssertUnwindSafe(route(&gateway, request)).catch_unwind().await {
        Ok(Ok(response)) => Ok(response),
        Ok(Err(refusal)) => {
            metrics::counter!("tidepool_gateway_refused_total", "code" => refusal.code).increment(1);
            Ok(refusal.response(shape, None))
        }
        Err(_) => {
            tracing::error!("a request panicked");
            Ok(Refusal::internal().response(shape, None))
        }
    }
}

/// The format of answers that no protocol decides: Anthropic's clients name a version of the API in every request.
fn shape_of(request: &Request<Incoming>) -> Shape {
    match protocol::at(request.uri().path()) {
        Some(protocol) => protocol.shape,
        None if request.headers().contains_key("anthropic-version") => Shape::Anthropic,
        None => Shape::OpenAi,
    }
}

async fn route(gateway: &Arc<Gateway>, request: Request<Incoming>) -> Result<Response<Reply>, Refusal> {
    let (path, shape) = (request.uri().path(), shape_of(&request));
    let protocol = protocol::at(path);
    let known = match path {
        _ if protocol.is_some() => Method::POST,
        "/v1/models" | "/healthz" | "/live" => Method::GET,
        _ if path.starts_with("/v1/models/") => Method::GET,
        _ => return Err(Refusal::unknown_path(&protocol::ALL.map(|protocol| protocol.path))),
    };
    if *request.method() != known {
        let mut response = Refusal::unknown_method(known.as_str()).response(shape, None);
        if let Ok(allowed) = HeaderValue::from_str(known.as_str()) {
            response.headers_mut().insert(ALLOW, allowed);
        }
        return Ok(response);
    }
    if path == "/healthz" {
        return Ok(json(&serde_json::json!({"status": "ok"})));
    }
    let caller = match authenticate(gateway, request.headers()).await {
        Ok(caller) => caller,
        Err(refusal) => {
            let (head, body) = request.into_parts();
            body::discard(&head.headers, body).await;
            return Err(refusal);
        }
    };
    if let Some(protocol) = protocol {
        return Ok(forward::handle(gateway, protocol, caller, request).await);
    }
    match path {
        "/v1/models" => Ok(json(&model_list::list(gateway, shape, request.uri().query())?)),
        "/live" if caller.is_platform() => Ok(json(&live(gateway))),
        "/live" => Err(Refusal::no_access()),
        _ => {
            let id = path.strip_prefix("/v1/models/").unwrap_or_default();
            let model = model_list::find(gateway, shape, id);
            model.map(|model| json(&model)).ok_or_else(|| Refusal::unknown_model(id, "does not exist"))
        }
    }
}

/// The key of a request, in any of the headers in which clients send it.
fn key_of(headers: &HeaderMap) -> Option<&str> {
    let text = |name: &HeaderName| {
        let value = headers.get(name)?.to_str().ok()?.trim();
        (!value.is_empty()).then_some(value)
    };
    let bearer = text(&AUTHORIZATION).and_then(|given| {
        let (scheme, key) = given.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(key.trim())
    });
    bearer.or_else(|| KEY_HEADERS.iter().find_map(text))
}

/// Anthropic's clients send the first, Azure's the second.
const KEY_HEADERS: [HeaderName; 2] = [HeaderName::from_static("x-api-key"), HeaderName::from_static("api-key")];

async fn authenticate(gateway: &Arc<Gateway>, headers: &HeaderMap) -> Result<Arc<Caller>, Refusal> {
    let key = key_of(headers).ok_or_else(Refusal::unknown_key)?;
    let found = gateway.keys.caller(key).await;
    let caller = found.map_err(|NotNow| Refusal::unavailable("the gateway's database does not answer"))?;
    let caller = caller.ok_or_else(Refusal::unknown_key)?;
    match caller.refused {
        None => Ok(caller),
        Some(Refused::Disabled) => Err(Refusal::disabled_key("an administrator switched it off")),
        Some(Refused::UserRevoked) => Err(Refusal::disabled_key("its user's account is revoked")),
        Some(Refused::QuotaSpent) => Err(Refusal::quota("the day's quota of the key's user is used up")),
    }
}

#[derive(Serialize)]
struct List<T> {
    object: &'static str,
    data: Vec<T>,
}

/// The requests that are under way in this process.
fn live(gateway: &Gateway) -> List<crate::live::Shown> {
    List { object: "list", data: gateway.live.list(|at| gateway.app.zone.show(at)) }
}

fn json(value: &impl Serialize) -> Response<Reply> {
    let Ok(body) = serde_json::to_vec(value) else { return Refusal::internal().response(Shape::OpenAi, None) };
    let mut response = Response::new(Reply::full(body));
    *response.status_mut() = StatusCode::OK;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
