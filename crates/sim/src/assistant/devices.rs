//! Devices of pages from another machine. They stay pending until a client that has at least the same scopes approves
//! them.

use std::collections::HashMap;

use serde_json::{Value, json};

#[derive(Default)]
pub(super) struct Devices {
    /// By the request's id.
    pending: HashMap<String, Value>,
    /// Scopes by the device's id.
    paired: HashMap<String, Vec<String>>,
}

fn texts(value: &Value) -> Vec<String> {
    serde_json::from_value(value.clone()).unwrap_or_default()
}

impl Devices {
    /// The refusal for a device that is not approved for all the scopes that it asks for.
    pub fn refusal(&mut self, params: &Value) -> Option<Value> {
        let device = params["device"]["id"].as_str().unwrap_or_default();
        let scopes = texts(&params["scopes"]);
        if self.paired.get(device).is_some_and(|paired| scopes.iter().all(|scope| paired.contains(scope))) {
            return None;
        }
        let waits = self.pending.iter().find(|(_, one)| one["deviceId"] == device).map(|(id, _)| id.clone());
        let id = waits.unwrap_or_else(base::id::fresh);
        let pending =
            json!({"requestId": id, "deviceId": device, "role": "operator", "roles": ["operator"], "scopes": scopes});
        self.pending.insert(id.clone(), pending);
        Some(json!({
            "code": "NOT_PAIRED", "message": "pairing required: device is not approved yet",
            "details": {"code": "PAIRING_REQUIRED", "reason": "not-paired", "requestId": id, "deviceId": device},
        }))
    }

    pub fn list(&self) -> Value {
        json!({"pending": self.pending.values().collect::<Vec<_>>(), "paired": []})
    }

    pub fn approve(&mut self, request: &str, approver: &[String]) -> Result<Value, Value> {
        let invalid = |message: String| json!({"code": "INVALID_REQUEST", "message": message});
        let pending = self.pending.get(request).ok_or_else(|| invalid("device pairing approval denied".to_owned()))?;
        let scopes = texts(&pending["scopes"]);
        if let Some(missing) = scopes.iter().find(|scope| !approver.contains(scope)) {
            return Err(invalid(format!("missing scope: {missing}")));
        }
        let device = pending["deviceId"].as_str().unwrap_or_default().to_owned();
        self.pending.remove(request);
        self.paired.insert(device.clone(), scopes);
        Ok(json!({"requestId": request, "device": {"deviceId": device}}))
    }
}
