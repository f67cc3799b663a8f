//! One instance as administrators see it whole: with its configuration, its history, its key and what happened to it.

use base::Sort;
use base::id::InstanceId;
use fleet::instance;
use queue::audit::By;
use queue::permission::Permission;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::instance::{InstanceItem, shaped};
use crate::envelope::Data;
use crate::extract::Answer;
use crate::state::Api;
use crate::words::{EntryStatus, KeyStatus, Origin, Runner};

#[derive(Serialize, ToSchema)]
pub struct PastBinding {
    user_id: String,
    origin: Origin,
    profession_id: Option<String>,
    created_at: String,
    ended_at: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct PoolPlace {
    id: String,
    profession_id: String,
    status: EntryStatus,
}

#[derive(Serialize, ToSchema)]
pub struct Event {
    operator: String,
    action: String,
    level: crate::words::Level,
    detail: String,
    created_at: String,
}

#[derive(Serialize, ToSchema)]
pub struct MovedFrom {
    runner: Runner,
    #[schema(example = "/home/ada")]
    home: String,
    unit: String,
    moved_at: String,
}

#[derive(Serialize, ToSchema)]
pub struct InstanceDetail {
    #[serde(flatten)]
    instance: InstanceItem,
    /// A text that holds a JSON object.
    config_json: String,
    home: String,
    unit: String,
    /// Where it was before it was moved into a cell, and is moved back to; null if it was not.
    moved_from: Option<MovedFrom>,
    /// Who had it, newest first; the live one has no `ended_at`.
    bindings: Vec<PastBinding>,
    pool_entry: Option<PoolPlace>,
    /// Its sub key at the LLM gateway; null until it is needed for the first time.
    key: Option<InstanceKey>,
    /// The newest audit entries about it.
    events: Vec<Event>,
}

#[derive(Serialize, ToSchema)]
pub struct InstanceKey {
    id: String,
    status: KeyStatus,
    /// What our records want of it at present.
    enabled: bool,
    /// A gateway of another's has not followed the last change yet: see GET /keys.
    pending: bool,
    last_checked_at: Option<String>,
}

/// How a detail shows the token. The configuration's secrets are masked to whoever may not see them, in either case.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Secrets {
    Masked,
    Whole,
}

impl Secrets {
    /// As much as the caller may see.
    pub(super) fn of(by: &By) -> Secrets {
        if by.may(Permission::SeeSecrets) { Secrets::Whole } else { Secrets::Masked }
    }
}

pub(super) async fn detail(api: &Api, by: &By, id: &InstanceId, secrets: Secrets) -> Answer<InstanceDetail> {
    let listed = instance::show(&api.app, id).await?;
    let config_json = match by.may(Permission::SeeSecrets) {
        true => listed.instance.config_json.clone(),
        false => instance::masked_config(&listed.instance)?,
    };
    let (home, unit) = (listed.instance.home.clone(), listed.instance.unit.clone());
    let token = listed.instance.token(&api.app.sealer).map_err(base::Error::from)?;
    let token = match secrets {
        Secrets::Masked => token.masked(),
        Secrets::Whole => token.expose().to_owned(),
    };
    let past = |b: store::binding::Binding| PastBinding {
        user_id: b.user_id.into(),
        origin: b.origin.into(),
        profession_id: b.profession_id.map(Into::into),
        created_at: api.zone().show(b.created_at),
        ended_at: b.ended_at.map(|at| api.zone().show(at)),
    };
    let entry = instance::pool_entry(&api.app, id).await?;
    let target = Some(id.as_str().to_owned());
    let about = queue::audit::AuditFilter { target, without_logins: true, ..Default::default() };
    let newest = Sort { column: "id", descending: true };
    let events = queue::audit::list(&api.app, &about, newest, base::Page { offset: 0, limit: 10 }).await?;
    let moved = |moved: store::moved_from::MovedFrom| MovedFrom {
        runner: moved.runner.into(),
        home: moved.home,
        unit: moved.unit.map(Into::into).unwrap_or_default(),
        moved_at: api.zone().show(moved.moved_at),
    };
    let is_moved = |moved: &store::moved_from::MovedFrom| moved.state == store::moved_from::MoveState::Moved;
    Ok(Data(InstanceDetail {
        moved_from: store::moved_from::find(&api.app.db, id).await?.filter(is_moved).map(moved),
        instance: shaped(api, listed, token),
        config_json,
        home: home.map(Into::into).unwrap_or_default(),
        unit: unit.map(Into::into).unwrap_or_default(),
        bindings: instance::history(&api.app, id).await?.into_iter().map(past).collect(),
        pool_entry: entry.map(|e| PoolPlace {
            id: e.id.into(),
            profession_id: e.profession_id.into(),
            status: e.status.into(),
        }),
        key: instance::key(&api.app, id).await?.map(|key| InstanceKey {
            enabled: key.enabled(),
            pending: key.dirty && !api.app.upstream.embedded,
            id: key.id.into(),
            status: key.status.into(),
            last_checked_at: key.last_checked_at.map(|at| api.zone().show(at)),
        }),
        events: events
            .list
            .into_iter()
            .map(|e| Event {
                operator: e.operator,
                action: e.action,
                level: e.level.into(),
                detail: e.detail,
                created_at: api.zone().show(e.created_at),
            })
            .collect(),
    }))
}
