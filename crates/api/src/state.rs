//! What every handler is handed besides the request.

use std::borrow::Cow;
use std::sync::Arc;

use fleet::App;
use ipnet::IpNet;
use people::token::Audience;

use crate::PublicUrl;

/// Finds a file of the built web app.
pub type Assets = fn(&str) -> Option<Cow<'static, [u8]>>;

/// One side of the product: an API and its web app.
pub struct Api {
    pub app: Arc<App>,
    pub side: Audience,
    pub version: &'static str,
    pub public_url: PublicUrl,
    /// The files of this side's web app.
    pub assets: Assets,
    /// Addresses whose X-Forwarded-For counts.
    pub trusted_proxies: Arc<[IpNet]>,
    /// The Prometheus text, and the token that may read it from elsewhere than this machine.
    pub metrics: Arc<dyn Fn() -> String + Send + Sync>,
    pub metrics_token: Option<base::Secret>,
}

pub type Shared = Arc<Api>;

impl Api {
    pub fn zone(&self) -> &base::Zone {
        &self.app.zone
    }
}
