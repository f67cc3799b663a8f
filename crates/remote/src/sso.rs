//! OpenID Connect: authorization code with PKCE, state and nonce, against any provider with discovery.

use std::sync::Arc;
use std::time::{Duration, Instant};

use aws_lc_rs::digest;
use base::secret::random_token;
use base::{Email, Error, Kind, Result, Secret};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::sync::Mutex;
use url::Url;

use crate::http;
use crate::jwks::Jwks;

/// How long the provider's discovery document is cached.
const KEEP: Duration = Duration::from_secs(3600);

#[derive(Clone, Debug)]
pub struct Config {
    pub issuer: String,
    pub client_id: String,
    pub client_secret: Secret,
    pub redirect_url: String,
    /// The requested scopes, separated by spaces.
    pub scopes: String,
}

/// The default scopes.
pub const SCOPES: &str = "openid email profile";

pub struct Provider {
    config: Config,
    http: reqwest::Client,
    discovered: Mutex<Option<(Arc<Discovered>, Instant)>>,
}

struct Discovered {
    metadata: Metadata,
    keys: Jwks,
}

#[derive(Deserialize)]
struct Metadata {
    issuer: String,
    authorization_endpoint: Url,
    token_endpoint: String,
    jwks_uri: String,
    userinfo_endpoint: Option<String>,
    #[serde(default)]
    token_endpoint_auth_methods_supported: Vec<String>,
}

/// One login attempt: what the browser must bring back.
#[derive(Debug, Serialize, Deserialize)]
pub struct Attempt {
    pub state: String,
    pub nonce: String,
    pub verifier: String,
}

/// The person, as the provider describes them.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The issuer and its subject: two providers may use the same subject for two people.
    pub id: String,
    pub email: Option<Email>,
    pub email_verified: bool,
    pub name: Option<String>,
    /// All other claims about the person, such as their groups.
    pub claims: Map<String, Value>,
}

impl Identity {
    /// Whether a claim is this value, or a list that contains it.
    pub fn has(&self, claim: &str, value: &str) -> bool {
        match self.claims.get(claim) {
            Some(Value::String(text)) => text == value,
            Some(Value::Array(list)) => list.iter().any(|one| one.as_str() == Some(value)),
            _ => false,
        }
    }
}

#[derive(Deserialize)]
struct Tokens {
    id_token: String,
    access_token: Option<String>,
}

/// The claims of an id token, of the userinfo endpoint, or of an identity proxy's token.
#[derive(Debug, Default, Deserialize)]
pub struct Claims {
    #[serde(default)]
    pub sub: String,
    pub email: Option<String>,
    pub email_verified: Option<Flag>,
    /// Microsoft Entra ID never sends `email_verified`. Its own optional claim says that the address is in a domain
    /// that the directory has verified.
    pub xms_edov: Option<Flag>,
    pub name: Option<String>,
    pub nonce: Option<String>,
    pub azp: Option<String>,
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// A boolean: some providers send "true" as text, some send 1.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Flag {
    Bool(bool),
    Number(i64),
    Text(String),
}

impl Flag {
    pub fn is_true(&self) -> bool {
        match self {
            Flag::Bool(flag) => *flag,
            Flag::Number(number) => *number == 1,
            Flag::Text(text) => text == "true" || text == "1",
        }
    }
}

impl Claims {
    pub fn identity(self, issuer: &str, verified_by_default: bool) -> Identity {
        Identity {
            id: format!("{issuer}#{}", self.sub),
            email: self.email.as_deref().and_then(|e| e.parse().ok()),
            email_verified: self.email_verified.or(self.xms_edov).map_or(verified_by_default, |flag| flag.is_true()),
            name: self.name,
            claims: self.others,
        }
    }
}

impl Provider {
    pub fn new(config: Config) -> Result<Provider> {
        Ok(Provider { config, http: http::client()?, discovered: Mutex::new(None) })
    }

    /// Fetches the provider's discovery document and keys, so that `check` can report whether it answers.
    pub async fn reachable(&self) -> Result<()> {
        self.discover().await?.keys.reachable().await.map(drop)
    }

    /// Where to send the browser, and what must come back.
    pub async fn begin(&self) -> Result<(Url, Attempt)> {
        let provider = self.discover().await?;
        let random = || Ok::<_, Error>(random_token()?.expose().to_owned());
        let attempt = Attempt { state: random()?, nonce: random()?, verifier: random()? };
        let challenge = BASE64.encode(digest::digest(&digest::SHA256, attempt.verifier.as_bytes()));
        let mut url = provider.metadata.authorization_endpoint.clone();
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.config.client_id)
            .append_pair("redirect_uri", &self.config.redirect_url)
            .append_pair("scope", &self.config.scopes)
            .append_pair("state", &attempt.state)
            .append_pair("nonce", &attempt.nonce)
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256");
        Ok((url, attempt))
    }

    /// Exchanges the code for the person's identity. The caller has already compared the state, because it knows the
    /// browser.
    pub async fn finish(&self, attempt: &Attempt, code: &str) -> Result<Identity> {
        let provider = self.discover().await?;
        let tokens = self.exchange(&provider.metadata, attempt, code).await?;
        let audience = Some(self.config.client_id.as_str());
        let issuer = &provider.metadata.issuer;
        let mut claims: Claims = provider.keys.verify(&tokens.id_token, issuer, audience).await?;
        let refused = |why: &str| Error::from(Kind::Unauthorized).with_operator(format!("id token refused: {why}"));
        if claims.nonce.as_deref() != Some(&attempt.nonce) {
            return Err(refused("nonce does not match"));
        }
        if claims.azp.as_ref().is_some_and(|azp| *azp != self.config.client_id) {
            return Err(refused("issued to another client"));
        }
        if claims.sub.is_empty() {
            return Err(refused("no subject"));
        }
        if claims.email.is_none()
            && let (Some(url), Some(token)) = (&provider.metadata.userinfo_endpoint, &tokens.access_token)
        {
            let more: Claims = self.userinfo(url, token).await?;
            if more.sub != claims.sub {
                return Err(refused("userinfo is about somebody else"));
            }
            let others = claims.others.into_iter().chain(more.others).collect();
            claims = Claims { name: more.name.or(claims.name), nonce: None, azp: None, others, ..more };
        }
        Ok(claims.identity(issuer, false))
    }

    async fn exchange(&self, metadata: &Metadata, attempt: &Attempt, code: &str) -> Result<Tokens> {
        let what = "the identity provider";
        let secret = self.config.client_secret.expose();
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &self.config.redirect_url),
            ("code_verifier", &attempt.verifier),
        ];
        let methods = &metadata.token_endpoint_auth_methods_supported;
        // The standard says that Basic is the default if the provider lists no methods.
        let basic = methods.is_empty() || methods.iter().any(|m| m == "client_secret_basic");
        let request = self.http.post(&metadata.token_endpoint);
        let request = if basic {
            request.basic_auth(form_encoded(&self.config.client_id), Some(form_encoded(secret)))
        } else {
            form.extend([("client_id", self.config.client_id.as_str()), ("client_secret", secret)]);
            request
        };
        let answer = request.form(&form).send().await.map_err(|e| http::failed(what, &e))?;
        if answer.status().is_client_error() {
            #[derive(Deserialize)]
            struct Refusal {
                error: String,
            }
            let status = answer.status();
            let error = answer.json::<Refusal>().await.map_or_else(|_| status.to_string(), |r| r.error);
            // A stale or used code is the user's to solve by signing in again; any other error is in our configuration.
            return Err(match error.as_str() {
                "invalid_grant" => {
                    Error::new(Kind::BadRequest, "the sign-in took too long or was used already; please sign in again")
                        .with_operator("token endpoint: invalid_grant")
                }
                _ => http::odd(what, format_args!("token endpoint: {error}")),
            });
        }
        if !answer.status().is_success() {
            return Err(http::odd(what, answer.status()));
        }
        answer.json().await.map_err(|e| http::odd(what, e.without_url()))
    }

    async fn userinfo(&self, url: &str, token: &str) -> Result<Claims> {
        let what = "the identity provider";
        let answer = self.http.get(url).bearer_auth(token).send().await.map_err(|e| http::failed(what, &e))?;
        if !answer.status().is_success() {
            return Err(http::odd(what, format_args!("userinfo: {}", answer.status())));
        }
        answer.json().await.map_err(|e| http::odd(what, e.without_url()))
    }

    async fn discover(&self) -> Result<Arc<Discovered>> {
        let mut kept = self.discovered.lock().await;
        if let Some((found, at)) = kept.as_ref()
            && at.elapsed() < KEEP
        {
            return Ok(found.clone());
        }
        let what = "the identity provider";
        let issuer = self.config.issuer.trim_end_matches('/');
        let url = format!("{issuer}/.well-known/openid-configuration");
        let answer = self.http.get(url).send().await.map_err(|e| http::failed(what, &e))?;
        if !answer.status().is_success() {
            return Err(http::odd(what, format_args!("discovery: {}", answer.status())));
        }
        let metadata: Metadata = answer.json().await.map_err(|e| http::odd(what, e.without_url()))?;
        if metadata.issuer.trim_end_matches('/') != issuer {
            return Err(http::odd(what, format_args!("discovery names another issuer, {}", metadata.issuer)));
        }
        let keys = Jwks::new(metadata.jwks_uri.clone(), self.http.clone());
        let found = Arc::new(Discovered { metadata, keys });
        *kept = Some((found.clone(), Instant::now()));
        Ok(found)
    }
}

/// Credentials in a Basic header are form-encoded first (RFC 6749, 2.3.1).
fn form_encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verified(claims: &str) -> bool {
        let claims: Claims = serde_json::from_str(claims).unwrap();
        claims.identity("https://id.example.com", false).email_verified
    }

    #[test]
    fn an_address_is_verified_in_the_words_of_every_provider() {
        for yes in [
            r#"{"email_verified": true}"#,
            r#"{"email_verified": "true"}"#,
            r#"{"xms_edov": true}"#,
            r#"{"xms_edov": 1}"#,
            r#"{"xms_edov": "1"}"#,
        ] {
            assert!(verified(yes), "{yes}");
        }
        for no in [
            "{}",
            r#"{"email_verified": false, "xms_edov": true}"#,
            r#"{"email_verified": "yes"}"#,
            r#"{"xms_edov": 0}"#,
            r#"{"xms_edov": "false"}"#,
        ] {
            assert!(!verified(no), "{no}");
        }
    }
}
