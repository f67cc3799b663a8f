//! new-api. Creating a token returns only success, newer releases mask every key, and searching and revealing are
//! throttled. When a search is throttled, the whole list is read instead.

use std::sync::Arc;
use std::time::Duration;

use base::{Result, Secret};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use reqwest::Method;
use serde::Deserialize;

use super::call::{Outcome, Trouble};
use super::duplicate::{self, Keyring, Names};
use super::management::{Management, Status, Token, is_missing, sub_key};
use super::pace::{Lane, Limit};
use super::{AdminToken, Balance, Gateway, Health, KeyState, Kind, NewKey, RemoteKey, Settings};

/// Releases before 0.11 accept only 30 bytes, and refuse longer names themselves.
pub static KIND: Kind = Kind {
    name: "new-api",
    name_limit: 50,
    logs_failures: false,
    row_delay: Duration::from_secs(4),
    charges_fractions: false,
    request_id_header: Some("x-oneapi-request-id"),
    open,
};

/// It lets in 360 calls in three minutes.
const LIMIT: Limit = Limit { burst: 90, interval: Duration::from_millis(750) };

/// The largest size of a page.
const PAGE: usize = 100;
/// A limit that no real list reaches, so that a gateway whose list never ends does not keep us for ever.
const PAGES: usize = 1_000;
/// The account that every installation starts with.
const ROOT: &str = "1";

struct NewApi {
    api: Management,
    chat_url: String,
    names: Names,
}

fn open(settings: &Settings) -> Result<Arc<dyn Gateway>> {
    let (account, token) = account_and_token(settings.admin_token.expose());
    let api = Management::new(&settings.url, "new-api", (token, Some(account)), LIMIT, true)?;
    Ok(Arc::new(NewApi { chat_url: api.call.url("/v1/chat/completions"), api, names: Names::new() }))
}

fn account_and_token(setting: &str) -> (&str, &str) {
    match setting.split_once(':') {
        Some((id, token)) if !id.is_empty() && id.bytes().all(|b| b.is_ascii_digit()) => (id, token),
        _ => (ROOT, setting),
    }
}

fn is_right(status: &Status) -> std::result::Result<(), &'static str> {
    if status.is_new_api() { Ok(()) } else { Err("this is no new-api: gateway_kind must say what it is") }
}

/// Releases before 0.9, and searches before 0.11, return a bare list.
#[derive(Deserialize)]
#[serde(untagged)]
enum Rows {
    Page { items: Option<Vec<Token>>, total: usize },
    Bare(Vec<Token>),
}

#[derive(Deserialize)]
struct Revealed {
    key: Secret,
}

impl NewApi {
    /// Reads every row of a list. Older releases count pages from 0 and name the parameter `size`; newer ones count
    /// from 1, and treat 0 as 1. So the first request asks for page 0, and the shape of its answer shows the number of
    /// the second page.
    async fn rows(&self, path: &str, keyword: Option<&str>) -> Outcome<Vec<Token>> {
        let size = PAGE.to_string();
        let mut tokens = vec![];
        let mut page = 0;
        for read in 1..=PAGES {
            let number = page.to_string();
            let mut query = vec![("p", number.as_str()), ("page_size", &size), ("size", &size)];
            query.extend(keyword.map(|keyword| ("keyword", keyword)));
            // A search has a limit of its own, beyond which the list is read instead.
            let lane = keyword.is_none().then_some(Lane::Read);
            let (rows, more) = match self.api.ask_in(lane, Method::GET, path, &query, None).await? {
                Some(Rows::Page { items, total }) => {
                    page = read + 1;
                    let items = items.unwrap_or_default();
                    let more = !items.is_empty() && read * PAGE < total;
                    (items, more)
                }
                Some(Rows::Bare(rows)) => {
                    page = read;
                    // A bare list from a search is complete.
                    let more = keyword.is_none() && rows.len() >= PAGE;
                    (rows, more)
                }
                None => (vec![], false),
            };
            tokens.extend(rows);
            if !more {
                break;
            }
        }
        Ok(tokens)
    }

    async fn search(&self, name: &str) -> Outcome<Vec<Token>> {
        // Some releases and databases treat these two as wildcards in a search.
        if name.contains(['%', '\\']) {
            return self.rows("/api/token/", None).await;
        }
        match self.rows("/api/token/search", Some(name)).await {
            // Searches are limited to ten a minute. Reading the list has only the limit of all calls.
            Err(Trouble::Throttled(_)) => self.rows("/api/token/", None).await,
            other => other,
        }
    }
}

impl Keyring for NewApi {
    async fn named(&self, name: &str) -> Result<Vec<RemoteKey>> {
        let tokens = self.search(name).await.map_err(|t| self.api.error(t))?;
        self.api.exactly(name, tokens).await
    }

    async fn make(&self, new: &NewKey) -> Result<Option<(String, Secret)>> {
        let body = self.api.new_token(new).await?;
        let answer: Outcome<Option<serde_json::Value>> =
            self.api.ask(Method::POST, "/api/token/", &[], Some(body)).await;
        answer.map(|_| None).map_err(|t| self.api.error(t))
    }

    async fn remove(&self, gateway_id: &str) -> Result<()> {
        self.api.delete(gateway_id).await
    }

    /// The gateway allows twenty of these in twenty minutes, so only for a key that is about to be handed out.
    async fn reveal(&self, key: &RemoteKey, _: &NewKey) -> Result<Option<Secret>> {
        let path = format!("/api/token/{}/key", key.gateway_id);
        match self.api.ask_in::<Revealed>(None, Method::POST, &path, &[], None).await {
            Ok(revealed) => Ok(revealed.and_then(|r| sub_key(&r.key))),
            Err(trouble) if is_missing(&trouble) => Ok(None),
            Err(other) => Err(self.api.error(other)),
        }
    }
}

impl Gateway for NewApi {
    fn kind(&self) -> &'static Kind {
        &KIND
    }

    fn chat_url(&self) -> &str {
        &self.chat_url
    }

    fn health(&self) -> BoxFuture<'_, Health> {
        self.api.health(is_right).boxed()
    }

    fn check_admin_token(&self) -> BoxFuture<'_, AdminToken> {
        self.api.check_admin_token().boxed()
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<String>>> {
        self.api.models("/api/user/models").boxed()
    }

    fn keys(&self) -> BoxFuture<'_, Result<Vec<RemoteKey>>> {
        async {
            let tokens = self.rows("/api/token/", None).await.map_err(|t| self.api.error(t))?;
            self.api.remote_keys(tokens).await
        }
        .boxed()
    }

    fn find_key<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<RemoteKey>>> {
        async { Ok(duplicate::settle(self.named(name).await?).map(|(kept, _)| kept)) }.boxed()
    }

    fn create_key<'a>(&'a self, new: &'a NewKey) -> BoxFuture<'a, Result<RemoteKey>> {
        async {
            KIND.check_name(&new.name)?;
            duplicate::create(self, &self.names, new).await
        }
        .boxed()
    }

    fn read_key<'a>(&'a self, gateway_id: &'a str) -> BoxFuture<'a, Result<Option<RemoteKey>>> {
        self.api.read(gateway_id).boxed()
    }

    fn set_enabled<'a>(&'a self, gateway_id: &'a str, enabled: bool) -> BoxFuture<'a, Result<()>> {
        self.api.set_enabled(gateway_id, enabled).boxed()
    }

    fn delete_key<'a>(&'a self, gateway_id: &'a str) -> BoxFuture<'a, Result<()>> {
        self.api.delete(gateway_id).boxed()
    }

    fn check_key<'a>(&'a self, key: &'a Secret) -> BoxFuture<'a, KeyState> {
        async { self.api.call.models_with(key).await.map_or_else(|state| state, |_| KeyState::Valid) }.boxed()
    }

    fn balance(&self) -> BoxFuture<'_, Result<Balance>> {
        self.api.balance().boxed()
    }

    fn counted(&self) -> BoxFuture<'_, Result<i64>> {
        self.api.counted().boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_token_may_name_its_account() {
        assert_eq!(account_and_token("17:abc"), ("17", "abc"));
        assert_eq!(account_and_token("abc"), ("1", "abc"));
        assert_eq!(account_and_token("a:b"), ("1", "a:b"));
        assert_eq!(account_and_token(":b"), ("1", ":b"));
    }
}
