//! The address under which people reach one side of the product; it may carry a path prefix.

use base::{Error, Result};
use url::{Host, Url};

#[derive(Clone, Debug)]
pub struct PublicUrl(Url);

/// What our own paths begin with: a prefix of the same name would hide them.
const OURS: &[&str] = &["api", "assets", "hooks", "healthz", "readyz", "metrics"];

impl PublicUrl {
    pub fn parse(text: &str) -> Result<PublicUrl> {
        let url = Url::parse(text).map_err(|e| Error::field("public_url", e))?;
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err(Error::field("public_url", "must begin with http:// or https://"));
        }
        if url.host_str().is_some_and(|host| host.contains('*')) {
            return Err(Error::field("public_url", "its host must not hold a `*`"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(Error::field("public_url", "must not have a query or a fragment"));
        }
        let path = url.path().trim_matches('/');
        let plain = |s: &str| !s.is_empty() && s.chars().all(|c| c.is_ascii_alphanumeric() || "-._~".contains(c));
        if !path.is_empty() && !path.split('/').all(plain) {
            return Err(Error::field("public_url", "its path may hold letters, digits, `-`, `.`, `_` and `~` only"));
        }
        if path.split('/').next().is_some_and(|first| OURS.contains(&first)) {
            return Err(Error::field("public_url", format_args!("its path must not begin with {}", OURS.join(", "))));
        }
        Ok(PublicUrl(url))
    }

    pub fn is_https(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// The path prefix, with a slash at both ends: `/` when there is none.
    pub fn prefix(&self) -> String {
        format!("{}/", self.0.path().trim_end_matches('/'))
    }

    /// Scheme, host and port, as a browser names where a page comes from.
    pub fn origin(&self) -> String {
        self.0.origin().ascii_serialization()
    }

    /// The host's name or address.
    pub fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default()
    }

    /// Whether the host is a name, below which there can be others.
    pub fn has_name(&self) -> bool {
        matches!(self.0.host(), Some(Host::Domain(_)))
    }

    /// A path of ours as people see it.
    pub fn join(&self, path: &str) -> String {
        format!("{}/{}", self.0.as_str().trim_end_matches('/'), path.trim_start_matches('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_kept_and_slashes_never_double() {
        for (given, prefix, joined) in [
            ("http://127.0.0.1:8080", "/", "http://127.0.0.1:8080/api/v1"),
            ("https://example.com/", "/", "https://example.com/api/v1"),
            ("https://example.com/portal", "/portal/", "https://example.com/portal/api/v1"),
            ("https://example.com/a/b/", "/a/b/", "https://example.com/a/b/api/v1"),
        ] {
            let url = PublicUrl::parse(given).unwrap();
            assert_eq!((url.prefix().as_str(), url.join("/api/v1").as_str()), (prefix, joined));
        }
        for bad in [
            "",
            "example.com",
            "ftp://example.com",
            "https://*.example.com",
            "https://example.com/?a",
            "https://example.com/#a",
            "https://example.com/:x",
            "https://example.com/api/v1",
            "https://example.com/a//b",
            "https://example.com/{x}",
        ] {
            assert!(PublicUrl::parse(bad).is_err(), "{bad}");
        }
    }
}
