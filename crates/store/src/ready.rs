//! Which instances work well enough to be given out. Lists, stocks, claims and pools all use the one table of
//! conditions below, so that none of them offers what another refuses.

use std::sync::LazyLock;

use base::id::InstanceId;
use base::{Listing, Page};

use crate::db::{Number, Record as _};
use crate::instance::{Health, Instance};
use crate::instance_health::lock_instances;
use crate::{Conn, Db, Result, Tx, args, record, word};

word! {
    /// Why an instance is not given out, although nobody has it.
    pub enum NotReady {
        /// Only a super administrator may assign it: see `Isolation::is_offered`.
        NotOffered = "not_offered",
        /// It was never installed on its server.
        NotOnServer = "not_on_server",
        ServerInactive = "server_inactive",
        /// Its set-up or its cleaning was given up, and no later cleaning has started it again.
        SetupFailed = "setup_failed",
        Unhealthy = "unhealthy",
        KeyInvalid = "key_invalid",
        /// An administrator wants it to be left alone.
        Held = "held",
    }
}

/// Each reason with the SQL condition that an instance `i` must meet, or else the reason applies. The first reason that
/// applies is the one that people read. A further reason is one more line here.
///
/// An instance of unknown health is given out: a new one is unknown until its first check, and a failed check proves
/// nothing. So is a rate limited one: it works, and its provider's limit passes.
///
/// Of the tasks, the last cleaning that is done is never deleted, so it proves for ever that the instance works again.
const RULES: &[(NotReady, &str)] = &[
    (NotReady::NotOffered, "i.isolation IN ('none', 'own')"),
    (NotReady::NotOnServer, "(i.isolation <> 'none' AND i.home <> '')"),
    (
        NotReady::ServerInactive,
        "i.server_id IN (SELECT s.id FROM server s WHERE s.status = 'active' AND s.deleted_at IS NULL)",
    ),
    (
        NotReady::SetupFailed,
        "i.id NOT IN (SELECT t.instance_id FROM task t WHERE t.status = 'dead' AND t.instance_id IS NOT NULL \
         AND t.type IN ('init_instance', 'bootstrap_profession_instance', 'clean_instance') \
         AND NOT EXISTS (SELECT 1 FROM task c WHERE c.instance_id = t.instance_id AND c.type = 'clean_instance' \
             AND c.status = 'done' AND c.id > t.id))",
    ),
    (NotReady::Unhealthy, "i.health_status <> 'unhealthy'"),
    (NotReady::KeyInvalid, "i.health_status <> 'key_invalid'"),
    // A hold that is over is deleted by the next pass of the job `reconcile`.
    (NotReady::Held, "i.id NOT IN (SELECT r.instance_id FROM reconcile r WHERE r.held_until IS NOT NULL)"),
];

/// The SQL condition that an instance `i` can be given out: nobody has it, and no reason of `RULES` applies. Whether it
/// is in a pool is for the caller to ask.
pub(crate) static READY: LazyLock<String> = LazyLock::new(|| {
    let conditions: Vec<&str> = RULES.iter().map(|(_, condition)| *condition).collect();
    format!("i.deleted_at IS NULL AND i.assigned_user_id IS NULL AND {}", conditions.join(" AND "))
});

/// Why an instance is not given out, leaving aside who has it; `None` if it is ready.
pub async fn not_ready(tx: &mut Tx, id: &InstanceId) -> Result<Option<NotReady>> {
    record! { struct Found { reason: Option<NotReady> } }
    let cases: String =
        RULES.iter().map(|(reason, condition)| format!(" WHEN NOT ({condition}) THEN '{}'", reason.as_str())).collect();
    let sql = format!("SELECT CASE{cases} END AS reason FROM instance i WHERE i.id = ?");
    let found: Option<Found> = tx.first(&sql, args![id.as_str()]).await?;
    Ok(found.and_then(|found| found.reason))
}

/// The healthiest instance that is ready and outside of pools, locked until the transaction ends.
pub async fn lock_idle(tx: &mut Tx) -> Result<Option<Instance>> {
    // Locked rows are skipped, so that concurrent claims take different instances.
    let skip_locked = tx.dialect().skip_locked();
    let free = tx.first(&select_idle(Instance::COLUMNS, skip_locked), args![]).await?;
    if free.is_some() || skip_locked.is_empty() {
        return Ok(free);
    }
    // All candidates are locked, but perhaps only for a moment: a health check locks all instances of a server, and a
    // release may free one. So wait for one.
    lock_idle_and(tx, None).await
}

/// The healthiest instance that is ready and outside of pools, locked together with another instance.
pub async fn lock_idle_beside(tx: &mut Tx, other: &InstanceId) -> Result<Option<Instance>> {
    lock_idle_and(tx, Some(other)).await
}

/// Waits for one idle instance at a time, which is locked in the order that everybody uses. If it is no longer idle
/// then, it is unlocked before the wait for the next: keeping the lock could deadlock.
async fn lock_idle_and(tx: &mut Tx, other: Option<&InstanceId>) -> Result<Option<Instance>> {
    record! { struct Candidate { id: InstanceId } }
    let next = select_idle("i.id", "");
    let still = format!("SELECT {} FROM instance i WHERE i.id = ? AND {}", Instance::COLUMNS, idle_condition());
    for _ in 0..MOST_WAITS {
        let Some(Candidate { id }) = tx.first(&next, args![]).await? else { return Ok(None) };
        tx.run("SAVEPOINT idle", args![]).await?;
        let ids: Vec<InstanceId> = std::iter::once(&id).chain(other).cloned().collect();
        lock_instances(tx, &ids).await?;
        let found = tx.first(&still, args![&id]).await?;
        if found.is_some() {
            return Ok(found);
        }
        tx.run("ROLLBACK TO SAVEPOINT idle", args![]).await?;
    }
    Ok(None)
}

fn select_idle(columns: &str, lock: &str) -> String {
    let idle = idle_condition();
    format!(
        "SELECT {columns} FROM instance i WHERE {idle} ORDER BY {HEALTHIEST_FIRST}, i.created_at, i.id LIMIT 1{lock}"
    )
}

/// The SQL condition that any employee may claim an instance `i`.
fn idle_condition() -> String {
    format!("i.pooled = 0 AND {}", *READY)
}

/// A claim gives up after waiting for this many instances.
const MOST_WAITS: usize = 200;

/// For `ORDER BY`: the health states of an instance `i` from best to worst. Those after `rate_limited` are not ready.
pub(crate) const HEALTHIEST_FIRST: &str = "CASE i.health_status WHEN 'healthy' THEN 0 WHEN 'unknown' THEN 1 \
    WHEN 'rate_limited' THEN 2 ELSE 3 END";

record! {
    /// An instance that any employee may claim.
    #[derive(Clone, Debug)]
    pub struct Idle {
        pub id: InstanceId,
        pub name: String,
        pub model: String,
        pub health_status: Health,
        pub server_name: String,
    }
}

/// The instances that any employee may claim, healthiest first.
pub async fn idle(db: &Db, page: Page) -> Result<Listing<Idle>> {
    let idle = idle_condition();
    let sql = format!(
        "SELECT i.id, i.name, i.model, i.health_status, s.name AS server_name \
         FROM instance i JOIN server s ON s.id = i.server_id WHERE {idle} \
         ORDER BY {HEALTHIEST_FIRST}, i.created_at, i.id LIMIT ? OFFSET ?"
    );
    let list = db.all(&sql, args![page.limit, page.offset]).await?;
    let total: Number =
        Conn::from(db).one(&format!("SELECT COUNT(*) AS n FROM instance i WHERE {idle}"), args![]).await?;
    Ok(Listing { list, total: total.n })
}
