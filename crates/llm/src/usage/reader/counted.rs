//! Reads logs whose rows have ids. An id is assigned before its row becomes visible, so a row can appear below one that
//! was already read. Ids that are missing next to a young row are stored as gaps and queried again.

use std::ops::RangeInclusive;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use base::{Error, Kind, Result};
use jiff::{SignedDuration, Timestamp};
use store::foreign::{ForeignLog, ForeignRow, Position};
use store::usage_source::{self, Gap, Source};

use super::{BATCH, Inner, Pull, lock};

/// How long a missing id is queried, and how young the row after it must be.
const ASKED_FOR: SignedDuration = SignedDuration::from_mins(10);
/// Beyond `MANY` gaps they are queried less often; beyond `MOST` the oldest are dropped.
const MANY: usize = 500;
const MOST: usize = 20_000;
const ASK_MANY_EVERY: Duration = Duration::from_secs(10);
/// How often a log without new rows is checked for ids that start again at 1.
const LOOK_AT_NEWEST: Duration = Duration::from_secs(60);
/// A row that is younger than this was just written, whatever its id.
const JUST_NOW: SignedDuration = SignedDuration::from_mins(2);

#[derive(Default)]
pub struct Memory {
    asked_at: Mutex<Option<Instant>>,
    looked_at: Mutex<Option<Instant>>,
}

pub async fn pull(reader: &Inner, log: &ForeignLog, pull: Pull) -> Result<()> {
    let mut source = reader.source(log).await?;
    let mut any = false;
    loop {
        let rows = log.after(&source.position, BATCH).await?;
        if rows.is_empty() {
            break;
        }
        any = true;
        let last = rows.len() < BATCH;
        let (to, gaps) = follow(number(&source.position)?, &rows, reader.clock.now())?;
        source = match reader.step(&source, Position::Id(to), rows, pull, (&[], &gaps)).await? {
            Some(source) => source,
            // Another process wrote these rows: continue where it stopped.
            None => reader.source(log).await?,
        };
        if last {
            break;
        }
    }
    ask_again(reader, log, pull, &mut source).await?;
    if !any {
        began_anew(reader, log, &source).await?;
        reader.sign(&source, pull).await?;
    }
    Ok(())
}

/// The last id of the rows, and the gaps next to young rows.
fn follow(mut at: i64, rows: &[ForeignRow], now: Timestamp) -> Result<(i64, Vec<Gap>)> {
    let mut gaps = vec![];
    for row in rows {
        let id = number(&row.position)?;
        // Before an old row no id is late: the row was deleted, or never written.
        if id > at + 1 && now.duration_since(row.created_at) < ASKED_FOR {
            gaps.push(Gap { ids: at + 1..=id - 1, seen_at: now });
        }
        at = id;
    }
    Ok((at, gaps))
}

async fn ask_again(reader: &Inner, log: &ForeignLog, pull: Pull, source: &mut Source) -> Result<()> {
    loop {
        let gaps = usage_source::gaps(&reader.db, reader.kind.name).await?;
        let now = reader.clock.now();
        let is_over = |gap: &Gap| now.duration_since(gap.seen_at) >= ASKED_FOR;
        let (mut over, mut open): (Vec<_>, Vec<_>) = gaps.into_iter().partition(is_over);
        if open.len() > MOST {
            // This happens if, for example, the gateway uses only every second id. Drop the oldest gaps; the nightly
            // comparison detects lost rows.
            tracing::warn!(gaps = open.len(), "more ids are missing than are remembered");
            over.extend(open.drain(..open.len() - MOST));
        }
        let wait = open.len() > MANY && since(reader, &reader.counted.asked_at).is_some_and(|age| age < ASK_MANY_EVERY);
        let mut found = vec![];
        if !open.is_empty() && !wait {
            *lock(&reader.counted.asked_at) = Some(reader.clock.instant());
            let ids: Vec<_> = open.iter().map(|gap| gap.ids.clone()).collect();
            found = log.between(&ids, BATCH).await?;
        }
        if found.is_empty() && over.is_empty() {
            return Ok(());
        }
        let more = found.len() >= BATCH;
        let mut ids = found.iter().map(|row| number(&row.position)).collect::<Result<Vec<_>>>()?;
        ids.sort_unstable();
        let (filled, left) = fill(&open, &ids);
        over.extend(filled);
        match reader.step(source, source.position.clone(), found, pull, (&over, &left)).await? {
            Some(next) => *source = next,
            None => *source = reader.source(log).await?,
        }
        if !more {
            return Ok(());
        }
    }
}

/// The gaps in which ids were found, and what is left of these gaps.
fn fill(gaps: &[Gap], found: &[i64]) -> (Vec<Gap>, Vec<Gap>) {
    let (mut filled, mut left) = (vec![], vec![]);
    for gap in gaps {
        let from = found.partition_point(|id| id < gap.ids.start());
        let to = found.partition_point(|id| id <= gap.ids.end());
        if from == to {
            continue;
        }
        filled.push(gap.clone());
        let mut start = *gap.ids.start();
        let mut leave = |ids: RangeInclusive<i64>| {
            if !ids.is_empty() {
                left.push(Gap { ids, seen_at: gap.seen_at });
            }
        };
        for id in &found[from..to] {
            leave(start..=id - 1);
            start = id + 1;
        }
        leave(start..=*gap.ids.end());
    }
    (filled, left)
}

/// Detects a log that was emptied and starts again at id 1. It would never reach our position, so report an error
/// instead of waiting.
async fn began_anew(reader: &Inner, log: &ForeignLog, source: &Source) -> Result<()> {
    if since(reader, &reader.counted.looked_at).is_some_and(|age| age < LOOK_AT_NEWEST) {
        return Ok(());
    }
    let Some(Position::Id(newest)) = log.newest().await? else { return Ok(()) };
    let read = number(&source.position)?;
    if newest < read {
        let row = log.between(&[newest..=newest], 1).await?.pop();
        let young = |row: &ForeignRow| reader.clock.now().duration_since(row.created_at) < JUST_NOW;
        if row.as_ref().is_some_and(young) {
            return Err(Error::from(Kind::Unavailable).with_operator(format_args!(
                "the log counts anew: it writes id {newest}, and {read} was read already; \
                 `usage_source` and `usage_gap` hold where to go on"
            )));
        }
    }
    *lock(&reader.counted.looked_at) = Some(reader.clock.instant());
    Ok(())
}

fn since(reader: &Inner, at: &Mutex<Option<Instant>>) -> Option<Duration> {
    lock(at).map(|at| reader.clock.since(at))
}

fn number(position: &Position) -> Result<i64> {
    position.id().ok_or_else(|| Error::internal(format_args!("{position} is no id")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: i64, created_at: Timestamp) -> ForeignRow {
        ForeignRow {
            position: Position::Id(id),
            request_id: String::new(),
            token_name: String::new(),
            model: String::new(),
            provider: String::new(),
            kind: store::request_log::RequestType::SUCCESS,
            is_stream: false,
            prompt_tokens: 0,
            completion_tokens: 0,
            quota: 0,
            quota_rest: 0,
            duration_ms: 0,
            error_message: String::new(),
            detail: Default::default(),
            created_at,
        }
    }

    #[test]
    fn what_is_missing_beside_a_young_row_is_remembered() {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let old = now - SignedDuration::from_mins(11);
        let rows = [row(3, old), row(5, old), row(8, now), row(9, now), row(11, now)];
        let (at, gaps) = follow(0, &rows, now).unwrap();
        assert_eq!(at, 11);
        let ids: Vec<_> = gaps.into_iter().map(|gap| gap.ids).collect();
        assert_eq!(ids, [6..=7, 10..=10]);
    }

    #[test]
    fn a_gap_is_filled_bit_by_bit() {
        let gap = |ids| Gap { ids, seen_at: Timestamp::UNIX_EPOCH };
        let gaps = [gap(1..=1), gap(5..=9), gap(20..=29)];
        let ids = |gaps: Vec<Gap>| gaps.into_iter().map(|gap| gap.ids).collect::<Vec<_>>();
        let (filled, left) = fill(&gaps, &[1, 5, 7, 29]);
        assert_eq!(ids(filled), [1..=1, 5..=9, 20..=29]);
        assert_eq!(ids(left), [6..=6, 8..=9, 20..=28]);
        let (filled, left) = fill(&gaps, &[2, 10, 30]);
        assert!(filled.is_empty() && left.is_empty(), "numbers of no gap");
    }
}
