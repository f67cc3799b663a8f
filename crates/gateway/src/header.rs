//! Headers of answers: the gateway's own, and which of a provider's are forwarded.

use http::header::{
    ALT_SVC, CONNECTION, CONTENT_LENGTH, HeaderMap, HeaderName, PROXY_AUTHENTICATE, SET_COOKIE,
    STRICT_TRANSPORT_SECURITY, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};

pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The provider's own request id.
pub const UPSTREAM_ID: HeaderName = HeaderName::from_static("x-upstream-request-id");
/// The model that answered, where it is not the one that was asked for.
pub const MODEL: HeaderName = HeaderName::from_static("x-tidepool-model");

/// The request id as Anthropic's clients read it.
pub const ANTHROPIC_ID: HeaderName = HeaderName::from_static("request-id");

/// Response headers that are about the provider's connection or site, or about the account there, not about the answer.
const NOT_PASSED_ON: [HeaderName; 15] = [
    CONNECTION,
    CONTENT_LENGTH,
    TRANSFER_ENCODING,
    TE,
    TRAILER,
    UPGRADE,
    PROXY_AUTHENTICATE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    SET_COOKIE,
    STRICT_TRANSPORT_SECURITY,
    ALT_SVC,
    HeaderName::from_static("openai-organization"),
    HeaderName::from_static("openai-project"),
    HeaderName::from_static("anthropic-organization-id"),
];

/// Takes out what is not forwarded, and gives the provider's request id its name.
pub fn clean(headers: &mut HeaderMap) {
    for name in &NOT_PASSED_ON {
        headers.remove(name);
    }
    if let Some(id) = headers.remove(REQUEST_ID) {
        headers.insert(UPSTREAM_ID, id);
    }
}
