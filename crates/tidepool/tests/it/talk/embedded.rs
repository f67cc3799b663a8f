//! The embedded window: the instance's own page through our listener, framed by us alone, as long as the login holds.

use std::time::Duration;

use base::id::InstanceId;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use sim::assistant::{Assistant, Options as Assistance};

use crate::kit::talk::{Client, Closed, Talk, browse, dial};
use crate::kit::{Database, Options, Site};

struct Window {
    talk: Talk,
    /// The page's address, without what stands behind the `#`.
    url: String,
    http: reqwest::Client,
}

async fn window() -> Window {
    window_of(Talk::start(Database::sqlite()).await).await
}

async fn window_of(talk: Talk) -> Window {
    let url = url(&talk.site, &talk.token).await;
    let (url, fragment) = url.split_once('#').unwrap();
    assert_eq!(fragment, format!("token={}", talk.gateway_token));
    assert!(url.ends_with("/chat/main"), "{url}");
    let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy().build().unwrap();
    Window { url: url.to_owned(), talk, http }
}

async fn url(site: &Site, token: &str) -> String {
    url_of(site, token, "a0").await
}

async fn url_of(site: &Site, token: &str, instance: &str) -> String {
    let path = format!("/me/instances/{instance}/embed-ticket");
    let answer = site.employee.post(&path, json!({})).token(token).ok().await;
    answer["url"].as_str().unwrap().to_owned()
}

/// A further instance of the same employee.
async fn another(talk: &Talk, id: &str) -> Assistant {
    let site = &talk.site;
    let listed = site.admin.get("/instances").token(&site.root).ok().await;
    let number = |one: &Value| base::GatewayPort::try_from(one["gateway_port"].as_i64().unwrap()).unwrap();
    let taken: Vec<_> = listed["list"].as_array().unwrap().iter().map(number).collect();
    let assistant = loop {
        let assistant = Assistant::start(Assistance::new(&talk.gateway_token)).await.unwrap();
        // The kernel may give out a port beside the last one; instances of one server are at least ten apart.
        if base::GatewayPort::try_from(i64::from(assistant.port)).unwrap().fits(&taken) {
            break assistant;
        }
    };
    let instance = json!({"id": id, "name": "Another", "server_id": "here", "gateway_port": assistant.port, "gateway_token": talk.gateway_token});
    site.admin.post("/assistant-instances", instance).token(&site.root).ok().await;
    site.admin.patch(&format!("/instances/{id}/assign"), json!({"user_id": talk.user})).token(&site.root).ok().await;
    assistant
}

impl Window {
    /// An address beside the page.
    fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url.strip_suffix("/chat/main").unwrap())
    }

    async fn get(&self, url: &str) -> reqwest::Response {
        self.request(url).send().await.unwrap()
    }

    fn request(&self, url: &str) -> reqwest::RequestBuilder {
        browse(&self.http, url)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_is_passed_on_and_framed_by_us_alone() {
    let window = window().await;
    let site = &window.talk.site;
    let own = site.app.embed.origin_of(&InstanceId::named("a0"));
    assert!(window.url.starts_with(&format!("{own}/e/")) && own.starts_with("http://a0.localhost:"), "{own}");
    let page = window.get(&window.url).await;
    assert_eq!(page.status(), 200);
    let ours = format!("frame-ancestors {}", site.employee.url);
    assert_eq!(policies(&page), [ours.as_str(), "default-src 'self'; script-src 'self' 'sha256-abc'"]);
    for gone in ["x-frame-options", "set-cookie"] {
        assert!(!page.headers().contains_key(gone), "{gone}");
    }
    assert_eq!(page.headers()["referrer-policy"], "no-referrer", "the address is a pass");
    assert_eq!(page.headers()["cache-control"], "no-store");
    assert_eq!(page.headers()["origin-agent-cluster"], "?1", "no document.domain");
    let front = window.at("").replace(&own, "");
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
    let request = window.request(&window.at("/control-ui-config.json")).bearer_auth(&window.talk.gateway_token);
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
    let page = site.employee.raw(Method::GET, "/healthz").send().await;
    assert!(page.header("content-security-policy").ends_with(&format!("frame-src {}", own.replace("a0.", "*."))));
}

/// The policies of an answer, one for each header, as a browser reads them: a comma begins another.
fn policies(answer: &reqwest::Response) -> Vec<String> {
    let headers = answer.headers().get_all("content-security-policy").iter();
    headers.flat_map(|value| value.to_str().unwrap().split(',').map(|policy| policy.trim().to_owned())).collect()
}

/// Who may frame a page by a policy; `None` leaves it to the others. Of two directives of one name the first counts.
fn ancestors(policy: &str) -> Option<&str> {
    let mut directives = policy.split(';').map(str::trim).map(|d| d.split_once(char::is_whitespace).unwrap_or((d, "")));
    directives.find(|(name, _)| name.eq_ignore_ascii_case("frame-ancestors")).map(|(_, by)| by.trim())
}

#[tokio::test(flavor = "multi_thread")]
async fn no_policy_of_an_instance_lets_others_frame_it() {
    let sent = [
        vec!["default-src 'self', frame-ancestors *"],
        vec!["frame-ancestors *,"],
        vec!["img-src *", "Frame-Ancestors https://evil.example, default-src 'self'"],
        vec!["frame-ancestors *; frame-ancestors *, frame-ancestors\t*"],
        vec![],
    ];
    for sent in sent {
        let theirs: Vec<String> = sent.iter().map(|policy| (*policy).to_owned()).collect();
        let talk = Talk::with(Database::sqlite(), Options::default(), |assistant| assistant.policies = theirs).await;
        let window = window_of(talk).await;
        let page = window.get(&window.url).await;
        let all = policies(&page);
        let framing: Vec<&str> = all.iter().filter_map(|policy| ancestors(policy)).collect();
        assert_eq!(framing, [window.talk.site.employee.url.as_str()], "{sent:?} became {all:?}");
        let kept = |directive: &str| sent.iter().any(|policy| policy.contains(directive));
        for directive in ["default-src 'self'", "img-src *"] {
            assert_eq!(kept(directive), all.iter().any(|policy| policy == directive), "{sent:?} became {all:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_instance_is_shown_at_its_own_host_only() {
    let window = window().await;
    let talk = &window.talk;
    let _others = [another(talk, "b0").await, another(talk, "Team_B.2").await];
    let origin = |url: &str| reqwest::Url::parse(url).unwrap().origin().ascii_serialization();
    let b = url_of(&talk.site, &talk.token, "b0").await;
    let odd = url_of(&talk.site, &talk.token, "Team_B.2").await;
    let origins = [origin(&window.url), origin(&b), origin(&odd)];
    assert!(origins[1].starts_with("http://b0.localhost:") && origins[2].starts_with("http://x-"), "{origins:?}");
    // The one's pass at the other's host, or at a host that is nobody's: the page would have that origin's storage.
    let path = window.url.strip_prefix(&origins[0]).unwrap();
    let port = origins[0].rsplit_once(':').unwrap().1;
    let none = format!("http://localhost:{port}");
    for other in
        [&origins[1], &origins[2], &none, &format!("http://127.0.0.1:{port}"), &format!("http://x.a0.localhost:{port}")]
    {
        let refused = window.get(&format!("{other}{path}")).await;
        assert_eq!(refused.status(), StatusCode::UNAUTHORIZED, "{other}");
        let socket = format!("{other}{}", path.strip_suffix("/chat/main").unwrap());
        assert_eq!(dial(&socket, &[("origin", other)]).await.err(), Some(401), "{other}");
    }
    assert_eq!(window.get(&window.url).await.status(), 200);
    // Whoever is no trusted proxy cannot name another host.
    let forged = window.request(&format!("{none}{path}")).header("x-forwarded-host", "a0.localhost");
    assert_eq!(forged.send().await.unwrap().status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trusted_proxy_may_name_the_host() {
    let options = Options { trust_loopback: true, ..Options::default() };
    let window = window_of(Talk::with(Database::sqlite(), options, |_| {}).await).await;
    let (host, path) = window.url.split_once("/e/").unwrap();
    let inner = host.replace("a0.localhost", "inner.example");
    let ask = |at: &str, forwarded: &str| {
        window.request(&format!("{at}/e/{path}")).header("x-forwarded-host", forwarded).send()
    };
    assert_eq!(ask(&inner, "A0.localhost:8083").await.unwrap().status(), 200);
    for bad in ["b0.localhost", "localhost", "a0.localhost, b0.localhost", ""] {
        assert_eq!(ask(&inner, bad).await.unwrap().status(), StatusCode::UNAUTHORIZED, "{bad}");
    }
    // A host that is passed on counts, whatever else is said: clients send such headers too.
    assert_eq!(ask(&host.replace("a0.", "b0."), "a0.localhost").await.unwrap().status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_shared_host_storage_is_cleared_when_the_instance_changes() {
    let options = Options { share_window: true, ..Options::default() };
    let window = window_of(Talk::with(Database::sqlite(), options, |_| {}).await).await;
    let talk = &window.talk;
    assert!(window.url.starts_with("http://127.0.0.1:"), "{}", window.url);
    let cleared =
        |answer: &reqwest::Response| answer.headers().get("clear-site-data").map(|v| v.to_str().unwrap().to_owned());
    let cookie = |answer: &reqwest::Response| {
        let set = answer.headers().get("set-cookie").map(|v| v.to_str().unwrap().to_owned());
        set.map(|set| (set.split(';').next().unwrap().to_owned(), set))
    };
    let first = window.get(&window.url).await;
    assert_eq!(cleared(&first).as_deref(), Some("\"storage\""), "what was there may be anybody's");
    let (mark, set) = cookie(&first).unwrap();
    assert!(set.contains("; Path=/; ") && set.contains("HttpOnly") && set.contains("SameSite=Lax"), "{set}");
    let again = async |cookies: &str| window.request(&window.url).header("cookie", cookies).send().await.unwrap();
    let same = again(&mark).await;
    assert_eq!(
        (same.status().as_u16(), cleared(&same), cookie(&same)),
        (200, None, None),
        "the storage is this window's"
    );
    let name = mark.split_once('=').unwrap().0;
    for bad in [format!("{name}=rubbish"), format!("{mark}x"), format!("{mark}; {mark}"), format!("{name}=")] {
        assert!(cleared(&again(&bad).await).is_some(), "{bad}");
    }
    // What a page fetches for itself ends nothing; a picture that is opened as a document does.
    let fetched = |dest: &'static str| window.request(&window.url).header("sec-fetch-dest", dest).send();
    assert_eq!(cleared(&fetched("script").await.unwrap()), None);
    assert!(
        cleared(&fetched("iframe").await.unwrap()).is_some() && cleared(&fetched("object").await.unwrap()).is_some()
    );
    // Another instance of theirs, and back: each finds nothing of the other.
    let _other = another(talk, "b0").await;
    let b = url_of(&talk.site, &talk.token, "b0").await;
    let other = window.request(&b).header("cookie", &mark).send().await.unwrap();
    assert_eq!((other.status().as_u16(), cleared(&other).is_some()), (200, true));
    let back = again(&cookie(&other).unwrap().0).await;
    assert!(cleared(&back).is_some());
    // The next holder, in the same browser.
    let (bob, bobs) = talk.site.quick_employee("bob@example.com").await;
    talk.site.admin.patch("/instances/a0/assign", json!({"user_id": null})).token(&talk.site.root).ok().await;
    talk.site.admin.patch("/instances/a0/assign", json!({"user_id": bob})).token(&talk.site.root).ok().await;
    let theirs = window.request(&url(&talk.site, &bobs).await).header("cookie", &mark).send().await.unwrap();
    assert_eq!((theirs.status().as_u16(), cleared(&theirs).is_some()), (200, true));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_but_the_page_passes() {
    let window = window().await;
    let mut posted =
        window.request(&window.at("/tools/invoke")).bearer_auth(&window.talk.gateway_token).build().unwrap();
    *posted.method_mut() = Method::POST;
    assert_eq!(window.http.execute(posted).await.unwrap().status(), StatusCode::FORBIDDEN);
    for path in ["/tools/invoke", "/v1/models", "/api/config", "/chat/%2e%2e/tools/invoke", "/readyz"] {
        assert_eq!(window.get(&window.at(path)).await.status(), StatusCode::FORBIDDEN, "{path}");
    }
    let root = window.talk.site.app.embed.url_of(&InstanceId::named("a0"));
    for path in ["/", "/e", "/chat/main", "/api/v1/me", "/healthz"] {
        assert_eq!(window.get(&format!("{root}{path}")).await.status(), StatusCode::NOT_FOUND, "{path}");
    }
    let altered = window.url.replacen("/e/", "/e/x", 1);
    for bad in [altered, format!("{root}/e/rubbish/"), format!("{root}/e//chat/main")] {
        let answer = window.get(&bad).await;
        assert_eq!(answer.status(), StatusCode::UNAUTHORIZED, "{bad}");
        assert_eq!(policies(&answer), [format!("frame-ancestors {}", window.talk.site.employee.url)]);
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
    let origin = talk.site.app.embed.origin_of(&InstanceId::named("a0"));
    // Nor the page of a neighbour.
    for other in ["https://evil.example", "null", &origin.replace("a0.", "b0."), &origin.replace("a0.", "")] {
        assert_eq!(dial(&socket, &[("origin", other)]).await.err(), Some(403), "{other}");
    }
    let mut page = Client::over(dial(&socket, &[("origin", &origin)]).await.unwrap());
    page.event("connect.challenge").await;
    let hello = page.request("connect", introduction(&talk.gateway_token)).await.unwrap();
    assert_eq!(hello["auth"]["scopes"][0], "operator.admin", "it is an administrator of its gateway");
    page.send("run-1", "hello").await;
    page.chat("run-1", "final").await;
    let connects = talk.assistant.connects();
    let headers = connects[0]["headers"].to_string();
    let named = format!("origin: {}", talk.site.app.embed.gateway_origin);
    assert!(headers.contains(&named) && !headers.contains("forwarded"), "{headers}");
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
    let origin = talk.site.app.embed.origin_of(&InstanceId::named("a0"));
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
