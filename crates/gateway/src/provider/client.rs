//! The HTTP/1.1 client for providers: a pool of idle connections, and TLS for https addresses.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use base::{Error, Result};
use bytes::Bytes;
use http::Uri;
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio::net::TcpStream;
use tower::Service;

pub type Client = legacy::Client<Patient, Full<Bytes>>;

/// How long idle connections are kept: shorter than the minute or more after which providers close theirs.
const IDLE: Duration = Duration::from_secs(50);

pub fn new(connect: Duration) -> Result<Client> {
    // The cryptography provider is named, so that nothing depends on the default of the process.
    let crypto = std::sync::Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = ClientConfig::builder_with_provider(crypto)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_platform_verifier())
        .map_err(Error::internal)?
        .with_no_client_auth();
    let mut http = HttpConnector::new();
    http.set_nodelay(true);
    http.enforce_http(false);
    http.set_connect_timeout(Some(connect));
    http.set_keepalive(Some(Duration::from_secs(30)));
    let https = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1().wrap_connector(http);
    Ok(legacy::Client::builder(TokioExecutor::new())
        .pool_idle_timeout(IDLE)
        .pool_timer(TokioTimer::new())
        .build(Patient { inner: https, patience: connect }))
}

/// Connects within a time, the TLS handshake included.
#[derive(Clone)]
pub struct Patient {
    inner: HttpsConnector<HttpConnector>,
    patience: Duration,
}

type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;
type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl Service<Uri> for Patient {
    type Response = Stream;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Stream, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = tokio::time::timeout(self.patience, self.inner.call(uri));
        Box::pin(async move {
            match connecting.await {
                Ok(connected) => connected,
                Err(_) => Err("the connection took too long".into()),
            }
        })
    }
}
