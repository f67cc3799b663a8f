//! Who may write to a gateway's bot, as OpenClaw 2026.9.6 was seen to decide it: by the list of its configuration, or
//! by pairing, where everybody who is not on the list gets a code and waits in a queue of three.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

/// How many requests a channel keeps, and for how long.
const MOST: usize = 3;
const OPEN_FOR: SignedDuration = SignedDuration::from_hours(1);
/// The letters and digits of a code: none that look alike.
const ALPHABET: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";

/// The senders of one state folder. All clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Senders(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    /// The channel in the configuration.
    channel: Value,
    requests: Vec<Value>,
}

/// What the bot does about a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It answers with a pairing code.
    Code(String),
    /// It hands the message to the assistant.
    Chat,
    /// It ignores the message.
    Nothing,
}

impl Senders {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over the channel of a configuration.
    pub fn configure(&self, config: &Value) {
        self.lock().channel = config["channels"]["telegram"].clone();
    }

    /// Somebody writes to the bot.
    pub fn write(&self, sender: i64, first_name: &str, username: &str, now: Timestamp) -> Reply {
        let mut inner = self.lock();
        let id = sender.to_string();
        if inner.channel["enabled"] != true {
            return Reply::Nothing;
        }
        let listed = inner.channel["allowFrom"].as_array().into_iter().flatten().any(|one| one == id.as_str());
        if listed {
            return Reply::Chat;
        }
        if inner.channel["dmPolicy"] != "pairing" {
            return Reply::Nothing;
        }
        inner.forget_old(now);
        // Whoever wrote before has a code already, and gets no second message.
        if inner.requests.iter().any(|one| one["id"] == id.as_str()) || inner.requests.len() >= MOST {
            return Reply::Nothing;
        }
        let code = code();
        let at = now.strftime("%FT%T%.3fZ").to_string();
        inner.requests.push(json!({"id": id, "code": code, "createdAt": at, "lastSeenAt": at,
            "meta": {"username": username, "firstName": first_name, "accountId": "default"}}));
        Reply::Code(code)
    }

    /// The requests as they are stored. Reading them does not remove the old ones.
    pub fn stored(&self) -> Vec<Value> {
        self.lock().requests.clone()
    }

    /// The answer to `channels.pairing.list`, which has no codes. An account with another policy is not listed.
    pub(super) fn list(&self) -> Value {
        let inner = self.lock();
        let is_pairing = inner.channel["dmPolicy"] == "pairing";
        let shown = |one: &Value| {
            json!({"requestId": request_id(one), "channel": "telegram", "channelLabel": "Telegram", "accountId": "default",
                "senderId": one["id"], "senderLabel": "telegramUserId", "metadata": {"firstName": one["meta"]["firstName"]},
                "createdAt": one["createdAt"], "lastSeenAt": one["lastSeenAt"], "notifySupported": true})
        };
        let requests: Vec<Value> = inner.requests.iter().filter(|_| is_pairing).map(shown).collect();
        let account =
            json!({"channel": "telegram", "channelLabel": "Telegram", "accountId": "default", "notifySupported": true});
        let accounts = if is_pairing { vec![account] } else { vec![] };
        json!({"accounts": accounts, "requests": requests, "commandOwnerConfigured": false, "limits": {"pendingPerAccount": MOST, "ttlMs": 3_600_000}})
    }

    pub(super) fn dismiss(&self, params: &Value) -> Result<Value, Value> {
        let invalid = |message: &str| json!({"code": "INVALID_REQUEST", "message": message});
        let mut inner = self.lock();
        if inner.channel["dmPolicy"] != "pairing" {
            return Err(invalid("channel account does not use DM pairing: telegram:default"));
        }
        let at = inner.requests.iter().position(|one| request_id(one) == params["requestId"]);
        let at = at.ok_or_else(|| invalid("pending DM access request no longer exists"))?;
        let gone = inner.requests.remove(at);
        Ok(json!({"requestId": params["requestId"], "senderId": gone["id"]}))
    }
}

impl Inner {
    fn forget_old(&mut self, now: Timestamp) {
        let made = |one: &Value| one["createdAt"].as_str().and_then(|at| at.parse::<Timestamp>().ok());
        self.requests.retain(|one| made(one).is_some_and(|at| at + OPEN_FOR >= now));
    }
}

/// The id by which the gateway's clients name a request.
fn request_id(request: &Value) -> String {
    format!(
        "request-{}-{}",
        request["id"].as_str().unwrap_or_default(),
        request["createdAt"].as_str().unwrap_or_default()
    )
}

fn code() -> String {
    let bytes = base::secret::random_bytes::<8>().unwrap_or_default();
    bytes.iter().map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_may_wait_and_a_list_ends_the_waiting() {
        let (senders, now) = (Senders::default(), "2026-11-18T09:00:00Z".parse().unwrap());
        assert_eq!(senders.write(1, "Ada", "ada", now), Reply::Nothing, "there is no bot");
        let channel = |policy: &str, list: Value| json!({"channels": {"telegram": {"enabled": true, "dmPolicy": policy, "allowFrom": list}}});
        senders.configure(&channel("pairing", Value::Null));
        let codes: Vec<Reply> = (1..=4).map(|sender| senders.write(sender, "Ada", "", now)).collect();
        assert!(codes[..3].iter().all(|reply| matches!(reply, Reply::Code(code) if code.len() == 8)), "{codes:?}");
        assert_eq!((&codes[3], senders.write(1, "Ada", "", now)), (&Reply::Nothing, Reply::Nothing));
        let first = senders.list()["requests"][0].clone();
        assert_eq!(senders.dismiss(&first).unwrap()["senderId"], "1");
        assert!(senders.dismiss(&first).is_err());
        assert!(matches!(senders.write(4, "Dan", "", now), Reply::Code(_)), "there is room again");
        senders.configure(&channel("allowlist", json!(["2"])));
        assert_eq!((senders.write(2, "", "", now), senders.write(9, "", "", now)), (Reply::Chat, Reply::Nothing));
        assert_eq!((senders.list()["requests"].as_array().unwrap().len(), senders.stored().len()), (0, 3));
        senders.configure(&channel("pairing", Value::Null));
        let later = now + SignedDuration::from_hours(2);
        assert!(matches!(senders.write(9, "", "", later), Reply::Code(_)));
        assert_eq!(senders.stored().len(), 1, "the old ones are forgotten");
    }
}
