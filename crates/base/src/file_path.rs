//! The relative path of a file of a marketplace item; the platform chooses the folder above it. The path is checked
//! when it is parsed, so code that has a `FilePath` can join it to a folder without another check.

use std::fmt;

use serde::{Deserialize, Deserializer};

use crate::hidden;

/// A relative path of plain segments: it cannot leave the folder that it is joined to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FilePath(String);

impl FilePath {
    /// In bytes. Common file systems allow no longer name, and the whole path stays short enough to show.
    pub const MAX: usize = 255;

    pub fn parse(text: &str) -> Result<FilePath, &'static str> {
        if text.is_empty() {
            return Err("must not be empty");
        }
        if text.len() > FilePath::MAX {
            return Err("must have at most 255 bytes");
        }
        if text.chars().any(char::is_control) {
            return Err("must not contain control characters");
        }
        // `hides` accepts a leading byte order mark, because files may begin with one. File names may not.
        if hidden::hides(text) || text.starts_with('\u{feff}') {
            return Err("must not contain hidden characters");
        }
        if text.contains('\\') {
            return Err("must not contain a backslash: folders are separated by /");
        }
        if text.starts_with('/') {
            return Err("must be relative, without a / in front");
        }
        if text.starts_with('~') {
            return Err("must be relative, without a ~ in front");
        }
        if matches!(text.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic()) {
            return Err("must be relative, without a drive letter");
        }
        for segment in text.split('/') {
            match segment {
                "" => return Err("must not contain an empty segment, nor end with /"),
                "." | ".." => return Err("must not contain . or .. segments"),
                // The workspace is a git repository, and git runs files in `.git`, such as hooks.
                s if s.eq_ignore_ascii_case(".git") => return Err("must not lead into .git"),
                s if s.trim() != s => return Err("must not have white space around a segment"),
                _ => {}
            }
        }
        Ok(FilePath(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn segments(&self) -> impl Iterator<Item = &str> {
        self.0.split('/')
    }

    /// Whether this path is below `other`, which would then have to be a folder.
    pub fn is_below(&self, other: &FilePath) -> bool {
        self.0.strip_prefix(&other.0).is_some_and(|rest| rest.starts_with('/'))
    }
}

impl fmt::Display for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for FilePath {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<FilePath, D::Error> {
        FilePath::parse(&String::deserialize(from)?).map_err(serde::de::Error::custom)
    }
}

impl utoipa::PartialSchema for FilePath {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        utoipa::openapi::ObjectBuilder::new()
            .schema_type(utoipa::openapi::schema::Type::String)
            .description(Some("Relative: no `..`, no `/` or `~` in front, no backslash, no hidden characters."))
            .min_length(Some(1))
            .max_length(Some(FilePath::MAX))
            .examples(["skills/meeting-notes/SKILL.md"])
            .into()
    }
}
impl utoipa::ToSchema for FilePath {
    fn name() -> std::borrow::Cow<'static, str> {
        "FilePath".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path::{Component, Path};

    #[test]
    fn plain_relative_paths_are_taken() {
        for good in [
            "SOUL.md",
            "skills/meeting-notes/SKILL.md",
            ".hidden",
            "a/..b",
            "a b/c",
            "vorlagen/übersicht.md",
            "日本/メモ.md",
            "...",
        ] {
            assert_eq!(FilePath::parse(good).unwrap().as_str(), good);
        }
    }

    #[test]
    fn every_trick_is_refused() {
        let long = "a/".repeat(200) + "b";
        for bad in [
            "",
            "/",
            "/etc/passwd",
            "//x",
            "~",
            "~/.ssh/config",
            "~root/x",
            "..",
            "../x",
            "a/../b",
            "a/..",
            "./a",
            "a/.",
            ".",
            "a//b",
            "a/",
            "a\\b",
            "..\\x",
            "\\\\server\\share",
            "C:/x",
            "c:x",
            "a\0b",
            "a\nb",
            "a\u{7f}",
            "a\u{85}b",
            " a",
            "a ",
            "a/ b",
            "a /b",
            "a/\u{a0}b",
            ".git/hooks/post-commit",
            "sub/.GIT/config",
            "a\u{202e}b",
            "a\u{200b}b",
            "\u{feff}a",
            &long,
        ] {
            assert!(FilePath::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_file_cannot_be_a_folder_too() {
        let path = |text| FilePath::parse(text).unwrap();
        assert!(path("a/b").is_below(&path("a")));
        assert!(!path("ab").is_below(&path("a")));
        assert!(!path("a").is_below(&path("a")));
    }

    proptest! {
        /// Every accepted path stays below its folder, judged by the standard library's own path rules.
        #[test]
        fn what_is_taken_stays_below(text in "([a-z.~/\\\\: ]|\\PC|[\\x00-\\x20]){0,24}") {
            if let Ok(path) = FilePath::parse(&text) {
                let path = Path::new(path.as_str());
                prop_assert!(path.is_relative());
                prop_assert!(path.components().all(|c| matches!(c, Component::Normal(_))));
                prop_assert_eq!(path.components().count(), text.split('/').count());
                prop_assert!(Path::new("/base").join(path).starts_with("/base"));
            }
        }

        #[test]
        fn parts_of_letters_are_always_taken(parts in proptest::collection::vec("[a-zA-Z0-9_-]{1,12}", 1..8)) {
            prop_assert!(FilePath::parse(&parts.join("/")).is_ok());
        }
    }
}
