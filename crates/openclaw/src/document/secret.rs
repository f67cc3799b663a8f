//! Finds the secrets in a document. Most are recognized by the name of their key, and a few kinds of values by
//! themselves, wherever they are. When in doubt, a value is masked.

use serde_json::{Map, Value};

/// Shown instead of a secret.
pub const MASK: &str = "***";

/// Suffixes of keys with a secret value, compared in lower case with letters and digits only.
const ENDINGS: &[&str] = &[
    "token",
    "tokens",
    "secret",
    "secrets",
    "password",
    "passwords",
    "passwd",
    "passphrase",
    "apikey",
    "apikeys",
    "privatekey",
    "accesskey",
    "secretkey",
    "signingkey",
    "encryptkey",
    "encryptionkey",
    "clientkey",
    "authkey",
    "sharedkey",
    "masterkey",
    "bearer",
    "authorization",
    "cookie",
    "cookies",
    "credential",
    "credentials",
    "serviceaccount",
];
/// Whole keys with a secret value.
const KEYS: &[&str] = &["key", "pass", "pwd", "pin", "auth"];
/// Keys of objects whose member names users choose freely, so that a name proves nothing.
const CONTAINERS: &[&str] = &["env", "vars", "headers", "requiredheaders", "securityheaders"];
/// Prefixes of values that are secrets wherever they are.
const BEGINNINGS: &[&str] = &[
    "sk-",
    "sk_",
    "xoxb-",
    "xoxp-",
    "xoxa-",
    "xapp-",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "AKIA",
    "AIza",
    "eyJ",
    "Bearer ",
    "Basic ",
    "-----BEGIN ",
];

/// `value` with all secrets masked.
pub fn mask(value: &Value) -> Value {
    masked(value, Place::Root)
}

#[derive(Clone, Copy, PartialEq)]
enum Place {
    Root,
    Open,
    Hidden,
}

fn masked(value: &Value, place: Place) -> Value {
    match value {
        Value::Object(map) if place == Place::Hidden && is_reference(map) => value.clone(),
        Value::Object(map) => {
            let entry = |(key, value): (&String, &Value)| (key.clone(), masked(value, below(key, value, place)));
            Value::Object(map.iter().map(entry).collect())
        }
        Value::Array(list) => Value::Array(masked_list(list, place)),
        Value::String(text) if place == Place::Hidden && !text.is_empty() && !is_substitution(text) => MASK.into(),
        Value::Number(_) if place == Place::Hidden => MASK.into(),
        Value::String(text) => masked_text(text).into(),
        plain => plain.clone(),
    }
}

/// The place of the value of `key`.
fn below(key: &str, value: &Value, place: Place) -> Place {
    let name: String = key.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    match place {
        Place::Hidden => Place::Hidden,
        // The root's `secrets` and `auth` only say where secrets are kept, so they are examined key by key.
        Place::Root if value.is_object() && matches!(name.as_str(), "secrets" | "auth") => Place::Open,
        // `auth` is an object of settings in many places, and a secret where it is a text.
        _ if name == "auth" && value.is_object() => Place::Open,
        // A count such as `maxTokens` is not a secret.
        _ if value.is_number() && name.ends_with("tokens") => Place::Open,
        _ if KEYS.contains(&name.as_str()) || CONTAINERS.contains(&name.as_str()) => Place::Hidden,
        _ if ENDINGS.iter().any(|ending| name.ends_with(ending)) => Place::Hidden,
        _ => Place::Open,
    }
}

/// Masks a list. It may be a command line, in which the value after `--token` is a secret.
fn masked_list(list: &[Value], place: Place) -> Vec<Value> {
    let mut follows = false;
    let mut out = Vec::with_capacity(list.len());
    for value in list {
        let option = value.as_str().filter(|text| text.starts_with('-'));
        out.push(match option.and_then(|text| text.split_once('=')) {
            Some((name, _)) if is_secret_name(name) => format!("{name}={MASK}").into(),
            _ if follows && option.is_none() => masked(value, Place::Hidden),
            _ if place == Place::Hidden => masked(value, Place::Hidden),
            _ => masked(value, Place::Open),
        });
        follows = option.is_some_and(is_secret_name);
    }
    out
}

/// `{source, provider, id}` refers to a secret without containing it.
fn is_reference(map: &Map<String, Value>) -> bool {
    let known = |key: &String| matches!(key.as_str(), "source" | "provider" | "id");
    map.contains_key("source") && map.contains_key("id") && map.keys().all(known)
}

/// `${NAME}` refers to an environment variable.
fn is_substitution(text: &str) -> bool {
    let name = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    name.is_some_and(|name| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
    })
}

/// A line of text, such as an excerpt of a log, with the words masked that look like secrets.
pub fn mask_words(text: &str) -> String {
    let around = |c: char| c.is_whitespace() || "\"'`,;()[]{}".contains(c);
    let mut out = String::with_capacity(text.len());
    let mut after_bearer = false;
    for piece in text.split_inclusive(char::is_whitespace) {
        let at = piece.len() - piece.trim_start_matches(around).len();
        let word = piece[at..].trim_end_matches(around);
        let shown = match word.split_once('=') {
            _ if after_bearer && !word.is_empty() => MASK.to_owned(),
            Some((name, value)) if !value.is_empty() && !name.contains("://") && is_secret_name(name) => {
                format!("{name}={MASK}")
            }
            _ => masked_text(word),
        };
        after_bearer = matches!(word, "Bearer" | "Basic");
        out.push_str(&piece[..at]);
        out.push_str(&shown);
        out.push_str(&piece[at + word.len()..]);
    }
    out
}

fn is_secret_name(name: &str) -> bool {
    below(name, &Value::Null, Place::Open) == Place::Hidden
}

fn masked_text(text: &str) -> String {
    if BEGINNINGS.iter().any(|beginning| text.starts_with(beginning)) || is_bot_token(text) {
        return MASK.to_owned();
    }
    match text.split_once("://") {
        Some((scheme, rest)) => format!("{scheme}://{}", masked_address(rest)),
        None => text.to_owned(),
    }
}

/// `123456789:` and a long word.
fn is_bot_token(text: &str) -> bool {
    text.split_once(':').is_some_and(|(number, word)| {
        number.len() >= 6
            && number.bytes().all(|b| b.is_ascii_digit())
            && word.len() >= 20
            && word.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
    })
}

/// The part of a URL after its scheme, without user and password, and with the values of secret parameters masked.
fn masked_address(rest: &str) -> String {
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at(end);
    let mut out = match authority.rsplit_once('@') {
        Some((_, host)) => format!("{MASK}@{host}"),
        None => authority.to_owned(),
    };
    for (i, piece) in tail.split_inclusive(['?', '&', '#']).enumerate() {
        let (pair, mark) = match piece.strip_suffix(['?', '&', '#']) {
            Some(pair) => (pair, &piece[pair.len()..]),
            None => (piece, ""),
        };
        match pair.split_once('=') {
            Some((name, _)) if i > 0 && is_secret_name(name) => {
                out.push_str(&format!("{name}={MASK}{mark}"));
            }
            _ => out.push_str(piece),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn secrets_are_masked_by_their_keys() {
        let value = json!({
            "gateway": {"token": "a", "port": 18789, "auth": {"mode": "token", "token": "b", "password": 12345}},
            "models": {"providers": {"x": {"apiKey": "c", "baseUrl": "http://h/v1", "headers": {"X-Any": "d"},
                "models": [{"id": "m", "maxTokens": 8192}]}}},
            "channels": {"telegram": {"botToken": "e", "webhookSecret": "f", "allowFrom": ["123"], "tokenFile": "/t"}},
            "hooks": {"token": ""},
            "env": {"vars": {"DATABASE_URL": "g"}},
            "mcp": {"servers": {"s": {"env": {"A": "h"}, "args": ["--token", "i", "--api-key=j", "-v", "k"]}}},
            "secrets": {"providers": {"v": {"path": "/p"}}},
            "auth": {"order": {"x": ["x:default"]}, "profiles": {"x:default": {"mode": "oauth", "key": "l"}}},
        });
        assert_eq!(
            mask(&value),
            json!({
                "gateway": {"token": "***", "port": 18789, "auth": {"mode": "token", "token": "***", "password": "***"}},
                "models": {"providers": {"x": {"apiKey": "***", "baseUrl": "http://h/v1", "headers": {"X-Any": "***"},
                    "models": [{"id": "m", "maxTokens": 8192}]}}},
                "channels": {"telegram": {"botToken": "***", "webhookSecret": "***", "allowFrom": ["123"], "tokenFile": "/t"}},
                "hooks": {"token": ""},
                "env": {"vars": {"DATABASE_URL": "***"}},
                "mcp": {"servers": {"s": {"env": {"A": "***"}, "args": ["--token", "***", "--api-key=***", "-v", "k"]}}},
                "secrets": {"providers": {"v": {"path": "/p"}}},
                "auth": {"order": {"x": ["x:default"]}, "profiles": {"x:default": {"mode": "oauth", "key": "***"}}},
            })
        );
    }

    #[test]
    fn a_reference_to_a_secret_is_shown() {
        let value = json!({"token": {"source": "env", "provider": "default", "id": "NAME"}, "apiKey": "${NAME}"});
        assert_eq!(mask(&value), value);
        let value = json!({"token": {"source": "env", "id": "NAME", "value": "a"}, "apiKey": "${NAME}x"});
        assert_eq!(mask(&value), json!({"token": {"source": "***", "id": "***", "value": "***"}, "apiKey": "***"}));
    }

    #[test]
    fn some_values_are_secrets_anywhere() {
        for (text, shown) in [
            ("sk-example", "***"),
            ("123456789:AAexample_example-example", "***"),
            ("12:30", "12:30"),
            ("http://user:pass@host:1/v1", "http://***@host:1/v1"),
            ("https://h/a?x=1&access_token=abc&y=2#z", "https://h/a?x=1&access_token=***&y=2#z"),
            ("https://h/#token=abc", "https://h/#token=***"),
            ("https://h/token=abc/x", "https://h/token=abc/x"),
            ("agent:main:main", "agent:main:main"),
            ("", ""),
        ] {
            assert_eq!(mask(&json!({"x": text})), json!({"x": shown}), "{text}");
        }
    }

    #[test]
    fn words_of_a_line_are_masked() {
        for (text, shown) in [
            ("No API key found for provider \"remote\".", "No API key found for provider \"remote\"."),
            ("key sk-example, and (\"123456789:AAexample_example-example\")\n", "key ***, and (\"***\")\n"),
            ("token=abc runId=1 apiKey=\"x\" a=b", "token=*** runId=1 apiKey=***\" a=b"),
            ("at https://u:p@h/x?token=abc now", "at https://***@h/x?token=*** now"),
            ("Authorization: Bearer abc def", "Authorization: Bearer *** def"),
            ("", ""),
            ("  ä  ", "  ä  "),
        ] {
            assert_eq!(mask_words(text), shown);
        }
    }
}
