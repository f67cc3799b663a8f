//! Reads the output of `openclaw config validate --json`, and removes the keys that it names as unknown.

use base::{Error, Kind, Result};
use serde::Deserialize;
use serde_json::Value;

use super::Api;
use crate::document::{Change, Document, Path};

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Validation {
    pub valid: bool,
    #[serde(default)]
    pub issues: Vec<Issue>,
    #[serde(default)]
    pub warnings: Vec<Issue>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Issue {
    /// Dotted, `<root>` for the whole file.
    pub path: String,
    pub message: String,
}

impl Validation {
    /// Parses the program's output; lines before and after the JSON are skipped.
    pub fn parse(output: &str) -> Result<Validation> {
        let odd = |why: String| Error::new(Kind::Gateway, "openclaw config validate answered badly").with_operator(why);
        let starts = output.match_indices('{').filter(|(at, _)| *at == 0 || output[..*at].ends_with('\n'));
        for (at, _) in starts.take(50) {
            let mut answers = serde_json::Deserializer::from_str(&output[at..]).into_iter();
            if let Some(Ok(answer)) = answers.next() {
                return Ok(answer);
            }
        }
        Err(odd(format!("no answer in {} bytes", output.len())))
    }
}

impl Issue {
    /// Whether a start of the gateway reports this issue too. Only a channel's plugin knows the channel's keys, and a
    /// start does not ask it: then the start ends with 1, and reports only that something changed.
    pub fn is_told_at_start(&self) -> bool {
        self.message.contains("Unrecognized key")
    }

    /// The names of unknown keys in the message.
    fn unknown(&self) -> Option<&str> {
        ["Unrecognized key: ", "Unrecognized keys: ", "must not have additional properties: "]
            .iter()
            .find_map(|words| self.message.split_once(words))
            .map(|(_, names)| names)
    }
}

/// What was done with the keys that a validation named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removal {
    pub removed: Vec<Path>,
    /// Named, but not removed: not found, ambiguous, or never to be removed.
    pub kept: Vec<String>,
}

/// Keys that every version knows, that older forms are migrated from, or that OpenClaw needs to trust the file. A
/// validation that names one of them is wrong, or means something else than we think.
const NEVER: &[&[&str]] = &[
    &["meta"],
    &["gateway"],
    &["gateway", "mode"],
    &["gateway", "port"],
    &["gateway", "bind"],
    &["gateway", "auth"],
    &["gateway", "token"],
    &["agents"],
    &["agents", "defaults"],
    &["agents", "entries"],
    &["agents", "list"],
    &["models"],
    &["models", "providers"],
    &["channels"],
    &["logging"],
];

/// Removes the keys that OpenClaw itself named as unknown, and no others. Call it until it removes nothing: unknown
/// keys of a channel are reported only when no others are left.
pub fn remove_unknown(document: &mut Document, validation: &Validation) -> Result<Removal> {
    let mut removal = Removal::default();
    // Find all paths before the first removal, which would shift the elements of lists.
    let mut paths = vec![];
    for issue in &validation.issues {
        let Some(names) = issue.unknown() else { continue };
        let kept = format!("{}: {names}", issue.path).chars().take(300).collect();
        match &document.resolve(&issue.path)[..] {
            [parent] => {
                let found = named(names, &document.keys(parent));
                if found.is_empty() {
                    removal.kept.push(kept);
                }
                paths.extend(found.into_iter().map(|key| parent.clone().key(key)));
            }
            _ => removal.kept.push(kept),
        }
    }
    for path in paths {
        if NEVER.iter().any(|keys| path == Path::from(*keys)) {
            removal.kept.push(path.to_string());
        } else if document.remove(&path)? {
            removal.removed.push(path);
        }
    }
    Ok(removal)
}

/// The `keys` that are named in `"a", "b"`. Names are not escaped there, so they are compared with the existing keys.
fn named(names: &str, keys: &[String]) -> Vec<String> {
    let Some(inner) = names.trim().strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else { return vec![] };
    let mut found = vec![];
    let mut rest = Some(inner);
    while let Some(text) = rest {
        // Take the longest key that the text begins with: a key may contain the separator.
        let key = keys
            .iter()
            .filter(|key| {
                text == key.as_str() || text.strip_prefix(key.as_str()).is_some_and(|r| r.starts_with("\", \""))
            })
            .max_by_key(|key| key.len());
        match key {
            Some(key) => {
                found.push(key.clone());
                rest = text[key.len()..].strip_prefix("\", \"");
            }
            None => rest = text.split_once("\", \"").map(|(_, rest)| rest),
        }
    }
    found
}

/// Keys that change with every holder, and whose values cannot make a valid file invalid.
const ROUTINE: &[&[&str]] = &[
    &["cron", "enabled"],
    &["agents", "defaults", "heartbeat", "every"],
    &["gateway", "auth", "token"],
    &["models", "providers", Api::Completions.entry(), "apiKey"],
    &["models", "providers", Api::Messages.entry(), "apiKey"],
    &["models", "providers", Api::Responses.entry(), "apiKey"],
];

/// Whether a valid file stays valid after these changes. This avoids asking OpenClaw, which takes some seconds.
pub fn is_routine(changes: &[Change]) -> bool {
    let plain = |value: &Value| value.is_boolean() || value.is_string();
    changes.iter().all(|change| {
        let is_ours = ROUTINE.iter().any(|keys| change.path.is_at_or_below(keys));
        // A new value must be one that we write ourselves, and a changed one must keep its type. Any other value may
        // come from elsewhere and be invalid.
        let fits = match (&change.before, &change.after) {
            (_, None) => true,
            (None, Some(after)) => *after == Value::Bool(false) || *after == "0m",
            (Some(before), Some(after)) => plain(after) && before.is_string() == after.is_string(),
        };
        is_ours && fits
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const RECORDED: &str = include_str!("../../samples/validate.json");

    #[test]
    fn the_recorded_answer_is_read_and_its_keys_removed() {
        let validation = Validation::parse(RECORDED).unwrap();
        assert!(!validation.valid);
        let mut document = Document::parse(
            "{gateway:{mode:'local', bogus:1, bogus2:{a:1}}, fooBar:1,\n models:{providers:{fake:{models:[{id:'m', zzz:1}]}}}}",
        )
        .unwrap();
        let removal = remove_unknown(&mut document, &validation).unwrap();
        assert_eq!(
            document.value(),
            json!({"gateway": {"mode": "local"}, "models": {"providers": {"fake": {"models": [{"id": "m"}]}}}})
        );
        let removed: Vec<String> = removal.removed.iter().map(Path::to_string).collect();
        assert_eq!(removed, ["models.providers.fake.models[0].zzz", "gateway.bogus", "gateway.bogus2", "fooBar"]);
        assert!(removal.kept.is_empty());
        assert_eq!(remove_unknown(&mut document, &validation).unwrap().removed, []);
    }

    fn issue(path: &str, message: &str) -> Validation {
        let issue = Issue { path: path.into(), message: message.into() };
        Validation { valid: false, issues: vec![issue], warnings: vec![] }
    }

    fn after(text: &str, path: &str, message: &str) -> (serde_json::Value, Removal) {
        let mut document = Document::parse(text).unwrap();
        let removal = remove_unknown(&mut document, &issue(path, message)).unwrap();
        (document.value(), removal)
    }

    #[test]
    fn a_channels_keys_are_named_in_other_words() {
        let message = r#"invalid config: must not have additional properties: "streamMode", "other"q""#;
        let (value, removal) =
            after(r#"{channels:{telegram:{enabled:true,streamMode:'x','other"q':1}}}"#, "channels.telegram", message);
        assert_eq!(value, json!({"channels": {"telegram": {"enabled": true}}}));
        assert_eq!(removal.removed.len(), 2);
    }

    #[test]
    fn names_are_taken_as_they_stand_in_the_file() {
        let message = "Unrecognized keys: \"a\"b\", \"c, d\", \"e\\f\", \"ü\n\", \"x\", \"y\"";
        let text = r#"{g:{'a"b':1,'c, d':2,'e\\f':3,'ü\n':4,'x", "y':5,kept:6}}"#;
        let (value, removal) = after(text, "g", message);
        assert_eq!(value, json!({"g": {"kept": 6}}));
        assert_eq!(removal.removed.len(), 5);
    }

    #[test]
    fn what_must_stay_stays_whatever_is_said() {
        for (path, message) in [
            ("<root>", r#"Unrecognized key: "gateway""#),
            ("<root>", r#"Unrecognized key: "meta""#),
            ("gateway", r#"Unrecognized key: "token""#),
            ("agents", r#"Unrecognized key: "list""#),
            ("nowhere", r#"Unrecognized key: "x""#),
            ("gateway", r#"Unrecognized key: "absent""#),
            ("gateway", "Unrecognized key: token"),
            ("a.b", r#"Unrecognized key: "c""#),
        ] {
            let text = "{meta:{},gateway:{token:'x'},agents:{list:[{id:'m'}]},'a.b':{c:1},a:{b:{c:1}}}";
            let (value, removal) = after(text, path, message);
            assert_eq!(value, Document::parse(text).unwrap().value(), "{path}");
            assert_eq!((removal.removed.len(), removal.kept.len()), (0, 1), "{path}");
        }
        // The message names no unknown key; older releases say no more than this.
        let (_, removal) = after("{gateway:{x:1}}", "gateway", "Invalid input");
        assert_eq!(removal, Removal::default());
    }

    #[test]
    fn the_answer_is_found_among_other_lines() {
        let text = format!("warning: {{odd}}\n{{not json\n{RECORDED}\nbye");
        assert_eq!(Validation::parse(&text).unwrap().issues.len(), 3);
        assert!(Validation::parse(r#"{"valid":true,"path":"/x","warnings":[]}"#).unwrap().valid);
        assert!(Validation::parse(r#"{"valid":true,"path":"/x"}"#).unwrap().valid);
        for bad in ["", "command not found", "{}", r#"{"valid":"yes"}"#, &"{\n".repeat(10_000)] {
            assert!(Validation::parse(bad).is_err());
        }
    }
}
