//! A model provider that bills as real ones do: what it read as soon as it has accepted a request, and what it writes until it
//! notices that the other side has left. What it billed is known to the test, whoever left when.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::Wire;
use super::provider::{read, until_left};

/// How it answers.
#[derive(Clone, Debug)]
pub struct Manner {
    /// Tokens of thinking that nobody gets to see; billed before the first word.
    pub thinking: i64,
    /// The words of an answer; `None` goes on until the other side leaves.
    pub words: Option<usize>,
    /// One word.
    pub word: &'static str,
    /// Between two words of a stream.
    pub pause: Duration,
    /// Whether it tells what it bills.
    pub tells: bool,
    /// What the answer waits for, and the end of a stream behind its `finish_reason`. A closed gate opens never.
    pub gate: Option<Arc<Semaphore>>,
    pub end_gate: Option<Arc<Semaphore>>,
}

impl Default for Manner {
    fn default() -> Manner {
        Manner {
            thinking: 0,
            words: Some(3),
            word: "word ",
            pause: Duration::ZERO,
            tells: true,
            gate: None,
            end_gate: None,
        }
    }
}

pub struct Biller {
    address: SocketAddr,
    inner: Arc<Inner>,
}

struct Inner {
    manner: Mutex<Manner>,
    accepted: AtomicUsize,
    billed: AtomicI64,
    left: AtomicUsize,
}

/// A token for every two bytes: text that tokenizers cut finely, and no more than the worst of natural languages.
fn tokens(bytes: usize) -> i64 {
    bytes.div_ceil(2) as i64
}

/// What a request's text costs.
fn input(wire: Wire, body: &Value) -> i64 {
    7 + tokens(wire.text_of(body).len())
}

impl Biller {
    pub async fn start(manner: Manner) -> Biller {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let inner = Arc::new(Inner {
            manner: Mutex::new(manner),
            accepted: AtomicUsize::new(0),
            billed: AtomicI64::new(0),
            left: AtomicUsize::new(0),
        });
        let served = inner.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).unwrap();
                tokio::spawn(serve(stream, served.clone()));
            }
        });
        Biller { address, inner }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How it answers from now on.
    pub fn change(&self, change: impl FnOnce(&mut Manner)) {
        change(&mut self.inner.manner.lock().unwrap());
    }

    /// How many requests it accepted, and of how many the other side left.
    pub fn count(&self) -> usize {
        self.inner.accepted.load(Ordering::SeqCst)
    }

    pub fn gone(&self) -> usize {
        self.inner.left.load(Ordering::SeqCst)
    }

    /// All tokens that it billed so far.
    pub fn billed(&self) -> i64 {
        self.inner.billed.load(Ordering::SeqCst)
    }

    /// Waits until so many requests are accepted, and so billed.
    pub async fn accepted(&self, times: usize) {
        testkit::until_ok("requests reach the provider", async || match self.inner.accepted.load(Ordering::SeqCst) {
            count if count >= times => Ok(()),
            count => Err(format!("{count} of {times}")),
        })
        .await;
    }

    /// Waits until it has noticed so often that the other side left.
    pub async fn left(&self, times: usize) {
        testkit::until_ok("the gateway leaves", async || match self.inner.left.load(Ordering::SeqCst) {
            left if left >= times => Ok(()),
            left => Err(format!("{left} of {times}")),
        })
        .await;
    }
}

/// One answer on its way.
struct Call<'a> {
    wire: Wire,
    stream: &'a mut TcpStream,
    inner: &'a Inner,
    manner: Manner,
    input: i64,
    output: i64,
}

async fn serve(mut stream: TcpStream, inner: Arc<Inner>) {
    while let Some(seen) = read(&mut stream).await {
        let wire = Wire::at(seen.head.split(' ').nth(1).unwrap()).unwrap();
        let body: Value = serde_json::from_slice(&seen.body).unwrap();
        let input = input(wire, &body);
        inner.billed.fetch_add(input, Ordering::SeqCst);
        inner.accepted.fetch_add(1, Ordering::SeqCst);
        let manner = inner.manner.lock().unwrap().clone();
        let mut call = Call { wire, stream: &mut stream, inner: &inner, manner, input, output: 0 };
        let asked_for_usage = wire != Wire::Chat || body["stream_options"]["include_usage"] == true;
        let went = match body["stream"] == true {
            true => call.streamed(asked_for_usage).await,
            false => call.whole().await,
        };
        if went.is_none() {
            inner.left.fetch_add(1, Ordering::SeqCst);
            return;
        }
    }
}

impl Call<'_> {
    fn bill(&mut self, tokens: i64) {
        self.output += tokens;
        self.inner.billed.fetch_add(tokens, Ordering::SeqCst);
    }

    /// Waits for a gate, or until the other side leaves.
    async fn pass(&mut self, gate: Option<Arc<Semaphore>>) -> Option<()> {
        let Some(gate) = gate else { return Some(()) };
        tokio::select! {
            permit = gate.acquire() => {
                permit.unwrap().forget();
                Some(())
            }
            () = until_left(self.stream) => None,
        }
    }

    async fn send(&mut self, bytes: &[u8]) -> Option<()> {
        self.stream.write_all(bytes).await.ok()
    }

    async fn event(&mut self, event: &str) -> Option<()> {
        self.send(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes()).await
    }

    fn usage(&self) -> (i64, i64) {
        (self.input, self.output)
    }

    async fn whole(&mut self) -> Option<()> {
        self.pass(self.manner.gate.clone()).await?;
        let text = self.manner.word.repeat(self.manner.words.unwrap());
        // A vector costs nothing beside its text.
        let written = if self.wire == Wire::Embeddings { 0 } else { tokens(text.len()) };
        self.bill(self.manner.thinking + written);
        let usage = self.manner.tells.then(|| self.usage());
        let body = self.wire.whole(&text, usage).to_string();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ";
        self.send(format!("{head}{}\r\n\r\n{body}", body.len()).as_bytes()).await
    }

    async fn streamed(&mut self, asked_for_usage: bool) -> Option<()> {
        self.pass(self.manner.gate.clone()).await?;
        self.bill(self.manner.thinking);
        self.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n").await?;
        let tells = asked_for_usage && self.manner.tells;
        for event in self.wire.beginning(tells.then_some(self.input)) {
            self.event(&event).await?;
        }
        if self.manner.thinking > 0 {
            for event in self.wire.thinking() {
                self.event(&event).await?;
            }
        }
        let mut sent = 0;
        while self.manner.words.is_none_or(|words| sent < words) {
            // Written is billed, whether anybody reads it or not.
            self.bill(tokens(self.manner.word.len()));
            self.event(&self.wire.word(self.manner.word)).await?;
            sent += 1;
            if !self.manner.pause.is_zero() {
                tokio::time::sleep(self.manner.pause).await;
            }
        }
        let usage = tells.then(|| self.usage());
        self.event(&self.wire.finish(usage)).await?;
        self.pass(self.manner.end_gate.clone()).await?;
        for event in self.wire.end(usage) {
            self.event(&event).await?;
        }
        self.send(b"0\r\n\r\n").await
    }
}
