//! The embedded window's own listener: an instance's page, forwarded. What browsers are told about its origin is in `embed_origin`.
//!
//! The page's address is `/e/<pass>/…`. The gateway knows nothing of that prefix: it is taken off on the way there, and put in
//! front of every path in the page. Only reading passes, and only what the page consists of; its WebSocket is the relay's.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use base::{Error, Kind};
use bytes::Bytes;
use fleet::embed;
use fleet::relay::{Port, RelayMode, reach};
use futures_util::stream;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use tokio::time::timeout;
use tower_http::catch_panic::CatchPanicLayer;

use crate::embed_origin::{self, SharedStorage};
use crate::error::ApiError;
use crate::state::Shared;
use crate::{PublicUrl, socket, trace};

/// A page is some kilobytes.
const LONGEST_PAGE: usize = 1024 * 1024;
/// From the head of a page to its end.
const PAGE: Duration = Duration::from_secs(10);
/// Between two pieces of anything else.
const IDLE: Duration = Duration::from_secs(30);

/// What of a request goes to the gateway: nothing about who we or the browser are.
const ASKED: &[HeaderName] = &[
    header::ACCEPT,
    header::ACCEPT_LANGUAGE,
    header::AUTHORIZATION,
    header::IF_MODIFIED_SINCE,
    header::IF_NONE_MATCH,
    header::RANGE,
];
/// What of an answer goes to the browser, besides its policies.
const ANSWERED: &[HeaderName] = &[
    header::ACCEPT_RANGES,
    header::CACHE_CONTROL,
    header::CONTENT_LANGUAGE,
    header::CONTENT_LENGTH,
    header::CONTENT_RANGE,
    header::CONTENT_TYPE,
    header::ETAG,
    header::LAST_MODIFIED,
    header::LOCATION,
    header::X_CONTENT_TYPE_OPTIONS,
];

/// The page's own parts, by the first part of their path; and files beside it.
const PARTS: &[&str] =
    &["", "chat", "assets", "fonts", "themes", "control-ui-config.json", "sw.js", "manifest.webmanifest"];
const PICTURES: &[&str] = &["ico", "png", "svg"];
/// Two more that the page asks for, and takes a 404 for an answer: the one as it is, and what is below the other.
const AVATAR: &str = "/api/users/gateway-owner/avatar";
const ICONS: &str = "/__openclaw__/workspace-icon/";

pub fn router(api: Shared) -> Router {
    Router::new()
        .fallback(serve)
        .layer(CatchPanicLayer::custom(trace::panicked))
        .layer(from_fn_with_state(api.clone(), embed_origin::framed))
        .layer(from_fn_with_state(api.clone(), trace::requests))
        .with_state(api)
}

async fn serve(
    State(api): State<Shared>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
    request: Request,
) -> Result<Response, ApiError> {
    let base = PublicUrl::parse(&api.app.embed.url)?.prefix();
    let path = request.uri().path();
    // A proxy may pass the prefix of the address on, or take it away.
    let path = path.strip_prefix(base.trim_end_matches('/')).filter(|rest| rest.starts_with('/')).unwrap_or(path);
    let (segment, rest) = match path.strip_prefix("/e/") {
        Some(rest) => rest.split_once('/').map_or((rest, None), |(segment, rest)| (segment, Some(rest))),
        None => return Err(Kind::NotFound.into()),
    };
    let (visitor, instance) = embed::admit(&api.app, segment).await?;
    embed_origin::require_own_host(&api, &request, &visitor)?;
    if let Ok(upgrade) = upgrade {
        socket::check_origin(request.headers(), &api.app.embed.origin_of(&visitor.instance))?;
        let place = embed::enter(&api.app, &visitor).await?;
        return Ok(socket::take(api, upgrade, visitor, place, RelayMode::Page));
    }
    let front = format!("{base}e/{segment}");
    let Some(rest) = rest else { return Ok(axum::response::Redirect::temporary(&format!("{front}/")).into_response()) };
    let asked = format!("/{rest}");
    if !matches!(*request.method(), Method::GET | Method::HEAD) || !is_part(&asked) {
        return Err(Error::new(Kind::NoAccess, "this is no part of the window").into());
    }
    let target = match request.uri().query() {
        Some(query) => format!("{asked}?{query}"),
        None => asked,
    };
    let mut outward =
        http::Request::builder().method(request.method()).uri(target.parse::<Uri>().map_err(|_| Kind::NotFound)?);
    for name in ASKED {
        for value in request.headers().get_all(name) {
            outward = outward.header(name, value);
        }
    }
    let storage = SharedStorage::of(&api, &visitor, request.headers())?;
    let road = reach(&api.app, &instance, Port::Gateway).await?;
    let outward = outward.body(Full::new(Bytes::new())).map_err(Error::internal)?;
    let answer = remote::assistant::send(road, outward).await?;
    let mut response = pass_on(answer, &front).await?;
    storage.apply(&mut response);
    Ok(response)
}

fn is_part(path: &str) -> bool {
    // Whoever reads it after us must not read another path: no way up, nothing that is written in another way.
    if ["..", "%", "//", "\\"].iter().any(|odd| path.contains(odd)) {
        return false;
    }
    if path == AVATAR || path.starts_with(ICONS) {
        return true;
    }
    let (first, more) =
        path.trim_start_matches('/').split_once('/').map_or((path.trim_start_matches('/'), false), |(f, _)| (f, true));
    let picture = !more && first.rsplit_once('.').is_some_and(|(_, ext)| PICTURES.contains(&ext));
    PARTS.contains(&first) || picture
}

async fn pass_on(answer: http::Response<Incoming>, front: &str) -> Result<Response, ApiError> {
    let (head, body) = answer.into_parts();
    let mut headers = HeaderMap::new();
    for name in ANSWERED {
        if let Some(value) = head.headers.get(name) {
            headers.insert(name, value.clone());
        }
    }
    for policy in head.headers.get_all(header::CONTENT_SECURITY_POLICY) {
        headers.append(header::CONTENT_SECURITY_POLICY, policy.clone());
    }
    if let Some(to) = headers.get(header::LOCATION).and_then(|v| v.to_str().ok()).map(str::to_owned) {
        // Nowhere but within the window.
        match to.strip_prefix('/').filter(|rest| !rest.starts_with('/')) {
            Some(rest) => headers
                .insert(header::LOCATION, HeaderValue::try_from(format!("{front}/{rest}")).map_err(Error::internal)?),
            None => headers.remove(header::LOCATION),
        };
    }
    let kind = headers.get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let is_page = kind.starts_with("text/html");
    let mut response = if is_page {
        let page = timeout(PAGE, remote::assistant::collect(body, LONGEST_PAGE)).await;
        let (page, _held) = page.map_err(|_| Error::new(Kind::TimedOut, "the instance did not answer in time"))??;
        headers.remove(header::CONTENT_LENGTH);
        headers.remove(header::ETAG);
        // It names its own address: the next pass has another.
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Response::new(Body::from(rewritten(&String::from_utf8_lossy(&page), front)))
    } else {
        Response::new(while_it_comes(body))
    };
    *response.status_mut() = head.status;
    *response.headers_mut() = headers;
    Ok(response)
}

/// A body that ends badly when nothing of it comes for too long: its connection is one of few.
fn while_it_comes(body: Incoming) -> Body {
    let pieces = stream::try_unfold(body, |mut body| async move {
        loop {
            return match timeout(IDLE, body.frame()).await {
                Ok(None) => Ok(None),
                Ok(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => Ok(Some((data, body))),
                    // Trailers say nothing here.
                    Err(_) => continue,
                },
                Ok(Some(Err(error))) => Err(std::io::Error::other(error)),
                Err(_) => Err(std::io::ErrorKind::TimedOut.into()),
            };
        }
    });
    Body::from_stream(pieces)
}

/// The page with our prefix in front of its paths. Its inline scripts stay as they are: its policy names their hashes.
fn rewritten(page: &str, front: &str) -> String {
    let mut page = page.replacen(
        "data-openclaw-control-ui-base-path=\"\"",
        &format!("data-openclaw-control-ui-base-path=\"{front}\""),
        1,
    );
    for attribute in ["src", "href"] {
        let from = format!("{attribute}=\"/");
        let mut out = String::with_capacity(page.len() + 256);
        let mut rest = page.as_str();
        while let Some(at) = rest.find(&from) {
            let end = at + from.len();
            out.push_str(&rest[..end - 1]);
            // `//host` is an address of its own.
            if !rest[end..].starts_with('/') {
                out.push_str(front);
            }
            out.push('/');
            rest = &rest[end..];
        }
        out.push_str(rest);
        page = out;
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_keeps_its_words_and_gets_our_prefix() {
        let page = "<html data-openclaw-control-ui-base-path=\"\"><script src=\"/assets/a.js\"></script><link href=\"/x.css\">\
            <a href=\"//elsewhere\"></a><script>let src = '/';</script>";
        let expected = "<html data-openclaw-control-ui-base-path=\"/e/p\"><script src=\"/e/p/assets/a.js\"></script>\
            <link href=\"/e/p/x.css\"><a href=\"//elsewhere\"></a><script>let src = '/';</script>";
        assert_eq!(rewritten(page, "/e/p"), expected);
    }

    #[test]
    fn only_the_page_s_own_parts_pass() {
        for part in [
            "/",
            "/chat/main",
            "/assets/x/y.js",
            "/control-ui-config.json",
            "/favicon.svg",
            "/api/users/gateway-owner/avatar",
            "/__openclaw__/workspace-icon/main",
        ] {
            assert!(is_part(part), "{part}");
        }
        for other in [
            "/tools/invoke",
            "/v1/chat/completions",
            "/api/users",
            "/api/x",
            "/chat/../tools/invoke",
            "/chat/%2e%2e/tools",
            "//x",
            "/hooks/x.png",
            "/api/users/gateway-owner/avatar/../../x",
            "/api/users/gateway-owner/avatar/%2e%2e/%2e%2e/x",
            "/api/users/gateway-owner/avatars",
            "/__openclaw__/workspace-icon/%2e%2e/%2e%2e/tools/invoke",
            "/__openclaw__/workspace-icon//x",
            "/assets\\..\\tools",
            "/assets/x\\y",
        ] {
            assert!(!is_part(other), "{other}");
        }
    }
}
