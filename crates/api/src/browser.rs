//! A mark in a browser that signed in to an account before: strangers who guess that account's password do not lock it out.
//!
//! It opens nothing. It is sealed, is good for one account alone, and is sent to nothing but the sign-in.

use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::AppendHeaders;
use base::{Email, Error};
use people::login;

use crate::error::ApiError;
use crate::sso::cookie;
use crate::state::Api;

const DAYS: i64 = 180;

/// The header that has a browser keep its mark.
pub type Remembered = AppendHeaders<[(header::HeaderName, HeaderValue); 1]>;

/// What the browser kept of an earlier sign-in to this account.
pub fn mark<'a>(api: &Api, headers: &'a HeaderMap, email: &str) -> Option<&'a str> {
    let (name, _) = place(api, email);
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    cookies
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find_map(|(n, value)| (n == name).then_some(value))
}

/// After a sign-in.
pub fn remember(api: &Api, email: &str) -> Result<Remembered, ApiError> {
    let (name, path) = place(api, email);
    let mark = login::browser_mark(&api.app, api.side, email)?;
    let seconds = DAYS * 24 * 3600;
    let cookie = format!("{name}={}; {path}; Max-Age={seconds}; HttpOnly; SameSite=Strict", mark.expose());
    let cookie = HeaderValue::from_str(&cookie).map_err(Error::internal)?;
    Ok(AppendHeaders([(header::SET_COOKIE, cookie)]))
}

/// A name for each account: several people may share a browser.
fn place(api: &Api, email: &str) -> (String, String) {
    let whose = base::password::sha256_hex(&Email::key_of(email));
    let path = format!("{}api/v1/auth", api.public_url.prefix());
    cookie(&api.public_url, api.side, &format!("browser_{}", whose.get(..16).unwrap_or_default()), &path)
}
