//! The LLM gateway's part of the configuration.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use base::{Error, Result, Secret};
use llm::provider;
use store::model::ProviderKind;

use super::{Values, setting};

#[derive(Debug)]
pub struct GatewayConfig {
    /// `embedded`, or the name of one of `remote::llm::KINDS`.
    pub kind: String,
    /// Where the embedded gateway listens.
    pub listen: SocketAddr,
    /// The base URL of `/v1/chat/completions`.
    pub url: String,
    /// The base URL for assistants.
    pub public_url: String,
    /// The embedded gateway's providers.
    pub providers: provider::Settings,
    /// The largest body of a request to the embedded gateway, in bytes.
    pub body_bytes: usize,
    /// The settings of a foreign gateway.
    pub foreign: Option<Foreign>,
}

#[derive(Debug)]
pub struct Foreign {
    pub admin_token: Secret,
    /// The database that holds its request log.
    pub log_url: Secret,
    /// Whether keys that a daily quota binds are off while the log says nothing.
    pub keys_off_without_log: bool,
}

impl GatewayConfig {
    /// The address at which programs on this machine reach the embedded gateway.
    pub fn local_address(&self) -> SocketAddr {
        reached(self.listen)
    }
}

impl Values {
    pub(super) fn gateway(&self) -> Result<GatewayConfig> {
        let kind = self.text("gateway_kind").unwrap_or("embedded").to_owned();
        let listen: SocketAddr = match self.text("gateway_listen").map(str::parse) {
            Some(address) => address.map_err(Error::internal)?,
            None => setting::default_address("gateway_listen").ok_or_else(|| Error::internal("no default address"))?,
        };
        let foreign = if kind == "embedded" {
            None
        } else {
            let because = format!("gateway_kind is {kind}");
            self.needed("gateway_url", &because)?;
            Some(Foreign {
                admin_token: Secret::new(self.needed("gateway_admin_token", &because)?),
                log_url: Secret::new(self.needed("gateway_log_url", &because)?),
                keys_off_without_log: self.text("keys_off_without_log") == Some("true"),
            })
        };
        let url = self.text("gateway_url").map_or_else(|| format!("http://{}", reached(listen)), str::to_owned);
        let public_url = self.text("gateway_public_url").unwrap_or(&url).to_owned();
        let providers = provider::Settings {
            anthropic: self.provider(ProviderKind::Anthropic),
            openai: self.provider(ProviderKind::Openai),
            google: self.provider(ProviderKind::Google),
            file: self.text("providers_file").map(providers_of).transpose()?.unwrap_or_default(),
            echo: self.text("provider_echo") == Some("true"),
            allow_local: self.text("provider_allow_local") == Some("true"),
        };
        let body = self.number("gateway_body_mib").and_then(|mib| usize::try_from(mib).ok());
        let body_bytes = body.map_or(gateway::DEFAULT_BODY, |mib| mib << 20);
        Ok(GatewayConfig { kind, listen, url, public_url, providers, body_bytes, foreign })
    }

    /// A provider, if it has a key.
    fn provider(&self, kind: ProviderKind) -> Option<provider::Access> {
        let named = |what: &str| self.text(&format!("provider_{}_{what}", kind.as_str()));
        let url = named("url").unwrap_or_else(|| provider::preset::public_url(kind)).to_owned();
        named("key").map(|key| provider::Access { url, key: Secret::new(key) })
    }
}

/// The providers of a file. It holds keys, so it is read here and not handed on.
fn providers_of(path: &str) -> Result<Vec<provider::Provider>> {
    let read = std::fs::read_to_string(path).map_err(|error| error.to_string());
    read.and_then(|text| provider::read_file(&text))
        .map_err(|why| Error::field("TIDEPOOL_PROVIDERS_FILE (providers_file)", format_args!("{path}: {why}")))
}

/// How a listener on all addresses is reached on this machine.
pub(super) fn reached(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}
