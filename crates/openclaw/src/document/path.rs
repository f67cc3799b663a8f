//! The path of a value in a document: keys and indices from the root.

use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Segment {
    Key(String),
    Index(usize),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Path(Vec<Segment>);

impl Path {
    pub fn root() -> Path {
        Path::default()
    }

    pub fn key(mut self, key: impl Into<String>) -> Path {
        self.0.push(Segment::Key(key.into()));
        self
    }

    pub fn index(mut self, index: usize) -> Path {
        self.0.push(Segment::Index(index));
        self
    }

    pub fn segments(&self) -> &[Segment] {
        &self.0
    }

    /// The path of the object or list that this is in; `None` for the root.
    pub fn parent(&self) -> Option<Path> {
        self.0.split_last().map(|(_, above)| Path(above.to_vec()))
    }

    /// The last key of the path: an element of a list is named after its list.
    pub fn name(&self) -> Option<&str> {
        self.0.iter().rev().find_map(|segment| match segment {
            Segment::Key(key) => Some(key.as_str()),
            Segment::Index(_) => None,
        })
    }

    /// Whether this path is `keys`, or below it.
    pub fn is_at_or_below(&self, keys: &[&str]) -> bool {
        self.0.len() >= keys.len()
            && self.0.iter().zip(keys).all(|(have, want)| matches!(have, Segment::Key(key) if key == want))
    }
}

impl<const N: usize> From<[&str; N]> for Path {
    fn from(keys: [&str; N]) -> Path {
        Path::from(&keys[..])
    }
}

impl From<&[&str]> for Path {
    fn from(keys: &[&str]) -> Path {
        Path(keys.iter().map(|key| Segment::Key((*key).to_owned())).collect())
    }
}

impl From<Vec<Segment>> for Path {
    fn from(segments: Vec<Segment>) -> Path {
        Path(segments)
    }
}

impl From<&Path> for Path {
    fn from(path: &Path) -> Path {
        path.clone()
    }
}

/// `models.providers.x.models[0].id`; an ambiguous key is quoted: `models["a.b"]`.
impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("<root>");
        }
        for (i, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Index(index) => write!(f, "[{index}]")?,
                Segment::Key(key) if is_plain(key) => write!(f, "{}{key}", if i == 0 { "" } else { "." })?,
                Segment::Key(key) => write!(f, "[{key:?}]")?,
            }
        }
        Ok(())
    }
}

fn is_plain(key: &str) -> bool {
    !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '$' | ':' | '/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_written_so_that_it_cannot_be_misread() {
        let path = Path::from(["models", "providers", "a.b"]).key("models").index(0).key("id");
        assert_eq!(path.to_string(), r#"models.providers["a.b"].models[0].id"#);
        assert_eq!(Path::root().to_string(), "<root>");
        assert_eq!(Path::from([""]).to_string(), r#"[""]"#);
    }

    #[test]
    fn below_is_counted_by_whole_keys() {
        let path = Path::from(["gateway", "auth", "token"]);
        assert!(path.is_at_or_below(&["gateway", "auth"]));
        assert!(path.is_at_or_below(&[]));
        assert!(!path.is_at_or_below(&["gateway", "au"]));
        assert!(!Path::from(["gateway"]).is_at_or_below(&["gateway", "auth"]));
        assert_eq!(Path::from(["a"]).index(3).name(), Some("a"));
    }
}
