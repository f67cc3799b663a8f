//! The handshake: the gateway sends a challenge, we send our name and the token, the gateway answers with a hello.
//!
//! A backend on loopback that sends no Origin and no forwarded address gets the scopes that it asks for. One elsewhere
//! gets none, unless it is a device that was approved (`Device`): it signs the challenge.

use base::Secret;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Device;
use crate::version::Version;

pub(super) const CLIENT: &str = "gateway-client";
pub(super) const MODE: &str = "backend";
pub(super) const ROLE: &str = "operator";
pub(super) const PLATFORM: &str = "linux";

/// The only protocol that 2026.5 and later speak with operators.
pub const PROTOCOL: u32 = 4;

/// What a connection may do. Chat text has the authority of its connection, so OpenClaw refuses commands for owners on
/// a connection without `Admin`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Read,
    Write,
    Admin,
    /// Approves devices, and reads and dismisses the requests of people who write to a bot.
    Pairing,
}

impl Scope {
    /// For a person who chats.
    pub const CHAT: &[Scope] = &[Scope::Read, Scope::Write];
    /// For requests of the platform itself.
    pub const LOOK: &[Scope] = &[Scope::Read];
    /// To approve a device for chatting. A connection cannot grant scopes that it does not have, so the gateway also
    /// refuses a device that asks for more.
    pub const LET_CHAT: &[Scope] = &[Scope::Pairing, Scope::Read, Scope::Write];
    /// To look after people who write to a bot.
    pub const PAIR: &[Scope] = &[Scope::Pairing];

    pub fn as_str(self) -> &'static str {
        match self {
            Scope::Read => "operator.read",
            Scope::Write => "operator.write",
            Scope::Admin => "operator.admin",
            Scope::Pairing => "operator.pairing",
        }
    }
}

/// The first request of a connection. It contains the token, so the whole frame is a secret. A device signs the gateway's
/// challenge.
pub fn connect(id: &str, token: &Secret, scopes: &[Scope], device: Option<(&Device, &Challenge)>) -> Secret {
    let scopes: Vec<&str> = scopes.iter().map(|scope| scope.as_str()).collect();
    let mut frame = json!({
        "type": "req",
        "id": id,
        "method": "connect",
        "params": {
            "minProtocol": PROTOCOL,
            "maxProtocol": PROTOCOL,
            "client": {
                "id": CLIENT,
                "version": env!("CARGO_PKG_VERSION"),
                "platform": PLATFORM,
                "mode": MODE,
            },
            "role": ROLE,
            "scopes": scopes,
            "caps": ["tool-events"],
            "auth": {"token": token.expose()},
        },
    });
    if let Some((device, challenge)) = device {
        frame["params"]["device"] = device.proof(&scopes, token, challenge);
    }
    Secret::new(frame.to_string())
}

/// The payload of `connect.challenge`, the first event of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Challenge {
    pub nonce: String,
    /// Milliseconds since 1970, by the gateway's clock.
    pub ts: i64,
}

impl Challenge {
    /// The challenge of a frame whose event is known to be one. What is missing in it, no device can sign, and the gateway
    /// says so.
    pub fn read(text: &str) -> Challenge {
        let payload = serde_json::from_str::<Value>(text).ok().and_then(|frame| frame.get("payload").cloned());
        payload.and_then(|payload| serde_json::from_value(payload).ok()).unwrap_or_default()
    }
}

/// The payload of the answer to `connect`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Hello {
    pub protocol: u32,
    pub server: Server,
    pub features: Features,
    pub auth: Auth,
    #[serde(default)]
    pub policy: Policy,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Server {
    pub version: String,
    #[serde(default)]
    pub boot_id: Option<String>,
    #[serde(default)]
    pub conn_id: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Features {
    #[serde(default)]
    pub methods: Vec<String>,
    #[serde(default)]
    pub events: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Auth {
    /// The granted scopes, which may be fewer than requested.
    #[serde(default)]
    pub scopes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Policy {
    pub max_payload: usize,
    /// How often a `tick` is sent when there is nothing else to send.
    pub tick_interval_ms: u64,
    pub attachments: Attachments,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy { max_payload: super::MAX_BYTES, tick_interval_ms: 30_000, attachments: Attachments::default() }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Attachments {
    pub max_bytes: usize,
    pub max_image_bytes: usize,
}

impl Default for Attachments {
    fn default() -> Attachments {
        Attachments { max_bytes: 19_464_192, max_image_bytes: 6_291_456 }
    }
}

impl Hello {
    pub fn has(&self, method: &str) -> bool {
        self.features.methods.iter().any(|known| known == method)
    }

    /// Whether all scopes were granted. Behind a proxy, or with an Origin, a gateway grants nothing and reports no
    /// error.
    pub fn grants(&self, scopes: &[Scope]) -> bool {
        scopes.iter().all(|scope| self.auth.scopes.iter().any(|granted| granted == scope.as_str()))
    }

    pub fn version(&self) -> Option<Version> {
        self.server.version.parse().ok()
    }
}
