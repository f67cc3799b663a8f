//! Accepts connections for the platform's listeners, and shuts them down gracefully. It limits their number and the
//! wait for the first byte, and a shutdown loses no request on an accepted connection. The caller brings the protocol.

use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::server::graceful::GracefulConnection;
use socket2::SockFilter;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};

/// Limit of connections of one listener; further ones wait until one closes.
const MOST_CONNECTIONS: usize = 10_000;

#[derive(Clone, Copy)]
struct Timing {
    /// How long a client may take for its first byte.
    head: Duration,
    /// How long a listener that stops still accepts: the kernel has already accepted the connections in its queue.
    linger: Duration,
    /// How long a connection without a first byte stays open when the listener stops: the byte may be in transit.
    last_word: Duration,
}

impl Timing {
    fn usual(head: Duration) -> Timing {
        Timing { head, linger: Duration::from_millis(50), last_word: Duration::from_millis(500) }
    }
}

type Accepted = (TcpStream, SocketAddr, OwnedSemaphorePermit);

/// Connects one connection with the listener's shutdown.
pub struct Turn {
    begun: Arc<watch::Sender<bool>>,
    finishing: watch::Receiver<bool>,
    cutting: watch::Receiver<bool>,
}

/// The caller reports here each request that was read.
#[derive(Clone)]
pub struct Requests(Arc<watch::Sender<bool>>);

impl Requests {
    pub fn begun(&self) {
        self.0.send_replace(true);
    }
}

impl Turn {
    pub fn requests(&self) -> Requests {
        Requests(self.begun.clone())
    }

    /// Serves the connection to its end. When the listener stops, a request under way is finished.
    pub async fn serve<C: GracefulConnection<Error: Display>>(mut self, connection: C) {
        // On a graceful shutdown hyper closes a connection that it has read nothing from, and the request on it would
        // be lost. So it is shut down only after the first request was read.
        let mut begun = self.begun.subscribe();
        let stopping = async {
            begun.wait_for(|begun| *begun).await.map(drop).ok();
            self.finishing.wait_for(|finishing| *finishing).await.map(drop).ok();
        };
        let mut connection = pin!(connection);
        let served = async {
            tokio::select! {
                served = connection.as_mut() => served,
                () = stopping => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            }
        };
        tokio::select! {
            served = served => if let Err(error) = served {
                tracing::debug!(%error, "connection ended");
            },
            _ = self.cutting.wait_for(|cut| *cut) => {}
        }
    }
}

/// A listener that accepts no more connections, while the open ones finish their requests.
pub struct Ending {
    cut: watch::Sender<bool>,
    ended: mpsc::Receiver<()>,
}

impl Ending {
    /// Waits until the last connection has ended.
    pub async fn finished(&mut self) {
        self.ended.recv().await;
    }

    /// Ends all connections at once.
    pub fn cut(&self) {
        self.cut.send_replace(true);
    }
}

/// Accepts connections until `stop` is true. `head` limits the wait for the first byte; hyper's own timeout follows it.
pub async fn serve<F, C>(listener: TcpListener, head: Duration, stop: watch::Receiver<bool>, connected: F) -> Ending
where
    F: Fn(TcpStream, SocketAddr, Turn) -> C + Clone + Send + 'static,
    C: Future<Output = ()> + Send,
{
    serve_with(Timing::usual(head), listener, stop, connected).await
}

async fn serve_with<F, C>(
    timing: Timing,
    listener: TcpListener,
    mut stop: watch::Receiver<bool>,
    connected: F,
) -> Ending
where
    F: Fn(TcpStream, SocketAddr, Turn) -> C + Clone + Send + 'static,
    C: Future<Output = ()> + Send,
{
    let (finish, finishing) = watch::channel(false);
    let (cut, cutting) = watch::channel(false);
    // Each connection holds a sender: the channel closes when the last one ends.
    let (hold, ended) = mpsc::channel::<()>(1);
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let stopping = stop.clone();
    let begin = |(stream, peer, place): Accepted| {
        // Without Nagle's algorithm, which would delay small answers.
        stream.set_nodelay(true).ok();
        let begun = Arc::new(watch::channel(false).0);
        let turn = Turn { begun, finishing: finishing.clone(), cutting: cutting.clone() };
        let (until_closed, stop, connected) = ((place, hold.clone()), stopping.clone(), connected.clone());
        tokio::spawn(async move {
            let _until_closed = until_closed;
            if speaks(&stream, timing, stop).await {
                connected(stream, peer, turn).await;
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
                // Out of file descriptors, or a client that disconnected: neither is a reason to stop serving.
                tracing::warn!(%error, "accept failed");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
    if let Err(error) = refuse_new(&listener) {
        tracing::debug!(%error, "whoever connects in the moment of the end may be cut off");
    }
    let over = tokio::time::Instant::now() + timing.linger;
    while let Ok(Ok(accepted)) = tokio::time::timeout_at(over, accept(&listener, &room)).await {
        begin(accepted);
    }
    // Accept what is still in the kernel's queue: closing the listener would reset these connections, and a proxy may
    // have sent its request already.
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
    Ending { cut, ended }
}

/// Has the kernel drop packets that open a connection. Between the last look into its queue and the close of the listener
/// it would accept a connection, and reset it with the request on it. A client whose packet was dropped sends it again a
/// second later, is refused, and knows that nothing of its request was read.
fn refuse_new(listener: &TcpListener) -> io::Result<()> {
    const FLAGS: u32 = 13; // the place of the flags in the header of TCP
    const SYN: u32 = 0x02;
    const ACK: u32 = 0x10;
    socket2::SockRef::from(listener).attach_filter(&[
        SockFilter::new(0x30, 0, 0, FLAGS),     // load the byte
        SockFilter::new(0x54, 0, 0, SYN | ACK), // keep these two flags
        SockFilter::new(0x15, 0, 1, SYN),       // SYN alone: the next line, else the one after it
        SockFilter::new(0x06, 0, 0, 0),         // drop
        SockFilter::new(0x06, 0, 0, u32::MAX),  // pass
    ])
}

/// The next connection, once there is room for it.
async fn accept(listener: &TcpListener, room: &Arc<Semaphore>) -> io::Result<Accepted> {
    let place = room.clone().acquire_owned().await.map_err(io::Error::other)?;
    let (stream, peer) = listener.accept().await?;
    Ok((stream, peer, place))
}

/// Waits for the client's first byte without consuming it. Returns whether it arrived.
async fn speaks(stream: &TcpStream, timing: Timing, mut stop: watch::Receiver<bool>) -> bool {
    let mut byte = [0];
    let stopped = async {
        stop.wait_for(|stop| *stop).await.ok();
        tokio::time::sleep(timing.last_word).await;
    };
    // `biased`: a byte that arrived while this task did not run counts, even if a timeout has passed as well.
    tokio::select! {
        biased;
        first = stream.peek(&mut byte) => first.is_ok_and(|bytes| bytes > 0),
        () = tokio::time::sleep(timing.head) => false,
        () = stopped => false,
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::Empty;
    use hyper::body::{Bytes, Incoming};
    use hyper::server::conn::http1;
    use hyper::service::service_fn;
    use hyper_util::rt::TokioIo;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::task::JoinHandle;

    use super::*;

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: here\r\n\r\n";
    const HOUR: Duration = Duration::from_secs(3600);

    struct Served {
        address: SocketAddr,
        stop: watch::Sender<bool>,
        serving: JoinHandle<Ending>,
        /// One request is answered for each permit.
        answers: Arc<Semaphore>,
        /// How many requests were read.
        begun: watch::Receiver<usize>,
    }

    async fn served(last_word: Duration) -> Served {
        let timing = Timing { last_word, ..Timing::usual(HOUR) };
        served_with(timing).await
    }

    async fn served_with(timing: Timing) -> Served {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = watch::channel(false);
        let answers = Arc::new(Semaphore::new(0));
        let (count, begun) = watch::channel(0);
        let (count, permits) = (Arc::new(count), answers.clone());
        let connected = move |stream, _, turn: Turn| {
            let (count, permits) = (count.clone(), permits.clone());
            async move {
                let requests = turn.requests();
                let service = service_fn(move |_: http::Request<Incoming>| {
                    requests.begun();
                    count.send_modify(|count| *count += 1);
                    let permits = permits.clone();
                    async move {
                        permits.acquire().await.unwrap().forget();
                        Ok::<_, std::convert::Infallible>(http::Response::new(Empty::<Bytes>::new()))
                    }
                });
                turn.serve(http1::Builder::new().serve_connection(TokioIo::new(stream), service)).await;
            }
        };
        let serving = tokio::spawn(serve_with(timing, listener, stopped, connected));
        Served { address, stop, serving, answers, begun }
    }

    /// Everything up to the end of the connection.
    async fn rest(client: &mut TcpStream) -> String {
        let mut heard = String::new();
        tokio::time::timeout(testkit::LIMIT, client.read_to_string(&mut heard)).await.unwrap().unwrap();
        heard
    }

    #[tokio::test]
    async fn who_was_let_in_is_answered_and_then_let_go() {
        let Served { address, stop, serving, answers, mut begun } = served(HOUR).await;
        answers.add_permits(1);
        let mut fresh = TcpStream::connect(address).await.unwrap();
        let mut idle = TcpStream::connect(address).await.unwrap();
        idle.write_all(REQUEST).await.unwrap();
        let mut first = [0; 8];
        idle.read_exact(&mut first).await.unwrap();
        stop.send_replace(true);
        let mut ending = serving.await.unwrap();
        assert!(TcpStream::connect(address).await.is_err(), "nobody is let in any more");
        // Its request was under way when the listener closed.
        fresh.write_all(REQUEST).await.unwrap();
        begun.wait_for(|begun| *begun == 2).await.unwrap();
        answers.add_permits(1);
        let heard = rest(&mut fresh).await;
        assert!(heard.starts_with("HTTP/1.1 200") && heard.contains("connection: close"), "{heard}");
        rest(&mut idle).await;
        ending.finished().await;
    }

    /// A connection that the kernel accepted and nobody took would be reset, and the request on it lost.
    #[tokio::test]
    async fn who_comes_while_it_stops_is_refused_and_not_cut_off() {
        let linger = Duration::from_millis(500);
        let Served { address, stop, serving, .. } = served_with(Timing { linger, ..Timing::usual(HOUR) }).await;
        stop.send_replace(true);
        // The listener learns of it at once, and goes on accepting for half a second.
        tokio::time::sleep(linger / 5).await;
        let late = tokio::time::timeout(testkit::LIMIT, TcpStream::connect(address)).await.unwrap();
        assert_eq!(late.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        serving.await.unwrap().finished().await;
    }

    #[tokio::test]
    async fn who_says_nothing_is_let_go() {
        let Served { address, stop, serving, .. } = served(Duration::from_millis(20)).await;
        let mut silent = TcpStream::connect(address).await.unwrap();
        stop.send_replace(true);
        assert_eq!(rest(&mut silent).await, "");
        serving.await.unwrap().finished().await;
    }

    #[tokio::test]
    async fn what_takes_too_long_is_cut() {
        let Served { address, stop, serving, answers, mut begun } = served(HOUR).await;
        let mut idle = TcpStream::connect(address).await.unwrap();
        answers.add_permits(1);
        idle.write_all(REQUEST).await.unwrap();
        idle.read_exact(&mut [0; 8]).await.unwrap();
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(REQUEST).await.unwrap();
        begun.wait_for(|begun| *begun == 2).await.unwrap();
        stop.send_replace(true);
        let mut ending = serving.await.unwrap();
        // The idle connection ends. The other one was asked to end as well, but its request goes on until `cut`.
        rest(&mut idle).await;
        let mut byte = [0];
        assert_eq!(client.try_read(&mut byte).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert!(ending.ended.try_recv() == Err(mpsc::error::TryRecvError::Empty), "a connection is open");
        ending.cut();
        ending.finished().await;
        assert_eq!(rest(&mut client).await, "");
    }
}
