//! The audit log: who did what to what, and what happened by itself.

use base::{Email, Listing, Page, Sort};
use jiff::Timestamp;

use crate::db::Record as _;
use crate::filter::Filter;
use crate::{Conn, Db, Result, args, record, word};

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
        TaskFailed = "task.failed",
        Claim = "shrimp.claim",
        /// Beyond the spec: a second factor was set up, used by a recovery code, switched off or reset, or a wrong code was given.
        SecondFactor = "auth.mfa",
        /// Beyond the spec: somebody was shown a secret.
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
    // The spec's widths; what is longer keeps its beginning. A NUL cannot be stored.
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

/// What a list of entries is narrowed by.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    pub q: Option<String>,
    pub action: Option<String>,
    pub operator: Option<String>,
    pub level: Option<Level>,
    pub target: Option<String>,
    pub from: Option<Timestamp>,
    pub until: Option<Timestamp>,
    /// Logins name whatever was typed: not among what happened to a record.
    pub without_logins: bool,
}

impl Wanted {
    fn filter(&self, db: &Db) -> Filter {
        let filter = Filter::of(db.dialect());
        let filter = if self.without_logins { filter.must("action <> 'auth.login'") } else { filter };
        filter
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

pub async fn list(db: &Db, wanted: &Wanted, sort: Sort, page: Page) -> Result<Listing<Entry>> {
    let filter = wanted.filter(db);
    filter.list(db, Entry::COLUMNS, "audit_log", sort, "id", page).await
}

/// The entries after `after`, oldest first: an export walks the log with it.
pub async fn after(db: &Db, wanted: &Wanted, after: i64, limit: i64) -> Result<Vec<Entry>> {
    let filter = wanted.filter(db).when("id > ?", Some(after));
    let sort = Sort { column: "id", descending: false };
    let page = Page { offset: 0, limit };
    let (sql, args) = filter.page(&format!("SELECT {} FROM audit_log", Entry::COLUMNS), sort, "id", page);
    db.all(&sql, args).await
}

/// Deletes entries older than `before`.
pub async fn forget(conn: impl Into<Conn<'_>>, before: Timestamp) -> Result<u64> {
    conn.into().run("DELETE FROM audit_log WHERE created_at < ?", args![before]).await
}
