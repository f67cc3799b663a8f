//! Which LLM gateway there is, and what the embedded one is made of.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use base::Result;
use gateway::provider::{self, Access};
use store::model::ProviderKind;

use super::Values;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Embedded,
    OneApi,
    NewApi,
    Litellm,
}

impl Kind {
    /// Measured: the foreign gateways refuse longer names, each in its own way.
    pub fn token_name_limit(self) -> usize {
        match self {
            Kind::OneApi => 30,
            Kind::NewApi => 50,
            Kind::Embedded | Kind::Litellm => 100,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Embedded => "embedded",
            Kind::OneApi => "one-api",
            Kind::NewApi => "new-api",
            Kind::Litellm => "litellm",
        }
    }
}

#[derive(Debug)]
pub struct GatewayConfig {
    pub kind: Kind,
    pub listen: SocketAddr,
    /// The base URL, as this process reaches it.
    pub url: String,
    pub providers: provider::Settings,
}

impl Values {
    pub(super) fn gateway(&self) -> Result<GatewayConfig> {
        let kind = match self.text("gateway_kind") {
            Some("one-api") => Kind::OneApi,
            Some("new-api") => Kind::NewApi,
            Some("litellm") => Kind::Litellm,
            _ => Kind::Embedded,
        };
        let listen = self.listen("gateway_listen")?;
        let url = self.text("gateway_url").map_or_else(|| format!("http://{}", reached(listen)), str::to_owned);
        let providers = provider::Settings {
            anthropic: self.provider(ProviderKind::Anthropic),
            openai: self.provider(ProviderKind::Openai),
            google: self.provider(ProviderKind::Google),
            echo: self.text("provider_echo") == Some("true"),
        };
        Ok(GatewayConfig { kind, listen, url, providers })
    }

    /// A provider is configured when it has a key.
    fn provider(&self, kind: ProviderKind) -> Option<Access> {
        let named = |what: &str| format!("provider_{}_{what}", kind.as_str());
        let key = self.secret(&named("key"))?;
        let url = self.text(&named("url")).unwrap_or(provider::public_url(kind)).to_owned();
        Some(Access { url, key })
    }
}

/// Where a listener on every address is reached on this machine.
fn reached(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}
