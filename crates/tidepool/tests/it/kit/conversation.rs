//! Somebody who writes to a gateway all the time, over one socket of their own: no message may be lost, and nobody may hang up.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use openclaw::frame::{ChatEvent, ChatState, Frame, History, Request, Scope, connect, text_of};
use remote::host::{Forwarded, Host};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use super::talk::MAIN;

/// The first reply of a gateway takes half a minute on a quiet machine, and all gateways of a case share its two cores.
const REPLY: Duration = Duration::from_secs(180);
/// A person reads a reply before writing the next message.
const READS: Duration = Duration::from_secs(2);
/// More messages than a case sends.
const HISTORY: u32 = 1_000;

/// An error says how the conversation was interrupted.
type Result<T> = std::result::Result<T, String>;

/// A socket of a gateway's user.
struct Line {
    socket: WebSocketStream<Forwarded>,
    requests: u32,
}

impl Line {
    async fn open(host: &Host, port: u16, token: &str) -> Result<Line> {
        let stream = host.tunnel(port).await.map_err(|error| error.to_string())?;
        let opened = tokio_tungstenite::client_async(format!("ws://127.0.0.1:{port}/"), stream).await;
        let mut line = Line { socket: opened.map_err(|error| error.to_string())?.0, requests: 0 };
        while !matches!(line.next().await?, Frame::Event(event) if event.event == "connect.challenge") {}
        let hello = connect("hello", &base::Secret::new(token), Scope::CHAT, None);
        line.send(hello.expose().to_owned()).await?;
        line.answer("hello").await?;
        Ok(line)
    }

    async fn send(&mut self, text: String) -> Result<()> {
        self.socket.send(Message::text(text)).await.map_err(|error| format!("the socket ended: {error}"))
    }

    async fn next(&mut self) -> Result<Frame> {
        loop {
            let message = timeout(REPLY, self.socket.next()).await.map_err(|_| "nothing came in time")?;
            match message {
                Some(Ok(Message::Text(text))) => {
                    match Frame::parse(&text).map_err(|error| error.client.into_owned())? {
                        Frame::Event(event) if event.is_shutdown() => {
                            return Err(format!("it stops: {}", event.payload));
                        }
                        frame => return Ok(frame),
                    }
                }
                Some(Ok(Message::Close(close))) => return Err(format!("it closed the socket: {close:?}")),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(format!("the socket ended: {error}")),
                None => return Err("the socket ended".into()),
            }
        }
    }

    async fn answer(&mut self, id: &str) -> Result<Value> {
        loop {
            if let Frame::Response(response) = self.next().await?
                && response.id == id
            {
                return response.outcome.map_err(|error| format!("refused: {}", error.to_error().client));
            }
        }
    }

    fn number(&mut self) -> String {
        self.requests += 1;
        format!("c{}", self.requests)
    }

    /// Sends a message and waits for its whole reply.
    async fn say(&mut self, text: &str) -> Result<String> {
        let (id, key) = (self.number(), base::id::fresh());
        self.send(Request::chat_send(&id, MAIN, text, &key, &[]).to_text()).await?;
        loop {
            match self.next().await? {
                Frame::Response(response) if response.id == id => {
                    response.outcome.map_err(|error| format!("{text:?} was refused: {}", error.to_error().client))?;
                }
                Frame::Event(event) if event.event == "chat" => match event.read::<ChatEvent>() {
                    // A socket gets the events of all runs.
                    Some(chat) if chat.run_id != key || !chat.is_end() => {}
                    Some(chat) if chat.state == ChatState::Final => return Ok(chat.text()),
                    _ => return Err(format!("{text:?} has no reply: {}", event.payload)),
                },
                _ => {}
            }
        }
    }

    async fn history(&mut self) -> Result<Vec<Value>> {
        let id = self.number();
        self.send(Request::chat_history(&id, MAIN, Some(HISTORY)).to_text()).await?;
        let history: History = serde_json::from_value(self.answer(&id).await?).map_err(|error| error.to_string())?;
        Ok(history.messages)
    }
}

/// What was said, and what the gateway knows of it.
pub struct Spoken {
    /// The words that it was to remember, in their order.
    pub words: Vec<String>,
    /// A reply to each.
    pub replies: Vec<String>,
    /// On the same socket, at the end.
    history: Vec<Value>,
}

impl Spoken {
    /// Every message is in the history once, and its reply behind it.
    pub fn require_whole(&self) {
        let said = |role: &str, message: &Value| (message["role"] == role).then(|| text_of(message));
        let has = |text: &str, word: &String| text.split_whitespace().any(|one| one == word);
        for word in &self.words {
            let questions: Vec<usize> = (0..self.history.len())
                .filter(|at| said("user", &self.history[*at]).is_some_and(|text| has(&text, word)))
                .collect();
            let [question] = questions[..] else { panic!("{word} is there {questions:?}: {:#?}", self.history) };
            let reply = self.history[question..].iter().find_map(|message| said("assistant", message));
            assert!(reply.is_some_and(|text| has(&text, word)), "no reply to {word}: {:#?}", self.history);
        }
        assert_eq!(self.words.len(), self.replies.len());
    }
}

/// A conversation that goes on until it is ended.
pub struct Conversation {
    name: String,
    stop: watch::Sender<bool>,
    /// How many replies have come.
    replies: watch::Receiver<usize>,
    task: JoinHandle<Result<Spoken>>,
}

impl Conversation {
    /// Begins with a message, and waits for its reply. Each later message has the assistant remember a word that begins
    /// with `name`.
    pub async fn begin(host: &Host, port: u16, token: &str, name: &str) -> Conversation {
        let (stop, stopped) = watch::channel(false);
        let (count, replies) = watch::channel(0);
        let talk = talk(host.clone(), port, token.to_owned(), name.to_owned(), stopped, count);
        let mut conversation = Conversation { name: name.to_owned(), stop, replies, task: tokio::spawn(talk) };
        conversation.goes_on(1).await;
        conversation
    }

    /// Waits until so many more messages have had their reply.
    pub async fn goes_on(&mut self, more: usize) {
        let before = *self.replies.borrow();
        if self.replies.wait_for(|count| *count >= before + more).await.is_err() {
            let interrupted = (&mut self.task).await.unwrap().err();
            panic!("the conversation with {} was interrupted: {}", self.name, interrupted.unwrap_or_default());
        }
    }

    /// Ends after the reply that is being waited for.
    pub async fn end(self) -> Spoken {
        self.stop.send(true).ok();
        let ended = self.task.await.unwrap();
        ended.unwrap_or_else(|why| panic!("the conversation with {} was interrupted: {why}", self.name))
    }
}

async fn talk(
    host: Host,
    port: u16,
    token: String,
    name: String,
    mut stop: watch::Receiver<bool>,
    count: watch::Sender<usize>,
) -> Result<Spoken> {
    let mut line = Line::open(&host, port, &token).await?;
    let (mut words, mut replies) = (vec![], vec![]);
    while !*stop.borrow() {
        let word = format!("{name}{}", words.len() + 1);
        let reply = line.say(&format!("remember the {word}")).await?;
        if reply.split_whitespace().last() != Some(&word) {
            return Err(format!("the reply to {word} is {reply:?}"));
        }
        words.push(word);
        replies.push(reply);
        count.send_replace(words.len());
        // Whatever comes meanwhile, it is not the end of the socket.
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => {}
            () = sleep(READS) => {}
            ended = hung_up(&mut line) => return Err(ended),
        }
    }
    Ok(Spoken { words, replies, history: line.history().await? })
}

/// Reads on for as long as the socket stands; answers how it ended.
async fn hung_up(line: &mut Line) -> String {
    loop {
        if let Err(ended) = line.next().await {
            return ended;
        }
    }
}

/// Says one thing to a gateway, and answers its reply with the words of all messages that it knows.
pub async fn ask_once(host: &Host, port: u16, token: &str, word: &str) -> (String, Vec<String>) {
    let asked = async {
        let mut line = Line::open(host, port, token).await?;
        let reply = line.say(&format!("remember the {word}")).await?;
        let known = line.history().await?.iter().map(text_of).collect::<Vec<_>>();
        Ok::<_, String>((reply, known.iter().flat_map(|text| text.split_whitespace()).map(str::to_owned).collect()))
    };
    asked.await.unwrap()
}
