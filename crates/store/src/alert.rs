//! Alerts, and the rules that raise them. A unique index allows one open alert per rule and subject.

use base::id::{AlertId, TaskId};
use base::{Listing, Page, Secret, Sort};
use jiff::Timestamp;

use crate::conditions::Conditions;
use crate::db::{Number, Record as _};
use crate::seal::{Place, Sealer};
use crate::{Conn, Db, Result, Tx, args, record, retention};

record! {
    #[derive(Clone, Debug)]
    pub struct AlertRule {
        pub id: String,
        pub enabled: bool,
        pub threshold: Option<f64>,
        /// Sealed: see `url`.
        pub channel: Option<String>,
        /// Sealed: see `key`.
        pub secret: Option<String>,
        pub updated_at: Timestamp,
    }
}

impl AlertRule {
    pub fn url(&self, sealer: &Sealer) -> Result<Option<Secret>> {
        self.channel.as_deref().map(|sealed| sealer.open(place(&self.id, "channel"), sealed)).transpose()
    }

    /// The key that signs deliveries.
    pub fn key(&self, sealer: &Sealer) -> Result<Option<Secret>> {
        self.secret.as_deref().map(|sealed| sealer.open(place(&self.id, "secret"), sealed)).transpose()
    }
}

pub fn place<'a>(id: &'a str, column: &'static str) -> Place<'a> {
    Place { table: "alert_rule", column, id }
}

/// The settings of a rule; `None` if it has only defaults.
pub async fn rule(conn: impl Into<Conn<'_>>, id: &str) -> Result<Option<AlertRule>> {
    conn.into().first(&format!("SELECT {} FROM alert_rule WHERE id = ?", AlertRule::COLUMNS), args![id]).await
}

pub async fn set_rule(tx: &mut Tx, rule: &AlertRule) -> Result<()> {
    let sql = "INSERT INTO alert_rule (id, enabled, threshold, channel, secret, updated_at) VALUES (?, ?, ?, ?, ?, ?) \
        ON CONFLICT (id) DO UPDATE SET enabled = excluded.enabled, threshold = excluded.threshold, \
        channel = excluded.channel, secret = excluded.secret, updated_at = excluded.updated_at";
    let args =
        args![&rule.id, rule.enabled, rule.threshold, rule.channel.as_ref(), rule.secret.as_ref(), rule.updated_at];
    tx.run(sql, args).await.map(drop)
}

record! {
    #[derive(Clone, Debug)]
    pub struct Alert {
        pub id: AlertId,
        pub rule: String,
        pub subject: String,
        pub message: String,
        pub created_at: Timestamp,
        pub acked_at: Option<Timestamp>,
        pub acked_by: String,
        pub resolved_at: Option<Timestamp>,
        /// The task that delivers the alert when it opens.
        pub delivery_id: Option<TaskId>,
    }
}

/// Opens an alert. False if one is already open for the same rule and subject.
pub async fn open(tx: &mut Tx, alert: &Alert) -> Result<bool> {
    let sql =
        "INSERT INTO alert (id, rule, subject, message, created_at) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING";
    let args = args![&alert.id, &alert.rule, &alert.subject, &alert.message, alert.created_at];
    Ok(tx.run(sql, args).await? == 1)
}

/// The alert that is open for a rule and subject.
pub async fn open_one(conn: impl Into<Conn<'_>>, rule: &str, subject: &str) -> Result<Option<Alert>> {
    let sql = format!("SELECT {} FROM alert WHERE rule = ? AND subject = ? AND resolved_at IS NULL", Alert::COLUMNS);
    conn.into().first(&sql, args![rule, subject]).await
}

/// Every alert that is open.
pub async fn all_open(conn: impl Into<Conn<'_>>) -> Result<Vec<Alert>> {
    let sql = format!("SELECT {} FROM alert WHERE resolved_at IS NULL ORDER BY id", Alert::COLUMNS);
    conn.into().all(&sql, args![]).await
}

pub async fn resolve(tx: &mut Tx, id: &AlertId, at: Timestamp) -> Result<bool> {
    Ok(tx.run("UPDATE alert SET resolved_at = ? WHERE id = ? AND resolved_at IS NULL", args![at, id]).await? == 1)
}

/// Changes the message of an alert. Returns whether it is another.
pub async fn set_message(tx: &mut Tx, id: &AlertId, message: &str) -> Result<bool> {
    let sql = "UPDATE alert SET message = ? WHERE id = ? AND message <> ?";
    Ok(tx.run(sql, args![message, id, message]).await? == 1)
}

/// Records the task that delivers the alert when it opens.
pub async fn set_delivery(tx: &mut Tx, id: &AlertId, task: &TaskId) -> Result<()> {
    tx.run("UPDATE alert SET delivery_id = ? WHERE id = ?", args![task.as_str(), id]).await.map(drop)
}

/// Acknowledges an alert. False if it was acknowledged before.
pub async fn ack(tx: &mut Tx, id: &AlertId, by: &str, at: Timestamp) -> Result<bool> {
    let sql = "UPDATE alert SET acked_at = ?, acked_by = ? WHERE id = ? AND acked_at IS NULL";
    Ok(tx.run(sql, args![at, by, id]).await? == 1)
}

pub async fn find(conn: impl Into<Conn<'_>>, id: &AlertId) -> Result<Option<Alert>> {
    conn.into().first(&format!("SELECT {} FROM alert WHERE id = ?", Alert::COLUMNS), args![id]).await
}

#[derive(Clone, Debug, Default)]
pub struct AlertFilter<'a> {
    pub q: Option<&'a str>,
    pub rule: Option<&'a str>,
    pub open: Option<bool>,
    pub acked: Option<bool>,
}

pub const SORTABLE: &[&str] = &["created_at", "rule", "subject"];

pub async fn list(db: &Db, filter: AlertFilter<'_>, sort: Sort, page: Page) -> Result<Listing<Alert>> {
    let conditions =
        Conditions::of(db.dialect()).when("rule = ?", filter.rule).search(&["subject", "message", "rule"], filter.q);
    let conditions = match filter.open {
        Some(true) => conditions.must("resolved_at IS NULL"),
        Some(false) => conditions.must("resolved_at IS NOT NULL"),
        None => conditions,
    };
    let conditions = match filter.acked {
        Some(true) => conditions.must("acked_at IS NOT NULL"),
        Some(false) => conditions.must("acked_at IS NULL"),
        None => conditions,
    };
    conditions.list(db, Alert::COLUMNS, "alert", sort, "id", page).await
}

/// How many instances are unhealthy or have no working key.
pub async fn unhealthy(tx: &mut Tx) -> Result<i64> {
    let sql =
        "SELECT COUNT(*) AS n FROM instance WHERE deleted_at IS NULL AND health_status IN ('unhealthy', 'key_invalid')";
    let number: Number = Conn::from(tx).one(sql, args![]).await?;
    Ok(number.n)
}

/// Deletes alerts that were resolved before `before`, and open ones that were created before it: nobody acts on them
/// any more.
pub async fn forget(db: &Db, before: Timestamp) -> Result<u64> {
    let clause = "resolved_at < ? OR (resolved_at IS NULL AND created_at < ?)";
    retention::delete(db, "alert", clause, args![before, before]).await
}
