//! Which tasks may run now: the order in which the tasks of an instance follow each other is decided here, in `FREE`.

use std::ops::RangeInclusive;

use base::id::{InstanceId, ServerId};
use jiff::{SignedDuration, Timestamp};

use super::{BATCH, Priority, Task, columns};
use crate::db::{Number, Value};
use crate::{Conn, Db, Result, Tx, args, record};

/// The SQL condition that nothing blocks a task `t`. It is blocked by a task that it must come after, by a running task
/// of its instance, and by a cleaning that is not done. An unfinished upgrade or change of the cell that has stopped
/// the assistant blocks it too, because a rollback would lose what `t` writes.
const FREE: &str = "(t.after_id IS NULL OR NOT EXISTS (SELECT 1 FROM task a WHERE a.id = t.after_id AND a.status NOT IN ('done', 'dead'))) \
    AND NOT EXISTS (SELECT 1 FROM task r WHERE r.instance_id = t.instance_id AND r.status = 'processing') \
    AND (t.type IN ('clean_instance', 'retire_instance') OR NOT EXISTS (SELECT 1 FROM task c \
         WHERE c.instance_id = t.instance_id AND c.type = 'clean_instance' AND c.status IN ('pending', 'processing', 'failed', 'dead') \
         AND NOT EXISTS (SELECT 1 FROM task d WHERE d.instance_id = c.instance_id AND d.type = c.type AND d.status = 'done' AND d.id > c.id))) \
    AND (t.type IN ('clean_instance', 'retire_instance', 'restart_instance', 'repair_instance') \
         OR NOT EXISTS (SELECT 1 FROM reconcile o JOIN task u ON u.id = o.operation \
         WHERE o.instance_id = t.instance_id AND u.id <> t.id AND COALESCE(u.status, '') IN ('pending', 'failed')))";

/// The SQL condition that a task `t` is due. A pending task is due at once, whatever the clock said when it was
/// written. No retry waits for an hour, so a later time was written by a clock that was ahead, and is ignored. COALESCE
/// keeps PostgreSQL from scanning an index of all waiting tasks here, and again for each one in `FREE`: 10,000 tasks
/// took 8 s, and now take 80 ms.
const DUE: &str =
    "(COALESCE(t.status, '') = 'pending' OR COALESCE(t.next_attempt_at, 0) <= ? OR COALESCE(t.next_attempt_at, 0) > ?)";
const LONGEST_WAIT: SignedDuration = SignedDuration::from_hours(1);

/// The due tasks that a worker asks for.
#[derive(Clone, Copy, Debug)]
pub struct Due<'a> {
    pub types: &'a [&'a str],
    /// From the highest to the lowest.
    pub priorities: &'a RangeInclusive<Priority>,
    /// Servers without a free slot. Only tasks of priority `Security` ignore this.
    pub full: &'a [ServerId],
    pub limit: usize,
}

/// Due tasks that may run now, at most one per instance, higher priorities first, locked until the transaction ends.
///
/// A task waits while another of its instance runs, and until its instance is cleaned of the last holder's traces: a
/// dead cleaning blocks it until that cleaning, or a later one, is done. It does not begin during an upgrade or a
/// change of the cell.
pub async fn lock_due(tx: &mut Tx, asked: Due<'_>, now: Timestamp) -> Result<Vec<Task>> {
    if asked.types.is_empty() {
        return Ok(vec![]);
    }
    let marks = |n: usize| vec!["?"; n].join(", ");
    let lock = tx.dialect().skip_locked_of("t");
    let has_room = match asked.full.len() {
        0 => String::new(),
        // Security tasks do not wait for a free slot of the server.
        n => format!(" AND (t.priority = 0 OR t.server_id IS NULL OR t.server_id NOT IN ({}))", marks(n)),
    };
    let sql = format!(
        "SELECT {} FROM task t WHERE t.status IN ('pending', 'failed') AND t.priority >= ? AND t.priority <= ? AND {DUE} \
         AND t.type IN ({}){has_room} AND {FREE} ORDER BY t.priority, t.next_attempt_at, t.id LIMIT ?{lock}",
        columns(),
        marks(asked.types.len())
    );
    let mut args = args![*asked.priorities.start(), *asked.priorities.end(), now, now + LONGEST_WAIT];
    args.extend(asked.types.iter().map(|t| Value::from(*t)));
    args.extend(asked.full.iter().map(Value::from));
    args.extend(args![asked.limit]);
    let mut due: Vec<Task> = tx.all(&sql, args).await?;
    let mut seen = std::collections::HashSet::new();
    due.retain(|task| task.instance_id.as_ref().is_none_or(|instance| seen.insert(instance.clone())));
    Ok(due)
}

record! {
    pub struct Load {
        pub server_id: ServerId,
        pub n: i64,
    }
}

/// The number of running tasks per server, in all processes.
pub async fn running_by_server(tx: &mut Tx) -> Result<Vec<Load>> {
    let sql = "SELECT server_id, COUNT(*) AS n FROM task WHERE status = 'processing' AND server_id IS NOT NULL GROUP BY server_id";
    tx.all(sql, args![]).await
}

record! {
    struct Busy { instance_id: InstanceId }
}

/// The SQL condition that a task `t` runs on its instance or is about to. A task that a cleaning blocks is not about to
/// run: a dead cleaning may stay dead for days.
fn at_work() -> String {
    format!("t.status IN ('pending', 'processing') AND (t.status = 'processing' OR ({FREE}))")
}

/// The instances on which a task runs or is about to.
pub async fn busy_instances(db: &Db) -> Result<Vec<InstanceId>> {
    let sql = format!("SELECT DISTINCT t.instance_id FROM task t WHERE t.instance_id IS NOT NULL AND {}", at_work());
    let rows: Vec<Busy> = db.all(&sql, args![]).await?;
    Ok(rows.into_iter().map(|row| row.instance_id).collect())
}

/// Those of `instances` on which a task runs or is about to.
pub async fn busy_among(tx: &mut Tx, instances: &[InstanceId]) -> Result<Vec<InstanceId>> {
    let mut all = vec![];
    for instances in instances.chunks(BATCH) {
        let marks = vec!["?"; instances.len()].join(", ");
        let sql =
            format!("SELECT DISTINCT t.instance_id FROM task t WHERE t.instance_id IN ({marks}) AND {}", at_work());
        let rows: Vec<Busy> = tx.all(&sql, instances.iter().map(Value::from).collect()).await?;
        all.extend(rows.into_iter().map(|row| row.instance_id));
    }
    Ok(all)
}

/// Whether a task runs on an instance or is about to.
pub async fn is_busy(tx: &mut Tx, instance: &InstanceId) -> Result<bool> {
    let sql = format!("SELECT COUNT(*) AS n FROM task t WHERE t.instance_id = ? AND {}", at_work());
    let number: Number = Conn::from(tx).one(&sql, args![instance.as_str()]).await?;
    Ok(number.n > 0)
}

/// How many tasks were due before this instant and nothing blocks, but no worker has taken.
pub async fn late(db: &Db, types: &[&str], before: Timestamp) -> Result<i64> {
    if types.is_empty() {
        return Ok(0);
    }
    let marks = vec!["?"; types.len()].join(", ");
    let sql = format!(
        "SELECT COUNT(*) AS n FROM task t WHERE t.status IN ('pending', 'failed') AND t.next_attempt_at < ? AND t.type IN ({marks}) AND {FREE}"
    );
    let mut args = args![before];
    args.extend(types.iter().map(|t| Value::from(*t)));
    let number: crate::db::Number = Conn::from(db).one(&sql, args).await?;
    Ok(number.n)
}

/// When the next waiting task becomes due, for a worker that has nothing to do.
pub async fn next_due(db: &Db, types: &[&str], now: Timestamp) -> Result<Option<Timestamp>> {
    record! { struct Due { due: Option<Timestamp> } }
    if types.is_empty() {
        return Ok(None);
    }
    let marks = vec!["?"; types.len()].join(", ");
    let sql = format!(
        "SELECT MIN(next_attempt_at) AS due FROM task WHERE status IN ('pending', 'failed') AND next_attempt_at > ? AND type IN ({marks})"
    );
    let mut args = args![now];
    args.extend(types.iter().map(|t| Value::from(*t)));
    let due: Due = Conn::from(db).one(&sql, args).await?;
    Ok(due.due)
}

record! {
    /// What an open task works on.
    pub struct Target {
        pub instance_id: Option<InstanceId>,
        pub server_id: Option<ServerId>,
        /// Whether it runs or is about to; otherwise something blocks it, or it waits for its next attempt.
        pub is_at_work: bool,
    }
}

/// What the tasks of this type work on that are not over.
pub async fn open_of(db: &Db, kind: &str) -> Result<Vec<Target>> {
    let sql = format!(
        "SELECT t.instance_id, t.server_id, CASE WHEN {} THEN 1 ELSE 0 END AS is_at_work FROM task t \
         WHERE t.type = ? AND t.status IN ('pending', 'processing', 'failed')",
        at_work()
    );
    db.all(&sql, args![kind]).await
}
