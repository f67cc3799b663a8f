//! The model that a gateway asks for its answers, if one is configured: over HTTP, in OpenAI's format, on this machine
//! only.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;

#[derive(Clone, Debug)]
pub struct Model {
    /// Such as `http://127.0.0.1:8082/v1`.
    pub url: String,
    pub key: String,
    pub name: String,
}

impl Model {
    /// Reads the model from an OpenClaw configuration.
    pub fn of(config: &Value) -> Option<Model> {
        let primary = config["agents"]["defaults"]["model"]["primary"].as_str()?;
        let (provider, name) = primary.split_once('/')?;
        let access = &config["models"]["providers"][provider];
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Some(Model { url: text(&access["baseUrl"])?, key: text(&access["apiKey"])?, name: name.to_owned() })
    }

    /// Returns the answer to one message with its usage in OpenClaw's format, or why there is none.
    pub(super) async fn ask(&self, said: &str) -> Result<(String, Value), String> {
        let (place, path) =
            self.url.strip_prefix("http://").and_then(|url| url.split_once('/')).ok_or("no such address")?;
        if !place.starts_with("127.0.0.1:") {
            return Err("a simulated assistant asks nobody but this machine".to_owned());
        }
        let stream = TcpStream::connect(place).await.map_err(|e| e.to_string())?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|e| e.to_string())?;
        tokio::spawn(connection);
        let body = json!({"model": self.name, "messages": [{"role": "user", "content": said}], "max_tokens": 1024});
        let request = hyper::Request::post(format!("/{path}/chat/completions"))
            .header(HOST, place)
            .header(AUTHORIZATION, format!("Bearer {}", self.key))
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(body.to_string())))
            .map_err(|e| e.to_string())?;
        let answer = sender.send_request(request).await.map_err(|e| e.to_string())?;
        let status = answer.status();
        let bytes = answer.into_body().collect().await.map_err(|e| e.to_string())?.to_bytes();
        let reply: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let text = reply["choices"][0]["message"]["content"].as_str();
        let used = |name: &str| reply["usage"][name].as_i64().unwrap_or(0);
        let (input, output) = (used("prompt_tokens"), used("completion_tokens"));
        // The simulation knows no prices, so every cost is 0.
        let usage = json!({"input": input, "output": output, "totalTokens": input + output, "cacheRead": 0, "cacheWrite": 0,
            "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}});
        text.map(|text| (text.to_owned(), usage))
            .ok_or_else(|| format!("{status} {}", reply["error"]["message"].as_str().unwrap_or_default()))
    }
}
