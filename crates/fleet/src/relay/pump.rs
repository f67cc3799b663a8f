//! Frames both ways. Neither side is read faster than the other takes it, and whoever takes nothing for too long is left. A frame counts
//! as held (`remote::memory`) until it was taken.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use openclaw::frame::{Head, allowed, forbidden};
use remote::assistant::{Message, Payload, Socket, Utf8Bytes, is_out_of_memory};
use remote::memory::Share;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout, timeout_at};

use super::{ClientRead, ClientWrite, End, RelayMode};

/// A browser that is there answers a ping long before.
const PING: Duration = Duration::from_secs(25);
/// Time enough for a frame of 25 MB over a slow line, during which no pong can come.
const SILENCE: Duration = Duration::from_secs(180);
/// A gateway says something every 30 s at least.
const GATEWAY_SILENCE: Duration = Duration::from_secs(120);
/// How long one frame may take to be taken.
const SLOW: Duration = Duration::from_secs(60);
/// Answers of our own that wait for the browser.
const WAITING: usize = 16;

/// Carries frames until one side ends it.
pub async fn run(
    reader: &mut impl ClientRead,
    writer: &mut impl ClientWrite,
    gateway: Socket,
    hello: Option<String>,
    mode: RelayMode,
) -> End {
    let meter = gateway.get_ref().meter();
    let (mut out, mut from) = gateway.split();
    let (answers, mut answered) = mpsc::channel::<String>(WAITING);

    let upward = async {
        let mut held = Share::default();
        loop {
            let message = match timeout(SILENCE, reader.next()).await {
                Ok(Some(Ok(message))) => message,
                Ok(Some(Err(error))) => return End::of_browser(&error),
                Ok(None) => return End::new(End::NORMAL, "the browser left"),
                Err(_) => return End::new(End::NORMAL, "the browser is silent"),
            };
            let text = match message {
                Message::Text(text) => text,
                Message::Binary(_) => return End::new(End::UNSUPPORTED, "frames are texts"),
                Message::Close(_) => return End::new(End::NORMAL, "the browser left"),
                _ => continue,
            };
            match judge(&text, mode) {
                Verdict::Pass => {
                    // It, and its copy on the way out.
                    if !held.grow(2 * text.len()) {
                        return End::full();
                    }
                    match timeout(SLOW, out.send(Message::Text(text))).await {
                        Ok(Ok(())) => held.clear(),
                        Ok(Err(_)) => return End::lost(),
                        Err(_) => return End::new(End::INSTANCE, "the instance takes nothing"),
                    }
                }
                Verdict::Answer(answer) => {
                    if answers.send(answer).await.is_err() {
                        return End::lost();
                    }
                }
                Verdict::End(end) => return end,
            }
        }
    };

    let downward = async {
        let mut ping = interval(PING);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ping.reset();
        let mut last_word = Instant::now();
        let mut next = hello.map(|hello| Message::text(Utf8Bytes::from(hello)));
        loop {
            if let Some(message) = next.take() {
                if !meter.copy(message.len()) {
                    return End::full();
                }
                match timeout(SLOW, writer.send(message)).await {
                    Ok(Ok(())) => meter.passed_on(),
                    Ok(Err(_)) => return End::new(End::NORMAL, "the browser left"),
                    Err(_) => return End::new(End::REFUSED, "the browser takes nothing"),
                }
            }
            next = tokio::select! {
                Some(answer) = answered.recv() => Some(Message::text(answer)),
                said = timeout_at(last_word + GATEWAY_SILENCE, from.next()) => match said {
                    Ok(Some(Ok(Message::Text(text)))) => {
                        last_word = Instant::now();
                        Some(Message::Text(text))
                    }
                    Ok(Some(Ok(Message::Close(close)))) => return End::of_gateway(close),
                    Ok(Some(Ok(other))) => {
                        meter.left_out(&other);
                        None
                    }
                    Ok(Some(Err(error))) if is_out_of_memory(&error) => return End::full(),
                    Ok(Some(Err(_)) | None) | Err(_) => return End::lost(),
                },
                _ = ping.tick() => Some(Message::Ping(Payload::new())),
            };
        }
    };

    tokio::select! {
        end = upward => end,
        end = downward => end,
    }
}

enum Verdict {
    Pass,
    /// Answered by us, in the gateway's manner.
    Answer(String),
    End(End),
}

fn judge(text: &str, mode: RelayMode) -> Verdict {
    if mode == RelayMode::Page {
        return Verdict::Pass;
    }
    match Head::parse(text) {
        Ok(head) if allowed(&head.method) => Verdict::Pass,
        Ok(head) => Verdict::Answer(forbidden(&head)),
        Err(error) => Verdict::End(End::new(End::REFUSED, error.client)),
    }
}
