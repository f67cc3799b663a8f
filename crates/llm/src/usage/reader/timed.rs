//! Reads logs whose rows have no id, only times. A row has the time at which its request began, but becomes visible
//! when the request has ended. So each pull also reads a little way back, and skips rows whose request is already in
//! our log.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::{Duration, Instant};

use base::{Error, Result};
use jiff::{SignedDuration, Timestamp};
use store::foreign::{ForeignLog, ForeignRow, Position};
use store::usage_source::{self, Source};

use super::{BATCH, Inner, Pull};

/// How far back every pull reads, and how far back once in a while: requests take minutes or longer.
const CLOSE: SignedDuration = SignedDuration::from_mins(1);
const FAR: SignedDuration = SignedDuration::from_hours(1);
const FAR_EVERY: Duration = Duration::from_secs(30);

/// The requests that are already in our log, as far back as a pull reads.
#[derive(Default)]
pub struct Memory {
    /// Hash of the request id → when the request ended.
    requests: HashMap<u128, Timestamp>,
    /// The step for which `requests` is complete. If another process wrote a later one, `requests` is read again from
    /// our log.
    step: Option<Source>,
    looked_far: Option<Instant>,
}

pub async fn pull(reader: &Inner, log: &ForeignLog, pull: Pull) -> Result<()> {
    let mut memory = reader.timed.lock().await;
    let mut source = reader.source(log).await?;
    let mut any = false;
    loop {
        memory.learn(reader, &source).await?;
        let rows = log.after(&source.position, BATCH).await?;
        let Some(last) = rows.last() else { break };
        let (to, more) = (last.position.clone(), rows.len() >= BATCH);
        any = true;
        source = memory.step(reader, log, &source, to, rows, pull).await?;
        if !more {
            break;
        }
    }
    let far = memory.looked_far.is_none_or(|at| reader.clock.since(at) >= FAR_EVERY);
    let mut at = source.position.before(if far { FAR } else { CLOSE });
    loop {
        memory.learn(reader, &source).await?;
        let mut rows = log.after(&at, BATCH).await?;
        let Some(last) = rows.last() else { break };
        at = last.position.clone();
        let more = rows.len() >= BATCH;
        rows.retain(|row| !memory.knows(row));
        if !rows.is_empty() {
            any = true;
            source = memory.step(reader, log, &source, source.position.clone(), rows, pull).await?;
        }
        if !more {
            break;
        }
    }
    if far {
        memory.looked_far = Some(reader.clock.instant());
    }
    if !any && let Some(signed) = reader.sign(&source, pull).await? {
        memory.step = Some(signed);
    }
    Ok(())
}

impl Memory {
    fn knows(&self, row: &ForeignRow) -> bool {
        self.requests.contains_key(&hash(&row.request_id))
    }

    /// Reads `requests` again if another process has written since.
    async fn learn(&mut self, reader: &Inner, source: &Source) -> Result<()> {
        if self.step.as_ref() == Some(source) {
            return Ok(());
        }
        self.requests.clear();
        // If nothing was ever read, the rows in our log are not from this source.
        if time(&source.position)? > Timestamp::UNIX_EPOCH {
            let since = time(&source.position.before(FAR))?;
            for (request_id, at) in usage_source::requests_since(&reader.db, since).await? {
                self.requests.insert(hash(&request_id), at);
            }
        }
        self.step = Some(source.clone());
        Ok(())
    }

    /// Writes the rows that are not in our log yet. Returns where to continue.
    async fn step(
        &mut self,
        reader: &Inner,
        log: &ForeignLog,
        from: &Source,
        to: Position,
        mut rows: Vec<ForeignRow>,
        pull: Pull,
    ) -> Result<Source> {
        rows.retain(|row| !self.knows(row));
        let new: Vec<_> = rows.iter().map(|row| (hash(&row.request_id), row.created_at)).collect();
        let Some(source) = reader.step(from, to, rows, pull, (&[], &[])).await? else {
            self.step = None;
            return reader.source(log).await;
        };
        self.requests.extend(new);
        let oldest = time(&source.position.before(FAR))?;
        self.requests.retain(|_, ended| *ended >= oldest);
        self.step = Some(source.clone());
        Ok(source)
    }
}

/// A 128-bit hash, in practice unique. The ids themselves would take megabytes.
fn hash(request_id: &str) -> u128 {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        salt.hash(&mut hasher);
        request_id.hash(&mut hasher);
        u128::from(hasher.finish())
    };
    half(1) << 64 | half(2)
}

fn time(position: &Position) -> Result<Timestamp> {
    match position {
        Position::Time { at, .. } => Ok(*at),
        Position::Id(_) => Err(Error::internal(format_args!("{position} is no time"))),
    }
}
