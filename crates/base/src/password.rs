//! How passwords are stored: argon2id of the SHA-256 of the password.
//!
//! The inner hash makes it possible to import accounts that have only a bare SHA-256: login accepts such a value once
//! and replaces it. Hashing costs tens of milliseconds of one core, so callers run it outside of the request threads
//! (`people::hashing`).

use argon2::password_hash::phc::PasswordHash;
use argon2::{Argon2, PasswordHasher, PasswordVerifier};
use aws_lc_rs::{constant_time, digest};

use crate::{Error, Result, Secret};

pub const MIN_CHARACTERS: usize = 8;
/// Far more than anybody types. Without a limit a client could make us hash megabytes.
pub const MAX_BYTES: usize = 1024;

/// The result of comparing a password with a stored value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Wrong,
    Right,
    /// Right, but stored as a bare SHA-256: the caller replaces it with `hash`.
    RightButOutdated,
}

/// Refuses passwords that are too short or too long.
pub fn check(field: &str, password: &Secret) -> Result<()> {
    let text = password.expose();
    if text.chars().count() < MIN_CHARACTERS {
        return Err(Error::field(field, format_args!("must have at least {MIN_CHARACTERS} characters")));
    }
    if text.len() > MAX_BYTES {
        return Err(Error::field(field, format_args!("must have at most {MAX_BYTES} bytes")));
    }
    Ok(())
}

/// The value to store, in PHC form.
pub fn hash(password: &Secret) -> Result<String> {
    let hash = Argon2::default().hash_password(sha256_hex(password.expose()).as_bytes());
    hash.map(|h| h.to_string()).map_err(Error::internal)
}

pub fn verify(stored: &str, password: &Secret) -> Verdict {
    let inner = sha256_hex(password.expose());
    if is_bare_sha256(stored) {
        // This spends the time of a full verification, so that timing does not reveal which accounts were imported.
        burn(password);
        let same = constant_time::verify_slices_are_equal(inner.as_bytes(), stored.to_ascii_lowercase().as_bytes());
        return if same.is_ok() { Verdict::RightButOutdated } else { Verdict::Wrong };
    }
    let Ok(parsed) = PasswordHash::new(stored) else {
        burn(password);
        return Verdict::Wrong;
    };
    match Argon2::default().verify_password(inner.as_bytes(), &parsed) {
        Ok(()) => Verdict::Right,
        Err(_) => Verdict::Wrong,
    }
}

/// Spends the time of a verification, for accounts without a stored password. Otherwise timing would reveal which
/// accounts exist.
pub fn burn(password: &Secret) {
    let mut out = [0; 32];
    // The result is not needed, and the only possible errors are about lengths, which are constant here.
    Argon2::default()
        .hash_password_into(sha256_hex(password.expose()).as_bytes(), b"tidepool-no-such-account", &mut out)
        .ok();
}

pub fn is_bare_sha256(stored: &str) -> bool {
    stored.len() == 64 && stored.bytes().all(|b| b.is_ascii_hexdigit())
}

pub fn sha256_hex(text: &str) -> String {
    digest::digest(&digest::SHA256, text.as_bytes()).as_ref().iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_kept_as_argon2id_of_its_sha256() {
        let password = Secret::new("correct horse");
        let stored = hash(&password).unwrap();
        assert!(stored.starts_with("$argon2id$"), "{stored}");
        assert_eq!(verify(&stored, &password), Verdict::Right);
        assert_eq!(verify(&stored, &Secret::new("correct horsf")), Verdict::Wrong);
        assert_ne!(stored, hash(&password).unwrap(), "two accounts with one password have different values");
    }

    #[test]
    fn an_imported_sha256_is_taken_once_in_either_case() {
        let password = Secret::new("imported-pw");
        let bare = sha256_hex(password.expose());
        assert_eq!(verify(&bare, &password), Verdict::RightButOutdated);
        assert_eq!(verify(&bare.to_uppercase(), &password), Verdict::RightButOutdated);
        assert_eq!(verify(&bare, &Secret::new(bare.clone())), Verdict::Wrong, "the hash is not the password");
    }

    #[test]
    fn a_marker_or_rubbish_is_never_right() {
        for stored in ["", "SSO_ONLY", "$argon2id$", "0"] {
            assert_eq!(verify(stored, &Secret::new(stored)), Verdict::Wrong);
        }
    }
}
