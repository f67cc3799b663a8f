//! Deliveries to webhooks: signed, to public addresses only unless it is allowed otherwise, without redirects.
//!
//! The address that was checked is the one that is connected to: a name is resolved once.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use aws_lc_rs::hmac;
use base::{Error, Kind, Result, Secret};
use jiff::Timestamp;
use url::{Host, Url};

const LIMIT: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, Default)]
pub struct Webhooks {
    /// Whether loopback and private addresses may be called.
    pub allow_private: bool,
}

impl Webhooks {
    /// Refuses what can never be delivered to; a name is not resolved yet.
    pub fn check(&self, url: &Secret) -> Result<()> {
        self.parse(url).map(drop)
    }

    fn parse(&self, url: &Secret) -> Result<Url> {
        let refuse = |why: &str| Error::field("channel", why);
        let url = Url::parse(url.expose()).map_err(|_| refuse("must be a URL such as https://hooks.example.com/x"))?;
        if !matches!(url.scheme(), "http" | "https") || !url.username().is_empty() || url.password().is_some() {
            return Err(refuse("must be an http or https URL without a user"));
        }
        let literal = match url.host() {
            Some(Host::Ipv4(ip)) => Some(IpAddr::V4(ip)),
            Some(Host::Ipv6(ip)) => Some(IpAddr::V6(ip)),
            Some(Host::Domain(name)) if name.eq_ignore_ascii_case("localhost") => Some(Ipv4Addr::LOCALHOST.into()),
            Some(Host::Domain(_)) => None,
            None => return Err(refuse("names no host")),
        };
        match literal {
            Some(ip) if !self.allow_private && !is_public(ip) => {
                Err(refuse("is a private address, which webhook_allow_private does not allow"))
            }
            _ => Ok(url),
        }
    }

    /// Delivers a JSON body; answers the status. `id` is the same in every attempt.
    pub async fn deliver(&self, url: &Secret, key: &Secret, id: &str, at: Timestamp, body: String) -> Result<u16> {
        let url = self.parse(url)?;
        let (host, port) = (url.host_str().unwrap_or_default().to_owned(), url.port_or_known_default().unwrap_or(443));
        let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let found = tokio::time::timeout(LIMIT, tokio::net::lookup_host((bare.as_str(), port))).await;
        let away = |why: &dyn std::fmt::Display| {
            Error::new(Kind::Unavailable, "the webhook cannot be reached").with_operator(why)
        };
        let addresses: Vec<SocketAddr> = found.map_err(|e| away(&e))?.map_err(|e| away(&e))?.collect();
        if addresses.is_empty() || (!self.allow_private && !addresses.iter().all(|a| is_public(a.ip()))) {
            return Err(Error::conflict("the webhook's name leads to a private address, which is not allowed"));
        }
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .resolve_to_addrs(&host, &addresses)
            .timeout(LIMIT)
            .user_agent(concat!("tidepool/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(Error::internal)?;
        let time = at.as_second();
        let answer = client
            .post(url)
            .header("content-type", "application/json")
            .header("x-tidepool-delivery", id)
            .header("x-tidepool-signature", format!("t={time},v1={}", sign(key, time, &body)))
            .body(body)
            .send()
            .await
            .map_err(|e| crate::http::failed("the webhook", &e))?;
        let status = answer.status();
        if status.is_success() { Ok(status.as_u16()) } else { Err(crate::http::odd("the webhook", status)) }
    }
}

/// HMAC-SHA-256 of `<time>.<body>`, in hexadecimal.
pub fn sign(key: &Secret, time: i64, body: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key.expose().as_bytes());
    let tag = hmac::sign(&key, format!("{time}.{body}").as_bytes());
    tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether an address is one of the open network.
fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => public_v4(ip),
        IpAddr::V6(ip) => public_v6(ip),
    }
}

fn public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    let special = ip.is_private()
        || ip.is_loopback()
        || ip.is_link_local()
        || ip.is_multicast()
        || ip.is_documentation()
        || a == 0
        || a >= 240
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 198 && (18..20).contains(&b));
    !special
}

fn public_v6(ip: Ipv6Addr) -> bool {
    let parts = ip.segments();
    if let Some(v4) = ip.to_ipv4_mapped() {
        return public_v4(v4);
    }
    // An IPv4 address in the clothes of NAT64; 6to4 leads to one too.
    if parts[..6] == [0x64, 0xff9b, 0, 0, 0, 0] {
        let [.., a, b, c, d] = ip.octets();
        return public_v4(Ipv4Addr::new(a, b, c, d));
    }
    // 2000::/3 is what is given out; of it, not 6to4, Teredo and documentation.
    let given_out = parts[0] & 0xe000 == 0x2000;
    given_out && parts[0] != 0x2002 && !(parts[0] == 0x2001 && matches!(parts[1], 0 | 0xdb8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_open_network_is_public() {
        for open in ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"] {
            assert!(is_public(open.parse().unwrap()), "{open}");
        }
        for closed in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "0.0.0.0",
            "100.64.0.1",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "192.0.2.1",
            "::1",
            "::",
            "fe80::1",
            "fc00::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "2001:db8::1",
            "2001::1",
            "::7f00:1",
        ] {
            assert!(!is_public(closed.parse().unwrap()), "{closed}");
        }
    }

    #[test]
    fn what_cannot_be_delivered_to_is_refused() {
        let strict = Webhooks::default();
        for bad in [
            "",
            "x",
            "ftp://a/",
            "https://u:p@a.example/",
            "http://127.0.0.1/",
            "http://[::1]:8/",
            "http://localhost/",
            "http://0x7f.1/",
            "http://2130706433/",
            "http://169.254.169.254/latest",
            "file:///etc/passwd",
        ] {
            assert!(strict.check(&Secret::new(bad)).is_err(), "{bad}");
        }
        assert!(strict.check(&Secret::new("https://hooks.example.com/x")).is_ok());
        assert!(Webhooks { allow_private: true }.check(&Secret::new("http://127.0.0.1:1/")).is_ok());
    }

    /// The numbers of RFC 4231's way of computing, by another program.
    #[test]
    fn a_signature_is_hmac_sha_256() {
        let made = sign(&Secret::new("whsec_x"), 1_700_000_000, "{}");
        assert_eq!(made.len(), 64);
        assert_ne!(made, sign(&Secret::new("whsec_y"), 1_700_000_000, "{}"));
        assert_ne!(made, sign(&Secret::new("whsec_x"), 1_700_000_001, "{}"));
    }
}
