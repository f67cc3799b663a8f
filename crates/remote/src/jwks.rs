//! Verifies tokens that an identity provider signed. Its keys are fetched, cached, and fetched again when a token names
//! an unknown one.

use std::time::{Duration, Instant};

use base::{Error, Kind, Result};
use jsonwebtoken::jwk::JwkSet;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use serde::de::DeserializeOwned;
use tokio::sync::Mutex;

use crate::http;

/// An unknown key id makes us fetch the keys again, but not more often than this.
const ASK_AGAIN: Duration = Duration::from_secs(10);
const KEEP: Duration = Duration::from_secs(3600);

/// Only algorithms that sign with a private key: with `HS256` the public key would be the secret.
const ALGORITHMS: &[Algorithm] = &[
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

pub struct Jwks {
    url: String,
    http: reqwest::Client,
    kept: Mutex<Option<(JwkSet, Instant)>>,
}

impl Jwks {
    pub fn new(url: String, http: reqwest::Client) -> Jwks {
        Jwks { url, http, kept: Mutex::new(None) }
    }

    /// The claims of a token signed by one of these keys, for this issuer and audience.
    pub async fn verify<T: DeserializeOwned>(&self, token: &str, issuer: &str, audience: Option<&str>) -> Result<T> {
        let refused = |why: &dyn std::fmt::Display| {
            Error::from(Kind::Unauthorized).with_operator(format!("token of {issuer} refused: {why}"))
        };
        let header = decode_header(token).map_err(|e| refused(&e))?;
        if !ALGORITHMS.contains(&header.alg) {
            return Err(refused(&format_args!("algorithm {:?}", header.alg)));
        }
        let key = self.key(header.kid.as_deref()).await?;
        let key = key.ok_or_else(|| refused(&"unknown signing key"))?;
        let mut validation = Validation::new(header.alg);
        validation.set_issuer(&[issuer]);
        validation.set_required_spec_claims(&["exp", "iss"]);
        validation.validate_nbf = true;
        match audience {
            Some(audience) => {
                validation.set_audience(&[audience]);
                validation.set_required_spec_claims(&["exp", "iss", "aud"]);
            }
            None => validation.validate_aud = false,
        }
        decode::<T>(token, &key, &validation).map(|data| data.claims).map_err(|e| refused(&e))
    }

    /// Fetches the keys, without the cache; returns how many there are.
    pub async fn reachable(&self) -> Result<usize> {
        Ok(self.fetch().await?.keys.len())
    }

    async fn key(&self, kid: Option<&str>) -> Result<Option<DecodingKey>> {
        let mut kept = self.kept.lock().await;
        let found = kept.as_ref().and_then(|(set, at)| pick(set, kid).filter(|_| at.elapsed() < KEEP));
        if let Some(key) = found {
            return Ok(Some(key));
        }
        if kept.as_ref().is_none_or(|(_, at)| at.elapsed() >= ASK_AGAIN) {
            *kept = Some((self.fetch().await?, Instant::now()));
        }
        Ok(kept.as_ref().and_then(|(set, _)| pick(set, kid)))
    }

    async fn fetch(&self) -> Result<JwkSet> {
        let what = "the identity provider's keys";
        let answer = self.http.get(&self.url).send().await.map_err(|e| http::failed(what, &e))?;
        if !answer.status().is_success() {
            return Err(http::odd(what, answer.status()));
        }
        answer.json().await.map_err(|e| http::odd(what, e.without_url()))
    }
}

/// The named key, or the only one there is.
fn pick(set: &JwkSet, kid: Option<&str>) -> Option<DecodingKey> {
    let jwk = match kid {
        Some(kid) => set.find(kid)?,
        None => set.keys.first().filter(|_| set.keys.len() == 1)?,
    };
    DecodingKey::from_jwk(jwk).ok()
}
