//! Metrics of servers over time.

use base::id::ServerId;
use jiff::Timestamp;

use crate::db::Record as _;
use crate::{Conn, Db, Result, args, record, retention};

record! {
    #[derive(Clone, Debug)]
    pub struct Metric {
        pub cpu_percent: f64,
        pub memory_percent: f64,
        pub disk_percent: f64,
        pub load_1m: f64,
        pub created_at: Timestamp,
    }
}

pub async fn insert(conn: impl Into<Conn<'_>>, server: &ServerId, metric: &Metric) -> Result<()> {
    let sql = "INSERT INTO server_metric (server_id, cpu_percent, memory_percent, disk_percent, load_1m, created_at) \
        VALUES (?, ?, ?, ?, ?, ?)";
    let args = args![
        server.as_str(),
        metric.cpu_percent,
        metric.memory_percent,
        metric.disk_percent,
        metric.load_1m,
        metric.created_at
    ];
    conn.into().run(sql, args).await.map(drop)
}

pub async fn latest(db: &Db, server: &ServerId) -> Result<Option<Metric>> {
    let sql = format!(
        "SELECT {} FROM server_metric WHERE server_id = ? ORDER BY created_at DESC, id DESC LIMIT 1",
        Metric::COLUMNS
    );
    db.first(&sql, args![server.as_str()]).await
}

/// Averages per `step_ms`, oldest first, so that a chart gets no more points than it can show.
pub async fn averages(db: &Db, server: &ServerId, from: Timestamp, step_ms: i64) -> Result<Vec<Metric>> {
    let sql = "SELECT AVG(cpu_percent) AS cpu_percent, AVG(memory_percent) AS memory_percent, \
        AVG(disk_percent) AS disk_percent, AVG(load_1m) AS load_1m, MAX(created_at) AS created_at \
        FROM server_metric WHERE server_id = ? AND created_at >= ? \
        GROUP BY created_at / ? ORDER BY MAX(created_at)";
    db.all(sql, args![server.as_str(), from, step_ms]).await
}

pub async fn forget(db: &Db, before: Timestamp) -> Result<u64> {
    retention::delete(db, "server_metric", "created_at < ?", args![before]).await
}
