//! The LLM gateway as the product sees it: which one it is, and how it is reached.

use std::sync::Arc;
use std::time::Duration;

use base::{Clock, Error, Kind, Result};
use remote::llm::Gateway;
use store::Db;
use store::seal::Sealer;

use crate::key::Embedded;

/// The configured gateway.
pub struct Llm {
    pub gateway: Arc<dyn Gateway>,
    /// Whether it is our own. Then its keys are our records, and it writes our request log itself.
    pub embedded: bool,
    /// For forwarded chats, which may take long.
    pub http: reqwest::Client,
}

impl Llm {
    /// Our own gateway, at this address.
    pub fn embedded(db: Db, clock: Clock, sealer: Arc<Sealer>, url: &str) -> Result<Llm> {
        let http = client()?;
        let gateway = Embedded::new(db, clock, sealer, http.clone(), url);
        Ok(Llm { gateway: Arc::new(gateway), embedded: true, http })
    }

    /// A foreign gateway.
    pub fn foreign(gateway: Arc<dyn Gateway>) -> Result<Llm> {
        Ok(Llm { gateway, embedded: false, http: client()? })
    }
}

/// A client for chats. It has no timeout for responses: the caller decides how long to wait.
fn client() -> Result<reqwest::Client> {
    let client = reqwest::Client::builder().connect_timeout(Duration::from_secs(5));
    client.redirect(reqwest::redirect::Policy::none()).build().map_err(Error::internal)
}

/// A request that is under way at the embedded gateway.
#[derive(Clone, Debug, serde::Deserialize)]
pub struct LiveRequest {
    pub id: String,
    pub token_name: String,
    pub model: String,
    pub provider: String,
    pub stream: bool,
    pub started_at: String,
    /// Bytes of the answer so far.
    pub bytes: i64,
    pub state: String,
}

/// Requests that are under way now, read with the platform's own key. Foreign gateways have no such list.
pub async fn live(app: &crate::App) -> Result<Vec<LiveRequest>> {
    #[derive(serde::Deserialize)]
    struct List {
        data: Vec<LiveRequest>,
    }
    if !app.upstream.embedded {
        return Err(Error::new(Kind::NotFound, "only the embedded gateway lists requests that are under way"));
    }
    let key = crate::key::platform(app).await?.key(&app.sealer)?;
    let url = app.upstream.gateway.chat_url().replace("/v1/chat/completions", "/live");
    let away = |e: reqwest::Error| Error::from(Kind::Unavailable).with_operator(e.without_url());
    let request = app.upstream.http.get(url).bearer_auth(key.expose()).timeout(Duration::from_secs(5));
    let answer = request.send().await.map_err(away)?;
    if !answer.status().is_success() {
        return Err(Error::from(Kind::Gateway).with_operator(answer.status()));
    }
    Ok(answer.json::<List>().await.map_err(away)?.data)
}
