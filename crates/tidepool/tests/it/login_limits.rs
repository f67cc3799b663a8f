//! Limits on failing logins: ten for one address of mail from one caller, thirty from one caller, in five minutes; and what strangers
//! cannot do with them.

use std::time::Duration;

use serde_json::json;

use crate::kit::{Database, Options, Origin, PASSWORD, Reply, Site};
use crate::on_both;

async fn fail(origin: &Origin, email: &str) -> Reply {
    origin.post("/auth/login", json!({"email": email, "password": "not the password"})).send().await
}

on_both! {
    async fn ten_failures_of_one_account_close_it_for_the_rest_of_the_window(site: Site) {
        site.user("ada@example.com").await;
        for i in 0..10 {
            fail(&site.employee, if i % 2 == 0 { "ada@example.com" } else { "ADA@example.com" }).await.refused("4011");
            site.wait(Duration::from_secs(10));
        }
        let right = json!({"email": "ada@example.com", "password": PASSWORD});
        let refused = site.employee.post("/auth/login", right.clone()).send().await;
        let after: u64 = refused.header("retry-after").parse().unwrap();
        assert_eq!(after, 200, "the rest of the five minutes since the first failure");
        refused.refused("4290");
        site.wait(Duration::from_secs(after));
        site.employee.post("/auth/login", right).ok().await;
    }

    async fn a_success_forgets_the_failures_of_that_account(site: Site) {
        site.user("ada@example.com").await;
        for _ in 0..2 {
            for _ in 0..9 {
                fail(&site.employee, "ada@example.com").await.refused("4011");
            }
            site.employee_login("ada@example.com").await;
        }
    }

    async fn many_guesses_at_one_moment_gain_nothing(site: Site) {
        site.user("ada@example.com").await;
        let guesses: Vec<_> = (0..20).map(|_| {
            let origin = site.employee.clone();
            tokio::spawn(async move { fail(&origin, "ada@example.com").await.json()["code"].as_str().unwrap().to_owned() })
        }).collect();
        let mut wrong = 0;
        for guess in guesses {
            wrong += usize::from(guess.await.unwrap() == "4011");
        }
        assert_eq!(wrong, 10, "ten are told that they were wrong, the others nothing");
    }
}

/// Ten wrong passwords from anywhere used to lock out the only super administrator, the right password included.
#[tokio::test(flavor = "multi_thread")]
async fn strangers_lock_nobody_out() {
    let site = Site::with(Database::sqlite(), Options { trust_loopback: true, ..Options::default() }).await;
    let from = |ip: &str, password: &str| {
        let body = json!({"email": "root@example.com", "password": password});
        site.admin.post("/auth/login", body).header("x-forwarded-for", ip)
    };
    let first = from("203.0.113.9", PASSWORD).send().await;
    let mark = first.header("set-cookie").split(';').next().unwrap().to_owned();
    assert!(mark.starts_with("tidepool_admin_browser_") && first.header("set-cookie").contains("HttpOnly"), "{mark}");
    first.ok();
    for _ in 0..10 {
        from("203.0.113.5", "wrong").refused("4011").await;
    }
    from("203.0.113.5", PASSWORD).refused("4290").await;
    from("203.0.113.6", PASSWORD).ok().await;
    // Many of them, from many places.
    for i in 0..190 {
        from(&format!("198.51.100.{i}"), "wrong").refused("4011").await;
    }
    from("203.0.113.6", PASSWORD).refused("4290").await;
    from("203.0.113.6", PASSWORD).header("cookie", &mark).ok().await;
    from("203.0.113.5", PASSWORD).header("cookie", &mark).ok().await;
    // The mark is good for one account, and has ten tries of its own.
    site.plain_admin("other@example.com", "admin").await;
    for i in 0..10 {
        from("203.0.113.6", "wrong").header("cookie", &mark).send().await.refused(if i < 10 { "4011" } else { "4290" });
    }
    from("203.0.113.6", PASSWORD).header("cookie", &mark).refused("4290").await;
    let forged = mark.replace("browser_", "browser_0");
    from("203.0.113.6", PASSWORD).header("cookie", &forged).refused("4290").await;
}

/// Whoever goes on trying is told so each time, and is in the log once a minute.
#[tokio::test(flavor = "multi_thread")]
async fn who_goes_on_trying_does_not_fill_the_log() {
    let site = Site::start(Database::sqlite()).await;
    for _ in 0..10 {
        fail(&site.admin, "root@example.com").await.refused("4011");
    }
    let entries = async || {
        site.admin.get("/audit-logs?level=WARN&action=auth.login").token(&site.root).ok().await["total"].clone()
    };
    assert_eq!(entries().await, 10);
    for _ in 0..20 {
        fail(&site.admin, "root@example.com").await.refused("4290");
    }
    assert_eq!(entries().await, 11);
    site.wait(Duration::from_secs(61));
    fail(&site.admin, "root@example.com").await.refused("4290");
    assert_eq!(entries().await, 12);
}

#[tokio::test(flavor = "multi_thread")]
async fn thirty_failures_from_one_address_close_it_and_no_other() {
    let site = Site::with(Database::sqlite(), Options { trust_loopback: true, ..Options::default() }).await;
    site.user("ada@example.com").await;
    let from = |ip: &str, email: &str, password: &str| {
        site.employee.post("/auth/login", json!({"email": email, "password": password})).header("x-forwarded-for", ip)
    };
    for i in 0..30 {
        from("203.0.113.5", &format!("nobody{i}@example.com"), "x").refused("4011").await;
    }
    from("203.0.113.5", "ada@example.com", PASSWORD).refused("4290").await;
    from("203.0.113.6", "ada@example.com", PASSWORD).ok().await;
    site.admin_login("root@example.com").await;
    site.wait(Duration::from_secs(300));
    from("203.0.113.5", "ada@example.com", PASSWORD).ok().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_wrong_old_passwords_stop_password_changes() {
    let site = Site::start(Database::sqlite()).await;
    let (_, token) = site.employee("ada@example.com").await;
    for _ in 0..10 {
        let body = json!({"old": "wrong password", "new": "a-new-password"});
        site.employee.post("/me/password", body).token(&token).refused("4000").await;
    }
    let right = json!({"old": PASSWORD, "new": "a-new-password"});
    site.employee.post("/me/password", right).token(&token).refused("4290").await;
}
