//! A browser's side of a live chat: tickets, sockets, frames; and an employee with a simulated assistant to talk to.

use std::net::Ipv4Addr;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use sim::assistant::{Assistant, Options as Assistance};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};

use super::call::Origin;
use super::{Database, Options, Site, skip, used_secret};

/// An employee, and an instance of theirs on this very machine.
pub struct Talk {
    pub site: Site,
    pub assistant: Assistant,
    pub user: String,
    pub token: String,
    pub gateway_token: String,
}

/// The conversation that everybody has.
pub const MAIN: &str = "agent:main:main";

impl Talk {
    pub async fn start(database: Database) -> Talk {
        Talk::with(database, Options::default(), |_| {}).await
    }

    pub async fn with(database: Database, options: Options, change: impl FnOnce(&mut Assistance)) -> Talk {
        let site = Site::with(database, options).await;
        let gateway_token = format!("gateway-token-{}", base::id::fresh());
        used_secret(&gateway_token);
        let mut assistance = Assistance::new(&gateway_token);
        assistance.origins.push(site.app.embed.gateway_origin.clone());
        change(&mut assistance);
        let assistant = Assistant::start(assistance).await.unwrap();
        let server = json!({"id": "here", "name": "This machine", "host": "local"});
        site.admin.post("/servers", server).token(&site.root).ok().await;
        let instance = json!({"id": "a0", "name": "Assistant", "server_id": "here", "gateway_port": assistant.port, "gateway_token": gateway_token});
        site.admin.post("/assistant-instances", instance).token(&site.root).ok().await;
        let (user, token) = site.quick_employee("ada@example.com").await;
        site.admin.patch("/instances/a0/assign", json!({"user_id": user})).token(&site.root).ok().await;
        Talk { site, assistant, user, token, gateway_token }
    }

    pub async fn ticket(&self) -> String {
        ticket(&self.site.employee, &self.token, "a0").await
    }

    /// A socket that has heard the relay's hello.
    pub async fn connect(&self) -> Client {
        let mut client = Client::open(&self.site.employee, "a0", &self.ticket().await, &[]).await.unwrap();
        client.event("relay.hello").await;
        client
    }
}

/// An address of this machine that is not loopback: what is sent there does not leave it. None where it has no other.
pub fn own_address(name: &str) -> Option<Ipv4Addr> {
    let table = std::fs::read_to_string("/proc/net/fib_trie").unwrap_or_default();
    let lines: Vec<&str> = table.lines().map(str::trim).collect();
    let own = lines.windows(2).filter(|pair| pair[1] == "/32 host LOCAL");
    let mut own = own.filter_map(|pair| pair[0].strip_prefix("|-- ")?.parse::<Ipv4Addr>().ok());
    let found = own.find(|address| !address.is_loopback());
    if found.is_none() {
        skip(name, "this machine has no address but loopback");
    }
    found
}

pub async fn ticket(employee: &Origin, token: &str, instance: &str) -> String {
    let answer = employee.post(&format!("/me/instances/{instance}/ws-ticket"), json!({})).token(token).ok().await;
    let ticket = answer["ticket"].as_str().unwrap().to_owned();
    used_secret(&ticket);
    ticket
}

/// Asks for a page of the window as a browser does, which leads every name below localhost to its own machine.
pub fn browse(http: &reqwest::Client, url: &str) -> reqwest::RequestBuilder {
    let mut url = reqwest::Url::parse(url).unwrap();
    let host = format!("{}:{}", url.host_str().unwrap(), url.port().unwrap());
    url.set_host(Some("127.0.0.1")).unwrap();
    http.get(url).header("host", host)
}

/// Opens a WebSocket; the status of a refusal.
pub async fn dial(url: &str, headers: &[(&'static str, &str)]) -> Result<WebSocketStream<TcpStream>, u16> {
    let url = url.replace("http://", "ws://");
    let mut request = url.as_str().into_client_request().unwrap();
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse().unwrap());
    }
    let authority = request.uri().authority().unwrap().clone();
    // Browsers lead every name below localhost to their own machine; this machine's resolver may not.
    let host = if authority.host().ends_with(".localhost") { "127.0.0.1" } else { authority.host() };
    let stream = TcpStream::connect((host, authority.port_u16().unwrap())).await.unwrap();
    let config = WebSocketConfig::default().max_message_size(Some(64 << 20)).max_frame_size(Some(64 << 20));
    match tokio_tungstenite::client_async_with_config(request, stream, Some(config)).await {
        Ok((socket, _)) => Ok(socket),
        Err(Error::Http(response)) => Err(response.status().as_u16()),
        Err(error) => panic!("{error}"),
    }
}

pub struct Client {
    pub socket: WebSocketStream<TcpStream>,
    /// Events that came while something else was waited for.
    kept: Vec<Value>,
    /// Every text that came.
    pub heard: String,
    requests: usize,
}

/// How a socket ended.
#[derive(Debug, PartialEq, Eq)]
pub struct Closed(pub u16, pub String);

/// The real OpenClaw thinks for a while on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

impl Client {
    pub async fn open(
        employee: &Origin,
        instance: &str,
        ticket: &str,
        headers: &[(&'static str, &str)],
    ) -> Result<Client, u16> {
        let url = format!("{}/api/v1/me/instances/{instance}/ws?ticket={ticket}", employee.url);
        Ok(Client::over(dial(&url, headers).await?))
    }

    pub fn over(socket: WebSocketStream<TcpStream>) -> Client {
        Client { socket, kept: vec![], heard: String::new(), requests: 0 }
    }

    /// The next text, or how it ended.
    pub async fn next(&mut self) -> Result<Value, Closed> {
        loop {
            let message = tokio::time::timeout(PATIENCE, self.socket.next()).await.expect("nothing came");
            match message {
                Some(Ok(Message::Text(text))) => {
                    self.heard.push_str(&text);
                    return Ok(serde_json::from_str(&text).unwrap());
                }
                Some(Ok(Message::Close(Some(close)))) => {
                    return Err(Closed(close.code.into(), close.reason.to_string()));
                }
                Some(Ok(Message::Close(None))) => return Err(Closed(1005, String::new())),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Err(Closed(1006, String::new())),
            }
        }
    }

    pub async fn say(&mut self, text: impl Into<String>) {
        self.socket.send(Message::text(text.into())).await.unwrap();
    }

    /// Sends a request; answers its id.
    pub async fn ask(&mut self, method: &str, params: Value) -> String {
        self.requests += 1;
        let id = format!("r{}", self.requests);
        self.say(json!({"type": "req", "id": id, "method": method, "params": params}).to_string()).await;
        id
    }

    /// Sends a request and waits for its answer: the payload, or the error.
    pub async fn request(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.ask(method, params).await;
        loop {
            let frame = self.next().await.unwrap();
            if frame["type"] == "res" && frame["id"] == id.as_str() {
                return if frame["ok"] == true { Ok(frame["payload"].clone()) } else { Err(frame["error"].clone()) };
            }
            self.kept.push(frame);
        }
    }

    /// The payload of the next event of a name.
    pub async fn event(&mut self, name: &str) -> Value {
        if let Some(at) = self.kept.iter().position(|frame| frame["event"] == name) {
            return self.kept.remove(at)["payload"].clone();
        }
        loop {
            let frame = self.next().await.unwrap();
            if frame["event"] == name {
                return frame["payload"].clone();
            }
            self.kept.push(frame);
        }
    }

    /// The next chat event of a run in this state.
    pub async fn chat(&mut self, run: &str, state: &str) -> Value {
        loop {
            let event = self.event("chat").await;
            if event["runId"] == run && event["state"] == state {
                return event;
            }
        }
    }

    pub async fn send(&mut self, run: &str, words: &str) -> Value {
        self.request("chat.send", json!({"sessionKey": MAIN, "message": words, "idempotencyKey": run})).await.unwrap()
    }

    /// Reads on to the end.
    pub async fn closed(&mut self) -> Closed {
        loop {
            if let Err(closed) = self.next().await {
                return closed;
            }
        }
    }

    /// Reads on to the end, whatever the frames say; the code that it ended with, where one came.
    pub async fn ended(&mut self) -> Option<u16> {
        loop {
            let message = tokio::time::timeout(PATIENCE, self.socket.next()).await.expect("nothing came");
            match message {
                Some(Ok(Message::Close(close))) => return close.map(|close| close.code.into()),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return None,
            }
        }
    }

    /// The end must come within a second of now. For cases that run alone: a busy machine takes longer.
    pub async fn closed_within_a_second(&mut self) -> Closed {
        tokio::time::timeout(Duration::from_secs(1), self.closed()).await.expect("open for more than a second")
    }
}

/// The words of a message.
pub fn words(event: &Value) -> &str {
    event["message"]["content"][0]["text"].as_str().unwrap()
}
