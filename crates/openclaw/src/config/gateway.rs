//! The gateway's own settings: mode, port, address, token, log file, and the origins that may open its WebSocket.

use base::{Error, GatewayPort, Result, Secret};
use serde_json::{Value, json};
use url::{Host, Url};

use super::literal;
use crate::document::Document;
use crate::version::Version;

#[derive(Clone, Debug)]
pub struct Gateway {
    /// Where it listens; `None` if that is not ours to say: in a container it has a port of its own, which Docker publishes.
    pub listen: Option<(GatewayPort, Bind)>,
    pub token: Secret,
    /// An absolute path, used by this instance alone: by default all instances of a Unix user share one file.
    pub log_file: String,
    /// Origins of pages that open the gateway's WebSocket; empty if no browser reaches it.
    pub origins: Vec<String>,
}

/// Where a gateway listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bind {
    /// 127.0.0.1 and [::1].
    Loopback,
    /// All addresses.
    Lan,
}

impl Bind {
    pub fn as_str(self) -> &'static str {
        match self {
            Bind::Loopback => "loopback",
            Bind::Lan => "lan",
        }
    }

    /// Loopback, unless the instance's URL names another host. The URL is parsed as a client parses it, because an
    /// address can be written in many ways.
    pub fn for_url(gateway_url: &str) -> Bind {
        let whole = if gateway_url.contains("://") { gateway_url.to_owned() } else { format!("ws://{gateway_url}") };
        let loopback = match Url::parse(&whole).as_ref().map(Url::host) {
            Ok(Some(Host::Ipv4(ip))) => ip.is_loopback(),
            Ok(Some(Host::Ipv6(ip))) => ip.to_canonical().is_loopback(),
            Ok(Some(Host::Domain(name))) => {
                let name = name.trim_end_matches('.').to_ascii_lowercase();
                name.is_empty() || name == "localhost" || name.ends_with(".localhost")
            }
            // A URL without a host names no other host.
            Ok(None) | Err(_) => true,
        };
        if loopback { Bind::Loopback } else { Bind::Lan }
    }
}

/// The first releases that know a key; an older one would refuse the whole file.
const KNOWS_TERMINAL: Version = Version::new(2026, 7, 35);
const KNOWS_INVITE: Version = Version::new(2026, 9, 4);

impl Gateway {
    pub fn apply(&self, document: &mut Document, version: &Version) -> Result<()> {
        if !self.log_file.starts_with('/') {
            return Err(Error::internal("the log file of an instance must be an absolute path"));
        }
        if self.token.expose().is_empty() {
            return Err(Error::internal("the gateway token of an instance must not be empty"));
        }
        document.set(["gateway", "mode"], json!("local"))?;
        if let Some((port, bind)) = self.listen {
            document.set(["gateway", "port"], json!(port.get()))?;
            document.set(["gateway", "bind"], json!(bind.as_str()))?;
        }
        document.set(["gateway", "auth", "mode"], json!("token"))?;
        document.set(["gateway", "auth", "token"], literal("the gateway token", self.token.expose())?)?;
        document.set(["logging", "file"], literal("the log file", &self.log_file)?)?;
        document.set(["update", "checkOnStart"], json!(false))?;
        // A user of the gateway's page administers the gateway, but must not get a shell on the server.
        if *version >= KNOWS_TERMINAL {
            document.set(["gateway", "terminal", "enabled"], json!(false))?;
        }
        if !self.origins.is_empty() {
            self.allow_origins(document)?;
            // Without the key it is on.
            if document.get(["gateway", "controlUi", "enabled"]) == Some(Value::Bool(false)) {
                document.set(["gateway", "controlUi", "enabled"], json!(true))?;
            }
            if *version >= KNOWS_INVITE {
                document.set(["gateway", "controlUi", "communityInvite"], json!(false))?;
            }
        }
        Ok(())
    }

    /// Adds our origins to the existing ones: OpenClaw itself adds some for a gateway that listens on all addresses.
    fn allow_origins(&self, document: &mut Document) -> Result<()> {
        let path = ["gateway", "controlUi", "allowedOrigins"];
        let mut origins = match document.get(path) {
            Some(Value::Array(origins)) => origins,
            _ => vec![],
        };
        for origin in &self.origins {
            let origin = literal("an origin", origin)?;
            if !origins.contains(&origin) {
                origins.push(origin);
            }
        }
        document.set(path, Value::Array(origins))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_listens_on_loopback_unless_its_url_says_otherwise() {
        for url in [
            "",
            "http://localhost:18789",
            "ws://127.0.0.1:18789/x",
            "http://127.8.9.1",
            "http://[::1]:18789",
            "https://a.localhost",
            "LOCALHOST:1",
            "http://2130706433:8081",
            "http://127.1",
            "ws://0x7f.0.0.1:1",
            "http://[::ffff:127.0.0.1]",
            "ws://localhost.:1",
        ] {
            assert_eq!(Bind::for_url(url), Bind::Loopback, "{url}");
        }
        for url in [
            "http://10.0.0.5:18789",
            "wss://assistant.example.com/a",
            "http://[2001:db8::1]:18789",
            "http://127.0.0.1@evil.example",
            "http://0.0.0.0:18789",
            "host:18789",
        ] {
            assert_eq!(Bind::for_url(url), Bind::Lan, "{url}");
        }
    }
}
