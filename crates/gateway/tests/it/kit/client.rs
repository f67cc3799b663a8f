//! A client of the gateway that sees every byte: HTTP/1.1 by hand over a socket.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::Wire;

#[derive(Clone, Debug)]
pub struct Client {
    pub address: SocketAddr,
    pub key: String,
    /// The protocol that it speaks.
    pub wire: Wire,
}

/// A whole answer.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

/// A question of the usual kind.
pub fn ask(model: &str, text: &str) -> Value {
    json!({"model": model, "messages": [{"role": "user", "content": text}]})
}

impl Client {
    /// The same client in another protocol.
    pub fn speaking(&self, wire: Wire) -> Client {
        Client { wire, ..self.clone() }
    }

    async fn begin(&self, method: &str, path: &str, body: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            self.key,
            body.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(body).await.unwrap();
        stream
    }

    pub async fn send(&self, method: &str, path: &str, body: &[u8]) -> Reply {
        Stream::over(self.begin(method, path, body).await).await.rest().await
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.send("GET", path, b"").await
    }

    /// A question in its protocol, and the whole answer.
    pub async fn chat(&self, body: &Value) -> Reply {
        self.chat_bytes(body.to_string().as_bytes()).await
    }

    /// A question of these very bytes.
    pub async fn chat_bytes(&self, body: &[u8]) -> Reply {
        self.send("POST", self.wire.path(), body).await
    }

    /// A question whose answer is read bit by bit.
    pub async fn open(&self, body: &Value) -> Stream {
        let stream = self.begin("POST", self.wire.path(), body.to_string().as_bytes()).await;
        Stream::over(stream).await
    }

    /// Sends a question and does not wait for anything.
    pub async fn post_only(&self, body: &Value) -> TcpStream {
        self.begin("POST", self.wire.path(), body.to_string().as_bytes()).await
    }

    /// A request with these header lines instead of the usual ones for the key and the content.
    pub async fn send_with(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let lines: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: gateway\r\n{lines}content-length: {length}\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(body).await.unwrap();
        Stream::over(stream).await.rest().await
    }
}

/// An answer that is still coming.
pub struct Stream {
    stream: TcpStream,
    pub status: u16,
    pub head: String,
    /// What came behind the head.
    raw: Vec<u8>,
}

impl Stream {
    async fn over(mut stream: TcpStream) -> Stream {
        let mut raw = vec![];
        let end = loop {
            if let Some(at) = raw.windows(4).position(|w| w == b"\r\n\r\n") {
                break at + 4;
            }
            assert!(stream.read_buf(&mut raw).await.unwrap() > 0, "no answer: {:?}", String::from_utf8_lossy(&raw));
        };
        let head = String::from_utf8(raw[..end].to_vec()).unwrap().to_lowercase();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Stream { stream, status, head, raw: raw.split_off(end) }
    }

    /// Reads until this text has come.
    pub async fn until(&mut self, text: &str) {
        while !String::from_utf8_lossy(&self.body().0).contains(text) {
            let read = self.stream.read_buf(&mut self.raw).await.unwrap();
            assert!(read > 0, "ended before {text}: {}", String::from_utf8_lossy(&self.raw));
        }
    }

    /// Reads until so many bytes of the body have come, or its end.
    pub async fn read(&mut self, bytes: usize) {
        while self.raw.len() < bytes && self.stream.read_buf(&mut self.raw).await.unwrap_or(0) > 0 {}
    }

    /// What has come of the body so far, and whether it is whole.
    pub fn body(&self) -> (Vec<u8>, bool) {
        if let Some(length) = self.header("content-length") {
            let length: usize = length.parse().unwrap();
            return (self.raw.clone(), self.raw.len() >= length);
        }
        let (mut body, mut rest) = (vec![], self.raw.as_slice());
        while let Some(at) = rest.windows(2).position(|w| w == b"\r\n") {
            let size = usize::from_str_radix(std::str::from_utf8(&rest[..at]).unwrap(), 16).unwrap();
            let Some(chunk) = rest.get(at + 2..at + 2 + size) else { break };
            if size == 0 {
                return (body, true);
            }
            body.extend_from_slice(chunk);
            rest = rest.get(at + 4 + size..).unwrap_or_default();
        }
        (body, false)
    }

    fn header(&self, name: &str) -> Option<String> {
        header(&self.head, name)
    }

    /// Reads to the end of the connection.
    pub async fn rest(mut self) -> Reply {
        self.stream.read_to_end(&mut self.raw).await.ok();
        let (body, _) = self.body();
        testkit::trace::answered("/v1", &String::from_utf8_lossy(&body));
        Reply { status: self.status, head: self.head, body }
    }

    /// Reads to the end; answers the body and whether it was whole.
    pub async fn end(mut self) -> (Vec<u8>, bool) {
        self.stream.read_to_end(&mut self.raw).await.ok();
        self.body()
    }
}

fn header(head: &str, name: &str) -> Option<String> {
    head.lines().find_map(|line| line.strip_prefix(&format!("{name}: "))).map(str::to_owned)
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<String> {
        header(&self.head, name)
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// Asserts a refusal; answers its message.
    #[track_caller]
    pub fn refused(&self, status: u16, code: &str) -> String {
        assert_eq!(self.status, status, "{self:?} {}", self.text());
        let error = self.json()["error"].clone();
        assert_eq!(error["code"], code, "{error}");
        let mut keys: Vec<&String> = error.as_object().unwrap().keys().collect();
        keys.sort();
        assert_eq!(keys, ["code", "message", "param", "type"]);
        error["message"].as_str().unwrap().to_owned()
    }
}

impl Reply {
    /// Asserts a refusal in Anthropic's format; answers its message.
    #[track_caller]
    pub fn refused_by_anthropic(&self, status: u16, kind: &str) -> String {
        assert_eq!(self.status, status, "{self:?} {}", self.text());
        let body = self.json();
        assert_eq!((&body["type"], &body["error"]["type"]), (&json!("error"), &json!(kind)), "{body}");
        body["error"]["message"].as_str().unwrap().to_owned()
    }
}

/// One event of a stream as its JSON.
pub fn event(text: &str) -> Value {
    serde_json::from_str(text.trim().strip_prefix("data: ").unwrap()).unwrap()
}
