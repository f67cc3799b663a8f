//! The health check: checks all instances of the fleet (`sweep`), layer by layer, and computes their state (`judge`).
//!
//! The layers are: the unit over SSH; /healthz over the server's loopback; a WebSocket handshake and one RPC; the key
//! at the LLM gateway. If SSH fails, the instance's own address is used instead (`fallback`).

mod fallback;
pub mod judge;
mod record;

use std::sync::Arc;
use std::time::{Duration, Instant};

use base::id::{InstanceId, ServerId};
use base::{Kind, Result};
use futures_util::future::BoxFuture;
use futures_util::{StreamExt as _, stream};
use jiff::{SignedDuration, Timestamp};
use openclaw::frame::{Request, Scope};
use openclaw::sweep::{Answer, Server};
use openclaw::unit::Active;
use remote::host::Host;
use remote::llm::KeyState;
pub use store::heartbeat::Beat;
use store::instance::{self, Health, Instance, Runner};
use store::instance_health::Layer;
use store::{gateway_key, heartbeat};

use crate::assistant::isolation;
use crate::rpc::{self, Silence};
use crate::sweep::{self, Looked, Member, Post, Since};
use crate::{App, cell};
use judge::Found;
pub use record::{follow_up, write};

/// A gateway takes up to 45 s to start and does not answer before.
const STARTING: Duration = Duration::from_secs(90);
/// How many instances of one server are checked at the same time.
const TALKS: usize = 16;

/// How many checks of an instance the console shows.
const BEATS: usize = 60;

/// The result of checking one instance.
#[derive(Clone, Debug)]
pub struct Seen {
    pub found: Found,
    /// The layer that decided.
    pub layer: Layer,
    pub detail: String,
    pub latency_ms: Option<i64>,
    /// When it was started, by our clock; `None` if systemd has restarted it by itself since.
    pub started_at: Option<Timestamp>,
    /// Its server could not be reached: the problem is the server's, and a restart is not possible.
    pub unreachable: bool,
}

impl Seen {
    pub fn new(found: Found, layer: Layer, detail: impl Into<String>) -> Seen {
        Seen { found, layer, detail: detail.into(), latency_ms: None, started_at: None, unreachable: false }
    }

    /// Whether it works, regardless of its key.
    pub fn works(&self) -> bool {
        matches!(self.found, Found::Passed | Found::KeyUnknown | Found::KeyInvalid)
    }
}

/// The state of an instance after a check.
#[derive(Clone, Debug)]
pub struct Report {
    pub id: InstanceId,
    pub name: String,
    pub server_id: ServerId,
    pub status: Health,
    pub fails: i64,
    /// `None` before the first check.
    pub layer: Option<Layer>,
    pub detail: String,
    pub latency_ms: Option<i64>,
}

/// The last checks of an instance, oldest first.
pub async fn beats(app: &App, id: &InstanceId) -> Result<Vec<Beat>> {
    instance::find(&app.db, id).await?.ok_or(Kind::NotFound)?;
    let mut beats = heartbeat::last(&app.db, id, BEATS).await?;
    beats.reverse();
    Ok(beats)
}

/// The result of checking the fleet.
pub struct Checked {
    pub reports: Vec<Report>,
    /// The servers whose results could not be recorded.
    pub unwritten: Vec<ServerId>,
}

/// Checks the whole fleet now and records the results. A failure on one server does not affect the others.
pub async fn check(app: &Arc<App>) -> Result<Checked> {
    let posts = sweep::fleet(app).await?;
    let look = |app: Arc<App>, post: Post| async move { (check_server(&app, &post).await, post.server.id) };
    let (mut reports, mut unwritten, mut failure) = (vec![], vec![], None);
    for (reported, server) in sweep::everywhere(app, posts, look).await {
        match reported {
            Ok(reported) => reports.extend(reported),
            Err(error) => {
                tracing::error!(%error, %server, "how a server's instances are was not written down");
                unwritten.push(server);
                failure = Some(error);
            }
        }
    }
    // If no server was recorded, the check failed.
    if let (true, Some(error)) = (reports.is_empty(), failure) {
        return Err(error);
    }
    reports.sort_by(|a, b| a.id.cmp(&b.id));
    unwritten.sort();
    Ok(Checked { reports, unwritten })
}

async fn check_server(app: &App, post: &Post) -> Result<Vec<Report>> {
    if post.instances.is_empty() {
        return Ok(vec![]);
    }
    let began = app.clock.now();
    let looked = sweep::look(app, post, &sweep::brief(), Since::End).await;
    let mut asks: Vec<BoxFuture<'_, Seen>> = vec![];
    for (number, member) in post.instances.iter().enumerate() {
        asks.push(match &looked {
            _ if member.instance.runner == Runner::Address => Box::pin(fallback::at_its_address(app, member)),
            Ok(looked) => Box::pin(look(app, looked, number, member)),
            Err(error) => Box::pin(fallback::check(app, &post.server, member, error)),
        });
    }
    let seen: Vec<Seen> = stream::iter(asks).buffered(TALKS).collect().await;
    let reports = record::record(app, post, seen, began).await?;
    if let Ok(looked) = &looked {
        isolation::observe(app, &post.server.id, &post.all(), &looked.users(post)).await?;
        cell::observe(app, post, looked).await?;
    }
    Ok(reports)
}

/// Checks one instance, layer by layer.
pub async fn look(app: &App, looked: &Looked, number: usize, member: &Member) -> Seen {
    let seen = layers(app, looked, number, member).await;
    let started_at = looked
        .of(number)
        .filter(|answer| answer.unit.restarts == 0)
        .and_then(|answer| answer.running_for(&looked.sweep.server))
        .and_then(|age| app.clock.now().checked_sub(SignedDuration::try_from(age).ok()?).ok());
    Seen { started_at, ..seen }
}

async fn layers(app: &App, looked: &Looked, number: usize, member: &Member) -> Seen {
    if !member.is_there() {
        return Seen::new(Found::NotThere, Layer::None, "it was not brought to its server yet");
    }
    if member.busy {
        return Seen::new(Found::Starting, Layer::None, "a task is at work on it");
    }
    let Some(answer) = looked.of(number) else {
        return Seen::new(Found::Unknown, Layer::Ssh, "the server said nothing about it");
    };
    if let Some(seen) = service(answer, &looked.sweep.server) {
        return seen;
    }
    let began = Instant::now();
    match talk(app, &looked.host, &member.instance).await {
        Ok(()) => {}
        Err(Silence::Foreign(error)) => return Seen::new(Found::Failed, Layer::WebSocket, error.client),
        Err(Silence::Wedged(error)) => {
            return Seen::new(Found::Failed, Layer::WebSocket, format!("alive, but wedged: {}", error.client));
        }
        Err(Silence::NoWay(error)) => {
            return Seen::new(Found::Unknown, Layer::Ssh, format!("it could not be asked: {}", error.client));
        }
    }
    let latency_ms = i64::try_from(began.elapsed().as_millis()).ok();
    Seen { latency_ms, ..key(app, &member.instance).await }
}

/// Checks the unit and /healthz; returns `None` if both are well.
fn service(answer: &Answer, server: &Server) -> Option<Seen> {
    let unit = &answer.unit;
    if !answer.complete && unit.sub.is_empty() {
        return Some(Seen::new(Found::Unknown, Layer::Ssh, "the server's answer about it was cut off"));
    }
    if !unit.loaded {
        return Some(Seen::new(Found::Inactive, Layer::Service, "the service is not set up on the server"));
    }
    let detail = || format!("the service is {} ({})", unit.sub, unit.result);
    // A unit that systemd restarted has failed before, so it does not count as starting.
    let young = unit.restarts == 0 && answer.running_for(server).is_some_and(|age| age < STARTING);
    match unit.active {
        Active::Active => {}
        Active::Inactive | Active::Failed => return Some(Seen::new(Found::Inactive, Layer::Service, detail())),
        Active::Activating if young => return Some(Seen::new(Found::Starting, Layer::Service, detail())),
        Active::Activating | Active::Deactivating | Active::Unknown => {
            return Some(Seen::new(Found::Failed, Layer::Service, detail()));
        }
    }
    if answer.is_live() {
        return None;
    }
    if young {
        return Some(Seen::new(Found::Starting, Layer::Http, "it was started a moment ago"));
    }
    let detail = match &answer.healthz {
        Some(http) => format!("/healthz answers {}", http.status),
        None => "/healthz does not answer".to_owned(),
    };
    let again = match unit.restarts {
        0 => String::new(),
        times => format!("; systemd started it again {times} times"),
    };
    Some(Seen::new(Found::Failed, Layer::Http, detail + &again))
}

async fn talk(app: &App, host: &Host, instance: &Instance) -> std::result::Result<(), Silence> {
    let mut rpc = rpc::Rpc::open(app, host, instance, Scope::LOOK).await?;
    rpc.require(Request::health).await
}

/// The last layer: does the LLM gateway accept the instance's sub key?
async fn key(app: &App, instance: &Instance) -> Seen {
    if instance.own_llm {
        return Seen::new(Found::Passed, Layer::WebSocket, "it keeps its own model provider");
    }
    let key = match gateway_key::of_instance(&app.db, &instance.id).await {
        Ok(Some(key)) => key,
        Ok(None) => return Seen::new(Found::Passed, Layer::WebSocket, "it has no sub key yet"),
        Err(error) => return Seen::new(Found::KeyUnknown, Layer::Key, error.to_string()),
    };
    if !key.enabled() {
        return Seen::new(Found::Passed, Layer::Key, "its sub key is switched off");
    }
    let secret = match key.key(&app.sealer) {
        Ok(secret) => secret,
        Err(error) => return Seen::new(Found::KeyUnknown, Layer::Key, error.to_string()),
    };
    match app.upstream.gateway.check_key(&secret).await {
        KeyState::Valid => Seen::new(Found::Passed, Layer::Key, "everything answers"),
        KeyState::Invalid => Seen::new(Found::KeyInvalid, Layer::Key, "the LLM gateway does not know its sub key"),
        KeyState::Denied => Seen::new(Found::KeyInvalid, Layer::Key, "the LLM gateway denies its sub key"),
        KeyState::Exhausted => Seen::new(Found::Passed, Layer::Key, "what its sub key may spend is spent"),
        KeyState::Throttled => Seen::new(Found::KeyUnknown, Layer::Key, "the LLM gateway asks us to come again later"),
        KeyState::Unreachable(why) => {
            Seen::new(Found::KeyUnknown, Layer::Key, format!("the LLM gateway cannot be asked: {why}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openclaw::sweep::Http;
    use openclaw::unit::State;

    /// A unit whose process is this many seconds old.
    fn answer(age: u64, restarts: u32, live: bool) -> (Answer, Server) {
        let unit = State {
            loaded: true,
            active: Active::Active,
            sub: "running".into(),
            main_pid: Some(7),
            restarts,
            started_us: Some((1000 - age) * 1_000_000),
            ..State::default()
        };
        let healthz = live.then(|| Http { status: 200, body: "{\"ok\":true}".into() });
        let server = Server { uptime_s: Some(1000.0), ..Server::default() };
        (Answer { complete: true, unit, healthz, ..Answer::default() }, server)
    }

    #[test]
    fn a_start_is_waited_for_and_a_crash_loop_is_not() {
        let found = |age, restarts, live| {
            let (answer, server) = answer(age, restarts, live);
            service(&answer, &server).map(|seen| seen.found)
        };
        assert_eq!(found(10, 0, false), Some(Found::Starting));
        assert_eq!(found(10, 1, false), Some(Found::Failed), "systemd has started it again");
        assert_eq!(found(100, 0, false), Some(Found::Failed));
        assert_eq!(found(10, 4, true), None, "it answers");
    }
}
