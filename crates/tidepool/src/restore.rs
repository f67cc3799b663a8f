//! The renames of a restore. A plan is written before the first rename, and deleted after the last. After a crash in
//! between, the next process that opens the database finishes the plan first; otherwise it would find no database, and
//! create an empty one.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use base::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::fault::{file_error, operator};
use crate::keys;

/// The renames, in this order. Each name for an old file is new, so that its existence shows that the step is done.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// From, to: the old files.
    aside: Vec<(PathBuf, PathBuf)>,
    /// From, to: the new files.
    place: Vec<(PathBuf, PathBuf)>,
}

impl Plan {
    pub fn set_aside(&mut self, from: &Path, to: &Path) -> Result<()> {
        self.aside.push((absolute(from)?, absolute(to)?));
        Ok(())
    }

    pub fn put_in_place(&mut self, from: &Path, to: &Path) -> Result<()> {
        self.place.push((absolute(from)?, absolute(to)?));
        Ok(())
    }

    /// Writes the plan beside the database and carries it out. Once it is written, the restore will be completed, by
    /// this process or by the next one.
    pub fn run(&self, database: &Path) -> Result<()> {
        for (from, _) in &self.place {
            File::open(from).and_then(|file| file.sync_all()).map_err(|e| file_error(from, e))?;
        }
        let text = serde_json::to_string_pretty(self).map_err(Error::internal)?;
        keys::write_private(&marker(database), &text)?;
        sync_folder(database)?;
        finish(database)
    }

    fn carry_out(&self) -> Result<()> {
        for (from, to) in self.aside.iter().filter(|(from, to)| from.exists() && !to.exists()) {
            fs::rename(from, to).map_err(|e| file_error(from, e))?;
        }
        for (from, to) in self.place.iter().filter(|(from, _)| from.exists()) {
            fs::rename(from, to).map_err(|e| file_error(to, e))?;
        }
        for (_, to) in self.aside.iter().chain(&self.place) {
            sync_folder(to)?;
        }
        Ok(())
    }
}

fn marker(database: &Path) -> PathBuf {
    database.with_extension("restoring")
}

/// A path that means the same from any working folder.
fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|e| file_error(path, e))
}

fn sync_folder(file: &Path) -> Result<()> {
    let folder = absolute(file)?.parent().map(Path::to_owned).unwrap_or_default();
    File::open(&folder).and_then(|open| open.sync_all()).map_err(|e| file_error(&folder, e))
}

/// Carries out the rest of a plan. The caller holds the exclusive lock on the database.
pub fn finish(database: &Path) -> Result<()> {
    let marker = marker(database);
    let text = match fs::read_to_string(&marker) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(file_error(&marker, e)),
    };
    let plan: Plan = serde_json::from_str(&text).map_err(|e| file_error(&marker, e.into()))?;
    plan.carry_out()?;
    fs::remove_file(&marker).map_err(|e| file_error(&marker, e))?;
    sync_folder(database)
}

/// Whether a restore is incomplete.
pub fn is_broken_off(database: &Path) -> bool {
    marker(database).exists()
}

/// How often to check whether another process, which started at the same moment, has finished.
const LOOKS: usize = 50;

/// Finishes an interrupted restore before the database is opened.
pub async fn finish_broken_off(database: &Path) -> Result<()> {
    for look in 0.. {
        if !is_broken_off(database) {
            break;
        }
        match store::lock::alone(database) {
            Ok(_alone) => {
                tracing::warn!(database = %database.display(), "a restore was broken off: it is finished now");
                finish(database)?;
            }
            Err(_) if look < LOOKS => tokio::time::sleep(Duration::from_millis(100)).await,
            Err(error) => return Err(operator(error)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with a database in three files, a key, and the new files of a restore.
    fn prepared(folder: &Path) -> (PathBuf, Plan) {
        let path = |name: &str| folder.join(name);
        let mut plan = Plan::default();
        for part in ["t.db", "t.db-wal", "t.db-shm", "master.key"] {
            fs::write(path(part), "old").unwrap();
            plan.set_aside(&path(part), &path(&format!("{part}.before"))).unwrap();
        }
        for (from, to) in [("t.incoming", "t.db"), ("master.key.incoming", "master.key")] {
            fs::write(path(from), "new").unwrap();
            plan.put_in_place(&path(from), &path(to)).unwrap();
        }
        (path("t.db"), plan)
    }

    #[test]
    fn however_far_it_came_it_is_finished() {
        let steps = 6;
        for done in 0..=steps {
            let folder = tempfile::tempdir().unwrap();
            let (database, plan) = prepared(folder.path());
            fs::write(marker(&database), serde_json::to_string(&plan).unwrap()).unwrap();
            for (from, to) in plan.aside.iter().chain(&plan.place).take(done) {
                fs::rename(from, to).unwrap();
            }
            finish(&database).unwrap();
            let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap_or_default();
            assert_eq!([read("t.db"), read("master.key")], ["new", "new"], "after {done} renames");
            for old in ["t.db.before", "t.db-wal.before", "t.db-shm.before", "master.key.before"] {
                assert_eq!(read(old), "old", "after {done} renames: {old}");
            }
            assert_eq!([read("t.db-wal"), read("t.incoming")], ["", ""]);
            assert!(!marker(&database).exists());
            finish(&database).unwrap();
            assert_eq!(read("t.db"), "new", "once");
        }
    }
}
