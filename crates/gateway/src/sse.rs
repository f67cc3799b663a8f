//! Reads a stream of server-sent events while it is forwarded: where an event ends, what its protocol reads in it, and
//! which event is hidden from the client because only the gateway asked for it. The bytes themselves are never changed.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

use crate::protocol::Protocol;
use crate::seen::Seen;

/// A longer event is forwarded without being parsed.
const MOST_EVENT: usize = 4 * 1024 * 1024;

/// The reader of one stream.
#[derive(Debug)]
pub struct Reader {
    protocol: &'static Protocol,
    /// Whether to leave out the event that has nothing but usage.
    hide_usage: bool,
    pub seen: Seen,
    /// How many events came.
    pub events: usize,
    /// The event that has not ended yet. No part of it was forwarded: if the stream breaks off, the event that says so must
    /// not be glued to it.
    begun: BytesMut,
    /// How many bytes of it were searched for its end.
    searched: usize,
    /// The reader is in the middle of an event that is too long to be kept.
    overlong: bool,
}

impl Reader {
    pub fn new(protocol: &'static Protocol, hide_usage: bool) -> Reader {
        let (begun, seen) = (BytesMut::new(), Seen::default());
        Reader { protocol, hide_usage, seen, events: 0, begun, searched: 0, overlong: false }
    }

    /// Takes bytes of the provider, and puts the bytes for the client into `out`.
    pub fn take(&mut self, came: Bytes, out: &mut VecDeque<Bytes>) {
        // An event in several pieces is joined, so that it can be parsed.
        let bytes = if self.begun.is_empty() {
            came
        } else {
            self.begun.extend_from_slice(&came);
            if end_of_event(&self.begun, self.searched).is_none() && self.begun.len() <= MOST_EVENT {
                self.searched = self.begun.len();
                return;
            }
            self.searched = 0;
            self.begun.split().freeze()
        };
        self.read(bytes, out);
    }

    /// Ends the stream: an event that was not completed is forwarded as it is.
    pub fn finish(&mut self, out: &mut VecDeque<Bytes>) {
        push(out, self.begun.split().freeze());
    }

    /// Ends a stream that broke off, so that an event can follow: one that was not completed is left out. Of one that is
    /// too long to be kept, a part was forwarded: it is ended, and the client cannot read it.
    pub fn break_off(&mut self, out: &mut VecDeque<Bytes>) {
        self.begun.clear();
        if std::mem::take(&mut self.overlong) {
            out.push_back(Bytes::from_static(b"\n\n"));
        }
    }

    /// Parses the complete events of `bytes`, and keeps the one that has not ended.
    fn read(&mut self, bytes: Bytes, out: &mut VecDeque<Bytes>) {
        let (mut kept_from, mut at) = (0, 0);
        while let Some(end) = end_of_event(&bytes[at..], 0).map(|length| at + length) {
            let hidden = !std::mem::take(&mut self.overlong) && self.event(&bytes[at..end]);
            if hidden {
                push(out, bytes.slice(kept_from..at));
                kept_from = end;
            }
            at = end;
        }
        if bytes.len() - at > MOST_EVENT {
            self.overlong = true;
        }
        if at == bytes.len() || self.overlong {
            push(out, bytes.slice(kept_from..));
        } else {
            push(out, bytes.slice(kept_from..at));
        }
        if !self.overlong {
            self.begun.extend_from_slice(&bytes[at..]);
            self.searched = self.begun.len();
        }
    }

    /// Parses one event. Returns whether it is hidden from the client.
    fn event(&mut self, event: &[u8]) -> bool {
        let joined;
        let mut lines = memchr::memchr_iter(b'\n', event).scan(0, |from, to| {
            let line = &event[*from..to];
            *from = to + 1;
            Some(line.strip_suffix(b"\r").unwrap_or(line))
        });
        let mut data = lines.by_ref().filter_map(|line| {
            let value = line.strip_prefix(b"data:")?;
            Some(value.strip_prefix(b" ").unwrap_or(value))
        });
        let Some(first) = data.next() else { return false };
        let data = match data.next() {
            None => first,
            Some(second) => {
                let mut all = vec![first, second];
                all.extend(data);
                joined = all.join(&b'\n');
                &joined
            }
        };
        self.events += 1;
        (self.protocol.event)(data, &mut self.seen) && self.hide_usage
    }
}

fn push(out: &mut VecDeque<Bytes>, bytes: Bytes) {
    if !bytes.is_empty() {
        out.push_back(bytes);
    }
}

/// The length of the first event, its blank line included. Lines end with `\n` or `\r\n`. Of the bytes that were
/// `searched` before, only the last line break can still be part of an event's end.
fn end_of_event(bytes: &[u8], searched: usize) -> Option<usize> {
    let mut from = searched.saturating_sub(2);
    while let Some(at) = memchr::memchr(b'\n', &bytes[from..]).map(|at| from + at) {
        match &bytes[at + 1..] {
            [b'\n', ..] => return Some(at + 2),
            [b'\r', b'\n', ..] => return Some(at + 3),
            _ => from = at + 1,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::Usage;
    use proptest::prelude::*;

    fn chat() -> &'static Protocol {
        crate::protocol::at("/v1/chat/completions").unwrap()
    }

    fn run(pieces: &[&[u8]], hide_usage: bool) -> (Vec<u8>, Seen) {
        let mut reader = Reader::new(chat(), hide_usage);
        let mut out = VecDeque::new();
        for piece in pieces {
            reader.take(Bytes::copy_from_slice(piece), &mut out);
        }
        reader.finish(&mut out);
        (out.into_iter().flatten().collect(), reader.seen)
    }

    const USAGE: &str = "data: {\"id\":\"c\",\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":4,\"total_tokens\":13}}\n\n";

    /// Events that a stream may contain.
    const EVENTS: &[&str] = &[
        "data: {\"id\":\"c\",\"choices\":[{\"delta\":{\"content\":\"Hel\"}}],\"usage\":null}\n\n",
        "data: {\"choices\":[{\"delta\":{\"content\":\"a \\\"usage\\\": {}\"}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}\n\n",
        ": ping\n\n",
        "\n",
        "event: x\r\ndata: {\"choices\":[]}\r\n\r\n",
        "data:{\"choices\":\ndata:[]}\nid: 7\n\n",
        "data: not json \"usage\": 7\n\n",
        USAGE,
        "data: [DONE]\n\n",
    ];

    #[test]
    fn a_stream_passes_unchanged_but_for_the_usage_that_nobody_asked_for() {
        let stream: String = EVENTS.concat();
        let (whole, seen) = run(&[stream.as_bytes()], false);
        assert_eq!(whole, stream.as_bytes());
        assert_eq!(seen.usage, Some(Usage { prompt: 9, completion: 4, ..Usage::default() }));
        assert!(seen.done && !seen.error);
        assert_eq!(seen.finished, 1);
        assert_eq!(seen.written, 3 + 15);
        let (hidden, same) = run(&[stream.as_bytes()], true);
        assert_eq!(String::from_utf8(hidden).unwrap(), stream.replace(USAGE, ""));
        assert_eq!(same, seen);
    }

    #[test]
    fn an_error_in_the_stream_is_noticed() {
        let (_, seen) = run(&[b"data: {\"error\":{\"message\":\"overloaded\"}}\n\n"], true);
        assert!(seen.error);
        let (_, seen) = run(&[b"data: {\"error\":null,\"choices\":[]}\n\n"], true);
        assert!(!seen.error);
    }

    #[test]
    fn what_never_ends_goes_on_as_it_is() {
        let (out, seen) = run(&[b"data: {\"choi", b"ces\":[]"], true);
        assert_eq!((out.as_slice(), seen.done), (b"data: {\"choices\":[]".as_slice(), false));
        let long = vec![b'x'; MOST_EVENT + 10];
        let mut reader = Reader::new(chat(), true);
        let mut out = VecDeque::new();
        reader.take(Bytes::from(long.clone()), &mut out);
        assert_eq!(out.iter().map(Bytes::len).sum::<usize>(), long.len(), "not kept for ever");
        reader.take(Bytes::from_static(b"\n\ndata: [DONE]\n\n"), &mut out);
        assert!(reader.seen.done);
        assert_eq!(out.iter().map(Bytes::len).sum::<usize>(), long.len() + 16);
    }

    #[test]
    fn an_event_goes_on_as_soon_as_it_has_ended() {
        let mut reader = Reader::new(chat(), false);
        let mut out = VecDeque::new();
        reader.take(Bytes::from_static(b"data: {\"choices\":[{}]}\n\ndata: {\"cho"), &mut out);
        assert_eq!(out.pop_front().unwrap(), "data: {\"choices\":[{}]}\n\n");
        assert!(out.is_empty(), "the begun one may break off, or be the one to hide");
        reader.take(Bytes::from_static(b"ices\":[{}]}\n"), &mut out);
        assert!(out.is_empty());
        reader.take(Bytes::from_static(b"\n"), &mut out);
        assert_eq!(out.pop_front().unwrap(), "data: {\"choices\":[{}]}\n\n");
    }

    #[test]
    fn of_a_stream_that_breaks_off_only_whole_events_were_forwarded() {
        let stream = EVENTS[0].repeat(2);
        for (hide, cut) in [false, true].into_iter().flat_map(|hide| (0..stream.len()).map(move |cut| (hide, cut))) {
            let mut reader = Reader::new(chat(), hide);
            let mut out = VecDeque::new();
            for byte in &stream.as_bytes()[..cut] {
                reader.take(Bytes::copy_from_slice(&[*byte]), &mut out);
            }
            reader.break_off(&mut out);
            let whole = cut / EVENTS[0].len() * EVENTS[0].len();
            let out: Vec<u8> = out.into_iter().flatten().collect();
            assert_eq!(out, &stream.as_bytes()[..whole], "cut at {cut}");
        }
        let mut reader = Reader::new(chat(), false);
        let mut out = VecDeque::new();
        reader.take(Bytes::from(vec![b'x'; MOST_EVENT + 1]), &mut out);
        reader.break_off(&mut out);
        assert_eq!(out.back().unwrap(), "\n\n", "what was forwarded in part is ended");
    }

    #[test]
    fn split_at_every_byte_it_is_the_same_stream() {
        let stream: String = EVENTS.concat();
        for hide in [false, true] {
            let whole = run(&[stream.as_bytes()], hide);
            for cut in 0..=stream.len() {
                let (a, b) = stream.as_bytes().split_at(cut);
                assert_eq!(run(&[a, b], hide), whole, "cut at {cut}, hidden: {hide}");
            }
            let bytes: Vec<&[u8]> = stream.as_bytes().chunks(1).collect();
            assert_eq!(run(&bytes, hide), whole, "byte by byte, hidden: {hide}");
        }
    }

    proptest! {
        /// However a stream is cut into pieces, the same bytes are forwarded and the same is read.
        #[test]
        fn pieces_do_not_matter(events in prop::collection::vec(prop::sample::select(EVENTS), 0..12),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..10), hide in any::<bool>()) {
            let stream = events.concat().into_bytes();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
            cuts.sort_unstable();
            let mut pieces = vec![];
            let mut from = 0;
            for cut in cuts {
                pieces.push(&stream[from..cut]);
                from = cut;
            }
            pieces.push(&stream[from..]);
            let whole = run(&[&stream], hide);
            prop_assert_eq!(run(&pieces, hide), whole);
        }

        /// Bytes that are no events are forwarded unchanged.
        #[test]
        fn rubbish_passes(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..10), hide in any::<bool>()) {
            let whole: Vec<u8> = pieces.concat();
            let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
            prop_assert_eq!(run(&pieces, hide).0, whole);
        }
    }
}
