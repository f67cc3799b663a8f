//! Every answer is in the envelope, whatever was asked.

use std::sync::Arc;

use axum::routing::get;
use reqwest::Method;
use serde_json::json;

use crate::kit::{Database, Options, Origin, Site};

#[tokio::test(flavor = "multi_thread")]
async fn unknown_paths_versions_and_methods() {
    let site = Site::start(Database::sqlite()).await;
    for origin in [&site.employee, &site.admin] {
        origin.get("/nothing").refused("4040").await;
        origin.get("/").refused("4040").await;
        origin.raw(Method::GET, "/api").refused("4040").await;
        origin.raw(Method::GET, "/nothing.js").refused("4040").await;
        origin.raw(Method::POST, "/").refused("4040").await;
        let message = origin.raw(Method::GET, "/api/v2/users").refused("4040").await;
        assert!(message.contains("v1"), "{message}");
        let reply = origin.call(Method::PUT, "/auth/login").send().await;
        assert!(reply.header("allow").contains("POST"), "{reply:?}");
        reply.refused("4050");
        origin.raw(Method::POST, "/healthz").refused("4050").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_cannot_be_taken() {
    let site = Site::start(Database::sqlite()).await;
    let login = |kind: &str, body: &str| site.admin.call(Method::POST, "/auth/login").body(kind, body.to_owned());
    let good = json!({"email": "a@example.com", "password": "x"}).to_string();
    login("application/json", &good).refused("4011").await;
    login("application/json; charset=utf-8", &good).refused("4011").await;
    login("application/json", "{").refused("4000").await;
    login("application/json", &format!("{good} trailing")).refused("4000").await;
    login("application/json", "").refused("4000").await;
    login("text/plain", &good).refused("4000").await;
    login("application/x-www-form-urlencoded", "email=a").refused("4000").await;
    assert_eq!(
        login("application/json", "{\"email\":\"a\"}").refused("4000").await,
        "bad request: missing field `password`"
    );
    let message = login("application/json", "{\"email\":5,\"password\":\"x\"}").refused("4000").await;
    assert!(message.starts_with("email: "), "{message}");
    let large = json!({"email": "a@example.com", "password": "x".repeat(1024 * 1024)}).to_string();
    login("application/json", &large).refused("4130").await;
    // What was sent is not repeated: it may be a secret.
    let message =
        login("application/json", "{\"email\":\"a@example.com\",\"password\":77665544332211}").refused("4000").await;
    assert_eq!(message, "password: must be a string");
    let message = login("application/json", "\"a secret that is no object\"").refused("4000").await;
    assert!(!message.contains("secret"), "{message}");
    // Unknown fields are ignored.
    login("application/json", &json!({"email": "a@example.com", "password": "x", "more": 1}).to_string())
        .refused("4011")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_that_cannot_be_taken() {
    let site = Site::start(Database::sqlite()).await;
    for query in [
        "page=0",
        "page=-1",
        "page=x",
        "page_size=0",
        "limit=0",
        "offset=-1",
        "level=LOUD",
        "date=yesterday",
        "sort=ip",
        "q=%00",
        "page=99999999999999999999",
    ] {
        site.admin.get(&format!("/audit-logs?{query}")).token(&site.root).refused("4000").await;
    }
    let message = site.admin.get("/audit-logs?page=x").token(&site.root).refused("4000").await;
    assert!(message.contains("page"), "the parameter is named: {message}");
    site.admin.get("/audit-logs?page=9223372036854775807&page_size=200&unknown=1").token(&site.root).ok().await;
    site.admin.get("/users/%00").token(&site.root).refused("4040").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_is_an_internal_error_and_the_server_goes_on() {
    let site = Site::start(Database::sqlite()).await;
    let api = Arc::new(api::Api {
        app: site.app.clone(),
        side: people::token::Audience::Admin,
        version: "test",
        public_url: api::PublicUrl::parse("http://127.0.0.1").unwrap(),
        assets: |_| None,
        trusted_proxies: Arc::new([]),
        metrics: Arc::new(String::new),
        metrics_token: None,
    });
    let panics = axum::Router::new()
        .route("/panic", get(|| async { panic!("a secret detail of ours") as () }))
        .route("/fine", get(|| async { api::envelope::Data("still here") }));
    let router = api::server::around(panics, api);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = Origin::new(format!("http://{}", listener.local_addr().unwrap()));
    let (_stop, stopped) = tokio::sync::watch::channel(false);
    tokio::spawn(api::server::serve(listener, router, stopped));
    let message = origin.raw(Method::GET, "/panic").refused("5000").await;
    assert_eq!(message, "internal error");
    assert_eq!(origin.raw(Method::GET, "/fine").ok().await, "still here");
}

#[tokio::test(flavor = "multi_thread")]
async fn health_readiness_and_metrics() {
    let site = Site::start(Database::sqlite()).await;
    for origin in [&site.employee, &site.admin] {
        assert_eq!(origin.raw(Method::GET, "/healthz").ok().await["status"], "ok");
        assert_eq!(origin.raw(Method::GET, "/readyz").ok().await["database"], "ok");
    }
    assert!(site.admin.raw(Method::GET, "/metrics").send().await.status.is_success());
    site.employee.raw(Method::GET, "/metrics").refused("4040").await;
    let forwarded = site.admin.raw(Method::GET, "/metrics").header("x-forwarded-for", "203.0.113.1");
    forwarded.refused("4010").await;
    site.app.db.close().await;
    site.admin.raw(Method::GET, "/readyz").refused("5030").await;
    assert_eq!(site.admin.raw(Method::GET, "/healthz").ok().await["status"], "ok", "alive, though not ready");
    // A database that is away is 503, not a leak and not a hang.
    let message =
        site.admin.post("/auth/login", json!({"email": "a@example.com", "password": "x"})).refused("5030").await;
    assert_eq!(message, "unavailable");
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_with_a_token_ask_for_it_everywhere() {
    let options = Options { metrics_token: Some("metrics-token-of-a-test"), ..Options::default() };
    let site = Site::with(Database::sqlite(), options).await;
    site.admin.raw(Method::GET, "/metrics").refused("4010").await;
    site.admin.raw(Method::GET, "/metrics").token("wrong").refused("4010").await;
    assert!(site.admin.raw(Method::GET, "/metrics").token("metrics-token-of-a-test").send().await.status.is_success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_prefix_arrives_with_or_without_it() {
    let options = Options { public_path: "/portal", ..Options::default() };
    let site = Site::with(Database::sqlite(), options).await;
    for path in ["/api/v1/auth/options", "/portal/api/v1/auth/options", "/portal/healthz"] {
        site.employee.raw(Method::GET, path).ok().await;
    }
    site.employee.raw(Method::GET, "/portal/api/v1/nothing").refused("4040").await;
    let page = site.employee.raw(Method::GET, "/portal/usage").header("accept", "text/html").send().await;
    assert!(page.header("content-type").starts_with("text/html"), "{page:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_compressed_when_asked_and_never_kept() {
    let site = Site::start(Database::sqlite()).await;
    let response = site
        .admin
        .http
        .get(format!("{}/api/v1/openapi.json", site.admin.url))
        .header("accept-encoding", "gzip")
        .send()
        .await
        .unwrap();
    assert_eq!(response.headers()["content-encoding"], "gzip");
    let me = site.admin.get("/auth/me").token(&site.root).send().await;
    assert_eq!(me.header("cache-control"), "no-store");
    assert_eq!(me.header("x-content-type-options"), "nosniff");
    assert!(!me.header("content-security-policy").contains("script-src 'self' 'unsafe-inline'"));
    let docs = site.admin.raw(Method::GET, "/api/v1/docs").send().await;
    assert!(docs.text.contains("/admin-users/{email}"), "the documentation page lists the operations");
}
