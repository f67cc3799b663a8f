//! The systemd unit of an instance: its name, its text, its cell, and its state from `systemctl show`.

pub mod cell;
mod show;
mod text;

use std::fmt;

use base::id::InstanceId;
use base::{Error, Result};

pub use cell::{Cell, Confinement};
pub use show::{Active, Exit, PROPERTIES, State};
pub use text::{Unit, is_ours, with_port};

/// The name of a service, without `.service`. It is safe as a word, a file name and an argument of systemctl.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(String);

impl Name {
    /// systemd allows 255 bytes with the suffix.
    const MAX: usize = 255 - ".service".len();

    /// `openclaw-<instance id>`, unless an administrator chose another.
    pub fn of_instance(id: &InstanceId) -> Result<Name> {
        Name::parse(&format!("openclaw-{id}"))
    }

    pub fn parse(text: &str) -> Result<Name> {
        let name = text.strip_suffix(".service").unwrap_or(text);
        // No `*`, `?` and `[`, which systemctl would treat as a pattern, and no path or option.
        let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b':' | b'-' | b'_' | b'.' | b'@');
        let begins = name.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_');
        if !begins || name.len() > Name::MAX || !name.bytes().all(allowed) {
            return Err(Error::field(
                "unit",
                "must be letters, digits, `:`, `-`, `_`, `.` or `@`, and begin with one of the first two",
            ));
        }
        Ok(Name(name.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// With its suffix, as journald and cgroups write it.
    pub fn service(&self) -> String {
        format!("{}.service", self.0)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_wherever_they_are_put() {
        assert_eq!(Name::of_instance(&InstanceId::named("a.B_c-9")).unwrap().service(), "openclaw-a.B_c-9.service");
        assert_eq!(Name::parse("oc@i1.service").unwrap().as_str(), "oc@i1");
        let long = "x".repeat(300);
        for bad in
            ["", ".service", "-x", ".x", "@x", "a b", "a/b", "a*", "a?", "a[1]", "a\\x2d", "a\n", "ä", "a;b", &long]
        {
            assert!(Name::parse(bad).is_err(), "{bad}");
        }
        assert!(Name::of_instance(&InstanceId::named("a b")).is_err());
    }
}
