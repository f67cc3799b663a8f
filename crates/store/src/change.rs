//! Finds what changed since an instant, for a listener of live events that was disconnected.

use jiff::Timestamp;

use crate::notice::{Notice, Topic};
use crate::{Db, Result, args, record};

record! {
    struct Changed { id: String }
}

/// If more than this changed of one kind, single changes are not reported. The statements below read one row more.
const MOST: usize = 200;

/// The query for the changes of each kind, and how many `?` it has: each is the instant.
const KINDS: &[(Topic, &str, usize)] = &[
    (Topic::Task, "SELECT id FROM task WHERE updated_at >= ? ORDER BY updated_at LIMIT 201", 1),
    (
        Topic::Instance,
        "SELECT id FROM instance WHERE updated_at >= ? OR deleted_at >= ? OR last_health_at >= ? ORDER BY id LIMIT 201",
        3,
    ),
    (
        Topic::Guardian,
        "SELECT dimension AS id FROM guardian_event WHERE created_at >= ? GROUP BY dimension ORDER BY dimension LIMIT 201",
        1,
    ),
    (
        Topic::Metric,
        "SELECT server_id AS id FROM server_metric WHERE created_at >= ? GROUP BY server_id ORDER BY server_id LIMIT 201",
        1,
    ),
    (
        Topic::Alert,
        "SELECT id FROM alert WHERE created_at >= ? OR acked_at >= ? OR resolved_at >= ? ORDER BY id LIMIT 201",
        3,
    ),
    (
        Topic::Repair,
        "SELECT instance_id AS id FROM repair WHERE updated_at >= ? GROUP BY instance_id ORDER BY instance_id LIMIT 201",
        1,
    ),
    (
        Topic::Job,
        "SELECT job_name AS id FROM job_run WHERE updated_at >= ? AND job_name <> 'queueWorker' GROUP BY job_name \
         ORDER BY job_name LIMIT 201",
        1,
    ),
];

/// The changes as notices; `None` if there are too many to report.
pub async fn since(db: &Db, at: Timestamp) -> Result<Option<Vec<Notice>>> {
    let mut all = vec![];
    for (topic, sql, times) in KINDS {
        let args = (0..*times).flat_map(|_| args![at]).collect();
        let changed: Vec<Changed> = db.all(sql, args).await?;
        if changed.len() > MOST {
            return Ok(None);
        }
        all.extend(changed.into_iter().map(|c| Notice::new(*topic, c.id)));
    }
    Ok(Some(all))
}
