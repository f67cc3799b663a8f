//! The closed sets of words that requests and answers use, as the OpenAPI document lists them.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::openapi::schema::Type;
use utoipa::openapi::{ObjectBuilder, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// Gives a set of the store its form in the API.
macro_rules! words {
    ($($(#[$m:meta])* $name:ident of $store:path { $($variant:ident = $text:literal),* $(,)? })*) => {$(
        $(#[$m])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum $name { $(#[serde(rename = $text)] $variant),* }
        // By hand: the derive does not see a rename that a macro wrote.
        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                ObjectBuilder::new().schema_type(Type::String).enum_values(Some([$($text),*])).into()
            }
        }
        impl ToSchema for $name {
            fn name() -> Cow<'static, str> {
                stringify!($name).into()
            }
        }
        impl From<$store> for $name {
            fn from(word: $store) -> $name {
                use $store as Store;
                match word { $(Store::$variant => $name::$variant),* }
            }
        }
        impl From<$name> for $store {
            fn from(word: $name) -> $store {
                use $store as Store;
                match word { $($name::$variant => Store::$variant),* }
            }
        }
    )*};
}

words! {
    /// Whose words a message has.
    ChatRole of store::chat_message::Role { User = "user", Assistant = "assistant" }
    Role of store::admin_user::Role {
        SuperAdmin = "super_admin", Admin = "admin", Operator = "operator", Auditor = "auditor",
    }
    Status of store::user::Status { Active = "active", Revoked = "revoked" }
    /// A field that a line of an import sets.
    ImportField of people::user_import::Field {
        Name = "name", Department = "department", QuotaDaily = "quota_daily", Password = "password",
    }
    /// Why a line of an import does nothing. After `uncertain` it may have been done all the same.
    ImportReason of people::user_import::Reason {
        Cells = "cells", Email = "email", Duplicate = "duplicate", Text = "text", Quota = "quota", Password = "password",
        Revoked = "revoked", ProfessionUnknown = "profession_unknown", ProfessionAmbiguous = "profession_ambiguous",
        ProfessionInactive = "profession_inactive", PoolEmpty = "pool_empty", NoAccess = "no_access", Conflict = "conflict",
        Failed = "failed", Uncertain = "uncertain", NotTried = "not_tried",
    }
    Level of store::audit::Level { Info = "INFO", Warn = "WARN", Error = "ERROR" }
    Health of store::instance::Health {
        Healthy = "healthy", Unhealthy = "unhealthy", KeyInvalid = "key_invalid", Unknown = "unknown", RateLimited = "rate_limited",
    }
    Isolation of store::instance::Isolation {
        None = "none", Unknown = "unknown", Own = "own", Adopted = "adopted", Shared = "shared", Opened = "opened",
    }
    Runner of store::instance::Runner {
        Unit = "unit", UserUnit = "user_unit", Container = "container", Process = "process", Address = "address",
    }
    CellState of store::cell::State {
        Unknown = "unknown", Foreign = "foreign", Unconfined = "unconfined", Confined = "confined", Altered = "altered",
    }
    Origin of store::binding::Origin { Assigned = "assigned", Claimed = "claimed", Profession = "profession" }
    EntryStatus of store::pool::Status { Idle = "idle", Allocated = "allocated", Maintenance = "maintenance" }
    TaskStatus of store::task::Status {
        Pending = "pending", Processing = "processing", Done = "done", Failed = "failed", Dead = "dead",
    }
    RunStatus of store::job_run::Status {
        Running = "running", Success = "success", Failed = "failed", Skipped = "skipped",
    }
    RepairStatus of store::repair::Status {
        Running = "running", Success = "success", Failed = "failed", Alert = "alert",
    }
    EventStatus of store::guardian::Status { Success = "success", Failed = "failed" }
    DimensionStatus of store::guardian::State {
        Healthy = "healthy", Warning = "warning", Abnormal = "abnormal", Unknown = "unknown",
    }
    KeyStatus of store::gateway_key::Status { Active = "active", Disabled = "disabled" }
    ProviderKind of store::model::ProviderKind {
        Anthropic = "anthropic", Openai = "openai", Google = "google", Ollama = "ollama", Compatible = "compatible",
        Echo = "echo",
    }
    ProviderProtocol of store::provider::Protocol {
        Chat = "chat", Messages = "messages", Responses = "responses", Embeddings = "embeddings",
    }
    ProviderFailure of store::provider::Failure {
        KeyRefused = "key_refused", Spent = "account_spent", RateLimited = "rate_limited", Unreachable = "unreachable", Late = "late",
        Failed = "failed",
    }
    /// What a model is asked for.
    ModelPurpose of store::model::Purpose { Chat = "chat", Embedding = "embedding" }
    /// A protocol of the embedded gateway.
    ModelProtocol of store::model::Protocol {
        Chat = "chat", Messages = "messages", Responses = "responses", Embeddings = "embeddings",
    }
    /// What a model reads.
    ModelInput of store::model::Input { Text = "text", Image = "image", Document = "document", Audio = "audio" }
    /// Who said something about a model.
    ModelSource of store::model::Source { Table = "table", Edited = "edited" }
    /// How a model came here.
    ModelOrigin of store::model::Origin { Release = "release", Gateway = "gateway", Added = "added" }
    /// Where a price comes from: the spec, an administrator, or the table of the release.
    PriceSource of store::model::price::PriceSource { Spec = "spec", Edited = "edited", Table = "table" }
    /// The service tier that a request is billed by.
    PriceTier of base::price::Tier { Standard = "standard", Flex = "flex", Priority = "priority", Batch = "batch" }
    ItemType of store::marketplace::Kind { Skill = "skill", RolePack = "role_pack", Config = "config" }
    ItemScope of store::marketplace::Scope { Config = "config", Workspace = "workspace" }
    InstallState of store::install::State {
        Pending = "pending", Installing = "installing", Installed = "installed", Failed = "failed", Removing = "removing",
    }
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum RequestStatus {
    Success,
    Error,
}

impl RequestStatus {
    pub fn succeeded(self) -> bool {
        self == RequestStatus::Success
    }
}

impl From<bool> for RequestStatus {
    fn from(succeeded: bool) -> RequestStatus {
        if succeeded { RequestStatus::Success } else { RequestStatus::Error }
    }
}

/// What an administrator may make of a pool entry.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum WantedStatus {
    Idle,
    Maintenance,
}

impl From<WantedStatus> for store::pool::Status {
    fn from(requested: WantedStatus) -> store::pool::Status {
        match requested {
            WantedStatus::Idle => store::pool::Status::Idle,
            WantedStatus::Maintenance => store::pool::Status::Maintenance,
        }
    }
}

/// Whether the platform looks after a server.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ServerStatus {
    Active,
    Disabled,
}

impl From<ServerStatus> for store::server::Status {
    fn from(status: ServerStatus) -> store::server::Status {
        match status {
            ServerStatus::Active => store::server::Status::Active,
            ServerStatus::Disabled => store::server::Status::Disabled,
        }
    }
}

/// The spec's 0 or 1; true and false are taken too.
#[derive(Clone, Copy, Debug)]
pub struct Flag(bool);

impl Flag {
    pub fn get(self) -> bool {
        self.0
    }
}

impl From<bool> for Flag {
    fn from(on: bool) -> Flag {
        Flag(on)
    }
}

impl Serialize for Flag {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u8(self.0.into())
    }
}

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Flag, D::Error> {
        match serde_json::Value::deserialize(from)? {
            serde_json::Value::Bool(on) => Ok(Flag(on)),
            serde_json::Value::Number(n) if n.as_i64() == Some(0) => Ok(Flag(false)),
            serde_json::Value::Number(n) if n.as_i64() == Some(1) => Ok(Flag(true)),
            _ => Err(serde::de::Error::custom("must be 0 or 1")),
        }
    }
}

impl PartialSchema for Flag {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(Type::Integer).enum_values(Some([0, 1])).into()
    }
}
impl ToSchema for Flag {
    fn name() -> Cow<'static, str> {
        "Flag".into()
    }
}
