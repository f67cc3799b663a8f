//! The two steps of single sign-on that both sides share: to the provider, and back.
//!
//! The attempt (state, nonce, PKCE verifier) travels in a short-lived sealed cookie, which binds it to
//! the browser and needs no store, so any replica can finish what another began.

use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Redirect, Response};
use base::{Error, Kind, Result, Secret};
use jiff::{SignedDuration, Timestamp};
use people::Side;
use people::token::Audience;
use queue::audit::By;
use remote::sso::{Attempt, Identity};
use serde::{Deserialize, Serialize};
use store::seal::Place;
use utoipa::IntoParams;

use crate::PublicUrl;
use crate::error::ApiError;
use crate::state::Api;

/// How long somebody may take to sign in at the provider.
const PATIENCE: SignedDuration = SignedDuration::from_mins(10);

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Callback {
    /// The provider's authorization code.
    pub code: Option<String>,
    /// What we gave the browser when it left.
    pub state: Option<String>,
    /// The provider's word for what went wrong.
    pub error: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    attempt: Attempt,
    until: Timestamp,
}

/// Sends the browser to the identity provider.
pub async fn begin(api: &Api, by: &By) -> Result<Response, ApiError> {
    let provider = side(api).sso.as_ref().ok_or(Kind::SsoNotConfigured)?;
    people::sso::admit(&api.app, by).await?;
    let (url, attempt) = provider.begin().await?;
    let kept = Kept { attempt, until: api.app.clock.now() + PATIENCE };
    let text = serde_json::to_string(&kept).map_err(Error::internal)?;
    let sealed = api.app.sealer.seal(place(api), &Secret::new(text))?;
    let mut response = redirect(url.as_str())?;
    set_cookie(api, &mut response, &sealed, PATIENCE.as_secs())?;
    Ok(response)
}

/// Who came back from the identity provider.
pub async fn finish(api: &Api, headers: &HeaderMap, callback: &Callback) -> Result<Identity> {
    let provider = side(api).sso.as_ref().ok_or(Kind::SsoNotConfigured)?;
    if let Some(error) = &callback.error {
        let message = if error == "access_denied" { "the sign-in was cancelled" } else { "the sign-in was refused" };
        return Err(Error::new(Kind::BadRequest, message).with_operator(format!("provider: {error}")));
    }
    let stale = || Error::new(Kind::BadRequest, "this sign-in was not begun in this browser, or too long ago");
    let attempt = kept(api, headers).ok_or_else(|| stale().with_operator("no usable sign-in cookie"))?;
    let state = callback.state.as_deref().unwrap_or_default();
    let same = aws_lc_rs::constant_time::verify_slices_are_equal(state.as_bytes(), attempt.state.as_bytes());
    if same.is_err() {
        return Err(stale().with_operator("state does not match"));
    }
    let code = callback.code.as_deref().ok_or_else(|| Error::field("code", "is missing"))?;
    provider.finish(&attempt, code).await
}

/// What a browser comes back with.
pub enum Arrival {
    Session(Secret),
    /// A second factor is left to show, or to set up.
    SecondFactor {
        token: Secret,
        enrolment: bool,
    },
}

impl Arrival {
    fn token(&self) -> &Secret {
        match self {
            Arrival::Session(token) | Arrival::SecondFactor { token, .. } => token,
        }
    }

    fn fragment(&self) -> String {
        match self {
            Arrival::Session(token) => format!("token={}", token.expose()),
            Arrival::SecondFactor { token, enrolment } => {
                format!("mfa_token={}&mfa_enrolment={enrolment}", token.expose())
            }
        }
    }
}

/// The callback's answer: JSON for programs, the web app with the token behind `#` for browsers.
pub fn answer<T: IntoResponse>(
    api: &Api,
    headers: &HeaderMap,
    outcome: Result<(Arrival, T)>,
) -> Result<Response, ApiError> {
    let mut response = match outcome {
        Ok((_, json)) if wants_json(headers) => json.into_response(),
        Ok((arrival, _)) => {
            let mut response = redirect(&api.public_url.join(&format!("/#{}", arrival.fragment())))?;
            hand_over(api, &mut response, arrival.token())?;
            response
        }
        Err(error) if wants_json(headers) => ApiError(error).into_response(),
        Err(error) => {
            tracing::warn!(side = api.side.as_str(), %error, "sign-in failed");
            let message: String = url::form_urlencoded::byte_serialize(error.client.as_bytes()).collect();
            redirect(&api.public_url.join(&format!("/#sso_error={}", message.replace('+', "%20"))))?
        }
    };
    // One attempt, one use.
    set_cookie(api, &mut response, "", 0)?;
    Ok(response)
}

fn side(api: &Api) -> &Side {
    match api.side {
        Audience::Employee => &api.app.employee,
        Audience::Admin => &api.app.admin,
    }
}

fn place(api: &Api) -> Place<'static> {
    Place { table: "cookie", column: api.side.as_str(), id: "sso" }
}

/// With TLS a name that browsers take from this very host alone: a page of a neighbouring host, such as an assistant's window, could
/// otherwise plant a cookie for the whole domain. They want the path `/` for that.
pub(crate) fn cookie(url: &PublicUrl, side: Audience, what: &str, path: &str) -> (String, String) {
    let name = format!("tidepool_{}_{what}", side.as_str());
    match url.is_https() {
        true => (format!("__Host-{name}"), "Path=/; Secure".to_owned()),
        false => (name, format!("Path={path}")),
    }
}

fn attempt_cookie(api: &Api) -> (String, String) {
    let path = format!("{}api/v1/auth/sso", api.public_url.prefix());
    cookie(&api.public_url, api.side, "sso", &path)
}

fn kept(api: &Api, headers: &HeaderMap) -> Option<Attempt> {
    let (name, _) = attempt_cookie(api);
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|v| v.to_str().ok());
    let sealed = cookies
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find_map(|(n, value)| (n == name).then_some(value))?;
    let opened = api.app.sealer.open(place(api), sealed).ok()?;
    let kept: Kept = serde_json::from_str(opened.expose()).ok()?;
    (kept.until > api.app.clock.now()).then_some(kept.attempt)
}

fn set_cookie(api: &Api, response: &mut Response, value: &str, seconds: i64) -> Result<(), ApiError> {
    let (name, place) = attempt_cookie(api);
    let cookie = format!("{name}={value}; {place}; Max-Age={seconds}; HttpOnly; SameSite=Lax");
    let cookie = HeaderValue::from_str(&cookie).map_err(Error::internal)?;
    response.headers_mut().append(header::SET_COOKIE, cookie);
    Ok(())
}

/// Tells the page that this browser was handed this token: a link with somebody else's comes without it,
/// and would have people work in an account that is not theirs. Read by the page, so not HttpOnly.
fn hand_over(api: &Api, response: &mut Response, token: &Secret) -> Result<(), ApiError> {
    let end: String = token.expose().chars().skip(token.expose().len().saturating_sub(24)).collect();
    let (name, place) = cookie(&api.public_url, api.side, "sso_done", &api.public_url.prefix());
    let cookie = format!("{name}={end}; {place}; Max-Age=60; SameSite=Strict");
    let cookie = HeaderValue::from_str(&cookie).map_err(Error::internal)?;
    response.headers_mut().append(header::SET_COOKIE, cookie);
    Ok(())
}

fn redirect(to: &str) -> Result<Response> {
    HeaderValue::from_str(to).map_err(Error::internal)?;
    Ok(Redirect::to(to).into_response())
}

fn wants_json(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|v| v.to_str().ok()).unwrap_or_default();
    accept.contains("application/json") && !accept.contains("text/html")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_tls_cookies_are_this_host_s_alone() {
        let of =
            |url: &str| cookie(&PublicUrl::parse(url).unwrap(), Audience::Employee, "sso", "/portal/api/v1/auth/sso");
        let (name, place) = of("https://example.com/portal");
        assert_eq!((name.as_str(), place.as_str()), ("__Host-tidepool_employee_sso", "Path=/; Secure"));
        let (name, place) = of("http://127.0.0.1:8080/portal");
        assert_eq!((name.as_str(), place.as_str()), ("tidepool_employee_sso", "Path=/portal/api/v1/auth/sso"));
    }
}
