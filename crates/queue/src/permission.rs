//! Who may do what: the one table of the administration API's permissions, the roles that have them, and the operations that need them.
//!
//! A request is let in by this table (`api::extract::Admin`), the OpenAPI document and docs/roles.md are written from it, the console
//! reads the names of its own permissions from GET /auth/me, and a test tries every operation with every role. To add an operation, put
//! it into a row; an operation that is in none is refused to everybody. What depends on a field of a request has a permission without
//! operations, and is asked for by `By::require`.

use Role::{Admin, Auditor, Operator, SuperAdmin};
use base::{Error, Kind, Result};
pub use store::admin_user::Role;

const EVERYBODY: &[Role] = &[SuperAdmin, Admin, Operator, Auditor];
/// Those who read about people and money.
const OFFICE: &[Role] = &[SuperAdmin, Admin, Auditor];
/// Those who change what runs.
const HANDS: &[Role] = &[SuperAdmin, Admin, Operator];

macro_rules! permissions {
    ($($(#[doc = $about:literal])* $name:ident = $word:literal for $roles:expr => [$($operation:literal),* $(,)?],)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Permission { $($(#[doc = $about])* $name),* }

        impl Permission {
            pub const ALL: &'static [Permission] = &[$(Permission::$name),*];

            /// Its name in the API.
            pub fn as_str(self) -> &'static str {
                match self { $(Permission::$name => $word),* }
            }

            /// The roles that have it.
            pub fn roles(self) -> &'static [Role] {
                match self { $(Permission::$name => $roles),* }
            }

            /// The operations that need it, as method and path.
            pub fn operations(self) -> &'static [&'static str] {
                match self { $(Permission::$name => &[$($operation),*]),* }
            }

            /// What it is, in one sentence.
            pub fn about(self) -> &'static str {
                match self { $(Permission::$name => concat!($($about),*).trim_ascii()),* }
            }
        }
    };
}

permissions! {
    /// Sign out, change the own password and the own second factor.
    OwnAccount = "account.own" for EVERYBODY => [
        "GET /auth/me", "POST /auth/logout", "POST /auth/password",
        "POST /auth/me/mfa", "POST /auth/me/mfa/confirm", "POST /auth/me/mfa/recovery-codes", "POST /auth/me/mfa/disable",
        "POST /auth/me/password-reset/acknowledge",
    ],
    /// Read servers, instances, pools, the marketplace, tasks, jobs, alerts and the guardian; secrets are masked.
    ReadFleet = "fleet.read" for EVERYBODY => [
        "GET /servers", "GET /servers/{id}/detail", "GET /servers/{id}/stats", "GET /servers/{id}/limits",
        "GET /server-metrics/{id}", "GET /servers/{id}/containers",
        "GET /instances", "GET /instances/{id}", "GET /instances/{id}/heartbeat", "GET /instances/{id}/cell",
        "GET /instances/{id}/config", "GET /instances/{id}/state", "GET /instances/{id}/config/versions", "GET /instances/{id}/config/versions/{version}",
        "GET /instances/{id}/chat-bindings", "GET /instances/{id}/bot-status",
        "GET /professions", "GET /professions/{id}", "GET /professions/{id}/limits",
        "GET /marketplace-items", "GET /marketplace-items/{id}", "GET /models", "GET /models/{id}", "GET /models/{id}/prices",
        "GET /models/table", "GET /models/compare",
        "GET /providers", "GET /providers/presets", "GET /providers/{id}",
        "GET /task-queue", "GET /tasks", "GET /tasks/{id}", "GET /job-runs", "GET /jobs",
        "GET /guardian/stats", "GET /guardian/events", "GET /repairs", "GET /alerts", "GET /alerts/rules", "GET /events",
    ],
    /// Read who the employees and the administrators are, and who claimed what.
    ReadPeople = "people.read" for OFFICE => [
        "GET /users", "GET /users/{id}", "GET /admin-users", "GET /profession-pool", "GET /profession-claims",
    ],
    /// Read usage, costs, the request log and the sub keys (masked).
    ReadUsage = "usage.read" for OFFICE => [
        "GET /usage-daily", "GET /usage/user/{email}", "GET /usage/dept/{dept}", "GET /spend-days", "GET /keys",
        "GET /llm-stats", "GET /llm-stats/export", "GET /llm-logs", "GET /llm-request-logs", "GET /llm-request-logs/{id}",
        "GET /llm-live", "GET /audit/request-logs",
    ],
    /// Read and export the audit log.
    ReadAudit = "audit.read" for OFFICE => ["GET /audit/logs", "GET /audit-logs", "GET /audit-logs/export"],
    /// Read what an assistant writes into its log, which may quote its user.
    ReadLogs = "instances.logs" for HANDS => ["GET /instances/{id}/logs"],
    /// See an instance's gateway token and its configuration unmasked, and change that: who sees masks would write them back.
    SeeSecrets = "instances.secrets" for &[SuperAdmin, Admin] => [],
    /// Make, change and revoke employees, give and take instances, bind bots and say who may write to them.
    ManagePeople = "people.manage" for &[SuperAdmin, Admin] => [
        "POST /users", "POST /users/import", "PATCH /users/{id}", "DELETE /users/{id}", "POST /users/{id}/assign-instance", "PATCH /instances/{id}/assign",
        "POST /instances/{id}/chat-bindings", "DELETE /instances/{id}/chat-bindings/{bid}", "POST /instances/{id}/configure-bot",
        "GET /instances/{id}/chat-bindings/{bid}/pairing-requests", "DELETE /instances/{id}/chat-bindings/{bid}/pairing-requests/{sender_id}",
        "POST /instances/{id}/chat-bindings/{bid}/senders", "DELETE /instances/{id}/chat-bindings/{bid}/senders/{sender_id}",
    ],
    /// Make and change professions, their limits and their pools.
    ManagePools = "pools.manage" for &[SuperAdmin, Admin] => [
        "POST /professions", "PATCH /professions/{id}", "DELETE /professions/{id}", "PUT /professions/{id}/limits",
        "POST /profession-pool", "PATCH /profession-pool/{id}", "DELETE /profession-pool/{id}",
    ],
    /// Make and change the items of the marketplace.
    ManageMarketplace = "marketplace.manage" for &[SuperAdmin, Admin] => [
        "POST /marketplace-items", "PATCH /marketplace-items/{id}", "DELETE /marketplace-items/{id}",
    ],
    /// Make, change, check, restart, reconcile, hold, upgrade, confine and delete instances, and set their limits.
    ManageInstances = "instances.manage" for HANDS => [
        "POST /assistant-instances", "PATCH /assistant-instances/{id}", "DELETE /assistant-instances/{id}",
        "PATCH /instances/{id}/config", "POST /instances/{id}/restart", "POST /instances/{id}/upgrade",
        "POST /instances/{id}/reconcile", "PUT /instances/{id}/hold", "DELETE /instances/{id}/hold",
        "POST /instances/{id}/cell/enter", "POST /cells/enter", "PUT /instances/{id}/cell/limits",
        "GET /instances/health-check", "POST /repairs/preview",
    ],
    /// Say where an instance lives: `home`, `unit`, `container_id` and `is_main`; move one back to where it was adopted.
    PlaceInstances = "instances.place" for &[SuperAdmin] => ["POST /instances/{id}/move-back"],
    /// Look for assistants that a server has already, adopt them, and move them into cells.
    AdoptInstances = "instances.adopt" for &[SuperAdmin, Operator] => [
        "GET /servers/{id}/discover", "POST /servers/{id}/adopt/preview", "POST /servers/{id}/adopt",
        "POST /assistant-instances/{id}/adopt", "POST /instances/{id}/move-into-cell",
    ],
    /// Assign an instance that is not kept apart on its server.
    AssignUnisolated = "instances.assign_unisolated" for &[SuperAdmin] => [],
    /// Open an instance's cell, or take it out of it.
    OpenCells = "cells.open" for &[SuperAdmin] => ["POST /instances/{id}/cell/leave", "PUT /instances/{id}/cell/openings"],
    /// Add, change, test, prepare and delete servers, set the limits of their cells, and act on their containers.
    ManageServers = "servers.manage" for &[SuperAdmin, Operator] => [
        "POST /servers", "PATCH /servers/{id}", "DELETE /servers/{id}", "POST /servers/{id}/test", "POST /servers/{id}/prepare",
        "PUT /servers/{id}/limits", "POST /servers/{id}/containers/{cid}/{action}",
    ],
    /// Enqueue, retry and cancel tasks; each type also needs the permission of what it does.
    ManageTasks = "tasks.manage" for HANDS => [
        "POST /tasks", "POST /tasks/{id}/retry", "POST /task-queue/{id}/retry", "POST /tasks/{id}/cancel",
    ],
    /// Have a scheduled job run now.
    RunJobs = "jobs.run" for HANDS => ["POST /job-runs/{job}/run"],
    /// Pause a scheduled job.
    PauseJobs = "jobs.pause" for &[SuperAdmin, Operator] => ["PATCH /jobs/{job}"],
    /// Acknowledge alerts.
    AcknowledgeAlerts = "alerts.acknowledge" for HANDS => ["POST /alerts/{id}/ack"],
    /// Set the rules of alerts, and where they are sent.
    SetAlertRules = "alerts.rules" for &[SuperAdmin] => ["PUT /alerts/rules/{id}"],
    /// Make, check and delete the sub keys of instances.
    ManageKeys = "keys.manage" for &[SuperAdmin, Admin] => ["POST /keys", "DELETE /keys/{id}", "POST /keys/{id}/sync"],
    /// Make and delete keys that belong to no instance.
    ManageFreeKeys = "keys.free" for &[SuperAdmin] => [],
    /// Say which models are offered.
    ManageModels = "models.manage" for &[SuperAdmin, Admin] => [
        "POST /models", "PATCH /models/{id}", "DELETE /models/{id}", "POST /models/sync",
    ],
    /// Make, change, test and delete the providers of the embedded gateway, and their keys.
    ManageProviders = "providers.manage" for &[SuperAdmin] => [
        "POST /providers", "PATCH /providers/{id}", "DELETE /providers/{id}", "POST /providers/{id}/test",
        "POST /providers/{id}/keys", "POST /providers/{id}/keys/{kid}/first", "DELETE /providers/{id}/keys/{kid}",
    ],
    /// Set the prices of models, change who is asked for one, and name further providers.
    SetPrices = "models.prices" for &[SuperAdmin] => ["POST /models/{id}/take-table"],
    /// Make, change and revoke administrators.
    ManageAdmins = "admins.manage" for &[SuperAdmin] => [
        "POST /admin-users", "PATCH /admin-users/{email}", "DELETE /admin-users/{email}",
    ],
}

impl Permission {
    /// What an operation of the administration API needs, by its method and its path in the document.
    pub fn of_operation(method: &str, path: &str) -> Option<Permission> {
        let is_it = |operation: &&str| operation.split_once(' ') == Some((method, path));
        Permission::ALL.iter().copied().find(|permission| permission.operations().iter().any(is_it))
    }

    pub fn is_of(self, role: Role) -> bool {
        self.roles().contains(&role)
    }

    /// All that a role may do.
    pub fn all_of(role: Role) -> impl Iterator<Item = Permission> {
        Permission::ALL.iter().copied().filter(move |permission| permission.is_of(role))
    }

    /// `super_admin and operator`.
    pub fn roles_named(self) -> String {
        let names: Vec<&str> = self.roles().iter().map(|role| role.as_str()).collect();
        match names.split_last() {
            Some((last, [])) => (*last).to_owned(),
            Some((last, others)) => format!("{} and {last}", others.join(", ")),
            None => String::new(),
        }
    }
}

/// With whose rights something is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rights {
    /// Somebody who may do nothing that a permission is needed for.
    #[default]
    None,
    /// The platform itself.
    Platform,
    Of(Role),
}

impl Rights {
    pub fn allow(self, permission: Permission) -> bool {
        match self {
            Rights::None => false,
            Rights::Platform => true,
            Rights::Of(role) => permission.is_of(role),
        }
    }

    pub fn require(self, permission: Permission) -> Result<()> {
        if self.allow(permission) {
            return Ok(());
        }
        let message =
            format!("this needs the permission {}, which {} has", permission.as_str(), permission.roles_named());
        Err(Error::new(Kind::NoAccess, message))
    }
}

/// docs/roles.md: the table for people.
pub fn document() -> String {
    let mut text = String::from(
        "# Roles\n\n\
         Four roles of administrators, and what each may do. This page is written from `crates/queue/src/permission.rs` by\n\
         `tidepool roles`; a test compares the two. GET /auth/me lists the permissions of whoever asks.\n\n\
         - **super_admin** may do everything.\n\
         - **admin** looks after people: accounts, assignments, pools, the marketplace, tasks, instances with the spec's body.\n\
         - **operator** looks after servers and the fleet: no people and no money. Beside an instance stands the e-mail of its holder.\n\
         - **auditor** reads everything, without secrets and without anybody's chat, and changes nothing.\n\n\
         | Permission | What it allows | super_admin | admin | operator | auditor |\n|---|---|---|---|---|---|\n",
    );
    for permission in Permission::ALL {
        let has = |role| if permission.is_of(role) { "yes" } else { "" };
        let cells = EVERYBODY.iter().map(|role| has(*role)).collect::<Vec<_>>().join(" | ");
        text.push_str(&format!("| `{}` | {} | {cells} |\n", permission.as_str(), permission.about()));
    }
    text.push_str("\n## Which operation needs which permission\n\n| Operation | Permission |\n|---|---|\n");
    for permission in Permission::ALL {
        for operation in permission.operations() {
            text.push_str(&format!("| `{operation}` | `{}` |\n", permission.as_str()));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_is_in_one_row_only() {
        let mut seen = std::collections::HashSet::new();
        for operation in Permission::ALL.iter().flat_map(|permission| permission.operations()) {
            assert!(seen.insert(operation), "{operation} stands in two rows");
        }
    }

    #[test]
    fn a_super_admin_may_do_everything_and_an_auditor_changes_nothing() {
        for permission in Permission::ALL {
            assert!(permission.is_of(SuperAdmin), "{permission:?}");
            let changes = permission.operations().iter().any(|one| !one.starts_with("GET "));
            assert!(!permission.is_of(Auditor) || !changes || *permission == Permission::OwnAccount, "{permission:?}");
        }
    }

    #[test]
    fn what_nobody_named_is_nobodys() {
        assert_eq!(Permission::of_operation("GET", "/servers"), Some(Permission::ReadFleet));
        assert_eq!(Permission::of_operation("GET", "/nothing"), None);
        assert!(!Rights::None.allow(Permission::OwnAccount));
    }
}
