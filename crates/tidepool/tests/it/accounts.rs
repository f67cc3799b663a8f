//! Employees: log in, change, revoke, delete; tokens end when they should.

use std::time::Duration;

use serde_json::json;

use crate::kit::{Database, PASSWORD, Site, used_secret};
use crate::on_both;

on_both! {
    async fn an_employee_logs_in_sees_the_profile_and_logs_out(site: Site) {
        let user = site.user("Ada@Example.com").await;
        assert_eq!(user["status"], "active");
        assert_eq!(user["email"], "Ada@Example.com");
        for null in ["instance_id", "instance_name", "instance_model", "revoked_at"] {
            assert!(user[null].is_null(), "{null}");
        }
        let login = json!({"email": "ADA@example.COM", "password": PASSWORD});
        let opened = site.employee.post("/auth/login", login).ok().await;
        assert_eq!(opened["email"], "Ada@Example.com");
        assert_eq!(opened["name"], "Somebody");
        let token = opened["token"].as_str().unwrap();
        for path in ["/me", "/me/profile"] {
            let me = site.employee.get(path).token(token).ok().await;
            assert_eq!(me["id"], user["id"]);
            assert_eq!((me["quota_daily"].as_i64(), me["used_today"].as_i64(), me["instance_count"].as_i64()), (Some(0), Some(0), Some(0)));
            assert!(me["quota_resets_at"].as_str().unwrap().contains("T00:00:00.000+"), "the next local midnight: {me}");
        }
        site.employee.post("/auth/logout", json!({})).token(token).ok().await;
        site.employee.get("/me").token(token).refused("4010").await;
        site.employee.get("/me").refused("4010").await;
        site.employee.get("/me").header("authorization", "Basic abc").refused("4010").await;
    }

    async fn a_login_that_was_under_way_when_the_password_changed_opens_nothing(site: Site) {
        let user = site.user("ada@example.com").await;
        let id = base::id::UserId::named(user["id"].as_str().unwrap());
        // As far as a login gets while the password is compared.
        let begun = site.app.clock.now();
        let read = people::user::find(&site.app, &id).await.unwrap();
        let admin_read = store::admin_user::find_by_email(&site.app.db, "root@example.com").await.unwrap().unwrap();
        let change = json!({"password": "another long password"});
        site.admin.patch(&format!("/users/{id}"), change.clone()).token(&site.root).ok().await;
        site.wait(Duration::from_secs(5));
        let opened = people::session::open_employee(&site.app, read, begun).unwrap();
        site.employee.get("/me").token(opened.token.expose()).refused("4010").await;

        site.admin.patch("/admin-users/root@example.com", change).token(&site.root).ok().await;
        site.wait(Duration::from_secs(5));
        let token = people::session::admin_token(&site.app, &admin_read, begun).unwrap();
        site.admin.get("/auth/me").token(token.expose()).refused("4010").await;
    }

    async fn a_first_sign_on_waits_for_whoever_revokes_the_account(site: Site) {
        let user = site.user("ada@example.com").await;
        let id = base::id::UserId::named(user["id"].as_str().unwrap());
        let mut tx = site.begin_patient().await;
        let mut held = store::user::lock(&mut tx, &id).await.unwrap().unwrap();
        let identity = remote::sso::Identity {
            id: "https://idp.example.com|ada".into(),
            email: Some("ada@example.com".parse().unwrap()),
            email_verified: true,
            name: None,
            claims: Default::default(),
        };
        let app = site.app.clone();
        let signing_on = tokio::spawn(async move { people::sso::employee(&app, identity).await });
        site.until_blocked().await;
        held.status = store::user::Status::Revoked;
        held.revoked_at = Some(site.app.clock.now());
        store::user::update(&mut tx, &held, site.app.clock.now()).await.unwrap();
        tx.commit().await.unwrap();
        let refused = signing_on.await.unwrap().err().map(|error| error.kind);
        assert_eq!(refused, Some(base::Kind::AccountRevoked));
        let now = people::user::find(&site.app, &id).await.unwrap();
        assert_eq!((now.status, now.revoked_at.is_some()), (store::user::Status::Revoked, true), "nobody undid it");
    }

    async fn a_failed_login_says_the_same_for_everybody(site: Site) {
        site.user("ada@example.com").await;
        site.admin.post("/users", json!({"email": "sso@example.com"})).token(&site.root).ok().await;
        for (email, password) in [("ada@example.com", "wrong password"), ("nobody@example.com", PASSWORD), ("sso@example.com", PASSWORD), ("sso@example.com", ""), ("no address", PASSWORD), ("a\u{0}@example.com", PASSWORD)] {
            let reply = site.employee.post("/auth/login", json!({"email": email, "password": password})).send().await;
            if email.contains('\0') {
                reply.refused("4000");
            } else {
                assert_eq!(reply.refused("4011"), "wrong email or password");
            }
        }
    }

    async fn revoking_takes_hold_on_the_very_next_request(site: Site) {
        let (id, token) = site.employee("ada@example.com").await;
        site.employee.get("/me").token(&token).ok().await;
        let path = format!("/users/{id}");
        let revoked = site.admin.patch(&path, json!({"status": "revoked"})).token(&site.root).ok().await;
        assert_eq!(revoked["status"], "revoked");
        assert!(revoked["revoked_at"].is_string());
        site.employee.get("/me").token(&token).refused("4010").await;
        let login = json!({"email": "ada@example.com", "password": PASSWORD});
        site.employee.post("/auth/login", login.clone()).refused("4031").await;
        let wrong = json!({"email": "ada@example.com", "password": "not the one"});
        site.employee.post("/auth/login", wrong).refused("4011").await;
        let active = site.admin.patch(&path, json!({"status": "active"})).token(&site.root).ok().await;
        assert!(active["revoked_at"].is_null());
        site.employee.get("/me").token(&token).refused("4010").await;
        let token = site.employee_login("ada@example.com").await;
        site.employee.get("/me").token(&token).ok().await;

        assert_eq!(site.admin.delete(&path).token(&site.root).ok().await["id"], id.as_str());
        site.employee.get("/me").token(&token).refused("4010").await;
        let list = site.admin.get("/users").token(&site.root).ok().await;
        assert_eq!((list["total"].as_i64(), list["list"][0]["status"].as_str()), (Some(1), Some("revoked")), "deleted stays listed");
        let again = json!({"email": "ADA@example.com", "password": PASSWORD});
        site.admin.post("/users", again).token(&site.root).refused("4090").await;
    }

    async fn a_new_password_ends_every_older_token(site: Site) {
        let (id, first) = site.employee("ada@example.com").await;
        let second = site.employee_login("ada@example.com").await;
        site.employee.post("/me/password", json!({"old": "wrong one", "new": "another-password"})).token(&first).refused("4000").await;
        site.employee.post("/me/password", json!({"old": PASSWORD, "new": "short"})).token(&first).refused("4000").await;
        used_secret("another-password-1");
        let changed = json!({"old": PASSWORD, "new": "another-password-1"});
        let fresh = site.employee.post("/me/password", changed).token(&first).ok().await;
        let fresh = fresh["token"].as_str().unwrap();
        for token in [&first, &second] {
            site.employee.get("/me").token(token).refused("4010").await;
        }
        site.employee.get("/me").token(fresh).ok().await;
        site.employee.post("/auth/login", json!({"email": "ada@example.com", "password": PASSWORD})).refused("4011").await;
        // An administrator resets it within the same second: the fresh token ends too, a newer one is good.
        site.admin.patch(&format!("/users/{id}"), json!({"password": PASSWORD})).token(&site.root).ok().await;
        site.employee.get("/me").token(fresh).refused("4010").await;
        let newest = site.employee_login("ada@example.com").await;
        site.employee.get("/me").token(&newest).ok().await;
    }

    async fn tokens_expire(site: Site) {
        let (_, token) = site.employee("ada@example.com").await;
        site.wait(Duration::from_secs(12 * 3600 - 1));
        site.employee.get("/me").token(&token).ok().await;
        site.wait(Duration::from_secs(1));
        site.employee.get("/me").token(&token).refused("4010").await;
        site.admin.get("/auth/me").token(&site.root).refused("4010").await;
    }

    async fn an_imported_sha256_is_taken_once_and_upgraded(site: Site) {
        let (id, _) = site.employee("ada@example.com").await;
        let bare = base::password::sha256_hex(PASSWORD);
        used_secret(&bare);
        let import = "UPDATE users SET password_hash = ? WHERE id = ?";
        site.app.db.run(import, store::args![bare.to_uppercase(), id.as_str()]).await.unwrap();
        site.employee.post("/auth/login", json!({"email": "ada@example.com", "password": bare})).refused("4011").await;
        site.employee_login("ada@example.com").await;
        let user = people::user::find(&site.app, &base::id::UserId::named(id.clone())).await.unwrap();
        assert!(user.password_hash.unwrap().starts_with("$argon2id$"));
        site.employee_login("ada@example.com").await;
    }

    async fn users_are_checked_listed_and_found(site: Site) {
        for (i, (email, department)) in [("ada@example.com", "Research"), ("bob@example.com", "Sales"), ("eve_1@example.com", "Sales")].iter().enumerate() {
            let body = json!({"email": email, "name": format!("Name {i}"), "department": department, "password": PASSWORD, "quota_daily": 1000 * i});
            site.admin.post("/users", body).token(&site.root).ok().await;
            site.wait(Duration::from_millis(1));
        }
        let list = |query: &str| site.admin.get(&format!("/users{query}")).token(&site.root);
        let emails = |data: &serde_json::Value| data["list"].as_array().unwrap().iter().map(|u| u["email"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
        assert_eq!(emails(&list("").ok().await), ["ada@example.com", "bob@example.com", "eve_1@example.com"]);
        assert_eq!(emails(&list("?department=Sales&sort=-email").ok().await), ["eve_1@example.com", "bob@example.com"]);
        assert_eq!(emails(&list("?q=EVE_").ok().await), ["eve_1@example.com"], "an underscore is no wild card");
        assert_eq!(emails(&list("?q=%25").ok().await), Vec::<String>::new(), "neither is a per cent sign");
        assert_eq!(emails(&list(&format!("?q={}", "a".repeat(9_900))).ok().await), Vec::<String>::new());
        list(&format!("?q={}", "a".repeat(13_000))).refused("4000").await;
        site.admin.post("/users", json!({"email": "emile@example.com", "name": "Émile Ünal"})).token(&site.root).ok().await;
        for q in ["%C3%89mile", "%C3%A9MILE", "%C3%BCnal"] {
            assert_eq!(emails(&list(&format!("?q={q}")).ok().await), ["emile@example.com"], "{q}: case is nothing to letters with marks");
        }
        let emile = list("?q=emile").ok().await["list"][0]["id"].as_str().unwrap().to_owned();
        site.app.db.run("DELETE FROM users WHERE id = ?", store::args![emile]).await.unwrap();
        let page = list("?page=2&page_size=2").ok().await;
        assert_eq!((page["total"].as_i64(), emails(&page)), (Some(3), vec!["eve_1@example.com".to_owned()]));
        assert_eq!(emails(&list("?limit=1&offset=1").ok().await), ["bob@example.com"]);
        assert_eq!(emails(&list("?status=revoked").ok().await), Vec::<String>::new());

        let refuse = |body: serde_json::Value| site.admin.post("/users", body).token(&site.root);
        let message = refuse(json!({"email": "x@example.com", "name": "n".repeat(101)})).refused("4000").await;
        assert_eq!(message, "name: must have at most 100 characters");
        refuse(json!({"email": "no address"})).refused("4000").await;
        refuse(json!({"email": "x@example.com", "name": "a\u{0}b"})).refused("4000").await;
        refuse(json!({"email": "x@example.com", "quota_daily": -1})).refused("4000").await;
        refuse(json!({"email": "x@example.com", "password": "short"})).refused("4000").await;
        refuse(json!({"name": "nobody"})).refused("4000").await;
        site.admin.patch("/users/nobody", json!({"name": "x"})).token(&site.root).refused("4040").await;
        site.admin.delete("/users/nobody").token(&site.root).refused("4040").await;
        let quota = list("?q=ada").ok().await["list"][0]["id"].as_str().unwrap().to_owned();
        let updated = site.admin.patch(&format!("/users/{quota}"), json!({"quota_daily": 5, "name": "Countess"})).token(&site.root).ok().await;
        assert_eq!((updated["quota_daily"].as_i64(), updated["name"].as_str(), updated["department"].as_str()), (Some(5), Some("Countess"), Some("Research")));
    }

    async fn of_many_accounts_with_one_address_one_is_made(site: Site) {
        let tries = (0..20).map(|i| {
            let email = if i % 2 == 0 { "same@example.com" } else { "SAME@example.com" };
            let call = site.admin.post("/users", json!({"email": email})).token(&site.root);
            tokio::spawn(call.send())
        });
        let mut codes = vec![];
        for one in futures_util::future::join_all(tries).await {
            codes.push(one.unwrap().json()["code"].as_str().unwrap().to_owned());
        }
        codes.sort();
        assert_eq!(codes[0], "0000");
        assert!(codes[1..].iter().all(|c| c == "4090"), "{codes:?}");
    }
}

/// The time that the thread which runs this has spent on a processor: other load on the machine does not change it.
fn processor_time() -> Duration {
    let spent = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(spent.split(' ').next().unwrap().parse().unwrap())
}

/// A storm of logins does not keep anybody else from being answered: passwords are hashed on threads of their own. All
/// requests are answered by one thread here, which would have to compute for as long as all the hashes take.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_storm_of_logins_starves_nobody() {
    const LOGINS: u32 = 16;
    let site = Site::start(Database::sqlite()).await;
    let (_, token) = site.employee("ada@example.com").await;
    let hash = || {
        let before = processor_time();
        base::password::burn(&base::Secret::new(PASSWORD));
        processor_time() - before
    };
    // The least of some: no hash takes less.
    let one_hash = (0..5).map(|_| hash()).min().unwrap();
    // On the thread that answers.
    let spent = async || tokio::spawn(async { processor_time() }).await.unwrap();
    let before = spent().await;
    let storm: Vec<_> = (0..LOGINS)
        .map(|_| {
            tokio::spawn(
                site.employee.post("/auth/login", json!({"email": "ada@example.com", "password": PASSWORD})).send(),
            )
        })
        .collect();
    // Answered while the others are hashed.
    site.employee.get("/me").token(&token).ok().await;
    assert!(!storm.iter().all(|login| login.is_finished()), "an answer waited for all logins");
    for login in storm {
        login.await.unwrap().ok();
    }
    let (answering, hashing) = (spent().await - before, one_hash * LOGINS);
    eprintln!("the thread that answers computed for {answering:?}, all hashes take at least {hashing:?}");
    assert!(answering < hashing / 2, "the thread that answers computed for {answering:?}, all hashes take {hashing:?}");
}
