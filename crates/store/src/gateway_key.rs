//! Sub keys of the LLM gateway: one per instance, and some with a name of their own.

use std::ops::RangeInclusive;

use base::id::{InstanceId, KeyId, UserId};
use base::{Listing, Page, Secret, Sort};
use jiff::Timestamp;

use crate::conditions::Conditions;
use crate::db::{Number, Record as _, Value};
use crate::seal::{Place, Sealer};
use crate::{Conn, Db, Result, Tx, args, record, usage, word};

word! {
    /// The status that an administrator has set.
    pub enum Status {
        Active = "active",
        Disabled = "disabled",
    }
}

record! {
    #[derive(Clone, Debug)]
    pub struct GatewayKey {
        pub id: KeyId,
        pub instance_id: Option<InstanceId>,
        /// The token name in the request log.
        pub name: String,
        /// The token's id at a foreign gateway.
        pub gateway_id: String,
        /// Sealed: see `key`.
        pub secret: String,
        pub status: Status,
        pub user_revoked: bool,
        pub quota_spent: bool,
        /// Quota units; `None` means no limit.
        pub quota: Option<i64>,
        pub used_quota: i64,
        pub logged_quota: i64,
        /// What earlier, deleted keys of this name had used at the gateway.
        pub carried_quota: i64,
        /// What was logged under its name before its quota began to count. It is not part of the key's usage.
        pub quota_from: i64,
        pub dirty: bool,
        pub rotate: bool,
        pub last_checked_at: Option<Timestamp>,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
    }
}

impl GatewayKey {
    pub fn key(&self, sealer: &Sealer) -> Result<Secret> {
        sealer.open(place(&self.id), &self.secret)
    }

    /// The used part of its quota: what was logged since its record was created, even if the key was replaced
    /// meanwhile.
    pub fn used(&self) -> i64 {
        self.logged_quota - self.quota_from
    }

    /// Whether the gateway should accept the key.
    pub fn enabled(&self) -> bool {
        self.status == Status::Active && !self.user_revoked && !self.quota_spent
    }
}

record! {
    /// What is known of a key at the gateway, beside what our record wants of it.
    #[derive(Clone, Debug, Default)]
    pub struct Observed {
        /// What the gateway last said of it: see `State`; empty before that.
        pub state: String,
        /// Why the gateway has not followed the last change yet.
        pub problem: String,
        /// By how much the gateway's count and the log stayed apart when they were compared; `None` where they could
        /// not be.
        pub drift: Option<i64>,
    }
}

impl Observed {
    /// Whether the gateway accepts the key; `None` if that is not known.
    pub fn is_on(&self) -> Option<bool> {
        match self.state.as_str() {
            ON | "valid" | "exhausted" => Some(true),
            OFF | "invalid" | "denied" => Some(false),
            _ => None,
        }
    }
}

/// The states of a key that should be off: the gateway accepts it all the same, or does not. One that should be on is
/// valid, exhausted, invalid or denied.
pub const ON: &str = "on";
pub const OFF: &str = "off";

pub async fn observed(conn: impl Into<Conn<'_>>, id: &KeyId) -> Result<Observed> {
    let sql = "SELECT state, problem, drift FROM gateway_key WHERE id = ?";
    Ok(conn.into().first(sql, args![id.as_str()]).await?.unwrap_or_default())
}

/// Records why the gateway does not follow; empty when it did.
pub async fn set_problem(db: &Db, id: &KeyId, problem: &str) -> Result<()> {
    let sql = "UPDATE gateway_key SET problem = ? WHERE id = ? AND problem <> ?";
    db.run(sql, args![problem, id, problem]).await.map(drop)
}

/// Records what the gateway was made to do.
pub async fn set_applied(tx: &mut Tx, id: &KeyId, state: &str) -> Result<()> {
    tx.run("UPDATE gateway_key SET state = ?, problem = '' WHERE id = ?", args![state, id]).await.map(drop)
}

pub async fn set_drift(tx: &mut Tx, id: &KeyId, drift: Option<i64>) -> Result<()> {
    tx.run("UPDATE gateway_key SET drift = ? WHERE id = ?", args![drift, id]).await.map(drop)
}

record! {
    /// A key that should not open the gateway, or should be another one, and that the gateway still accepts as it is.
    #[derive(Clone, Debug)]
    pub struct Unrevoked {
        pub id: KeyId,
        pub name: String,
        /// What the gateway last said of it: see `ON`.
        pub state: String,
        pub problem: String,
        pub updated_at: Timestamp,
    }
}

/// Which keys `unrevoked` looks at.
pub enum Of<'a> {
    All,
    /// Those of the instances that a user holds.
    User(&'a UserId),
}

/// Keys that should not open the gateway any more and may still do so: it has not followed, or accepts them all the same.
const MAY_OPEN: &str =
    "(dirty = 1 AND (rotate = 1 OR status = 'disabled' OR user_revoked = 1 OR quota_spent = 1)) OR state = 'on'";

/// Other keys whose last change the gateway has refused.
pub async fn unapplied(db: &Db, limit: i64) -> Result<Vec<Unrevoked>> {
    let sql = format!(
        "SELECT {} FROM gateway_key WHERE deleted_at IS NULL AND dirty = 1 AND problem <> '' AND NOT ({MAY_OPEN}) \
         ORDER BY updated_at, id LIMIT ?",
        Unrevoked::COLUMNS
    );
    db.all(&sql, args![limit]).await
}

pub async fn unrevoked(db: &Db, of: Of<'_>, limit: i64) -> Result<Vec<Unrevoked>> {
    let (clause, mut args) = match of {
        Of::All => ("", args![]),
        Of::User(user) => (
            " AND instance_id IN (SELECT instance_id FROM binding WHERE user_id = ? AND ended_at IS NULL)",
            args![user.as_str()],
        ),
    };
    args.push(Value::from(limit));
    let sql = format!(
        "SELECT {} FROM gateway_key WHERE deleted_at IS NULL AND gateway_id <> '' AND ({MAY_OPEN}){clause} \
         ORDER BY updated_at, id LIMIT ?",
        Unrevoked::COLUMNS
    );
    db.all(&sql, args).await
}

pub fn place(id: &str) -> Place<'_> {
    Place { table: "gateway_key", column: "secret", id }
}

/// Fails with `Taken` if the name or the key is in use, or the instance has a key already.
pub async fn insert(tx: &mut Tx, key: &GatewayKey, hash: &str) -> Result<()> {
    let sql = "INSERT INTO gateway_key (id, instance_id, name, gateway_id, secret, secret_hash, status, user_revoked, quota_spent, \
        quota, used_quota, logged_quota, carried_quota, quota_from, dirty, rotate, last_checked_at, created_at, updated_at) \
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let args = args![
        &key.id,
        key.instance_id.as_ref(),
        &key.name,
        &key.gateway_id,
        &key.secret,
        hash,
        key.status,
        key.user_revoked,
        key.quota_spent,
        key.quota,
        key.used_quota,
        key.logged_quota,
        key.carried_quota,
        key.quota_from,
        key.dirty,
        key.rotate,
        key.last_checked_at,
        key.created_at,
        key.updated_at
    ];
    tx.run(sql, args).await.map(drop)
}

fn select() -> String {
    format!("SELECT {} FROM gateway_key WHERE deleted_at IS NULL", GatewayKey::COLUMNS)
}

pub async fn find(conn: impl Into<Conn<'_>>, id: &KeyId) -> Result<Option<GatewayKey>> {
    conn.into().first(&format!("{} AND id = ?", select()), args![id.as_str()]).await
}

/// The same, locked until the transaction ends.
pub async fn lock(tx: &mut Tx, id: &KeyId) -> Result<Option<GatewayKey>> {
    let sql = format!("{} AND id = ?{}", select(), tx.dialect().for_update());
    tx.first(&sql, args![id.as_str()]).await
}

pub async fn of_instance(conn: impl Into<Conn<'_>>, instance: &InstanceId) -> Result<Option<GatewayKey>> {
    conn.into().first(&format!("{} AND instance_id = ?", select()), args![instance.as_str()]).await
}

/// The same, locked until the transaction ends.
pub async fn lock_of_instance(tx: &mut Tx, instance: &InstanceId) -> Result<Option<GatewayKey>> {
    let sql = format!("{} AND instance_id = ?{}", select(), tx.dialect().for_update());
    tx.first(&sql, args![instance.as_str()]).await
}

pub async fn named(conn: impl Into<Conn<'_>>, name: &str) -> Result<Option<GatewayKey>> {
    conn.into().first(&format!("{} AND name = ?", select()), args![name]).await
}

/// How many keys have had this name, deleted ones included.
pub async fn ever_named(db: &Db, name: &str) -> Result<i64> {
    let number: Number =
        Conn::from(db).one("SELECT COUNT(*) AS n FROM gateway_key WHERE name = ?", args![name]).await?;
    Ok(number.n)
}

/// By the keyed hash of the key itself.
pub async fn by_hash(conn: impl Into<Conn<'_>>, hash: &str) -> Result<Option<GatewayKey>> {
    conn.into().first(&format!("{} AND secret_hash = ?", select()), args![hash]).await
}

pub const SORTS: &[&str] = &["created_at", "name", "used_quota"];

pub async fn list(db: &Db, text: Option<&str>, sort: Sort, page: Page) -> Result<Listing<GatewayKey>> {
    let conditions = Conditions::of(db.dialect()).must("deleted_at IS NULL").search(&["name"], text);
    conditions.list(db, GatewayKey::COLUMNS, "gateway_key", sort, "id", page).await
}

/// The source of tasks that repeat a change which has not reached the gateway.
pub const REMINDER: &str = "reminder";

/// Keys whose last change has not reached the gateway, was not made within `fresh`, and needs a new task: none of this
/// type waits or runs, and none from `REMINDER` of `recent` is dead. A change after `fresh` is in the future, so a
/// clock that was ahead wrote it; it counts as overdue too. A task's payload is the key's id between the two parts of
/// `around`.
pub async fn overdue(
    db: &Db,
    task_type: &str,
    around: (&str, &str),
    fresh: RangeInclusive<Timestamp>,
    recent: RangeInclusive<Timestamp>,
    limit: i64,
) -> Result<Vec<GatewayKey>> {
    let sql = format!(
        "{} AND dirty = 1 AND (updated_at < ? OR updated_at > ?) AND NOT EXISTS (SELECT 1 FROM task t WHERE t.type = ? \
         AND t.payload = ? || gateway_key.id || ? AND (t.status IN ('pending', 'processing', 'failed') \
         OR (t.status = 'dead' AND t.source = ? AND t.created_at BETWEEN ? AND ?))) \
         ORDER BY created_at, id LIMIT ?",
        select()
    );
    let args = args![
        *fresh.start(),
        *fresh.end(),
        task_type,
        around.0,
        around.1,
        REMINDER,
        *recent.start(),
        *recent.end(),
        limit
    ];
    db.all(&sql, args).await
}

record! {
    /// A key whose user may have used up the daily quota, or that is disabled because of that.
    #[derive(Clone, Debug)]
    pub struct SpentDay {
        pub key_id: KeyId,
        pub user_id: UserId,
        pub quota_daily: i64,
        pub quota_spent: bool,
        /// An upper bound of the user's tokens today: all of every instance that the user had at any time of the day.
        pub at_most: i64,
        /// Another user may have had one of these instances for a part of the day, so the bound may be too high.
        pub is_partial: bool,
    }
}

/// The keys of all users that may have to be switched, by the sums of a local day and by what was answered and is not
/// logged yet. With `every_limited`, those of every user who has a daily quota.
pub async fn spent_days(db: &Db, date: &str, midnight: Timestamp, every_limited: bool) -> Result<Vec<SpentDay>> {
    let sql = "WITH today AS (SELECT token_name, CAST(SUM(prompt_tokens + completion_tokens) AS BIGINT) AS tokens \
            FROM usage_daily WHERE date >= ? GROUP BY token_name), \
        spent AS (SELECT b.user_id AS user_id, CAST(SUM(t.tokens) AS BIGINT) AS tokens, \
            CAST(MAX(CASE WHEN b.created_at > ? OR b.ended_at IS NOT NULL THEN 1 ELSE 0 END) AS BIGINT) AS is_partial \
            FROM today t JOIN binding b ON b.instance_id = t.token_name AND (b.ended_at IS NULL OR b.ended_at > ?) \
            GROUP BY b.user_id), \
        unlogged AS (SELECT user_id, CAST(SUM(prompt_tokens + completion_tokens) AS BIGINT) AS tokens FROM unlogged_request \
            WHERE answered_at >= ? AND user_id IS NOT NULL GROUP BY user_id) \
        SELECT k.id AS key_id, u.id AS user_id, u.quota_daily AS quota_daily, k.quota_spent AS quota_spent, \
            COALESCE(s.tokens, 0) + COALESCE(w.tokens, 0) AS at_most, COALESCE(s.is_partial, 0) AS is_partial FROM gateway_key k \
        JOIN binding b ON b.instance_id = k.instance_id AND b.ended_at IS NULL \
        JOIN instance i ON i.id = b.instance_id AND i.deleted_at IS NULL JOIN users u ON u.id = b.user_id \
        LEFT JOIN spent s ON s.user_id = u.id LEFT JOIN unlogged w ON w.user_id = u.id WHERE k.deleted_at IS NULL \
        AND (k.quota_spent = 1 OR (u.quota_daily > 0 \
            AND (? = 1 OR COALESCE(s.tokens, 0) + COALESCE(w.tokens, 0) >= u.quota_daily))) ORDER BY k.id";
    db.all(sql, args![date, midnight, midnight, midnight, every_limited]).await
}

/// Writes back the fields that may change.
pub async fn update(tx: &mut Tx, key: &GatewayKey) -> Result<()> {
    let sql = "UPDATE gateway_key SET gateway_id = ?, status = ?, user_revoked = ?, quota_spent = ?, quota = ?, used_quota = ?, \
        carried_quota = ?, dirty = ?, rotate = ?, last_checked_at = ?, updated_at = ? WHERE id = ?";
    let args = args![
        &key.gateway_id,
        key.status,
        key.user_revoked,
        key.quota_spent,
        key.quota,
        key.used_quota,
        key.carried_quota,
        key.dirty,
        key.rotate,
        key.last_checked_at,
        key.updated_at,
        &key.id
    ];
    tx.run(sql, args).await.map(drop)
}

/// Records the key's state at the gateway; returns whether it differs from the last one. No earlier state counts as
/// valid.
pub async fn set_state(tx: &mut Tx, id: &KeyId, state: &str, at: Timestamp) -> Result<bool> {
    let sql = "UPDATE gateway_key SET state = ?, last_checked_at = ? WHERE id = ? AND state <> ? AND NOT (state = '' AND ? = 'valid')";
    if tx.run(sql, args![state, at, id, state, state]).await? == 1 {
        return Ok(true);
    }
    tx.run("UPDATE gateway_key SET state = ?, last_checked_at = ? WHERE id = ?", args![state, at, id]).await?;
    Ok(false)
}

/// Replaces the secret of a key.
pub async fn set_secret(tx: &mut Tx, id: &str, sealed: &str, hash: &str, at: Timestamp) -> Result<()> {
    let sql = "UPDATE gateway_key SET secret = ?, secret_hash = ?, updated_at = ? WHERE id = ?";
    tx.run(sql, args![sealed, hash, at, id]).await.map(drop)
}

/// Initialises the sums of a new record from the log. What the log has beyond the usage of this key was used by earlier
/// keys of its name.
pub async fn set_logged(tx: &mut Tx, id: &KeyId) -> Result<()> {
    let Some(key) = find(&mut *tx, id).await? else { return Ok(()) };
    let logged = usage::of_all_time(&mut *tx, &key.name).await?;
    let quota = logged.quota();
    let sql = "UPDATE gateway_key SET logged_quota = ?, logged_rest = ? WHERE id = ?";
    tx.run(sql, args![quota, logged.rest_of(quota), id]).await?;
    let sql = "UPDATE gateway_key SET carried_quota = logged_quota - used_quota, quota_from = logged_quota - used_quota WHERE id = ?";
    tx.run(sql, args![id]).await.map(drop)
}

pub async fn delete(tx: &mut Tx, id: &KeyId, at: Timestamp) -> Result<()> {
    tx.run("UPDATE gateway_key SET deleted_at = ? WHERE id = ?", args![at, id]).await.map(drop)
}

/// Sets or clears `user_revoked` on the keys of all instances that a user holds; returns the keys that changed. The
/// caller has locked the user's row.
pub async fn mark_revoked(tx: &mut Tx, user: &UserId, revoked: bool, at: Timestamp) -> Result<Vec<GatewayKey>> {
    // After waiting for a lock, PostgreSQL checks the row again but not the subquery, and by then the instance may have
    // another holder. So the keys are locked first; a second statement, which sees what was committed meanwhile, checks
    // which are still the user's.
    let held = "instance_id IN (SELECT instance_id FROM binding WHERE user_id = ? AND ended_at IS NULL)";
    let sql = format!("{} AND {held} AND user_revoked <> ? ORDER BY name{}", select(), tx.dialect().for_update());
    let locked: Vec<GatewayKey> = tx.all(&sql, args![user.as_str(), revoked]).await?;
    let sql = format!(
        "UPDATE gateway_key SET user_revoked = ?, dirty = 1, problem = '', updated_at = ? WHERE id = ? AND {held} AND user_revoked <> ?"
    );
    let mut changed = vec![];
    for key in locked {
        if tx.run(&sql, args![revoked, at, &key.id, user.as_str(), revoked]).await? == 1 {
            changed.push(key);
        }
    }
    Ok(changed)
}

/// Sets a key's flags for the current holder of its instance; returns whether they changed.
pub async fn set_holder_flags(tx: &mut Tx, id: &KeyId, user_revoked: bool, at: Timestamp) -> Result<bool> {
    let sql = "UPDATE gateway_key SET user_revoked = ?, quota_spent = 0, dirty = 1, updated_at = ? \
        WHERE id = ? AND (user_revoked <> ? OR quota_spent <> 0)";
    Ok(tx.run(sql, args![user_revoked, at, id, user_revoked]).await? > 0)
}

record! {
    /// What the gateway must know about a key, its instance and its user before it accepts a request.
    #[derive(Clone, Debug)]
    pub struct Holder {
        pub key_id: KeyId,
        pub name: String,
        pub instance_id: Option<InstanceId>,
        pub model: Option<String>,
        pub status: Status,
        pub user_revoked: bool,
        pub quota_spent: bool,
        pub quota: Option<i64>,
        pub user_id: Option<UserId>,
        pub user_status: Option<String>,
        pub quota_daily: Option<i64>,
    }
}

impl Holder {
    pub fn enabled(&self) -> bool {
        self.status == Status::Active
            && !self.user_revoked
            && !self.quota_spent
            && self.user_status.as_deref().is_none_or(|status| status == "active")
    }
}

/// The holder of the key with this hash.
pub async fn holder(db: &Db, hash: &str) -> Result<Option<Holder>> {
    let sql = "SELECT k.id AS key_id, k.name AS name, k.instance_id AS instance_id, i.model AS model, k.status AS status, \
        k.user_revoked AS user_revoked, k.quota_spent AS quota_spent, k.quota AS quota, u.id AS user_id, u.status AS user_status, \
        u.quota_daily AS quota_daily FROM gateway_key k LEFT JOIN instance i ON i.id = k.instance_id \
        LEFT JOIN users u ON u.id = i.assigned_user_id \
        WHERE k.deleted_at IS NULL AND k.secret_hash = ? AND (k.instance_id IS NULL OR i.deleted_at IS NULL)";
    db.first(sql, args![hash]).await
}
