//! The second factor over HTTP, on both sides: setting it up, showing it, losing it, being required to have it.

mod required;

use std::time::Duration;

use base::{Secret, totp};
use serde_json::{Value, json};

use crate::kit::{Database, Origin, PASSWORD, Process, Reply, Site, database_before, run, used_secret};
use crate::on_both;

const ADA: &str = "ada@example.com";
const ROOT: &str = "root@example.com";

/// One of the two sides: where its operations on the own account are.
struct Side<'a> {
    site: &'a Site,
    origin: &'a Origin,
    email: &'static str,
    /// `/me` or `/auth/me`.
    me: &'static str,
}

impl<'a> Side<'a> {
    fn employee(site: &'a Site) -> Side<'a> {
        Side { site, origin: &site.employee, email: ADA, me: "/me" }
    }

    fn admin(site: &'a Site) -> Side<'a> {
        Side { site, origin: &site.admin, email: ROOT, me: "/auth/me" }
    }

    /// Both, with an employee made.
    async fn both(site: &'a Site) -> [Side<'a>; 2] {
        site.user(ADA).await;
        [Side::employee(site), Side::admin(site)]
    }

    async fn password(&self) -> Value {
        self.origin.post("/auth/login", json!({"email": self.email, "password": PASSWORD})).ok().await
    }

    /// The token between a right password and the code.
    async fn step(&self) -> String {
        let answer = self.password().await;
        assert_eq!(answer["mfa_required"], true, "{answer}");
        assert!(answer.get("token").is_none(), "no session before the second factor: {answer}");
        text(&answer["mfa_token"])
    }

    async fn show(&self, step: &str, code: &str) -> Reply {
        self.origin.post("/auth/mfa", json!({"mfa_token": step, "code": code})).send().await
    }

    async fn post(&self, token: &str, path: &str, body: Value) -> Reply {
        self.origin.post(&format!("{}{path}", self.me), body).token(token).send().await
    }

    async fn account(&self, token: &str) -> Value {
        self.origin.get(self.me).token(token).ok().await
    }

    fn code(&self, secret: &str) -> String {
        let now = self.site.app.clock.now();
        totp::code(&Secret::new(secret), totp::step(now)).unwrap()
    }

    /// A code that is good now and has not been used.
    fn next_code(&self, secret: &str) -> String {
        self.site.wait(Duration::from_secs(90));
        self.code(secret)
    }

    /// Signs in by password alone and sets a second factor up; answers the token, the secret and the recovery codes.
    async fn enrol(&self) -> (String, String, Vec<String>) {
        let token = text(&self.password().await["token"]);
        let begun = self.post(&token, "/mfa", json!({"password": PASSWORD})).await.ok();
        let secret = text(&begun["secret"]);
        used_secret(&secret);
        assert!(text(&begun["otpauth_uri"]).contains(&secret), "{begun}");
        let enrolled = self.post(&token, "/mfa/confirm", json!({"code": self.code(&secret)})).await.ok();
        let codes = recovery_codes(&enrolled);
        (text(&enrolled["token"]), secret, codes)
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

fn recovery_codes(answer: &Value) -> Vec<String> {
    let codes: Vec<String> = answer["recovery_codes"].as_array().unwrap().iter().map(text).collect();
    assert_eq!(codes.len(), 10);
    codes.iter().for_each(|code| used_secret(code));
    codes
}

async fn audited(site: &Site, query: &str) -> Vec<(String, String, String)> {
    let found = site.admin.get(&format!("/audit-logs?{query}")).token(&site.admin_token().await).ok().await;
    let entries = found["list"].as_array().unwrap();
    entries.iter().map(|e| (text(&e["operator"]), text(&e["level"]), text(&e["detail"]))).collect()
}

trait AdminToken {
    async fn admin_token(&self) -> String;
}

impl AdminToken for Site {
    /// A token of the first super_admin that no change of its second factor has ended.
    async fn admin_token(&self) -> String {
        let root = store::admin_user::find_by_email(&self.app.db, ROOT).await.unwrap().unwrap();
        people::session::admin_token(&self.app, &root, self.app.clock.now()).unwrap().expose().to_owned()
    }
}

on_both! {
    async fn a_login_needs_the_code_once_it_is_set_up(site: Site) {
        for side in Side::both(site).await {
            let before = side.password().await;
            assert!(before.get("mfa_required").is_none(), "without a second factor the answer is as ever: {before}");
            let old_token = text(&before["token"]);
            let (token, secret, codes) = side.enrol().await;
            side.origin.get(side.me).token(&old_token).refused("4010").await;
            let me = side.account(&token).await;
            assert_eq!((&me["mfa_enabled"], &me["mfa_required"], &me["recovery_codes_left"]), (&json!(true), &json!(false), &json!(10)), "{me}");

            let step = side.step().await;
            used_secret(&step);
            // The step token opens nothing but the code's own operation, and no session passes for one.
            side.origin.get(side.me).token(&step).refused("4010").await;
            side.show(&token, &side.code(&secret)).await.refused("4010");
            let other = if side.me == "/me" { &site.admin } else { &site.employee };
            other.post("/auth/mfa", json!({"mfa_token": step, "code": "000000"})).refused("4010").await;
            side.show(&step, "000000").await.refused("4012");
            side.show(&step, "").await.refused("4012");
            let opened = side.show(&step, &side.next_code(&secret)).await.ok();
            assert_eq!(opened["email"], side.email);
            side.account(&text(&opened["token"])).await;
            // One login, one session.
            side.show(&step, &side.next_code(&secret)).await.refused("4010");
            assert_eq!(codes.len(), 10);
        }
        let logins = audited(site, "action=auth.login&level=INFO&target=root@example.com").await;
        assert_eq!(logins[0].2, "password and second factor", "{logins:?}");
        let wrong = audited(site, "action=auth.login&level=WARN&target=root@example.com").await;
        assert_eq!(wrong[0], (ROOT.into(), "WARN".into(), "login refused: wrong code".into()));
        let employees = audited(site, "action=auth.mfa&target=ada@example.com").await;
        assert_eq!(employees.iter().map(|e| e.2.as_str()).collect::<Vec<_>>(), ["login refused: wrong code", "login refused: wrong code", "second factor set up"]);
        assert!(employees.iter().all(|e| e.0 == "System"), "{employees:?}");
    }

    async fn a_code_is_good_once_and_one_period_early_or_late(site: Site) {
        for side in Side::both(site).await {
            let (_, secret, _) = side.enrol().await;
            // The code that confirmed it is used up too.
            side.show(&side.step().await, &side.code(&secret)).await.refused("4012");
            let code = side.next_code(&secret);
            side.show(&side.step().await, &code).await.ok();
            side.show(&side.step().await, &code).await.refused("4012");
            let now = totp::step(site.app.clock.now());
            let of = |drift: i64| totp::code(&Secret::new(&secret), now + drift).unwrap();
            side.show(&side.step().await, &of(-1)).await.refused("4012");
            side.show(&side.step().await, &of(2)).await.refused("4012");
            side.show(&side.step().await, &of(1)).await.ok();
            let late = side.next_code(&secret);
            site.wait(Duration::from_secs(30));
            side.show(&side.step().await, &late).await.ok();
            // Of many who show the same code at one moment, one gets in.
            let code = side.next_code(&secret);
            let mut steps = vec![];
            for _ in 0..8 {
                steps.push(side.step().await);
            }
            let tries = steps.iter().map(|step| side.show(step, &code));
            let codes: Vec<String> = futures_util::future::join_all(tries).await.into_iter().map(|r| text(&r.json()["code"])).collect();
            assert_eq!(codes.iter().filter(|c| *c == "0000").count(), 1, "{codes:?}");
            site.wait(Duration::from_secs(3600));
        }
    }

    async fn recovery_codes_are_good_once_and_kept_as_hashes(site: Site) {
        for side in Side::both(site).await {
            let (token, secret, codes) = side.enrol().await;
            let spoken = codes[0].to_uppercase().replace('-', " ");
            let opened = side.show(&side.step().await, &spoken).await.ok();
            assert_eq!(side.account(&text(&opened["token"])).await["recovery_codes_left"], 9);
            side.show(&side.step().await, &codes[0]).await.refused("4012");
            let fresh = json!({"password": PASSWORD, "code": side.next_code(&secret)});
            let fresh = recovery_codes(&side.post(&token, "/mfa/recovery-codes", fresh).await.ok());
            side.show(&side.step().await, &codes[1]).await.refused("4012");
            side.show(&side.step().await, &fresh[1]).await.ok();
            site.wait(Duration::from_secs(3600));
        }
        // Neither secrets nor recovery codes are in the database as they are; the traces of the run are searched for them too.
        let rows: Vec<Stored> = site.app.db.all("SELECT account_id, hash AS value FROM recovery_code", vec![]).await.unwrap();
        assert!(rows.len() == 20 && rows.iter().all(|row| row.value.len() == 64), "{rows:?}");
        let rows: Vec<Stored> = site.app.db.all("SELECT account_id, secret AS value FROM second_factor", vec![]).await.unwrap();
        assert!(rows.len() == 2 && rows.iter().all(|row| row.value.contains('.') && row.value.len() > 60), "sealed: {rows:?}");
        let used = audited(site, "action=auth.mfa&level=WARN&q=recovery").await;
        assert!(used.iter().any(|e| e.2 == "recovery code used, 9 left"), "{used:?}");
    }

    async fn ten_wrong_codes_close_the_account_for_the_rest_of_the_window(site: Site) {
        for side in Side::both(site).await {
            let (_, secret, _) = side.enrol().await;
            let step = side.step().await;
            let guesses: Vec<_> = (0..20).map(|_| side.show(&step, "000000")).collect();
            let mut wrong = 0;
            for guess in futures_util::future::join_all(guesses).await {
                wrong += usize::from(guess.json()["code"] == "4012");
            }
            assert_eq!(wrong, 10, "ten are told that they were wrong, the others nothing");
            let closed = side.show(&side.step().await, &side.next_code(&secret)).await;
            assert!(closed.header("retry-after").parse::<u64>().unwrap() <= 300);
            closed.refused("4290");
            site.wait(Duration::from_secs(300));
            // Patience does not help: fifteen in an hour are the most.
            for _ in 0..5 {
                side.show(&side.step().await, "000000").await.refused("4012");
            }
            side.show(&side.step().await, &side.next_code(&secret)).await.refused("4290");
            site.wait(Duration::from_secs(3600));
            side.show(&side.step().await, &side.next_code(&secret)).await.ok();
        }
    }

    async fn it_is_changed_by_password_and_code_only(site: Site) {
        for side in Side::both(site).await {
            let (token, secret, codes) = side.enrol().await;
            for path in ["/mfa", "/mfa/recovery-codes", "/mfa/disable"] {
                for (body, field) in [
                    (json!({}), "password"),
                    (json!({"password": PASSWORD}), "code"),
                    (json!({"password": "not the password", "code": codes[9]}), "password"),
                    (json!({"password": PASSWORD, "code": "000000"}), "code"),
                    (json!({"password": PASSWORD, "code": null}), "code"),
                ] {
                    let message = side.post(&token, path, body).await.refused("4000");
                    assert!(message.starts_with(field), "{path}: {message}");
                }
            }
            site.wait(Duration::from_secs(3600));
            // Another app takes the place of the first one when it is confirmed, not before.
            let token = text(&side.show(&side.step().await, &side.next_code(&secret)).await.ok()["token"]);
            let begun = side.post(&token, "/mfa", json!({"password": PASSWORD, "code": side.next_code(&secret)})).await.ok();
            let second = text(&begun["secret"]);
            used_secret(&second);
            side.show(&side.step().await, &side.next_code(&secret)).await.ok();
            let message = side.post(&token, "/mfa/confirm", json!({"code": "000000"})).await.refused("4000");
            assert!(message.starts_with("code"), "{message}");
            let enrolled = side.post(&token, "/mfa/confirm", json!({"code": side.code(&second)})).await.ok();
            recovery_codes(&enrolled);
            side.show(&side.step().await, &side.next_code(&secret)).await.refused("4012");
            let token = text(&side.show(&side.step().await, &side.next_code(&second)).await.ok()["token"]);
            side.post(&token, "/mfa/disable", json!({"password": PASSWORD, "code": side.next_code(&second)})).await.ok();
            let me = side.account(&token).await;
            assert_eq!((&me["mfa_enabled"], &me["recovery_codes_left"]), (&json!(false), &json!(0)));
            assert!(side.password().await["token"].is_string(), "the password is enough again");
            side.post(&token, "/mfa/disable", json!({"password": PASSWORD, "code": "000000"})).await.refused("4090");
            side.post(&token, "/mfa/confirm", json!({"code": "000000"})).await.refused("4090");
            site.wait(Duration::from_secs(3600));
        }
    }

    async fn what_was_begun_and_left_lapses(site: Site) {
        for side in Side::both(site).await {
            let token = text(&side.password().await["token"]);
            let begun = side.post(&token, "/mfa", json!({"password": PASSWORD})).await.ok();
            used_secret(&text(&begun["secret"]));
            assert!(side.password().await["token"].is_string(), "nothing is asked for before it is confirmed");
            site.wait(Duration::from_secs(1801));
            side.post(&token, "/mfa/confirm", json!({"code": side.code(&text(&begun["secret"]))})).await.refused("4090");
        }
    }

    async fn a_step_ends_with_its_time_a_new_password_and_a_revocation(site: Site) {
        let user = site.user(ADA).await;
        let side = Side::employee(site);
        let (_, secret, _) = side.enrol().await;
        let path = format!("/users/{}", text(&user["id"]));
        let step = side.step().await;
        site.wait(Duration::from_secs(600));
        side.show(&step, &side.next_code(&secret)).await.refused("4010");
        for change in [json!({"password": PASSWORD}), json!({"status": "revoked"})] {
            let step = side.step().await;
            site.admin.patch(&path, change).token(&site.root).ok().await;
            side.show(&step, &side.next_code(&secret)).await.refused("4010");
        }
    }

    /// Both sides: who set it, until it is acknowledged; the second factor stays.
    async fn a_password_that_somebody_else_set_is_shown_until_it_is_acknowledged(site: Site) {
        let user = site.user(ADA).await;
        let plain = site.plain_admin("plain@example.com", "admin").await;
        assert!(site.admin.get("/auth/me").token(&plain).ok().await["password_reset"].is_null());
        let side = Side::employee(site);
        let (_, secret, _) = side.enrol().await;
        let change = json!({"password": PASSWORD});
        site.admin.patch(&format!("/users/{}", text(&user["id"])), change.clone()).token(&plain).ok().await;
        site.admin.patch("/admin-users/plain@example.com", change.clone()).token(&site.root).ok().await;
        let logged = audited(site, "action=user.update&level=WARN").await;
        assert_eq!(logged[0], (ROOT.into(), "WARN".into(), "password changed; no second factor: whoever knows this password can sign in as this person".into()));
        assert_eq!(logged[1], ("plain@example.com".into(), "WARN".into(), "password changed; the second factor stays".into()));

        let token = text(&side.show(&side.step().await, &side.next_code(&secret)).await.ok()["token"]);
        let me = side.account(&token).await;
        assert_eq!((&me["password_reset"]["by"], &me["mfa_enabled"]), (&json!("plain@example.com"), &json!(true)), "{me}");
        assert!(text(&me["password_reset"]["at"]).contains('T'));
        // The own change of the password does not say that the other was seen.
        let changed = json!({"old": PASSWORD, "new": "another-password-2"});
        used_secret("another-password-2");
        let token = text(&site.employee.post("/me/password", changed).token(&token).ok().await["token"]);
        assert_eq!(side.account(&token).await["password_reset"]["by"], "plain@example.com");
        for _ in 0..2 {
            side.post(&token, "/password-reset/acknowledge", json!({})).await.ok();
            assert!(side.account(&token).await["password_reset"].is_null());
        }
        let plain = site.admin_login("plain@example.com").await;
        assert_eq!(site.admin.get("/auth/me").token(&plain).ok().await["password_reset"]["by"], ROOT);
        site.admin.post("/auth/me/password-reset/acknowledge", json!({})).token(&plain).ok().await;
        assert!(site.admin.get("/auth/me").token(&plain).ok().await["password_reset"].is_null());
        let seen = audited(site, "action=user.update&q=acknowledged").await;
        assert_eq!(seen.iter().map(|e| (e.0.as_str(), e.2.as_str())).collect::<Vec<_>>(), [
            ("plain@example.com", "password reset by root@example.com acknowledged"),
            ("System", "password reset by plain@example.com acknowledged"),
        ]);
        // Whoever changes the own account is nobody else.
        site.admin.patch("/admin-users/root@example.com", change).token(&site.root).ok().await;
        let root = site.admin_login(ROOT).await;
        assert!(site.admin.get("/auth/me").token(&root).ok().await["password_reset"].is_null());
    }

    async fn a_moved_master_key_keeps_every_second_factor(site: Site) {
        let side = Side::admin(site);
        let (token, secret, _) = side.enrol().await;
        let begun = side.post(&token, "/mfa", json!({"password": PASSWORD, "code": side.next_code(&secret)})).await.ok();
        let new = store::seal::Sealer::generate().unwrap();
        used_secret(new.expose());
        let moved = store::rekey::run(&site.app.db, "master_key", &site.master, &new).await.unwrap();
        assert_eq!(moved, 2, "the secret in use and the one that is being set up");
        let sealer = store::seal::Sealer::new(&new).unwrap();
        let mut tx = site.app.db.begin().await.unwrap();
        let root = store::admin_user::find_by_email(&mut tx, ROOT).await.unwrap().unwrap();
        let factor = store::second_factor::lock(&mut tx, &root.id).await.unwrap().unwrap();
        assert_eq!(factor.secret(&sealer).unwrap().unwrap().expose(), secret);
        assert_eq!(factor.pending(&sealer).unwrap().unwrap().expose(), text(&begun["secret"]));
    }
}

store::record! {
    #[derive(Debug)]
    struct Stored { account_id: String, value: String }
}

/// The command for whoever has lost app and recovery codes, on a database that the server serves.
#[tokio::test(flavor = "multi_thread")]
async fn reset_mfa_takes_it_away_ends_the_sessions_and_is_on_record() {
    let folder = tempfile::tempdir().unwrap();
    let environment = [
        ("TIDEPOOL_BOOTSTRAP_ADMIN_EMAIL", ROOT),
        ("TIDEPOOL_BOOTSTRAP_ADMIN_PASSWORD", PASSWORD),
        ("TIDEPOOL_MFA_REQUIRED", "super_admin,employee"),
    ];
    let mut server = Process::serve(folder.path(), &environment);
    server.ready().await;
    let sign_in = async |origin: &Origin, email: &str| {
        let login = origin.post("/auth/login", json!({"email": email, "password": PASSWORD})).ok().await;
        assert_eq!(login["mfa_enrolment"], true, "{login}");
        let step = text(&login["mfa_token"]);
        let secret = text(&origin.post("/auth/mfa/enrolment", json!({"mfa_token": step})).ok().await["secret"]);
        used_secret(&secret);
        let code = totp::code(&Secret::new(secret), totp::step(jiff::Timestamp::now())).unwrap();
        let confirm = json!({"mfa_token": step, "code": code});
        let enrolled = origin.post("/auth/mfa/enrolment/confirm", confirm).ok().await;
        recovery_codes(&enrolled);
        text(&enrolled["token"])
    };
    let root = sign_in(&server.admin, ROOT).await;
    server.admin.post("/users", json!({"email": ADA, "password": PASSWORD})).token(&root).ok().await;
    let ada = sign_in(&server.employee, ADA).await;
    let said = |args: &[&str]| {
        let output = run(folder.path(), args, &environment);
        (output.status.success(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    let (good, message) = said(&["admin", "reset-mfa", ADA]);
    assert!(!good && message.contains("there is no administrator ada@example.com"), "{message}");
    let (good, message) = said(&["admin", "reset-mfa", "ADA@example.com", "--employee"]);
    assert!(good && message.contains("ada@example.com has no second factor any more"), "{message}");
    server.employee.get("/me").token(&ada).refused("4010").await;
    sign_in(&server.employee, ADA).await;
    let (good, message) = said(&["admin", "reset-mfa", ROOT]);
    assert!(good, "{message}");
    server.admin.get("/auth/me").token(&root).refused("4010").await;
    let root = sign_in(&server.admin, ROOT).await;
    let entries = server.admin.get("/audit-logs?action=auth.mfa&level=WARN").token(&root).ok().await;
    let entries: Vec<_> =
        entries["list"].as_array().unwrap().iter().map(|e| (text(&e["operator"]), text(&e["target"]))).collect();
    assert_eq!(entries, [("System".into(), ROOT.into()), ("System".into(), ADA.to_owned())]);
}

/// A database of the release before this one, with people and administrators in it.
async fn an_older_database_is_taken_over(database: Database) {
    let db = database_before(17, &database.url).await;
    let mut tx = db.begin().await.unwrap();
    let hash = base::password::hash(&Secret::new(PASSWORD)).unwrap();
    let user = "INSERT INTO users (id, email, email_key, name, department, status, password_hash, created_at) \
        VALUES ('u', 'ada@example.com', 'ada@example.com', 'Ada', '', 'active', ?, 0)";
    tx.run(user, store::args![&hash]).await.unwrap();
    let admin = "INSERT INTO admin_users (id, email, email_key, name, role, status, password_hash, created_at) \
        VALUES ('a', 'root@example.com', 'root@example.com', 'Root', 'super_admin', 'active', ?, 0)";
    tx.run(admin, store::args![&hash]).await.unwrap();
    tx.commit().await.unwrap();
    drop(db);
    let site = Site::start(database).await;
    for side in [Side::employee(&site), Side::admin(&site)] {
        let token = text(&side.password().await["token"]);
        let me = side.account(&token).await;
        assert_eq!((&me["mfa_enabled"], &me["password_reset"]), (&json!(false), &Value::Null), "{me}");
        let (_, secret, _) = side.enrol().await;
        side.show(&side.step().await, &side.next_code(&secret)).await.ok();
    }
    site.check().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_database_is_taken_over_sqlite() {
    an_older_database_is_taken_over(Database::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_database_is_taken_over_postgres() {
    if let Some(database) = Database::postgres("second_factor::older").await {
        an_older_database_is_taken_over(database).await;
    }
}

/// Nothing about a login changes for whoever has no second factor: the same fields in the same order.
#[tokio::test(flavor = "multi_thread")]
async fn without_one_a_login_is_answered_byte_for_byte_as_before() {
    let site = Site::start(Database::sqlite()).await;
    site.user(ADA).await;
    for (side, rest) in [
        (Side::employee(&site), r#""email":"ada@example.com","name":"Somebody"},"msg":"ok"}"#),
        (Side::admin(&site), r#""email":"root@example.com","name":"Administrator","role":"super_admin"},"msg":"ok"}"#),
    ] {
        let reply = side.origin.post("/auth/login", json!({"email": side.email, "password": PASSWORD})).send().await;
        let token = text(&reply.json()["data"]["token"]);
        assert_eq!(reply.text, format!(r#"{{"code":"0000","data":{{"token":"{token}",{rest}"#));
    }
}
