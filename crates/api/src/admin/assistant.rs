//! What of an instance is on its server: its log, its configuration, its running.

use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use base::id::InstanceId;
use base::{Error, Kind, Text};
use fleet::assistant::logs::{self, Line, Stream, Veil};
use fleet::assistant::{Assistant, config};
use fleet::instance;
use futures_util::stream;
use openclaw::document::Change;
use queue::permission::Permission;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::instance_detail::{InstanceDetail, Secrets, detail};
use crate::config_json::ConfigJson;
use crate::envelope::Data;
use crate::error::{ApiError, error_event};
use crate::event_stream::{self, Session, Watched};
use crate::extract::{Admin, Answer, Body, Path, Query, State};
use crate::shape::Enqueued;
use crate::state::{Api, Shared};

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(read_logs))
        .routes(routes!(read_config, set_config))
        .routes(routes!(config_versions))
        .routes(routes!(config_version))
        .routes(routes!(restart))
        .routes(routes!(upgrade))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct LogsQuery {
    /// 1 to 2000; 200 when omitted.
    #[param(minimum = 1, maximum = 2000)]
    lines: Option<i64>,
    /// Answer as server-sent events: the last lines, then those that come.
    follow: Option<bool>,
}

#[derive(Serialize, ToSchema)]
pub struct JournalLine {
    time: String,
    text: String,
}

#[derive(Serialize, ToSchema)]
pub struct JournalLines {
    /// Oldest first.
    list: Vec<JournalLine>,
}

fn line(api: &Api, line: Line) -> JournalLine {
    JournalLine { time: api.zone().show(line.at), text: line.text }
}

/// The last lines that the instance wrote, read on its server now (beyond the spec).
///
/// The instance's own token, key and bot token are masked. With `follow`, each event's data is one line as JSON; it ends after an
/// hour at the latest, when the token does, or with an event `error` that carries the envelope.
#[utoipa::path(get, path = "/instances/{id}/logs", tag = "instances", params(("id" = String, Path), LogsQuery), responses(
    (status = 200, description = "the lines, or with `follow` an event stream", content(
        (JournalLines = "application/json"),
        (String = "text/event-stream"),
    )),
    (status = 409, description = "the instance was never provisioned, or its server has no SSH key that can be used"),
    (status = 503, description = "the server cannot be reached"),
))]
async fn read_logs(
    _: Admin,
    api: State,
    Path(id): Path<InstanceId>,
    Query(query): Query<LogsQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let lines = match query.lines.unwrap_or(200) {
        lines @ 1..=2000 => lines as usize,
        _ => return Err(Error::field("lines", "must be from 1 to 2000").into()),
    };
    let assistant = Assistant::open(&api.app, &id).await?;
    if query.follow == Some(true) {
        let following = logs::follow(&api.app, &assistant, lines).await?;
        let session = Watched::of(&headers, &api.app, Permission::ReadLogs);
        return Ok(events(api, session, following));
    }
    let veil = Veil::of(&api.app, &assistant.id()).await?;
    let found = logs::last(&assistant, lines).await?;
    let list = found.into_iter().map(|found| line(&api, veil.over(found))).collect();
    Ok(Data(JournalLines { list }).into_response())
}

fn events(api: State, session: Watched, following: Stream) -> Response {
    let pieces = stream::unfold(Some((session, following)), move |begun| {
        let api = api.0.clone();
        async move {
            let (mut session, mut following) = begun?;
            let mut next = None;
            // A quiet log is looked after as one that says much.
            while next.is_none() {
                next = tokio::time::timeout(event_stream::LOOK, following.next()).await.ok();
                match session.look(&api.app).await {
                    Session::Stands => {}
                    // Keys and tokens may be others by now.
                    Session::Seen => following.veil_anew(&api.app).await.ok()?,
                    Session::Ended => return None,
                }
            }
            match next? {
                Ok(found) => {
                    let data = serde_json::to_string(&line(&api, following.veiled(found))).unwrap_or_default();
                    Some((Bytes::from(format!("data: {data}\n\n")), Some((session, following))))
                }
                // Its hour is over: whoever wants more asks again.
                Err(error) if error.kind == Kind::TimedOut => None,
                Err(error) => Some((Bytes::from(error_event(error)), None)),
            }
        }
    });
    event_stream::response(pieces)
}

#[derive(Serialize, ToSchema)]
pub struct Drift {
    #[schema(example = "agents.defaults.model.primary")]
    path: String,
    /// On the server; null where there is nothing.
    #[schema(value_type = Value)]
    is: Option<Value>,
    /// What our records say; null where there should be nothing.
    #[schema(value_type = Value)]
    should: Option<Value>,
}

#[derive(Serialize, ToSchema)]
pub struct HostConfig {
    /// The OpenClaw that reads it.
    #[schema(example = "2026.9.6")]
    version: String,
    /// The configuration as it is on the server; secrets are `***`.
    #[schema(value_type = Object)]
    config: Value,
    /// SHA-256 of the file.
    hash: String,
    /// Whether it is, to the byte, what the platform wrote last.
    untouched: bool,
    /// What the stored configuration and the platform's own settings would change in it; secrets are `***`.
    drift: Vec<Drift>,
}

/// The configuration as it is on the server, and how it differs from the stored one (beyond the spec).
///
/// A file that cannot be parsed is 409, with the place of the problem.
#[utoipa::path(get, path = "/instances/{id}/config", tag = "instances", params(("id" = String, Path)), responses(
    (status = 200, body = HostConfig),
    (status = 409, description = "the file cannot be parsed, the instance was never provisioned, or its server has no SSH key that can be used"),
    (status = 503, description = "the server cannot be reached"),
))]
async fn read_config(_: Admin, api: State, Path(id): Path<InstanceId>) -> Answer<HostConfig> {
    let assistant = Assistant::open(&api.app, &id).await?;
    let look = config::look(&api.app, &assistant).await?;
    Ok(Data(HostConfig {
        version: look.version.to_string(),
        config: look.masked,
        hash: look.hash,
        untouched: look.untouched,
        drift: drifts(look.drift),
    }))
}

fn drifts(changes: Vec<Change>) -> Vec<Drift> {
    changes.into_iter().map(|c| Drift { path: c.path.to_string(), is: c.before, should: c.after }).collect()
}

#[derive(Serialize, ToSchema)]
pub struct ConfigVersion {
    /// By which it is asked for.
    #[schema(example = "20261115T093000.000000000Z")]
    version: String,
    /// Until when it was the configuration.
    replaced_at: String,
    bytes: u64,
}

#[derive(Serialize, ToSchema)]
pub struct ConfigVersions {
    /// Newest first.
    list: Vec<ConfigVersion>,
}

#[derive(Serialize, ToSchema)]
pub struct PastConfig {
    #[serde(flatten)]
    version: ConfigVersion,
    /// Secrets are `***`.
    #[schema(value_type = Object)]
    config: Value,
    /// What putting it back would change: `is` today, `should` in that version; secrets are `***`.
    changes: Vec<Drift>,
}

fn kept(api: &Api, kept: config::Kept) -> ConfigVersion {
    ConfigVersion { version: kept.version, replaced_at: api.zone().show(kept.replaced_at), bytes: kept.bytes }
}

/// The last five configurations that the platform replaced on the server (beyond the spec).
#[utoipa::path(get, path = "/instances/{id}/config/versions", tag = "instances", params(("id" = String, Path)), responses(
    (status = 200, body = ConfigVersions),
    (status = 409, description = "the instance was never provisioned, or its server has no SSH key that can be used"),
    (status = 503, description = "the server cannot be reached"),
))]
async fn config_versions(_: Admin, api: State, Path(id): Path<InstanceId>) -> Answer<ConfigVersions> {
    let assistant = Assistant::open(&api.app, &id).await?;
    let found = config::versions(&assistant).await?;
    Ok(Data(ConfigVersions { list: found.into_iter().map(|one| kept(&api, one)).collect() }))
}

/// One of them, and how it differs from today's (beyond the spec). To put it back, PATCH what is wanted of it.
#[utoipa::path(get, path = "/instances/{id}/config/versions/{version}", tag = "instances",
    params(("id" = String, Path), ("version" = String, Path)), responses(
    (status = 200, body = PastConfig),
    (status = 404, description = "no such instance, or no such version is kept"),
    (status = 409, description = "a file cannot be parsed, the instance was never provisioned, or its server has no SSH key that can be used"),
    (status = 503, description = "the server cannot be reached"),
))]
async fn config_version(_: Admin, api: State, Path((id, version)): Path<(String, String)>) -> Answer<PastConfig> {
    let assistant = Assistant::open(&api.app, &InstanceId::named(id)).await?;
    let past = config::version(&assistant, &version).await?;
    Ok(Data(PastConfig { version: kept(&api, past.kept), config: past.masked, changes: drifts(past.changes) }))
}

#[derive(Deserialize, ToSchema)]
pub struct SetConfig {
    config_json: ConfigJson,
}

#[derive(Serialize, ToSchema)]
pub struct ConfigSet {
    #[serde(flatten)]
    instance: InstanceDetail,
    /// The task that writes it on the server; null as long as the instance is not there.
    task_id: Option<String>,
}

/// Replaces the stored configuration document, and has it brought into the one on the server by a task.
///
/// Objects are merged key by key, null takes a key away, and what the platform itself decides (gateway, model access, log file)
/// stays as it is. OpenClaw checks the result before it is written; what changed stands in the audit log, secrets masked.
#[utoipa::path(patch, path = "/instances/{id}/config", tag = "instances", params(("id" = String, Path)), request_body = SetConfig, responses((status = 200, body = ConfigSet)))]
async fn set_config(
    who: Admin,
    api: State,
    Path(id): Path<InstanceId>,
    Body(body): Body<SetConfig>,
) -> Answer<ConfigSet> {
    let task = instance::set_config(&api.app, &who.by, &id, body.config_json.into_text()).await?;
    let Data(instance) = detail(&api, &who.by, &id, Secrets::Masked).await?;
    Ok(Data(ConfigSet { instance, task_id: task.map(Into::into) }))
}

/// Has the instance restarted (beyond the spec): enqueues restart_instance.
#[utoipa::path(post, path = "/instances/{id}/restart", tag = "instances", params(("id" = String, Path)), responses((status = 200, body = Enqueued)))]
async fn restart(who: Admin, api: State, Path(id): Path<InstanceId>) -> Answer<Enqueued> {
    Ok(Data(instance::restart(&api.app, &who.by, &id).await?.into()))
}

#[derive(Deserialize, ToSchema)]
pub struct Upgrade {
    /// The set version when omitted.
    #[schema(value_type = Option<String>, max_length = 60, example = "2026.9.6")]
    version: Option<Text<60>>,
}

/// Has the instance run another OpenClaw (beyond the spec): enqueues upgrade_instance.
///
/// It is accepted when it is ready and has answered a chat; otherwise the snapshot that was taken before is put back.
#[utoipa::path(post, path = "/instances/{id}/upgrade", tag = "instances", params(("id" = String, Path)), request_body = Upgrade, responses((status = 200, body = Enqueued)))]
async fn upgrade(who: Admin, api: State, Path(id): Path<InstanceId>, Body(body): Body<Upgrade>) -> Answer<Enqueued> {
    let version = body.version.map(Into::into);
    Ok(Data(instance::upgrade(&api.app, &who.by, &id, version).await?.into()))
}
