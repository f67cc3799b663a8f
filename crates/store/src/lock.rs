//! Who uses a SQLite database: every server shares a lock file, a restore wants it alone.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::{Error, Result};

/// Held as long as the value lives.
#[derive(Debug)]
pub struct InUse(#[expect(dead_code, reason = "dropping the file gives the lock back")] File);

/// Says "this database is being served".
pub fn share(database: &Path) -> Result<InUse> {
    let file = open(database)?;
    match file.try_lock_shared() {
        Ok(()) => Ok(InUse(file)),
        Err(TryLockError::WouldBlock) => Err(Error::Refused(format!("{} is being restored", database.display()))),
        Err(TryLockError::Error(e)) => Err(Error::File(database.display().to_string(), e)),
    }
}

/// Says "nobody else may use this database".
pub fn alone(database: &Path) -> Result<InUse> {
    let file = open(database)?;
    match file.try_lock() {
        Ok(()) => Ok(InUse(file)),
        Err(TryLockError::WouldBlock) => {
            Err(Error::Refused(format!("{} is in use: stop the server first", database.display())))
        }
        Err(TryLockError::Error(e)) => Err(Error::File(database.display().to_string(), e)),
    }
}

fn open(database: &Path) -> Result<File> {
    let path = database.with_extension("lock");
    let file = OpenOptions::new().create(true).truncate(false).read(true).write(true).mode(0o600).open(&path);
    file.map_err(|e| Error::File(path.display().to_string(), e))
}
