//! The changes between two documents, leaf by leaf, in a form that may be shown in an audit entry or before a write.

use std::collections::HashSet;
use std::fmt;

use serde_json::Value;

use super::path::Path;
use super::secret::mask;

/// One leaf that differs. Secrets are masked on both sides, so a secret that changed reads `*** → ***`.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    pub path: Path,
    /// `None` if there was nothing.
    pub before: Option<Value>,
    /// `None` if nothing is left.
    pub after: Option<Value>,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.before, &self.after) {
            (Some(before), Some(after)) => write!(f, "{}: {before} → {after}", self.path),
            (None, Some(after)) => write!(f, "{}: + {after}", self.path),
            (Some(before), None) => write!(f, "{}: - {before}", self.path),
            (None, None) => write!(f, "{}", self.path),
        }
    }
}

/// The changes on one line of at most `most` characters.
pub fn describe(changes: &[Change], most: usize) -> String {
    let mut out = String::new();
    for (i, change) in changes.iter().enumerate() {
        let next = format!("{}{change}", if i == 0 { "" } else { "; " });
        let left = format!("… and {} more", changes.len() - i);
        let is_last = i + 1 == changes.len();
        if out.chars().count() + next.chars().count() + if is_last { 0 } else { left.chars().count() } > most {
            let room = most.saturating_sub(left.chars().count());
            out = out.chars().take(room).collect();
            return (out + &left).chars().take(most).collect();
        }
        out.push_str(&next);
    }
    out
}

pub(super) fn between(before: &Value, after: &Value) -> Vec<Change> {
    let mut changes = vec![];
    // The values themselves decide whether a leaf differs; the masked ones are shown.
    compare(&Path::root(), Some((before, &mask(before))), Some((after, &mask(after))), &mut changes);
    changes
}

/// A value and its masked form.
type Pair<'a> = (&'a Value, &'a Value);

fn compare(path: &Path, before: Option<Pair<'_>>, after: Option<Pair<'_>>, changes: &mut Vec<Change>) {
    if before.map(|(value, _)| value) == after.map(|(value, _)| value) {
        return;
    }
    let is_map = |pair: Option<Pair<'_>>| pair.is_none_or(|(value, _)| value.is_object());
    let is_filled =
        |pair: Option<Pair<'_>>| pair.is_some_and(|(value, _)| value.as_object().is_some_and(|map| !map.is_empty()));
    if is_map(before) && is_map(after) && (is_filled(before) || is_filled(after)) {
        // An empty object that is filled or emptied is described by its leaves.
        for key in keys(before, after) {
            compare(&path.clone().key(&key), member(before, &key), member(after, &key), changes);
        }
        return;
    }
    if let (Some((Value::Array(a), Value::Array(shown_a))), Some((Value::Array(b), Value::Array(shown_b)))) =
        (before, after)
        && a.len() == b.len()
    {
        for (i, (old, new)) in a.iter().zip(shown_a).zip(b.iter().zip(shown_b)).enumerate() {
            compare(&path.clone().index(i), Some(old), Some(new), changes);
        }
        return;
    }
    let shown = |pair: Option<Pair<'_>>| pair.map(|(_, shown)| shown.clone());
    changes.push(Change { path: path.clone(), before: shown(before), after: shown(after) });
}

fn keys(before: Option<Pair<'_>>, after: Option<Pair<'_>>) -> Vec<String> {
    let of = |pair: Option<Pair<'_>>| -> Vec<String> {
        pair.and_then(|(value, _)| value.as_object()).map(|map| map.keys().cloned().collect()).unwrap_or_default()
    };
    let mut keys = of(before);
    // A set, because whoever writes the file may write very many keys.
    let known: HashSet<&String> = keys.iter().collect();
    let new: Vec<String> = of(after).into_iter().filter(|key| !known.contains(key)).collect();
    keys.extend(new);
    keys
}

fn member<'a>(pair: Option<Pair<'a>>, key: &str) -> Option<Pair<'a>> {
    let (value, shown) = pair?;
    Some((value.get(key)?, shown.get(key).unwrap_or(&Value::Null)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn changes(before: Value, after: Value) -> Vec<String> {
        between(&before, &after).iter().map(Change::to_string).collect()
    }

    #[test]
    fn changes_are_told_leaf_by_leaf_without_secrets() {
        let before = json!({"a": 1, "gone": {"x": true}, "list": [1, 2], "token": "one", "same": "s", "long": [1]});
        let after =
            json!({"a": 2, "new": {"b": {"c": []}}, "list": [1, 3], "token": "two", "same": "s", "long": [1, 2]});
        assert_eq!(
            changes(before, after),
            [
                "a: 1 → 2",
                "gone.x: - true",
                "list[1]: 2 → 3",
                r#"token: "***" → "***""#,
                "long: [1] → [1,2]",
                "new.b.c: + []"
            ]
        );
    }

    #[test]
    fn the_same_content_has_no_changes() {
        assert!(changes(json!({"a": {"b": [1]}}), json!({"a": {"b": [1]}})).is_empty());
        assert_eq!(changes(json!({"a": {}}), json!({})), ["a: - {}"]);
        assert_eq!(changes(json!({"a": {"b": 1}}), json!({"a": {}})), ["a.b: - 1"]);
        assert_eq!(changes(json!({"a": {"b": 1}}), json!({"a": 1})), [r#"a: {"b":1} → 1"#]);
    }

    #[test]
    fn a_description_is_bounded() {
        let changes = between(&json!({}), &json!({"a": 1, "b": "x".repeat(100), "c": 3}));
        assert_eq!(describe(&changes, 1000).matches("; ").count(), 2);
        assert_eq!(describe(&changes, 30), "a: + 1… and 2 more");
        for most in 0..60 {
            assert!(describe(&changes, most).chars().count() <= most);
        }
        assert_eq!(describe(&[], 10), "");
    }
}
