//! Deliveries to webhooks: signed, without redirects, and to public addresses only unless the configuration allows
//! others.
//!
//! A name is resolved once: the address that was checked is the one that is connected to.

use std::time::Duration;

use aws_lc_rs::hmac;
use base::{Error, Kind, Result, Secret};
use jiff::Timestamp;
use url::Url;

use crate::address::{Unresolved, is_written_private, resolve};

const LIMIT: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, Default)]
pub struct Webhooks {
    /// Whether loopback and private addresses may be called.
    pub allow_private: bool,
}

impl Webhooks {
    /// Refuses a URL that can never be delivered to. A name is not resolved yet.
    pub fn check(&self, url: &Secret) -> Result<()> {
        self.parse(url).map(drop)
    }

    fn parse(&self, url: &Secret) -> Result<Url> {
        let refuse = |why: &str| Error::field("channel", why);
        let url = Url::parse(url.expose()).map_err(|_| refuse("must be a URL such as https://hooks.example.com/x"))?;
        if !matches!(url.scheme(), "http" | "https") || !url.username().is_empty() || url.password().is_some() {
            return Err(refuse("must be an http or https URL without a user"));
        }
        if url.host().is_none() {
            return Err(refuse("names no host"));
        }
        if !self.allow_private && is_written_private(&url) {
            return Err(refuse("is a private address, which webhook_allow_private does not allow"));
        }
        Ok(url)
    }

    /// Delivers a JSON body; returns the status. `id` is the same in every attempt.
    pub async fn deliver(&self, url: &Secret, key: &Secret, id: &str, at: Timestamp, body: String) -> Result<u16> {
        let url = self.parse(url)?;
        let (host, port) = (url.host_str().unwrap_or_default().to_owned(), url.port_or_known_default().unwrap_or(443));
        let addresses = match resolve(&host, port, self.allow_private, LIMIT).await {
            Ok(addresses) => addresses,
            Err(Unresolved::Private) => {
                return Err(Error::conflict("the webhook's name leads to a private address, which is not allowed"));
            }
            Err(Unresolved::Away(why)) => {
                return Err(Error::new(Kind::Unavailable, "the webhook cannot be reached").with_operator(why));
            }
        };
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .resolve_to_addrs(&host, &addresses)
            .timeout(LIMIT)
            .user_agent(concat!("tidepool/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(Error::internal)?;
        let time = at.as_second();
        let answer = client
            .post(url)
            .header("content-type", "application/json")
            .header("x-tidepool-delivery", id)
            .header("x-tidepool-signature", format!("t={time},v1={}", sign(key, time, &body)))
            .body(body)
            .send()
            .await
            .map_err(|e| crate::http::failed("the webhook", &e))?;
        let status = answer.status();
        if status.is_success() { Ok(status.as_u16()) } else { Err(crate::http::odd("the webhook", status)) }
    }
}

/// HMAC-SHA-256 of `<time>.<body>`, in hexadecimal.
pub fn sign(key: &Secret, time: i64, body: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key.expose().as_bytes());
    let tag = hmac::sign(&key, format!("{time}.{body}").as_bytes());
    tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_delivered_to_is_refused() {
        let strict = Webhooks::default();
        for bad in [
            "",
            "x",
            "ftp://a/",
            "https://u:p@a.example/",
            "http://127.0.0.1/",
            "http://[::1]:8/",
            "http://localhost/",
            "http://0x7f.1/",
            "http://2130706433/",
            "http://169.254.169.254/latest",
            "file:///etc/passwd",
        ] {
            assert!(strict.check(&Secret::new(bad)).is_err(), "{bad}");
        }
        assert!(strict.check(&Secret::new("https://hooks.example.com/x")).is_ok());
        assert!(Webhooks { allow_private: true }.check(&Secret::new("http://127.0.0.1:1/")).is_ok());
    }

    /// Checks only that the signature has the right length and depends on the key and the time.
    #[test]
    fn a_signature_is_hmac_sha_256() {
        let made = sign(&Secret::new("whsec_x"), 1_700_000_000, "{}");
        assert_eq!(made.len(), 64);
        assert_ne!(made, sign(&Secret::new("whsec_y"), 1_700_000_000, "{}"));
        assert_ne!(made, sign(&Secret::new("whsec_x"), 1_700_000_001, "{}"));
    }
}
