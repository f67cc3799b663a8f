//! One side as a service, and the loop that serves it: bounded header times, polite endings.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use domain::token::Audience;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
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

/// Connections of one listener; more wait until one closes.
const MOST_CONNECTIONS: usize = 10_000;

/// How long a listener that stops goes on taking who is in its queue: the kernel has told them that we are there.
const LINGER: Duration = Duration::from_millis(50);

/// How long a connection that was just taken may still say its first word when we stop: it may be on its way.
const LAST_WORD: Duration = Duration::from_millis(500);

type Accepted = (TcpStream, SocketAddr, OwnedSemaphorePermit);

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
pub async fn serve(listener: TcpListener, router: Router, mut stop: watch::Receiver<bool>) -> io::Result<()> {
    let (finish, finishing) = watch::channel(false);
    // Held by each connection: the last one to end tells.
    let (hold, mut ended) = mpsc::channel::<()>(1);
    // HTTP/1 only: that is what proxies speak to us, and its every wait has a limit.
    let mut builder = Builder::new(TokioExecutor::new()).http1_only();
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    let builder = Arc::new(builder);
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let stopping = stop.clone();
    let begin = |(stream, peer, place): Accepted| {
        // Small answers must not wait for one another.
        stream.set_nodelay(true).ok();
        let begun = Arc::new(watch::channel(false).0);
        let service = TowerToHyperService::new(with_peer(router.clone(), peer, begun.clone()));
        let (builder, stop, mut finishing) = (builder.clone(), stopping.clone(), finishing.clone());
        let until_closed = (place, hold.clone());
        tokio::spawn(async move {
            let _until_closed = until_closed;
            if !speaks(&stream, stop).await {
                return;
            }
            // hyper closes a connection of which it has read nothing yet, and the request on it is lost: it is told to finish
            // only when it has one in hand.
            let mut begun = begun.subscribe();
            let told = async {
                begun.wait_for(|begun| *begun).await.map(drop).ok();
                finishing.wait_for(|finishing| *finishing).await.map(drop).ok();
            };
            let mut connection = pin!(builder.serve_connection_with_upgrades(TokioIo::new(stream), service));
            let served = tokio::select! {
                served = connection.as_mut() => served,
                () = told => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = served {
                tracing::debug!(%error, "connection ended");
            }
        });
    };
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &room) => accepted,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        match accepted {
            Ok(accepted) => begin(accepted),
            Err(error) => {
                // Out of file descriptors, or a client that left: neither is a reason to stop serving.
                tracing::warn!(%error, "accept failed");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
    let over = tokio::time::Instant::now() + LINGER;
    while let Ok(Ok(accepted)) = tokio::time::timeout_at(over, accept(&listener, &room)).await {
        begin(accepted);
    }
    // Those of this very moment: closing the listener would reset them, and a proxy has sent its request by then.
    if let Ok(listener) = listener.into_std() {
        while let Ok(place) = room.clone().try_acquire_owned()
            && let Ok((stream, peer)) = listener.accept()
        {
            if stream.set_nonblocking(true).is_ok()
                && let Ok(stream) = TcpStream::from_std(stream)
            {
                begin((stream, peer, place));
            }
        }
    }
    finish.send_replace(true);
    drop(hold);
    ended.recv().await;
    Ok(())
}

/// The next connection, once there is room for it.
async fn accept(listener: &TcpListener, room: &Arc<Semaphore>) -> io::Result<Accepted> {
    let place = room.clone().acquire_owned().await.map_err(io::Error::other)?;
    let (stream, peer) = listener.accept().await?;
    Ok((stream, peer, place))
}

/// Waits for the client's first byte, and leaves it where it is. hyper's own limit begins with it.
async fn speaks(stream: &TcpStream, mut stop: watch::Receiver<bool>) -> bool {
    let mut byte = [0];
    let stopped = async {
        stop.wait_for(|stop| *stop).await.ok();
        tokio::time::sleep(LAST_WORD).await;
    };
    tokio::select! {
        first = stream.peek(&mut byte) => first.is_ok_and(|bytes| bytes > 0),
        () = tokio::time::sleep(HEAD_TIMEOUT) => false,
        () = stopped => false,
    }
}

fn with_peer(
    router: Router,
    peer: SocketAddr,
    begun: Arc<watch::Sender<bool>>,
) -> impl tower::Service<
    http::Request<hyper::body::Incoming>,
    Response = axum::response::Response,
    Error = std::convert::Infallible,
    Future: Send,
> + Clone {
    router.map_request(move |request: http::Request<hyper::body::Incoming>| {
        begun.send_replace(true);
        let mut request = request.map(axum::body::Body::new);
        request.extensions_mut().insert(Peer(peer));
        request
    })
}
