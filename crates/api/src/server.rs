//! One side as a service, and how it is served.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use listener::{Requests, Turn};
use people::token::Audience;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tower::ServiceExt as _;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;

use crate::extract::Peer;
use crate::state::Shared;
use crate::{admin, docs, employee, fallback, headers, health, hooks, openapi, trace, web};

/// Bodies over this are 413; routes that take more say so themselves.
pub const BODY_LIMIT: usize = 1024 * 1024;

/// How long a client may take to send a request's head, the first byte and an idle connection's next request included.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// The routes of one side with everything around them.
pub fn router(api: Shared) -> Router {
    let side = api.side;
    let (routes, document) = match side {
        Audience::Employee => openapi::finish(employee::routes(), side),
        Audience::Admin => openapi::finish(admin::routes(), side),
    };
    let hooks = match side {
        Audience::Employee => hooks::routes(),
        Audience::Admin => Router::new(),
    };
    let inner = Router::new()
        .nest("/api/v1", routes.merge(docs::routes(document)))
        .merge(hooks)
        .merge(health::routes(side))
        .fallback(web::serve)
        .method_not_allowed_fallback(fallback::unknown_method);
    around(inner, api)
}

/// What every route of ours has around it.
pub fn around(inner: Router<Shared>, api: Shared) -> Router {
    // A proxy may pass the prefix of the public URL on, or take it away: both arrive.
    let prefix = api.public_url.prefix();
    let router = match prefix.trim_end_matches('/') {
        "" => inner,
        prefix => Router::new().nest(prefix, inner.clone()).merge(inner),
    };
    router
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .layer(CatchPanicLayer::custom(trace::panicked))
        .layer(from_fn_with_state(api.clone(), headers::security))
        .layer(CompressionLayer::new())
        .layer(from_fn_with_state(api.clone(), trace::requests))
        .with_state(api)
}

/// Serves until `stop` says so, then finishes what was begun.
pub async fn serve(listener: TcpListener, router: Router, stop: watch::Receiver<bool>) {
    // HTTP/1 only: that is what proxies speak to us, and its every wait has a limit.
    let mut builder = Builder::new(TokioExecutor::new()).http1_only();
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    let builder = Arc::new(builder);
    let connected = move |stream, peer, turn: Turn| {
        let service = TowerToHyperService::new(with_peer(router.clone(), peer, turn.requests()));
        let builder = builder.clone();
        async move { turn.serve(builder.serve_connection_with_upgrades(TokioIo::new(stream), service)).await }
    };
    listener::serve(listener, HEAD_TIMEOUT, stop, connected).await.finished().await;
}

fn with_peer(
    router: Router,
    peer: SocketAddr,
    requests: Requests,
) -> impl tower::Service<
    http::Request<hyper::body::Incoming>,
    Response = axum::response::Response,
    Error = std::convert::Infallible,
    Future: Send,
> + Clone {
    router.map_request(move |request: http::Request<hyper::body::Incoming>| {
        requests.begun();
        let mut request = request.map(axum::body::Body::new);
        request.extensions_mut().insert(Peer(peer));
        request
    })
}
