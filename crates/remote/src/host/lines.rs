//! The output of a long-running command, line by line, in bounded memory.
//!
//! A reader that is too slow loses lines and can ask how many: the connection is shared, and must not wait for one
//! reader.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc::{self, error::TrySendError};

use super::error::{Error, Result};
use super::output::Prelude;
use crate::memory::Share;

/// How many lines may wait for the reader.
const WAITING: usize = 256;
/// How many bytes may wait for the reader.
const WAITING_BYTES: usize = 1 << 20;
/// A longer line is cut here.
const LONGEST: usize = 64 * 1024;

#[derive(Debug)]
pub(super) enum Line {
    Text(Vec<u8>),
    End(Result<()>),
}

/// The writing end.
pub(super) struct Feed {
    lines: mpsc::Sender<Line>,
    begun: Vec<u8>,
    backlog: Arc<Backlog>,
    prelude: Prelude,
}

/// What waits for the reader, and what was lost.
#[derive(Default)]
struct Backlog {
    share: Mutex<Share>,
    missed: AtomicUsize,
}

impl Backlog {
    fn share(&self) -> MutexGuard<'_, Share> {
        self.share.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn takes(&self, bytes: usize) -> bool {
        let mut share = self.share();
        share.size() + bytes <= WAITING_BYTES && share.grow(bytes)
    }

    fn lost_one(&self) {
        self.missed.fetch_add(1, Ordering::Relaxed);
    }
}

impl Feed {
    pub fn new() -> (Feed, Lines) {
        let (lines, reader) = mpsc::channel(WAITING);
        let backlog = Arc::new(Backlog::default());
        (
            Feed { lines, begun: Vec::new(), backlog: backlog.clone(), prelude: Prelude::default() },
            Lines { lines: reader, backlog },
        )
    }

    pub async fn abandoned(&self) {
        self.lines.closed().await;
    }

    pub fn take(&mut self, data: &[u8]) {
        let Some(data) = self.prelude.pass(data) else { return };
        let mut data = data.as_ref();
        while let Some(end) = data.iter().position(|byte| *byte == b'\n') {
            self.begin(&data[..end]);
            let line = std::mem::take(&mut self.begun);
            self.offer(line);
            data = &data[end + 1..];
        }
        self.begin(data);
    }

    fn begin(&mut self, data: &[u8]) {
        let room = LONGEST - self.begun.len();
        self.begun.extend_from_slice(&data[..data.len().min(room)]);
    }

    fn offer(&mut self, line: Vec<u8>) {
        let size = line.len();
        if !self.backlog.takes(size) {
            return self.backlog.lost_one();
        }
        if let Err(refused) = self.lines.try_send(Line::Text(line)) {
            self.backlog.share().shrink(size);
            if matches!(refused, TrySendError::Full(_)) {
                self.backlog.lost_one();
            }
        }
    }

    /// Sends the last, incomplete line and the outcome. It waits for room, so that the reader always gets them.
    pub async fn end(self, outcome: Result<()>) {
        if !self.begun.is_empty() {
            self.lines.send(Line::Text(self.begun)).await.ok();
        }
        self.lines.send(Line::End(outcome)).await.ok();
    }
}

/// The reading end. Dropping it ends the command.
pub struct Lines {
    lines: mpsc::Receiver<Line>,
    backlog: Arc<Backlog>,
}

impl Lines {
    /// The next line; `None` when the command has succeeded.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>> {
        match self.lines.recv().await {
            Some(Line::Text(line)) => {
                self.backlog.share().shrink(line.len());
                Ok(Some(line))
            }
            Some(Line::End(outcome)) => outcome.map(|()| None),
            None => Err(Error::CutOff { command: "a stream".into() }),
        }
    }

    /// How many lines were lost so far because they were read too slowly.
    pub fn missed(&self) -> usize {
        self.backlog.missed.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::super::output::MARK;
    use super::*;

    fn begun() -> (Feed, Lines) {
        let (mut feed, lines) = Feed::new();
        feed.take(MARK);
        (feed, lines)
    }

    #[tokio::test]
    async fn lines_come_whole_and_in_order_however_they_arrive() {
        let (mut feed, mut lines) = begun();
        for piece in ["on", "e\ntw", "o\n", "\n", "half"] {
            feed.take(piece.as_bytes());
        }
        feed.end(Ok(())).await;
        let mut seen = vec![];
        while let Some(line) = lines.next().await.unwrap() {
            seen.push(String::from_utf8(line).unwrap());
        }
        assert_eq!(seen, ["one", "two", "", "half"]);
    }

    #[tokio::test]
    async fn a_slow_reader_is_told_what_it_missed_and_memory_stays_bounded() {
        let (mut feed, mut lines) = begun();
        for number in 0..10_000 {
            feed.take(format!("{number}\n").as_bytes());
        }
        feed.take(&[b'x'; 10 * LONGEST]);
        assert_eq!(feed.begun.len(), LONGEST);
        let ended = tokio::spawn(feed.end(Ok(())));
        let mut got = 0;
        while lines.next().await.unwrap().is_some() {
            got += 1;
        }
        ended.await.unwrap();
        assert_eq!(got + lines.missed(), 10_001);
        assert_eq!(got, WAITING + 1);
    }

    #[tokio::test]
    async fn few_long_lines_wait_as_little_as_many_short_ones() {
        let (mut feed, mut lines) = begun();
        for _ in 0..100 {
            feed.take(&[&[b'x'; LONGEST], b"\n".as_slice()].concat());
        }
        assert!(feed.backlog.share().size() <= WAITING_BYTES);
        feed.end(Ok(())).await;
        let mut got = 0;
        while lines.next().await.unwrap().is_some() {
            got += 1;
        }
        assert_eq!((got, got + lines.missed()), (WAITING_BYTES / LONGEST, 100));
        assert_eq!(lines.backlog.share().size(), 0);
    }

    #[tokio::test]
    async fn how_it_ended_is_said_last() {
        let (mut feed, mut lines) = begun();
        feed.take(b"only\n");
        feed.end(Err(Error::Busy)).await;
        assert_eq!(lines.next().await.unwrap().unwrap(), b"only");
        assert_eq!(lines.next().await, Err(Error::Busy));
    }
}
