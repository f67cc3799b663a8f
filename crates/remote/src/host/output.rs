//! What a command answered: its status and, up to a limit, what it wrote.

use std::time::Duration;

use super::error::{Error, Result};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// The exit status; 128 and the signal's number when a signal ended it.
    pub status: i32,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// Whether it wrote more than was kept. The beginning is what is kept.
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

    /// What it wrote, as text. A host may write any bytes: what is no UTF-8 becomes `\u{fffd}`.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// The last words of a failed command, short and printable.
    pub(super) fn complaint(&self) -> String {
        const LONG: usize = 300;
        let said = if self.stderr.is_empty() { &self.stdout } else { &self.stderr };
        let text = String::from_utf8_lossy(said);
        let line: String = text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let skipped = line.chars().count().saturating_sub(LONG);
        let kept: String = line.chars().skip(skipped).collect();
        if kept.is_empty() { "it said nothing".to_owned() } else { kept }
    }
}

/// Bytes up to a limit; what comes after is counted out, not kept.
#[derive(Debug)]
pub(super) struct Bounded {
    pub bytes: Vec<u8>,
    limit: usize,
    pub truncated: bool,
}

impl Bounded {
    pub fn new(limit: usize) -> Bounded {
        Bounded { bytes: Vec::new(), limit, truncated: false }
    }

    pub fn take(&mut self, data: &[u8]) {
        let room = self.limit - self.bytes.len();
        self.truncated |= data.len() > room;
        self.bytes.extend_from_slice(&data[..data.len().min(room)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_is_kept_and_the_rest_is_noticed() {
        let mut kept = Bounded::new(5);
        kept.take(b"abc");
        assert!(!kept.truncated);
        kept.take(b"de");
        assert!(!kept.truncated);
        kept.take(b"f");
        assert_eq!((kept.bytes.as_slice(), kept.truncated), (b"abcde".as_slice(), true));
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
