//! The model that a gateway asks for its answers, if one is configured: over HTTP, in the protocol of its provider entry,
//! on this machine only.

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
    pub api: Api,
}

/// The protocols that it speaks, each as OpenClaw does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    Completions,
    Messages,
    Responses,
}

impl Api {
    /// By its name in a provider entry; an entry without one is of the first.
    fn named(name: Option<&str>) -> Option<Api> {
        match name.unwrap_or("openai-completions") {
            "openai-completions" => Some(Api::Completions),
            "anthropic-messages" => Some(Api::Messages),
            "openai-responses" => Some(Api::Responses),
            _ => None,
        }
    }

    /// What is added to the entry's address.
    fn path(self) -> &'static str {
        match self {
            Api::Completions => "/chat/completions",
            Api::Messages => "/v1/messages",
            Api::Responses => "/responses",
        }
    }

    fn body(self, model: &str, said: &str) -> Value {
        let messages = json!([{"role": "user", "content": said}]);
        match self {
            Api::Completions | Api::Messages => json!({"model": model, "messages": messages, "max_tokens": 1024}),
            Api::Responses => json!({"model": model, "input": messages, "max_output_tokens": 1024, "store": false}),
        }
    }

    /// The text of an answer.
    fn text(self, reply: &Value) -> Option<&str> {
        match self {
            Api::Completions => reply["choices"][0]["message"]["content"].as_str(),
            Api::Messages => typed(&reply["content"], "text")?["text"].as_str(),
            Api::Responses => typed(&typed(&reply["output"], "message")?["content"], "output_text")?["text"].as_str(),
        }
    }

    /// The counts of all input and of the output.
    fn usage(self, reply: &Value) -> (i64, i64) {
        let used = |name: &str| reply["usage"][name].as_i64().unwrap_or(0);
        match self {
            Api::Completions => (used("prompt_tokens"), used("completion_tokens")),
            Api::Messages => {
                let cached = used("cache_read_input_tokens") + used("cache_creation_input_tokens");
                (used("input_tokens") + cached, used("output_tokens"))
            }
            Api::Responses => (used("input_tokens"), used("output_tokens")),
        }
    }
}

/// The first item of this type.
fn typed<'a>(list: &'a Value, of: &str) -> Option<&'a Value> {
    list.as_array()?.iter().find(|item| item["type"] == of)
}

impl Model {
    /// Reads the model from an OpenClaw configuration.
    pub fn of(config: &Value) -> Option<Model> {
        let primary = config["agents"]["defaults"]["model"]["primary"].as_str()?;
        let (provider, name) = primary.split_once('/')?;
        let access = &config["models"]["providers"][provider];
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let api = Api::named(access["api"].as_str())?;
        Some(Model { url: text(&access["baseUrl"])?, key: text(&access["apiKey"])?, name: name.to_owned(), api })
    }

    /// Returns the answer to one message with its usage in OpenClaw's format, or why there is none.
    pub(super) async fn ask(&self, said: &str) -> Result<(String, Value), String> {
        let place = self.url.strip_prefix("http://").ok_or("no such address")?;
        let (place, path) =
            place.split_once('/').map_or((place, String::new()), |(place, path)| (place, format!("/{path}")));
        if !place.starts_with("127.0.0.1:") {
            return Err("a simulated assistant asks nobody but this machine".to_owned());
        }
        let stream = TcpStream::connect(place).await.map_err(|e| e.to_string())?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|e| e.to_string())?;
        tokio::spawn(connection);
        let request = hyper::Request::post(format!("{path}{}", self.api.path()))
            .header(HOST, place)
            .header(CONTENT_TYPE, "application/json");
        let request = match self.api {
            Api::Messages => request.header("x-api-key", &self.key).header("anthropic-version", "2023-06-01"),
            Api::Completions | Api::Responses => request.header(AUTHORIZATION, format!("Bearer {}", self.key)),
        };
        let body = Full::new(Bytes::from(self.api.body(&self.name, said).to_string()));
        let answer =
            sender.send_request(request.body(body).map_err(|e| e.to_string())?).await.map_err(|e| e.to_string())?;
        let status = answer.status();
        let bytes = answer.into_body().collect().await.map_err(|e| e.to_string())?.to_bytes();
        let reply: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let (input, output) = self.api.usage(&reply);
        // The simulation knows no prices, so every cost is 0.
        let usage = json!({"input": input, "output": output, "totalTokens": input + output, "cacheRead": 0, "cacheWrite": 0,
            "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}});
        self.api
            .text(&reply)
            .map(|text| (text.to_owned(), usage))
            .ok_or_else(|| format!("{status} {}", reply["error"]["message"].as_str().unwrap_or_default()))
    }
}
