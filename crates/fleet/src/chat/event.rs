//! Splits a byte stream into server-sent events without changing any byte.

use serde_json::Value;

/// Bytes that do not form a whole event yet.
#[derive(Default)]
pub struct Events {
    rest: Vec<u8>,
    /// How far `rest` was searched.
    searched: usize,
}

/// An event, byte for byte as it arrived.
pub struct Event {
    pub bytes: Vec<u8>,
}

impl Events {
    pub fn push(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
    }

    /// The next whole event: it ends with an empty line.
    pub fn next(&mut self) -> Option<Event> {
        let mut from = self.searched;
        while let Some(at) = self.rest[from..].iter().position(|b| *b == b'\n') {
            let end = from + at + 1;
            let line_feeds =
                self.rest[end..].strip_prefix(b"\r\n").map(|_| 2).or(self.rest[end..].strip_prefix(b"\n").map(|_| 1));
            if let Some(more) = line_feeds {
                let rest = self.rest.split_off(end + more);
                self.searched = 0;
                return Some(Event { bytes: std::mem::replace(&mut self.rest, rest) });
            }
            from = end;
        }
        // The last line feed may begin an empty line whose rest has not arrived yet.
        self.searched = self.rest.len().saturating_sub(2);
        None
    }

    /// The remaining bytes at the end of the stream.
    pub fn rest(&mut self) -> Vec<u8> {
        self.searched = 0;
        std::mem::take(&mut self.rest)
    }

    pub fn len(&self) -> usize {
        self.rest.len()
    }
}

impl Event {
    /// Its data, the lines joined.
    pub fn data(&self) -> String {
        let text = String::from_utf8_lossy(&self.bytes);
        let lines = text.lines().filter_map(|line| line.strip_prefix("data:"));
        lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n")
    }
}

/// The answer so far.
#[derive(Default)]
pub struct Reply {
    pub content: String,
    pub prompt_tokens: Option<i64>,
    pub completion_tokens: Option<i64>,
    pub finished: bool,
    /// The error that the gateway sent in the middle of the answer.
    pub error: Option<String>,
}

impl Reply {
    /// Adds a chunk.
    pub fn take(&mut self, data: &str) {
        let Ok(chunk) = serde_json::from_str::<Value>(data) else { return };
        for choice in chunk["choices"].as_array().into_iter().flatten() {
            // If there are several choices, the conversation goes on with the first.
            if choice["index"].as_i64().unwrap_or(0) != 0 {
                continue;
            }
            self.content.push_str(choice["delta"]["content"].as_str().unwrap_or_default());
            self.finished |= choice["finish_reason"].is_string();
        }
        let count = |field: &str| chunk["usage"][field].as_i64();
        self.prompt_tokens = count("prompt_tokens").or(self.prompt_tokens);
        self.completion_tokens = count("completion_tokens").or(self.completion_tokens);
        if let Some(message) = chunk["error"]["message"].as_str() {
            self.error = Some(message.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STREAM: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hé\"}}]}\n\n: ping\r\n\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"llo\"},\
        \"finish_reason\":\"stop\"}]}\n\ndata: {\"choices\":[],\"usage\":{\"completion_tokens\":7}}\n\ndata: [DONE]\n\n";

    proptest! {
        #[test]
        fn however_it_is_cut_the_bytes_and_the_reply_are_the_same(cuts in prop::collection::vec(0usize..STREAM.len(), 0..12)) {
            let mut cuts = cuts;
            cuts.extend([0, STREAM.len()]);
            cuts.sort_unstable();
            let (mut events, mut passed, mut reply, mut count) = (Events::default(), vec![], Reply::default(), 0);
            for pair in cuts.windows(2) {
                events.push(&STREAM.as_bytes()[pair[0]..pair[1]]);
                while let Some(event) = events.next() {
                    reply.take(&event.data());
                    count += 1;
                    passed.extend(event.bytes);
                }
            }
            prop_assert_eq!(passed, STREAM.as_bytes());
            prop_assert_eq!((reply.content.as_str(), reply.completion_tokens, reply.finished), ("Héllo", Some(7), true));
            prop_assert_eq!((count, events.len()), (5, 0));
        }

        #[test]
        fn rubbish_is_passed_on_and_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let (mut events, mut passed) = (Events::default(), vec![]);
            for piece in bytes.chunks(7) {
                events.push(piece);
                while let Some(event) = events.next() {
                    Reply::default().take(&event.data());
                    passed.extend(event.bytes);
                }
            }
            passed.extend(events.rest());
            prop_assert_eq!(passed, bytes);
        }
    }
}
