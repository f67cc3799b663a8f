//! Follows a home that was copied to another place: the paths in a configuration that lead into it.

use base::Result;
use serde_json::Value;

use super::{Document, Path};

impl Document {
    /// Replaces the folder `old` by `new` in every text that is a path to it or into it.
    pub fn relocate(&mut self, old: &str, new: &str) -> Result<()> {
        let mut moved = vec![];
        find(&self.value(), &Path::root(), &mut |path, text| {
            let rest = text.strip_prefix(old).filter(|rest| rest.is_empty() || rest.starts_with('/'));
            moved.extend(rest.map(|rest| (path.clone(), format!("{new}{rest}"))));
        });
        moved.into_iter().try_for_each(|(path, text)| self.set(path, Value::String(text)).map(drop))
    }
}

impl Document {
    /// The first setting that is a path into a home, but not into its state folder.
    pub fn outside_of_state(&self, home: &str, state: &str) -> Option<Path> {
        let mut outside = None;
        find(&self.value(), &Path::root(), &mut |path, text| {
            let is_in = |text: &str, folder: &str| {
                text.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            let absolute =
                text.strip_prefix('~').filter(|rest| rest.starts_with('/')).map(|rest| format!("{home}{rest}"));
            let text = absolute.as_deref().unwrap_or(text);
            if is_in(text, home) && !is_in(text, state) && outside.is_none() {
                outside = Some(path.clone());
            }
        });
        outside
    }
}

fn find(value: &Value, path: &Path, found: &mut impl FnMut(&Path, &str)) {
    match value {
        Value::String(text) => found(path, text),
        Value::Array(list) => list.iter().enumerate().for_each(|(at, one)| find(one, &path.clone().index(at), found)),
        Value::Object(map) => map.iter().for_each(|(key, one)| find(one, &path.clone().key(key), found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_lies_outside_of_the_state_is_named() {
        let outside = |text: &str| {
            let document = Document::parse(text).unwrap();
            document.outside_of_state("/srv/ada", "/srv/ada/.openclaw").map(|path| path.to_string())
        };
        assert_eq!(outside("{a: '/srv/ada/.openclaw/workspace', b: '/srv/adams/x', c: '~/.openclaw/x', d: '~'}"), None);
        assert_eq!(outside("{a: {b: ['/srv/ada/claw']}}").as_deref(), Some("a.b[0]"));
        assert_eq!(outside("{a: '~/claw'}").as_deref(), Some("a"));
    }

    #[test]
    fn paths_into_a_home_follow_it_and_nothing_else_does() {
        let text =
            r#"{/* kept */ a: "/srv/ada/x", b: ["/srv/ada", {c: "/srv/adams"}], d: "see /srv/ada/x", "/srv/ada": 1}"#;
        let mut document = Document::parse(text).unwrap();
        document.relocate("/srv/ada", "/srv/assistants/1").unwrap();
        let expected = json!({"a": "/srv/assistants/1/x", "b": ["/srv/assistants/1", {"c": "/srv/adams"}],
            "d": "see /srv/ada/x", "/srv/ada": 1});
        assert_eq!(document.value(), expected);
        assert!(document.text().contains("/* kept */"));
    }
}
