//! The releases of OpenClaw that we support by name, each with the lockfile that npm installs it from: every package,
//! by version and SHA-512. Any other release is installed as the registry has it that day: it is not pinned.
//!
//! A lockfile is made by `npm install --package-lock-only --omit-lockfile-registry-resolved` beside a package.json that
//! depends on exactly this release; `license`, `funding` and `deprecated` are removed. It names no registry, so any
//! registry with the same packages can be used.

use crate::Version;

const LOCKS: &[(Version, &str)] = &[
    (Version::TESTED, include_str!("../locks/2026.9.6.json")),
    (Version::new(2026, 8, 2), include_str!("../locks/2026.8.2.json")),
    (Version::new(2026, 5, 28), include_str!("../locks/2026.5.28.json")),
];

/// The lockfile of this release; `None` if it is not pinned.
pub fn of(version: &Version) -> Option<&'static str> {
    LOCKS.iter().find(|(known, _)| known == version).map(|(_, lock)| *lock)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn every_package_of_a_named_release_is_pinned() {
        for (version, text) in LOCKS {
            let lock: Value = serde_json::from_str(text).unwrap();
            let packages = lock["packages"].as_object().unwrap();
            assert_eq!(packages[""]["dependencies"], json!({"openclaw": version.to_string()}));
            assert_eq!(packages["node_modules/openclaw"]["version"], version.to_string());
            assert!(packages.len() > 100, "{version}");
            for (name, package) in packages.iter().filter(|(name, _)| !name.is_empty()) {
                // A bundled package is verified together with the archive that contains it.
                let checked = package["integrity"].as_str().is_some_and(|sum| sum.starts_with("sha512-"));
                assert!(checked || package["inBundle"] == true, "{version}: {name}");
                assert!(package["resolved"].is_null(), "{version}: {name} names a registry");
                assert!(package["link"].is_null(), "{version}: {name} is a link");
            }
            assert!(!text.contains("://"), "{version} names an address");
        }
        assert!(of(&Version::TESTED).is_some() && of(&Version::new(2026, 9, 7)).is_none());
        assert!(of(&"2026.9.6-1".parse().unwrap()).is_none());
    }
}
