//! The segment files that finished requests are appended to, each with one `write(2)`, and their rotation.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A segment file and how much of it may be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub number: u64,
    /// Bytes of whole lines.
    pub length: u64,
}

pub struct Writer {
    folder: PathBuf,
    file: File,
    now: Part,
    opened: Instant,
    /// A partial write could not be truncated: nothing more may be written to this file.
    spoiled: bool,
    closed: Vec<Part>,
    ended: bool,
}

impl Writer {
    pub fn open(folder: &Path) -> io::Result<Writer> {
        let now = Part { number: 1, length: 0 };
        let file = create(folder, now.number)?;
        Ok(Writer {
            folder: folder.to_owned(),
            file,
            now,
            opened: Instant::now(),
            spoiled: false,
            closed: vec![],
            ended: false,
        })
    }

    /// Appends a line with one write. If that fails, no part of it stays in front of the next line.
    pub fn append(&mut self, line: &[u8]) -> io::Result<()> {
        if self.ended {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        if self.spoiled {
            self.rotate()?;
        }
        let written = loop {
            match self.file.write(line) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        match written {
            Ok(n) if n == line.len() => {
                self.now.length += n as u64;
                Ok(())
            }
            failed => {
                self.spoiled = self.file.set_len(self.now.length).is_err();
                Err(failed.map_or_else(|e| e, |_| io::ErrorKind::StorageFull.into()))
            }
        }
    }

    /// Begins the next file when this one is large or old enough.
    pub fn rotate_if_due(&mut self, bytes: u64, age: Duration) -> io::Result<()> {
        let due = self.now.length >= bytes || self.opened.elapsed() >= age;
        if due && self.now.length > 0 { self.rotate() } else { Ok(()) }
    }

    fn rotate(&mut self) -> io::Result<()> {
        let next = Part { number: self.now.number + 1, length: 0 };
        self.file = create(&self.folder, next.number)?;
        self.closed.push(std::mem::replace(&mut self.now, next));
        self.opened = Instant::now();
        self.spoiled = false;
        Ok(())
    }

    /// Refuses further lines: the files will be loaded and removed.
    pub fn close(&mut self) {
        self.ended = true;
    }

    /// The file that is being written, with its length so far.
    pub fn now(&self) -> Part {
        self.now
    }

    /// The files that were closed since the last call.
    pub fn take_closed(&mut self) -> Vec<Part> {
        std::mem::take(&mut self.closed)
    }
}

fn create(folder: &Path, number: u64) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path(folder, number))
}

pub fn path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:08}.log"))
}

/// Every segment of a folder, in the order in which they were written.
pub fn list(folder: &Path) -> io::Result<Vec<Part>> {
    let mut parts = vec![];
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_suffix(".log")).and_then(|n| n.parse().ok());
        if let Some(number) = number {
            parts.push(Part { number, length: entry.metadata()?.len() });
        }
    }
    parts.sort_by_key(|part| part.number);
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_fails_leaves_no_half_line_and_the_next_file_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        // Every write to this file fails with a full disk, and it cannot be truncated.
        std::os::unix::fs::symlink("/dev/full", path(folder.path(), 2)).unwrap();
        let mut writer = Writer::open(folder.path()).unwrap();
        writer.append(b"one\n").unwrap();
        writer.rotate_if_due(1, Duration::MAX).unwrap();
        assert_eq!(writer.append(b"two\n").unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert!(writer.spoiled, "a device cannot be shortened");
        writer.append(b"three\n").unwrap();
        assert_eq!(writer.now(), Part { number: 3, length: 6 });
        assert_eq!(writer.take_closed(), [Part { number: 1, length: 4 }, Part { number: 2, length: 0 }]);
        assert_eq!(std::fs::read(path(folder.path(), 3)).unwrap(), b"three\n");
    }

    #[test]
    fn an_empty_file_is_not_rotated() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = Writer::open(folder.path()).unwrap();
        writer.rotate_if_due(0, Duration::ZERO).unwrap();
        assert_eq!(writer.now().number, 1);
        writer.append(b"x\n").unwrap();
        writer.rotate_if_due(0, Duration::ZERO).unwrap();
        assert_eq!(list(folder.path()).unwrap().len(), 2);
    }
}
