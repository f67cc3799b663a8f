//! What browsers are told about the origin of an embedded window: who may frame it, at which host it is shown, and whose storage
//! they keep for it.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;
use base::{Error, Kind};
use fleet::embed::{self, Origins};
use fleet::relay::Visitor;

use crate::error::ApiError;
use crate::extract::is_trusted_proxy;
use crate::state::{Api, Shared};

/// On every answer. The first ends what is left of `document.domain`, by which pages of neighbouring hosts could become one.
const FIXED: &[(&str, &str)] = &[
    ("origin-agent-cluster", "?1"),
    ("cross-origin-resource-policy", "same-origin"),
    ("referrer-policy", "no-referrer"),
];

const FORWARDED_HOST: &str = "x-forwarded-host";

/// The directives of an instance's policy that are ours to set.
const OURS: &[&str] = &["frame-ancestors"];

/// Around every answer, refusals too: who may frame it, and that nobody learns its address.
pub async fn framed(State(api): State<Shared>, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    set_policies(headers, &api.app.embed.framed_by);
    headers.remove(header::X_FRAME_OPTIONS);
    for (name, value) in FIXED {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Our policy is a header of its own, so that it holds beside whatever the instance sends: a browser applies all policies, and a
/// further one only restricts. Within one policy the first of two equal directives would count.
fn set_policies(headers: &mut HeaderMap, framed_by: &str) {
    let theirs: Vec<HeaderValue> = headers.get_all(header::CONTENT_SECURITY_POLICY).iter().cloned().collect();
    let ours = HeaderValue::from_str(&format!("frame-ancestors {framed_by}"));
    let ours = ours.unwrap_or(HeaderValue::from_static("frame-ancestors 'none'"));
    headers.insert(header::CONTENT_SECURITY_POLICY, ours);
    for value in &theirs {
        for policy in policies(&String::from_utf8_lossy(value.as_bytes())) {
            if let Ok(policy) = HeaderValue::from_str(&policy) {
                headers.append(header::CONTENT_SECURITY_POLICY, policy);
            }
        }
    }
}

/// The policies of one header, which is a list with commas, without the directives that are ours.
fn policies(value: &str) -> Vec<String> {
    let is_theirs = |directive: &&str| {
        let name = directive.split_ascii_whitespace().next().unwrap_or_default();
        !name.is_empty() && !OURS.iter().any(|ours| name.eq_ignore_ascii_case(ours))
    };
    let kept = |policy: &str| policy.split(';').map(str::trim).filter(is_theirs).collect::<Vec<_>>().join("; ");
    value.split(',').map(kept).filter(|policy| !policy.is_empty()).collect()
}

/// Refuses a pass at the host of another instance: a page shown there would have that instance's storage.
pub fn require_own_host(api: &Api, request: &Request, visitor: &Visitor) -> Result<(), ApiError> {
    let embed = &api.app.embed;
    let Some(own) = embed.host_of(&visitor.instance) else { return Ok(()) };
    let below = embed.host().map(|host| format!(".{host}")).unwrap_or_default();
    let host = text(request.headers(), header::HOST.as_str()).or(request.uri().host()).map(name);
    let asked = match host {
        Some(host) if host.ends_with(&below) => Some(host),
        // A proxy that is trusted may name the host in another header, where it does not pass it on.
        _ if is_trusted_proxy(request.extensions(), &api.trusted_proxies) => {
            text(request.headers(), FORWARDED_HOST).map(name)
        }
        _ => None,
    };
    if asked.as_deref() == Some(own.as_str()) {
        return Ok(());
    }
    Err(Error::from(Kind::Unauthorized).with_operator("the pass is for the window of another host").into())
}

/// A host's name without its port, as it is compared.
fn name(host: &str) -> String {
    let name = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()));
    name.map_or(host, |(name, _)| name).to_ascii_lowercase()
}

/// The value of a header that is there once.
fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    values.next().filter(|_| values.next().is_none())?.to_str().ok()
}

/// What a page fetches for itself: nothing of it runs with the origin's storage, unlike a document.
const SUBRESOURCES: &[&str] = &[
    "audio",
    "audioworklet",
    "empty",
    "font",
    "image",
    "manifest",
    "paintworklet",
    "script",
    "serviceworker",
    "sharedworker",
    "style",
    "track",
    "video",
    "worker",
];

/// Where all instances share one origin: what the browser has to hear when it kept another instance's storage, or another person's.
pub struct SharedStorage(Option<[(HeaderName, HeaderValue); 2]>);

impl SharedStorage {
    pub fn of(api: &Api, visitor: &Visitor, asked: &HeaderMap) -> Result<SharedStorage, ApiError> {
        let embed = &api.app.embed;
        let is_subresource = text(asked, "sec-fetch-dest")
            .is_some_and(|dest| SUBRESOURCES.contains(&dest.to_ascii_lowercase().as_str()));
        if embed.origins == Origins::PerInstance || is_subresource {
            return Ok(SharedStorage(None));
        }
        let is_https = embed.url.starts_with("https:");
        let name = if is_https { "__Host-tidepool_window" } else { "tidepool_window" };
        let marks = cookies(asked, name);
        // A page can set another of the same name, with a path: of two, none is believed.
        if let [mark] = marks.as_slice()
            && embed::is_storage_of(&api.app, visitor, mark)
        {
            return Ok(SharedStorage(None));
        }
        // A frame of another site gets a cookie that is good below that site alone, as its storage is.
        let kind = if is_https { "SameSite=None; Secure; Partitioned" } else { "SameSite=Lax" };
        let mark = embed::storage_mark(&api.app, visitor)?;
        let cookie = format!("{name}={mark}; Path=/; Max-Age=31536000; HttpOnly; {kind}");
        let cookie = HeaderValue::try_from(cookie).map_err(Error::internal)?;
        // Not "cookies": it would end those of all hosts of the site, our own included.
        let clear = HeaderValue::from_static("\"storage\"");
        Ok(SharedStorage(Some([(HeaderName::from_static("clear-site-data"), clear), (header::SET_COOKIE, cookie)])))
    }

    pub fn apply(self, response: &mut Response) {
        response.headers_mut().extend(self.0.into_iter().flatten());
    }
}

/// The values of the cookies of this name.
fn cookies<'a>(headers: &'a HeaderMap, name: &str) -> Vec<&'a str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(|(of, _)| *of == name).map(|(_, value)| value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(theirs: &[&str]) -> Vec<String> {
        let mut headers = HeaderMap::new();
        for value in theirs {
            headers.append(header::CONTENT_SECURITY_POLICY, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        set_policies(&mut headers, "https://a");
        let all = headers.get_all(header::CONTENT_SECURITY_POLICY).iter();
        all.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
    }

    #[test]
    fn our_policy_holds_beside_whatever_an_instance_sends() {
        let ours = "frame-ancestors https://a";
        assert_eq!(sent(&[]), [ours]);
        let policy = "default-src 'self'; Frame-Ancestors 'none'; script-src 'self' 'sha256-x'";
        assert_eq!(sent(&[policy]), [ours, "default-src 'self'; script-src 'self' 'sha256-x'"]);
        // A comma ends a policy: what follows is another, in which a directive of ours would come second.
        assert_eq!(sent(&["default-src 'self', frame-ancestors *"]), [ours, "default-src 'self'"]);
        assert_eq!(
            sent(&["img-src *,frame-ancestors *;x-y,;,", "frame-ancestors\t*, a; b"]),
            [ours, "img-src *", "x-y", "a; b"]
        );
        assert_eq!(sent(&["frame-ancestors *, frame-ancestors *"]), [ours]);
        // Every policy of ours or theirs ends with its own header.
        for odd in ["default-src \u{e9}, frame-ancestors *", ",", ";;", "\tframe-ancestors *"] {
            let all = sent(&[odd]);
            assert_eq!(all[0], ours);
            assert!(
                all[1..].iter().all(|policy| !policy.contains("frame-ancestors") && !policy.contains(',')),
                "{all:?}"
            );
        }
        let mut headers = HeaderMap::new();
        set_policies(&mut headers, "a\nb");
        assert_eq!(
            headers[header::CONTENT_SECURITY_POLICY],
            "frame-ancestors 'none'",
            "what cannot be said frames nothing"
        );
    }

    #[test]
    fn a_host_is_compared_without_its_port() {
        for (given, expected) in [
            ("A0.Window.example", "a0.window.example"),
            ("a0.localhost:8083", "a0.localhost"),
            ("[::1]:80", "[::1]"),
            ("a:b", "a:b"),
        ] {
            assert_eq!(name(given), expected);
        }
    }
}
