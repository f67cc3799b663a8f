//! The details of the last health checks of instances, beside their health_status; and how far their logs were read.

use base::id::InstanceId;
use jiff::Timestamp;

use crate::db::{Record as _, Value};
use crate::instance::{Health, Instance};
use crate::{Conn, Db, Result, Tx, args, record, word};

word! {
    /// What a health check asks, one after the other.
    pub enum Layer {
        Ssh = "ssh",
        Service = "service",
        Http = "http",
        WebSocket = "websocket",
        Key = "key",
        /// Nothing was asked.
        None = "none",
    }
}

record! {
    #[derive(Clone, Debug)]
    pub struct InstanceHealth {
        pub instance_id: InstanceId,
        /// The layer that decided; `None` before the first check.
        pub layer: Option<Layer>,
        pub detail: String,
        pub latency_ms: Option<i64>,
        pub memory_out_at: Option<Timestamp>,
        pub restarted_at: Option<Timestamp>,
        pub log_inode: i64,
        pub log_offset: i64,
        /// The time up to which the journal was read, in milliseconds since 1970 by the server's clock.
        pub journal_at: i64,
    }
}

pub async fn find(conn: impl Into<Conn<'_>>, id: &InstanceId) -> Result<Option<InstanceHealth>> {
    let sql = format!("SELECT {} FROM instance_health WHERE instance_id = ?", InstanceHealth::COLUMNS);
    conn.into().first(&sql, args![id.as_str()]).await
}

pub async fn all(db: &Db) -> Result<Vec<InstanceHealth>> {
    db.all(&format!("SELECT {} FROM instance_health", InstanceHealth::COLUMNS), args![]).await
}

/// The records of these instances.
pub async fn of(tx: &mut Tx, ids: &[InstanceId]) -> Result<Vec<InstanceHealth>> {
    let mut all = vec![];
    for ids in ids.chunks(AT_ONCE) {
        let marks = vec!["?"; ids.len()].join(", ");
        let sql = format!("SELECT {} FROM instance_health WHERE instance_id IN ({marks})", InstanceHealth::COLUMNS);
        let found: Vec<InstanceHealth> = tx.all(&sql, ids.iter().map(Value::from).collect()).await?;
        all.extend(found);
    }
    Ok(all)
}

/// Rows per statement.
const AT_ONCE: usize = 500;

/// Several instances, locked until the transaction ends. They are locked in the order of their ids, as everywhere, so
/// that two transactions cannot deadlock.
pub async fn lock_instances(tx: &mut Tx, ids: &[InstanceId]) -> Result<Vec<Instance>> {
    let mut ids: Vec<&InstanceId> = ids.iter().collect();
    ids.sort();
    let mut all = vec![];
    for ids in ids.chunks(AT_ONCE) {
        let sql = format!(
            "SELECT {} FROM instance WHERE id IN ({}) AND deleted_at IS NULL ORDER BY id{}",
            Instance::COLUMNS,
            vec!["?"; ids.len()].join(", "),
            tx.dialect().for_update()
        );
        let found: Vec<Instance> = tx.all(&sql, ids.iter().map(|id| Value::from(*id)).collect()).await?;
        all.extend(found);
    }
    Ok(all)
}

/// The result of an instance's health check.
#[derive(Clone, Debug)]
pub struct Judged {
    pub id: InstanceId,
    pub status: Health,
    pub fails: i64,
}

/// Writes results into the instances' records, in one statement per batch. The caller has locked their rows.
pub async fn judged_all(tx: &mut Tx, judged: &[Judged], at: Timestamp) -> Result<()> {
    for judged in judged.chunks(AT_ONCE) {
        let marks = vec!["(?, ?, ?)"; judged.len()].join(", ");
        let sql = format!(
            "WITH seen (id, status, fails) AS (VALUES {marks}) UPDATE instance SET health_status = seen.status, \
             health_fail_count = seen.fails, last_health_at = ? FROM seen WHERE instance.id = seen.id"
        );
        let mut args: Vec<Value> = judged.iter().flat_map(|one| args![&one.id, one.status, one.fails]).collect();
        args.extend(args![at]);
        tx.run(&sql, args).await?;
    }
    Ok(())
}

/// The details of an instance's health check.
#[derive(Clone, Debug)]
pub struct Sight {
    pub id: InstanceId,
    pub layer: Layer,
    pub detail: String,
    pub latency_ms: Option<i64>,
}

/// Writes the details of several instances' health checks.
pub async fn saw_all(tx: &mut Tx, sights: &[Sight]) -> Result<()> {
    for sights in sights.chunks(AT_ONCE) {
        let marks = vec!["(?, ?, ?, ?)"; sights.len()].join(", ");
        let sql = format!(
            "INSERT INTO instance_health (instance_id, layer, detail, latency_ms) VALUES {marks} ON CONFLICT (instance_id) \
             DO UPDATE SET layer = excluded.layer, detail = excluded.detail, latency_ms = excluded.latency_ms"
        );
        let args = sights.iter().flat_map(|one| args![&one.id, one.layer, &one.detail, one.latency_ms]);
        tx.run(&sql, args.collect()).await?;
    }
    Ok(())
}

pub async fn set_memory_out(conn: impl Into<Conn<'_>>, id: &InstanceId, at: Option<Timestamp>) -> Result<()> {
    let sql = "INSERT INTO instance_health (instance_id, memory_out_at) VALUES (?, ?) \
        ON CONFLICT (instance_id) DO UPDATE SET memory_out_at = excluded.memory_out_at";
    conn.into().run(sql, args![id, at]).await.map(drop)
}

pub async fn set_restarted(conn: impl Into<Conn<'_>>, id: &InstanceId, at: Timestamp) -> Result<()> {
    let sql = "INSERT INTO instance_health (instance_id, restarted_at) VALUES (?, ?) \
        ON CONFLICT (instance_id) DO UPDATE SET restarted_at = excluded.restarted_at";
    conn.into().run(sql, args![id, at]).await.map(drop)
}

/// Records how far the log was read.
pub async fn set_mark(
    conn: impl Into<Conn<'_>>,
    id: &InstanceId,
    inode: i64,
    offset: i64,
    journal_at: i64,
) -> Result<()> {
    let sql = "INSERT INTO instance_health (instance_id, log_inode, log_offset, journal_at) VALUES (?, ?, ?, ?) \
        ON CONFLICT (instance_id) DO UPDATE SET log_inode = excluded.log_inode, log_offset = excluded.log_offset, \
        journal_at = excluded.journal_at";
    conn.into().run(sql, args![id, inode, offset, journal_at]).await.map(drop)
}
