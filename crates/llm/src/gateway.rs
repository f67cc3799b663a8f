//! The LLM gateway as the product sees it: which one it is, and how it is reached.

use std::sync::Arc;
use std::time::Duration;

use base::{Clock, Error, Kind, Result};
use jiff::SignedDuration;
use remote::llm::{AdminToken, Gateway};
use store::seal::Sealer;
use store::{Db, gateway_state};

use crate::key::Embedded;
use crate::log_watch;

/// The configured gateway.
pub struct Llm {
    pub gateway: Arc<dyn Gateway>,
    /// Whether it is our own. Then its keys are our records, and it writes our request log itself.
    pub embedded: bool,
    /// For forwarded chats, which may take long.
    pub http: reqwest::Client,
    /// Whether keys of users with a daily quota are off while the log of a foreign gateway says nothing.
    pub keys_off_without_log: bool,
    /// What the watch of the log remembers.
    pub(crate) log_watch: log_watch::Memory,
}

impl Llm {
    /// Our own gateway, at this address.
    pub fn embedded(db: Db, clock: Clock, sealer: Arc<Sealer>, url: &str) -> Result<Llm> {
        let http = client()?;
        let gateway = Embedded::new(db, clock, sealer, http.clone(), url);
        let log_watch = log_watch::Memory::default();
        Ok(Llm { gateway: Arc::new(gateway), embedded: true, http, keys_off_without_log: false, log_watch })
    }

    /// The same, with this setting.
    pub fn with_keys_off_without_log(self, keys_off_without_log: bool) -> Llm {
        Llm { keys_off_without_log, ..self }
    }

    /// A foreign gateway.
    pub fn foreign(gateway: Arc<dyn Gateway>) -> Result<Llm> {
        let log_watch = log_watch::Memory::default();
        Ok(Llm { gateway, embedded: false, http: client()?, keys_off_without_log: false, log_watch })
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
    /// Empty from a process of an older release.
    #[serde(default)]
    pub protocol: String,
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

/// The name under which the state of the management token is kept.
const ADMIN_TOKEN: &str = "admin_token";

/// What is wrong with the management token of a foreign gateway. It is tried if that was not done within `age`, so that
/// however many ask, the gateway hears little of it.
pub async fn admin_token_problem(app: &crate::App, age: SignedDuration) -> Result<Option<String>> {
    if app.upstream.embedded {
        return Ok(None);
    }
    let shown = |problem: String| Some(problem).filter(|problem| !problem.is_empty());
    let now = app.clock.now();
    let known = gateway_state::find(&app.db, ADMIN_TOKEN).await?;
    if let Some(known) = &known
        && now.duration_since(known.checked_at).abs() < age
    {
        return Ok(shown(known.problem.clone()));
    }
    let problem = match app.upstream.gateway.check_admin_token().await {
        AdminToken::Accepted => String::new(),
        AdminToken::Refused(why) => format!("the gateway refuses the management token: {why}"),
        // Nothing is known of the token now; that the gateway is away is said elsewhere.
        AdminToken::Unknown(_) => known.map(|known| known.problem).unwrap_or_default(),
    };
    let mut tx = app.db.begin().await?;
    gateway_state::set(&mut tx, ADMIN_TOKEN, &problem, now).await?;
    tx.commit().await?;
    Ok(shown(problem))
}
