//! Relays frames in both directions. Neither side is read faster than the other accepts frames, and the socket ends if
//! one side accepts nothing for too long. A frame counts against the memory limit (`remote::memory`) until it is sent.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use openclaw::frame::{Head, allowed, forbidden};
use remote::assistant::{Message, Payload, Socket, Utf8Bytes, is_out_of_memory};
use remote::memory::Share;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout, timeout_at};

use super::{ClientRead, ClientWrite, End, RelayMode};

/// How often the browser is pinged. Its pong arrives long before `SILENCE` is over.
const PING: Duration = Duration::from_secs(25);
/// The socket ends if the browser sends nothing for this long. It is enough for a frame of 25 MB over a slow line,
/// during which no pong can arrive.
const SILENCE: Duration = Duration::from_secs(180);
/// The socket ends if the gateway sends nothing for this long. It sends something at least every 30 s.
const GATEWAY_SILENCE: Duration = Duration::from_secs(120);
/// Timeout of sending one frame.
const SLOW: Duration = Duration::from_secs(60);
/// How many of the platform's own answers may wait for the browser.
const WAITING: usize = 16;

/// Relays frames until one side ends the socket.
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
                    // The frame, and its copy in the outgoing buffer.
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
    /// The platform answers instead of the gateway, in the same format.
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
