//! The embedded window: the instance's own page through our listener, framed by us alone, as long as the login holds.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::kit::talk::{Client, Closed, Talk, dial};
use crate::kit::{Database, Site};

struct Window {
    talk: Talk,
    /// The page's address, without what stands behind the `#`.
    url: String,
    http: reqwest::Client,
}

async fn window() -> Window {
    let talk = Talk::start(Database::sqlite()).await;
    let url = url(&talk.site, &talk.token).await;
    let (url, fragment) = url.split_once('#').unwrap();
    assert_eq!(fragment, format!("token={}", talk.gateway_token));
    assert!(url.ends_with("/chat/main"), "{url}");
    let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    Window { url: url.to_owned(), talk, http }
}

async fn url(site: &Site, token: &str) -> String {
    let answer = site.employee.post("/me/instances/a0/embed-ticket", json!({})).token(token).ok().await;
    answer["url"].as_str().unwrap().to_owned()
}

impl Window {
    /// An address beside the page.
    fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url.strip_suffix("/chat/main").unwrap())
    }

    async fn get(&self, url: &str) -> reqwest::Response {
        self.http.get(url).send().await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_is_passed_on_and_framed_by_us_alone() {
    let window = window().await;
    let site = &window.talk.site;
    assert!(window.url.starts_with(&site.app.embed.url) && site.app.embed.origin() != site.employee.url);
    let page = window.get(&window.url).await;
    assert_eq!(page.status(), 200);
    let policy = page.headers()["content-security-policy"].to_str().unwrap();
    assert_eq!(
        policy,
        format!("default-src 'self'; script-src 'self' 'sha256-abc'; frame-ancestors {}", site.employee.url)
    );
    for gone in ["x-frame-options", "set-cookie"] {
        assert!(!page.headers().contains_key(gone), "{gone}");
    }
    assert_eq!(page.headers()["referrer-policy"], "no-referrer", "the address is a pass");
    assert_eq!(page.headers()["cache-control"], "no-store");
    let front = window.at("").replace(&site.app.embed.url, "");
    let text = page.text().await.unwrap();
    assert!(text.contains(&format!("data-openclaw-control-ui-base-path=\"{front}\"")), "{text}");
    assert!(
        text.contains(&format!("src=\"{front}/assets/index.js\""))
            && text.contains(&format!("href=\"{front}/manifest.webmanifest\""))
    );
    let script = window.get(&window.at("/assets/index.js")).await;
    assert_eq!(
        (script.status().as_u16(), script.headers()["content-type"].to_str().unwrap()),
        (200, "text/javascript")
    );
    assert_eq!(script.text().await.unwrap(), "import './more.js';\n", "not rewritten");
    let moved = window.get(&window.at("")).await;
    assert_eq!(
        (moved.status().as_u16(), moved.headers()["location"].to_str().unwrap()),
        (307, format!("{front}/").as_str())
    );
    // What the gateway learns of the browser: nothing.
    let request = window.http.get(window.at("/control-ui-config.json")).bearer_auth(&window.talk.gateway_token);
    let request = request
        .header("cookie", "c=1")
        .header("x-forwarded-for", "1.2.3.4")
        .header("origin", "https://x.example")
        .header("via", "y");
    let config: Value = request.send().await.unwrap().json().await.unwrap();
    assert_eq!(config["host"], format!("127.0.0.1:{}", window.talk.assistant.port));
    let names = config["asked_with"].as_array().unwrap();
    assert!(
        names.iter().all(|name| ["host", "accept", "authorization"].contains(&name.as_str().unwrap())),
        "{names:?}"
    );
    // The employee's own page may show it.
    let own = site.employee.raw(Method::GET, "/healthz").send().await;
    assert!(own.header("content-security-policy").ends_with(&format!("frame-src {}", site.app.embed.origin())));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_but_the_page_passes() {
    let window = window().await;
    let ok = window.http.post(window.at("/tools/invoke")).bearer_auth(&window.talk.gateway_token).send().await.unwrap();
    assert_eq!(ok.status(), StatusCode::FORBIDDEN);
    for path in ["/tools/invoke", "/v1/models", "/api/config", "/chat/%2e%2e/tools/invoke", "/readyz"] {
        assert_eq!(window.get(&window.at(path)).await.status(), StatusCode::FORBIDDEN, "{path}");
    }
    let root = &window.talk.site.app.embed.url;
    for path in ["/", "/e", "/chat/main", "/api/v1/me", "/healthz"] {
        assert_eq!(window.get(&format!("{root}{path}")).await.status(), StatusCode::NOT_FOUND, "{path}");
    }
    let altered = window.url.replacen("/e/", "/e/x", 1);
    for bad in [altered, format!("{root}/e/rubbish/"), format!("{root}/e//chat/main")] {
        let answer = window.get(&bad).await;
        assert_eq!(answer.status(), StatusCode::UNAUTHORIZED, "{bad}");
        assert!(
            answer.headers()["content-security-policy"].to_str().unwrap().contains("frame-ancestors http://127.0.0.1")
        );
    }
}

/// The page's own handshake.
fn introduction(token: &str) -> Value {
    json!({"minProtocol": 4, "maxProtocol": 4, "client": {"id": "openclaw-control-ui", "version": "1", "platform": "web", "mode": "webchat"},
        "role": "operator", "scopes": ["operator.admin", "operator.read", "operator.write"], "auth": {"token": token}})
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_speaks_for_itself_until_its_login_ends() {
    let window = window().await;
    let (talk, socket) = (&window.talk, window.at(""));
    let origin = talk.site.app.embed.origin();
    assert_eq!(dial(&socket, &[("origin", "https://evil.example")]).await.err(), Some(403));
    let mut page = Client::over(dial(&socket, &[("origin", &origin)]).await.unwrap());
    page.event("connect.challenge").await;
    let hello = page.request("connect", introduction(&talk.gateway_token)).await.unwrap();
    assert_eq!(hello["auth"]["scopes"][0], "operator.admin", "it is an administrator of its gateway");
    page.send("run-1", "hello").await;
    page.chat("run-1", "final").await;
    let connects = talk.assistant.connects();
    let headers = connects[0]["headers"].to_string();
    assert!(headers.contains(&format!("origin: {origin}")) && !headers.contains("forwarded"), "{headers}");
    talk.site.employee.post("/auth/logout", json!({})).token(&talk.token).ok().await;
    assert_eq!(page.closed().await, Closed(1008, "the session ended".into()));
    assert_eq!(window.get(&window.url).await.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(dial(&socket, &[("origin", &origin)]).await.err(), Some(401));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pass_ends_with_its_hour_the_binding_and_the_switch() {
    let window = window().await;
    let site = &window.talk.site;
    let (_, bob) = site.quick_employee("bob@example.com").await;
    site.employee.post("/me/instances/a0/embed-ticket", json!({})).token(&bob).refused("4040").await;
    let switch = |on: bool| site.admin.patch("/assistant-instances/a0", json!({"embed_enabled": on})).token(&site.root);
    assert_eq!(switch(false).ok().await["embed_enabled"], false);
    assert_eq!(window.get(&window.url).await.status(), StatusCode::FORBIDDEN);
    site.employee.post("/me/instances/a0/embed-ticket", json!({})).token(&window.talk.token).refused("4030").await;
    switch(true).ok().await;
    assert_eq!(window.get(&window.url).await.status(), 200);
    site.wait(Duration::from_secs(3601));
    assert_eq!(window.get(&window.url).await.status(), StatusCode::UNAUTHORIZED);
    let fresh = url(site, &window.talk.token).await;
    assert_eq!(window.get(&fresh).await.status(), 200);
    site.admin.patch("/instances/a0/assign", json!({"user_id": null})).token(&site.root).ok().await;
    assert_eq!(window.get(&fresh).await.status(), StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_window_ends_with_the_switch_and_is_counted() {
    let window = window().await;
    let (talk, socket) = (&window.talk, window.at(""));
    let origin = talk.site.app.embed.origin();
    let mut page = Client::over(dial(&socket, &[("origin", &origin)]).await.unwrap());
    page.event("connect.challenge").await;
    let mut chat = talk.connect().await;
    let off = json!({"embed_enabled": false});
    talk.site.admin.patch("/assistant-instances/a0", off).token(&talk.site.root).ok().await;
    assert_eq!(page.closed().await, Closed(1008, "the embedded window is switched off".into()));
    chat.request("sessions.list", json!({})).await.expect("the chat goes on");
    let on = json!({"embed_enabled": true});
    talk.site.admin.patch("/assistant-instances/a0", on).token(&talk.site.root).ok().await;
    // Opened and left again and again.
    let mut refused = None;
    for _ in 0..150 {
        // Far below what may be open at a time: it is how often that counts.
        testkit::until("most of them are closed", async || talk.site.app.sockets.count() <= 8).await;
        match dial(&socket, &[("origin", &origin)]).await {
            Ok(opened) => drop(opened),
            Err(status) => {
                refused = Some(status);
                break;
            }
        }
    }
    assert_eq!(refused, Some(429), "more often than anybody needs it");
}
