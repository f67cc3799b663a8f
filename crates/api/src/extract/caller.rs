//! Where a request comes from: the address (through trusted proxies) and the program.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, header};
use ipnet::IpNet;
use queue::audit::By;
use queue::permission::Rights;

use crate::state::Shared;

/// The other end of the connection, set by the server for each one.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub SocketAddr);

/// Who calls, as the audit log writes it down; the operator is filled in by whoever knows.
pub struct Caller(pub By);

impl FromRequestParts<Shared> for Caller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, api: &Shared) -> Result<Caller, Infallible> {
        Ok(Caller(by(parts, api, "")))
    }
}

pub(super) fn by(parts: &Parts, api: &Shared, operator: &str) -> By {
    let peer = parts.extensions.get::<Peer>().map(|p| p.0.ip());
    let ip = peer.map(|peer| client_address(peer, &parts.headers, &api.trusted_proxies));
    let user_agent = parts.headers.get(header::USER_AGENT).and_then(|v| v.to_str().ok()).unwrap_or_default();
    By {
        operator: operator.to_owned(),
        ip: ip.map(|ip| ip.to_string()).unwrap_or_default(),
        user_agent: user_agent.to_owned(),
        on_behalf_of: String::new(),
        rights: Rights::None,
    }
}

/// Whether the other end of the connection is a proxy whose headers count.
pub fn is_trusted_proxy(extensions: &Extensions, trusted: &[IpNet]) -> bool {
    let peer = extensions.get::<Peer>().map(|p| p.0.ip().to_canonical());
    peer.is_some_and(|peer| trusted.iter().any(|net| net.contains(&peer)))
}

/// The nearest address that is no trusted proxy. Whatever stands left of it could be made up.
pub fn client_address(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> IpAddr {
    let is_trusted = |ip: &IpAddr| trusted.iter().any(|net| net.contains(ip));
    let mut nearest = peer.to_canonical();
    if !is_trusted(&nearest) {
        return nearest;
    }
    let forwarded: Vec<&str> = headers.get_all("x-forwarded-for").iter().filter_map(|v| v.to_str().ok()).collect();
    for hop in forwarded.join(",").rsplit(',') {
        let Ok(ip) = hop.trim().parse::<IpAddr>() else { break };
        nearest = ip.to_canonical();
        if !is_trusted(&nearest) {
            break;
        }
    }
    nearest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_trusted_proxies_are_believed() {
        let trusted = ["10.0.0.0/8".parse().unwrap(), "127.0.0.1/32".parse().unwrap()];
        let seen = |peer: &str, forwarded: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("x-forwarded-for", forwarded.parse().unwrap());
            client_address(peer.parse().unwrap(), &headers, &trusted).to_string()
        };
        assert_eq!(seen("203.0.113.9", "1.2.3.4"), "203.0.113.9", "a stranger's header is not read");
        assert_eq!(seen("127.0.0.1", "1.2.3.4"), "1.2.3.4");
        assert_eq!(seen("127.0.0.1", "6.6.6.6, 1.2.3.4, 10.1.1.1"), "1.2.3.4", "the nearest untrusted one");
        assert_eq!(seen("127.0.0.1", "rubbish, 1.2.3.4"), "1.2.3.4");
        assert_eq!(seen("127.0.0.1", "rubbish"), "127.0.0.1");
        assert_eq!(seen("::ffff:127.0.0.1", "1.2.3.4"), "1.2.3.4");
    }
}
