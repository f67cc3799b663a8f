//! The embedded chat windows: where they listen, and whether each instance has its own origin.

use std::net::SocketAddr;

use api::PublicUrl;
use base::{Error, Result};
use fleet::embed::Origins;

use super::{Values, refused, setting};

/// The listener of the embedded chat windows.
#[derive(Debug)]
pub struct EmbedConfig {
    pub enabled: bool,
    pub listen: SocketAddr,
    /// The URL as browsers see it, without an instance's label.
    pub url: PublicUrl,
    pub origins: Origins,
    /// The origin that the gateways of all instances are configured to allow.
    pub gateway_origin: String,
    /// Why the windows are off although the setting enables them.
    pub problem: Option<&'static str>,
}

/// The placeholder for an instance's label in the setting.
const LABEL: &str = "://*.";
/// A host name has at most 253 characters; a label takes 63 of them, and its dot one.
const LONGEST_HOST: usize = 253 - 64;

const SAME_ORIGIN: &str = "the embedded windows are off: TIDEPOOL_EMBED_URL (embed_url) has the origin of one of our own pages, so that \
    assistants' pages could act as whoever is signed in; give them a host of their own";

/// Parses host and path, and whether instances have labels.
pub fn parse(text: &str) -> Result<(PublicUrl, Origins)> {
    let Some((scheme, rest)) = text.split_once(LABEL) else { return Ok((PublicUrl::parse(text)?, Origins::Shared)) };
    let url = PublicUrl::parse(&format!("{scheme}://{rest}"))?;
    if !url.has_name() {
        return Err(Error::field("embed_url", "an address has no labels: give a name, or leave `*.` out"));
    }
    if url.host().len() > LONGEST_HOST {
        return Err(Error::field("embed_url", "its host is too long for labels in front of it"));
    }
    Ok((url, Origins::PerInstance))
}

impl Values {
    /// `pages` are our own pages, whose origins no instance may have.
    pub(super) fn embed(&self, pages: &[&PublicUrl]) -> Result<EmbedConfig> {
        let listen: SocketAddr = match self.text("embed_listen").map(str::parse) {
            Some(address) => address.map_err(Error::internal)?,
            None => setting::default_address("embed_listen").ok_or_else(|| Error::internal("no default address"))?,
        };
        let is_taken = |url: &PublicUrl| pages.iter().any(|page| page.host().ends_with(&format!(".{}", url.host())));
        let listener = PublicUrl::parse(&format!("http://{listen}"))?;
        let (url, origins) = match self.text("embed_url") {
            Some(text) => parse(text)?,
            // Browsers resolve every name below localhost to their own machine.
            None if listen.ip().is_loopback() => parse(&format!("http://*.localhost:{}", listen.port()))?,
            None => (listener.clone(), Origins::Shared),
        };
        let is_given = self.text("embed_url").is_some();
        let (url, origins) = match origins {
            Origins::PerInstance if is_taken(&url) && is_given => {
                let line = "TIDEPOOL_EMBED_URL (embed_url): one of our own pages is below its host, and an instance could have the same \
                    name; give the windows a host of their own, for example https://*.window.example.com";
                return Err(refused(line));
            }
            Origins::PerInstance if is_taken(&url) => (listener.clone(), Origins::Shared),
            origins => (url, origins),
        };
        let is_same = origins == Origins::Shared && pages.iter().any(|page| page.origin() == url.origin());
        Ok(EmbedConfig {
            enabled: self.text("embed_enabled") != Some("false") && !is_same,
            listen,
            gateway_origin: if is_given { url.origin() } else { listener.origin() },
            url,
            origins,
            problem: is_same.then_some(SAME_ORIGIN),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(settings: &[(&'static str, &str)]) -> Result<super::super::Config> {
        let mut values = Values(Default::default());
        for (name, value) in settings.iter().copied() {
            values.set(name, value);
        }
        values.config()
    }

    fn embed(settings: &[(&'static str, &str)]) -> EmbedConfig {
        config(settings).unwrap().embed
    }

    #[test]
    fn each_instance_has_an_origin_where_the_address_says_so_and_by_default_on_loopback() {
        let usual = embed(&[]);
        assert_eq!((usual.url.origin().as_str(), usual.origins), ("http://localhost:8083", Origins::PerInstance));
        assert_eq!(usual.gateway_origin, "http://127.0.0.1:8083", "what running gateways were configured with");
        let own = embed(&[("embed_url", "https://*.window.example.com/w")]);
        assert_eq!((own.url.join("").as_str(), own.origins), ("https://window.example.com/w/", Origins::PerInstance));
        assert_eq!(own.gateway_origin, "https://window.example.com", "the same as without labels");
        let one = embed(&[("embed_url", "https://window.example.com")]);
        assert_eq!((one.url.origin().as_str(), one.origins), ("https://window.example.com", Origins::Shared));
        assert_eq!(embed(&[("embed_listen", "0.0.0.0:8083")]).origins, Origins::Shared);
        for bad in
            ["https://*.127.0.0.1", "http://*.[::1]:80", "https://*", "https://a.*.example.com", "ftp://*.example.com"]
        {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn no_instance_gets_the_origin_of_a_page_of_ours() {
        let own = ("public_url", "https://portal.example.com");
        let refused = config(&[own, ("embed_url", "https://*.example.com")]).unwrap_err();
        assert!(refused.client.contains("TIDEPOOL_EMBED_URL"), "{}", refused.client);
        config(&[own, ("embed_url", "https://*.window.example.com")]).unwrap();
        config(&[("admin_public_url", "https://a.b.example.com"), ("embed_url", "https://*.example.com")]).unwrap_err();
        let beside = embed(&[("public_url", "http://portal.localhost:8080")]);
        assert_eq!((beside.origins, beside.enabled), (Origins::Shared, true), "the default gives way");
        let same = embed(&[("public_url", "https://example.com/portal"), ("embed_url", "https://example.com/window")]);
        assert!(!same.enabled && same.problem.is_some());
    }
}
