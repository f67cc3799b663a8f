//! The HTTP/1.1 client of a provider: a pool of idle connections, TLS for https addresses, and an outgoing proxy where one
//! is set. An address that is not public is connected to only where the provider may have one: it is looked at when the name
//! is resolved, so that a name cannot lead elsewhere later.

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use base::{Error, Result, Secret};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Uri;
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use remote::address::{is_public, resolve};
use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tower::Service;

pub type Client = legacy::Client<Patient, Full<Bytes>>;

/// How long idle connections are kept: shorter than the minute or more after which providers close theirs.
const IDLE: Duration = Duration::from_secs(50);
/// The longest answer of a proxy to CONNECT.
const MOST_HEAD: usize = 8 * 1024;

/// How a provider is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    pub connect: Duration,
    pub proxy: Option<Secret>,
    pub allow_private: bool,
}

/// The TLS settings that all clients share.
pub fn tls() -> Result<ClientConfig> {
    // The cryptography provider is named, so that nothing depends on the default of the process.
    let crypto = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = ClientConfig::builder_with_provider(crypto)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_platform_verifier())
        .map_err(Error::internal)?;
    Ok(tls.with_no_client_auth())
}

pub fn new(way: &Way, tls: &ClientConfig) -> Result<Client> {
    let mut http = HttpConnector::new_with_resolver(Resolver { way: way.clone() });
    http.set_nodelay(true);
    http.enforce_http(false);
    http.set_connect_timeout(Some(way.connect));
    http.set_keepalive(Some(Duration::from_secs(30)));
    let over =
        |tls: &ClientConfig| HttpsConnectorBuilder::new().with_tls_config(tls.clone()).https_or_http().enable_http1();
    let proxy = way.proxy.as_ref().map(Proxy::new).transpose()?.map(Arc::new);
    let first =
        First { connector: over(tls).wrap_connector(http.clone()), http, proxy, allow_private: way.allow_private };
    let https = over(tls).wrap_connector(first);
    Ok(legacy::Client::builder(TokioExecutor::new())
        .pool_idle_timeout(IDLE)
        .pool_timer(TokioTimer::new())
        .build(Patient { inner: https, patience: way.connect }))
}

type Http = HttpConnector<Resolver>;
type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Connecting<S> = Pin<Box<dyn Future<Output = Result<S, BoxError>> + Send>>;

/// Resolves names to addresses that may be connected to.
#[derive(Clone)]
struct Resolver {
    way: Way,
}

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = remote::address::Unresolved;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let (allow_private, within) = (self.way.allow_private, self.way.connect);
        Box::pin(async move { Ok(resolve(name.as_str(), 0, allow_private, within).await?.into_iter()) })
    }
}

/// An outgoing proxy.
struct Proxy {
    uri: Uri,
    /// The value of Proxy-Authorization.
    credentials: Option<Secret>,
}

impl Proxy {
    fn new(url: &Secret) -> Result<Proxy> {
        // Neither error may quote the URL, which may have a password.
        let broken = |_: http::uri::InvalidUri| Error::internal("the address of a proxy cannot be read");
        let uri: Uri = url.expose().trim_end_matches('/').parse().map_err(broken)?;
        let authority = uri.authority().map(|authority| authority.as_str()).unwrap_or_default();
        let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
        let credentials = user.map(|user| {
            let user = if user.contains(':') { user.to_owned() } else { format!("{user}:") };
            Secret::new(format!("Basic {}", STANDARD.encode(decoded(&user))))
        });
        let scheme = uri.scheme_str().unwrap_or("http");
        let uri = format!("{scheme}://{host}/").parse().map_err(broken)?;
        Ok(Proxy { uri, credentials })
    }
}

/// Without percent-encoding.
fn decoded(text: &str) -> Vec<u8> {
    let mut out = vec![];
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|two| std::str::from_utf8(two).ok()).filter(|_| *first == b'%');
        match hex.and_then(|two| u8::from_str_radix(two, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                rest = &after[2..];
            }
            None => {
                out.push(*first);
                rest = after;
            }
        }
    }
    out
}

/// The first connection: to the provider itself, or through the proxy to it.
#[derive(Clone)]
pub struct First {
    http: Http,
    /// To the proxy.
    connector: HttpsConnector<Http>,
    proxy: Option<Arc<Proxy>>,
    allow_private: bool,
}

type Raw = MaybeHttpsStream<TokioIo<TcpStream>>;

impl Service<Uri> for First {
    type Response = Raw;
    type Error = BoxError;
    type Future = Connecting<Raw>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.http.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let next = self.proxy.as_ref().map_or(&uri, |proxy| &proxy.uri);
        // A written address is not resolved, so it is looked at here.
        if !self.allow_private && [&uri, next].into_iter().any(is_private) {
            return Box::pin(async { Err("a private address is not allowed".into()) });
        }
        let Some(proxy) = self.proxy.clone() else {
            let connecting = self.http.call(uri);
            return Box::pin(async move { Ok(MaybeHttpsStream::Http(connecting.await?)) });
        };
        let connecting = self.connector.call(proxy.uri.clone());
        Box::pin(async move {
            let mut stream = TokioIo::new(connecting.await?);
            tunnel(&mut stream, &proxy, &uri).await?;
            Ok(stream.into_inner())
        })
    }
}

/// Whether the host of an address is written as one that is not public.
fn is_private(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    host.parse::<IpAddr>().is_ok_and(|ip| !is_public(ip))
}

/// Asks the proxy for a way to the provider.
async fn tunnel<S>(stream: &mut S, proxy: &Proxy, target: &Uri) -> Result<(), BoxError>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    let host = target.host().ok_or("the address names no host")?;
    let port = target.port_u16().unwrap_or(if target.scheme_str() == Some("http") { 80 } else { 443 });
    let credentials = proxy
        .credentials
        .as_ref()
        .map_or_else(String::new, |credentials| format!("Proxy-Authorization: {}\r\n", credentials.expose()));
    let request = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n{credentials}\r\n");
    stream.write_all(request.as_bytes()).await?;
    stream.flush().await?;
    let mut head = vec![];
    // Byte by byte: what comes behind the head belongs to the provider.
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= MOST_HEAD {
            return Err("the proxy answered with too long a head".into());
        }
        head.push(stream.read_u8().await?);
    }
    let line = String::from_utf8_lossy(&head);
    let status = line.split_whitespace().nth(1).unwrap_or_default();
    match status {
        "200" => Ok(()),
        "407" => Err("the proxy does not let us in (407)".into()),
        _ => Err(format!("the proxy refused the connection ({status})").into()),
    }
}

/// Connects within a time, the handshakes included.
#[derive(Clone)]
pub struct Patient {
    inner: HttpsConnector<First>,
    patience: Duration,
}

impl Service<Uri> for Patient {
    type Response = MaybeHttpsStream<Raw>;
    type Error = BoxError;
    type Future = Connecting<Self::Response>;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxys_user_is_not_part_of_its_address() {
        let proxy = Proxy::new(&Secret::new("http://ada:p%40ss@proxy.example:3128")).unwrap();
        assert_eq!(proxy.uri.to_string(), "http://proxy.example:3128/");
        assert_eq!(proxy.credentials.unwrap().expose(), format!("Basic {}", STANDARD.encode("ada:p@ss")));
        assert!(Proxy::new(&Secret::new("https://proxy.example/")).unwrap().credentials.is_none());
    }

    #[test]
    fn written_addresses_are_looked_at() {
        for (uri, private) in [
            ("http://127.0.0.1:1/", true),
            ("https://[::1]/x", true),
            ("https://169.254.169.254/", true),
            ("https://8.8.8.8/", false),
            ("https://api.example.com/", false),
        ] {
            assert_eq!(is_private(&uri.parse().unwrap()), private, "{uri}");
        }
    }
}
