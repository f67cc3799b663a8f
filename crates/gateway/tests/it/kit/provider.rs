//! A model provider on a socket of its own that does as it is told, byte by byte.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// What to do with a request.
#[derive(Clone, Debug)]
pub enum Act {
    /// Answers with a JSON body.
    Json(u16, Vec<(&'static str, String)>, String),
    /// A stream in these pieces, each after a pause.
    Stream(Vec<Vec<u8>>, Duration),
    /// The same, each piece when the test adds a permit.
    GatedStream(Vec<Vec<u8>>, Arc<Semaphore>),
    /// The same, cut off before its end.
    CutStream(Vec<Vec<u8>>),
    /// The same, and then silence until the other side leaves.
    SilentStream(Vec<Vec<u8>>),
    /// Promises more than it sends.
    CutJson(String),
    /// Says nothing until the other side leaves.
    Silence,
    /// Leaves without a word.
    Close,
    /// Acts when the test adds a permit.
    Gated(Arc<Semaphore>, Box<Act>),
}

/// A request as it arrived.
#[derive(Clone, Debug)]
pub struct Seen {
    pub head: String,
    pub body: Vec<u8>,
}

pub struct Provider {
    pub address: SocketAddr,
    inner: Arc<Inner>,
}

struct Inner {
    usual: Act,
    script: Mutex<VecDeque<Act>>,
    seen: Mutex<Vec<Seen>>,
    /// How often the other side left in the middle.
    left: AtomicUsize,
}

impl Provider {
    /// Does `usual` whenever nothing else was said.
    pub async fn start(usual: Act) -> Provider {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let inner =
            Arc::new(Inner { usual, script: Mutex::default(), seen: Mutex::default(), left: AtomicUsize::new(0) });
        let served = inner.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).unwrap();
                tokio::spawn(serve(stream, served.clone()));
            }
        });
        Provider { address, inner }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What to do with the next requests, one each.
    pub fn then(&self, acts: impl IntoIterator<Item = Act>) {
        self.inner.script.lock().unwrap().extend(acts);
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.inner.seen.lock().unwrap().clone()
    }

    pub fn count(&self) -> usize {
        self.inner.seen.lock().unwrap().len()
    }

    /// Waits until the other side has left so often.
    pub async fn left(&self, times: usize) {
        testkit::until_ok("the gateway leaves", async || match self.inner.left.load(Ordering::SeqCst) {
            left if left >= times => Ok(()),
            left => Err(format!("{left} of {times}")),
        })
        .await;
    }

    /// Waits until so many requests have arrived.
    pub async fn asked(&self, times: usize) {
        testkit::until_ok("requests reach the provider", async || match self.count() {
            count if count >= times => Ok(()),
            count => Err(format!("{count} of {times}")),
        })
        .await;
    }
}

async fn serve(mut stream: TcpStream, inner: Arc<Inner>) {
    while let Some(seen) = read(&mut stream).await {
        inner.seen.lock().unwrap().push(seen);
        let act = inner.script.lock().unwrap().pop_front().unwrap_or_else(|| inner.usual.clone());
        if !perform(&mut stream, &inner, act).await {
            return;
        }
    }
}

/// Answers whether the connection may be used again.
async fn perform(stream: &mut TcpStream, inner: &Inner, act: Act) -> bool {
    match act {
        Act::Json(status, headers, body) => {
            let more: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
            let head = format!(
                "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n{more}content-length: {}\r\n\r\n",
                body.len()
            );
            stream.write_all((head + &body).as_bytes()).await.is_ok()
        }
        Act::Stream(pieces, pause) => {
            send(stream, &pieces, Pace::Pause(pause)).await && stream.write_all(b"0\r\n\r\n").await.is_ok()
        }
        Act::GatedStream(pieces, gate) => {
            send(stream, &pieces, Pace::Gate(&gate)).await && stream.write_all(b"0\r\n\r\n").await.is_ok()
        }
        Act::CutStream(pieces) => {
            send(stream, &pieces, Pace::Pause(Duration::ZERO)).await;
            stream.flush().await.ok();
            false
        }
        Act::SilentStream(pieces) => {
            send(stream, &pieces, Pace::Pause(Duration::ZERO)).await;
            until_left(stream).await;
            inner.left.fetch_add(1, Ordering::SeqCst);
            false
        }
        Act::CutJson(body) => {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100000\r\n\r\n";
            stream.write_all((head.to_owned() + &body).as_bytes()).await.ok();
            false
        }
        Act::Silence => {
            until_left(stream).await;
            inner.left.fetch_add(1, Ordering::SeqCst);
            false
        }
        Act::Close => false,
        Act::Gated(gate, act) => {
            gate.acquire().await.unwrap().forget();
            Box::pin(perform(stream, inner, *act)).await
        }
    }
}

/// When the next piece of a stream is sent.
enum Pace<'a> {
    Pause(Duration),
    Gate(&'a Semaphore),
}

async fn send(stream: &mut TcpStream, pieces: &[Vec<u8>], pace: Pace<'_>) -> bool {
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n";
    // What is sent without a pause is sent with one write: nothing can come between.
    let mut bytes = head.as_bytes().to_vec();
    for piece in pieces {
        match pace {
            Pace::Pause(Duration::ZERO) => {}
            Pace::Pause(pause) => {
                if stream.write_all(&std::mem::take(&mut bytes)).await.is_err() {
                    return false;
                }
                tokio::time::sleep(pause).await;
            }
            Pace::Gate(gate) => {
                if stream.write_all(&std::mem::take(&mut bytes)).await.is_err() {
                    return false;
                }
                gate.acquire().await.unwrap().forget();
            }
        }
        bytes.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        bytes.extend_from_slice(piece);
        bytes.extend_from_slice(b"\r\n");
    }
    stream.write_all(&bytes).await.is_ok()
}

/// Waits until the other side leaves.
pub async fn until_left(stream: &mut TcpStream) {
    let mut byte = [0];
    assert_eq!(stream.read(&mut byte).await.unwrap_or(0), 0, "more than was agreed");
}

pub async fn read(stream: &mut TcpStream) -> Option<Seen> {
    let mut bytes = vec![];
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let length = head
        .lines()
        .find_map(|l| l.to_lowercase().strip_prefix("content-length: ").map(|n| n.trim().parse::<usize>().unwrap()));
    let length = length.unwrap_or(0);
    while bytes.len() < end + length {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    Some(Seen { head, body: bytes[end..end + length].to_vec() })
}

/// A whole answer with this usage.
pub fn answer(text: &str, prompt: i64, completion: i64) -> Act {
    let body = format!(
        "{{\"id\":\"c-1\",\"object\":\"chat.completion\",\"model\":\"told-by-provider\",\"choices\":[{{\"index\":0,\"message\":{{\"role\":\"assistant\",\"content\":\"{text}\"}},\"finish_reason\":\"stop\"}}],\n  \"usage\": {{\"prompt_tokens\": {prompt}, \"completion_tokens\": {completion}, \"total_tokens\": {}}}}}",
        prompt + completion
    );
    Act::Json(200, vec![("x-request-id", "of-the-provider".into())], body)
}

/// A stream of these words; with usage as OpenAI tells it when it is asked.
pub fn stream_of(words: &[&str], usage: Option<(i64, i64)>) -> Vec<Vec<u8>> {
    let null = if usage.is_some() { ",\"usage\":null" } else { "" };
    let mut pieces: Vec<Vec<u8>> = words
        .iter()
        .map(|word| {
            format!("data: {{\"id\":\"c-1\",\"object\":\"chat.completion.chunk\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{word}\"}}}}]{null}}}\n\n")
                .into_bytes()
        })
        .collect();
    if let Some((prompt, completion)) = usage {
        let message = format!(
            "data: {{\"id\":\"c-1\",\"choices\":[],\"usage\":{{\"prompt_tokens\":{prompt},\"completion_tokens\":{completion},\"total_tokens\":{}}}}}\n\n",
            prompt + completion
        );
        pieces.push(message.into_bytes());
    }
    pieces.push(b"data: [DONE]\n\n".to_vec());
    pieces
}
