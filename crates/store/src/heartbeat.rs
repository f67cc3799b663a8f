//! What each check of an instance said: its last hours, for people to see how it went.

use base::id::InstanceId;
use jiff::Timestamp;

use crate::db::Record as _;
use crate::instance::Health;
use crate::{Db, Result, Tx, args, record};

record! {
    #[derive(Clone, Debug)]
    pub struct Beat {
        pub status: Health,
        pub layer: String,
        pub latency_ms: Option<i64>,
        pub created_at: Timestamp,
    }
}

/// Writes a check down, and deletes those of the instance from before `keep`.
pub async fn write(tx: &mut Tx, instance: &str, beat: &Beat, keep: Timestamp) -> Result<()> {
    tx.run("DELETE FROM heartbeat WHERE instance_id = ? AND created_at < ?", args![instance, keep]).await?;
    let sql = "INSERT INTO heartbeat (instance_id, status, layer, latency_ms, created_at) VALUES (?, ?, ?, ?, ?)";
    tx.run(sql, args![instance, beat.status, &beat.layer, beat.latency_ms, beat.created_at]).await.map(drop)
}

/// The last checks of an instance, newest first.
pub async fn last(db: &Db, instance: &InstanceId, most: usize) -> Result<Vec<Beat>> {
    let sql = format!(
        "SELECT {} FROM heartbeat WHERE instance_id = ? ORDER BY created_at DESC, id DESC LIMIT ?",
        Beat::COLUMNS
    );
    db.all(&sql, args![instance.as_str(), most]).await
}

/// Deletes those from before: of instances that nobody checks any more.
pub async fn forget(db: &Db, before: Timestamp) -> Result<u64> {
    db.run("DELETE FROM heartbeat WHERE created_at < ?", args![before]).await
}
