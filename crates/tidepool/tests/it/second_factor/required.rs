//! Who must have a second factor, and who is asked for it after single sign-on.

use people::second_factor::Policy;
use serde_json::json;

use super::{ADA, Side, recovery_codes, text};
use crate::kit::{Database, Options, PASSWORD, Site, used_secret};

fn required(roles: &[&str]) -> Options {
    let required = roles.iter().map(|role| (*role).to_owned()).collect();
    Options { mfa: Policy { required, after_sso: false }, ..Options::default() }
}

/// Whoever must have a second factor and has none sets it up before the first session, and keeps it.
async fn whoever_must_have_one_sets_it_up_first(database: Database) {
    let site = Site::with(database, required(&["employee", "admin"])).await;
    let body = json!({"email": "plain@example.com", "name": "Plain", "role": "admin", "password": PASSWORD});
    site.admin.post("/admin-users", body).token(&site.root).ok().await;
    site.user(ADA).await;
    let root = site.admin.get("/auth/me").token(&site.root).ok().await;
    assert_eq!((&root["mfa_enabled"], &root["mfa_required"]), (&json!(false), &json!(false)), "a super_admin need not");
    for side in [Side::employee(&site), Side { email: "plain@example.com", ..Side::admin(&site) }] {
        let answer = side.password().await;
        assert_eq!((&answer["mfa_required"], &answer["mfa_enrolment"]), (&json!(true), &json!(true)), "{answer}");
        assert!(answer.get("token").is_none(), "{answer}");
        let step = text(&answer["mfa_token"]);
        used_secret(&step);
        side.origin.get(side.me).token(&step).refused("4010").await;
        side.show(&step, "000000").await.refused("4090");
        let enrolment = "/auth/mfa/enrolment";
        let confirm = "/auth/mfa/enrolment/confirm";
        side.origin.post(confirm, json!({"mfa_token": step, "code": "000000"})).refused("4090").await;
        side.origin.post(enrolment, json!({"mfa_token": "rubbish"})).refused("4010").await;
        let begun = side.origin.post(enrolment, json!({"mfa_token": step})).ok().await;
        let secret = text(&begun["secret"]);
        used_secret(&secret);
        side.origin.post(confirm, json!({"mfa_token": step, "code": "000000"})).refused("4012").await;
        // A second login begins with the password again, and is led to the same place.
        let other_step = text(&side.password().await["mfa_token"]);
        let code = side.code(&secret);
        let enrolled = side.origin.post(confirm, json!({"mfa_token": step, "code": code})).ok().await;
        recovery_codes(&enrolled);
        let token = text(&enrolled["token"]);
        let me = side.account(&token).await;
        assert_eq!((&me["mfa_enabled"], &me["mfa_required"]), (&json!(true), &json!(true)), "{me}");
        // Whoever knows the password alone cannot put another in its place.
        side.origin.post(enrolment, json!({"mfa_token": other_step})).refused("4010").await;
        let step = side.step().await;
        side.origin.post(enrolment, json!({"mfa_token": step})).refused("4090").await;
        side.origin.post(confirm, json!({"mfa_token": step, "code": side.next_code(&secret)})).refused("4090").await;
        side.show(&step, &side.code(&secret)).await.ok();
        let off = json!({"password": PASSWORD, "code": side.next_code(&secret)});
        let message = side.post(&token, "/mfa/disable", off).await.refused("4090");
        assert!(message.contains("required"), "{message}");
        // Another app can take its place all the same.
        let proof = json!({"password": PASSWORD, "code": side.next_code(&secret)});
        let second = text(&side.post(&token, "/mfa", proof).await.ok()["secret"]);
        used_secret(&second);
        side.post(&token, "/mfa/confirm", json!({"code": side.code(&second)})).await.ok();
    }
    site.check().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_must_have_one_sets_it_up_first_sqlite() {
    whoever_must_have_one_sets_it_up_first(Database::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_must_have_one_sets_it_up_first_postgres() {
    if let Some(database) = Database::postgres("second_factor::required").await {
        whoever_must_have_one_sets_it_up_first(database).await;
    }
}

/// What an identity provider vouches for is enough, unless the setting says otherwise.
#[tokio::test(flavor = "multi_thread")]
async fn after_single_sign_on_the_provider_is_responsible_unless_the_setting_says_otherwise() {
    let identity = |email: &str| remote::sso::Identity {
        id: format!("https://idp.example.com|{email}"),
        email: Some(email.parse().unwrap()),
        email_verified: true,
        name: None,
        claims: Default::default(),
    };
    let by = queue::audit::By::default();
    for after_sso in [false, true] {
        let options = Options {
            mfa: Policy { required: vec!["employee".into(), "admin".into()], after_sso },
            ..Options::default()
        };
        let site = Site::with(Database::sqlite(), options).await;
        site.user(ADA).await;
        let new = json!({"email": "plain@example.com", "role": "admin"});
        site.admin.post("/admin-users", new).token(&site.root).ok().await;
        let employee = people::sso::employee(&site.app, identity(ADA)).await.unwrap();
        let admin = people::sso::admin(&site.app, &by, Ok(identity("plain@example.com"))).await.unwrap();
        match after_sso {
            false => {
                let people::login::Outcome::Opened(opened) = employee else { panic!("asked for a second factor") };
                let token = opened.token.expose().to_owned();
                assert_eq!(
                    site.employee.get("/me").token(&token).ok().await["mfa_required"],
                    true,
                    "by password it is"
                );
                let people::login::Outcome::Opened(opened) = admin else { panic!("asked for a second factor") };
                let token = opened.token.expose().to_owned();
                let me = site.admin.get("/auth/me").token(&token).ok().await;
                assert_eq!(me["mfa_required"], false, "an account without a password is the provider's to ask");
                site.admin.post("/auth/me/mfa", json!({})).token(&token).refused("4090").await;
            }
            true => {
                let people::login::Outcome::SecondFactor(challenge) = employee else { panic!("a session") };
                let step = challenge.token.expose().to_owned();
                let begun = site.employee.post("/auth/mfa/enrolment", json!({"mfa_token": step})).ok().await;
                let secret = text(&begun["secret"]);
                used_secret(&secret);
                let code = Side::employee(&site).code(&secret);
                let confirm = json!({"mfa_token": step, "code": code});
                let enrolled = site.employee.post("/auth/mfa/enrolment/confirm", confirm).ok().await;
                recovery_codes(&enrolled);
                site.employee.get("/me").token(&text(&enrolled["token"])).ok().await;
                let people::login::Outcome::SecondFactor(challenge) = admin else { panic!("a session") };
                assert!(challenge.enrolment);
            }
        }
        site.check().await;
    }
}
