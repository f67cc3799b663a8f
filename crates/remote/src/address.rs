//! Checks of IP addresses that others name: which ones are public, and which ones lead to this machine or to a cloud's
//! metadata service.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use url::{Host, Url};

/// Whether an address is on the public Internet.
pub fn is_public(ip: IpAddr) -> bool {
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
    // NAT64 embeds an IPv4 address, which decides. (6to4 embeds one too; the check below refuses all of 6to4.)
    if parts[..6] == [0x64, 0xff9b, 0, 0, 0, 0] {
        let [.., a, b, c, d] = ip.octets();
        return public_v4(Ipv4Addr::new(a, b, c, d));
    }
    // Only 2000::/3 is allocated. Of it, 6to4, Teredo and documentation are not public.
    let given_out = parts[0] & 0xe000 == 0x2000;
    given_out && parts[0] != 0x2002 && !(parts[0] == 0x2001 && matches!(parts[1], 0 | 0xdb8))
}

/// Metadata services of clouds that are outside of the link-local range. They hand a machine its credentials.
const METADATA_V4: &[Ipv4Addr] =
    &[Ipv4Addr::new(100, 100, 100, 200), Ipv4Addr::new(168, 63, 129, 16), Ipv4Addr::new(192, 0, 0, 192)];
const METADATA_V6: &[Ipv6Addr] = &[
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe),
];

/// Whether an address can belong to another machine, on the public Internet or in a private network. This machine
/// itself and metadata services, which answer anyone who asks from here, are not elsewhere.
pub fn is_elsewhere(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => elsewhere_v4(ip),
        IpAddr::V6(ip) => elsewhere_v6(ip),
    }
}

fn elsewhere_v4(ip: Ipv4Addr) -> bool {
    let here = ip.is_loopback() || ip.is_link_local() || ip.is_multicast() || ip.is_broadcast();
    !here && ip.octets()[0] != 0 && !METADATA_V4.contains(&ip)
}

fn elsewhere_v6(ip: Ipv6Addr) -> bool {
    let (parts, octets) = (ip.segments(), ip.octets());
    // NAT64, 6to4 and the deprecated IPv4-compatible form embed an IPv4 address. `::` and `::1` have the last form too.
    if parts[..6] == [0x64, 0xff9b, 0, 0, 0, 0] {
        return elsewhere_v4(Ipv4Addr::new(octets[12], octets[13], octets[14], octets[15]));
    }
    if parts[0] == 0x2002 {
        return elsewhere_v4(Ipv4Addr::new(octets[2], octets[3], octets[4], octets[5]));
    }
    if parts[..6] == [0; 6] {
        return false;
    }
    !ip.is_unicast_link_local() && !ip.is_multicast() && !METADATA_V6.contains(&ip)
}

/// Whether the host of a URL is written as an address that is not on the public Internet, or as this machine's name. What
/// another name leads to is only known when it is resolved.
pub fn is_written_private(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name.trim_end_matches('.').eq_ignore_ascii_case("localhost"),
        Some(_) => literal(url).is_some_and(|ip| !is_public(ip)),
        None => false,
    }
}

/// Resolves a host, within a time. Fails where it leads to no address, or, unless private ones are allowed, to any that is not public.
pub async fn resolve(
    host: &str,
    port: u16,
    allow_private: bool,
    within: Duration,
) -> Result<Vec<SocketAddr>, Unresolved> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let found = tokio::time::timeout(within, tokio::net::lookup_host((bare, port))).await;
    let found = found.map_err(|_| Unresolved::Away("its name was not resolved in time".into()))?;
    let addresses: Vec<SocketAddr> = found.map_err(|e| Unresolved::Away(e.to_string()))?.collect();
    if addresses.is_empty() || (!allow_private && !addresses.iter().all(|address| is_public(address.ip()))) {
        return Err(Unresolved::Private);
    }
    Ok(addresses)
}

/// Why a host has no address that may be called.
#[derive(Debug)]
pub enum Unresolved {
    Away(String),
    /// It leads to an address that is not public.
    Private,
}

impl std::fmt::Display for Unresolved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unresolved::Away(why) => f.write_str(why),
            Unresolved::Private => f.write_str("its name leads to a private address, which is not allowed"),
        }
    }
}

impl std::error::Error for Unresolved {}

/// The host of a URL, if it is an IP address and not a name.
pub fn literal(url: &Url) -> Option<IpAddr> {
    match url.host()? {
        Host::Ipv4(ip) => Some(ip.into()),
        Host::Ipv6(ip) => Some(ip.to_canonical()),
        Host::Domain(_) => None,
    }
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
    fn neither_we_ourselves_nor_a_cloud_s_secrets_are_elsewhere() {
        for other in
            ["8.8.8.8", "10.1.2.3", "192.168.1.1", "100.64.0.1", "2606:4700::1111", "fd12::1", "::ffff:10.0.0.1"]
        {
            assert!(is_elsewhere(other.parse().unwrap()), "{other}");
        }
        for here in [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "0.1.2.3",
            "169.254.169.254",
            "100.100.100.200",
            "168.63.129.16",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "fe80::1",
            "ff02::1",
            "fd00:ec2::254",
        ] {
            assert!(!is_elsewhere(here.parse().unwrap()), "{here}");
        }
    }

    #[test]
    fn an_address_is_read_in_whatever_clothes() {
        let read = |url: &str| literal(&Url::parse(url).unwrap()).map(|ip| ip.to_string());
        for url in [
            "http://2130706433:1",
            "ws://127.1",
            "http://0x7f.1/x",
            "wss://[::ffff:127.0.0.1]:8",
            "ws://u:p@127.0.0.1/",
        ] {
            assert_eq!(read(url).as_deref(), Some("127.0.0.1"), "{url}");
        }
        assert_eq!(read("ws://localhost"), None);
    }
}
