//! OpenClaw's versions: `2026.9.6`, with `-beta.1` before it and `-1` (a correction) after it.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Version {
    year: u32,
    month: u32,
    patch: u32,
    suffix: Suffix,
}

/// In the order of their release.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Suffix {
    /// `-beta.1`, `-alpha.2`, `-rc.1`: compared part by part.
    Before(Vec<Part>),
    None,
    /// `-1`: the same release with a correction.
    Correction(u32),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Part {
    Number(u32),
    Word(String),
}

impl Version {
    /// The first release whose configuration and protocol we know.
    pub const OLDEST: Version = Version::new(2026, 5, 0);
    /// The version that the test suite runs against, and the default to install.
    pub const TESTED: Version = Version::new(2026, 9, 6);

    pub const fn new(year: u32, month: u32, patch: u32) -> Version {
        Version { year, month, patch, suffix: Suffix::None }
    }

    /// The first version named in a program's output: `OpenClaw 2026.9.6 (eb377ac)`.
    pub fn find(output: &str) -> Option<Version> {
        output.split_whitespace().find_map(|word| word.parse().ok())
    }

    pub fn support(&self) -> Support {
        if *self < Version::OLDEST {
            Support::TooOld
        } else if (self.year, self.month, self.patch) > (2026, 9, 6) {
            Support::Newer
        } else {
            Support::Supported
        }
    }
}

/// Whether we support a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    Supported,
    /// Older than the oldest that we know: its configuration is not written.
    TooOld,
    /// Newer than the newest that we tested: treated like it.
    Newer,
}

impl FromStr for Version {
    type Err = String;

    fn from_str(text: &str) -> Result<Version, String> {
        let problem =
            || format!("{:?} is no OpenClaw version such as 2026.9.6", text.chars().take(40).collect::<String>());
        let bare = text.strip_prefix('v').unwrap_or(text);
        // A plus starts a build name, which does not affect the order.
        let bare = bare.split_once('+').map_or(bare, |(version, _)| version);
        let (main, suffix) = match bare.split_once('-') {
            Some((main, suffix)) => (main, Some(suffix)),
            None => (bare, None),
        };
        let mut numbers = main.split('.').map(number);
        let (Some(Some(year)), Some(Some(month)), Some(Some(patch)), None) =
            (numbers.next(), numbers.next(), numbers.next(), numbers.next())
        else {
            return Err(problem());
        };
        let suffix = match suffix {
            None => Suffix::None,
            Some(suffix) => match number(suffix) {
                Some(correction) => Suffix::Correction(correction),
                None => Suffix::Before(suffix.split('.').map(part).collect::<Option<_>>().ok_or_else(problem)?),
            },
        };
        Ok(Version { year, month, patch, suffix })
    }
}

fn number(text: &str) -> Option<u32> {
    // `parse` would accept a sign too.
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

fn part(text: &str) -> Option<Part> {
    let word = !text.is_empty() && text.len() <= 40 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    match number(text) {
        Some(number) => Some(Part::Number(number)),
        None => word.then(|| Part::Word(text.to_owned())),
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Version) -> Ordering {
        let main = |v: &Version| (v.year, v.month, v.patch);
        main(self).cmp(&main(other)).then_with(|| match (&self.suffix, &other.suffix) {
            (Suffix::Before(a), Suffix::Before(b)) => a.cmp(b),
            (Suffix::Correction(a), Suffix::Correction(b)) => a.cmp(b),
            (a, b) => rank(a).cmp(&rank(b)),
        })
    }
}

fn rank(suffix: &Suffix) -> u8 {
    match suffix {
        Suffix::Before(_) => 0,
        Suffix::None => 1,
        Suffix::Correction(_) => 2,
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Version) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.year, self.month, self.patch)?;
        match &self.suffix {
            Suffix::None => Ok(()),
            Suffix::Correction(number) => write!(f, "-{number}"),
            Suffix::Before(parts) => {
                for (i, part) in parts.iter().enumerate() {
                    f.write_str(if i == 0 { "-" } else { "." })?;
                    match part {
                        Part::Number(number) => write!(f, "{number}")?,
                        Part::Word(word) => f.write_str(word)?,
                    }
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn version(text: &str) -> Version {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn versions_order_by_release() {
        let released = [
            "2026.4.15",
            "2026.5.28-alpha.3",
            "2026.5.28-beta.1",
            "2026.5.28-beta.2",
            "2026.5.28-beta.10",
            "2026.5.28",
            "2026.5.28-1",
            "2026.5.28-2",
            "2026.7.9",
            "2026.7.35",
            "2026.9.6-beta.1",
            "2026.9.6",
            "2026.10.1",
            "2027.1.1",
        ];
        for (i, a) in released.iter().enumerate() {
            assert_eq!(version(a).to_string(), *a);
            for (j, b) in released.iter().enumerate() {
                assert_eq!(version(a).cmp(&version(b)), i.cmp(&j), "{a} {b}");
            }
        }
        assert_eq!(version("v2026.9.6"), Version::TESTED);
        assert_eq!(version("2026.9.6+build"), Version::TESTED);
    }

    #[test]
    fn what_is_no_version_is_refused() {
        for bad in ["", "2026", "2026.9", "2026.9.6.1", "2026.9.x", "a.b.c", "2026.9.6-", "2026.9.6-beta..1", "+1.2.3"]
        {
            assert!(bad.parse::<Version>().is_err(), "{bad}");
        }
        assert!("99999999999.1.1".parse::<Version>().is_err());
        assert!(".".repeat(1000).parse::<Version>().unwrap_err().len() < 200);
    }

    #[test]
    fn a_version_is_found_in_what_the_program_prints() {
        assert_eq!(Version::find("OpenClaw 2026.9.6 (eb377ac)\n"), Some(Version::TESTED));
        assert_eq!(Version::find("warning\n🦞 OpenClaw 2026.5.28 (e932160)"), Some(version("2026.5.28")));
        assert_eq!(Version::find("command not found"), None);
    }

    #[test]
    fn support_begins_with_2026_5_and_newer_ones_are_named() {
        for (text, support) in [
            ("2026.4.15", Support::TooOld),
            ("2026.5.0-beta.1", Support::TooOld),
            ("2026.5.28", Support::Supported),
            ("2026.9.6-beta.1", Support::Supported),
            ("2026.9.6", Support::Supported),
            ("2026.9.6-1", Support::Supported),
            ("2026.9.7", Support::Newer),
            ("2027.1.0", Support::Newer),
        ] {
            assert_eq!(version(text).support(), support, "{text}");
        }
    }

    proptest! {
        #[test]
        fn fuzz_any_text_is_a_version_that_prints_as_itself_or_none(text in "[v0-9a-z.+-]{0,24}|\\PC{0,24}") {
            if let Ok(version) = text.parse::<Version>() {
                prop_assert_eq!(version.to_string().parse::<Version>(), Ok(version));
            }
        }
    }
}
