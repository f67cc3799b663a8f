//! The results of the health checks of the last hours, per instance, for administrators to look at.

use base::id::InstanceId;
use jiff::Timestamp;

use crate::db::{Record as _, Value};
use crate::instance::Health;
use crate::instance_health::Layer;
use crate::{Db, Result, Tx, args, record, retention};

record! {
    #[derive(Clone, Debug)]
    pub struct Beat {
        pub status: Health,
        pub layer: Layer,
        pub latency_ms: Option<i64>,
        pub created_at: Timestamp,
    }
}

/// Rows per statement.
const AT_ONCE: usize = 500;

/// Writes checks of several instances, and deletes those of the same instances from before `keep`.
pub async fn write_all(tx: &mut Tx, beats: &[(InstanceId, Beat)], keep: Timestamp) -> Result<()> {
    for beats in beats.chunks(AT_ONCE) {
        let marks = vec!["?"; beats.len()].join(", ");
        let mut old: Vec<Value> = beats.iter().map(|(instance, _)| Value::from(instance)).collect();
        old.extend(args![keep]);
        tx.run(&format!("DELETE FROM heartbeat WHERE instance_id IN ({marks}) AND created_at < ?"), old).await?;
        let marks = vec!["(?, ?, ?, ?, ?)"; beats.len()].join(", ");
        let sql = format!("INSERT INTO heartbeat (instance_id, status, layer, latency_ms, created_at) VALUES {marks}");
        let new = beats
            .iter()
            .flat_map(|(instance, beat)| args![instance, beat.status, beat.layer, beat.latency_ms, beat.created_at]);
        tx.run(&sql, new.collect()).await?;
    }
    Ok(())
}

/// The last checks of an instance, newest first.
pub async fn last(db: &Db, instance: &InstanceId, most: usize) -> Result<Vec<Beat>> {
    let sql = format!(
        "SELECT {} FROM heartbeat WHERE instance_id = ? ORDER BY created_at DESC, id DESC LIMIT ?",
        Beat::COLUMNS
    );
    db.all(&sql, args![instance.as_str(), most]).await
}

/// Deletes the checks before `before`. `write_all` deletes old ones too, but not of instances that are no longer
/// checked.
pub async fn forget(db: &Db, before: Timestamp) -> Result<u64> {
    retention::delete(db, "heartbeat", "created_at < ?", args![before]).await
}
