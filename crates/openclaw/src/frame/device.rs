//! Devices: a browser that does not run on the gateway's own machine must be approved once, by its key.

use serde::Deserialize;

use super::Scope;

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
        let chat: Vec<&str> = Scope::CHAT.iter().map(|scope| scope.as_str()).collect();
        self.roles.iter().all(|role| role == "operator")
            && self.scopes.iter().all(|scope| chat.contains(&scope.as_str()))
    }
}
