//! The audit log: who did what to which record, including actions of the system itself.

use base::{Email, Page, Sort};
use jiff::Timestamp;

use crate::conditions::Conditions;
use crate::db::{Number, Record as _};
use crate::search::{Depth, Found, Range};
use crate::{Conn, Db, Result, args, record, retention, word};

word! {
    pub enum Level {
        Info = "INFO",
        Warn = "WARN",
        Error = "ERROR",
    }
}

word! {
    /// The spec's action types.
    pub enum Action {
        Login = "auth.login",
        InstanceCreate = "instance.create",
        InstanceUpdate = "instance.update",
        InstanceDelete = "instance.delete",
        InstanceHealth = "instance.health",
        KeyCreate = "key.create",
        KeySync = "key.sync",
        KeyDelete = "key.delete",
        UserCreate = "user.create",
        UserUpdate = "user.update",
        ServerAction = "server.action",
        ConfigChange = "config.change",
        /// Not in the spec: a provider of the embedded gateway or one of its keys was made, changed, deleted or tried.
        Provider = "provider.change",
        ProviderTest = "provider.test",
        TaskFailed = "task.failed",
        Claim = "shrimp.claim",
        /// Not in the spec: a second factor was set up, used by a recovery code, switched off or reset, or a wrong code
        /// was given.
        SecondFactor = "auth.mfa",
        /// Not in the spec: a secret was shown to somebody.
        SecretReveal = "secret.reveal",
    }
}

record! {
    #[derive(Clone, Debug)]
    pub struct Entry {
        pub id: i64,
        pub operator: String,
        pub action: String,
        pub level: Level,
        pub target: String,
        pub detail: String,
        pub ip: String,
        pub user_agent: String,
        pub created_at: Timestamp,
    }
}

pub struct NewEntry<'a> {
    pub operator: &'a str,
    pub action: Action,
    pub level: Level,
    pub target: &'a str,
    pub detail: &'a str,
    pub ip: &'a str,
    pub user_agent: &'a str,
    pub created_at: Timestamp,
}

pub async fn write(conn: impl Into<Conn<'_>>, new: NewEntry<'_>) -> Result<()> {
    write_all(conn, &[new]).await
}

/// Writes several entries in one statement.
pub async fn write_all(conn: impl Into<Conn<'_>>, new: &[NewEntry<'_>]) -> Result<()> {
    if new.is_empty() {
        return Ok(());
    }
    // The widths are from the spec; longer texts are cut. A NUL cannot be stored.
    let cut = |text: &str, width: usize| text.chars().filter(|c| *c != '\0').take(width).collect::<String>();
    let mut values = vec![];
    for new in new {
        let operator = cut(new.operator, 100);
        values.extend(args![
            operator.as_str(),
            Email::key_of(&operator),
            new.action,
            new.level,
            cut(new.target, 200),
            new.detail,
            cut(new.ip, 50),
            cut(new.user_agent, 500),
            new.created_at
        ]);
    }
    let rows = vec!["(?, ?, ?, ?, ?, ?, ?, ?, ?)"; new.len()].join(", ");
    let sql = format!(
        "INSERT INTO audit_log (operator, operator_key, action, level, target, detail, ip, user_agent, created_at) VALUES {rows}"
    );
    conn.into().run(&sql, values).await.map(drop)
}

#[derive(Clone, Debug, Default)]
pub struct AuditFilter {
    pub q: Option<String>,
    pub action: Option<String>,
    pub operator: Option<String>,
    pub level: Option<Level>,
    pub target: Option<String>,
    pub from: Option<Timestamp>,
    pub until: Option<Timestamp>,
    /// Leave out logins: their target is whatever was typed, so they are not part of a record's history.
    pub without_logins: bool,
    /// Continue an earlier search, which got back as far as this time.
    pub search_before: Option<Timestamp>,
}

impl AuditFilter {
    fn conditions(&self, db: &Db) -> Conditions {
        let conditions = Conditions::of(db.dialect());
        let conditions = if self.without_logins { conditions.must("action <> 'auth.login'") } else { conditions };
        conditions
            .when("action = ?", self.action.as_deref())
            .when("operator_key = ?", self.operator.as_deref().map(Email::key_of))
            .when("level = ?", self.level)
            .when("target = ?", self.target.as_deref())
            .when("created_at >= ?", self.from)
            .when("created_at < ?", self.until)
            .search(&["operator", "action", "target", "detail"], self.q.as_deref())
    }
}

/// The columns a list may be sorted by.
pub const SORTABLE: &[&str] = &["id", "created_at", "operator", "action", "level", "target"];

pub async fn list(db: &Db, filter: &AuditFilter, sort: Sort, page: Page) -> Result<Found<Entry>> {
    let range = match &filter.q {
        Some(q) if !q.trim().is_empty() => {
            let days =
                Conditions::of(db.dialect()).when("created_at >= ?", filter.from).when("created_at < ?", filter.until);
            Some(Range::newest(db, "audit_log", days.into_clause(), Depth::Log, filter.search_before).await?)
        }
        _ => None,
    };
    let since = range.as_ref().and_then(|range| range.since);
    let conditions = filter.conditions(db).within(range);
    let found = conditions.list(db, Entry::COLUMNS, "audit_log", sort, "id", page).await?;
    Ok(Found { searched_since: since, ..Found::all(found) })
}

/// How many entries one step of an export reads.
const STEP: i64 = 20_000;

/// Some of the entries after `after`, oldest first, and the id to continue from. An export reads the log in such steps.
pub async fn after(db: &Db, filter: &AuditFilter, after: i64, limit: i64) -> Result<(Vec<Entry>, Option<i64>)> {
    let sql = "SELECT id AS n FROM audit_log WHERE id > ? ORDER BY id LIMIT 1 OFFSET ?";
    let end: Option<Number> = db.first(sql, args![after, STEP - 1]).await?;
    let end = end.map(|end| end.n);
    let conditions = filter.conditions(db).when("id > ?", Some(after)).when("id <= ?", end);
    let sort = Sort { column: "id", descending: false };
    let page = Page { offset: 0, limit };
    let (sql, args) = conditions.page(&format!("SELECT {} FROM audit_log", Entry::COLUMNS), sort, "id", page);
    let entries: Vec<Entry> = db.all(&sql, args).await?;
    let is_full = entries.len() as i64 == limit;
    let next = if is_full { entries.last().map(|last| last.id) } else { end };
    Ok((entries, next))
}

/// Deletes entries older than `before`; returns how many.
pub async fn delete_before(db: &Db, before: Timestamp) -> Result<u64> {
    retention::delete(db, "audit_log", "created_at < ?", args![before]).await
}
