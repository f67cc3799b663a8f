//! The result of a command: its status and, up to a limit, its output.

use std::borrow::Cow;
use std::time::Duration;

use super::error::{Error, Result};
use crate::memory::Share;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// The exit status; 128 plus the signal's number if a signal ended it.
    pub status: i32,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// Whether it wrote more than was kept. The beginning is kept.
    pub truncated: bool,
    pub took: Duration,
}

impl Output {
    pub fn succeeded(&self) -> bool {
        self.status == 0
    }

    /// The output of a command that must succeed.
    pub fn ok(self, command: &str) -> Result<Output> {
        if self.succeeded() { Ok(self) } else { Err(Error::failed(command, &self)) }
    }

    /// Its standard output as text. Bytes that are not UTF-8 become `\u{fffd}`.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// The end of a failed command's output, short and printable.
    pub fn complaint(&self) -> String {
        const LONG: usize = 300;
        let said = if self.stderr.is_empty() { &self.stdout } else { &self.stderr };
        let text = String::from_utf8_lossy(said);
        let line: String = text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let skipped = line.chars().count().saturating_sub(LONG);
        let kept: String = line.chars().skip(skipped).collect();
        if kept.is_empty() { "it said nothing".to_owned() } else { kept }
    }
}

/// Bytes up to a limit, and up to the memory limit of the process; later bytes are dropped.
#[derive(Debug)]
pub(super) struct Bounded {
    pub bytes: Vec<u8>,
    limit: usize,
    pub truncated: bool,
    prelude: Prelude,
    share: Share,
}

impl Bounded {
    pub fn new(limit: usize) -> Bounded {
        Bounded { bytes: Vec::new(), limit, truncated: false, prelude: Prelude::default(), share: Share::default() }
    }

    pub fn take(&mut self, data: &[u8]) {
        let Some(data) = self.prelude.pass(data) else { return };
        let data = data.as_ref();
        let kept = &data[..data.len().min(self.limit - self.bytes.len())];
        // After a gap, later bytes are useless.
        if self.truncated || !self.share.grow(kept.len()) {
            self.truncated = true;
            return;
        }
        self.truncated = kept.len() < data.len();
        self.bytes.extend_from_slice(kept);
    }

    /// The bytes that were kept. If the command never began, these are the shell's own messages.
    pub fn finish(&mut self) -> Vec<u8> {
        self.share.clear();
        let mut bytes = std::mem::take(&mut self.bytes);
        if bytes.is_empty() {
            bytes = self.prelude.rest();
        }
        bytes
    }
}

/// A login shell's start-up files may print anything before a command's own output. So the line for the shell first
/// prints this mark, on both streams.
pub(super) const MARK: &[u8] = b"\x02tidepool\x03";
/// The mark as a format for `printf`.
pub(super) const MARK_FORMAT: &str = r"\002tidepool\003";
const PRELUDE_KEPT: usize = 64 * 1024;

/// Removes everything up to the mark.
#[derive(Debug, Default)]
pub(super) struct Prelude {
    held: Vec<u8>,
    over: bool,
}

impl Prelude {
    pub fn pass<'a>(&mut self, data: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        if self.over {
            return Some(Cow::Borrowed(data));
        }
        self.held.extend_from_slice(data);
        let Some(at) = self.held.windows(MARK.len()).position(|window| window == MARK) else {
            let excess = self.held.len().saturating_sub(PRELUDE_KEPT);
            self.held.drain(..excess);
            return None;
        };
        self.over = true;
        let own = self.held.split_off(at + MARK.len());
        self.held.clear();
        Some(Cow::Owned(own))
    }

    /// The bytes that were held back, if no mark came.
    pub fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_is_kept_and_the_rest_is_noticed() {
        let mut kept = Bounded::new(5);
        kept.take(MARK);
        kept.take(b"abc");
        assert!(!kept.truncated);
        kept.take(b"de");
        assert!(!kept.truncated);
        kept.take(b"f");
        assert_eq!((kept.bytes.as_slice(), kept.truncated), (b"abcde".as_slice(), true));
    }

    #[test]
    fn what_a_shell_prints_before_the_command_is_left_out_however_it_arrives() {
        let said = [b"Welcome!\n\x02tide".as_slice(), MARK, b"own \x02tidepool\x03 words"].concat();
        for size in 1..said.len() {
            let mut kept = Bounded::new(1000);
            for piece in said.chunks(size) {
                kept.take(piece);
            }
            assert_eq!(kept.finish(), b"own \x02tidepool\x03 words");
        }
        let mut shell = Bounded::new(1000);
        shell.take(b"sh: no such thing");
        assert_eq!(shell.finish(), b"sh: no such thing");
        shell.take(&[b'x'; 10 * PRELUDE_KEPT]);
        assert_eq!(shell.finish().len(), PRELUDE_KEPT);
    }

    #[test]
    fn a_complaint_is_one_short_printable_line() {
        let output =
            Output { stderr: format!("{}\nlast\x1b[31m words\n", "x".repeat(1000)).into(), ..Output::default() };
        let said = output.complaint();
        assert_eq!(said.chars().count(), 300);
        assert!(said.ends_with("last [31m words") && !said.chars().any(char::is_control));
        assert_eq!(Output::default().complaint(), "it said nothing");
    }
}
