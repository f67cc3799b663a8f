//! The model providers, each reached in the protocols that it speaks, and `echo`, which is built in.

mod client;

use std::collections::VecDeque;
use std::pin::Pin;
use std::str::FromStr as _;
use std::task::{Context, Poll};
use std::time::Duration;

use base::{Error, Result, Secret};
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use http::{Method, Request, Response, Uri};
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use store::model::ProviderKind;

use crate::echo::{self, Echo};
use crate::protocol::{self, KeyHeader, Protocol};
use client::Client;

/// The header in which Anthropic's own API takes the key.
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

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

/// The names of the protocols that a provider speaks.
pub fn protocols(kind: ProviderKind) -> Vec<&'static str> {
    let spoken = protocol::ALL.iter().filter(|protocol| protocol.is_billed && protocol.is_spoken_by(kind));
    spoken.map(|protocol| protocol.name).collect()
}

/// A provider's endpoints, with the headers for its key.
#[derive(Debug)]
struct Endpoint {
    /// By the place of the protocol: its address, and the one with the protocol's query.
    uris: [Option<(Uri, Uri)>; protocol::ALL.len()],
    bearer: HeaderValue,
    api_key: HeaderValue,
}

impl Endpoint {
    fn new(kind: ProviderKind, access: &Access) -> Result<Endpoint> {
        let fail = |problem: &dyn std::fmt::Display| {
            Error::field(&format!("provider_{}", kind.as_str()), format!("cannot be used: {problem}"))
        };
        let mut uris = [const { None }; protocol::ALL.len()];
        for protocol in protocol::ALL {
            let Some(path) = protocol.path_at(kind) else { continue };
            let uri = format!("{}{path}", access.url.trim_end_matches('/'));
            let with_query = format!("{uri}?{}", protocol.query.unwrap_or_default());
            let parsed = |uri: &str| Uri::from_str(uri).map_err(|e| fail(&e));
            uris[protocol.place] = Some((parsed(&uri)?, parsed(&with_query)?));
        }
        let header = |value: &str| {
            let mut value = HeaderValue::from_str(value)?;
            value.set_sensitive(true);
            Ok::<_, http::header::InvalidHeaderValue>(value)
        };
        let of_key = |prefix: &str| {
            let value = header(&format!("{prefix}{}", access.key.expose()));
            value.map_err(|_| fail(&"the key has characters that no header takes"))
        };
        Ok(Endpoint { uris, bearer: of_key("Bearer ")?, api_key: of_key("")? })
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

/// What of the client's request, beside its body, decides how a provider is asked.
pub struct ClientRequest<'a> {
    pub protocol: &'static Protocol,
    pub headers: &'a HeaderMap,
    pub query: Option<&'a str>,
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
    pub async fn ask(
        &self,
        route: Route<'_>,
        body: Bytes,
        from: &ClientRequest<'_>,
    ) -> Result<Response<Answer>, Silent> {
        let protocol = from.protocol;
        let Some(endpoint) = route.endpoint else { return Ok(echo::answer(protocol.echo, &body).map(Answer::Echo)) };
        let Some((uri, with_query)) = &endpoint.uris[protocol.place] else {
            return Err(Silent::Connect(format!("{} is not spoken there", protocol.name)));
        };
        let uri = if protocol.query.is_some() && from.query == protocol.query { with_query } else { uri };
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = uri.clone();
        let headers = request.headers_mut();
        headers.reserve(8);
        match protocol.key_header {
            KeyHeader::Bearer => headers.insert(AUTHORIZATION, endpoint.bearer.clone()),
            KeyHeader::ApiKey => headers.insert(API_KEY, endpoint.api_key.clone()),
        };
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("tidepool/", env!("CARGO_PKG_VERSION"))));
        for (name, usual) in protocol.headers {
            let name = HeaderName::from_static(name);
            // A header may come more than once, such as one for each beta.
            for value in from.headers.get_all(&name) {
                headers.append(&name, value.clone());
            }
            if let Some(usual) = usual
                && !headers.contains_key(&name)
            {
                headers.insert(name, HeaderValue::from_static(usual));
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
    /// Its beginning was read already.
    Begun(VecDeque<Bytes>, Box<Answer>),
}

impl Body for Answer {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match self.get_mut() {
            Answer::Http(body) => Pin::new(body).poll_frame(cx),
            Answer::Echo(echo) => echo.poll(cx).map(|piece| piece.map(|piece| Ok(Frame::data(piece)))),
            Answer::Begun(pieces, rest) => match pieces.pop_front() {
                Some(piece) => Poll::Ready(Some(Ok(Frame::data(piece)))),
                None => Pin::new(rest.as_mut()).poll_frame(cx),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Answer::Http(body) => body.is_end_stream(),
            Answer::Echo(echo) => echo.is_over(),
            Answer::Begun(pieces, rest) => pieces.is_empty() && rest.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Answer::Http(body) => body.size_hint(),
            Answer::Echo(_) | Answer::Begun(..) => SizeHint::default(),
        }
    }
}
