//! Conversation with an assistant's gateway, over whatever leads there: its WebSocket and plain HTTP.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use base::{Error, Kind, Result};
use bytes::Bytes;
use http::header::{HOST, ORIGIN};
use http::{HeaderValue, Request, Response};
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

/// What a way to a gateway takes until it stands.
const CONNECT: Duration = Duration::from_secs(5);
const UPGRADE: Duration = Duration::from_secs(10);
/// Eagerly allocated for each socket; most frames are small.
const BUFFER: usize = 16 * 1024;

/// Bytes both ways.
pub trait Way: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Way for T {}

pub type Socket = WebSocketStream<Box<dyn Way>>;

/// A way straight to the address in `url`, encrypted for `wss` and `https`.
pub async fn straight(url: &str) -> Result<Box<dyn Way>> {
    let unusable = || Error::conflict("the instance's gateway_url is no address of a gateway");
    let url = Url::parse(url).map_err(|_| unusable())?;
    let secure = match url.scheme() {
        "ws" | "http" => false,
        "wss" | "https" => true,
        _ => return Err(unusable()),
    };
    let host = url.host_str().ok_or_else(unusable)?.trim_matches(['[', ']']).to_owned();
    let port = url.port_or_known_default().ok_or_else(unusable)?;
    let away = |why: &dyn std::fmt::Display| {
        Error::new(Kind::Unavailable, "the instance cannot be reached")
            .with_operator(format_args!("{host}:{port}: {why}"))
    };
    let connected = timeout(CONNECT, TcpStream::connect((host.as_str(), port))).await;
    let stream = connected.map_err(|_| away(&"timed out"))?.map_err(|e| away(&e))?;
    stream.set_nodelay(true).ok();
    if !secure {
        return Ok(Box::new(stream));
    }
    let config = ClientConfig::with_platform_verifier().map_err(Error::internal)?;
    let name = match host.parse::<IpAddr>() {
        Ok(address) => ServerName::from(address),
        Err(_) => ServerName::try_from(host.clone()).map_err(|_| unusable())?,
    };
    let secured = timeout(CONNECT, TlsConnector::from(Arc::new(config)).connect(name, stream)).await;
    let stream = secured.map_err(|_| away(&"timed out"))?.map_err(|e| away(&e))?;
    Ok(Box::new(stream))
}

/// Opens the WebSocket. A gateway judges by the Origin whether a browser is there: none is sent unless one is given, and
/// nothing else about who is behind us.
pub async fn dial(way: Box<dyn Way>, host: &str, origin: Option<&str>, most: usize) -> Result<Socket> {
    let odd = |why: &dyn std::fmt::Display| {
        Error::new(Kind::Unavailable, "the instance does not answer").with_operator(format_args!("WebSocket: {why}"))
    };
    let mut request = format!("ws://{host}/").into_client_request().map_err(|e| odd(&e))?;
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

/// One request over a way of its own; the answer's body comes as it is read.
pub async fn send(way: Box<dyn Way>, host: &str, mut request: Request<Full<Bytes>>) -> Result<Response<Incoming>> {
    let odd = |why: &dyn std::fmt::Display| {
        Error::new(Kind::Unavailable, "the instance does not answer").with_operator(format_args!("HTTP: {why}"))
    };
    request.headers_mut().insert(HOST, HeaderValue::from_str(host).map_err(Error::internal)?);
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
