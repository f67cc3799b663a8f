//! Liveness, readiness and metrics: outside of /api/v1, on both listeners (metrics on the admin one).

use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use base::{Error, Kind};
use jiff::SignedDuration;
use people::token::Audience;
use serde::Serialize;

use crate::envelope::Data;
use crate::error::ApiError;
use crate::extract::Peer;
use crate::state::Shared;

pub fn routes(side: Audience) -> Router<Shared> {
    let router = Router::new().route("/healthz", get(alive)).route("/readyz", get(ready));
    match side {
        Audience::Admin => router.route("/metrics", get(metrics)),
        Audience::Employee => router,
    }
}

#[derive(Serialize)]
struct Alive {
    status: &'static str,
    version: &'static str,
}

async fn alive(State(api): State<Shared>) -> Data<Alive> {
    Data(Alive { status: "ok", version: api.version })
}

#[derive(Serialize)]
struct Ready {
    status: &'static str,
    database: &'static str,
    schema_version: i64,
    /// Told, never a reason for 503: people work on without it.
    gateway: Part,
    /// The gateway's log, as far as we read it.
    log: Part,
    /// The embedded gateway's providers that requests fail at; told, never a reason for 503. How many, not which: anybody may ask.
    providers: Part,
    /// Those that assistants run on; how many cannot be reached, not which: anybody may ask.
    servers: Part,
    /// This machine's clock beside the database's. Told, never a reason for 503.
    clock: Part,
    /// What this process does without being asked. One that stopped for a minute is a reason for 503.
    loops: Part,
}

#[derive(Serialize)]
struct Part {
    status: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    detail: String,
}

impl Part {
    fn new(ok: bool, detail: String) -> Part {
        Part { status: if ok { "ok" } else { "down" }, detail }
    }
}

/// A probe must not wait for what is slow.
const PATIENCE: Duration = Duration::from_secs(2);
/// The database is waited for a little longer: a connection of the pool that is dead is replaced within that time.
const DATABASE_PATIENCE: Duration = Duration::from_secs(5);

async fn ready(State(api): State<Shared>) -> Result<Data<Ready>, ApiError> {
    let unavailable = |why: String| Error::new(Kind::Unavailable, why);
    let version = match tokio::time::timeout(DATABASE_PATIENCE, store::migrate::version(&api.app.db)).await {
        Ok(version) => version.map_err(|e| unavailable("the database is not ready".into()).with_operator(e))?,
        Err(_) => return Err(unavailable("the database does not answer".into()).into()),
    };
    let version = version.filter(|version| *version >= store::migrate::known());
    let version = version.ok_or_else(|| unavailable("migrations are missing".into()))?;
    let dead = api.app.db.heartbeats.dead();
    if !dead.is_empty() {
        let dead: Vec<String> = dead.iter().map(|(name, age)| format!("{name} for {} s", age.as_secs())).collect();
        return Err(unavailable(format!("stopped: {}", dead.join(", "))).into());
    }
    let gateway = match tokio::time::timeout(PATIENCE, api.app.upstream.gateway.health()).await {
        Ok(health) if health.ok => management_token(&api).await.unwrap_or_else(|| Part::new(true, health.detail)),
        Ok(health) => Part::new(false, health.detail),
        Err(_) => Part::new(false, "no answer".into()),
    };
    let log = match tokio::time::timeout(PATIENCE, api.app.feed.pull()).await {
        Ok(as_of) if !as_of.stale => silence(&api).await.unwrap_or_else(|| Part::new(true, String::new())),
        Ok(as_of) => Part::new(false, format!("known until {}", api.app.zone.show(as_of.at))),
        Err(_) => Part::new(false, "no answer".into()),
    };
    let providers = match tokio::time::timeout(PATIENCE, llm::provider::list(&api.app)).await {
        Ok(Ok(listed)) => providers(&api, &listed),
        Ok(Err(_)) | Err(_) => Part::new(false, "no answer".into()),
    };
    let servers = match tokio::time::timeout(PATIENCE, fleet::server::unreachable(&api.app)).await {
        Ok(Ok(0)) => Part::new(true, String::new()),
        Ok(Ok(away)) => Part::new(false, format!("{away} cannot be reached")),
        Ok(Err(_)) | Err(_) => Part::new(false, "no answer".into()),
    };
    let clock = match skew(&api).await.and_then(store::clock::excess) {
        None => Part::new(true, String::new()),
        Some(off) => Part { status: "off", detail: off },
    };
    let loops = Part::new(true, String::new());
    Ok(Data(Ready {
        status: "ok",
        database: "ok",
        schema_version: version,
        gateway,
        log,
        providers,
        servers,
        clock,
        loops,
    }))
}

/// How long what was found out about the management token is believed: however many ask, the gateway hears little of it.
const TRIED: SignedDuration = SignedDuration::from_secs(60);

/// What to tell when the gateway refuses the management token. Not its words: anybody may ask.
async fn management_token(api: &Shared) -> Option<Part> {
    let tried = tokio::time::timeout(PATIENCE, llm::gateway::admin_token_problem(&api.app, TRIED)).await;
    let refused = matches!(tried, Ok(Ok(Some(_))));
    refused.then(|| Part::new(false, "it refuses the management token: changes of keys do not reach it".into()))
}

/// What to tell when the log can be read, but says nothing while requests are answered.
async fn silence(api: &Shared) -> Option<Part> {
    let state = tokio::time::timeout(PATIENCE, llm::log_watch::problem(&api.app)).await.ok()?.ok()??;
    let detail = format!("it does not move while requests are answered, since {}", api.app.zone.show(state.since));
    Some(Part { status: "silent", detail })
}

/// How the providers are doing. A foreign gateway has its own, which nobody tells us about.
fn providers(api: &Shared, listed: &llm::provider::Listed) -> Part {
    use llm::provider::State;
    if !api.app.upstream.embedded {
        return Part::new(true, String::new());
    }
    let count = |state: State| listed.providers.iter().filter(|of| listed.state(of) == state).count();
    match (count(State::Failing), count(State::Degraded)) {
        (0, 0) => Part::new(true, String::new()),
        (0, some) => Part { status: "degraded", detail: format!("{some} with failures or keys that cool down") },
        (failing, _) => Part::new(false, format!("requests fail at {failing}")),
    }
}

/// The state of each provider, as all processes know it.
async fn provider_gauges(api: &Shared) {
    if !api.app.upstream.embedded {
        return;
    }
    let Ok(Ok(listed)) = tokio::time::timeout(PATIENCE, llm::provider::list(&api.app)).await else { return };
    for of in listed.providers.iter().filter(|of| of.enabled && !of.is_overridden) {
        let spared = of.keys.iter().filter(|key| listed.coolings_of(&key.id).next().is_some()).count();
        let failing = listed.state(of) == llm::provider::State::Failing;
        metrics::gauge!("tidepool_provider_failing", "provider" => of.name.clone()).set(f64::from(u8::from(failing)));
        metrics::gauge!("tidepool_provider_keys_spared", "provider" => of.name.clone()).set(spared as f64);
    }
}

/// How far our clock is from the database's, where that can be said; also for the metrics.
async fn skew(api: &Shared) -> Option<jiff::SignedDuration> {
    let skew = tokio::time::timeout(PATIENCE, store::clock::skew(&api.app.db, &api.app.clock)).await.ok()?.ok()?;
    metrics::gauge!("tidepool_clock_skew_seconds").set(skew.as_secs_f64());
    Some(skew)
}

/// For loopback, or for whoever brings the metrics token.
async fn metrics(State(api): State<Shared>, request: Request) -> Result<Response, ApiError> {
    let allowed = match &api.metrics_token {
        Some(token) => {
            let given = request.headers().get(header::AUTHORIZATION).and_then(|v| v.to_str().ok());
            let given = given.and_then(|h| h.strip_prefix("Bearer ")).unwrap_or_default();
            aws_lc_rs::constant_time::verify_slices_are_equal(given.as_bytes(), token.expose().as_bytes()).is_ok()
        }
        // A proxy on this machine speaks for others: what it forwards is not loopback.
        None => {
            let peer = request.extensions().get::<Peer>().is_some_and(|p| p.0.ip().to_canonical().is_loopback());
            peer && !request.headers().contains_key("x-forwarded-for")
        }
    };
    if !allowed {
        return Err(Kind::Unauthorized.into());
    }
    let (open, idle) = api.app.db.connections();
    metrics::gauge!("tidepool_db_connections", "state" => "open").set(f64::from(open));
    metrics::gauge!("tidepool_db_connections", "state" => "idle").set(idle as f64);
    metrics::gauge!("tidepool_db_writers_waiting").set(api.app.db.writers_waiting() as f64);
    for (name, age) in api.app.db.heartbeats.ages() {
        metrics::gauge!("tidepool_loop_age_seconds", "loop" => name).set(age.as_secs_f64());
    }
    skew(&api).await;
    provider_gauges(&api).await;
    let kind = header::HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    Ok(([(header::CONTENT_TYPE, kind)], (api.metrics)()).into_response())
}
