//! Single sign-on against a real OpenID provider, by HTTP. (Once more in Chromium: web/e2e.)

use std::collections::HashMap;

use base::Secret;
use people::{IdentityProxy, Newcomers};
use remote::jwks::Jwks;
use remote::sso::Config;
use reqwest::Url;
use reqwest::header::{ACCEPT, COOKIE, LOCATION, SET_COOKIE};
use serde_json::{Value, json};
use store::seal::Place;

use crate::kit::{Database, Options, Site, skip};

/// The provider's client of this name, or a counted skip.
fn client(test: &str, id: &str) -> Option<Config> {
    let Ok(issuer) = std::env::var("TIDEPOOL_TEST_IDP_URL") else {
        skip(test, "no OpenID provider: TIDEPOOL_TEST_IDP_URL is not set");
        return None;
    };
    Some(Config {
        issuer,
        client_id: id.into(),
        client_secret: Secret::new(format!("{id}-secret-0123456789abcdef")),
        redirect_url: String::new(),
        scopes: "openid email profile groups".into(),
    })
}

/// Just enough of a browser: it keeps cookies and goes where it is sent.
struct Browser {
    http: reqwest::Client,
    cookies: HashMap<String, String>,
}

impl Browser {
    fn new() -> Browser {
        let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
        Browser { http, cookies: HashMap::new() }
    }

    async fn go(&mut self, request: reqwest::RequestBuilder) -> reqwest::Response {
        let cookies: Vec<String> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let response = request.header(COOKIE, cookies.join("; ")).send().await.unwrap();
        for cookie in response.headers().get_all(SET_COOKIE) {
            let pair = cookie.to_str().unwrap().split(';').next().unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            self.cookies.insert(name.into(), value.into());
        }
        response
    }

    async fn get(&mut self, url: Url) -> reqwest::Response {
        let request = self.http.get(url).header(ACCEPT, "text/html");
        self.go(request).await
    }

    /// Signs in at the provider; answers the address it sends the browser back to, not yet visited.
    async fn sign_in(&mut self, begin: &str, login: &str, password: &str) -> Url {
        let mut at = Url::parse(begin).unwrap();
        for _ in 0..10 {
            let response = self.get(at.clone()).await;
            if let Some(to) = response.headers().get(LOCATION) {
                at = at.join(to.to_str().unwrap()).unwrap();
            } else {
                let form = [("login", login), ("password", password)];
                let request = self.http.post(at.clone()).form(&form);
                let response = self.go(request).await;
                at = at.join(response.headers()[LOCATION].to_str().unwrap()).unwrap();
            }
            if at.path().ends_with("/auth/sso/callback") {
                return at;
            }
        }
        panic!("the provider never sent the browser back");
    }

    /// Comes back as a program that wants JSON.
    async fn answer(&mut self, at: Url) -> Value {
        let request = self.http.get(at).header(ACCEPT, "application/json");
        self.go(request).await.json().await.unwrap()
    }
}

async fn site(test: &str, options: impl FnOnce(Config) -> Options) -> Option<Site> {
    let config = client(test, "employee")?;
    Some(Site::with(Database::sqlite(), options(config)).await)
}

fn employees(sso: Config) -> Options {
    Options { employee_sso: Some(sso), ..Options::default() }
}

async fn begin_and_sign_in(site: &Site, login: &str, password: &str) -> (Browser, Url) {
    let mut browser = Browser::new();
    let begin = format!("{}/api/v1/auth/sso", site.employee.url);
    let back = browser.sign_in(&begin, login, password).await;
    (browser, back)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newcomer_gets_an_account_and_is_known_the_next_time() {
    let Some(site) = site("sso::newcomer", employees).await else { return };
    assert_eq!(site.employee.get("/auth/options").ok().await["sso"], true);
    assert_eq!(site.admin.get("/auth/options").ok().await["sso"], false);
    for _ in 0..2 {
        let (mut browser, back) = begin_and_sign_in(&site, "alice@example.test", "wonder").await;
        let body = browser.answer(back).await;
        assert_eq!(body["data"]["name"], "Alice", "{body}");
        let token = body["data"]["token"].as_str().unwrap();
        let me = site.employee.get("/me").token(token).ok().await;
        assert_eq!((me["email"].as_str(), me["has_password"].as_bool()), (Some("alice@example.test"), Some(false)));
    }
    assert_eq!(site.admin.get("/users").token(&site.root).ok().await["total"], 1);
    let created = site.admin.get("/audit-logs?operator=System&action=user.create&q=alice").token(&site.root).ok().await;
    assert_eq!(created["total"], 1);
    // A revoked account is refused here too.
    let users = site.admin.get("/users").token(&site.root).ok().await;
    let path = format!("/users/{}", users["list"][0]["id"].as_str().unwrap());
    site.admin.patch(&path, json!({"status": "revoked"})).token(&site.root).ok().await;
    let (mut browser, back) = begin_and_sign_in(&site, "alice@example.test", "wonder").await;
    assert_eq!(browser.answer(back).await["code"], "4031");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_existing_account_is_matched_by_its_verified_address() {
    let Some(site) = site("sso::existing", employees).await else { return };
    let user = site.user("BOB@example.test").await;
    let (mut browser, back) = begin_and_sign_in(&site, "bob@example.test", "builder").await;
    let body = browser.answer(back).await;
    let me = site.employee.get("/me").token(body["data"]["token"].as_str().unwrap()).ok().await;
    assert_eq!(me["id"], user["id"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_lands_on_the_page_with_the_token_behind_the_hash() {
    let Some(site) = site("sso::browser", employees).await else { return };
    let (mut browser, back) = begin_and_sign_in(&site, "alice@example.test", "wonder").await;
    let response = browser.get(back.clone()).await;
    assert_eq!(response.status(), 303);
    let to = response.headers()[LOCATION].to_str().unwrap();
    let token = to.strip_prefix(&format!("{}/#token=", site.employee.url)).unwrap();
    site.employee.get("/me").token(token).ok().await;
    let cookies: Vec<&str> = response.headers().get_all(SET_COOKIE).iter().map(|c| c.to_str().unwrap()).collect();
    let handed = cookies.iter().find(|c| c.starts_with("tidepool_employee_sso_done=")).unwrap();
    assert!(handed.contains(&token[token.len() - 24..]) && handed.contains("Max-Age=60"), "{handed}");
    let cookie = cookies.iter().find(|c| c.starts_with("tidepool_employee_sso=")).unwrap();
    assert!(cookie.contains("Max-Age=0") && cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"), "{cookie}");
    // The same address again: the cookie is gone, so the attempt is over.
    let again = browser.get(back).await;
    let to = again.headers()[LOCATION].to_str().unwrap();
    assert!(to.contains("/#sso_error=this%20sign-in%20was%20not%20begun"), "{to}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_state_or_another_browser_is_refused() {
    let Some(site) = site("sso::state", employees).await else { return };
    let (mut browser, back) = begin_and_sign_in(&site, "alice@example.test", "wonder").await;
    let mut forged = back.clone();
    let code = back.query_pairs().find(|(n, _)| n == "code").unwrap().1.into_owned();
    forged.set_query(Some(&format!("code={code}&state=forged")));
    let cookies = browser.cookies.clone();
    assert_eq!(browser.answer(forged).await["code"], "4000");
    let mut other = Browser::new();
    assert_eq!(other.answer(back.clone()).await["code"], "4000", "a browser without the cookie");
    // One letter of each is another.
    let altered = |v: String| {
        v.chars().enumerate().map(|(i, c)| if i == 20 { if c == 'A' { 'B' } else { 'A' } } else { c }).collect()
    };
    browser.cookies = cookies.into_iter().map(|(n, v)| (n, altered(v))).collect();
    assert_eq!(browser.answer(back).await["code"], "4000", "an altered cookie");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_nonce_is_refused() {
    let Some(site) = site("sso::nonce", employees).await else { return };
    let (mut browser, back) = begin_and_sign_in(&site, "alice@example.test", "wonder").await;
    // Only the platform can write such a cookie: it stands for an id token made for another attempt.
    let place = Place { table: "cookie", column: "employee", id: "sso" };
    let name = "tidepool_employee_sso";
    let opened = site.app.sealer.open(place, &browser.cookies[name]).unwrap();
    let mut kept: Value = serde_json::from_str(opened.expose()).unwrap();
    kept["attempt"]["nonce"] = json!("another nonce");
    let sealed = site.app.sealer.seal(place, &Secret::new(kept.to_string())).unwrap();
    browser.cookies.insert(name.into(), sealed);
    assert_eq!(browser.answer(back).await["code"], "4010");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_or_used_code_is_refused() {
    let Some(config) = client("sso::expired", "employee-expiring") else { return };
    let site = Site::with(Database::sqlite(), employees(config)).await;
    let (mut browser, back) = begin_and_sign_in(&site, "alice@example.test", "wonder").await;
    // The provider is another program with its own clock, and this client's codes live for one second of it.
    tokio::time::sleep(std::time::Duration::from_millis(2500)).await;
    let body = browser.answer(back).await;
    assert_eq!(body["code"], "4000", "{body}");
    assert!(body["msg"].as_str().unwrap().contains("sign in again"));

    // With a client whose codes live long enough to be used twice.
    let Some(site) = self::site("sso::used", employees).await else { return };
    let (mut browser, back) = begin_and_sign_in(&site, "alice@example.test", "wonder").await;
    let cookies = browser.cookies.clone();
    assert_eq!(browser.answer(back.clone()).await["code"], "0000");
    browser.cookies = cookies;
    assert_eq!(browser.answer(back).await["code"], "4000", "a code works once");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_that_took_too_long_is_refused() {
    let Some(site) = site("sso::slow", employees).await else { return };
    let (mut browser, back) = begin_and_sign_in(&site, "alice@example.test", "wonder").await;
    site.wait(std::time::Duration::from_secs(601));
    assert_eq!(browser.answer(back).await["code"], "4000");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_is_not_verified_gets_nothing() {
    let Some(site) = site("sso::unverified", employees).await else { return };
    site.user("carol@example.test").await;
    let (mut browser, back) = begin_and_sign_in(&site, "carol@example.test", "unverified1").await;
    let body = browser.answer(back).await;
    assert_eq!(body["code"], "4030", "not even the account that has this address: {body}");
}

/// As after a change of the identity provider: the identity that the account is tied to does not exist any more.
#[tokio::test(flavor = "multi_thread")]
async fn an_account_can_be_untied_from_its_identity() {
    let Some(site) = site("sso::untied", employees).await else { return };
    let sign_in = async || {
        let (mut browser, back) = begin_and_sign_in(&site, "alice@example.test", "wonder").await;
        browser.answer(back).await
    };
    let token = sign_in().await["data"]["token"].as_str().unwrap().to_owned();
    let changed = "UPDATE users SET idp_id = 'https://the-old-one.example alice'";
    site.app.db.run(changed, store::args![]).await.unwrap();
    assert_eq!(sign_in().await["code"], "4030");
    let user = site.admin.get("/users").token(&site.root).ok().await["list"][0].clone();
    assert_eq!(user["has_identity"], true);
    let path = format!("/users/{}", user["id"].as_str().unwrap());
    let untied = site.admin.patch(&path, json!({"forget_identity": true})).token(&site.root).ok().await;
    assert_eq!(untied["has_identity"], false);
    site.employee.get("/me").token(&token).refused("4010").await;
    let entry = site.admin.get("/audit-logs?action=user.update").token(&site.root).ok().await["list"][0].clone();
    assert_eq!(entry["detail"], "identity changed");
    assert_eq!(sign_in().await["data"]["name"], "Alice");
    assert_eq!(site.admin.get(&path).token(&site.root).ok().await["has_identity"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn domains_and_auto_create_decide_about_newcomers() {
    let only_ours = |sso| Options {
        employee_newcomers: Some(Newcomers { welcome: true, domains: vec!["example.test".into()], claim: None }),
        ..employees(sso)
    };
    let Some(site) = site("sso::domains", only_ours).await else { return };
    let (mut browser, back) = begin_and_sign_in(&site, "dave@elsewhere.test", "elsewhere1").await;
    assert_eq!(browser.answer(back).await["code"], "4030");
    let (mut browser, back) = begin_and_sign_in(&site, "alice@example.test", "wonder").await;
    assert_eq!(browser.answer(back).await["code"], "0000");
    // An account that an administrator made is welcome whatever its domain.
    site.user("dave@elsewhere.test").await;
    let (mut browser, back) = begin_and_sign_in(&site, "dave@elsewhere.test", "elsewhere1").await;
    assert_eq!(browser.answer(back).await["code"], "0000");
}

#[tokio::test(flavor = "multi_thread")]
async fn with_auto_create_off_nobody_new_gets_in() {
    let closed = |sso| Options { employee_newcomers: Some(Newcomers::default()), ..employees(sso) };
    let Some(site) = site("sso::closed", closed).await else { return };
    let (mut browser, back) = begin_and_sign_in(&site, "alice@example.test", "wonder").await;
    assert_eq!(browser.answer(back).await["code"], "4030");
    assert_eq!(site.admin.get("/users").token(&site.root).ok().await["total"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn administrators_sign_in_when_they_are_known() {
    let Some(config) = client("sso::admin", "admin") else { return };
    let site = Site::with(Database::sqlite(), Options { admin_sso: Some(config), ..Options::default() }).await;
    let begin = format!("{}/api/v1/auth/sso", site.admin.url);
    let mut browser = Browser::new();
    let back = browser.sign_in(&begin, "alice@example.test", "wonder").await;
    assert_eq!(browser.answer(back).await["code"], "4030", "unknown, and administrators are not made by themselves");
    let refused = site.admin.get("/audit-logs?level=WARN&action=auth.login").token(&site.root).ok().await;
    assert_eq!(refused["list"][0]["target"], "alice@example.test");
    site.admin.post("/admin-users", json!({"email": "alice@example.test"})).token(&site.root).ok().await;
    let mut browser = Browser::new();
    let back = browser.sign_in(&begin, "alice@example.test", "wonder").await;
    let body = browser.answer(back).await;
    assert_eq!(body["data"]["role"], "admin", "{body}");
    site.admin.get("/auth/me").token(body["data"]["token"].as_str().unwrap()).ok().await;
}

/// Whoever has an account at the provider would otherwise be an administrator.
#[tokio::test(flavor = "multi_thread")]
async fn an_administrator_is_made_for_named_domains_or_by_a_claim_only() {
    let named = |domain: &str| vec![domain.to_owned()];
    let claim = |value: &str| Some(("groups".to_owned(), value.to_owned()));
    for (domains, claim, code) in [
        (vec![], None, "4030"),
        (named("elsewhere.test"), None, "4030"),
        (named("example.test"), None, "0000"),
        (vec![], claim("owners"), "4030"),
        (vec![], claim("admins"), "0000"),
        (named("elsewhere.test"), claim("admins"), "4030"),
    ] {
        let Some(config) = client("sso::admin_newcomers", "admin") else { return };
        let newcomers = Newcomers { welcome: true, domains, claim };
        let shown = format!("{newcomers:?}");
        let options = Options { admin_sso: Some(config), admin_newcomers: Some(newcomers), ..Options::default() };
        let site = Site::with(Database::sqlite(), options).await;
        let mut browser = Browser::new();
        let back =
            browser.sign_in(&format!("{}/api/v1/auth/sso", site.admin.url), "alice@example.test", "wonder").await;
        assert_eq!(browser.answer(back).await["code"], code, "{shown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_sso_there_is_nothing_to_redirect_to() {
    let site = Site::start(Database::sqlite()).await;
    for origin in [&site.employee, &site.admin] {
        origin.get("/auth/sso").refused("4041").await;
        origin.get("/auth/sso/callback?code=x&state=y").header("accept", "application/json").refused("4041").await;
    }
    site.employee.post("/auth/verify", json!({"token": "x"})).refused("4041").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_away_is_503_and_says_nothing_of_ours() {
    let config = Config {
        issuer: format!("http://127.0.0.1:{}", crate::kit::free_port()),
        client_id: "x".into(),
        client_secret: Secret::new("a-client-secret-of-a-test"),
        redirect_url: String::new(),
        scopes: remote::sso::SCOPES.into(),
    };
    let site = Site::with(Database::sqlite(), employees(config)).await;
    let message = site.employee.get("/auth/sso").refused("5030").await;
    assert!(!message.contains("127.0.0.1"), "{message}");
}

/// The id token that the provider gives for a finished sign-in: what an identity proxy would pass on.
async fn id_token(site: &Site, issuer: &str, login: &str, password: &str) -> String {
    let (browser, back) = begin_and_sign_in(site, login, password).await;
    let place = Place { table: "cookie", column: "employee", id: "sso" };
    let opened = site.app.sealer.open(place, &browser.cookies["tidepool_employee_sso"]).unwrap();
    let kept: Value = serde_json::from_str(opened.expose()).unwrap();
    let code = back.query_pairs().find(|(n, _)| n == "code").unwrap().1.into_owned();
    let callback = format!("{}/api/v1/auth/sso/callback", site.employee.url);
    let form = [
        ("grant_type", "authorization_code"),
        ("code", &code),
        ("redirect_uri", &callback),
        ("code_verifier", kept["attempt"]["verifier"].as_str().unwrap()),
    ];
    let request =
        browser.http.post(format!("{issuer}/token")).basic_auth("employee", Some("employee-secret-0123456789abcdef"));
    let answer: Value = request.form(&form).send().await.unwrap().json().await.unwrap();
    answer["id_token"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_identity_proxys_token_is_as_good_as_a_login() {
    let proxied = |audience: &'static str| {
        move |sso: Config| {
            let keys = Jwks::new(format!("{}/jwks", sso.issuer), remote::http::client().unwrap());
            let proxy = IdentityProxy { issuer: sso.issuer.clone(), audience: Some(audience.into()), keys };
            Options { proxy: Some(proxy), ..employees(sso) }
        }
    };
    let Some(site) = site("sso::proxy", proxied("employee")).await else { return };
    let issuer = std::env::var("TIDEPOOL_TEST_IDP_URL").unwrap();
    let verify = |site: &Site, token: &str| site.employee.post("/auth/verify", json!({"token": token}));
    let alice = id_token(&site, &issuer, "alice@example.test", "wonder").await;
    let opened = verify(&site, &alice).ok().await;
    let me = site.employee.get("/me").token(opened["token"].as_str().unwrap()).ok().await;
    assert_eq!(me["email"], "alice@example.test");
    let carol = id_token(&site, &issuer, "carol@example.test", "unverified1").await;
    verify(&site, &carol).refused("4030").await;
    // Altered, of another kind, or ours: not the proxy's.
    let (head, signature) = alice.rsplit_once('.').unwrap();
    verify(&site, &format!("{head}.{}", signature.replace(['A', 'B', 'C'], "D"))).refused("4010").await;
    verify(&site, "rubbish").refused("4010").await;
    verify(&site, opened["token"].as_str().unwrap()).refused("4010").await;
    let Some(other) = self::site("sso::proxy", proxied("somebody-else")).await else { return };
    verify(&other, &alice).refused("4010").await;
}
