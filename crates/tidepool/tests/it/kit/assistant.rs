//! A real OpenClaw on a host, talked to over its own WebSocket, and a model server beside it.

use std::time::{Duration, Instant};

use futures_util::{SinkExt as _, StreamExt as _};
use openclaw::frame::{ChatEvent, Frame, Request, Scope, connect};
use remote::host::{Command, Forwarded, Host};
use serde_json::Value;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

/// A cold start takes a minute on a busy machine.
pub const START: Duration = Duration::from_secs(170);
const ANSWER: Duration = Duration::from_secs(120);

/// A model server on the host itself; answers its address.
pub async fn model_server(host: &Host) -> String {
    let port = 20_000 + u16::from_le_bytes(base::secret::random_bytes::<2>().unwrap()) % 5_000;
    let script = r#"
        printf '%s' "$2" >"/run/model-$1.py"
        systemd-run -q --unit="model-$1" python3 "/run/model-$1.py" "$1"
        for i in $(seq 600); do curl -fs -o /dev/null "http://127.0.0.1:$1/" && exit 0; sleep 0.1; done
        echo "the model server does not answer: $(systemctl status "model-$1")" >&2
        exit 1"#;
    let args = [port.to_string(), include_str!("model.py").to_owned()];
    let command = Command::script("test", &[script]).args(args).limit(2 * testkit::LIMIT);
    host.succeed(&command).await.unwrap();
    format!("http://127.0.0.1:{port}")
}

/// A conversation with an instance's gateway, over its own WebSocket.
pub struct Talk {
    socket: WebSocketStream<Forwarded>,
    asked: u32,
}

impl Talk {
    pub async fn open(host: &Host, port: u16, token: &str) -> Talk {
        let stream = host.tunnel(port).await.unwrap();
        let (socket, _) = tokio_tungstenite::client_async(format!("ws://127.0.0.1:{port}/"), stream).await.unwrap();
        let mut talk = Talk { socket, asked: 0 };
        while !matches!(talk.next().await, Frame::Event(event) if event.event == "connect.challenge") {}
        let hello = connect("hello", &base::Secret::new(token), Scope::CHAT, None);
        talk.socket.send(Message::text(hello.expose())).await.unwrap();
        assert!(talk.answer("hello").await.is_object());
        talk
    }

    async fn next(&mut self) -> Frame {
        loop {
            let message = tokio::time::timeout(ANSWER, self.socket.next()).await.expect("no frame in time");
            if let Message::Text(text) = message.expect("the socket ended").unwrap() {
                return Frame::parse(&text).unwrap();
            }
        }
    }

    async fn answer(&mut self, id: &str) -> Value {
        loop {
            if let Frame::Response(response) = self.next().await
                && response.id == id
            {
                return response.read().unwrap();
            }
        }
    }

    pub async fn ask(&mut self, make: impl FnOnce(String) -> Request) -> Value {
        self.asked += 1;
        let id = format!("q{}", self.asked);
        self.socket.send(Message::text(make(id.clone()).to_text())).await.unwrap();
        self.answer(&id).await
    }

    /// Says something and waits for the whole reply; answers it, and in how many pieces it came.
    pub async fn say(&mut self, text: &str) -> (String, usize) {
        self.asked += 1;
        let (id, key) = (format!("q{}", self.asked), base::id::fresh());
        let request = Request::chat_send(id, "agent:main:main", text, &key, &[]);
        self.socket.send(Message::text(request.to_text())).await.unwrap();
        let (mut pieces, began) = (0, Instant::now());
        loop {
            assert!(began.elapsed() < ANSWER, "no reply");
            let Frame::Event(event) = self.next().await else { continue };
            let Some(chat) = (event.event == "chat").then(|| event.read::<ChatEvent>()).flatten() else { continue };
            if chat.is_end() {
                return (chat.text(), pieces);
            }
            pieces += 1;
        }
    }
}
