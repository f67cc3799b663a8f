//! What a provider's fields may be.

use std::time::Duration;

use base::{Error, Result, Secret};
use remote::address::is_written_private;
use store::model::ProviderKind;
use store::provider::Protocol;
use url::Url;

use super::preset::{self, Preset};

/// Names are written by models, and stand in paths, metrics and log lines.
pub fn name(text: &str) -> Result<String> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '_' | '-');
    if text.is_empty() || text.len() > 50 || !text.chars().all(allowed) || text.starts_with(['.', '-']) {
        return Err(Error::field("name", "must be 1 to 50 lower-case letters, digits, `.`, `_` or `-`"));
    }
    if text == ProviderKind::Echo.as_str() {
        return Err(Error::field("name", "is the name of the provider that is built in"));
    }
    Ok(text.to_owned())
}

pub fn preset(kind: ProviderKind, name: &str) -> Result<&'static Preset> {
    if kind == ProviderKind::Echo {
        return Err(Error::field("kind", "must be anthropic, openai, google, ollama or compatible"));
    }
    preset::find(kind, name).ok_or_else(|| Error::field("preset", "is unknown, or its kind is not `compatible`"))
}

/// The address without the path of the endpoint. Records name public addresses with TLS, unless local ones are allowed.
pub fn base_url(text: &str, allow_local: bool) -> Result<String> {
    let refuse = |why: &str| Error::field("base_url", why);
    let url = Url::parse(text).map_err(|_| refuse("must be a URL such as https://api.example.com"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(refuse("must be an http or https URL"));
    }
    if !url.username().is_empty() || url.password().is_some() || url.query().is_some() || url.fragment().is_some() {
        return Err(refuse("must have no user, no query and no fragment"));
    }
    if text.len() > 500 {
        return Err(refuse("must have at most 500 characters"));
    }
    if !allow_local {
        if is_written_private(&url) {
            return Err(refuse("is a private address, which provider_allow_local does not allow"));
        }
        if url.scheme() != "https" {
            return Err(refuse("must be https, unless provider_allow_local is set"));
        }
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

/// The outgoing proxy: an http or https URL, with a user and a password where it needs them.
pub fn proxy(text: Secret, allow_local: bool) -> Result<Secret> {
    let refuse = |why: &str| Error::field("proxy", why);
    let url = Url::parse(text.expose()).map_err(|_| refuse("must be a URL such as http://proxy.example.com:3128"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(refuse("must be an http or https URL"));
    }
    if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() || text.expose().len() > 500
    {
        return Err(refuse("must be the proxy's address without a path, in at most 500 characters"));
    }
    if !allow_local && is_written_private(&url) {
        return Err(refuse("is a private address, which provider_allow_local does not allow"));
    }
    // A password may hold what a URL writes with `%`, and what is stored is read by a stricter reader.
    Ok(Secret::new(url.as_str().trim_end_matches('/')))
}

/// At least one, each once, and none that the provider does not have.
pub fn protocols(preset: &Preset, mut asked: Vec<Protocol>) -> Result<Vec<Protocol>> {
    asked.sort_by_key(|protocol| protocol.as_str());
    asked.dedup();
    if asked.is_empty() {
        return Err(Error::field("protocols", "must name at least one"));
    }
    match asked.iter().find(|protocol| preset.path(**protocol).is_none()) {
        Some(unknown) => {
            let can: Vec<&str> = preset.protocols().iter().map(|protocol| protocol.as_str()).collect();
            let message = format!("{} is not spoken there: there are {}", unknown.as_str(), can.join(", "));
            Err(Error::field("protocols", message))
        }
        None => Ok(asked),
    }
}

/// What a provider is asked in if nobody says otherwise: all that its documentation describes; of one that nobody knows, chat completions.
pub fn usual_protocols(preset: &Preset) -> Vec<Protocol> {
    if preset.source.is_empty() { vec![Protocol::Chat] } else { preset.protocols() }
}

pub fn timeout(field: &str, seconds: u64, longest: Duration) -> Result<Duration> {
    if seconds == 0 || Duration::from_secs(seconds) > longest {
        return Err(Error::field(field, format_args!("must be 1 to {} seconds", longest.as_secs())));
    }
    Ok(Duration::from_secs(seconds))
}

/// A key is sent in a header.
pub fn key(secret: &Secret) -> Result<()> {
    let text = secret.expose();
    if text.len() < 4 || text.len() > 1000 || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Error::field("key", "must be 4 to 1000 visible characters without spaces"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_name_public_addresses_with_tls() {
        for bad in [
            "",
            "x",
            "ftp://a.example",
            "https://u:p@a.example",
            "https://a.example?x=1",
            "https://127.0.0.1",
            "https://[::1]",
            "https://localhost",
            "https://LOCALHOST.",
            "https://169.254.169.254/latest",
            "https://0x7f.1",
            "https://2130706433",
            "https://10.1.2.3",
            "https://[::ffff:10.0.0.1]",
            "http://a.example",
        ] {
            assert!(base_url(bad, false).is_err(), "{bad}");
        }
        assert_eq!(base_url("https://a.example/api/", false).unwrap(), "https://a.example/api");
        assert!(base_url("http://127.0.0.1:1", true).is_ok());
        assert!(proxy(Secret::new("http://10.0.0.1:3128"), false).is_err());
        assert!(proxy(Secret::new("http://u:p@proxy.example:3128"), false).is_ok());
        assert!(proxy(Secret::new("socks5://proxy.example"), false).is_err());
        let stored = proxy(Secret::new("HTTP://ada:p^ss ä@proxy.example:3128/"), false).unwrap();
        assert_eq!(stored.expose(), "http://ada:p%5Ess%20%C3%A4@proxy.example:3128");
        assert!(stored.expose().parse::<http::Uri>().is_ok());
    }

    #[test]
    fn a_kind_has_only_its_protocols() {
        let openai = preset(ProviderKind::Openai, "").unwrap();
        assert!(protocols(openai, vec![Protocol::Messages]).is_err());
        assert!(protocols(openai, vec![]).is_err());
        assert_eq!(protocols(openai, vec![Protocol::Chat, Protocol::Chat]).unwrap(), [Protocol::Chat]);
        assert_eq!(usual_protocols(preset(ProviderKind::Compatible, "").unwrap()), [Protocol::Chat]);
        assert!(name("Öl").is_err() && name("echo").is_err() && name("my-openai.2").is_ok());
    }
}
