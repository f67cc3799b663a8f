//! One API. A search by name returns every token whose name begins with it, in one answer; creating returns the whole
//! token.

use std::sync::Arc;
use std::time::Duration;

use base::{Result, Secret};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use reqwest::Method;

use super::duplicate::{self, Keyring, Names};
use super::management::{Management, Status, Token};
use super::pace::Limit;
use super::{AdminToken, Balance, Gateway, Health, KeyState, Kind, NewKey, RemoteKey, Settings};

pub static KIND: Kind = Kind {
    name: "one-api",
    name_limit: 30,
    logs_failures: false,
    row_delay: Duration::from_secs(3),
    charges_fractions: false,
    request_id_header: Some("x-oneapi-request-id"),
    open,
};

/// It lets in 480 calls in three minutes.
const LIMIT: Limit = Limit { burst: 120, interval: Duration::from_millis(560) };

/// Rows of a page. The size is fixed and there is no total: a page that is not full is the last.
const PAGE: usize = 10;
/// A limit that no real list reaches, so that a gateway whose list never ends does not keep us for ever.
const PAGES: usize = 10_000;

struct OneApi {
    api: Management,
    chat_url: String,
    names: Names,
}

fn open(settings: &Settings) -> Result<Arc<dyn Gateway>> {
    let api = Management::new(&settings.url, "One API", (settings.admin_token.expose(), None), LIMIT, false)?;
    Ok(Arc::new(OneApi { chat_url: api.call.url("/v1/chat/completions"), api, names: Names::new() }))
}

fn is_right(status: &Status) -> std::result::Result<(), &'static str> {
    if status.is_new_api() { Err("this is a new-api, not a One API: gateway_kind must say so") } else { Ok(()) }
}

impl OneApi {
    async fn list(&self) -> Result<Vec<RemoteKey>> {
        let mut tokens: Vec<Token> = vec![];
        for page in 0..PAGES {
            let page = page.to_string();
            let answer = self.api.ask(Method::GET, "/api/token/", &[("p", &page)], None).await;
            let mut rows: Vec<Token> = answer.map_err(|t| self.api.error(t))?.unwrap_or_default();
            let full = rows.len() >= PAGE;
            tokens.append(&mut rows);
            if !full {
                break;
            }
        }
        self.api.remote_keys(tokens).await
    }
}

impl Keyring for OneApi {
    /// The search matches prefixes and knows the database's wildcards, so only the part before the first wildcard is
    /// sent.
    async fn named(&self, name: &str) -> Result<Vec<RemoteKey>> {
        let plain = name.split(['%', '_', '\\']).next().unwrap_or_default();
        let answer = self.api.ask(Method::GET, "/api/token/search", &[("keyword", plain)], None).await;
        let tokens: Vec<Token> = answer.map_err(|t| self.api.error(t))?.unwrap_or_default();
        self.api.exactly(name, tokens).await
    }

    async fn make(&self, new: &NewKey) -> Result<Option<(String, Secret)>> {
        let body = self.api.new_token(new).await?;
        // The answer contains the token, but another process may have created one at the same moment: the search finds
        // both.
        let answer = self.api.ask::<serde_json::Value>(Method::POST, "/api/token/", &[], Some(body)).await;
        answer.map(|_| None).map_err(|t| self.api.error(t))
    }

    async fn remove(&self, gateway_id: &str) -> Result<()> {
        self.api.delete(gateway_id).await
    }

    /// Lists show every value: a key without a usable value there has none.
    async fn reveal(&self, _: &RemoteKey, _: &NewKey) -> Result<Option<Secret>> {
        Ok(None)
    }
}

impl Gateway for OneApi {
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
        self.api.models("/api/user/available_models").boxed()
    }

    fn keys(&self) -> BoxFuture<'_, Result<Vec<RemoteKey>>> {
        self.list().boxed()
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
