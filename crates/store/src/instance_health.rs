//! What the last looks at instances said, beside their health_status; and how far their logs were read.

use base::id::InstanceId;
use jiff::Timestamp;

use crate::db::Record as _;
use crate::{Conn, Db, Result, args, record};

record! {
    #[derive(Clone, Debug)]
    pub struct InstanceHealth {
        pub instance_id: String,
        /// The layer that decided; empty before the first look.
        pub layer: String,
        pub detail: String,
        pub latency_ms: Option<i64>,
        pub memory_out_at: Option<Timestamp>,
        pub restarted_at: Option<Timestamp>,
        pub log_inode: i64,
        pub log_offset: i64,
        /// Until when the journal was read, in milliseconds since 1970 by the server's clock.
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

/// Writes what a look said.
pub async fn saw(
    conn: impl Into<Conn<'_>>,
    id: &str,
    layer: &str,
    detail: &str,
    latency_ms: Option<i64>,
) -> Result<()> {
    let sql = "INSERT INTO instance_health (instance_id, layer, detail, latency_ms) VALUES (?, ?, ?, ?) \
        ON CONFLICT (instance_id) DO UPDATE SET layer = excluded.layer, detail = excluded.detail, latency_ms = excluded.latency_ms";
    conn.into().run(sql, args![id, layer, detail, latency_ms]).await.map(drop)
}

pub async fn set_memory_out(conn: impl Into<Conn<'_>>, id: &str, at: Option<Timestamp>) -> Result<()> {
    let sql = "INSERT INTO instance_health (instance_id, memory_out_at) VALUES (?, ?) \
        ON CONFLICT (instance_id) DO UPDATE SET memory_out_at = excluded.memory_out_at";
    conn.into().run(sql, args![id, at]).await.map(drop)
}

pub async fn set_restarted(conn: impl Into<Conn<'_>>, id: &str, at: Timestamp) -> Result<()> {
    let sql = "INSERT INTO instance_health (instance_id, restarted_at) VALUES (?, ?) \
        ON CONFLICT (instance_id) DO UPDATE SET restarted_at = excluded.restarted_at";
    conn.into().run(sql, args![id, at]).await.map(drop)
}

/// Says how far the log was read.
pub async fn set_mark(conn: impl Into<Conn<'_>>, id: &str, inode: i64, offset: i64, journal_at: i64) -> Result<()> {
    let sql = "INSERT INTO instance_health (instance_id, log_inode, log_offset, journal_at) VALUES (?, ?, ?, ?) \
        ON CONFLICT (instance_id) DO UPDATE SET log_inode = excluded.log_inode, log_offset = excluded.log_offset, \
        journal_at = excluded.journal_at";
    conn.into().run(sql, args![id, inode, offset, journal_at]).await.map(drop)
}
