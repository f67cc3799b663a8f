//! The HTTP client that all of `remote` uses, and how its failures become our errors.

use std::time::Duration;

use base::{Error, Kind, Result};

/// A client that follows no redirects: a service that we call answers by itself, or is not to be trusted.
pub fn client() -> Result<reqwest::Client> {
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(Duration::from_secs(5))
        .timeout(Duration::from_secs(10))
        .user_agent(concat!("tidepool/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(Error::internal)
}

/// A call failed: the server did not answer, was too slow, or sent an answer that makes no sense.
pub fn failed(what: &str, error: &reqwest::Error) -> Error {
    let kind = if error.is_timeout() {
        Kind::TimedOut
    } else if error.is_connect() || error.is_request() {
        Kind::Unavailable
    } else {
        Kind::Gateway
    };
    // The URL may carry a secret in its query, so the error is reported without it.
    let mut cause = String::new();
    let mut source: Option<&dyn std::error::Error> = std::error::Error::source(error);
    while let Some(e) = source {
        cause = format!("{cause}: {e}");
        source = e.source();
    }
    Error::new(kind, format!("{what}: {}", kind.message())).with_operator(format!("{what}{cause}"))
}

/// An answer arrived, but it breaks the protocol.
pub fn odd(what: &str, why: impl std::fmt::Display) -> Error {
    Error::new(Kind::Gateway, format!("{what} answered badly")).with_operator(format!("{what}: {why}"))
}
