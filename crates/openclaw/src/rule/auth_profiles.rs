//! Rule 5: `auth.profiles` in the configuration. By itself it is harmless in newer releases. But an order that names
//! unusable profiles makes every turn fail, and older credentials beside it prevent the start.

use base::Result;
use serde_json::Value;

use super::{Detail, Evidence, Finding};
use crate::document::Document;

const PROFILES: [&str; 2] = ["auth", "profiles"];
const ORDER: [&str; 2] = ["auth", "order"];

pub(super) fn detect(evidence: &Evidence<'_>) -> Option<Finding> {
    let document = evidence.document?;
    let profiles = document.keys(PROFILES);
    if profiles.is_empty() {
        return None;
    }
    let ordered = !document.keys(ORDER).is_empty();
    Some(Finding::fact(
        Detail::AuthProfiles { ordered },
        super::excerpt(&format!("auth.profiles: {}", profiles.join(", "))),
    ))
}

/// Removes the profiles and the order that names them. Returns whether there was anything.
pub fn remove(document: &mut Document) -> Result<bool> {
    let removed = document.remove(PROFILES)? | document.remove(ORDER)?;
    if document.get(["auth"]) == Some(Value::Object(serde_json::Map::new())) {
        document.remove(["auth"])?;
    }
    Ok(removed)
}
