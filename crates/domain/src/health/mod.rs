//! How instances are: looked at over the whole fleet at once (`sweep`), layer by layer, and judged (`judge`).
//!
//! The layers: the unit over SSH; /healthz by the server's own loopback; a WebSocket handshake and one RPC; the key at
//! the LLM gateway. Only where SSH does not get there, /healthz is asked by the instance's own address.

pub mod judge;
pub mod rpc;
pub mod sweep;

use std::sync::Arc;
use std::time::{Duration, Instant};

use base::{Error, Result};
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream;
use http_body_util::Full;
use jiff::{SignedDuration, Timestamp};
use openclaw::config::Bind;
use openclaw::frame::{Request, Scope};
use openclaw::sweep::{Answer, Limits};
use openclaw::unit::Active;
use remote::assistant::{Road, send, straight};
use remote::host::Host;
use remote::llm::KeyState;
use store::instance::{self, Health, Instance};
use store::notice::{Notice, Topic};
use store::{gateway_key, instance_health};

use crate::App;
use crate::alert::{self, Rule};
use crate::audit::{self, Action, By, Deed};
use judge::{Before, Found};
use sweep::{Looked, Member, Post};

/// A gateway takes up to 45 s to start, and has nothing to say until then.
const STARTING: Duration = Duration::from_secs(90);
/// The fallback's time.
const FALLBACK: Duration = Duration::from_secs(5);
/// Conversations with instances of one server, and questions about keys, at the same time.
const TALKS: usize = 16;

/// What is looked at: no logs.
pub(crate) fn limits() -> Limits {
    Limits { log_bytes: 0, journal: Duration::from_secs(1), instance: Duration::from_secs(15) }
}

/// What a look at one instance came to.
#[derive(Clone, Debug)]
pub struct Seen {
    pub found: Found,
    /// The layer that decided: `ssh`, `service`, `http`, `websocket`, `key`, or `none` where nothing was asked.
    pub layer: &'static str,
    pub detail: String,
    pub latency_ms: Option<i64>,
    /// When its process was started, by our clock.
    pub started_at: Option<Timestamp>,
}

impl Seen {
    pub fn new(found: Found, layer: &'static str, detail: impl Into<String>) -> Seen {
        Seen { found, layer, detail: detail.into(), latency_ms: None, started_at: None }
    }
}

/// An instance after a look.
#[derive(Clone, Debug)]
pub struct Report {
    pub id: String,
    pub name: String,
    pub server_id: String,
    pub status: Health,
    pub fails: i64,
    pub layer: String,
    pub detail: String,
    pub latency_ms: Option<i64>,
}

/// Looks at the whole fleet now, and writes down how everything is.
pub async fn check(app: &Arc<App>) -> Result<Vec<Report>> {
    let posts = sweep::fleet(app).await?;
    let reports = sweep::everywhere(app, posts, |app, post| async move { check_server(&app, &post).await }).await;
    let mut all = vec![];
    for reported in reports {
        all.extend(reported?);
    }
    all.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(all)
}

async fn check_server(app: &App, post: &Post) -> Result<Vec<Report>> {
    if post.instances.is_empty() {
        return Ok(vec![]);
    }
    let looked = sweep::look(app, post, &limits()).await;
    let mut asks: Vec<BoxFuture<'_, Seen>> = vec![];
    for (number, member) in post.instances.iter().enumerate() {
        asks.push(match &looked {
            Ok(looked) => Box::pin(look(app, looked, number, member)),
            Err(error) => Box::pin(fall_back(post, member, error)),
        });
    }
    let seen: Vec<Seen> = stream::iter(asks).buffered(TALKS).collect().await;
    record(app, post, seen).await
}

/// One instance, layer by layer.
pub async fn look(app: &App, looked: &Looked, number: usize, member: &Member) -> Seen {
    let seen = layers(app, looked, number, member).await;
    let started_at = looked
        .of(number)
        .and_then(|answer| answer.running_for(&looked.sweep.server))
        .and_then(|age| app.clock.now().checked_sub(SignedDuration::try_from(age).ok()?).ok());
    Seen { started_at, ..seen }
}

async fn layers(app: &App, looked: &Looked, number: usize, member: &Member) -> Seen {
    if !member.is_there() {
        return Seen::new(Found::NotThere, "none", "it was not brought to its server yet");
    }
    if member.busy {
        return Seen::new(Found::Starting, "none", "a task is at work on it");
    }
    let Some(answer) = looked.of(number) else {
        return Seen::new(Found::Unknown, "ssh", "the server said nothing about it");
    };
    if let Some(seen) = service(answer, looked) {
        return seen;
    }
    let began = Instant::now();
    if let Err(error) = talk(app, &looked.host, &member.instance).await {
        let wedged = format!("alive, but wedged: {}", error.client);
        return Seen::new(Found::Failed, "websocket", wedged);
    }
    let latency_ms = i64::try_from(began.elapsed().as_millis()).ok();
    Seen { latency_ms, ..key(app, &member.instance).await }
}

/// The unit and its health page; `None` where both are well.
fn service(answer: &Answer, looked: &Looked) -> Option<Seen> {
    let unit = &answer.unit;
    if !answer.complete && unit.sub.is_empty() {
        return Some(Seen::new(Found::Unknown, "ssh", "the server's answer about it was cut off"));
    }
    if !unit.loaded {
        return Some(Seen::new(Found::Inactive, "service", "the service is not set up on the server"));
    }
    let told = || format!("the service is {} ({})", unit.sub, unit.result);
    let young = answer.running_for(&looked.sweep.server).is_some_and(|age| age < STARTING);
    match unit.active {
        Active::Active => {}
        Active::Inactive | Active::Failed => return Some(Seen::new(Found::Inactive, "service", told())),
        Active::Activating if young => return Some(Seen::new(Found::Starting, "service", told())),
        Active::Activating | Active::Deactivating | Active::Unknown => {
            return Some(Seen::new(Found::Failed, "service", told()));
        }
    }
    if answer.is_live() {
        return None;
    }
    if young {
        return Some(Seen::new(Found::Starting, "http", "it was started a moment ago"));
    }
    let told = match &answer.healthz {
        Some(http) => format!("/healthz answers {}", http.status),
        None => "/healthz does not answer".to_owned(),
    };
    Some(Seen::new(Found::Failed, "http", told))
}

async fn talk(app: &App, host: &Host, instance: &Instance) -> Result<()> {
    let port = u16::try_from(instance.gateway_port).map_err(Error::internal)?;
    let token = instance.token(&app.sealer)?;
    let mut rpc = rpc::Rpc::open(host, port, &token, Scope::LOOK).await?;
    rpc.call(Request::health).await.map(drop)
}

/// The last layer: does the instance's sub key open the gateway?
async fn key(app: &App, instance: &Instance) -> Seen {
    let key = match gateway_key::of_instance(&app.db, &instance.id()).await {
        Ok(Some(key)) => key,
        Ok(None) => return Seen::new(Found::Passed, "websocket", "it has no sub key yet"),
        Err(error) => return Seen::new(Found::KeyUnknown, "key", error.to_string()),
    };
    if !key.enabled() {
        return Seen::new(Found::Passed, "key", "its sub key is switched off");
    }
    let secret = match key.key(&app.sealer) {
        Ok(secret) => secret,
        Err(error) => return Seen::new(Found::KeyUnknown, "key", error.to_string()),
    };
    match app.llm.gateway.check_key(&secret).await {
        KeyState::Valid => Seen::new(Found::Passed, "key", "everything answers"),
        KeyState::Invalid => Seen::new(Found::KeyInvalid, "key", "the LLM gateway does not know its sub key"),
        KeyState::Denied => Seen::new(Found::KeyInvalid, "key", "the LLM gateway denies its sub key"),
        KeyState::Exhausted => Seen::new(Found::Passed, "key", "what its sub key may spend is spent"),
        KeyState::Throttled => Seen::new(Found::KeyUnknown, "key", "the LLM gateway asks us to come again later"),
        KeyState::Unreachable(why) => {
            Seen::new(Found::KeyUnknown, "key", format!("the LLM gateway cannot be asked: {why}"))
        }
    }
}

/// Where SSH does not get there: /healthz by the instance's own address, if it has one that is not the server's loopback.
async fn fall_back(post: &Post, member: &Member, error: &Error) -> Seen {
    let away = format!("the server cannot be reached: {}", error.client);
    if !member.is_there() {
        return Seen::new(Found::NotThere, "none", "it was not brought to its server yet");
    }
    let local = post.server.host == crate::host::LOCAL;
    let began = Instant::now();
    let asked = tokio::time::timeout(FALLBACK, by_its_address(&member.instance, local)).await;
    match asked {
        Ok(Ok(None)) => Seen::new(Found::Failed, "ssh", away),
        Ok(Ok(Some(200..300))) => {
            let latency_ms = i64::try_from(began.elapsed().as_millis()).ok();
            Seen { latency_ms, ..Seen::new(Found::Passed, "http", format!("{away}; /healthz answers")) }
        }
        Ok(Ok(Some(status))) => Seen::new(Found::Failed, "http", format!("{away}; /healthz answers {status}")),
        Ok(Err(_)) | Err(_) => Seen::new(Found::Failed, "http", format!("{away}; /healthz does not answer")),
    }
}

/// The status of /healthz by the instance's own address; `None` where that is the server's loopback: ours is another.
async fn by_its_address(instance: &Instance, local: bool) -> Result<Option<u16>> {
    let road = match Bind::for_url(&instance.gateway_url) {
        Bind::Lan => straight(&instance.gateway_url).await?,
        Bind::Loopback if local => {
            let port = u16::try_from(instance.gateway_port).map_err(Error::internal)?;
            Road::new(Box::new(Host::local().forward(port).await?), format!("127.0.0.1:{port}"))
        }
        Bind::Loopback => return Ok(None),
    };
    let request = http::Request::get("/healthz").body(Full::new(Bytes::new())).map_err(Error::internal)?;
    Ok(Some(send(road, request).await?.status().as_u16()))
}

/// Writes down what was seen of a server's instances, in one transaction.
async fn record(app: &App, post: &Post, seen: Vec<Seen>) -> Result<Vec<Report>> {
    let now = app.clock.now();
    let mut reports = vec![];
    let mut tx = app.db.begin().await?;
    let away = seen.iter().any(|s| s.layer == "ssh" && s.found == Found::Failed);
    for (member, seen) in post.instances.iter().zip(seen) {
        let id = member.instance.id();
        // As it is now: a repair may have changed it since the fleet was read.
        let Some(instance) = instance::lock(&mut tx, &id).await? else { continue };
        let report = write(app, &mut tx, &instance, &seen, now).await?;
        if !away {
            follow_up(app, &mut tx, &report).await?;
        }
        reports.push(report);
    }
    let subject = format!("server:{}", post.server.id);
    if away && reports.iter().any(|r| r.status == Health::Unhealthy) {
        let told = format!("server {} cannot be reached; {} instances are on it", post.server.name, reports.len());
        alert::raise(app, &mut tx, Rule::InstancesUnhealthy, &subject, &told).await?;
    } else if !away {
        alert::resolve(app, &mut tx, Rule::InstancesUnhealthy, &subject).await?;
    }
    tx.commit().await?;
    Ok(reports)
}

/// Judges one instance and writes it down, with an audit entry where its state changed.
pub async fn write(app: &App, tx: &mut store::Tx, instance: &Instance, seen: &Seen, now: Timestamp) -> Result<Report> {
    let id = instance.id();
    let known = instance_health::find(&mut *tx, &id).await?;
    let memory_out_at = known.and_then(|known| known.memory_out_at);
    let memory_out = memory_out_at.is_some_and(|at| seen.started_at.is_none_or(|started| started <= at));
    if memory_out_at.is_some() && !memory_out {
        instance_health::set_memory_out(&mut *tx, &instance.id, None).await?;
    }
    let before = Before { status: instance.health_status, fails: instance.health_fail_count, memory_out };
    let (status, fails) = judge::next(before, &seen.found);
    instance::set_health(&mut *tx, &id, status, fails, now).await?;
    let detail: String = seen.detail.chars().take(500).collect();
    instance_health::saw(&mut *tx, &instance.id, seen.layer, &detail, seen.latency_ms).await?;
    if status != instance.health_status {
        let told = format!("{} → {}: {detail}", instance.health_status.as_str(), status.as_str());
        let deed = match status {
            Health::Healthy | Health::Unknown => Deed::info(Action::InstanceHealth, &instance.id, &told),
            Health::KeyInvalid => {
                Deed { level: audit::Level::Error, ..Deed::warn(Action::InstanceHealth, &instance.id, &told) }
            }
            _ => Deed::warn(Action::InstanceHealth, &instance.id, &told),
        };
        audit::record(app, tx, &By::system(), deed).await?;
        tx.notify(Notice::new(Topic::Instance, &instance.id)).await?;
    } else if matches!(seen.found, Found::Failed | Found::Inactive) && fails <= judge::MOST_FAILURES {
        let told = format!("check failed ({fails} in a row): {detail}");
        audit::record(app, tx, &By::system(), Deed::warn(Action::InstanceHealth, &instance.id, &told)).await?;
    }
    Ok(Report {
        id: instance.id.clone(),
        name: instance.name.clone(),
        server_id: instance.server_id.clone(),
        status,
        fails,
        layer: seen.layer.to_owned(),
        detail,
        latency_ms: seen.latency_ms,
    })
}

/// Raises or ends the alert of one instance.
pub async fn follow_up(app: &App, tx: &mut store::Tx, report: &Report) -> Result<()> {
    let subject = format!("instance:{}", report.id);
    match report.status {
        Health::Unhealthy | Health::KeyInvalid => {
            let told = format!("{} is {}: {}", report.name, report.status.as_str(), report.detail);
            alert::raise(app, tx, Rule::InstancesUnhealthy, &subject, &told).await.map(drop)
        }
        Health::Healthy => alert::resolve(app, tx, Rule::InstancesUnhealthy, &subject).await.map(drop),
        Health::Unknown | Health::RateLimited => Ok(()),
    }
}
