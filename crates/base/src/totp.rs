//! Time-based one-time passwords (RFC 6238), as authenticator apps show them. SHA-1, six digits and 30 seconds, because
//! every app supports these.

use aws_lc_rs::{constant_time, hmac};
use jiff::Timestamp;

use crate::secret::random_bytes;
use crate::{Result, Secret};

/// How long a code is shown, in seconds.
pub const PERIOD: i64 = 30;
/// The client's clock may be this many periods ahead or behind.
pub const DRIFT: i64 = 1;

const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// A new shared secret: 160 bits in base32, which people can type into an app without a camera.
pub fn fresh() -> Result<Secret> {
    let bytes = random_bytes::<20>()?;
    // 20 bytes are exactly 32 letters of five bits each.
    let text: String = bytes
        .chunks_exact(5)
        .flat_map(|five| {
            let bits = five.iter().fold(0u64, |bits, byte| (bits << 8) | u64::from(*byte));
            (0..8).rev().map(move |i| char::from(ALPHABET[((bits >> (5 * i)) & 31) as usize]))
        })
        .collect();
    Ok(Secret::new(text))
}

/// The number of the period that `now` falls into.
pub fn step(now: Timestamp) -> i64 {
    now.as_second().div_euclid(PERIOD)
}

/// The code of one period; `None` for a secret that is not base32.
pub fn code(secret: &Secret, step: i64) -> Option<String> {
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &decode(secret.expose())?);
    let tag = hmac::sign(&key, &step.to_be_bytes());
    let bytes = tag.as_ref();
    let at = usize::from(bytes.last()? & 15);
    let four: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
    let number = u32::from_be_bytes(four) & 0x7fff_ffff;
    Some(format!("{:06}", number % 1_000_000))
}

/// The period whose code this is, among those around `now` and after `used`. So a code is accepted once, and older
/// codes are refused after it.
pub fn matching_step(secret: &Secret, given: &str, now: Timestamp, used: i64) -> Option<i64> {
    let given = given.as_bytes();
    let mut found = None;
    for step in step(now) - DRIFT..=step(now) + DRIFT {
        let right = code(secret, step)?;
        let same = constant_time::verify_slices_are_equal(right.as_bytes(), given).is_ok();
        if same && step > used && found.is_none() {
            found = Some(step);
        }
    }
    found
}

/// The content of the QR code: the secret, and the name under which an app lists it.
pub fn uri(issuer: &str, account: &str, secret: &Secret) -> Secret {
    let (issuer, account) = (escaped(issuer), escaped(account));
    let secret = secret.expose();
    Secret::new(format!(
        "otpauth://totp/{issuer}:{account}?secret={secret}&issuer={issuer}&algorithm=SHA1&digits=6&period={PERIOD}"
    ))
}

/// Percent-encodes a text, blanks included: apps would show a `+` as a plus sign.
fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~@".contains(&byte);
    text.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

fn decode(text: &str) -> Option<Vec<u8>> {
    let (mut out, mut bits, mut count) = (vec![], 0u64, 0);
    for letter in text.bytes() {
        let value = ALPHABET.iter().position(|a| *a == letter.to_ascii_uppercase())?;
        bits = (bits << 5) | value as u64;
        count += 5;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// "12345678901234567890", as in RFC 6238, appendix B.
    fn known() -> Secret {
        Secret::new("GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ")
    }

    #[test]
    fn codes_are_those_of_the_standard() {
        let vectors = [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (1_111_111_111, "050471"),
            (1_234_567_890, "005924"),
            (2_000_000_000, "279037"),
            (20_000_000_000, "353130"),
        ];
        for (second, expected) in vectors {
            assert_eq!(code(&known(), step(at(second))).unwrap(), expected, "{second}");
        }
    }

    #[test]
    fn a_code_is_good_one_period_early_or_late_and_once() {
        let now = at(1_800_000_015);
        let code_at = |drift: i64| code(&known(), step(now) + drift).unwrap();
        for drift in -1..=1 {
            assert_eq!(matching_step(&known(), &code_at(drift), now, 0), Some(step(now) + drift));
        }
        for drift in [-2, 2] {
            assert_eq!(matching_step(&known(), &code_at(drift), now, 0), None, "{drift}");
        }
        assert_eq!(matching_step(&known(), &code_at(0), now, step(now)), None, "used");
        assert_eq!(matching_step(&known(), &code_at(-1), now, step(now)), None, "older than the one that was used");
        assert_eq!(matching_step(&known(), &code_at(1), now, step(now)), Some(step(now) + 1));
    }

    #[test]
    fn the_address_names_issuer_and_account() {
        let uri = uri("tidepool console", "ada+x@example.com", &known());
        assert_eq!(
            uri.expose(),
            "otpauth://totp/tidepool%20console:ada%2Bx@example.com?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ\
            &issuer=tidepool%20console&algorithm=SHA1&digits=6&period=30"
        );
    }

    #[test]
    fn a_fresh_secret_has_160_bits_and_is_nobody_elses() {
        let (one, other) = (fresh().unwrap(), fresh().unwrap());
        assert_eq!(decode(one.expose()).unwrap().len(), 20);
        assert_ne!(one, other);
        assert!(code(&one, 1).is_some());
    }

    proptest! {
        #[test]
        fn no_text_but_the_code_is_taken(text in ".*") {
            let now = at(1_800_000_015);
            let right: Vec<String> = (-1..=1).map(|d| code(&known(), step(now) + d).unwrap()).collect();
            prop_assert_eq!(matching_step(&known(), &text, now, 0).is_some(), right.contains(&text));
        }
    }
}
