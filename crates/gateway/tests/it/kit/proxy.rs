//! An outgoing proxy that knows CONNECT alone, and notes who came.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use super::provider::read;

pub struct Proxy {
    pub address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    /// Lets in whoever brings these credentials as they stand in the header.
    pub async fn start(credentials: &'static str) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let heads: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = heads.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, seen.clone(), credentials));
            }
        });
        Proxy { address, heads }
    }

    /// The heads of all requests.
    pub fn seen(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

async fn serve(mut stream: TcpStream, heads: Arc<Mutex<Vec<String>>>, credentials: &str) {
    let Some(request) = read(&mut stream).await else { return };
    let target = request.head.split_whitespace().nth(1).unwrap_or_default().to_owned();
    let is_let_in = request.head.contains(credentials);
    heads.lock().unwrap().push(request.head);
    if !is_let_in {
        stream.write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n").await.ok();
        return;
    }
    let Ok(mut other) = TcpStream::connect(&target).await else {
        stream.write_all(b"HTTP/1.1 502 Bad Gateway\r\n\r\n").await.ok();
        return;
    };
    stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.ok();
    copy_bidirectional(&mut stream, &mut other).await.ok();
}
