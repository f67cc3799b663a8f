//! The chat-bot channel: whose messages it accepts, and how they arrive.

use base::{Error, GatewayPort, Result, Secret};
use serde_json::{Value, json};

use super::literal;
use crate::document::{Document, Path};

const CHANNEL: [&str; 2] = ["channels", "telegram"];
const WEBHOOK_KEYS: [&str; 5] = ["webhookUrl", "webhookSecret", "webhookPath", "webhookHost", "webhookPort"];

/// The path at which the gateway receives the bot platform's messages, on `webhook_port`.
pub const WEBHOOK_PATH: &str = "/telegram-webhook";

/// A port near the gateway's own: OpenClaw's default is one port for all instances.
pub fn webhook_port(gateway: GatewayPort) -> i64 {
    gateway.get() + 4
}

#[derive(Clone, Debug)]
pub enum Bot {
    Telegram(Telegram),
    /// Switched off, and everything about a bot or its users removed.
    Off,
}

#[derive(Clone, Debug)]
pub struct Telegram {
    pub token: Secret,
    pub senders: Senders,
    pub delivery: Delivery,
    /// The bot platform's address, if it is not the public one.
    pub api_root: Option<String>,
}

/// Whose direct messages are answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Senders {
    /// Senders that the owner has approved.
    Pairing,
    /// Only these senders.
    Only(Vec<String>),
}

#[derive(Clone, Debug)]
pub enum Delivery {
    /// The gateway polls the platform. A webhook would end that.
    Polling,
    Webhook {
        /// The https URL at which the bot platform reaches it.
        url: String,
        secret: Secret,
        /// On loopback; see `webhook_port`.
        port: i64,
    },
}

fn key(key: &str) -> Path {
    Path::from(CHANNEL).key(key)
}

impl Bot {
    pub fn apply(&self, document: &mut Document) -> Result<()> {
        match self {
            Bot::Telegram(telegram) => telegram.apply(document),
            Bot::Off if document.has(CHANNEL) => {
                document.set(key("enabled"), json!(false))?;
                for named in ["botToken", "tokenFile", "dmPolicy", "allowFrom", "apiRoot"].iter().chain(&WEBHOOK_KEYS) {
                    document.remove(key(named))?;
                }
                Ok(())
            }
            Bot::Off => Ok(()),
        }
    }
}

impl Telegram {
    pub fn apply(&self, document: &mut Document) -> Result<()> {
        if self.token.expose().is_empty() {
            return Err(Error::internal("the token of a chat-bot must not be empty"));
        }
        document.set(key("enabled"), json!(true))?;
        document.set(key("botToken"), literal("the bot's token", self.token.expose())?)?;
        // A token file would override the token.
        document.remove(key("tokenFile"))?;
        if let Some(root) = &self.api_root {
            document.set(key("apiRoot"), literal("the bot platform's address", root)?)?;
        }
        match &self.senders {
            Senders::Pairing => {
                document.set(key("dmPolicy"), json!("pairing"))?;
                document.remove(key("allowFrom"))?;
            }
            Senders::Only(senders) => {
                let senders: Result<Vec<Value>> = senders.iter().map(|id| literal("a sender", id)).collect();
                document.set(key("dmPolicy"), json!("allowlist"))?;
                document.set(key("allowFrom"), Value::Array(senders?))?;
            }
        }
        match &self.delivery {
            Delivery::Polling => {
                for webhook in WEBHOOK_KEYS {
                    document.remove(key(webhook))?;
                }
            }
            Delivery::Webhook { url, secret, port } => {
                // The platform refuses any other scheme, and OpenClaw would start the channel again and again.
                if !url.starts_with("https://") {
                    return Err(Error::internal("a bot's webhook must begin with https://"));
                }
                let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
                let text = secret.expose();
                if text.is_empty() || text.len() > 256 || !text.bytes().all(allowed) {
                    return Err(Error::internal("a webhook's secret must be 1 to 256 letters, digits, `_` or `-`"));
                }
                if !(1..=65535).contains(port) {
                    return Err(Error::internal("the port of a webhook must be from 1 to 65535"));
                }
                document.set(key("webhookUrl"), literal("the webhook", url)?)?;
                document.set(key("webhookSecret"), json!(text))?;
                document.set(key("webhookPath"), json!(WEBHOOK_PATH))?;
                document.set(key("webhookHost"), json!("127.0.0.1"))?;
                document.set(key("webhookPort"), json!(port))?;
            }
        }
        Ok(())
    }
}
