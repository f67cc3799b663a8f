//! Managed servers.

use base::id::ServerId;
use base::{Error, Kind, Listing, Name, Secret, Sort, Text};
use fleet::host::{self, Trust};
use fleet::server::{self, Metric, New, Patch, Server};
use remote::host::{ExpectedKey, HostKey, KeyProblem};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::instance::{InstanceItem, item as instance_item};
use crate::envelope::Data;
use crate::extract::{Admin, Answer, Body, Paging, Path, Query, State};
use crate::shape::{Deleted, Enqueued};
use crate::state::{Api, Shared};
use crate::words::ServerStatus;

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(list, create))
        .routes(routes!(update, delete))
        .routes(routes!(detail))
        .routes(routes!(stats))
        .routes(routes!(metrics))
        .routes(routes!(test))
        .routes(routes!(prepare))
}

#[derive(Serialize, ToSchema)]
pub struct ServerItem {
    id: String,
    #[schema(example = "Frankfurt 1")]
    name: String,
    /// A name or address, or `local` for the machine itself.
    #[schema(example = "fra1.internal")]
    host: String,
    #[schema(example = 22)]
    ssh_port: i64,
    #[schema(example = "root")]
    ssh_user: String,
    ssh_key_path: String,
    /// Whether a private key is kept for it; the key itself is never shown.
    has_ssh_key: bool,
    /// What it must show: a public key, its SHA256 fingerprint, or an authority (`@cert-authority`) that certifies it; empty when its first
    /// key is taken.
    expected_host_key: String,
    /// The fingerprint of the expected key or authority; empty without one.
    expected_fingerprint: String,
    /// By what it is known.
    host_key_trust: HostKeyTrust,
    /// The server's own key as it showed it at the first contact, or with its last certificate; empty before.
    host_key: String,
    /// The fingerprint of that; empty before.
    host_key_fingerprint: String,
    #[schema(example = "/srv/assistants")]
    base_dir: String,
    /// The OpenClaw that it was prepared with; empty before.
    #[schema(example = "2026.9.6")]
    openclaw_version: String,
    /// Whether every package of it was checked against a lockfile that comes with the platform.
    openclaw_pinned: bool,
    prepared_at: Option<String>,
    status: String,
    notes: String,
    created_at: String,
    updated_at: String,
}

/// By what a server is known.
#[derive(Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum HostKeyTrust {
    /// It is the machine itself.
    Local,
    /// By the key that it shows at the first contact, which is compared with nothing.
    FirstUse,
    /// By an expected key, with which what it shows is compared.
    Compared,
    /// By certificates of an authority.
    Certified,
}

impl From<Trust> for HostKeyTrust {
    fn from(trust: Trust) -> HostKeyTrust {
        match trust {
            Trust::Local => HostKeyTrust::Local,
            Trust::FirstUse => HostKeyTrust::FirstUse,
            Trust::Compared => HostKeyTrust::Compared,
            Trust::Certified => HostKeyTrust::Certified,
        }
    }
}

fn item(api: &Api, server: Server) -> Result<ServerItem, Error> {
    let expected = host::expected(&server)?;
    let seen = server.host_key.as_deref().and_then(|key| key.parse::<HostKey>().ok());
    Ok(ServerItem {
        expected_fingerprint: expected.map(|expected| expected.fingerprint()).unwrap_or_default(),
        host_key_trust: host::trust(&server)?.into(),
        host_key_fingerprint: seen.map(|key| key.fingerprint()).unwrap_or_default(),
        expected_host_key: server.expected_host_key.map(Into::into).unwrap_or_default(),
        id: server.id.into(),
        name: server.name,
        host: server.host,
        ssh_port: server.ssh_port,
        ssh_user: server.ssh_user,
        ssh_key_path: server.ssh_key_path,
        has_ssh_key: server.ssh_key.is_some(),
        host_key: server.host_key.map(Into::into).unwrap_or_default(),
        base_dir: server.base_dir,
        openclaw_version: server.openclaw_version.map(Into::into).unwrap_or_default(),
        openclaw_pinned: server.openclaw_pinned,
        prepared_at: server.prepared_at.map(|at| api.zone().show(at)),
        status: server.status.as_str().to_owned(),
        notes: server.notes,
        created_at: api.zone().show(server.created_at),
        updated_at: api.zone().show(server.updated_at),
    })
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ServerQuery {
    /// Text in id, name or host.
    q: Option<String>,
    status: Option<ServerStatus>,
    /// id, name, host, status, created_at or updated_at; a `-` in front turns it around.
    sort: Option<String>,
}

/// All servers.
#[utoipa::path(get, path = "/servers", tag = "servers", params(ServerQuery, Paging), responses((status = 200, body = Listing<ServerItem>)))]
async fn list(_: Admin, api: State, Query(query): Query<ServerQuery>, paging: Paging) -> Answer<Listing<ServerItem>> {
    let default = Sort { column: "created_at", descending: false };
    let sort = Sort::asked(query.sort.as_deref(), store::server::SORTABLE, default)?;
    let status = query.status.map(Into::into);
    let found = server::list(&api.app, query.q.as_deref(), status, sort, paging.page(50)?).await?;
    let Listing { list, total } = found;
    let list = list.into_iter().map(|server| item(&api, server)).collect::<Result<_, _>>()?;
    Ok(Data(Listing { list, total }))
}

#[derive(Deserialize, ToSchema)]
pub struct NewServer {
    /// Made when omitted.
    id: Option<Name<36>>,
    name: Name<100>,
    /// A name or address, or `local` for the machine itself.
    host: Name<255>,
    /// 22 when omitted.
    #[schema(nullable = false, minimum = 1, maximum = 65535)]
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    ssh_port: Option<u16>,
    /// `root` when omitted.
    ssh_user: Option<Name<50>>,
    /// A private key's file on this machine.
    #[serde(default)]
    ssh_key_path: Text<500>,
    /// A private key in OpenSSH's form, without a passphrase; kept sealed, never shown.
    ssh_key: Option<Secret>,
    /// What the server must show: its public key or a line of known_hosts, the key's SHA256 fingerprint, or `@cert-authority` with the
    /// public key of an authority whose host certificates name this host. When omitted, the key of the first contact is taken, compared
    /// with nothing.
    expected_host_key: Option<Text<5000>>,
    /// Where the homes of instances are; `/srv/assistants` when omitted.
    base_dir: Option<Name<200>>,
    #[serde(default)]
    notes: Text<10000>,
}

/// Adds a server.
#[utoipa::path(post, path = "/servers", tag = "servers", request_body = NewServer, responses((status = 200, body = ServerItem)))]
async fn create(who: Admin, api: State, Body(body): Body<NewServer>) -> Answer<ServerItem> {
    let new = New {
        id: body.id.map(|id| plain("id", id.as_str())).transpose()?,
        name: body.name.into(),
        host: plain("host", body.host.as_str())?,
        ssh_port: port(body.ssh_port)?.unwrap_or(22),
        ssh_user: body.ssh_user.map(|u| plain("ssh_user", u.as_str())).transpose()?.unwrap_or_else(|| "root".into()),
        ssh_key_path: body.ssh_key_path.into(),
        ssh_key: body.ssh_key,
        expected_host_key: body.expected_host_key.map_or(Ok(None), |text| expected(text.as_str()))?,
        base_dir: body.base_dir.map(|dir| folder("base_dir", dir.as_str())).transpose()?,
        notes: body.notes.into(),
    };
    let created = server::create(&api.app, &who.by, new).await?;
    Ok(Data(item(&api, created)?))
}

#[derive(Deserialize, ToSchema)]
pub struct ServerPatch {
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    #[schema(nullable = false)]
    name: Option<Name<100>>,
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    #[schema(nullable = false)]
    host: Option<Name<255>>,
    #[schema(nullable = false, minimum = 1, maximum = 65535)]
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    ssh_port: Option<u16>,
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    #[schema(nullable = false)]
    ssh_user: Option<Name<50>>,
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    #[schema(nullable = false)]
    ssh_key_path: Option<Text<500>>,
    /// A private key in OpenSSH's form; null takes it away.
    #[serde(default, deserialize_with = "crate::shape::given")]
    #[schema(value_type = Option<Secret>)]
    ssh_key: Option<Option<Secret>>,
    /// What the server must show from now on; null or an empty text expects nothing. A key that it showed before and that is not the
    /// expected one is forgotten.
    #[serde(default, deserialize_with = "crate::shape::given")]
    #[schema(value_type = Option<Text<5000>>)]
    expected_host_key: Option<Option<Text<5000>>>,
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    #[schema(nullable = false)]
    base_dir: Option<Name<200>>,
    /// The server was installed again: its next contact pins its new key, which must be the expected one where there is one.
    #[serde(default)]
    forget_host_key: bool,
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    #[schema(nullable = false)]
    status: Option<ServerStatus>,
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    #[schema(nullable = false)]
    notes: Option<Text<10000>>,
}

/// Changes a server.
#[utoipa::path(patch, path = "/servers/{id}", tag = "servers", params(("id" = String, Path)), request_body = ServerPatch, responses((status = 200, body = ServerItem)))]
async fn update(who: Admin, api: State, Path(id): Path<ServerId>, Body(body): Body<ServerPatch>) -> Answer<ServerItem> {
    let patch = Patch {
        name: body.name.map(Into::into),
        host: body.host.map(|h| plain("host", h.as_str())).transpose()?,
        ssh_port: port(body.ssh_port)?,
        ssh_user: body.ssh_user.map(|u| plain("ssh_user", u.as_str())).transpose()?,
        ssh_key_path: body.ssh_key_path.map(Into::into),
        ssh_key: body.ssh_key,
        expected_host_key: body
            .expected_host_key
            .map(|given| given.map_or(Ok(None), |text| expected(text.as_str())))
            .transpose()?,
        base_dir: body.base_dir.map(|dir| folder("base_dir", dir.as_str())).transpose()?,
        forget_host_key: body.forget_host_key,
        status: body.status.map(Into::into),
        notes: body.notes.map(Into::into),
    };
    let updated = server::update(&api.app, &who.by, &id, patch).await?;
    Ok(Data(item(&api, updated)?))
}

/// Deletes a server (soft).
///
/// A server that still has instances is refused (409).
#[utoipa::path(delete, path = "/servers/{id}", tag = "servers", params(("id" = String, Path)), responses((status = 200, body = Deleted)))]
async fn delete(who: Admin, api: State, Path(id): Path<String>) -> Answer<Deleted> {
    server::delete(&api.app, &who.by, &ServerId::named(id.clone())).await?;
    Ok(Data(Deleted { id }))
}

#[derive(Serialize, ToSchema)]
pub struct ServerDetail {
    #[serde(flatten)]
    server: ServerItem,
    instances: Vec<InstanceItem>,
    stats: ServerStats,
}

/// A server with its instances and its latest measurements.
#[utoipa::path(get, path = "/servers/{id}/detail", tag = "servers", params(("id" = String, Path)), responses((status = 200, body = ServerDetail)))]
async fn detail(_: Admin, api: State, Path(id): Path<ServerId>) -> Answer<ServerDetail> {
    let server = server::find(&api.app, &id).await?;
    let query = fleet::instance::InstanceFilter { server_id: Some(id.as_str()), ..Default::default() };
    let sort = Sort { column: "gateway_port", descending: false };
    let found = fleet::instance::list(&api.app, query, sort, base::Page::ALL).await?;
    let instances = found.list.into_iter().map(|i| instance_item(&api, i)).collect::<Result<_, _>>()?;
    let latest = server::latest_metric(&api.app, &id).await?;
    Ok(Data(ServerDetail { server: item(&api, server)?, instances, stats: ServerStats::new(&api, latest) }))
}

#[derive(Serialize, ToSchema)]
pub struct ServerStats {
    cpu_percent: Option<f64>,
    memory_percent: Option<f64>,
    disk_percent: Option<f64>,
    load_1m: Option<f64>,
    created_at: Option<String>,
    /// Seconds since it was measured; everything is null when it never was.
    age_s: Option<i64>,
}

impl ServerStats {
    fn new(api: &Api, latest: Option<Metric>) -> ServerStats {
        let age = |m: &Metric| api.app.clock.now().duration_since(m.created_at).as_secs();
        ServerStats {
            cpu_percent: latest.as_ref().map(|m| two_decimals(m.cpu_percent)),
            memory_percent: latest.as_ref().map(|m| two_decimals(m.memory_percent)),
            disk_percent: latest.as_ref().map(|m| two_decimals(m.disk_percent)),
            load_1m: latest.as_ref().map(|m| two_decimals(m.load_1m)),
            created_at: latest.as_ref().map(|m| api.zone().show(m.created_at)),
            age_s: latest.as_ref().map(age),
        }
    }
}

/// The latest measurements of a server.
#[utoipa::path(get, path = "/servers/{id}/stats", tag = "servers", params(("id" = String, Path)), responses((status = 200, body = ServerStats)))]
async fn stats(_: Admin, api: State, Path(id): Path<ServerId>) -> Answer<ServerStats> {
    server::find(&api.app, &id).await?;
    let latest = server::latest_metric(&api.app, &id).await?;
    Ok(Data(ServerStats::new(&api, latest)))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Hours {
    /// 1 to 720; 24 when omitted.
    #[param(minimum = 1, maximum = 720)]
    hours: Option<i64>,
}

#[derive(Serialize, ToSchema)]
pub struct Point {
    created_at: String,
    cpu_percent: f64,
    memory_percent: f64,
    disk_percent: f64,
    load_1m: f64,
}

#[derive(Serialize, ToSchema)]
pub struct Points {
    list: Vec<Point>,
}

/// A server's measurements over time, oldest first.
///
/// At most 500 points: longer times are averaged.
#[utoipa::path(get, path = "/server-metrics/{id}", tag = "servers", params(("id" = String, Path), Hours), responses((status = 200, body = Points)))]
async fn metrics(_: Admin, api: State, Path(id): Path<ServerId>, Query(asked): Query<Hours>) -> Answer<Points> {
    let hours = asked.hours.unwrap_or(24);
    if !(1..=720).contains(&hours) {
        return Err(Error::field("hours", "must be from 1 to 720").into());
    }
    let found = server::metrics(&api.app, &id, hours).await?;
    let point = |m: Metric| Point {
        created_at: api.zone().show(m.created_at),
        cpu_percent: two_decimals(m.cpu_percent),
        memory_percent: two_decimals(m.memory_percent),
        disk_percent: two_decimals(m.disk_percent),
        load_1m: two_decimals(m.load_1m),
    };
    Ok(Data(Points { list: found.into_iter().map(point).collect() }))
}

#[derive(Serialize, ToSchema)]
pub struct TestStep {
    /// address, host_key, login, sudo, systemd, docker, node, openclaw, free_memory or gateway.
    #[schema(example = "login")]
    step: &'static str,
    ok: bool,
    /// What was found, or what is wrong with it.
    #[schema(example = "as root")]
    detail: String,
    ms: u64,
}

#[derive(Serialize, ToSchema)]
pub struct Tested {
    /// Whether every step went well. Docker is needed for containers only.
    ok: bool,
    /// The fingerprint of the key that the server showed.
    host_key: Option<String>,
    steps: Vec<TestStep>,
}

/// Connects to a server anew and tries what assistants need, step by step (beyond the spec).
///
/// A first contact pins the server's key. A step that makes the next ones impossible ends it; those are `not tried`.
#[utoipa::path(post, path = "/servers/{id}/test", tag = "servers", params(("id" = String, Path)), responses((status = 200, body = Tested)))]
async fn test(who: Admin, api: State, Path(id): Path<ServerId>) -> Answer<Tested> {
    let probe = fleet::server::test(&api.app, &who.by, &id).await?;
    let steps = probe.reports.into_iter();
    let steps: Vec<TestStep> =
        steps.map(|r| TestStep { step: r.step.as_str(), ok: r.ok, detail: r.detail, ms: r.ms }).collect();
    let ok = steps.iter().all(|step| step.ok);
    Ok(Data(Tested { ok, host_key: probe.host_key.map(|key| key.fingerprint()), steps }))
}

/// Has Node and OpenClaw of the set version installed on a server (beyond the spec): enqueues prepare_server.
#[utoipa::path(post, path = "/servers/{id}/prepare", tag = "servers", params(("id" = String, Path)), responses((status = 200, body = Enqueued)))]
async fn prepare(who: Admin, api: State, Path(id): Path<ServerId>) -> Answer<Enqueued> {
    let task = server::prepare(&api.app, &who.by, &id).await?;
    Ok(Data(Enqueued::from(task)))
}

fn two_decimals(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// What is later an argument of a command: no white space, and nothing that begins like an option.
fn plain(field: &str, text: &str) -> Result<String, Error> {
    if text.starts_with('-') || text.chars().any(char::is_whitespace) {
        return Err(Error::field(field, "must not begin with a dash or contain white space"));
    }
    Ok(text.to_owned())
}

/// An absolute path that is nothing but a path.
fn folder(field: &str, text: &str) -> Result<String, Error> {
    let parts = || text.split('/').skip(1);
    let fits =
        text.starts_with('/') && parts().all(|p| !matches!(p, "" | "." | "..")) && !text.contains(char::is_control);
    if fits {
        Ok(text.to_owned())
    } else {
        Err(Error::field(field, "must be an absolute path such as /srv/assistants"))
    }
}

/// An empty text expects nothing, as forms say it.
fn expected(text: &str) -> Result<Option<ExpectedKey>, Error> {
    match text.trim() {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(|why: KeyProblem| Error::field("expected_host_key", why)),
    }
}

fn port(port: Option<u16>) -> Result<Option<i64>, Error> {
    match port {
        Some(0) => Err(Error::new(Kind::BadRequest, "ssh_port: must be from 1 to 65535")),
        other => Ok(other.map(i64::from)),
    }
}
