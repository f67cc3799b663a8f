//! The gateway's own listener: HTTP/1.1 with a timeout for every wait, its routes, and the authentication by sub key.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use http::header::{ALLOW, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
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
use crate::error::Refusal;
use crate::forward;
use crate::keys::{Caller, NotNow, Refused};
use crate::patient::Patient;
use crate::reply::Reply;

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
    match AssertUnwindSafe(route(&gateway, request)).catch_unwind().await {
        Ok(Ok(response)) => Ok(response),
        Ok(Err(refusal)) => {
            metrics::counter!("tidepool_gateway_refused_total", "code" => refusal.code).increment(1);
            Ok(refusal.response())
        }
        Err(_) => {
            tracing::error!("a request panicked");
            Ok(Refusal::internal().response())
        }
    }
}

async fn route(gateway: &Arc<Gateway>, request: Request<Incoming>) -> Result<Response<Reply>, Refusal> {
    let path = request.uri().path();
    let known = match path {
        "/v1/chat/completions" => Method::POST,
        "/v1/models" | "/healthz" | "/live" => Method::GET,
        _ if path.starts_with("/v1/models/") => Method::GET,
        _ => return Err(Refusal::unknown_path()),
    };
    if *request.method() != known {
        let mut response = Refusal::unknown_method(known.as_str()).response();
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
            forward::discard(&head.headers, body).await;
            return Err(refusal);
        }
    };
    match path {
        "/v1/chat/completions" => Ok(forward::completions(gateway, caller, request).await),
        "/v1/models" => Ok(json(&models(gateway))),
        "/live" if caller.is_platform() => Ok(json(&live(gateway))),
        "/live" => Err(Refusal::no_access()),
        _ => {
            let id = path.strip_prefix("/v1/models/").unwrap_or_default();
            let model = models(gateway).data.into_iter().find(|model| model.id == id);
            model.map(|model| json(&model)).ok_or_else(|| Refusal::unknown_model(id, "does not exist"))
        }
    }
}

async fn authenticate(gateway: &Arc<Gateway>, headers: &HeaderMap) -> Result<Arc<Caller>, Refusal> {
    let given = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (scheme, key) = given.split_once(' ').unwrap_or_default();
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(Refusal::unknown_key());
    }
    let found = gateway.keys.caller(key.trim()).await;
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

#[derive(Serialize)]
struct Shown {
    id: String,
    object: &'static str,
    created: i64,
    owned_by: String,
}

/// The models that a client can use, in OpenAI's format.
fn models(gateway: &Gateway) -> List<Shown> {
    let table = gateway.models.now();
    let usable = table.all.iter().filter(|model| model.enabled && gateway.providers.route(model.kind).is_some());
    let shown = |model: &Arc<crate::models::Model>| Shown {
        id: model.id.to_string(),
        object: "model",
        created: model.created_at.as_second(),
        owned_by: model.provider.to_string(),
    };
    List { object: "list", data: usable.map(shown).collect() }
}

/// The requests that are under way in this process.
fn live(gateway: &Gateway) -> List<crate::live::Shown> {
    List { object: "list", data: gateway.live.list(|at| gateway.app.zone.show(at)) }
}

fn json(value: &impl Serialize) -> Response<Reply> {
    let Ok(body) = serde_json::to_vec(value) else { return Refusal::internal().response() };
    let mut response = Response::new(Reply::full(body));
    *response.status_mut() = StatusCode::OK;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
