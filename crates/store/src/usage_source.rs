//! How far the log of a foreign gateway was read, and which of its ids are still missing. Both are written in the
//! transaction that writes the rows, so that each row is read once even if a process dies in between.

use std::ops::RangeInclusive;
use std::time::Duration;

use jiff::Timestamp;

use crate::db::{Lock, Value};
use crate::foreign::Position;
use crate::{Db, Dialect, Error, Result, Tx, args, record};

record! {
    struct Row { position: String, updated_at: Timestamp }
}

record! {
    struct GapRow { first_id: i64, last_id: i64, created_at: Timestamp }
}

/// The position of a reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    pub position: Position,
    /// Increases with every step, so it shows whether another process has read further.
    pub updated_at: Timestamp,
}

/// Ids that did not exist yet when a later one did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    pub ids: RangeInclusive<i64>,
    pub seen_at: Timestamp,
}

/// The position of this log's reader. Creates it at `start`, with the time 1970, if there is none.
pub async fn find(db: &Db, name: &str, start: &Position) -> Result<Source> {
    if let Some(found) = look(db, name).await? {
        return Ok(found);
    }
    let sql = "INSERT INTO usage_source (name, position, updated_at) VALUES (?, ?, ?) ON CONFLICT (name) DO NOTHING";
    db.run(sql, args![name, start.to_string(), Timestamp::UNIX_EPOCH]).await?;
    look(db, name).await?.ok_or(Error::NotFound)
}

pub async fn look(db: &Db, name: &str) -> Result<Option<Source>> {
    let sql = "SELECT position, updated_at FROM usage_source WHERE name = ?";
    let row: Option<Row> = db.first(sql, args![name]).await?;
    row.map(|row| Ok(Source { position: row.position.parse()?, updated_at: row.updated_at })).transpose()
}

/// Moves the reader from `from` to `to`. False if another process has moved it; then this transaction's rows must not
/// be written.
pub async fn step(tx: &mut Tx, name: &str, from: &Source, to: &Source) -> Result<bool> {
    let sql = "UPDATE usage_source SET position = ?, updated_at = ? WHERE name = ? AND position = ? AND updated_at = ?";
    let args = args![to.position.to_string(), to.updated_at, name, from.position.to_string(), from.updated_at];
    Ok(tx.run(sql, args).await? == 1)
}

/// Records that rows were read.
pub async fn set_moved(tx: &mut Tx, name: &str, at: Timestamp) -> Result<()> {
    tx.run("UPDATE usage_source SET moved_at = ? WHERE name = ?", args![at, name]).await.map(drop)
}

record! { struct Moved { moved_at: Timestamp } }

/// When rows were last read; `None` if this log was never looked at.
pub async fn moved_at(db: &Db, name: &str) -> Result<Option<Timestamp>> {
    let moved: Option<Moved> = db.first("SELECT moved_at FROM usage_source WHERE name = ?", args![name]).await?;
    Ok(moved.map(|moved| moved.moved_at))
}

/// The missing ids, lowest first.
pub async fn gaps(db: &Db, name: &str) -> Result<Vec<Gap>> {
    let sql = "SELECT first_id, last_id, created_at FROM usage_gap WHERE source = ? ORDER BY first_id";
    let rows: Vec<GapRow> = db.all(sql, args![name]).await?;
    Ok(rows.into_iter().map(|row| Gap { ids: row.first_id..=row.last_id, seen_at: row.created_at }).collect())
}

/// Replaces some gaps by what is left of them, and adds new ones.
pub async fn change_gaps(tx: &mut Tx, name: &str, gone: &[Gap], new: &[Gap]) -> Result<()> {
    for some in gone.chunks(500) {
        let sql =
            format!("DELETE FROM usage_gap WHERE source = ? AND first_id IN ({})", vec!["?"; some.len()].join(", "));
        let ids = some.iter().map(|gap| Value::from(*gap.ids.start()));
        tx.run(&sql, args![name].into_iter().chain(ids).collect()).await?;
    }
    for some in new.chunks(500) {
        let sql = format!(
            "INSERT INTO usage_gap (source, first_id, last_id, created_at) VALUES {}",
            vec!["(?, ?, ?, ?)"; some.len()].join(", ")
        );
        let args = some.iter().flat_map(|gap| args![name, *gap.ids.start(), *gap.ids.end(), gap.seen_at]).collect();
        tx.run(&sql, args).await?;
    }
    Ok(())
}

record! {
    struct Known { request_id: String, created_at: Timestamp }
}

/// The ids and times of all requests in our log since an instant.
pub async fn requests_since(db: &Db, since: Timestamp) -> Result<Vec<(String, Timestamp)>> {
    let sql = "SELECT request_id, created_at FROM request_log WHERE created_at >= ?";
    let rows: Vec<Known> = db.all(sql, args![since]).await?;
    Ok(rows.into_iter().map(|row| (row.request_id, row.created_at)).collect())
}

/// The lock for reading the foreign log, which one process holds at a time. It is released when this value is dropped.
pub struct Turn(#[expect(dead_code, reason = "dropping it ends the turn")] Option<Tx>);

/// How long the lock may be held: a frozen process, or one that re-reads a very long time, loses it then.
const LONGEST_TURN: Duration = Duration::from_secs(120);

/// Waits for the lock. On SQLite there is none: its one writer must not be blocked while another database is read, and
/// of two readers `step` lets only one continue.
pub async fn turn(db: &Db) -> Result<Turn> {
    if db.dialect() == Dialect::Sqlite {
        return Ok(Turn(None));
    }
    let mut tx = db.begin().await?;
    // Another process may hold the lock for this long.
    tx.may_take(LONGEST_TURN + Duration::from_secs(10)).await?;
    tx.lock(Lock::UsageReader).await?;
    tx.may_idle(LONGEST_TURN).await?;
    Ok(Turn(Some(tx)))
}
