//! Pairing: people who wrote to an instance's bot and wait to be allowed. OpenClaw gives each of them a code, which
//! they see in their chat.
//!
//! Releases from 2026.7 on keep the requests in a table of the state database, older ones in a JSON file. OpenClaw's own
//! `pairing list` takes ten seconds of a processor, so a short program reads the same rows. It runs as the instance's
//! user. A tenant may have written anything there, so every value is checked here.

use base::hidden;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::Value;

use crate::version::Version;

/// The channel's name in OpenClaw, and the name of its only account.
pub const CHANNEL: &str = "telegram";
pub const ACCOUNT: &str = "default";

/// The first release whose gateway can dismiss a request.
pub const KNOWS_DISMISS: Version = Version::new(2026, 7, 0);

/// How long a request is open after it was made.
pub const OPEN_FOR: SignedDuration = SignedDuration::from_hours(1);

/// How many requests are shown. OpenClaw keeps three.
const MOST: usize = 10;
const LONGEST_NAME: usize = 64;

/// The most bytes that the program may print.
pub const MAX_BYTES: usize = 64 * 1024;

/// A shell script that has Node `$1` run the program on its standard input, for the state folder `$2`. It exits with 3
/// if there is no such Node.
pub const SCRIPT: &str = r#"
    [ -x "$1" ] || exit 3
    exec "$1" --no-warnings - "$2"
"#;

/// The program: prints `{"requests": […]}`, each request as `openclaw pairing list --json` prints it.
pub const PROGRAM: &str = include_str!("pairing.cjs");

/// An open request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairingRequest {
    /// The sender's number at the chat platform.
    pub sender_id: String,
    /// As the sender calls itself; may be empty.
    pub name: String,
    /// Without the `@`; may be empty.
    pub username: String,
    pub code: String,
    pub created_at: Timestamp,
}

impl PairingRequest {
    pub fn expires_at(&self) -> Timestamp {
        self.created_at + OPEN_FOR
    }
}

#[derive(Deserialize)]
struct Printed {
    #[serde(default)]
    requests: Vec<Value>,
}

/// The open requests in what the program printed, oldest first. Entries that OpenClaw would not have written are left
/// out.
pub fn parse(printed: &[u8], now: Timestamp) -> Result<Vec<PairingRequest>, serde_json::Error> {
    let printed: Printed = serde_json::from_slice(printed)?;
    let mut requests: Vec<PairingRequest> = printed.requests.iter().filter_map(request).collect();
    requests.retain(|request| request.expires_at() > now);
    requests.sort_by(|one, other| (one.created_at, &one.sender_id).cmp(&(other.created_at, &other.sender_id)));
    requests.dedup_by(|one, other| one.sender_id == other.sender_id);
    requests.truncate(MOST);
    Ok(requests)
}

fn request(value: &Value) -> Option<PairingRequest> {
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let meta = value.get("meta")?;
    // Other accounts of the channel are not ours.
    if !matches!(text(meta, "accountId").as_str(), "" | ACCOUNT) {
        return None;
    }
    let names = [text(meta, "firstName"), text(meta, "lastName")].map(|name| shown(&name));
    let is_username = |name: &String| name.len() <= 32 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let found = PairingRequest {
        sender_id: text(value, "id"),
        name: names.join(" ").trim().chars().take(LONGEST_NAME).collect(),
        username: Some(text(meta, "username")).filter(is_username).unwrap_or_default(),
        code: text(value, "code"),
        created_at: text(value, "createdAt").parse().ok()?,
    };
    let is_code = (1..=16).contains(&found.code.len()) && found.code.bytes().all(|b| b.is_ascii_alphanumeric());
    let is_number = (1..=20).contains(&found.sender_id.len()) && found.sender_id.bytes().all(|b| b.is_ascii_digit());
    (is_code && is_number).then_some(found)
}

/// A name without line breaks, controls and characters that change how the text around them is shown.
fn shown(name: &str) -> String {
    let printable: String = name.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LONGEST_NAME).collect();
    hidden::without(&printable).trim().to_owned()
}

/// The payload of the answer to `channels.pairing.list`. It has no codes, and no accounts that accept senders by a list.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Waiting {
    #[serde(default)]
    requests: Vec<Waiter>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Waiter {
    request_id: String,
    sender_id: String,
    channel: String,
    account_id: String,
}

impl Waiting {
    /// By what id the gateway knows the request of a sender.
    pub fn of(&self, sender: &str) -> Option<&str> {
        let is_it = |one: &&Waiter| one.sender_id == sender && one.channel == CHANNEL && one.account_id == ACCOUNT;
        self.requests.iter().find(is_it).map(|one| one.request_id.as_str())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    const NOW: &str = "2026-11-18T09:30:00Z";

    /// As OpenClaw 2026.9.6 and 2026.5.28 stored it.
    fn stored() -> Value {
        json!({"id": "4711", "code": "AWU4QEG7", "createdAt": "2026-11-18T09:22:15.508Z", "lastSeenAt": "2026-11-18T09:22:15.508Z",
            "meta": {"username": "ada_l", "firstName": "Ada", "lastName": "L", "accountId": "default"}})
    }

    fn parsed(requests: Value) -> Vec<PairingRequest> {
        parse(json!({"requests": requests}).to_string().as_bytes(), at(NOW)).unwrap()
    }

    #[test]
    fn a_request_is_read_as_openclaw_stores_it() {
        let bob = json!({"id": "4712", "code": "BK9HRQLQ", "createdAt": "2026-11-18T09:22:15.597Z", "meta": {"firstName": "Bob"}});
        let found = parsed(json!([bob, stored()]));
        let ada = PairingRequest {
            sender_id: "4711".into(),
            name: "Ada L".into(),
            username: "ada_l".into(),
            code: "AWU4QEG7".into(),
            created_at: at("2026-11-18T09:22:15.508Z"),
        };
        assert_eq!(found[0], ada, "the oldest first");
        assert_eq!(
            (found[1].sender_id.as_str(), found[1].name.as_str(), found[1].username.as_str()),
            ("4712", "Bob", "")
        );
        assert!(parsed(json!([])).is_empty());
    }

    #[test]
    fn a_request_is_open_for_an_hour() {
        let text = json!({"requests": [stored()]}).to_string();
        let open_at = |now: &str| parse(text.as_bytes(), at(now)).unwrap().len();
        assert_eq!((open_at("2026-11-18T10:22:15Z"), open_at("2026-11-18T10:22:16Z")), (1, 0));
    }

    #[test]
    fn what_openclaw_would_not_write_is_left_out() {
        let with = |key: &str, value: Value| {
            let mut one = stored();
            one[key] = value;
            one
        };
        for odd in [
            json!(7),
            json!({}),
            with("id", json!("*")),
            with("id", json!("-4711")),
            with("id", json!(4711)),
            with("code", json!("<b>")),
            with("code", json!("A".repeat(17))),
            with("createdAt", json!("yesterday")),
            with("meta", json!({"accountId": "other"})),
        ] {
            assert!(parsed(json!([odd.clone()])).is_empty(), "{odd}");
        }
        assert!(parse(b"not json", at(NOW)).is_err());
        let many: Vec<Value> = (1..50).map(|n| with("id", json!(n.to_string()))).collect();
        assert_eq!(parsed(json!(many)).len(), MOST);
        assert_eq!(parsed(json!([stored(), stored()])).len(), 1);
    }

    #[test]
    fn a_name_cannot_pretend() {
        let mut one = stored();
        one["meta"]["firstName"] = json!(format!("Ada\n\u{202e}{}", "x".repeat(500)));
        one["meta"]["username"] = json!("not a name");
        let found = parsed(json!([one])).remove(0);
        assert!(found.name.starts_with("Ada x") && found.name.chars().count() <= LONGEST_NAME, "{:?}", found.name);
        assert!(!found.name.contains(['\n', '\u{202e}']));
        assert_eq!(found.username, "");
    }

    #[test]
    fn a_waiting_request_is_found_by_its_sender() {
        let waiting: Waiting = serde_json::from_value(json!({"accounts": [], "requests": [
            {"requestId": "f2IX", "channel": "telegram", "accountId": "default", "senderId": "4712", "createdAt": "2026-11-18T09:22:15.597Z"},
            {"requestId": "none", "channel": "discord", "accountId": "default", "senderId": "4711"},
        ]})).unwrap();
        assert_eq!((waiting.of("4712"), waiting.of("4711")), (Some("f2IX"), None));
    }
}
