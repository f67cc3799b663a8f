//! How an administrator says a server is to be identified: by its own key, that key's fingerprint, or a certificate
//! authority.

use std::fmt;
use std::str::FromStr;

use russh::keys::ssh_key::certificate::CertType;
use russh::keys::ssh_key::public::KeyData;
use russh::keys::ssh_key::{Certificate, Fingerprint, HashAlg};
use russh::keys::{Algorithm, PublicKey, PublicKeyOrCertificate};

use super::key::HostKey;

/// The expected identity of a server. `Display` gives the text that is stored, which `FromStr` reads again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpectedKey {
    /// Its own key: `ssh-ed25519 AAAA…`.
    Key(HostKey),
    /// The fingerprint of its own key: `SHA256:…`.
    Fingerprint(Fingerprint),
    /// A certificate by this authority, for hosts that match these known_hosts patterns:
    /// `@cert-authority *.example.com ssh-ed25519 AAAA…`.
    Authority { hosts: String, key: HostKey },
}

const AUTHORITY: &str = "@cert-authority";
const FINGERPRINT: &str = "SHA256:";

/// Why a text is not an expected key, as a message for the person who wrote it.
pub type Problem = &'static str;

impl FromStr for ExpectedKey {
    type Err = Problem;

    /// Accepts a public key as `ssh-keygen` writes it, a line of known_hosts or of `ssh-keyscan`, and a fingerprint
    /// alone or as `ssh-keygen -l` prints it.
    fn from_str(text: &str) -> Result<ExpectedKey, Problem> {
        let text = text.trim();
        if text.contains(['\n', '\r']) {
            return Err("must be one line");
        }
        let mut words: Vec<&str> = text.split_ascii_whitespace().collect();
        let is_authority = words.first() == Some(&AUTHORITY);
        if is_authority {
            words.remove(0);
        } else if words.first().is_some_and(|word| word.starts_with('@')) {
            return Err("only @cert-authority is understood in front of a key");
        }
        if !is_authority && let Some(print) = words.iter().take(2).find(|word| word.starts_with(FINGERPRINT)) {
            let print: Fingerprint = print.parse().map_err(|_| "is no SHA256 fingerprint")?;
            return Ok(ExpectedKey::Fingerprint(print));
        }
        let hosts = match words.as_slice() {
            [kind, _, ..] if is_kind(kind) => "*",
            [hosts, kind, _, ..] if is_kind(kind) => hosts,
            _ => return Err("must be a public key, its SHA256 fingerprint, or @cert-authority with a key"),
        };
        let at = words.iter().position(|word| is_kind(word)).unwrap_or_default();
        let key = format!("{} {}", words[at], words[at + 1]);
        let key = PublicKey::from_openssh(&key)
            .map_err(|_| "the key cannot be read, or is of a kind that is not supported")?;
        let key = HostKey::from(key.key_data().clone());
        if !is_authority {
            return Ok(ExpectedKey::Key(key));
        }
        if hosts.contains('|') {
            return Err("the hosts of an authority must not be hashed");
        }
        Ok(ExpectedKey::Authority { hosts: hosts.to_owned(), key })
    }
}

/// Whether a word is the type of a key, and not the host patterns in front of one.
fn is_kind(word: &str) -> bool {
    ["ssh-", "ecdsa-", "sk-"].iter().any(|front| word.starts_with(front)) && !word.contains([',', '*'])
}

impl fmt::Display for ExpectedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExpectedKey::Key(key) => write!(f, "{key}"),
            ExpectedKey::Fingerprint(print) => write!(f, "{print}"),
            ExpectedKey::Authority { hosts, key } => write!(f, "{AUTHORITY} {hosts} {key}"),
        }
    }
}

impl ExpectedKey {
    /// `SHA256:…` of the expected key or authority.
    pub fn fingerprint(&self) -> String {
        match self {
            ExpectedKey::Key(key) | ExpectedKey::Authority { key, .. } => key.fingerprint(),
            ExpectedKey::Fingerprint(print) => print.to_string(),
        }
    }

    pub fn is_authority(&self) -> bool {
        matches!(self, ExpectedKey::Authority { .. })
    }

    /// Whether this applies to the server at this address: an authority may be for some hosts only.
    pub fn is_for(&self, host: &str, port: u16) -> bool {
        match self {
            ExpectedKey::Authority { hosts, .. } => names(hosts, host, port),
            ExpectedKey::Key(_) | ExpectedKey::Fingerprint(_) => true,
        }
    }

    /// Whether a server that presented this key, without a certificate, is the expected one.
    pub fn is(&self, seen: &HostKey) -> bool {
        match self {
            ExpectedKey::Key(key) => key == seen,
            ExpectedKey::Fingerprint(print) => print.to_string() == seen.fingerprint(),
            ExpectedKey::Authority { .. } => false,
        }
    }

    /// Checks what a server presented; an error says why it is refused. `now` is in seconds since 1970.
    pub(super) fn check(
        &self,
        host: &str,
        port: u16,
        presented: &PublicKeyOrCertificate,
        now: u64,
    ) -> Result<(), String> {
        let seen = HostKey::of(presented);
        let ExpectedKey::Authority { hosts, key } = self else {
            return match self.is(&seen) {
                true => Ok(()),
                false => Err(format!("{} is expected, {} was seen", self.fingerprint(), seen.fingerprint())),
            };
        };
        let refused = |why: &str| Err(format!("a certificate by {} is expected: {why}", key.fingerprint()));
        if !names(hosts, host, port) {
            return refused("the authority is for other hosts");
        }
        match presented.certificate() {
            None => refused(&format!("it showed the key {} without one", seen.fingerprint())),
            Some(certificate) => match problem(certificate, key, host, now) {
                None => Ok(()),
                Some(why) => refused(&why),
            },
        }
    }
}

/// What is wrong with a host's certificate; `None` if it is good.
fn problem(certificate: &Certificate, authority: &HostKey, host: &str, now: u64) -> Option<String> {
    let authority: &KeyData = authority.data();
    let print = authority.fingerprint(HashAlg::Sha256);
    if certificate.signature_key() != authority {
        let by = certificate.signature_key().fingerprint(HashAlg::Sha256);
        return Some(format!("it showed one by {by}"));
    }
    if certificate.cert_type() != CertType::Host {
        return Some("it showed one of a user".into());
    }
    // SHA-1 signatures can be forged.
    if certificate.signature().algorithm() == (Algorithm::Rsa { hash: None }) {
        return Some("it showed one that is signed over SHA-1".into());
    }
    if now < certificate.valid_after() {
        return Some("the one that it showed is not valid yet".into());
    }
    if now >= certificate.valid_before() {
        return Some("the one that it showed has expired".into());
    }
    // A certificate without principals would be valid for every host. An authority that issues one for hosts has made a
    // mistake.
    if !certificate.valid_principals().iter().any(|name| name.eq_ignore_ascii_case(host)) {
        return Some(format!("the one that it showed is not for {host}"));
    }
    if let Some(option) = certificate.critical_options().keys().next() {
        return Some(format!("the one that it showed has the critical option {option:?}, which is not known"));
    }
    certificate.validate_at(now, [&print]).err().map(|_| "the signature of the one that it showed is wrong".into())
}

/// Whether known_hosts patterns match a host: separated by commas, with `*` and `?`, and `!` in front of an exclusion.
fn names(patterns: &str, host: &str, port: u16) -> bool {
    let host = host.to_ascii_lowercase();
    let written = [host.clone(), format!("[{host}]:{port}")];
    let mut found = false;
    for pattern in patterns.split(',') {
        let pattern = pattern.to_ascii_lowercase();
        let (is_left_out, pattern) = pattern.strip_prefix('!').map_or((false, pattern.as_str()), |rest| (true, rest));
        if written.iter().any(|name| fits(pattern.as_bytes(), name.as_bytes())) {
            if is_left_out {
                return false;
            }
            found = true;
        }
    }
    found
}

/// `*` matches anything, `?` one character.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    // Where to continue if the text after the last `*` does not match.
    let mut again: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                again = Some((p + 1, n));
                p += 1;
            }
            Some(c) if *c == b'?' || *c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match again {
                Some((after, from)) => {
                    (p, n) = (after, from + 1);
                    again = Some((after, from + 1));
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

#[cfg(test)]
mod tests {
    use russh::keys::PrivateKey;
    use russh::keys::ssh_key::certificate::Builder;
    use russh::keys::ssh_key::private::Ed25519Keypair;

    use super::*;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPdU2gFyX0RrEgly4iUaJbkaPzYZUaHYuzbzkf85LRze";

    #[test]
    fn keys_fingerprints_and_authorities_are_read_as_tools_write_them() {
        let key: HostKey = KEY.parse().unwrap();
        let print = key.fingerprint();
        let same = |text: &str, expected: &ExpectedKey| {
            let read: ExpectedKey = text.parse().unwrap_or_else(|why| panic!("{text}: {why}"));
            assert_eq!(read, *expected, "{text}");
            assert_eq!(read.to_string().parse::<ExpectedKey>().as_ref(), Ok(expected), "{text}");
        };
        let own = ExpectedKey::Key(key.clone());
        for text in [
            KEY.to_owned(),
            format!(" {KEY} root@h1\n"),
            format!("h1,10.0.0.1 {KEY}"),
            format!("|1|salt|hash= {KEY} c"),
        ] {
            same(&text, &own);
        }
        let by_print = ExpectedKey::Fingerprint(print.parse().unwrap());
        for text in [print.clone(), format!("256 {print} root@h1 (ED25519)")] {
            same(&text, &by_print);
        }
        let authority = |hosts: &str| ExpectedKey::Authority { hosts: hosts.into(), key: key.clone() };
        same(&format!("@cert-authority {KEY}"), &authority("*"));
        same(
            &format!("@cert-authority *.example.com,!a.example.com {KEY} our CA"),
            &authority("*.example.com,!a.example.com"),
        );
        assert!(own.is(&key) && by_print.is(&key) && !authority("*").is(&key));
        let bad = [
            String::new(),
            "rubbish".into(),
            "SHA256:short".into(),
            "ssh-ed25519".into(),
            "ssh-ed25519 AAAA".into(),
            "@cert-authority".into(),
            format!("@revoked * {KEY}"),
            format!("@cert-authority |1|salt|hash= {KEY}"),
            format!("@cert-authority {print}"),
            format!("{KEY}\n{KEY}"),
            "MD5:aa:bb".into(),
            format!("a b {KEY}"),
        ];
        for text in bad {
            assert!(text.parse::<ExpectedKey>().is_err(), "{text}");
        }
    }

    #[test]
    fn patterns_name_hosts_as_known_hosts_does() {
        for (patterns, host, port, expected) in [
            ("*", "h1", 22, true),
            ("*.example.com", "a.example.com", 22, true),
            ("*.example.com", "example.com", 22, false),
            ("*.example.com,!a.example.com", "A.example.com", 22, false),
            ("!a.example.com", "b.example.com", 22, false),
            ("h?,[h10]:2222", "h1", 22, true),
            ("h?,[h10]:2222", "h10", 22, false),
            ("h?,[h10]:2222", "h10", 2222, true),
            ("", "h1", 22, false),
            ("*a*b*c", "xxaxxbxxc", 22, true),
            ("*a*b*c", "xxaxxcxxb", 22, false),
        ] {
            assert_eq!(names(patterns, host, port), expected, "{patterns} {host}:{port}");
        }
    }

    fn private(seed: u8) -> PrivateKey {
        PrivateKey::from(Ed25519Keypair::from_seed(&[seed; 32]))
    }

    /// A certificate of the host `h1`, valid from 1000 to 2000, after `change` has changed it.
    fn certificate(ca: &PrivateKey, change: impl FnOnce(&mut Builder)) -> PublicKeyOrCertificate {
        signed(ca, CertType::Host, change)
    }

    fn signed(ca: &PrivateKey, kind: CertType, change: impl FnOnce(&mut Builder)) -> PublicKeyOrCertificate {
        let subject = private(1);
        let mut builder = Builder::new([7; 16], subject.public_key().key_data().clone(), 1000, 2000).unwrap();
        builder.cert_type(kind).unwrap();
        change(&mut builder);
        builder.sign(ca).unwrap().into()
    }

    #[test]
    fn a_certificate_is_the_authority_s_for_this_host_and_now() {
        let (ca, other) = (private(2), private(3));
        let line = ca.public_key().to_openssh().unwrap();
        let expected: ExpectedKey = format!("@cert-authority h1,h2 {line}").parse().unwrap();
        let for_h1 = |builder: &mut Builder| {
            builder.valid_principal("H1").unwrap();
        };
        let good = certificate(&ca, for_h1);
        assert_eq!(expected.check("h1", 22, &good, 1000), Ok(()));
        assert_eq!(expected.check("h1", 22, &good, 1999), Ok(()));
        let refused = |host: &str, presented: &PublicKeyOrCertificate, now: u64, why: &str| {
            let message = expected.check(host, 22, presented, now).unwrap_err();
            assert!(message.contains(why) && message.contains(&expected.fingerprint()), "{message}");
        };
        refused("h1", &good, 999, "not valid yet");
        refused("h1", &good, 2000, "expired");
        refused("h2", &good, 1500, "not for h2");
        refused("h3", &good, 1500, "other hosts");
        refused("h1", &certificate(&other, for_h1), 1500, "showed one by SHA256:");
        refused("h1", &signed(&ca, CertType::User, for_h1), 1500, "of a user");
        let for_all = |builder: &mut Builder| {
            builder.all_principals_valid().unwrap();
        };
        refused("h1", &certificate(&ca, for_all), 1500, "not for h1");
        let odd = |builder: &mut Builder| {
            for_h1(builder);
            builder.critical_option("force-command", "x").unwrap();
        };
        refused("h1", &certificate(&ca, odd), 1500, "force-command");
        refused("h1", &private(1).public_key().clone().into(), 1500, "without one");
        // The authority's own key, presented as a host key, is not a certificate either.
        refused("h1", &ca.public_key().clone().into(), 1500, "without one");
        // Signed by another key, with the authority's key inserted afterwards.
        let PublicKeyOrCertificate::Certificate(good) = good else { panic!("a certificate") };
        let PublicKeyOrCertificate::Certificate(forged) = certificate(&other, for_h1) else { panic!("a certificate") };
        let (theirs, ours) = (other.public_key().key_data(), ca.public_key().key_data());
        let bytes = forged.to_bytes().unwrap();
        let (from, to) = (theirs.ed25519().unwrap().0, ours.ed25519().unwrap().0);
        let at = bytes.windows(32).position(|part| part == from).unwrap();
        let forged = Certificate::from_bytes(&[&bytes[..at], &to[..], &bytes[at + 32..]].concat()).unwrap();
        assert_eq!(forged.signature_key(), good.signature_key());
        refused("h1", &forged.into(), 1500, "signature");
    }
}
