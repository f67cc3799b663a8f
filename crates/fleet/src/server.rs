//! Managed servers.

use base::id::{ServerId, TaskId};
use base::{Error, Kind, Listing, NonEmpty, Page, Result, Secret, Sort};
use jiff::SignedDuration;
use queue::alert::Rule;
use queue::audit::{self, Action, AuditEvent, By, Changes, Level};
use queue::task;
use remote::host::ExpectedKey;
use remote::host::probe::{self, Probe, Wants};
pub use store::server::{Server, Status};
pub use store::server_metric::Metric;
use store::{Tx, instance, server, server_metric};

use crate::assistant::{cell as on_server, install as program, place};
use crate::task::PrepareServer;
use crate::{App, host};

/// The maximum number of points in a chart.
const MOST_POINTS: i64 = 500;

pub struct New {
    pub id: Option<String>,
    pub name: String,
    pub host: String,
    pub ssh_port: i64,
    pub ssh_user: String,
    pub ssh_key_path: String,
    pub ssh_key: Option<Secret>,
    /// If there is none, the key that the server shows at the first contact is pinned.
    pub expected_host_key: Option<ExpectedKey>,
    pub base_dir: Option<String>,
    pub notes: String,
}

/// The default folder for the homes of instances.
pub const BASE_DIR: &str = "/srv/assistants";

/// What a PATCH changes; `None` leaves a field as it is.
#[derive(Default)]
pub struct Patch {
    pub name: Option<String>,
    pub host: Option<String>,
    pub ssh_port: Option<i64>,
    pub ssh_user: Option<String>,
    pub ssh_key_path: Option<String>,
    /// `Some(None)` removes the key.
    pub ssh_key: Option<Option<Secret>>,
    /// `Some(None)` removes the expected key.
    pub expected_host_key: Option<Option<ExpectedKey>>,
    pub base_dir: Option<String>,
    /// Forgets the pinned host key; the next contact pins the current one. For a key that was replaced on purpose.
    pub forget_host_key: bool,
    pub status: Option<Status>,
    pub notes: Option<String>,
}

pub async fn list(
    app: &App,
    q: Option<&str>,
    status: Option<Status>,
    sort: Sort,
    page: Page,
) -> Result<Listing<Server>> {
    Ok(server::list(&app.db, q, status, sort, page).await?)
}

pub async fn find(app: &App, id: &ServerId) -> Result<Server> {
    Ok(server::find(&app.db, id).await?.ok_or(Kind::NotFound)?)
}

pub async fn create(app: &App, by: &By, new: New) -> Result<Server> {
    let now = app.clock.now();
    let id = new.id.map_or_else(ServerId::fresh, ServerId::named);
    let server = Server {
        ssh_key: sealed(app, &id, new.ssh_key.as_ref())?,
        expected_host_key: new.expected_host_key.as_ref().and_then(|key| NonEmpty::new(key.to_string())),
        host_key: None,
        base_dir: new.base_dir.unwrap_or_else(|| BASE_DIR.to_owned()),
        openclaw_version: None,
        openclaw_pinned: false,
        prepared_at: None,
        id,
        name: new.name,
        host: new.host,
        ssh_port: new.ssh_port,
        ssh_user: new.ssh_user,
        ssh_key_path: new.ssh_key_path,
        status: Status::Active,
        notes: new.notes,
        created_at: now,
        updated_at: now,
    };
    require_local_allowed(app, "", &server)?;
    require_applicable(&server, new.expected_host_key.as_ref())?;
    let mut tx = app.db.begin().await?;
    server::insert(&mut tx, &server).await.map_err(|e| match e {
        store::Error::Taken => Error::conflict("a server with this id exists, or existed, already"),
        other => other.into(),
    })?;
    let known_by = match &new.expected_host_key {
        _ if server.host == host::LOCAL => String::new(),
        None => "; its key will be taken at the first contact, compared with nothing".to_owned(),
        Some(expected) => format!("; expected is {}", shown(expected)),
    };
    let detail = format!("server {} ({}) added{known_by}", server.name, server.host);
    audit::record(app, &mut tx, by, AuditEvent::info(Action::ServerAction, &server.id, &detail)).await?;
    tx.commit().await?;
    Ok(server)
}

/// An expected key as the audit log names it.
fn shown(expected: &ExpectedKey) -> String {
    let front = if expected.is_authority() { "a certificate by " } else { "" };
    format!("{front}{}", expected.fingerprint())
}

/// Refuses this machine as a server unless a setting allows it, because an administrator of servers is root on them. A
/// record that already names this machine stays valid.
fn require_local_allowed(app: &App, host_before: &str, server: &Server) -> Result<()> {
    if server.host != host::LOCAL || host_before == host::LOCAL || app.assistants.local_server {
        return Ok(());
    }
    Err(Error::field(
        "host",
        "the machine itself is no server here: the setting local_server (TIDEPOOL_LOCAL_SERVER) allows it",
    ))
}

/// Refuses an expected key that the server can never show: this machine shows no key, and an authority may be for other
/// hosts.
fn require_applicable(server: &Server, expected: Option<&ExpectedKey>) -> Result<()> {
    let Some(expected) = expected else { return Ok(()) };
    let port = u16::try_from(server.ssh_port).map_err(Error::internal)?;
    if server.host == host::LOCAL {
        return Err(Error::field("expected_host_key", "the machine itself shows no key"));
    }
    if !expected.is_for(&server.host, port) {
        return Err(Error::field("expected_host_key", "the authority is for other hosts than this one"));
    }
    Ok(())
}

fn sealed(app: &App, id: &str, key: Option<&Secret>) -> Result<Option<String>> {
    Ok(key.map(|key| app.sealer.seal(server::key_place(id), key)).transpose()?)
}

pub async fn update(app: &App, by: &By, id: &ServerId, patch: Patch) -> Result<Server> {
    let mut tx = app.db.begin().await?;
    let old = server::lock(&mut tx, id).await?.ok_or(Kind::NotFound)?;
    let mut new = old.clone();
    new.name = patch.name.unwrap_or(new.name);
    new.host = patch.host.unwrap_or(new.host);
    new.ssh_port = patch.ssh_port.unwrap_or(new.ssh_port);
    new.ssh_user = patch.ssh_user.unwrap_or(new.ssh_user);
    new.ssh_key_path = patch.ssh_key_path.unwrap_or(new.ssh_key_path);
    let key_changed = patch.ssh_key.is_some();
    if let Some(key) = patch.ssh_key {
        new.ssh_key = sealed(app, id.as_str(), key.as_ref())?;
    }
    new.base_dir = patch.base_dir.unwrap_or(new.base_dir);
    require_local_allowed(app, &old.host, &new)?;
    require_same_homes(&mut tx, &old, &new).await?;
    let expected_before = host::expected(&old)?;
    // The expected key stays when the address changes. A machine that does not show it is refused until an
    // administrator sets another one.
    let expected = patch.expected_host_key.unwrap_or_else(|| expected_before.clone());
    require_applicable(&new, expected.as_ref())?;
    new.expected_host_key = expected.as_ref().and_then(|key| NonEmpty::new(key.to_string()));
    let is_unproved =
        expected != expected_before && expected.as_ref().is_some_and(|expected| !is_pinned(&old, expected));
    // A new address may be another machine, so the pinned key is forgotten.
    if patch.forget_host_key || is_unproved || new.host != old.host || new.ssh_port != old.ssh_port {
        new.host_key = None;
    }
    new.status = patch.status.unwrap_or(new.status);
    new.notes = patch.notes.unwrap_or(new.notes);
    new.updated_at = app.clock.now();
    let changes = Changes::default()
        .field("name", &old.name, &new.name)
        .field("host", &old.host, &new.host)
        .field("ssh_port", &old.ssh_port.to_string(), &new.ssh_port.to_string())
        .field("ssh_user", &old.ssh_user, &new.ssh_user)
        .field("ssh_key_path", &old.ssh_key_path, &new.ssh_key_path)
        .hidden("ssh_key", key_changed)
        .field("expected_host_key", &name_of(expected_before.as_ref()), &name_of(expected.as_ref()))
        .hidden("host_key", old.host_key != new.host_key)
        .field("base_dir", &old.base_dir, &new.base_dir)
        .field("status", old.status.as_str(), new.status.as_str())
        .field("notes", &old.notes, &new.notes);
    server::update(&mut tx, &new).await?;
    if new.status != Status::Active {
        // An inactive server is not checked, so no check would resolve its alerts.
        let subject = subject(id.as_str());
        queue::alert::resolve_where(app, &mut tx, |alert| alert.subject == subject).await?;
    }
    audit::record(app, &mut tx, by, AuditEvent::info(Action::ServerAction, &new.id, &changes.text())).await?;
    tx.commit().await?;
    Ok(new)
}

fn name_of(expected: Option<&ExpectedKey>) -> String {
    expected.map(shown).unwrap_or_default()
}

/// Whether the pinned key is the expected one.
fn is_pinned(server: &Server, expected: &ExpectedKey) -> bool {
    server.host_key.as_deref().and_then(|key| key.parse().ok()).is_some_and(|key| expected.is(&key))
}

/// Refuses another base_dir if the home of an instance lies below only one of the two folders.
async fn require_same_homes(tx: &mut Tx, old: &Server, new: &Server) -> Result<()> {
    if old.base_dir == new.base_dir {
        return Ok(());
    }
    let changed = |home: &str| place::is_below(home, &old.base_dir) != place::is_below(home, &new.base_dir);
    match instance::housed(tx, &old.id).await?.into_iter().find(|i| changed(&i.home)) {
        None => Ok(()),
        Some(one) => Err(Error::conflict(format!(
            "base_dir: the home of instance {} is {}, and whether that is its own follows from this folder",
            one.id, one.home
        ))),
    }
}

/// Enqueues a task that installs Node and OpenClaw.
pub async fn prepare(app: &App, by: &By, id: &ServerId) -> Result<TaskId> {
    let mut tx = app.db.begin().await?;
    server::find(&mut tx, id).await?.ok_or(Kind::NotFound)?;
    let payload = PrepareServer { server_id: id.clone() };
    let task = task::enqueue(app, &mut tx, &payload, &by.operator, None).await?;
    audit::record(app, &mut tx, by, AuditEvent::info(Action::ServerAction, id.as_str(), "preparation asked for"))
        .await?;
    tx.commit().await?;
    Ok(task)
}

/// How many servers the last health check could not reach.
pub async fn unreachable(app: &App) -> Result<usize> {
    let open = queue::alert::open_subjects(app, Rule::InstancesUnhealthy).await?;
    Ok(open.iter().filter(|subject| subject.starts_with(SUBJECT)).count())
}

/// The subject of alerts about a server itself.
pub(crate) fn subject(id: &str) -> String {
    format!("{SUBJECT}{id}")
}
const SUBJECT: &str = "server:";

/// Soft delete; refused while the server has live instances.
pub async fn delete(app: &App, by: &By, id: &ServerId) -> Result<()> {
    let mut tx = app.db.begin().await?;
    let server = server::lock(&mut tx, id).await?.ok_or(Kind::NotFound)?;
    let instances = server::live_instances(&mut tx, id).await?;
    if instances > 0 {
        return Err(Error::conflict(format!("the server still has {instances} instances")));
    }
    server::delete(&mut tx, id, app.clock.now()).await?;
    let subject = subject(id.as_str());
    queue::alert::resolve_where(app, &mut tx, |alert| alert.subject == subject).await?;
    let detail = format!("server {} deleted", server.name);
    audit::record(app, &mut tx, by, AuditEvent::warn(Action::ServerAction, &server.id, &detail)).await?;
    tx.commit().await?;
    app.hosts.forget(&server.id);
    Ok(())
}

pub async fn latest_metric(app: &App, id: &ServerId) -> Result<Option<Metric>> {
    Ok(server_metric::latest(&app.db, id).await?)
}

/// The last `hours` as points of a chart, oldest first.
pub async fn metrics(app: &App, id: &ServerId, hours: i64) -> Result<Vec<Metric>> {
    find(app, id).await?;
    let from = app.clock.now() - SignedDuration::from_hours(hours);
    // Buckets are aligned to multiples of the step, so the range can touch one bucket more than it has steps.
    let step = (hours * 3_600_000) / (MOST_POINTS - 1);
    Ok(server_metric::averages(&app.db, id, from, step.max(1)).await?)
}

/// Tests everything that assistants need on the server, step by step.
pub async fn test(app: &App, by: &By, id: &ServerId) -> Result<Probe> {
    let server = find(app, id).await?;
    let version = program::desired_version(app, &server);
    let wants = Wants {
        node: program::node(),
        openclaw: program::program(&version),
        cell: on_server::sample(&server.base_dir)?,
        cell_verdict: on_server::verdict,
        gateway_url: Some(app.assistants.gateway_url.clone()).filter(|url| !url.is_empty()),
    };
    let target = host::target(&app.sealer, &server)?;
    let probe = probe::probe(&target, &wants).await;
    let logged_in = probe.reports.iter().any(|report| report.step == probe::Step::Login && report.ok);
    if logged_in {
        host::remember(app, &server, probe.host_key.as_ref()).await?;
    }
    let failed: Vec<&str> = probe.reports.iter().filter(|r| !r.ok).map(|r| r.step.as_str()).collect();
    let detail = match failed.as_slice() {
        [] => "tested: everything is there".to_owned(),
        failed => format!("tested; not there: {}", failed.join(", ")),
    };
    let changed = probe.reports.iter().any(|r| r.step == probe::Step::HostKey && !r.ok) && probe.host_key.is_some();
    let level = if changed { Level::Error } else { Level::Info };
    let event = AuditEvent { action: Action::ServerAction, level, target: id.as_str(), detail: &detail };
    audit::record_alone(app, by, event).await?;
    Ok(probe)
}
