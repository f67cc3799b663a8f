//! Asking an instance's gateway over its server's connection: is it alive, is it ready, does it answer a chat. What another program on its
//! port would answer does not count.

use std::time::Duration;

use base::{Error, Kind, Result};
use openclaw::Version;
use openclaw::program;
use remote::host::Command;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use super::{Assistant, cell, install};
use crate::tenant;

const ASK: Duration = Duration::from_secs(5);
/// Until there is a socket at all.
const TURN: Duration = Duration::from_secs(15);
const LONGEST: u64 = 64 * 1024;

pub struct Answer {
    pub status: u16,
    pub body: Value,
}

/// GET on the gateway's port. `None` where nothing listens, or nothing sensible answers.
pub async fn get(assistant: &Assistant, path: &str) -> Result<Option<Answer>> {
    let (port, tenant) = (assistant.port(), tenant::tenant(&assistant.instance)?);
    // That the server takes us at last is not the instance's to say: whoever waits for that in vain learns nothing of it.
    let late = || Error::new(Kind::TimedOut, "the server did not let us ask in time");
    let mut socket = match timeout(TURN, assistant.host.forward(port, &tenant)).await {
        Ok(Ok(socket)) => socket,
        Ok(Err(remote::host::Error::PortClosed { .. })) => return Ok(None),
        Ok(Err(error)) => return Err(Error::from(error)),
        Err(_) => return Err(late()),
    };
    let asked = async {
        // HTTP/1.0: the answer is whole when the connection ends.
        let request = format!("GET {path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\nAccept: application/json\r\n\r\n");
        let mut answer = vec![];
        let reply = async {
            socket.write_all(request.as_bytes()).await?;
            socket.flush().await?;
            (&mut socket).take(LONGEST).read_to_end(&mut answer).await
        };
        reply.await.ok().and_then(|_| parse(&answer))
    };
    Ok(timeout(ASK, asked).await.unwrap_or(None))
}

fn parse(answer: &[u8]) -> Option<Answer> {
    let text = String::from_utf8_lossy(answer);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()?;
    Some(Answer { status, body: serde_json::from_str(body).unwrap_or(Value::Null) })
}

/// How far an instance has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    Silent,
    Alive,
    /// Ready, but for these channels.
    Ready(Vec<String>),
}

/// Channels are for bots: one that does not come up is a finding, and no reason to call the assistant down.
const CHANNELS: &[&str] = &["telegram", "discord", "slack", "whatsapp", "signal", "matrix"];

pub async fn stage(assistant: &Assistant) -> Result<Stage> {
    let alive = get(assistant, program::HEALTH).await?.is_some_and(|a| a.status == 200 && a.body["ok"] == json!(true));
    if !alive {
        return Ok(Stage::Silent);
    }
    let Some(ready) = get(assistant, "/readyz").await? else { return Ok(Stage::Alive) };
    let failing: Vec<String> = match ready.body["failing"].as_array() {
        Some(list) => list.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect(),
        None => vec![],
    };
    let only_channels = !failing.is_empty() && failing.iter().all(|name| CHANNELS.contains(&name.as_str()));
    Ok(if ready.status == 200 || only_channels { Stage::Ready(failing) } else { Stage::Alive })
}

/// The version that a running gateway says it is.
pub async fn version(assistant: &Assistant) -> Result<Option<Version>> {
    let answer = match get(assistant, "/startupz").await {
        // What another program on its port is says nothing of the instance.
        Err(error) if error.kind == Kind::Conflict => None,
        answer => answer?,
    };
    Ok(answer.and_then(|a| a.body["version"].as_str()?.parse().ok()))
}

/// A conversation of ours, apart from the owner's.
const SESSION: &str = "agent:main:tidepool-check";
const CALL: Duration = Duration::from_secs(45);

/// Sends one message to the assistant and waits for its answer: the proof that history, models and key work together.
pub async fn chat(assistant: &Assistant, version: &Version, limit: Duration) -> Result<()> {
    let message =
        json!({"sessionKey": SESSION, "message": "Answer with the word ready.", "idempotencyKey": base::id::fresh()});
    let before = replies(assistant, version).await?;
    call(assistant, version, "chat.send", &message).await?;
    let waited = async {
        loop {
            // A look that fails says nothing about the reply: the gateway is busy with it.
            match replies(assistant, version).await {
                Ok(now) if now > before => return,
                Ok(_) => {}
                Err(error) => tracing::debug!(%error, "the reply of a check cannot be looked for yet"),
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    let late = || Error::new(Kind::TimedOut, "the assistant did not answer a chat message");
    timeout(limit, waited).await.map_err(|_| late())
}

async fn replies(assistant: &Assistant, version: &Version) -> Result<usize> {
    let history = call(assistant, version, "chat.history", &json!({"sessionKey": SESSION})).await?;
    // A turn that failed may leave a message too.
    let is_reply = |message: &&Value| {
        message["role"] == "assistant" && message["content"] != json!([]) && message["stopReason"] != "error"
    };
    Ok(history["messages"].as_array().map_or(0, |list| list.iter().filter(is_reply).count()))
}

/// One RPC, made by OpenClaw's own command on the server, which finds address and token in the instance's configuration.
async fn call(assistant: &Assistant, version: &Version, method: &str, params: &Value) -> Result<Value> {
    let place = &assistant.place;
    let command = Command::new(install::program(version))
        .args(program::call(method, params))
        .env(program::STATE_DIR, place.state_dir())
        .env(program::CONFIG_PATH, place.config_path())
        .limit(CALL);
    let said = cell::run(assistant, command).await?.ok("openclaw")?.text();
    let from = said.find('{').unwrap_or(0);
    serde_json::from_str(&said[from..])
        .map_err(|e| Error::from(Kind::Gateway).with_operator(format_args!("{method}: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_whatever_its_body() {
        let answer = parse(b"HTTP/1.1 503 Service Unavailable\r\nX: y\r\n\r\n{\"ready\":false}").unwrap();
        assert_eq!((answer.status, answer.body), (503, json!({"ready": false})));
        assert_eq!(parse(b"HTTP/1.0 200 OK\r\n\r\n<html>").unwrap().body, Value::Null);
        for odd in [&b""[..], b"SSH-2.0-x\r\n", b"HTTP/1.1 \r\n\r\n", b"\xff\xfe"] {
            assert!(parse(odd).is_none());
        }
    }
}
