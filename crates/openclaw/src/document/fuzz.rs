//! Any text, any edit: parsing never panics, and an edit has exactly its intended effect.

use proptest::prelude::*;
use serde_json::{Map, Value};

use super::json5;
use super::{Document, Path, Segment};

/// A value and one of the many ways to write it.
type Written = (Value, String);

/// Blanks and comments that may be between any two tokens.
fn trivia() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        6 => Just(String::new()),
        4 => Just(" ".to_owned()),
        2 => Just("\n".to_owned()),
        1 => Just("\r\n".to_owned()),
        1 => Just("\t".to_owned()),
        1 => "[ -)+-.0-~]{0,6}".prop_map(|inside| format!("/*{inside}*/")),
        1 => "[ -~]{0,6}".prop_map(|inside| format!("//{inside}\n")),
        1 => "[ -)+-.0-~]{0,3}".prop_map(|inside| format!("/*{inside}\n*/")),
        1 => Just("\u{a0}\u{feff}".to_owned()),
    ];
    proptest::collection::vec(piece, 0..3).prop_map(|pieces| pieces.concat())
}

fn text() -> impl Strategy<Value = Written> {
    ("(\\PC|[\\n\\t\"'\\\\]){0,8}", any::<bool>()).prop_map(|(text, single)| {
        let quoted = Value::from(text.as_str()).to_string();
        let written = if single {
            format!("'{}'", quoted[1..quoted.len() - 1].replace("\\\"", "\"").replace('\'', "\\'"))
        } else {
            quoted
        };
        (Value::from(text), written)
    })
}

fn plain() -> impl Strategy<Value = Written> {
    prop_oneof![
        Just((Value::Null, "null".to_owned())),
        any::<bool>().prop_map(|b| (Value::from(b), b.to_string())),
        any::<i32>().prop_map(|n| (Value::from(n), n.to_string())),
        (0u16..).prop_map(|n| (Value::from(i64::from(n)), format!("+0x{n:X}"))),
        (0u8..).prop_map(|n| (Value::from(i64::from(n)), format!("{n}."))),
        text(),
    ]
}

fn key() -> impl Strategy<Value = (String, String)> {
    prop_oneof![
        "[a-d]".prop_map(|key| (key.clone(), key)),
        "[a-z$_][a-z0-9$_]{0,5}".prop_map(|key| (key.clone(), key)),
        text().prop_map(|(value, written)| (value.as_str().unwrap_or_default().to_owned(), written)),
    ]
}

fn list(open: char, close: char, items: Vec<(String, String, String)>, trailing: bool, inside: &str) -> String {
    let count = items.len();
    let mut out = format!("{open}{inside}");
    for (i, (before, item, after)) in items.into_iter().enumerate() {
        out += &format!("{before}{item}{after}");
        if i + 1 < count || trailing {
            out.push(',');
        }
    }
    out.push(close);
    out
}

fn object(of: impl Strategy<Value = Written> + 'static) -> impl Strategy<Value = Written> {
    let item = (key(), of, trivia(), trivia(), trivia());
    (proptest::collection::vec(item, 0..5), any::<bool>(), trivia()).prop_map(|(items, trailing, inside)| {
        let mut map = Map::new();
        let mut texts = vec![];
        for ((key, written_key), (value, written), before, between, after) in items {
            map.insert(key, value);
            texts.push((before, format!("{written_key}{between}:{written}"), after));
        }
        (Value::Object(map), list('{', '}', texts, trailing, &inside))
    })
}

fn value() -> impl Strategy<Value = Written> {
    plain().prop_recursive(4, 40, 5, |inner| {
        let item = (inner.clone(), trivia(), trivia());
        let array =
            (proptest::collection::vec(item, 0..4), any::<bool>(), trivia()).prop_map(|(items, trailing, inside)| {
                let (values, texts): (Vec<Value>, Vec<_>) = items
                    .into_iter()
                    .map(|((value, written), before, after)| (value, (before, written, after)))
                    .unzip();
                (Value::Array(values), list('[', ']', texts, trailing, &inside))
            });
        prop_oneof![array, object(inner)]
    })
}

fn document() -> impl Strategy<Value = Written> {
    (trivia(), object(value()), trivia())
        .prop_map(|(before, (value, written), after)| (value, format!("{before}{written}{after}")))
}

/// Every place of a value, the root left out.
fn places(value: &Value, path: &Path, out: &mut Vec<Path>) {
    let below: Vec<(Path, &Value)> = match value {
        Value::Object(map) => map.iter().map(|(key, value)| (path.clone().key(key), value)).collect(),
        Value::Array(list) => list.iter().enumerate().map(|(i, value)| (path.clone().index(i), value)).collect(),
        _ => vec![],
    };
    for (path, value) in below {
        out.push(path.clone());
        places(value, &path, out);
    }
}

fn is_subsequence(small: &str, large: &str) -> bool {
    let mut rest = large.chars();
    small.chars().filter(|c| !json5::is_space(*c)).all(|c| rest.any(|other| other == c))
}

proptest! {
    #[test]
    fn fuzz_any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Document::from_bytes(&bytes);
    }

    #[test]
    fn fuzz_near_json5_is_read_or_refused(text in "([{}\\[\\],:'\"/*\\\\0-9a-fxuInN+.\\n -]|\\PC){0,60}") {
        if let Err(error) = json5::parse(&text).map(|node| node.value()) {
            prop_assert!(error.line >= 1 && error.column >= 1);
        }
    }

    #[test]
    fn fuzz_every_way_to_write_a_value_reads_as_that_value((value, text) in document()) {
        let document = Document::parse(&text).map_err(|error| TestCaseError::fail(format!("{error}: {text:?}")))?;
        prop_assert_eq!(document.value(), value);
        prop_assert_eq!(document.text(), text);
        let _ = document.masked();
    }

    #[test]
    fn fuzz_a_replaced_value_is_there_and_all_else_stays(
        (value, text) in document(), pick in any::<prop::sample::Index>(), (new, _) in value(),
    ) {
        let mut all = vec![];
        places(&value, &Path::root(), &mut all);
        if all.is_empty() {
            return Ok(());
        }
        let path = pick.get(&all);
        let mut document = Document::parse(&text).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let span = document.node(path.segments()).map(|node| node.span.clone()).unwrap_or_default();
        let changed = document.set(path, new.clone()).map_err(|error| TestCaseError::fail(format!("{error}: {text:?}")))?;
        prop_assert_eq!(document.get(path), Some(new.clone()));
        prop_assert!(document.text().starts_with(&text[..span.start]), "the beginning moved: {:?}", text);
        prop_assert!(document.text().ends_with(&text[span.end..]), "the end moved: {:?}", text);
        prop_assert_eq!(changed, document.text() != text);
        prop_assert!(!document.set(path, new).map_err(|error| TestCaseError::fail(error.to_string()))?);
    }

    #[test]
    fn fuzz_a_new_key_is_there_and_all_else_stays(
        (value, text) in document(), pick in any::<prop::sample::Index>(), (new, _) in value(), (key, _) in key(),
    ) {
        let mut all = vec![Path::root()];
        places(&value, &Path::root(), &mut all);
        let parent = pick.get(&all);
        let mut document = Document::parse(&text).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let path = match document.get(parent) {
            Some(Value::Array(list)) => parent.clone().index(list.len()),
            Some(Value::Object(map)) if !map.contains_key(&key) => parent.clone().key(&key),
            _ => return Ok(()),
        };
        document.set(&path, new.clone()).map_err(|error| TestCaseError::fail(format!("{error}: {text:?}")))?;
        prop_assert_eq!(document.get(&path), Some(new));
        prop_assert!(is_subsequence(&text, document.text()), "{:?} → {:?}", text, document.text());
        // Removing it again restores the original value.
        document.remove(&path).map_err(|error| TestCaseError::fail(format!("{error}: {text:?}")))?;
        prop_assert_eq!(document.value(), value);
    }

    #[test]
    fn fuzz_a_removed_value_is_gone_and_all_else_stays((value, text) in document(), pick in any::<prop::sample::Index>()) {
        let mut all = vec![];
        places(&value, &Path::root(), &mut all);
        if all.is_empty() {
            return Ok(());
        }
        let path = pick.get(&all);
        let mut document = Document::parse(&text).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let was_key = matches!(path.segments().last(), Some(Segment::Key(_)));
        document.remove(path).map_err(|error| TestCaseError::fail(format!("{error}: {text:?}")))?;
        prop_assert!(is_subsequence(document.text(), &text), "{:?} → {:?}", text, document.text());
        prop_assert!(!was_key || !document.has(path));
    }

    #[test]
    fn fuzz_differences_are_found_and_tell_no_secret((one, _) in object(value()), (two, _) in object(value())) {
        let hide = |value: &Value| Value::Object(Map::from_iter([("apiKey".to_owned(), Value::from(format!("hush{value}")))]));
        let wrap = |value: &Value| Value::Object(Map::from_iter([("v".to_owned(), value.clone()), ("s".to_owned(), hide(value))]));
        let changes = super::diff::between(&wrap(&one), &wrap(&two));
        prop_assert_eq!(changes.is_empty(), one == two);
        prop_assert!(!super::describe(&changes, 100_000).contains("hush"));
    }

    #[test]
    fn fuzz_resolving_never_panics_and_finds_only_what_is_there((_, text) in document(), dotted in "[a-d.0-2\\[\\]]{0,12}") {
        let document = Document::parse(&text).map_err(|error| TestCaseError::fail(error.to_string()))?;
        for path in document.resolve(&dotted) {
            prop_assert!(document.has(&path));
        }
    }
}
