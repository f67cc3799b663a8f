//! Sealing of secrets with AES-256-GCM. The row's table, column and id are the associated data, so that a sealed value
//! does not open in another place. The key's id is the prefix of each value.

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::{digest, hmac};
use base::Secret;
use base::secret::random_bytes;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD as BASE64};

use crate::{Error, Result};

/// The place of a sealed value.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    pub table: &'a str,
    pub column: &'a str,
    pub id: &'a str,
}

impl Place<'_> {
    fn associated(self) -> Aad<Vec<u8>> {
        Aad::from(format!("{}\0{}\0{}", self.table, self.column, self.id).into_bytes())
    }
}

/// Seals and opens secrets with one master key.
pub struct Sealer {
    id: String,
    key: RandomizedNonceKey,
    hash: hmac::Key,
    derive: hmac::Key,
}

impl Sealer {
    /// The key is 32 bytes in base64, as `openssl rand -base64 32` prints.
    pub fn new(master: &Secret) -> Result<Sealer> {
        let bytes = STANDARD.decode(master.expose().trim()).ok().filter(|b| b.len() == 32);
        let bytes = bytes.ok_or(Error::Sealed("the master key is not 32 bytes in base64"))?;
        let key = RandomizedNonceKey::new(&AES_256_GCM, &bytes).map_err(|_| Error::Sealed("unusable master key"))?;
        // The keyed hash and the derived keys have keys of their own, derived from the master key.
        let of_master = hmac::Key::new(hmac::HMAC_SHA256, &bytes);
        let own = |name: &str| hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&of_master, name.as_bytes()).as_ref());
        let (hash, derive) = (own("tidepool keyed hash"), own("tidepool derived keys"));
        let id = digest::digest(&digest::SHA256, &bytes).as_ref()[..4].iter().map(|b| format!("{b:02x}")).collect();
        Ok(Sealer { id, key, hash, derive })
    }

    /// A new master key.
    pub fn generate() -> Result<Secret> {
        let bytes = random_bytes::<32>().map_err(|_| Error::Sealed("the system gives no randomness"))?;
        Ok(Secret::new(STANDARD.encode(bytes)))
    }

    pub fn seal(&self, place: Place<'_>, secret: &Secret) -> Result<String> {
        let mut bytes = secret.expose().as_bytes().to_vec();
        let nonce = self.key.seal_in_place_append_tag(place.associated(), &mut bytes);
        let nonce = nonce.map_err(|_| Error::Sealed("sealing failed"))?;
        let mut out = nonce.as_ref().to_vec();
        out.append(&mut bytes);
        Ok(format!("{}.{}", self.id, BASE64.encode(out)))
    }

    pub fn open(&self, place: Place<'_>, sealed: &str) -> Result<Secret> {
        let (id, body) = sealed.split_once('.').ok_or(Error::Sealed("not a sealed value"))?;
        if id != self.id {
            return Err(Error::Sealed("sealed with another master key"));
        }
        let mut bytes = BASE64.decode(body).map_err(|_| Error::Sealed("not a sealed value"))?;
        if bytes.len() < NONCE_LEN {
            return Err(Error::Sealed("not a sealed value"));
        }
        let mut rest = bytes.split_off(NONCE_LEN);
        let nonce = Nonce::try_assume_unique_for_key(&bytes).map_err(|_| Error::Sealed("not a sealed value"))?;
        let opened = self.key.open_in_place(nonce, place.associated(), &mut rest);
        let opened = opened.map_err(|_| Error::Sealed("altered, or moved from another row"))?;
        let text = String::from_utf8(opened.to_vec()).map_err(|_| Error::Sealed("not a text"))?;
        Ok(Secret::new(text))
    }

    /// A key that is not stored anywhere, because it can be made again: each purpose and id has another, and so has each
    /// master key.
    pub fn derive(&self, purpose: &str, id: &str) -> [u8; 32] {
        let tag = hmac::sign(&self.derive, format!("{purpose}\0{id}").as_bytes());
        let mut key = [0; 32];
        key.copy_from_slice(tag.as_ref());
        key
    }

    /// A keyed hash, to find equal secrets without opening them.
    pub fn hash(&self, secret: &Secret) -> String {
        BASE64.encode(hmac::sign(&self.hash, secret.expose().as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Place<'_> = Place { table: "instance", column: "gateway_token", id: "a" };

    #[test]
    fn what_is_sealed_opens_in_its_place_only() {
        let sealer = Sealer::new(&Sealer::generate().unwrap()).unwrap();
        let secret = Secret::new("a token");
        let sealed = sealer.seal(PLACE, &secret).unwrap();
        assert!(!sealed.contains("a token"));
        assert_eq!(sealer.open(PLACE, &sealed).unwrap(), secret);
        assert!(sealer.open(Place { id: "b", ..PLACE }, &sealed).is_err());
        assert!(sealer.open(Place { column: "other", ..PLACE }, &sealed).is_err());
        let other = Sealer::new(&Sealer::generate().unwrap()).unwrap();
        assert!(other.open(PLACE, &sealed).is_err());
        assert_ne!(sealed, sealer.seal(PLACE, &secret).unwrap(), "each value has a nonce of its own");
    }

    #[test]
    fn an_altered_value_does_not_open() {
        let sealer = Sealer::new(&Sealer::generate().unwrap()).unwrap();
        let sealed = sealer.seal(PLACE, &Secret::new("a token")).unwrap();
        for i in 0..sealed.len() {
            let mut bytes = sealed.clone().into_bytes();
            bytes[i] = if bytes[i] == b'A' { b'B' } else { b'A' };
            let altered = String::from_utf8(bytes).unwrap();
            assert!(altered == sealed || sealer.open(PLACE, &altered).is_err(), "byte {i}");
        }
        for rubbish in ["", ".", "x.y", "00000000.AAAA"] {
            assert!(sealer.open(PLACE, rubbish).is_err());
        }
    }

    #[test]
    fn a_derived_key_is_the_same_again_and_no_other_s() {
        let master = Sealer::generate().unwrap();
        let derive = |purpose: &str, id: &str| Sealer::new(&master).unwrap().derive(purpose, id);
        assert_eq!(derive("device", "a"), derive("device", "a"));
        assert_ne!(derive("device", "a"), derive("device", "b"));
        assert_ne!(derive("device", "a"), derive("other", "a"));
        let other = Sealer::new(&Sealer::generate().unwrap()).unwrap();
        assert_ne!(derive("device", "a"), other.derive("device", "a"));
    }

    #[test]
    fn equal_secrets_have_equal_hashes_under_one_key() {
        let key = Sealer::generate().unwrap();
        let (a, b) = (Sealer::new(&key).unwrap(), Sealer::new(&Sealer::generate().unwrap()).unwrap());
        assert_eq!(a.hash(&Secret::new("x")), Sealer::new(&key).unwrap().hash(&Secret::new("x")));
        assert_ne!(a.hash(&Secret::new("x")), a.hash(&Secret::new("y")));
        assert_ne!(a.hash(&Secret::new("x")), b.hash(&Secret::new("x")));
    }
}
