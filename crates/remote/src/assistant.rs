//! Talks to an assistant's gateway over any connection, by WebSocket or plain HTTP. Bytes from a gateway are counted as
//! long as they are held (`memory`).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use base::{Error, Kind, Result};
use bytes::Bytes;
use http::header::{HOST, ORIGIN};
use http::{HeaderValue, Request, Response, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use rustls_platform_verifier::ConfigVerifierExt as _;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
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
use crate::memory::Share;

/// Time limit for connecting to a gateway.
const CONNECT: Duration = Duration::from_secs(5);
const UPGRADE: Duration = Duration::from_secs(10);
/// Each socket allocates this for its whole life. Most frames are small, and a large one is read in pieces of this
/// size.
const BUFFER: usize = 4 * 1024;
/// The longest head of an HTTP answer.
const HEAD: usize = 64 * 1024;

/// Bytes both ways.
pub trait Way: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Way for T {}

pub type Socket = WebSocketStream<Metered>;

/// A connection that counts its bytes from when they are read until their message is passed on.
pub struct Metered {
    way: Box<dyn Way>,
    meter: Arc<Meter>,
}

/// How many bytes a socket holds, and how many more it may receive.
pub struct Meter {
    share: Mutex<Share>,
    left: AtomicUsize,
}

impl Meter {
    /// Sets how many more bytes the gateway may send; one that sends more is cut off.
    pub fn allow(&self, bytes: usize) {
        self.left.store(bytes, Ordering::Relaxed);
    }

    /// Counts a copy of received bytes that is on its way to a client; false if there is no room for it.
    #[must_use]
    pub fn copy(&self, bytes: usize) -> bool {
        self.share().grow(bytes)
    }

    /// Everything received was passed on, so nothing is held any more.
    pub fn passed_on(&self) {
        self.share().clear();
    }

    /// A message from the gateway was dropped. A ping can arrive in the middle of another message, which is still held.
    pub fn left_out(&self, message: &Message) {
        match message {
            Message::Ping(bytes) | Message::Pong(bytes) => self.share().shrink(bytes.len() + 2),
            _ => self.share().clear(),
        }
    }

    fn share(&self) -> MutexGuard<'_, Share> {
        self.share.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, bytes: usize) -> io::Result<()> {
        let left = self.left.load(Ordering::Relaxed);
        if bytes > left {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the gateway sends more than it may"));
        }
        self.left.store(left - bytes, Ordering::Relaxed);
        if self.share().grow(bytes) { Ok(()) } else { Err(io::ErrorKind::OutOfMemory.into()) }
    }
}

impl Metered {
    pub fn meter(&self) -> Arc<Meter> {
        self.meter.clone()
    }
}

impl AsyncRead for Metered {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.way).poll_read(cx, buf))?;
        Poll::Ready(self.meter.take(buf.filled().len() - before))
    }
}

impl AsyncWrite for Metered {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.way).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.way).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.way).poll_shutdown(cx)
    }
}

/// Whether a socket ended because all sockets together reached the memory limit.
pub fn is_out_of_memory(error: &SocketError) -> bool {
    matches!(error, SocketError::Io(error) if error.kind() == io::ErrorKind::OutOfMemory)
}

/// A connection to a gateway, with the host and the path for requests: several gateways can share a host and differ in
/// their paths.
pub struct Road {
    way: Box<dyn Way>,
    host: String,
    /// The path of the WebSocket: `/`, or the one in the gateway's URL.
    path: String,
    /// How many bytes the gateway may send over its WebSocket before `Meter::allow` is called.
    at_first: usize,
}

impl Road {
    /// A connection to a gateway that does not share its host.
    pub fn new(way: Box<dyn Way>, host: String) -> Road {
        Road { way, host, path: "/".into(), at_first: usize::MAX }
    }

    /// Limits how many bytes the gateway may send at first.
    pub fn at_first(self, bytes: usize) -> Road {
        Road { at_first: bytes, ..self }
    }
}

/// Connects directly to the address in `url`, encrypted for `wss` and `https`. It never connects to this machine: a
/// name is resolved once, and the address that was checked is the one that is connected to.
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
    // The URL may carry a user and a password; they are left out.
    let host = url.port().map_or_else(|| name.clone(), |port| format!("{name}:{port}"));
    let path = url.path().to_owned();
    if !secure {
        return Ok(Road { path, ..Road::new(Box::new(stream), host) });
    }
    let config = ClientConfig::with_platform_verifier().map_err(Error::internal)?;
    let server = match name.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(address) => ServerName::from(address),
        Err(_) => ServerName::try_from(name.clone()).map_err(|_| unusable())?,
    };
    let secured = timeout(CONNECT, TlsConnector::from(Arc::new(config)).connect(server, stream)).await;
    let stream = secured.map_err(|_| away(&"timed out"))?.map_err(|e| away(&e))?;
    Ok(Road { path, ..Road::new(Box::new(stream), host) })
}

/// Opens the WebSocket. A gateway takes a client with an Origin header for a browser, so none is sent unless the caller
/// gives one. Nothing else about our client is sent. `most` limits the size of one message.
pub async fn dial(road: Road, origin: Option<&str>, most: usize) -> Result<Socket> {
    let odd = |why: &dyn std::fmt::Display| {
        Error::new(Kind::Unavailable, "the instance does not answer").with_operator(format_args!("WebSocket: {why}"))
    };
    match timeout(UPGRADE, upgrade(road, origin, most)).await {
        Ok(Ok(socket)) => Ok(socket),
        Ok(Err(error)) => Err(odd(&error)),
        Err(_) => Err(odd(&"timed out")),
    }
}

/// The same for a caller that distinguishes failures and has its own time limit.
pub async fn upgrade(road: Road, origin: Option<&str>, most: usize) -> Result<Socket, SocketError> {
    let Road { way, host, path, at_first } = road;
    let mut request = format!("ws://{host}{path}").into_client_request()?;
    if let Some(origin) = origin {
        request.headers_mut().insert(ORIGIN, HeaderValue::from_str(origin).map_err(http::Error::from)?);
    }
    let config =
        WebSocketConfig::default().read_buffer_size(BUFFER).max_message_size(Some(most)).max_frame_size(Some(most));
    let meter = Meter { share: Mutex::default(), left: AtomicUsize::new(at_first) };
    let way = Metered { way, meter: Arc::new(meter) };
    let (socket, _) = tokio_tungstenite::client_async_with_config(request, way, Some(config)).await?;
    Ok(socket)
}

/// Sends one request over its own connection; the caller reads the body as it arrives. The request's path is appended
/// to the path of the gateway's URL.
pub async fn send(road: Road, mut request: Request<Full<Bytes>>) -> Result<Response<Incoming>> {
    let odd = |why: &dyn std::fmt::Display| {
        Error::new(Kind::Unavailable, "the instance does not answer").with_operator(format_args!("HTTP: {why}"))
    };
    let Road { way, host, path, .. } = road;
    let asked = request.uri().path_and_query().map_or("/", |asked| asked.as_str());
    let whole = format!("{}{asked}", path.trim_end_matches('/'));
    *request.uri_mut() = whole.parse::<Uri>().map_err(Error::internal)?;
    request.headers_mut().insert(HOST, HeaderValue::from_str(&host).map_err(Error::internal)?);
    let asked = async {
        let client = hyper::client::conn::http1::Builder::new().max_buf_size(HEAD).handshake(TokioIo::new(way));
        let (mut sender, connection) = client.await?;
        // The task ends with the answer, or when the caller drops it.
        tokio::spawn(async move { connection.await.ok() });
        sender.send_request(request).await
    };
    match timeout(UPGRADE, asked).await {
        Ok(Ok(response)) => Ok(response),
        Ok(Err(error)) => Err(odd(&error)),
        Err(_) => Err(Error::new(Kind::TimedOut, "the instance did not answer in time")),
    }
}

/// Reads a whole body, up to a limit; returns it with its share of the memory limit.
pub async fn collect(mut body: Incoming, most: usize) -> Result<(Vec<u8>, Share)> {
    let odd = || Error::new(Kind::Gateway, "the instance answered badly");
    let (mut bytes, mut share) = (vec![], Share::default());
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|error| odd().with_operator(error))?.into_data() else { continue };
        if bytes.len() + data.len() > most {
            return Err(odd().with_operator("its answer is too long"));
        }
        if !share.grow(data.len()) {
            return Err(Error::new(Kind::Unavailable, "too much is under way at present"));
        }
        bytes.extend_from_slice(&data);
    }
    Ok((bytes, share))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_comes_is_limited_before_it_is_allowed_and_counted_until_it_is_passed_on() {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let (mut far, near) = tokio::io::duplex(1 << 20);
        let meter = Meter { share: Mutex::default(), left: AtomicUsize::new(1000) };
        let mut way = Metered { way: Box::new(near), meter: Arc::new(meter) };
        far.write_all(&[0; 2000]).await.unwrap();
        let mut buffer = [0; 600];
        way.read_exact(&mut buffer).await.unwrap();
        assert_eq!(way.read_exact(&mut buffer).await.unwrap_err().kind(), io::ErrorKind::InvalidData);
        way.meter().allow(usize::MAX);
        way.read_exact(&mut buffer).await.unwrap();
        assert!(way.meter().copy(500));
        assert_eq!(way.meter.share().size(), 600 + 600 + 500, "what was refused is not held");
        way.meter().passed_on();
        assert_eq!(way.meter.share().size(), 0);
    }

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
