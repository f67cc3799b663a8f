//! The model providers, each reached at its OpenAI-compatible endpoint, and `echo`, which is built in.

mod client;
pub mod echo;

use std::pin::Pin;
use std::str::FromStr as _;
use std::task::{Context, Poll};
use std::time::Duration;

use base::{Error, Result, Secret};
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use http::{Method, Request, Response, Uri};
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use store::model::ProviderKind;

use client::Client;
use echo::Echo;

/// Request headers of the client that are forwarded to a provider.
const PASSED_ON: [HeaderName; 3] =
    [ACCEPT, HeaderName::from_static("openai-beta"), HeaderName::from_static("anthropic-beta")];

/// Where a provider is, and the key there.
#[derive(Clone, Debug)]
pub struct Access {
    /// Without the path of the endpoint.
    pub url: String,
    pub key: Secret,
}

/// The configured providers.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    pub anthropic: Option<Access>,
    pub openai: Option<Access>,
    pub google: Option<Access>,
    /// Whether models whose provider has no key are answered by `echo`.
    pub echo: bool,
}

/// The public address of a provider.
pub fn public_url(kind: ProviderKind) -> &'static str {
    match kind {
        ProviderKind::Anthropic => "https://api.anthropic.com",
        ProviderKind::Openai => "https://api.openai.com",
        ProviderKind::Google => "https://generativelanguage.googleapis.com",
        ProviderKind::Echo => "",
    }
}

/// The path of the endpoint below a provider's address.
fn path(kind: ProviderKind) -> &'static str {
    match kind {
        ProviderKind::Google => "/v1beta/openai/chat/completions",
        _ => "/v1/chat/completions",
    }
}

/// A provider's endpoint, with the header for its key.
#[derive(Debug)]
struct Endpoint {
    uri: Uri,
    authorization: HeaderValue,
}

impl Endpoint {
    fn new(kind: ProviderKind, access: &Access) -> Result<Endpoint> {
        let fail = |problem: &dyn std::fmt::Display| {
            Error::field(&format!("provider_{}", kind.as_str()), format!("cannot be used: {problem}"))
        };
        let uri = format!("{}{}", access.url.trim_end_matches('/'), path(kind));
        let mut authorization = HeaderValue::from_str(&format!("Bearer {}", access.key.expose()))
            .map_err(|_| fail(&"the key has characters that no header takes"))?;
        authorization.set_sensitive(true);
        Ok(Endpoint { uri: Uri::from_str(&uri).map_err(|e| fail(&e))?, authorization })
    }
}

pub struct Providers {
    client: Client,
    anthropic: Option<Endpoint>,
    openai: Option<Endpoint>,
    google: Option<Endpoint>,
    echo: bool,
}

/// The provider that answers for a model.
#[derive(Clone, Copy)]
pub struct Route<'a> {
    pub kind: ProviderKind,
    /// `None` is `echo`.
    endpoint: Option<&'a Endpoint>,
}

impl Route<'_> {
    pub fn is_echo(&self) -> bool {
        self.endpoint.is_none()
    }
}

/// Why a provider gave no answer at all.
#[derive(Debug)]
pub enum Silent {
    /// The provider could not be reached.
    Connect(String),
    /// The connection broke before an answer began.
    Broken(String),
}

impl Providers {
    pub fn new(settings: &Settings, connect: Duration) -> Result<Providers> {
        let endpoint = |kind, access: &Option<Access>| access.as_ref().map(|a| Endpoint::new(kind, a)).transpose();
        Ok(Providers {
            client: client::new(connect)?,
            anthropic: endpoint(ProviderKind::Anthropic, &settings.anthropic)?,
            openai: endpoint(ProviderKind::Openai, &settings.openai)?,
            google: endpoint(ProviderKind::Google, &settings.google)?,
            echo: settings.echo,
        })
    }

    /// The route for models of a kind; `None` if no provider is configured for it.
    pub fn route(&self, kind: ProviderKind) -> Option<Route<'_>> {
        let endpoint = match kind {
            ProviderKind::Anthropic => &self.anthropic,
            ProviderKind::Openai => &self.openai,
            ProviderKind::Google => &self.google,
            ProviderKind::Echo => return Some(Route { kind, endpoint: None }),
        };
        match endpoint {
            Some(endpoint) => Some(Route { kind, endpoint: Some(endpoint) }),
            None if self.echo => Some(Route { kind: ProviderKind::Echo, endpoint: None }),
            None => None,
        }
    }

    /// Sends a request, and returns as soon as the answer begins.
    pub async fn ask(&self, route: Route<'_>, body: Bytes, from: &HeaderMap) -> Result<Response<Answer>, Silent> {
        let Some(endpoint) = route.endpoint else { return Ok(echo::answer(&body).map(Answer::Echo)) };
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = endpoint.uri.clone();
        let headers = request.headers_mut();
        headers.reserve(8);
        headers.insert(AUTHORIZATION, endpoint.authorization.clone());
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("tidepool/", env!("CARGO_PKG_VERSION"))));
        for name in &PASSED_ON {
            if let Some(value) = from.get(name) {
                headers.insert(name, value.clone());
            }
        }
        match self.client.request(request).await {
            Ok(response) => Ok(response.map(Answer::Http)),
            Err(error) if error.is_connect() => Err(Silent::Connect(causes(&error))),
            Err(error) => Err(Silent::Broken(causes(&error))),
        }
    }
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

/// The body of an answer, from a provider or from `echo`.
pub enum Answer {
    Http(hyper::body::Incoming),
    Echo(Echo),
}

impl Body for Answer {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match self.get_mut() {
            Answer::Http(body) => Pin::new(body).poll_frame(cx),
            Answer::Echo(echo) => echo.poll(cx).map(|piece| piece.map(|piece| Ok(Frame::data(piece)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Answer::Http(body) => body.is_end_stream(),
            Answer::Echo(echo) => echo.is_over(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Answer::Http(body) => body.size_hint(),
            Answer::Echo(_) => SizeHint::default(),
        }
    }
}
