//! The two keys of an SSH connection: the server's, which identifies it, and ours, which logs in.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use base::Secret;
use russh::keys::ssh_key::public::KeyData;
use russh::keys::{Algorithm, HashAlg, PrivateKey, PublicKey, PublicKeyOrCertificate, decode_secret_key};

use super::error::{Error, Result};

/// A server's public key, in OpenSSH's form without a comment: `ssh-ed25519 AAAA…`. This text is what is stored.
#[derive(Clone, PartialEq, Eq)]
pub struct HostKey(Arc<PublicKey>);

impl HostKey {
    pub(super) fn of(presented: &PublicKeyOrCertificate) -> HostKey {
        let key = match presented {
            PublicKeyOrCertificate::PublicKey { key, .. } => key.key_data().clone(),
            // `ExpectedKey::check` decides about the certificate.
            PublicKeyOrCertificate::Certificate(certificate) => certificate.public_key().clone(),
        };
        HostKey::from(key)
    }

    pub(super) fn data(&self) -> &KeyData {
        self.0.key_data()
    }

    /// `SHA256:…`, as `ssh-keygen -l` prints it.
    pub fn fingerprint(&self) -> String {
        self.0.fingerprint(HashAlg::Sha256).to_string()
    }

    /// Whether a server can prove this key by an algorithm.
    pub(super) fn proves(&self, algorithm: &Algorithm) -> bool {
        match (self.0.algorithm(), algorithm) {
            (Algorithm::Rsa { .. }, Algorithm::Rsa { .. }) => true,
            (own, other) => own == *other,
        }
    }
}

impl From<KeyData> for HostKey {
    fn from(key: KeyData) -> HostKey {
        HostKey(Arc::new(PublicKey::new(key, "")))
    }
}

impl FromStr for HostKey {
    type Err = Error;

    fn from_str(text: &str) -> Result<HostKey> {
        let key = PublicKey::from_openssh(text).map_err(|e| Error::odd("a pinned host key", e))?;
        Ok(HostKey::from(key.key_data().clone()))
    }
}

impl fmt::Display for HostKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.to_openssh().map_err(|_| fmt::Error)?.trim_end())
    }
}

impl fmt::Debug for HostKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.fingerprint())
    }
}

/// The private key for the login: a file on the platform's own disk, or a sealed key from the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoginKey {
    File(PathBuf),
    Text(Secret),
}

impl LoginKey {
    /// Reads the key at every connection, so that a renewed file takes effect.
    pub(super) async fn load(&self) -> Result<Arc<PrivateKey>> {
        let unusable = |why: &dyn fmt::Display| Error::Key { name: self.name(), why: why.to_string() };
        let text = match self {
            LoginKey::Text(text) => text.clone(),
            LoginKey::File(path) => {
                let text = tokio::fs::read_to_string(path).await.map_err(|e| unusable(&e))?;
                Secret::new(text)
            }
        };
        match decode_secret_key(text.expose(), None) {
            Ok(key) => Ok(Arc::new(key)),
            Err(russh::keys::Error::KeyIsEncrypted) => Err(unusable(&"it is protected by a passphrase")),
            // The parser's own message may repeat parts of the key.
            Err(_) => Err(unusable(&"it is no private key in OpenSSH or PEM form")),
        }
    }

    fn name(&self) -> String {
        match self {
            LoginKey::File(path) => path.display().to_string(),
            LoginKey::Text(_) => "that is stored".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPdU2gFyX0RrEgly4iUaJbkaPzYZUaHYuzbzkf85LRze";

    #[test]
    fn a_host_key_is_what_was_stored_whatever_its_comment() {
        let key: HostKey = KEY.parse().unwrap();
        assert_eq!(key.to_string(), KEY);
        assert_eq!(format!("{KEY} root@h1").parse::<HostKey>().unwrap(), key);
        assert!(key.fingerprint().starts_with("SHA256:"));
        assert!("ssh-ed25519 AAAA".parse::<HostKey>().is_err());
    }

    #[tokio::test]
    async fn a_key_that_cannot_be_used_is_named_without_its_text() {
        let missing = LoginKey::File("/nowhere/key".into()).load().await.unwrap_err();
        assert!(matches!(&missing, Error::Key { name, .. } if name == "/nowhere/key"), "{missing}");
        let garbled = LoginKey::Text(Secret::new("not a key at all")).load().await.unwrap_err();
        assert!(matches!(garbled, Error::Key { .. }) && !garbled.to_string().contains("not a key at all"));
    }
}
