//! Whoever calls, as their attempts are counted.

use queue::audit::By;

use crate::token::Audience;

/// Whoever has one address of IPv6 has a whole /64 of them: those count as one.
pub(crate) fn network(ip: &str) -> String {
    match ip.parse() {
        Ok(std::net::IpAddr::V6(ip)) => {
            let [a, b, c, d, ..] = ip.segments();
            format!("{a:x}:{b:x}:{c:x}:{d:x}::/64")
        }
        _ => ip.to_owned(),
    }
}

/// By what name failures from a caller's address are counted.
pub(crate) fn address_name(audience: Audience, by: &By) -> String {
    format!("{}:{}", audience.as_str(), network(&by.ip))
}
