//! OpenClaw's configuration file, `openclaw.json`, as a text that is edited in place: everything that an edit does not
//! concern keeps every byte, comments and unknown keys included. A text that cannot be parsed is an error with its line
//! and column; then there is no document, so that nothing can be written over the file.

mod diff;
mod edit;
#[cfg(test)]
mod fuzz;
mod json5;
mod path;
mod relocate;
mod secret;

use std::fmt;

use base::{Error, Kind as ErrorKind, Result};
use serde_json::{Map, Value};

pub use diff::{Change, describe};
pub use json5::ParseError;
use json5::{Item, Kind, Node};
pub use path::{Path, Segment};
pub use secret::{MASK, mask, mask_words};

/// Larger than any real configuration, and small enough to refuse a wrong file.
pub const MAX_BYTES: usize = 4 * 1024 * 1024;

#[derive(Clone)]
pub struct Document {
    text: String,
    root: Node,
}

impl Document {
    /// What a new instance begins with.
    pub fn empty() -> Document {
        let text = "{\n}\n".to_owned();
        let root = Node { span: 0..3, kind: Kind::Object(vec![]) };
        Document { text, root }
    }

    pub fn parse(text: &str) -> Result<Document, ParseError> {
        if text.len() > MAX_BYTES {
            return Err(ParseError::at(text, 0, format!("the file has more than {MAX_BYTES} bytes")));
        }
        let root = json5::parse(text)?;
        if !root.is_object() {
            return Err(ParseError::at(text, root.span.start, "the file must hold an object"));
        }
        Ok(Document { text: text.to_owned(), root })
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Document, ParseError> {
        match str::from_utf8(bytes) {
            Ok(text) => Document::parse(text),
            Err(error) => {
                let before = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
                Err(ParseError::at(&before, before.len(), "the file is not UTF-8"))
            }
        }
    }

    /// The file's content, to be written. It holds secrets.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// SHA-256 of the content in hexadecimal digits, as `sha256sum` prints it.
    pub fn hash(&self) -> String {
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, self.text.as_bytes());
        digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The whole content as OpenClaw sees it. It holds secrets.
    pub fn value(&self) -> Value {
        self.root.value()
    }

    /// The whole content with secrets masked, to be shown. Comments are left out, since they may contain a former
    /// value.
    pub fn masked(&self) -> Value {
        mask(&self.value())
    }

    pub fn get(&self, path: impl Into<Path>) -> Option<Value> {
        self.node(path.into().segments()).map(Node::value)
    }

    pub fn get_str(&self, path: impl Into<Path>) -> Option<String> {
        match self.get(path)? {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    pub fn has(&self, path: impl Into<Path>) -> bool {
        self.node(path.into().segments()).is_some()
    }

    /// The keys of the object at `path`, without duplicates; empty if there is no object.
    pub fn keys(&self, path: impl Into<Path>) -> Vec<String> {
        match self.get(path) {
            Some(Value::Object(map)) => map.into_iter().map(|(key, _)| key).collect(),
            _ => vec![],
        }
    }

    /// Sets a value, and creates the objects above it. Returns whether anything changed: a value that is already the
    /// same keeps its text.
    pub fn set(&mut self, path: impl Into<Path>, value: Value) -> Result<bool> {
        let path = path.into();
        // Normalize the value as JavaScript reads it: 1.0 is 1, and every number is a double.
        let value = json5::parse(&value.to_string()).map_err(|_| cannot(&path, "is nested too deep"))?.value();
        if self.get(&path).as_ref() == Some(&value) {
            return Ok(false);
        }
        // Find the longest part of the path that exists.
        let segments = path.segments();
        let there = (0..=segments.len()).rev().find(|n| self.node(&segments[..*n]).is_some()).unwrap_or(0);
        let mut expected = self.value();
        if there == segments.len() {
            self.check_edit(edit::replace(&self.text, &self.root, segments, &value), {
                *at_mut(&mut expected, segments).ok_or_else(|| lost(&path))? = value;
                expected
            })?;
            return Ok(true);
        }
        let (parent, new, below) = (&segments[..there], &segments[there], &segments[there + 1..]);
        let value = below.iter().rev().try_fold(value, |inner, segment| match segment {
            Segment::Key(key) => Ok(Value::Object(Map::from_iter([(key.clone(), inner)]))),
            Segment::Index(0) => Ok(Value::Array(vec![inner])),
            Segment::Index(_) => Err(cannot(&path, "there is no list that long")),
        })?;
        let parent_path = Path::from(parent.to_vec());
        let target = at_mut(&mut expected, parent).ok_or_else(|| lost(&path))?;
        match (target, new) {
            (Value::Object(map), Segment::Key(key)) => {
                map.insert(key.clone(), value.clone());
            }
            (Value::Array(list), Segment::Index(index)) if *index == list.len() => list.push(value.clone()),
            (Value::Array(_), Segment::Index(_)) => return Err(cannot(&path, "there is no list that long")),
            (_, Segment::Key(_)) => return Err(cannot(&parent_path, "is not an object")),
            (_, Segment::Index(_)) => return Err(cannot(&parent_path, "is not a list")),
        }
        let key = match new {
            Segment::Key(key) => Some(key.as_str()),
            Segment::Index(_) => None,
        };
        self.check_edit(edit::insert(&self.text, &self.root, parent, key, &value), expected)?;
        Ok(true)
    }

    /// Removes a value, with all duplicates of its key. Returns whether there was one.
    pub fn remove(&mut self, path: impl Into<Path>) -> Result<bool> {
        let path = path.into();
        let Some((last, parent)) = path.segments().split_last() else {
            return Err(cannot(&path, "cannot be removed"));
        };
        if !self.has(&path) {
            return Ok(false);
        }
        let mut expected = self.value();
        match (at_mut(&mut expected, parent), last) {
            (Some(Value::Object(map)), Segment::Key(key)) => {
                map.shift_remove(key);
            }
            (Some(Value::Array(list)), Segment::Index(index)) if *index < list.len() => {
                list.remove(*index);
            }
            _ => return Err(lost(&path)),
        }
        let mut text = self.text.clone();
        let mut root = self.root.clone();
        while let Some(items) = node_at(&root, parent).and_then(Node::items) {
            let Some(index) = position(items, last) else { break };
            text = edit::remove(&text, items, index);
            root = json5::parse(&text).map_err(|error| broke(&error))?;
            if matches!(last, Segment::Index(_)) {
                break;
            }
        }
        self.check_edit(text, expected)?;
        Ok(true)
    }

    /// What changes from this document to `other`, leaf by leaf, secrets masked.
    pub fn diff(&self, other: &Document) -> Vec<Change> {
        diff::between(&self.value(), &other.value())
    }

    /// The paths that a dotted path of OpenClaw's can mean: it does not show which dots belong to keys.
    pub fn resolve(&self, dotted: &str) -> Vec<Path> {
        let mut found = vec![];
        let dotted = if dotted == "<root>" { "" } else { dotted };
        resolve(&self.root, dotted, &mut vec![], &mut found);
        found
    }

    fn node(&self, segments: &[Segment]) -> Option<&Node> {
        node_at(&self.root, segments)
    }

    /// Accepts an edited text only if its value is exactly the expected one.
    fn check_edit(&mut self, text: String, expected: Value) -> Result<()> {
        let edited = Document::parse(&text).map_err(|error| broke(&error))?;
        if edited.value() != expected {
            return Err(Error::internal("an edit of openclaw.json did not come out as meant; nothing was changed"));
        }
        *self = edited;
        Ok(())
    }
}

/// Does not print the content, which holds secrets.
impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Document({} bytes)", self.text.len())
    }
}

impl From<ParseError> for Error {
    fn from(error: ParseError) -> Error {
        Error::new(ErrorKind::Conflict, format!("openclaw.json cannot be read: {error}"))
    }
}

fn cannot(path: &Path, why: &str) -> Error {
    Error::conflict(format!("openclaw.json cannot be edited: {path} {why}"))
}

fn lost(path: &Path) -> Error {
    Error::internal(format!("openclaw.json: {path} is not where it was found"))
}

fn broke(error: &ParseError) -> Error {
    Error::internal(format!("an edit broke openclaw.json ({error}); nothing was changed"))
}

/// The index of an item. If a key occurs twice, the last counts.
fn position(items: &[Item], segment: &Segment) -> Option<usize> {
    match segment {
        Segment::Key(key) => items.iter().rposition(|item| item.key.as_ref() == Some(key)),
        Segment::Index(index) => items.get(*index).filter(|item| item.key.is_none()).map(|_| *index),
    }
}

fn node_at<'a>(root: &'a Node, segments: &[Segment]) -> Option<&'a Node> {
    segments.iter().try_fold(root, |node, segment| {
        let items = node.items()?;
        Some(&items[position(items, segment)?].value)
    })
}

fn at_mut<'a>(value: &'a mut Value, segments: &[Segment]) -> Option<&'a mut Value> {
    segments.iter().try_fold(value, |value, segment| match segment {
        Segment::Key(key) => value.get_mut(key.as_str()),
        Segment::Index(index) => value.get_mut(*index),
    })
}

fn resolve(node: &Node, rest: &str, way: &mut Vec<Segment>, found: &mut Vec<Path>) {
    if rest.is_empty() {
        found.push(Path::from(way.clone()));
        return;
    }
    let mut step = |segment: Segment, node: &Node, rest: &str| {
        // The rest must begin a new segment, or be empty.
        let rest = match rest.strip_prefix('.') {
            Some(more) if !more.is_empty() => more,
            Some(_) => return,
            None if rest.is_empty() || rest.starts_with('[') => rest,
            None => return,
        };
        way.push(segment);
        resolve(node, rest, way, found);
        way.pop();
    };
    match &node.kind {
        Kind::Object(items) => {
            for (i, item) in items.iter().enumerate() {
                let Some(key) = item.key.as_deref().filter(|key| !key.is_empty()) else { continue };
                let counts = !items[i + 1..].iter().any(|later| later.key.as_deref() == Some(key));
                if let Some(rest) = rest.strip_prefix(key).filter(|_| counts) {
                    step(Segment::Key(key.to_owned()), &item.value, rest);
                }
            }
        }
        Kind::Array(items) => {
            let bracketed = rest.strip_prefix('[');
            let digits = bracketed.unwrap_or(rest);
            let length = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
            let (number, after) = digits.split_at(length);
            let after = if bracketed.is_some() { after.strip_prefix(']') } else { Some(after) };
            if let (Ok(index), Some(after)) = (number.parse::<usize>(), after)
                && let Some(item) = items.get(index)
            {
                step(Segment::Index(index), &item.value, after);
            }
        }
        Kind::Plain(_) | Kind::Text(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn doc(text: &str) -> Document {
        Document::parse(text).unwrap_or_else(|error| panic!("{text:?}: {error}"))
    }

    /// Sets a value, checks that setting it again changes nothing, and returns the text.
    fn after_set<const N: usize>(text: &str, path: [&str; N], value: Value) -> String {
        let mut doc = doc(text);
        assert!(doc.set(path, value.clone()).unwrap());
        assert!(!doc.set(path, value.clone()).unwrap());
        assert_eq!(doc.get(path), Some(value));
        doc.text().to_owned()
    }

    fn after_remove<const N: usize>(text: &str, path: [&str; N]) -> String {
        let mut doc = doc(text);
        assert!(doc.remove(path).unwrap());
        assert!(!doc.remove(path).unwrap());
        doc.text().to_owned()
    }

    #[test]
    fn a_value_is_replaced_and_nothing_else_moves() {
        let text = "// mine\n{\n\tgateway: { port: 0x10, // the port\n\t\tbind: 'lan', },\n}\n";
        assert_eq!(after_set(text, ["gateway", "port"], json!(18789)), text.replace("0x10", "18789"));
        assert_eq!(after_set(text, ["gateway", "bind"], json!("a\"b")), text.replace("'lan'", r#""a\"b""#));
    }

    #[test]
    fn a_value_that_is_the_same_keeps_its_text() {
        let text = "{a: 0x10, b: 'x', c: 16.0, d: [1,/**/2,],}";
        let mut document = doc(text);
        for (key, value) in [("a", json!(16)), ("b", json!("x")), ("c", json!(16)), ("d", json!([1, 2]))] {
            assert!(!document.set([key], value).unwrap());
        }
        assert_eq!(document.text(), text);
        assert!(!document.set(["a"], json!(16.0)).unwrap());
        assert!(document.set(["a"], json!(9_007_199_254_740_993_i64)).unwrap());
        assert_eq!(document.get(["a"]), Some(json!(9_007_199_254_740_992.0)));
        let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
        assert!(document.set(["b"], deep).is_err());
    }

    #[test]
    fn a_new_key_takes_the_shape_of_its_neighbours() {
        for (before, after) in [
            ("{}", "{\"x\":1}"),
            ("{ }", "{\"x\":1}"),
            ("{\"a\":1}", "{\"a\":1,\"x\":1}"),
            ("{\"a\": 1}", "{\"a\": 1, \"x\": 1}"),
            ("{a:1,}", "{a:1,\"x\":1,}"),
            ("{\n}\n", "{\n  \"x\": 1\n}\n"),
            ("{\n  \"a\": 1\n}\n", "{\n  \"a\": 1,\n  \"x\": 1\n}\n"),
            ("{\n\ta: 1,\n}\n", "{\n\ta: 1,\n\t\"x\": 1,\n}\n"),
            ("{\r\n    a: 1 // one\r\n}\r\n", "{\r\n    a: 1, // one\r\n    \"x\": 1\r\n}\r\n"),
            ("{\n  a: 1, /* one */ // uno\n  // last\n}", "{\n  a: 1, /* one */ // uno\n  \"x\": 1,\n  // last\n}"),
            ("{ a: 1 // one\n}", "{ a: 1, // one\n  \"x\": 1\n}"),
            ("{ /* nothing */ }", "{\"x\":1 /* nothing */ }"),
            ("{ // nothing\n}", "{\n  \"x\": 1 // nothing\n}"),
            ("{a:1 /* one */}", "{a:1, /* one */\"x\":1}"),
        ] {
            assert_eq!(after_set(before, ["x"], json!(1)), after, "{before:?}");
        }
    }

    #[test]
    fn objects_on_the_way_are_made() {
        let text = "{\n  a: {\n    b: 1\n  }\n}\n";
        let expected = "{\n  a: {\n    b: 1,\n    \"c\": {\n      \"d\": [\n        1,\n        2\n      ],\n      \"e\": {}\n    }\n  }\n}\n";
        assert_eq!(after_set(text, ["a", "c"], json!({"d": [1, 2], "e": {}})), expected);
        assert_eq!(after_set("{}", ["a", "b", "c"], json!("x")), r#"{"a":{"b":{"c":"x"}}}"#);
        assert_eq!(after_set("{a:{}}", ["a", "b"], json!(null)), r#"{a:{"b":null}}"#);
    }

    #[test]
    fn what_is_in_the_way_is_not_overwritten() {
        let mut document = doc("{a: 'text', l: [1]}");
        let error = document.set(["a", "b"], json!(1)).unwrap_err();
        assert_eq!(error.client, "openclaw.json cannot be edited: a is not an object");
        assert!(document.set(Path::from(["l"]).key("x"), json!(1)).is_err());
        assert!(document.set(Path::from(["a"]).index(0), json!(1)).is_err());
        assert!(document.set(Path::from(["l"]).index(2), json!(1)).is_err());
        assert!(document.remove(Path::root()).is_err());
        assert_eq!(document.text(), "{a: 'text', l: [1]}");
    }

    #[test]
    fn lists_are_edited_by_index() {
        let mut document = doc("{l: [1, {a: 1, b: 2}]}");
        assert!(document.set(Path::from(["l"]).index(1).key("b"), json!(3)).unwrap());
        assert!(document.remove(Path::from(["l"]).index(1).key("a")).unwrap());
        assert!(document.set(Path::from(["l"]).index(2), json!("x")).unwrap());
        assert!(document.set(Path::from(["l"]).index(0), json!([])).unwrap());
        assert_eq!(document.text(), r#"{l: [[], {b: 3}, "x"]}"#);
        assert!(document.remove(Path::from(["l"]).index(0)).unwrap());
        assert_eq!(document.value(), json!({"l": [{"b": 3}, "x"]}));
    }

    #[test]
    fn a_key_is_removed_with_its_line_and_its_comma() {
        for (before, after) in [
            ("{x:1}", "{}"),
            ("{ x:1 }", "{ }"),
            ("{a:1,x:2}", "{a:1}"),
            ("{x:1,a:2}", "{a:2}"),
            ("{a: 1, x: 2, b: 3}", "{a: 1, b: 3}"),
            ("{a: 1, x: 2 }", "{a: 1 }"),
            ("{a:1,x:2,}", "{a:1,}"),
            ("{\n  a: 1,\n  x: 2\n}\n", "{\n  a: 1\n}\n"),
            ("{\n  x: 2,\n  a: 1,\n}\n", "{\n  a: 1,\n}\n"),
            ("{\n  a: 1, // one\n  // two is\n  x: 2, // two\n  b: 3\n}", "{\n  a: 1, // one\n  // two is\n  b: 3\n}"),
            ("{\n  a: 1, // one\n  x: 2 }", "{\n  a: 1 // one\n }"),
            ("{\n  x: {\n    y: 1\n  },\n  a: 1\n}", "{\n  a: 1\n}"),
            ("{x: 1, /* b's\n */ b: 2}", "{/* b's\n */ b: 2}"),
            ("{x:1,a:2,x:3}", "{a:2}"),
            ("{\r\n  a: 1,\r\n  x: 2,\r\n}\r\n", "{\r\n  a: 1,\r\n}\r\n"),
        ] {
            assert_eq!(after_remove(before, ["x"]), after, "{before:?}");
        }
    }

    #[test]
    fn of_a_key_that_stands_twice_the_last_counts() {
        let mut document = doc("{a:1,a:{b:2}}");
        assert_eq!(document.get(["a", "b"]), Some(json!(2)));
        document.set(["a"], json!(3)).unwrap();
        assert_eq!(document.text(), "{a:1,a:3}");
        document.remove(["a"]).unwrap();
        assert_eq!(document.text(), "{}");
    }

    #[test]
    fn a_file_that_cannot_be_read_says_where() {
        let problem = |bytes: &[u8]| Document::from_bytes(bytes).map(|_| ()).unwrap_err().to_string();
        assert_eq!(problem(b"{\n  a: 1\n  b: 2\n}"), "line 3, column 3: expected ',' or '}', found 'b'");
        assert_eq!(problem(b"[]"), "line 1, column 1: the file must hold an object");
        assert_eq!(problem(b"{\n a: '\xff'}"), "line 2, column 6: the file is not UTF-8");
        let error = Error::from(Document::parse("{").unwrap_err());
        assert_eq!(
            error.client,
            "openclaw.json cannot be read: line 1, column 2: expected a key, found the end of the file"
        );
        let large = format!("{{}}{}", " ".repeat(MAX_BYTES));
        assert!(Document::parse(&large).is_err());
    }

    #[test]
    fn the_hash_is_what_sha256sum_prints() {
        assert_eq!(doc("{}").hash(), "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a");
    }

    #[test]
    fn the_content_does_not_print() {
        let document = doc("{token: 'example-0123'}");
        assert_eq!(format!("{document:?}"), "Document(23 bytes)");
    }

    #[test]
    fn dotted_paths_are_resolved_against_what_is_there() {
        let document = doc("{a:{b:[{c:1}], 'b.0':{c:2}}, 'x.y':{z:1}, l:[[1]], d:1, d:{e:2}}");
        let paths = |dotted: &str| document.resolve(dotted).iter().map(Path::to_string).collect::<Vec<_>>();
        assert_eq!(paths("x.y.z"), [r#"["x.y"].z"#]);
        assert_eq!(paths("a.b.0.c"), ["a.b[0].c", r#"a["b.0"].c"#]);
        assert_eq!(paths("a.b[0].c"), ["a.b[0].c"]);
        assert_eq!(paths("l[0][0]"), ["l[0][0]"]);
        assert_eq!(paths("l.0.0"), ["l[0][0]"]);
        assert_eq!(paths("d.e"), ["d.e"]);
        assert_eq!(paths("<root>"), ["<root>"]);
        assert_eq!(paths(""), ["<root>"]);
        for nothing in ["a.", "a.x", "l[0", "l[]", "l.", "l[9]", "ab", ".a", "l[99999999999999999999]"] {
            assert!(paths(nothing).is_empty(), "{nothing}");
        }
    }
}
