//! A socket on a server's loopback: through its SSH connection, or directly if the server is this machine.
//!
//! russh delivers received data through a bounded queue per channel, and stops reading the whole connection when one
//! queue is full. So a task of ours always drains the channel. A reader that falls too far behind is cut off, and the
//! other readers are not affected.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use russh::client::Msg;
use russh::{Channel, ChannelMsg, ChannelOpenFailure, ChannelReadHalf};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio::time::timeout;

use super::error::Error;
use super::session::Fault;
use super::ssh::Connection;
use crate::memory::Share;

/// Connecting on this machine takes microseconds.
const OPEN: Duration = Duration::from_secs(5);
/// How long we wait for the gateway to close the channel after we ended it.
const GOODBYE: Duration = Duration::from_secs(2);
/// How many bytes may wait for a reader. The largest message of an assistant is 25 MiB; it is read as it arrives, not
/// when it is complete.
const PILE: usize = 16 << 20;
/// The overhead of each piece: a gateway may send single bytes.
const EACH: usize = 256;

/// Bytes both ways. Dropping it closes the socket on the server.
pub struct Forwarded(Way);

enum Way {
    Ssh(Tunnel),
    Local(TcpStream),
}

struct Tunnel {
    incoming: mpsc::UnboundedReceiver<Bytes>,
    current: Bytes,
    pile: Arc<Pile>,
    outgoing: Pin<Box<dyn AsyncWrite + Send>>,
    /// When this is dropped, the task that drains the channel ends and closes it.
    _alive: oneshot::Sender<()>,
}

/// The bytes that wait for the reader, and the error after them, if the stream did not end normally.
#[derive(Default)]
struct Pile {
    share: Mutex<Share>,
    fault: OnceLock<io::ErrorKind>,
}

impl Pile {
    /// Adds a piece, if there is room for it.
    fn add(&self, data: &Bytes) -> Result<(), io::ErrorKind> {
        let mut share = self.share.lock().unwrap_or_else(PoisonError::into_inner);
        let size = data.len() + EACH;
        match share.size() + size {
            all if all > PILE => Err(io::ErrorKind::TimedOut),
            _ if share.grow(size) => Ok(()),
            _ => Err(io::ErrorKind::OutOfMemory),
        }
    }

    fn remove(&self, data: &Bytes) {
        self.share.lock().unwrap_or_else(PoisonError::into_inner).shrink(data.len() + EACH);
    }
}

/// Opens a tunnel to a port of the server's loopback.
pub(super) async fn open(
    connection: Arc<Connection>,
    permit: OwnedSemaphorePermit,
    port: u16,
) -> Result<Forwarded, Fault> {
    let (opened, wait) = oneshot::channel();
    tokio::spawn(async move {
        let channel = connection.handle.channel_open_direct_tcpip("127.0.0.1", u32::from(port), "127.0.0.1", 0);
        let channel = match timeout(connection.timing.open, channel).await {
            Ok(Ok(channel)) => channel,
            Ok(Err(russh::Error::ChannelOpenFailure(why))) => {
                let reason = match why {
                    ChannelOpenFailure::ConnectFailed => Error::PortClosed { port },
                    _ => Error::NoForwarding,
                };
                return drop(opened.send(Err(Fault::Failed(reason))));
            }
            Ok(Err(_)) => return drop(opened.send(Err(Fault::Lost))),
            Err(_) => {
                connection.retire();
                return drop(opened.send(Err(Fault::Lost)));
            }
        };
        connection.count_channel();
        serve(channel, opened).await;
        drop(permit);
    });
    wait.await.unwrap_or(Err(Fault::Lost))
}

pub(super) async fn local(port: u16) -> Result<Forwarded, Error> {
    match timeout(OPEN, TcpStream::connect(("127.0.0.1", port))).await {
        Ok(Ok(stream)) => {
            stream.set_nodelay(true).ok();
            Ok(Forwarded(Way::Local(stream)))
        }
        _ => Err(Error::PortClosed { port }),
    }
}

async fn serve(channel: Channel<Msg>, opened: oneshot::Sender<Result<Forwarded, Fault>>) {
    let (mut read, write) = channel.split();
    let (sender, incoming) = mpsc::unbounded_channel();
    let (alive, gone) = oneshot::channel();
    let pile = Arc::new(Pile::default());
    let outgoing = Box::pin(write.make_writer());
    let tunnel = Tunnel { incoming, current: Bytes::new(), pile: pile.clone(), outgoing, _alive: alive };
    // If the caller has gone, this drops the tunnel, and `gone` ends it.
    opened.send(Ok(Forwarded(Way::Ssh(tunnel)))).ok();
    tokio::select! {
        () = take_in(&mut read, sender, &pile) => {}
        _ = gone => {
            // Let the server close the channel first: otherwise russh 0.65 does not free it.
            write.eof().await.ok();
            timeout(GOODBYE, until_closed(&mut read)).await.ok();
        }
    }
    write.close().await.ok();
}

async fn take_in(read: &mut ChannelReadHalf, sender: mpsc::UnboundedSender<Bytes>, pile: &Pile) {
    loop {
        match read.wait().await {
            Some(ChannelMsg::Data { data }) => {
                if let Err(fault) = pile.add(&data) {
                    pile.fault.set(fault).ok();
                    return;
                }
                if sender.send(data).is_err() {
                    return;
                }
            }
            // The server sends nothing more; our side may go on until it closes.
            Some(ChannelMsg::Eof) => return half_closed(read, sender).await,
            Some(ChannelMsg::Close) => return,
            None => {
                pile.fault.set(io::ErrorKind::ConnectionReset).ok();
                return;
            }
            Some(_) => {}
        }
    }
}

async fn half_closed(read: &mut ChannelReadHalf, sender: mpsc::UnboundedSender<Bytes>) {
    drop(sender);
    until_closed(read).await;
}

async fn until_closed(read: &mut ChannelReadHalf) {
    while !matches!(read.wait().await, Some(ChannelMsg::Close) | None) {}
}

impl AsyncRead for Tunnel {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        while self.current.is_empty() {
            match ready!(self.incoming.poll_recv(cx)) {
                Some(data) => {
                    self.pile.remove(&data);
                    self.current = data;
                }
                None => return Poll::Ready(self.pile.fault.get().map_or(Ok(()), |kind| Err((*kind).into()))),
            }
        }
        let size = self.current.len().min(buf.remaining());
        buf.put_slice(&self.current[..size]);
        self.current.advance(size);
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Forwarded {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0 {
            Way::Ssh(tunnel) => Pin::new(tunnel).poll_read(cx, buf),
            Way::Local(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Forwarded {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().0 {
            Way::Ssh(tunnel) => tunnel.outgoing.as_mut().poll_write(cx, buf),
            Way::Local(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0 {
            Way::Ssh(tunnel) => tunnel.outgoing.as_mut().poll_flush(cx),
            Way::Local(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0 {
            Way::Ssh(tunnel) => tunnel.outgoing.as_mut().poll_shutdown(cx),
            Way::Local(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
