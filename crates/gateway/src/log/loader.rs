//! Loads segments into the table `request_log`, in batches. One transaction writes a batch's rows, subtracts their use
//! from the quota grants, and stores how far the segment is read. So each line is loaded exactly once, even after a
//! crash.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use base::{Clock, Error, Result, Zone};
use jiff::Timestamp;
use store::{Db, Tx, answer_owner, log_segment, quota_grant, request_log};

use super::record::{self, Line};
use super::segment::{self, Part};

/// Lines per transaction, and bytes that are read at once.
const BATCH: usize = 500;
const PIECE: usize = 256 * 1024;

#[derive(Clone)]
pub struct Loader {
    pub db: Db,
    pub clock: Clock,
    pub zone: Zone,
    /// The file for lines that the database refuses for their values.
    pub rejected: PathBuf,
}

/// How far a segment is read.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    pub part: Part,
    /// `None` before the first load and after every failure: then it is read from the database, since the last
    /// transaction may or may not have committed.
    pub loaded: Option<u64>,
}

impl Progress {
    pub fn new(part: Part) -> Progress {
        Progress { part, loaded: None }
    }
}

/// The name of the loader's heartbeat.
pub(super) const LOOP: &str = "gateway_log";

/// The result of writing lines.
enum Written {
    All,
    /// They were loaded before: the segment is read up to here.
    Before(u64),
}

/// Whose segments are read.
#[derive(Clone, Copy)]
pub struct Of<'a> {
    pub replica: &'a str,
    pub folder: &'a Path,
}

impl Of<'_> {
    fn id(&self, part: Part) -> String {
        format!("{}/{}", self.replica, part.number)
    }
}

impl Loader {
    /// Loads a segment up to its length.
    pub async fn load(&self, of: Of<'_>, progress: &mut Progress) -> Result<()> {
        let id = of.id(progress.part);
        let mut at = match progress.loaded {
            Some(at) => at,
            None => known(log_segment::loaded(&self.db, &id).await?),
        };
        progress.loaded = None;
        while at < progress.part.length {
            let (path, length) = (segment::path(of.folder, progress.part.number), progress.part.length);
            // File reads would block the threads that answer requests.
            let read = tokio::task::spawn_blocking(move || read_piece(&path, at, length));
            let piece = match read.await.map_err(Error::internal)? {
                // The file was loaded and removed before; that load was interrupted before it deleted the progress.
                Err(e) if e.kind() == ErrorKind::NotFound => break,
                other => other.map_err(Error::internal)?,
            };
            if piece.read == 0 {
                break;
            }
            at = match self.write(of, &id, at, piece.requests).await? {
                Written::All => at + piece.read as u64,
                Written::Before(known) => known,
            };
            if piece.damaged > 0 {
                metrics::counter!("tidepool_gateway_log_damaged_total").increment(piece.damaged as u64);
            }
        }
        progress.loaded = Some(at);
        Ok(())
    }

    /// Loads a segment that is closed, and removes it.
    pub async fn finish(&self, of: Of<'_>, progress: &mut Progress) -> Result<()> {
        self.load(of, progress).await?;
        let torn = progress.part.length.saturating_sub(progress.loaded.unwrap_or_default());
        if torn > 0 {
            tracing::warn!(replica = of.replica, segment = progress.part.number, torn, "the last line is torn");
            metrics::counter!("tidepool_gateway_log_damaged_total").increment(1);
        }
        // Remove the file before its progress: a file without progress would be loaded a second time.
        match std::fs::remove_file(segment::path(of.folder, progress.part.number)) {
            Err(e) if e.kind() != ErrorKind::NotFound => Err(Error::internal(e)),
            _ => Ok(log_segment::delete(&self.db, &of.id(progress.part)).await?),
        }
    }

    /// Loads all segments of a process that writes no more, and deletes its quota grants.
    pub async fn inherit(&self, of: Of<'_>) -> Result<()> {
        for part in segment::list(of.folder).map_err(Error::internal)? {
            self.finish(of, &mut Progress::new(part)).await?;
        }
        quota_grant::forget(&self.db, of.replica).await?;
        log_segment::forget(&self.db, of.replica).await?;
        Ok(())
    }

    /// Writes the lines of a piece that begins at `from`. If the database refuses a value, the lines are split in
    /// halves until the bad line is alone, so that it does not block the others.
    async fn write(&self, of: Of<'_>, id: &str, from: u64, lines: Vec<Line>) -> Result<Written> {
        let mut waiting = vec![lines];
        waiting.retain(|lines| !lines.is_empty());
        while let Some(mut lines) = waiting.pop() {
            match self.write_batch(of, id, from, &lines).await {
                Ok(Written::All) => {}
                Ok(before) => return Ok(before),
                Err(error) if error.is_about_values() && lines.len() > 1 => {
                    let second = lines.split_off(lines.len() / 2);
                    waiting.extend([second, lines]);
                }
                Err(error) if error.is_about_values() => {
                    self.reject(&lines, &error)?;
                    let mut tx = self.db.begin().await?;
                    note(&mut tx, of, id, from, &lines, self.clock.now()).await?;
                    tx.commit().await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Written::All)
    }

    async fn write_batch(&self, of: Of<'_>, id: &str, from: u64, lines: &[Line]) -> store::Result<Written> {
        let now = self.clock.now();
        let mut used: BTreeMap<&str, i64> = BTreeMap::new();
        for (subject, amount) in lines.iter().flat_map(|line| &line.holds) {
            *used.entry(subject).or_default() += amount;
        }
        let requests: Vec<_> = lines.iter().map(|line| line.request.clone()).collect();
        let mut tx = self.db.begin().await?;
        // An earlier transaction, of this process or of a dead one, may still be committing although nobody waits for
        // it. The lock waits for it; only then is it known how far the segment is read.
        tx.lock_name(id).await?;
        let known = known(log_segment::loaded(&mut tx, id).await?);
        if known > from + lines.first().map_or(0, |line| line.start as u64) {
            return Ok(Written::Before(known));
        }
        request_log::add_exact(&mut tx, &self.zone, &requests).await?;
        for answer in lines.iter().filter_map(|line| line.answer.as_ref()) {
            answer_owner::insert(&mut tx, answer).await?;
        }
        // With this lock, a decision about a quota sees the rows and the grant either both before or both after this
        // transaction. It is taken late, so that the decision waits for the commit only, not for the inserts.
        for subject in used.keys() {
            tx.lock_name(subject).await?;
        }
        for (subject, amount) in used {
            if amount != 0 {
                quota_grant::take(&mut tx, subject, of.replica, amount, now).await?;
            }
        }
        note(&mut tx, of, id, from, lines, now).await?;
        tx.commit().await?;
        // Beat after each batch: a loader that works through a long backlog is alive.
        self.db.heartbeats.beat(LOOP);
        Ok(Written::All)
    }

    /// Writes refused lines to the file `rejected`, so that they are not lost.
    fn reject(&self, lines: &[Line], why: &store::Error) -> Result<()> {
        let mut file = File::options().create(true).append(true).mode(0o600).open(&self.rejected);
        for line in lines {
            tracing::error!(request = line.request.request.request_id, %why, "a request cannot be written into the log");
            let write = file.as_mut().map_err(|e| Error::internal(&*e))?;
            writeln!(write, "{:?}", line.request).map_err(Error::internal)?;
        }
        Ok(())
    }
}

fn known(loaded: i64) -> u64 {
    u64::try_from(loaded).unwrap_or_default()
}

/// Stores that the segment is read to the end of these lines.
async fn note(tx: &mut Tx, of: Of<'_>, id: &str, from: u64, lines: &[Line], at: Timestamp) -> store::Result<()> {
    let end = from + lines.last().map_or(0, |line| line.end as u64);
    log_segment::set(tx, id, of.replica, i64::try_from(end).unwrap_or(i64::MAX), at).await
}

fn read_piece(path: &Path, from: u64, to: u64) -> std::io::Result<record::Piece> {
    let file = File::open(path)?;
    let mut size = PIECE;
    loop {
        let length = usize::try_from(to - from).unwrap_or(usize::MAX).min(size);
        let mut bytes = vec![0; length];
        let mut got = 0;
        while got < length {
            match file.read_at(&mut bytes[got..], from + got as u64) {
                Ok(0) => break,
                Ok(n) => got += n,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        let piece = record::read(&bytes[..got], BATCH);
        // A line is longer than the piece. Only a damaged file has one, but it must not stop the loader.
        if piece.read == 0 && got == size {
            size *= 2;
            continue;
        }
        return Ok(piece);
    }
}
