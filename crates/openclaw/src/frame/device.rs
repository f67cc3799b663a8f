//! Devices: whoever does not connect from the gateway's own loopback must be approved once, by its key.

use aws_lc_rs::digest;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base::{Error, Result, Secret};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Scope;
use super::connect::{CLIENT, Challenge, MODE, PLATFORM, ROLE};

/// A device of the platform's own: a key pair, and its number, which is the hash of the public key.
pub struct Device {
    id: String,
    key: Ed25519KeyPair,
}

impl Device {
    pub fn from_seed(seed: &[u8; 32]) -> Result<Device> {
        let key = Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| Error::internal("a seed that makes no key"))?;
        let hash = digest::digest(&digest::SHA256, key.public_key().as_ref());
        Ok(Device { id: hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect(), key })
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its part of `connect`: it signs what it asks for, the token, and the gateway's challenge.
    pub(super) fn proof(&self, scopes: &[&str], token: &Secret, challenge: &Challenge) -> Value {
        let Challenge { nonce, ts } = challenge;
        let (id, scopes, token) = (&self.id, scopes.join(","), token.expose());
        // The last part is the device's family, which a server has not.
        let text = Secret::new(format!("v3|{id}|{CLIENT}|{MODE}|{ROLE}|{scopes}|{ts}|{token}|{nonce}|{PLATFORM}|"));
        json!({
            "id": id,
            "publicKey": BASE64.encode(self.key.public_key()),
            "signature": BASE64.encode(self.key.sign(text.expose().as_bytes())),
            "signedAt": ts,
            "nonce": nonce,
        })
    }
}

/// The payload of the answer to `device.pair.list`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Devices {
    /// Devices that wait for approval.
    #[serde(default)]
    pub pending: Vec<Pending>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pending {
    pub request_id: String,
    pub device_id: String,
    #[serde(default)]
    pub roles: Vec<String>,
    #[serde(default)]
    pub scopes: Vec<String>,
}

impl Pending {
    /// Whether it asks only for scopes to chat.
    pub fn only_chats(&self) -> bool {
        self.asks_only_for(Scope::CHAT)
    }

    /// Whether it asks for no other role than an operator's, and for none but these scopes.
    pub fn asks_only_for(&self, allowed: &[Scope]) -> bool {
        self.roles.iter().all(|role| role == ROLE)
            && self.scopes.iter().all(|scope| allowed.iter().any(|known| known.as_str() == scope))
    }
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};

    use super::super::connect;
    use super::*;

    #[test]
    fn a_device_signs_what_it_asks_for_and_the_challenge() {
        let device = Device::from_seed(&[7; 32]).unwrap();
        let token = Secret::new("t-example");
        let challenge =
            Challenge::read(r#"{"type":"event","event":"connect.challenge","payload":{"nonce":"n-1","ts":42}}"#);
        let frame = connect("1", &token, Scope::CHAT, Some((&device, &challenge)));
        let frame: Value = serde_json::from_str(frame.expose()).unwrap();
        let proof = &frame["params"]["device"];
        let bytes = |name: &str| BASE64.decode(proof[name].as_str().unwrap()).unwrap();
        let hash = digest::digest(&digest::SHA256, &bytes("publicKey"));
        let hash: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!((proof["id"].as_str(), device.id()), (Some(hash.as_str()), hash.as_str()));
        assert_eq!((&proof["signedAt"], &proof["nonce"]), (&json!(42), &json!("n-1")));
        let text =
            format!("v3|{hash}|gateway-client|backend|operator|operator.read,operator.write|42|t-example|n-1|linux|");
        let key = UnparsedPublicKey::new(&ED25519, bytes("publicKey"));
        key.verify(text.as_bytes(), &bytes("signature")).unwrap();
        assert!(key.verify(text.replace("n-1", "n-2").as_bytes(), &bytes("signature")).is_err());
    }

    #[test]
    fn who_has_no_device_shows_none() {
        assert!(!connect("1", &Secret::new("t-example"), Scope::CHAT, None).expose().contains("device"));
    }

    #[test]
    fn more_scopes_than_allowed_are_seen() {
        let pending = |scopes: &[&str], role: &str| Pending {
            request_id: "r".into(),
            device_id: "d".into(),
            roles: vec![role.into()],
            scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
        };
        assert!(pending(&["operator.read", "operator.pairing"], "operator").asks_only_for(Scope::LET_CHAT));
        assert!(!pending(&["operator.read", "operator.admin"], "operator").asks_only_for(Scope::LET_CHAT));
        assert!(!pending(&["operator.read"], "node").asks_only_for(Scope::LET_CHAT));
    }
}
