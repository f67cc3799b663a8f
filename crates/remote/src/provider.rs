//! One small request to a model provider, to see what it answers: without redirects, limited in time and size, and to
//! public addresses only unless others are allowed.
//!
//! A name is resolved once: the address that was checked is the one that is connected to. Behind a proxy, that is the
//! proxy's; the provider's name is the proxy's to resolve.

use std::time::{Duration, Instant};

use base::{Error, Result, Secret};
use serde_json::Value;
use url::Url;

use crate::address::{is_written_private, resolve};

/// How much of an answer is read.
pub const MOST_ANSWER: usize = 16 * 1024;

/// What is sent, and how.
pub struct Question<'a> {
    pub url: &'a str,
    pub headers: Vec<(&'static str, Secret)>,
    pub body: &'a Value,
    pub proxy: Option<&'a Secret>,
    pub allow_private: bool,
    pub connect: Duration,
    /// For everything.
    pub limit: Duration,
}

/// What became of it.
#[derive(Debug)]
pub struct Answer {
    pub took: Duration,
    pub outcome: Outcome,
}

#[derive(Debug)]
pub enum Outcome {
    Answered {
        status: u16,
        /// The beginning.
        body: String,
    },
    /// No answer: it cannot be reached, or broke the connection.
    Unreachable(String),
    Late,
}

pub async fn ask(question: Question<'_>) -> Result<Answer> {
    let began = Instant::now();
    let limit = question.limit;
    let outcome = match tokio::time::timeout(limit, send(question)).await {
        Ok(outcome) => outcome?,
        Err(_) => Outcome::Late,
    };
    Ok(Answer { took: began.elapsed(), outcome })
}

async fn send(question: Question<'_>) -> Result<Outcome> {
    let target = Url::parse(question.url).map_err(Error::internal)?;
    let proxy = question.proxy.map(|proxy| Url::parse(proxy.expose())).transpose().map_err(Error::internal)?;
    if !question.allow_private && is_written_private(&target) {
        return Ok(Outcome::Unreachable("a private address is not allowed".into()));
    }
    let first = proxy.as_ref().unwrap_or(&target);
    let host = first.host_str().unwrap_or_default().to_owned();
    let port = first.port_or_known_default().unwrap_or(443);
    let addresses = match resolve(&host, port, question.allow_private, question.connect).await {
        Ok(addresses) => addresses,
        Err(why) => return Ok(Outcome::Unreachable(why.to_string())),
    };
    let mut client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .resolve_to_addrs(&host, &addresses)
        .connect_timeout(question.connect)
        .user_agent(concat!("tidepool/", env!("CARGO_PKG_VERSION")));
    if let Some(proxy) = question.proxy {
        client = client.proxy(reqwest::Proxy::all(proxy.expose()).map_err(Error::internal)?);
    }
    let client = client.build().map_err(Error::internal)?;
    let mut request = client.post(target).json(question.body);
    for (name, value) in &question.headers {
        let mut value = reqwest::header::HeaderValue::from_str(value.expose())
            .map_err(|_| Error::field("key", "has characters that no header takes"))?;
        value.set_sensitive(true);
        request = request.header(*name, value);
    }
    let mut answer = match request.send().await {
        Ok(answer) => answer,
        // Without the address: that of a proxy may have a password.
        Err(error) if error.is_timeout() => return Ok(Outcome::Unreachable("it did not answer in time".into())),
        Err(error) => return Ok(Outcome::Unreachable(causes(&error.without_url()))),
    };
    let status = answer.status().as_u16();
    let mut body = vec![];
    while body.len() < MOST_ANSWER
        && let Ok(Some(piece)) = answer.chunk().await
    {
        body.extend_from_slice(&piece[..piece.len().min(MOST_ANSWER - body.len())]);
    }
    Ok(Outcome::Answered { status, body: String::from_utf8_lossy(&body).into_owned() })
}

/// An error with the chain of its sources.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
