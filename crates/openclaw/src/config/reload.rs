//! What happens to a written file: whether OpenClaw takes it over while it runs, and whether it would restore an older
//! one.

use serde_json::Value;

use crate::document::{Change, Document};

/// Keys below `gateway` that a running gateway takes over by itself; every other key below it needs a restart.
const HOT: &[&[&str]] = &[
    &["gateway", "auth", "token"],
    &["gateway", "auth", "password"],
    &["gateway", "auth", "rateLimit"],
    &["gateway", "controlUi", "enabled"],
    &["gateway", "controlUi", "allowedOrigins"],
    &["gateway", "controlUi", "environment"],
    &["gateway", "http", "endpoints"],
    &["gateway", "terminal"],
    &["gateway", "tools"],
    &["gateway", "roles"],
    &["gateway", "trustedProxies"],
    &["gateway", "publicOrigin"],
];

/// Whether the gateway must be restarted for these changes to take effect. It takes over all other changes within a
/// second, or refuses them; its log shows which.
pub fn needs_restart(changes: &[Change]) -> bool {
    changes.iter().any(|change| {
        change.path.is_at_or_below(&["gateway"]) && !HOT.iter().any(|keys| change.path.is_at_or_below(keys))
    })
}

/// Why OpenClaw would consider a file damaged and silently restore its last good one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The `meta` block that OpenClaw itself wrote is gone.
    LostMeta,
    /// `gateway.mode` is gone.
    LostMode,
    /// Less than half of its size is left.
    Shrunk,
}

/// Checks what is about to be written over `before`. `None` means that OpenClaw will accept it.
pub fn doubt(before: &Document, after: &Document) -> Option<Doubt> {
    let is_block = |document: &Document| matches!(document.get(["meta"]), Some(Value::Object(_)));
    if is_block(before) && !is_block(after) {
        return Some(Doubt::LostMeta);
    }
    if before.has(["gateway", "mode"]) && !after.has(["gateway", "mode"]) {
        return Some(Doubt::LostMode);
    }
    (after.text().len() * 2 < before.text().len()).then_some(Doubt::Shrunk)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doc(text: &str) -> Document {
        Document::parse(text).unwrap()
    }

    #[test]
    fn only_what_the_listener_is_made_of_needs_a_restart() {
        let before =
            doc("{gateway:{port:1,bind:'lan',auth:{mode:'token',token:'a'},controlUi:{}},models:{a:1},channels:{t:1}}");
        let restart = |after: &str| needs_restart(&before.diff(&doc(after)));
        let text = before.text();
        assert!(!restart(text));
        assert!(!restart(&text.replace("'a'", "'b'")));
        assert!(!restart(&text.replace("a:1", "a:2").replace("{t:1}", "{t:2}")));
        assert!(!restart(&text.replace("controlUi:{}", "controlUi:{allowedOrigins:['x']},terminal:{enabled:false}")));
        assert!(restart(&text.replace("port:1", "port:2")));
        assert!(restart(&text.replace("'lan'", "'loopback'")));
        assert!(restart(&text.replace("mode:'token'", "mode:'none'")));
        assert!(restart(&text.replace("controlUi:{}", "controlUi:{basePath:'/x'}")));
        assert!(restart("{models:{a:1},channels:{t:1}}"));
    }

    #[test]
    fn a_file_that_openclaw_would_undo_is_seen_before() {
        let before = doc("{meta:{lastTouchedVersion:'2026.9.6'},gateway:{mode:'local'},x:'some more text'}");
        assert_eq!(doubt(&before, &before), None);
        assert_eq!(doubt(&before, &doc("{gateway:{mode:'local'},x:'some more text'}")), Some(Doubt::LostMeta));
        assert_eq!(doubt(&before, &doc("{meta:1,gateway:{mode:'local'},x:'some more text'}")), Some(Doubt::LostMeta));
        assert_eq!(doubt(&before, &doc("{meta:{},gateway:{},x:'some more text'}")), Some(Doubt::LostMode));
        assert_eq!(doubt(&before, &doc("{meta:{},gateway:{mode:'local'}}")), Some(Doubt::Shrunk));
        assert_eq!(doubt(&Document::empty(), &before), None);
    }
}
