//! Conversation with an assistant's gateway, over whatever leads there: its WebSocket and plain HTTP.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use base::{Error, Kind, Result};
use bytes::Bytes;
use http::header::{HOST, ORIGIN};
use http::{HeaderValue, Request, Response, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use rustls_platform_verifier::ConfigVerifierExt as _;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_tungstenite::WebSocketStream;
pub use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
pub use tokio_tungstenite::tungstenite::{
    Bytes as Payload, Error as SocketError, Message, Utf8Bytes, error::CapacityError, protocol::CloseFrame,
};
use tokio_tungstenite::tungstenite::{client::IntoClientRequest as _, protocol::WebSocketConfig};
use url::Url;

use crate::address::{is_elsewhere, literal};

/// What a way to a gateway takes until it stands.
const CONNECT: Duration = Duration::from_secs(5);
const UPGRADE: Duration = Duration::from_secs(10);
/// Allocated for each socket as long as it lives; most frames are small, and a large one is read in pieces of this size.
const BUFFER: usize = 4 * 1024;

/// Bytes both ways.
pub trait Way: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Way for T {}

pub type Socket = WebSocketStream<Box<dyn Way>>;

/// A way to a gateway, with what a request over it names: several may be behind one host, told apart by their paths.
pub struct Road {
    way: Box<dyn Way>,
    host: String,
    /// Of the WebSocket: `/`, or where the gateway's URL says.
    path: String,
}

impl Road {
    /// To a gateway that has its host for itself.
    pub fn new(way: Box<dyn Way>, host: String) -> Road {
        Road { way, host, path: "/".into() }
    }
}

/// A way straight to the address in `url`, encrypted for `wss` and `https`. It never leads to ourselves, whatever a name
/// resolves to: the address that was looked at is the one that is connected to.
pub async fn straight(url: &str) -> Result<Road> {
    let unusable = || Error::conflict("the instance's gateway_url is no address of a gateway");
    let url = Url::parse(url).map_err(|_| unusable())?;
    let secure = match url.scheme() {
        "ws" | "http" => false,
        "wss" | "https" => true,
        _ => return Err(unusable()),
    };
    let name = url.host_str().ok_or_else(unusable)?.to_owned();
    let port = url.port_or_known_default().ok_or_else(unusable)?;
    let away = |why: &dyn std::fmt::Display| {
        Error::new(Kind::Unavailable, "the instance cannot be reached")
            .with_operator(format_args!("{name}:{port}: {why}"))
    };
    let addresses: Vec<SocketAddr> = match literal(&url) {
        Some(ip) => vec![SocketAddr::new(ip, port)],
        None => {
            let found = timeout(CONNECT, tokio::net::lookup_host((name.as_str(), port))).await;
            found.map_err(|_| away(&"its name takes too long"))?.map_err(|e| away(&e))?.collect()
        }
    };
    if let Some(here) = addresses.iter().find(|address| !is_elsewhere(address.ip())) {
        return Err(Error::conflict("the instance's gateway_url leads to an address that is not allowed")
            .with_operator(format_args!("{name}:{port}: {}", here.ip())));
    }
    let connected = timeout(CONNECT, TcpStream::connect(addresses.as_slice())).await;
    let stream = connected.map_err(|_| away(&"timed out"))?.map_err(|e| away(&e))?;
    stream.set_nodelay(true).ok();
    // Without a user and a password that the URL may carry.
    let host = url.port().map_or_else(|| name.clone(), |port| format!("{name}:{port}"));
    let path = url.path().to_owned();
    if !secure {
        return Ok(Road { way: Box::new(stream), host, path });
    }
    let config = ClientConfig::with_platform_verifier().map_err(Error::internal)?;
    let server = match name.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(address) => ServerName::from(address),
        Err(_) => ServerName::try_from(name.clone()).map_err(|_| unusable())?,
    };
    let secured = timeout(CONNECT, TlsConnector::from(Arc::new(config)).connect(server, stream)).await;
    let stream = secured.map_err(|_| away(&"timed out"))?.map_err(|e| away(&e))?;
    Ok(Road { way: Box::new(stream), host, path })
}

/// Opens the WebSocket. A gateway judges by the Origin whether a browser is there: none is sent unless one is given, and
/// nothing else about who is behind us.
pub async fn dial(road: Road, origin: Option<&str>, most: usize) -> Result<Socket> {
    let Road { way, host, path } = road;
    let odd = |why: &dyn std::fmt::Display| {
        Error::new(Kind::Unavailable, "the instance does not answer").with_operator(format_args!("WebSocket: {why}"))
    };
    let mut request = format!("ws://{host}{path}").into_client_request().map_err(|e| odd(&e))?;
    if let Some(origin) = origin {
        request.headers_mut().insert(ORIGIN, HeaderValue::from_str(origin).map_err(Error::internal)?);
    }
    let config =
        WebSocketConfig::default().read_buffer_size(BUFFER).max_message_size(Some(most)).max_frame_size(Some(most));
    let opening = tokio_tungstenite::client_async_with_config(request, way, Some(config));
    match timeout(UPGRADE, opening).await {
        Ok(Ok((socket, _))) => Ok(socket),
        Ok(Err(error)) => Err(odd(&error)),
        Err(_) => Err(odd(&"timed out")),
    }
}

/// One request over a way of its own; the answer's body comes as it is read. The request's path is one of the gateway's own.
pub async fn send(road: Road, mut request: Request<Full<Bytes>>) -> Result<Response<Incoming>> {
    let odd = |why: &dyn std::fmt::Display| {
        Error::new(Kind::Unavailable, "the instance does not answer").with_operator(format_args!("HTTP: {why}"))
    };
    let Road { way, host, path } = road;
    let asked = request.uri().path_and_query().map_or("/", |asked| asked.as_str());
    let whole = format!("{}{asked}", path.trim_end_matches('/'));
    *request.uri_mut() = whole.parse::<Uri>().map_err(Error::internal)?;
    request.headers_mut().insert(HOST, HeaderValue::from_str(&host).map_err(Error::internal)?);
    let asked = async {
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(way)).await?;
        // Ends with the answer, or when nobody waits for it any more.
        tokio::spawn(async move { connection.await.ok() });
        sender.send_request(request).await
    };
    match timeout(UPGRADE, asked).await {
        Ok(Ok(response)) => Ok(response),
        Ok(Err(error)) => Err(odd(&error)),
        Err(_) => Err(Error::new(Kind::TimedOut, "the instance did not answer in time")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn no_spelling_leads_to_ourselves() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        for host in [
            "127.0.0.1",
            "127.1",
            "2130706433",
            "0x7f.0.0.1",
            "localhost",
            "0.0.0.0",
            "[::1]",
            "[::]",
            "[::ffff:127.0.0.1]",
            "169.254.169.254",
        ] {
            let refused = straight(&format!("ws://{host}:{port}/")).await.err().expect(host);
            assert_eq!(refused.kind, Kind::Conflict, "{host}");
        }
        let nobody = tokio::time::timeout(Duration::from_millis(100), listener.accept()).await;
        assert!(nobody.is_err(), "somebody connected");
    }
}
