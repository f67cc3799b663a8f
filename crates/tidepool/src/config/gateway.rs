//! The LLM gateway's part of the configuration.

use std::net::SocketAddr;

use base::{Error, Result, Secret};

use super::{Values, setting};

#[derive(Debug)]
pub struct GatewayConfig {
    /// embedded, one-api, new-api or litellm.
    pub kind: String,
    /// Where the embedded gateway listens.
    pub listen: SocketAddr,
    /// The address below which `/v1/chat/completions` is.
    pub url: String,
    /// The same as assistants see it.
    pub public_url: String,
    /// What a gateway that somebody else runs needs.
    pub foreign: Option<Foreign>,
}

#[derive(Debug)]
pub struct Foreign {
    pub admin_token: Secret,
    /// The database that holds its request log.
    pub log_url: Secret,
}

impl GatewayConfig {
    pub fn embedded(&self) -> bool {
        self.foreign.is_none()
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
            })
        };
        // An address to listen on at every interface is none to call.
        let callable =
            if listen.ip().is_unspecified() { SocketAddr::new([127, 0, 0, 1].into(), listen.port()) } else { listen };
        let url = self.text("gateway_url").map_or_else(|| format!("http://{callable}"), str::to_owned);
        let public_url = self.text("gateway_public_url").unwrap_or(&url).to_owned();
        Ok(GatewayConfig { kind, listen, url, public_url, foreign })
    }
}
