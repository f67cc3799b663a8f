//! The names by which the attempts of a caller are counted.

use queue::audit::By;

use crate::token::Audience;

/// The network of an address. A caller with one IPv6 address usually has a whole /64, so that counts as one.
pub(crate) fn network(ip: &str) -> String {
    match ip.parse() {
        Ok(std::net::IpAddr::V6(ip)) => {
            let [a, b, c, d, ..] = ip.segments();
            format!("{a:x}:{b:x}:{c:x}:{d:x}::/64")
        }
        _ => ip.to_owned(),
    }
}

/// The name by which failures from a caller's address are counted.
pub(crate) fn address_name(audience: Audience, by: &By) -> String {
    format!("{}:{}", audience.as_str(), network(&by.ip))
}
