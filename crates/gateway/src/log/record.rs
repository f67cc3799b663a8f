//! One finished request as a line of a segment: the checksum of the JSON (CRC-32, eight hexadecimal digits), a space,
//! the request as JSON, a newline. The JSON contains no newline, so a line is complete if it ends with one and its
//! checksum fits.

use std::borrow::Cow;
use std::io::Write as _;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use store::answer_owner::AnswerOwner;
use store::request_log::{Detail, ExactRequest, NewRequest, RequestType};

use crate::owner;

/// Bytes before the JSON: the checksum and the space.
const HEAD: usize = 9;
/// The longest error text in the log, in characters: a provider's error may be a whole web page.
const MOST_ERROR: usize = 500;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record<'a> {
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    #[serde(borrow)]
    pub token: Cow<'a, str>,
    #[serde(borrow)]
    pub model: Cow<'a, str>,
    #[serde(borrow)]
    pub provider: Cow<'a, str>,
    #[serde(rename = "type")]
    pub kind: i64,
    pub stream: bool,
    #[serde(rename = "in")]
    pub prompt_tokens: i64,
    #[serde(rename = "out")]
    pub completion_tokens: i64,
    pub quota: i64,
    /// The exact cost less `quota`, in billionths of a dollar.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rest: i64,
    #[serde(rename = "ms")]
    pub duration_ms: i64,
    #[serde(rename = "at")]
    pub at_ms: i64,
    #[serde(default, skip_serializing_if = "is_false")]
    pub estimated: bool,
    #[serde(borrow, default, skip_serializing_if = "str::is_empty")]
    pub error: Cow<'a, str>,
    /// From here on, what a line of an older release does not have. An older release leaves it out when it reads.
    #[serde(rename = "read", default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<i64>,
    #[serde(rename = "write", default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<i64>,
    #[serde(rename = "think", default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<i64>,
    #[serde(borrow, rename = "via", default, skip_serializing_if = "str::is_empty")]
    pub protocol: Cow<'a, str>,
    #[serde(borrow, rename = "asked", default, skip_serializing_if = "str::is_empty")]
    pub asked_model: Cow<'a, str>,
    #[serde(borrow, rename = "hint", default, skip_serializing_if = "str::is_empty")]
    pub key_hint: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<i64>,
    #[serde(rename = "first_ms", default, skip_serializing_if = "Option::is_none")]
    pub first_byte_ms: Option<i64>,
    /// The provider's id of an answer that can be continued, and the fingerprint of the key that may.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<(Cow<'a, str>, Cow<'a, str>)>,
    /// The quotas that the request has reservations in, each with the amount used. The loader subtracts it from the
    /// grant.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub holds: Vec<(Cow<'a, str>, i64)>,
}

fn is_false(value: &bool) -> bool {
    !value
}

fn is_zero(value: &i64) -> bool {
    *value == 0
}

/// Why a line is no record.
#[derive(Debug, PartialEq, Eq)]
pub enum Damaged {
    Checksum,
    Content(String),
}

impl Record<'_> {
    /// Writes the line into `line`, replacing its content.
    pub fn encode(&self, line: &mut Vec<u8>) -> serde_json::Result<()> {
        line.clear();
        line.extend_from_slice(&[b' '; HEAD]);
        serde_json::to_writer(&mut *line, self)?;
        let sum = crc32fast::hash(&line[HEAD..]);
        write!(&mut line[..HEAD - 1], "{sum:08x}").map_err(serde_json::Error::io)?;
        line.push(b'\n');
        Ok(())
    }

    /// Reads a line, without its newline.
    pub fn decode(line: &[u8]) -> Result<Record<'_>, Damaged> {
        let sum = line.get(..HEAD - 1).and_then(|digits| std::str::from_utf8(digits).ok());
        let sum = sum.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let json = line.get(HEAD..).unwrap_or_default();
        if line.get(HEAD - 1) != Some(&b' ') || sum != Some(crc32fast::hash(json)) {
            return Err(Damaged::Checksum);
        }
        serde_json::from_slice(json).map_err(|e| Damaged::Content(e.to_string()))
    }

    pub fn answer_owner(&self) -> Option<AnswerOwner> {
        let (answer, owner) = self.answer.as_ref()?;
        let at = Timestamp::from_millisecond(self.at_ms).unwrap_or_default();
        Some(owner::row(answer, owner, self.prompt_tokens + self.completion_tokens, at))
    }

    pub fn request(&self) -> ExactRequest {
        let request = NewRequest {
            request_id: self.id.to_string(),
            token_name: self.token.to_string(),
            model: self.model.to_string(),
            provider: self.provider.to_string(),
            kind: RequestType::new(self.kind),
            is_stream: self.stream,
            prompt_tokens: self.prompt_tokens,
            completion_tokens: self.completion_tokens,
            quota: self.quota,
            duration_ms: self.duration_ms,
            error_message: self.error.to_string(),
            estimated: self.estimated,
            detail: Detail {
                known_input_tokens: self.cache_read.map(|_| self.prompt_tokens),
                cache_read_tokens: self.cache_read,
                cache_write_tokens: self.cache_write,
                reasoning_tokens: self.reasoning,
                protocol: self.protocol.to_string(),
                asked_model: self.asked_model.to_string(),
                key_hint: self.key_hint.to_string(),
                retries: self.retries,
                first_byte_ms: self.first_byte_ms,
            },
            created_at: Timestamp::from_millisecond(self.at_ms).unwrap_or_default(),
        };
        ExactRequest { request, quota_rest: self.rest }
    }
}

/// An error's text, cut to the length that the log keeps.
pub fn shortened(text: &str) -> &str {
    match text.char_indices().nth(MOST_ERROR) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

/// The complete lines of a piece of a segment.
#[derive(Debug, Default)]
pub struct Piece {
    pub requests: Vec<Line>,
    /// How many bytes were read: up to the end of the last complete line.
    pub read: usize,
    pub damaged: usize,
}

/// A valid line.
#[derive(Debug)]
pub struct Line {
    pub request: ExactRequest,
    pub holds: Vec<(String, i64)>,
    pub answer: Option<AnswerOwner>,
    /// Where the line begins in the piece, and where it ends, its newline included.
    pub start: usize,
    pub end: usize,
}

/// Reads up to `most` lines. Damaged lines are counted and skipped; a line without a newline is left for the next read.
pub fn read(piece: &[u8], most: usize) -> Piece {
    let mut out = Piece::default();
    while out.requests.len() < most
        && let Some(length) = memchr::memchr(b'\n', &piece[out.read..])
    {
        let start = out.read;
        let line = &piece[start..start + length];
        out.read += length + 1;
        match Record::decode(line) {
            // `Log::is_writable` writes a blank line to test whether the disk is still full.
            Err(_) if line.is_empty() => {}
            Err(damaged) => {
                tracing::warn!(?damaged, length, "a line of the gateway's log is damaged and left out");
                out.damaged += 1;
            }
            Ok(record) => out.requests.push(Line {
                request: record.request(),
                answer: record.answer_owner(),
                holds: record.holds.iter().map(|(subject, used)| (subject.to_string(), *used)).collect(),
                start,
                end: out.read,
            }),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(n: i64) -> Record<'static> {
        Record {
            id: format!("req-{n}").into(),
            token: "assistant-01".into(),
            model: "gpt-4o".into(),
            provider: "openai".into(),
            kind: 2,
            stream: n % 2 == 0,
            prompt_tokens: n,
            completion_tokens: 7,
            quota: 12,
            rest: if n % 2 == 0 { -700 } else { 0 },
            duration_ms: 340,
            at_ms: 1_790_000_000_000 + n,
            estimated: n % 3 == 0,
            error: if n % 5 == 0 { "a \"text\"\nwith lines".into() } else { "".into() },
            cache_read: (n % 3 > 0).then_some(n / 2),
            cache_write: (n % 4 > 0).then_some(n / 4),
            reasoning: (n % 5 > 0).then_some(3),
            protocol: "messages".into(),
            asked_model: if n % 2 == 0 { "claude-opus-4-6".into() } else { "".into() },
            key_hint: "".into(),
            retries: Some(n % 2),
            first_byte_ms: (n % 3 > 0).then_some(120),
            answer: Some((format!("resp_{n}").into(), "of-a-key".into())),
            holds: vec![("user:u:1".into(), n + 7)],
        }
    }

    fn segment(count: i64) -> Vec<u8> {
        let (mut all, mut line) = (vec![], vec![]);
        for n in 0..count {
            record(n).encode(&mut line).unwrap();
            all.extend_from_slice(&line);
        }
        all
    }

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let mut line = vec![];
        for n in 0..20 {
            record(n).encode(&mut line).unwrap();
            assert_eq!(line.iter().filter(|b| **b == b'\n').count(), 1, "one line");
            assert_eq!(Record::decode(&line[..line.len() - 1]).unwrap(), record(n));
        }
    }

    /// What the release before these fields wrote and read.
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Older {
        id: String,
        token: String,
        model: String,
        provider: String,
        r#type: i64,
        stream: bool,
        r#in: i64,
        out: i64,
        quota: i64,
        ms: i64,
        at: i64,
    }

    #[test]
    fn lines_of_the_release_before_are_read_and_it_reads_ours() {
        let older = Older {
            id: "req-1".into(),
            token: "a".into(),
            model: "gpt-4o".into(),
            provider: "openai".into(),
            r#type: 2,
            stream: true,
            r#in: 5,
            out: 7,
            quota: 12,
            ms: 340,
            at: 1_790_000_000_000,
        };
        let json = serde_json::to_string(&older).unwrap();
        let line = format!("{:08x} {json}", crc32fast::hash(json.as_bytes()));
        let read = Record::decode(line.as_bytes()).unwrap().request();
        assert_eq!((read.request.prompt_tokens, read.quota_rest), (5, 0));
        assert_eq!(read.request.detail, Detail::default(), "all of it is unknown");
        let mut ours = vec![];
        record(1).encode(&mut ours).unwrap();
        let by_older: Older = serde_json::from_slice(&ours[HEAD..]).unwrap();
        assert_eq!((by_older.id.as_str(), by_older.out), ("req-1", 7));
    }

    #[test]
    fn a_torn_line_is_left_and_what_follows_its_newline_is_read() {
        let whole = segment(3);
        for cut in 0..whole.len() {
            let piece = read(&whole[..cut], 100);
            let newlines = whole[..cut].iter().filter(|b| **b == b'\n').count();
            assert_eq!((piece.requests.len(), piece.damaged), (newlines, 0), "cut at {cut}");
            assert!(piece.read <= cut);
        }
        // A torn line in the middle does not affect its neighbours.
        let mut torn = segment(1);
        torn.truncate(40);
        torn.push(b'\n');
        torn.extend(segment(2));
        let piece = read(&torn, 100);
        assert_eq!((piece.requests.len(), piece.damaged, piece.read), (2, 1, torn.len()));
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let whole = segment(1);
        for at in 0..whole.len() - 1 {
            for bit in 0..8 {
                let mut flipped = whole.clone();
                flipped[at] ^= 1 << bit;
                let piece = read(&flipped, 100);
                // A flipped bit may only change the case of a checksum's digit, which means the same.
                let same_sum = at < 8 && flipped[at].eq_ignore_ascii_case(&whole[at]);
                assert!(piece.requests.is_empty() || same_sum, "bit {bit} of byte {at}");
            }
        }
    }

    proptest! {
        /// Whatever a segment contains, reading it ends, never panics, and finds the valid lines between the rubbish.
        #[test]
        fn rubbish_between_lines_spoils_nothing_else(parts in prop::collection::vec(prop_oneof![
            (0i64..1000).prop_map(Ok),
            prop::collection::vec(any::<u8>().prop_filter("not a newline", |b| *b != b'\n'), 1..80).prop_map(Err),
        ], 0..20)) {
            let (mut bytes, mut line, mut good, mut bad) = (vec![], vec![], vec![], 0);
            for part in &parts {
                match part {
                    Ok(n) => {
                        record(*n).encode(&mut line).unwrap();
                        bytes.extend_from_slice(&line);
                        good.push(format!("req-{n}"));
                    }
                    Err(rubbish) => {
                        bytes.extend_from_slice(rubbish);
                        bytes.push(b'\n');
                        bad += 1;
                    }
                }
            }
            let piece = read(&bytes, usize::MAX);
            let found: Vec<String> = piece.requests.iter().map(|l| l.request.request.request_id.clone()).collect();
            prop_assert_eq!(found, good);
            prop_assert_eq!(piece.damaged, bad);
            prop_assert_eq!(piece.read, bytes.len());
        }

        /// A segment that is read in two pieces gives the same lines.
        #[test]
        fn a_segment_read_in_pieces_is_the_segment(count in 0i64..8, at in any::<prop::sample::Index>()) {
            let whole = segment(count);
            let cut = at.index(whole.len() + 1);
            let first = read(&whole[..cut], usize::MAX);
            let rest = read(&whole[first.read..], usize::MAX);
            prop_assert_eq!(first.requests.len() + rest.requests.len(), count as usize);
            prop_assert_eq!(first.read + rest.read, whole.len());
        }
    }
}
