//! What a server has already: gateways that run or are configured there, and their adoption.

use base::id::{NewInstanceId, ServerId};
use base::{Email, Error, Name};
use fleet::adopt::{self, Adopted, Preview, Wish};
use fleet::discover::{self, Discovered, EmailSource};
use openclaw::discover::{Config, Runner};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::admin::reconcile::StateField;
use crate::envelope::Data;
use crate::extract::{Admin, Answer, Body, Path, Query, State};
use crate::state::{Api, Shared};

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(discover_server))
        .routes(routes!(preview_adoption))
        .routes(routes!(adopt_gateways))
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DiscoveredRunner {
    /// A unit of the system.
    Unit,
    /// A unit of its user's own systemd.
    UserUnit,
    /// A process that nothing starts again.
    Process,
    Container,
    /// Nothing runs: there is a configuration.
    Home,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DiscoveredConfig {
    /// It was read.
    Ok,
    Missing,
    /// It is no JSON5 document.
    Broken,
    Unreadable,
    /// It is larger than 256 KiB.
    TooLarge,
    /// It was not looked for, or its user did not answer in time.
    Unknown,
}

#[derive(Serialize, ToSchema)]
pub struct DiscoveredGateway {
    /// Names it among all of the server.
    #[schema(example = "unit:openclaw.service")]
    key: String,
    runner: DiscoveredRunner,
    /// The name of the unit or container; empty for a process and a home.
    #[schema(example = "openclaw.service")]
    name: String,
    /// The image of a container; else empty.
    image: String,
    /// The user that it runs as, or whose home it is.
    #[schema(example = "ada")]
    user: String,
    /// Empty if it is not known.
    #[schema(example = "/home/ada")]
    home: String,
    running: bool,
    /// Whether its unit of a user is started without a login; null for every other runner.
    lingers: Option<bool>,
    #[schema(example = 18789)]
    port: Option<u16>,
    /// Whether machines other than the server can reach it.
    open_to_others: bool,
    /// The release of OpenClaw, as far as it is known without running anything.
    #[schema(example = "2026.9.6")]
    version: Option<String>,
    config: DiscoveredConfig,
    /// The model of its agents, with its provider.
    #[schema(example = "anthropic/claude-sonnet-4-6")]
    model: Option<String>,
    /// The channels that are switched on.
    channels: Vec<String>,
    /// Whether its gateway has a token, by which the platform can talk to it.
    has_token: bool,
    /// When its sessions were written last.
    last_session_at: Option<String>,
    /// The instance that it is; null if the platform does not know it.
    instance_id: Option<String>,
    /// The e-mail address of its employee, as `email_file` or `email_field` has it; null if neither does. That is its user's word.
    #[schema(example = "ada@example.com")]
    email: Option<String>,
    /// Nothing starts it: once adopted it is observed, and nothing is written there until it is moved into a cell.
    only_observed: bool,
    /// Why it cannot be adopted as it is; null if it can: `home` (nothing runs it), `container_stopped`, `port_not_published` (of a container),
    /// `not_on_loopback` (the server cannot reach its port), `state_elsewhere` and `home_unknown` (its files are not in the folder
    /// .openclaw of a home), `no_token`, `config_broken`, `config_missing`, `config_too_large`, `config_unreadable`.
    #[schema(example = "no_token")]
    obstacle: Option<&'static str>,
}

#[derive(Serialize, ToSchema)]
pub struct DiscoveredGateways {
    list: Vec<DiscoveredGateway>,
    /// Whether the server answered to the end. If not, there may be more.
    complete: bool,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct DiscoverQuery {
    /// A file of each home that has the e-mail address of its employee, as a path below the home. Of what is in the file only an
    /// address is read.
    #[param(example = ".config/owner")]
    email_file: Option<String>,
    /// A field of each configuration that has it, its parts separated by dots.
    #[param(example = "env.vars.OWNER")]
    email_field: Option<String>,
}

/// Every OpenClaw gateway that runs on the server or is configured there, whoever made it (beyond the spec): units of the system and of
/// users, processes that nobody starts again, containers, and homes with a configuration. Nothing is changed: files in a home are read as the
/// user whose home it is, and no value of a secret leaves the platform.
#[utoipa::path(get, path = "/servers/{id}/discover", tag = "servers", params(("id" = String, Path), DiscoverQuery), responses(
    (status = 200, body = DiscoveredGateways),
    (status = 409, description = "the server has no SSH key that can be used, or shows another host key than before"),
    (status = 503, description = "the server cannot be reached"),
))]
async fn discover_server(
    _: Admin,
    api: State,
    Path(id): Path<ServerId>,
    Query(query): Query<DiscoverQuery>,
) -> Answer<DiscoveredGateways> {
    let emails = EmailSource { file: query.email_file, field: query.email_field };
    let found = discover::discover(&api.app, &id, &emails).await?;
    let list = found.list.into_iter().map(|one| shaped(&api, one)).collect();
    Ok(Data(DiscoveredGateways { list, complete: found.is_complete }))
}

fn shaped(api: &Api, found: Discovered) -> DiscoveredGateway {
    let (port, only_observed, gateway) = (found.port(), found.is_only_observed(), found.gateway);
    let (open_to_others, lingers) = (gateway.is_open_to_others(), lingers(&gateway.runner));
    let (runner, name, image) = match gateway.runner {
        Runner::Unit { name } => (DiscoveredRunner::Unit, name, String::new()),
        Runner::UserUnit { name, .. } => (DiscoveredRunner::UserUnit, name, String::new()),
        Runner::Process { .. } => (DiscoveredRunner::Process, String::new(), String::new()),
        Runner::Container { name, image, .. } => (DiscoveredRunner::Container, name, image),
        Runner::Home => (DiscoveredRunner::Home, String::new(), String::new()),
    };
    DiscoveredGateway {
        key: found.key,
        runner,
        name,
        image,
        user: gateway.user,
        home: gateway.home.unwrap_or_default(),
        running: gateway.is_running,
        lingers,
        port,
        open_to_others,
        version: gateway.version.map(|version| version.to_string()),
        config: match gateway.config {
            Config::Document(_) => DiscoveredConfig::Ok,
            Config::Missing => DiscoveredConfig::Missing,
            Config::Broken => DiscoveredConfig::Broken,
            Config::Unreadable => DiscoveredConfig::Unreadable,
            Config::TooLarge => DiscoveredConfig::TooLarge,
            Config::Unknown => DiscoveredConfig::Unknown,
        },
        model: found.model,
        channels: found.channels,
        has_token: found.has_token,
        last_session_at: gateway.last_session.map(|at| api.zone().show(at)),
        instance_id: found.instance.map(|id| id.to_string()),
        email: found.email.map(|email| email.to_string()),
        only_observed,
        obstacle: found.obstacle.map(|obstacle| obstacle.as_str()),
    }
}

fn lingers(runner: &Runner) -> Option<bool> {
    match runner {
        Runner::UserUnit { lingers, .. } => Some(*lingers),
        _ => None,
    }
}

#[derive(Deserialize, ToSchema)]
pub struct AdoptionWish {
    /// What GET /servers/{id}/discover calls it.
    #[schema(value_type = String, example = "unit:openclaw.service")]
    key: Name<500>,
    /// The id of the new instance.
    #[schema(value_type = String, example = "ada")]
    id: NewInstanceId,
    #[schema(value_type = String, example = "Ada's assistant")]
    name: Name<100>,
    /// The employee who gets it. What is adopted is not isolated, so only a super administrator gives it to somebody.
    #[schema(value_type = Option<String>)]
    email: Option<Email>,
    /// It keeps the model provider of its own: nothing is written, and its use is not counted. Otherwise it gets a key and the models of
    /// our LLM gateway.
    #[serde(default)]
    keeps_llm: bool,
    /// Whether what needs a restart is brought at once. Otherwise it waits for the next restart, or for a person.
    #[serde(default)]
    restart: bool,
}

#[derive(Deserialize, ToSchema)]
pub struct AdoptionWishes {
    /// At most 200.
    #[schema(max_items = 200)]
    list: Vec<AdoptionWish>,
}

#[derive(Serialize, ToSchema)]
pub struct AdoptionPreview {
    key: String,
    instance_id: String,
    /// What is written into its configuration, as in GET /instances/{id}/state. Secrets are masked. Empty if nothing is.
    changes: Vec<StateField>,
    /// Whether something of it needs a restart.
    needs_restart: bool,
    /// Nothing starts it: it keeps its own model provider, and nothing is written there until it is moved into a cell.
    only_observed: bool,
    /// Why it is not adopted; null if it is.
    refusal: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct AdoptionPreviews {
    list: Vec<AdoptionPreview>,
}

#[derive(Serialize, ToSchema)]
pub struct Adoption {
    key: String,
    instance_id: String,
    /// The task that writes its configuration; null if nothing is written.
    task_id: Option<String>,
    /// Why it was not adopted; null if it was.
    refusal: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct Adoptions {
    list: Vec<Adoption>,
}

/// What each adoption would change (beyond the spec). Nothing is changed.
#[utoipa::path(post, path = "/servers/{id}/adopt/preview", tag = "servers", params(("id" = String, Path)), request_body = AdoptionWishes, responses(
    (status = 200, body = AdoptionPreviews),
    (status = 503, description = "the server cannot be reached"),
))]
async fn preview_adoption(
    who: Admin,
    api: State,
    Path(id): Path<ServerId>,
    Body(body): Body<AdoptionWishes>,
) -> Answer<AdoptionPreviews> {
    let all = adopt::preview(&api.app, &who.by, &id, wishes(body)?).await?;
    let shaped = |one: Preview| AdoptionPreview {
        needs_restart: one.needs_restart(),
        only_observed: one.is_only_observed,
        key: one.key,
        instance_id: one.id.to_string(),
        changes: one.changes.into_iter().map(StateField::from).collect(),
        refusal: one.refusal,
    };
    Ok(Data(AdoptionPreviews { list: all.into_iter().map(shaped).collect() }))
}

/// Makes instances of gateways that the server has already (beyond the spec). Each becomes a record with its own home, unit, port and
/// token; its home and its user are never cleaned, pooled, renamed or deleted. One that is refused does not hold up the others. Nothing is
/// restarted unless `restart` allows it.
#[utoipa::path(post, path = "/servers/{id}/adopt", tag = "servers", params(("id" = String, Path)), request_body = AdoptionWishes, responses(
    (status = 200, body = Adoptions),
    (status = 503, description = "the server cannot be reached"),
))]
async fn adopt_gateways(
    who: Admin,
    api: State,
    Path(id): Path<ServerId>,
    Body(body): Body<AdoptionWishes>,
) -> Answer<Adoptions> {
    let all = adopt::adopt(&api.app, &who.by, &id, wishes(body)?).await?;
    let shaped = |one: Adopted| Adoption {
        key: one.key,
        instance_id: one.id.to_string(),
        task_id: one.task.map(|task| task.to_string()),
        refusal: one.refusal,
    };
    Ok(Data(Adoptions { list: all.into_iter().map(shaped).collect() }))
}

fn wishes(body: AdoptionWishes) -> Result<Vec<Wish>, Error> {
    if body.list.is_empty() || body.list.len() > adopt::MOST {
        return Err(Error::field("list", format_args!("must have between 1 and {} entries", adopt::MOST)));
    }
    let wish = |one: AdoptionWish| Wish {
        key: one.key.into(),
        id: one.id,
        name: one.name.into(),
        email: one.email,
        keeps_llm: one.keeps_llm,
        restart: one.restart,
    };
    Ok(body.list.into_iter().map(wish).collect())
}
