//! Each process has a folder for its segments, below `<data folder>/gateway`, and holds a lock in it until it ends. The
//! kernel frees the lock even after kill -9, so a folder whose lock is free belongs to a process that has ended.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

const LOCK: &str = "lock";
/// Prefix of folders that are being created or removed: they are not taken over.
const UNFINISHED: &str = ".new-";
/// After this time a folder with that prefix is left over from a crash, and is removed.
const ABANDONED: Duration = Duration::from_secs(60);

/// A folder whose lock this process holds.
#[derive(Debug)]
pub struct Replica {
    pub name: String,
    pub folder: PathBuf,
    _lock: File,
}

impl Replica {
    /// Creates a folder for this process.
    pub fn claim(root: &Path) -> io::Result<Replica> {
        make_private(root)?;
        let name = base::id::fresh();
        let (unfinished, folder) = (root.join(format!("{UNFINISHED}{name}")), root.join(&name));
        make_private(&unfinished)?;
        let lock =
            OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(unfinished.join(LOCK))?;
        lock.try_lock()?;
        // Other processes may see the folder only when it is locked.
        fs::rename(&unfinished, &folder)?;
        Ok(Replica { name, folder, _lock: lock })
    }

    /// Takes over every folder whose process has ended.
    pub fn dead(root: &Path) -> io::Result<Vec<Replica>> {
        let mut dead = vec![];
        for entry in fs::read_dir(root)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            if !entry.file_type()?.is_dir() {
                continue;
            }
            let folder = entry.path();
            if name.starts_with(UNFINISHED) {
                remove_abandoned(&folder);
            } else if let Some(lock) = lock(&folder)? {
                dead.push(Replica { name, folder, _lock: lock });
            }
        }
        Ok(dead)
    }

    /// Removes the folder. It fails if there is still a segment in it.
    pub fn remove(self) -> io::Result<()> {
        for entry in fs::read_dir(&self.folder)? {
            if entry?.file_name() != LOCK {
                return Err(io::ErrorKind::DirectoryNotEmpty.into());
            }
        }
        // Rename it first: after a crash in the middle, `remove_abandoned` deletes the rest.
        let gone = self.folder.with_file_name(format!("{UNFINISHED}{}", self.name));
        fs::rename(&self.folder, &gone)?;
        fs::remove_file(gone.join(LOCK))?;
        fs::remove_dir(&gone)
    }
}

/// The lock of a folder, if it is free.
fn lock(folder: &Path) -> io::Result<Option<File>> {
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(folder.join(LOCK));
    let file = match file {
        // Another process took the folder over and removed it meanwhile.
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(fs::TryLockError::WouldBlock) => Ok(None),
        Err(fs::TryLockError::Error(e)) => Err(e),
    }
}

fn remove_abandoned(folder: &Path) {
    let age = fs::metadata(folder).and_then(|m| m.modified()).ok().and_then(|made| made.elapsed().ok());
    if age.is_some_and(|age| age > ABANDONED) {
        fs::remove_file(folder.join(LOCK)).ok();
        fs::remove_dir(folder).ok();
    }
}

fn make_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_its_processes_until_the_process_is_gone() {
        let root = tempfile::tempdir().unwrap();
        let one = Replica::claim(root.path()).unwrap();
        let two = Replica::claim(root.path()).unwrap();
        assert!(Replica::dead(root.path()).unwrap().is_empty(), "both live");
        let name = one.name.clone();
        drop(one);
        let dead = Replica::dead(root.path()).unwrap();
        assert_eq!(dead.iter().map(|r| &r.name).collect::<Vec<_>>(), [&name]);
        assert!(Replica::dead(root.path()).unwrap().is_empty(), "taken over by one alone");
        for replica in dead {
            replica.remove().unwrap();
        }
        two.remove().unwrap();
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_that_still_holds_something_is_not_removed() {
        let root = tempfile::tempdir().unwrap();
        let replica = Replica::claim(root.path()).unwrap();
        let folder = replica.folder.clone();
        fs::write(folder.join("00000001.log"), "x").unwrap();
        assert!(replica.remove().is_err());
        assert_eq!(Replica::dead(root.path()).unwrap().len(), 1, "it waits for whoever loads it");
        assert!(folder.join("00000001.log").exists());
    }
}
