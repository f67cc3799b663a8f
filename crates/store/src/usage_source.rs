//! How far the log of a foreign gateway was read, and which of its ids are still missing. Both are written in the
//! transaction that writes the rows: what was read is read once, whatever dies in between.

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

/// Where a reader stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    pub position: Position,
    /// Later with every step, so it tells whether anybody else has gone on.
    pub updated_at: Timestamp,
}

/// Ids that were not there when the next one was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    pub ids: RangeInclusive<i64>,
    pub seen_at: Timestamp,
}

/// Where the reader of this log stands; at `start`, and never yet, when there was none.
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

/// Goes on from where `from` says, if nobody else has: then, and only then, the transaction's rows may be written.
pub async fn step(tx: &mut Tx, name: &str, from: &Source, to: &Source) -> Result<bool> {
    let sql = "UPDATE usage_source SET position = ?, updated_at = ? WHERE name = ? AND position = ? AND updated_at = ?";
    let args = args![to.position.to_string(), to.updated_at, name, from.position.to_string(), from.updated_at];
    Ok(tx.run(sql, args).await? == 1)
}

/// The missing ids, lowest first.
pub async fn gaps(db: &Db, name: &str) -> Result<Vec<Gap>> {
    let sql = "SELECT first_id, last_id, created_at FROM usage_gap WHERE source = ? ORDER BY first_id";
    let rows: Vec<GapRow> = db.all(sql, args![name]).await?;
    Ok(rows.into_iter().map(|row| Gap { ids: row.first_id..=row.last_id, seen_at: row.created_at }).collect())
}

/// Replaces some gaps by others: what is left of them, and new ones.
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

/// The ids of all requests in our log that ended from an instant on, and when they did.
pub async fn requests_since(db: &Db, since: Timestamp) -> Result<Vec<(String, Timestamp)>> {
    let sql = "SELECT request_id, created_at FROM request_log WHERE created_at >= ?";
    let rows: Vec<Known> = db.all(sql, args![since]).await?;
    Ok(rows.into_iter().map(|row| (row.request_id, row.created_at)).collect())
}

/// The turn to read, which one process has at a time. It ends with the value.
pub struct Turn(#[expect(dead_code, reason = "dropping it ends the turn")] Option<Tx>);

/// How long one turn lasts at most: a process that is frozen in it has lost it then, and so has a very long look back.
const LONGEST_TURN: Duration = Duration::from_secs(120);

/// Waits for the turn. On SQLite nobody waits: its one writer must not be held while another database is read, and
/// `step` lets one go on where there are two.
pub async fn turn(db: &Db) -> Result<Turn> {
    if db.dialect() == Dialect::Sqlite {
        return Ok(Turn(None));
    }
    let mut tx = db.begin().await?;
    // Whoever has the turn may have it for so long.
    tx.may_take(LONGEST_TURN + Duration::from_secs(10)).await?;
    tx.lock(Lock::UsageReader).await?;
    tx.may_idle(LONGEST_TURN).await?;
    Ok(Turn(Some(tx)))
}
