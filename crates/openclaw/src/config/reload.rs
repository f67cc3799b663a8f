//! What happens to a written file: whether OpenClaw takes it over while it runs, and whether it would restore an older
//! one.

use base::Result;
use serde_json::Value;

use crate::document::{Change, Document, Path, Segment};

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
    changes.iter().any(is_cold)
}

fn is_cold(change: &Change) -> bool {
    change.path.is_at_or_below(&["gateway"]) && !HOT.iter().any(|keys| change.path.is_at_or_below(keys))
}

/// Takes back the part of an edit for which the gateway must be restarted, so that only what it takes over by itself is
/// left.
pub fn take_back_cold(before: &Document, after: &mut Document) -> Result<()> {
    for change in before.diff(after).iter().filter(|change| is_cold(change)) {
        // A list is restored as a whole: its indices shift while it is changed.
        let is_key = |segment: &&Segment| matches!(segment, Segment::Key(_));
        let path = Path::from(change.path.segments().iter().take_while(is_key).cloned().collect::<Vec<_>>());
        match before.get(path.clone()) {
            Some(value) => after.set(path, value).map(drop)?,
            None => {
                after.remove(path.clone())?;
                let mut above = path.parent();
                while let Some(parent) = above.filter(|parent| {
                    !before.has(parent.clone())
                        && after.get(parent.clone()).is_some_and(|value| value == Value::Object(Default::default()))
                }) {
                    after.remove(parent.clone())?;
                    above = parent.parent();
                }
            }
        }
    }
    Ok(())
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
    fn what_needs_a_restart_is_taken_back_and_the_rest_is_kept() {
        let before = doc("{gateway:{port:1,auth:{token:'a'},trusted:['x','y']},models:{a:1}}");
        let mut after = doc(
            "{gateway:{port:2,auth:{token:'b'},tls:{cert:{path:'/x'}},trusted:['z'],controlUi:{allowedOrigins:['o']}},models:{a:2}}",
        );
        take_back_cold(&before, &mut after).unwrap();
        assert!(!needs_restart(&before.diff(&after)), "{}", after.text());
        let left: Vec<String> = before.diff(&after).iter().map(|change| change.path.to_string()).collect();
        assert_eq!(left, ["gateway.auth.token", "gateway.controlUi.allowedOrigins", "models.a"]);
        assert!(!after.has(["gateway", "tls"]));
        let once = after.text().to_owned();
        take_back_cold(&before, &mut after).unwrap();
        assert_eq!(after.text(), once);
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
