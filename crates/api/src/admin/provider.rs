//! The model providers of the embedded gateway. Keys are never answered, only their last four characters.

use base::id::{ProviderId, ProviderKeyId};
use base::{Error, Listing, Secret, Text};
use llm::provider::{
    self, Listed, NewProvider, Oddity, Patch, Preset, Provider, Source, State as Condition, Trial, preset,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::envelope::Data;
use crate::error::ApiError;
use crate::extract::{Admin, Answer, Body, Path, State};
use crate::shape::Deleted;
use crate::state::{Api, Shared};
use crate::words::{ProviderFailure, ProviderKind, ProviderProtocol};

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(list, create))
        .routes(routes!(presets))
        .routes(routes!(show, update, delete))
        .routes(routes!(test))
        .routes(routes!(add_key))
        .routes(routes!(put_key_first))
        .routes(routes!(delete_key))
}

/// Where a provider comes from. Only a record can be edited.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProviderSource {
    Record,
    Environment,
    File,
}

/// How a provider is doing, by what requests met in the last half hour to hour.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProviderState {
    /// Switched off, or the configuration names another of this name.
    Off,
    /// It needs a key and has none.
    NoKey,
    /// Nobody asked it lately.
    Unknown,
    Ok,
    /// A key is spared, or more than one request in ten failed.
    Degraded,
    /// Requests failed and none succeeded.
    Failing,
}

#[derive(Serialize, ToSchema)]
pub struct ProviderItem {
    id: String,
    /// What models name.
    #[schema(example = "openai")]
    name: String,
    kind: ProviderKind,
    /// Whose interface a `compatible` one has (GET /providers/presets); null if it is nobody's that is known.
    #[schema(example = "groq")]
    preset: Option<String>,
    /// Without the path of the protocol; a version at its end, such as /v1, is not repeated.
    #[schema(example = "https://api.openai.com")]
    base_url: String,
    protocols: Vec<ProviderProtocol>,
    enabled: bool,
    source: ProviderSource,
    /// A record whose name the configuration uses too: that one is asked.
    overridden: bool,
    connect_timeout_seconds: u64,
    /// Until an answer begins.
    answer_timeout_seconds: u64,
    /// The outgoing proxy; a user and a password are shown as `***`.
    proxy: Option<String>,
    state: ProviderState,
    /// In the order in which they are asked.
    keys: Vec<ProviderKeyItem>,
    /// What requests without a key met, where it needs none.
    health: Option<ProviderHealth>,
    created_at: Option<String>,
    updated_at: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct ProviderKeyItem {
    id: String,
    /// The last four characters.
    #[schema(example = "…w0rd")]
    hint: String,
    created_at: Option<String>,
    /// For what it is spared at present.
    cooling: Vec<ProviderCooling>,
    health: Option<ProviderHealth>,
}

/// A key that is not asked for a while, or only after the others.
#[derive(Serialize, ToSchema)]
pub struct ProviderCooling {
    /// The model that is not asked with it; null for all.
    model: Option<String>,
    reason: ProviderFailure,
    until: String,
}

/// What real requests met, over all processes; written every ten seconds.
#[derive(Serialize, ToSchema)]
pub struct ProviderHealth {
    last_success_at: Option<String>,
    last_failure_at: Option<String>,
    /// How the last failure went.
    last_failure: Option<ProviderFailure>,
    /// Of the last half hour to hour.
    recent_succeeded: i64,
    recent_failed: i64,
}

impl ProviderItem {
    fn new(api: &Api, listed: &Listed, of: &Provider) -> ProviderItem {
        let show = |at| api.zone().show(at);
        let health = |key: &str| {
            let found = listed.health_of(&of.id).find(|health| health.key_id.as_str() == key)?;
            let (recent_succeeded, recent_failed) = found.recent(listed.at);
            Some(ProviderHealth {
                last_success_at: found.last_success_at.map(show),
                last_failure_at: found.last_failure_at.map(show),
                last_failure: found.failure.map(Into::into),
                recent_succeeded,
                recent_failed,
            })
        };
        let keys = of.keys.iter().map(|key| ProviderKeyItem {
            id: key.id.to_string(),
            hint: key.hint.clone(),
            created_at: key.created_at.map(show),
            cooling: listed
                .coolings_of(&key.id)
                .map(|cooling| ProviderCooling {
                    model: (!cooling.model.is_empty()).then(|| cooling.model.clone()),
                    reason: cooling.reason.into(),
                    until: show(cooling.until_at),
                })
                .collect(),
            health: health(&key.id),
        });
        ProviderItem {
            keys: keys.collect(),
            health: health(""),
            state: listed.state(of).into(),
            id: of.id.to_string(),
            name: of.name.clone(),
            kind: of.kind.into(),
            preset: (!of.preset.name.is_empty()).then(|| of.preset.name.to_owned()),
            base_url: of.base_url.clone(),
            protocols: of.protocols.iter().map(|protocol| (*protocol).into()).collect(),
            enabled: of.enabled,
            source: of.source.into(),
            overridden: of.is_overridden,
            connect_timeout_seconds: of.connect.as_secs(),
            answer_timeout_seconds: of.answer.as_secs(),
            proxy: of.shown_proxy(),
            created_at: of.times.map(|(at, _)| show(at)),
            updated_at: of.times.map(|(_, at)| show(at)),
        }
    }

    async fn load(api: &Api, id: &ProviderId) -> Result<ProviderItem, ApiError> {
        let listed = provider::list(&api.app).await?;
        let found = listed.providers.iter().find(|of| of.id == *id).ok_or(base::Kind::NotFound)?;
        Ok(ProviderItem::new(api, &listed, found))
    }
}

impl From<Source> for ProviderSource {
    fn from(source: Source) -> ProviderSource {
        match source {
            Source::Record => ProviderSource::Record,
            Source::Environment => ProviderSource::Environment,
            Source::File => ProviderSource::File,
        }
    }
}

impl From<Condition> for ProviderState {
    fn from(state: Condition) -> ProviderState {
        match state {
            Condition::Off => ProviderState::Off,
            Condition::NoKey => ProviderState::NoKey,
            Condition::Unknown => ProviderState::Unknown,
            Condition::Ok => ProviderState::Ok,
            Condition::Degraded => ProviderState::Degraded,
            Condition::Failing => ProviderState::Failing,
        }
    }
}

/// The providers that the embedded gateway asks: those of its configuration, then the records by name. Keys are masked.
#[utoipa::path(get, path = "/providers", tag = "providers", responses((status = 200, body = Listing<ProviderItem>)))]
async fn list(_: Admin, api: State) -> Answer<Listing<ProviderItem>> {
    let listed = provider::list(&api.app).await?;
    let list: Vec<ProviderItem> = listed.providers.iter().map(|of| ProviderItem::new(&api, &listed, of)).collect();
    let total = list.len() as i64;
    Ok(Data(Listing { list, total }))
}

/// One provider.
#[utoipa::path(get, path = "/providers/{id}", tag = "providers", params(("id" = String, Path)), responses((status = 200, body = ProviderItem)))]
async fn show(_: Admin, api: State, Path(id): Path<ProviderId>) -> Answer<ProviderItem> {
    Ok(Data(ProviderItem::load(&api, &id).await?))
}

/// What is known of a kind of provider, or of one that speaks others' protocols.
#[derive(Serialize, ToSchema)]
pub struct ProviderPreset {
    kind: ProviderKind,
    /// Null for a kind itself.
    #[schema(example = "groq")]
    preset: Option<String>,
    #[schema(example = "Groq")]
    title: String,
    /// Null where there is no public address.
    base_url: Option<String>,
    /// The protocols that its documentation describes. Others are unknown, and a record cannot name them.
    protocols: Vec<ProviderProtocol>,
    needs_key: bool,
    oddities: Vec<ProviderOddity>,
    /// Its documentation; null where nothing is known.
    source: Option<String>,
}

/// Something that is odd about a provider.
#[derive(Serialize, ToSchema)]
pub struct ProviderOddity {
    #[schema(example = "unknown_fields_refused")]
    code: &'static str,
    about: &'static str,
}

impl ProviderPreset {
    fn new(kind: store::model::ProviderKind, of: &Preset) -> ProviderPreset {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let odd = |oddity: &Oddity| ProviderOddity { code: oddity.as_str(), about: oddity.about() };
        ProviderPreset {
            kind: kind.into(),
            preset: text(of.name),
            title: of.title.to_owned(),
            base_url: text(of.base_url),
            protocols: of.protocols().into_iter().map(Into::into).collect(),
            needs_key: of.needs_key,
            oddities: of.oddities.iter().map(odd).collect(),
            source: text(of.source),
        }
    }
}

/// What this release knows of providers, from their public documentation: the kinds, then the presets of the kind `compatible`.
#[utoipa::path(get, path = "/providers/presets", tag = "providers", responses((status = 200, body = Listing<ProviderPreset>)))]
async fn presets(_: Admin) -> Answer<Listing<ProviderPreset>> {
    let kinds = preset::KINDS.iter().map(|(kind, known)| ProviderPreset::new(*kind, known));
    let compatible = store::model::ProviderKind::Compatible;
    let list: Vec<ProviderPreset> =
        kinds.chain(preset::PRESETS.iter().map(|known| ProviderPreset::new(compatible, known))).collect();
    let total = list.len() as i64;
    Ok(Data(Listing { list, total }))
}

#[derive(Deserialize, ToSchema)]
pub struct ProviderNew {
    /// What models name: lower-case letters, digits, `.`, `_` and `-`. It cannot be changed later.
    #[schema(value_type = String, max_length = 50, example = "groq")]
    name: Text<50>,
    kind: ProviderKind,
    /// For the kind `compatible`.
    #[schema(value_type = Option<String>, max_length = 50)]
    preset: Option<Text<50>>,
    /// That of the preset or the kind when omitted. Private addresses and http need the setting `provider_allow_local`.
    #[schema(value_type = Option<String>, max_length = 500)]
    base_url: Option<Text<500>>,
    /// All that its documentation describes when omitted; chat alone where nothing is known.
    protocols: Option<Vec<ProviderProtocol>>,
    /// Off is not asked.
    #[serde(default = "yes")]
    enabled: bool,
    /// 10 when omitted, 60 at most.
    connect_timeout_seconds: Option<u64>,
    /// 600 when omitted and at most.
    answer_timeout_seconds: Option<u64>,
    /// An http or https proxy, with user and password where it needs them. It is asked for a tunnel (CONNECT), also to http addresses.
    proxy: Option<Secret>,
    /// At most 20, in the order in which they are asked.
    #[serde(default)]
    keys: Vec<Secret>,
}

fn yes() -> bool {
    true
}

/// Makes a provider. A name that is taken, also by the configuration: 409.
#[utoipa::path(post, path = "/providers", tag = "providers", request_body = ProviderNew, responses((status = 200, body = ProviderItem)))]
async fn create(who: Admin, api: State, Body(body): Body<ProviderNew>) -> Answer<ProviderItem> {
    let new = NewProvider {
        name: body.name.into(),
        kind: body.kind.into(),
        preset: body.preset.map(Into::into).unwrap_or_default(),
        base_url: body.base_url.map(Into::into),
        protocols: body.protocols.map(spoken),
        enabled: body.enabled,
        connect_seconds: body.connect_timeout_seconds,
        answer_seconds: body.answer_timeout_seconds,
        proxy: body.proxy,
        keys: body.keys,
    };
    let id = provider::create(&api.app, &who.by, new).await?;
    Ok(Data(ProviderItem::load(&api, &id).await?))
}

fn spoken(asked: Vec<ProviderProtocol>) -> Vec<provider::Protocol> {
    asked.into_iter().map(Into::into).collect()
}

#[derive(Deserialize, ToSchema)]
pub struct ProviderPatch {
    /// Another scheme, host or port forgets the keys: they were given for the address before.
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    #[schema(value_type = Option<String>, max_length = 500, nullable = false)]
    base_url: Option<Text<500>>,
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    #[schema(nullable = false)]
    protocols: Option<Vec<ProviderProtocol>>,
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    #[schema(nullable = false)]
    enabled: Option<bool>,
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    #[schema(nullable = false, minimum = 1, maximum = 60)]
    connect_timeout_seconds: Option<u64>,
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    #[schema(nullable = false, minimum = 1, maximum = 600)]
    answer_timeout_seconds: Option<u64>,
    /// Null takes it away. A proxy for an http address forgets the keys: it would see them.
    #[serde(default, deserialize_with = "crate::shape::given")]
    #[schema(value_type = Option<String>)]
    proxy: Option<Option<Secret>>,
}

/// Changes a provider, at once in every process; keys that were spared are asked again. One of the configuration cannot be changed: 409
/// says where it comes from.
#[utoipa::path(patch, path = "/providers/{id}", tag = "providers", params(("id" = String, Path)), request_body = ProviderPatch, responses((status = 200, body = ProviderItem)))]
async fn update(
    who: Admin,
    api: State,
    Path(id): Path<ProviderId>,
    Body(body): Body<ProviderPatch>,
) -> Answer<ProviderItem> {
    let patch = Patch {
        base_url: body.base_url.map(Into::into),
        protocols: body.protocols.map(spoken),
        enabled: body.enabled,
        connect_seconds: body.connect_timeout_seconds,
        answer_seconds: body.answer_timeout_seconds,
        proxy: body.proxy,
    };
    provider::update(&api.app, &who.by, &id, patch).await?;
    Ok(Data(ProviderItem::load(&api, &id).await?))
}

/// Deletes a provider with its keys. While a model that is offered names it: 409.
#[utoipa::path(delete, path = "/providers/{id}", tag = "providers", params(("id" = String, Path)), responses((status = 200, body = Deleted)))]
async fn delete(who: Admin, api: State, Path(id): Path<ProviderId>) -> Answer<Deleted> {
    provider::delete(&api.app, &who.by, &id).await?;
    Ok(Data(Deleted { id: id.to_string() }))
}

#[derive(Deserialize, ToSchema)]
pub struct ProviderKeyNew {
    /// It is sealed, and never answered again.
    key: Secret,
}

/// Adds a key behind the others.
#[utoipa::path(post, path = "/providers/{id}/keys", tag = "providers", params(("id" = String, Path)), request_body = ProviderKeyNew, responses((status = 200, body = ProviderItem)))]
async fn add_key(
    who: Admin,
    api: State,
    Path(id): Path<ProviderId>,
    Body(body): Body<ProviderKeyNew>,
) -> Answer<ProviderItem> {
    provider::add_key(&api.app, &who.by, &id, &body.key).await?;
    Ok(Data(ProviderItem::load(&api, &id).await?))
}

/// Has a key asked before the others.
#[utoipa::path(post, path = "/providers/{id}/keys/{kid}/first", tag = "providers", params(("id" = String, Path), ("kid" = String, Path)), responses((status = 200, body = ProviderItem)))]
async fn put_key_first(who: Admin, api: State, Path((id, kid)): Path<(String, String)>) -> Answer<ProviderItem> {
    let id = ProviderId::named(id);
    provider::put_first(&api.app, &who.by, &id, &ProviderKeyId::named(kid)).await?;
    Ok(Data(ProviderItem::load(&api, &id).await?))
}

/// Deletes a key.
#[utoipa::path(delete, path = "/providers/{id}/keys/{kid}", tag = "providers", params(("id" = String, Path), ("kid" = String, Path)), responses((status = 200, body = ProviderItem)))]
async fn delete_key(who: Admin, api: State, Path((id, kid)): Path<(String, String)>) -> Answer<ProviderItem> {
    let id = ProviderId::named(id);
    provider::delete_key(&api.app, &who.by, &id, &ProviderKeyId::named(kid)).await?;
    Ok(Data(ProviderItem::load(&api, &id).await?))
}

#[derive(Deserialize, ToSchema)]
pub struct ProviderTest {
    /// What the provider calls it, or an id or alias of ours that it offers. When omitted, the first enabled model that it offers in the
    /// protocol.
    #[schema(value_type = Option<String>, max_length = 200)]
    model: Option<Text<200>>,
    /// The first that it is asked in, when omitted.
    protocol: Option<ProviderProtocol>,
    /// The first, when omitted.
    #[schema(value_type = Option<String>, max_length = 100)]
    key_id: Option<Text<100>>,
}

/// What a provider answered to a test.
#[derive(Serialize, ToSchema)]
pub struct ProviderTested {
    /// Whether it answered 2xx.
    ok: bool,
    model: String,
    protocol: ProviderProtocol,
    /// The key that was used, by its last characters; null without one.
    key: Option<String>,
    /// Null without an answer.
    status: Option<u16>,
    duration_ms: i64,
    /// The first 2,000 characters; parts of the key are `***`.
    body: String,
    /// Whose failure it was, where it was the provider's or the key's.
    failure: Option<ProviderFailure>,
    /// Why there was no answer; else empty.
    error: String,
}

/// Sends a real small request to a provider, also to one that is off, and answers what came back.
///
/// It costs what such a request costs, is in no log of requests, and has 30 s. A key that was spared and is taken now is asked again at
/// once. Every test is in the audit log (`provider.test`).
#[utoipa::path(post, path = "/providers/{id}/test", tag = "providers", params(("id" = String, Path)), request_body = ProviderTest, responses((status = 200, body = ProviderTested)))]
async fn test(
    who: Admin,
    api: State,
    Path(id): Path<ProviderId>,
    Body(body): Body<ProviderTest>,
) -> Answer<ProviderTested> {
    let model: Option<String> = body.model.map(Into::into);
    if model.as_deref().is_some_and(str::is_empty) {
        return Err(Error::field("model", "must not be empty").into());
    }
    let trial = Trial {
        model,
        protocol: body.protocol.map(Into::into),
        key: body.key_id.map(|key| ProviderKeyId::named(key.as_str())),
    };
    let tried = provider::test(&api.app, &who.by, &id, trial).await?;
    Ok(Data(ProviderTested {
        ok: tried.ok,
        model: tried.model,
        protocol: tried.protocol.into(),
        key: (!tried.hint.is_empty()).then_some(tried.hint),
        status: tried.status,
        duration_ms: i64::try_from(tried.took.as_millis()).unwrap_or(i64::MAX),
        body: tried.body,
        failure: tried.failure.map(Into::into),
        error: tried.error,
    }))
}
