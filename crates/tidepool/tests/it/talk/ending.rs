//! Sockets end with the login or the binding that they were opened by, on every replica, and within a second. In this process only
//! notices end them (see `Site`), whenever they come; that it takes no longer than a second is measured alone.

use std::time::Duration;

use serde_json::json;
use sim::assistant::{Assistant, Options as Assistance};

use crate::kit::talk::{Client, Closed, Talk, ticket};
use crate::kit::{Database, PASSWORD, Process};

fn session_ended() -> Closed {
    Closed(1008, "the session ended".into())
}

fn not_yours() -> Closed {
    Closed(1008, "the instance is not yours".into())
}

async fn cases(database: Database) {
    let mut talk = Talk::start(database).await;
    let user = format!("/users/{}", talk.user);
    let mut client = talk.connect().await;
    client.send("run-1", "count 100000").await;
    let site = &talk.site;
    site.admin.patch(&user, json!({"name": "Ada"})).token(&site.root).ok().await;
    // A look that ends nothing leaves no trace to wait for: a while must do.
    assert!(
        tokio::time::timeout(Duration::from_millis(400), client.closed()).await.is_err(),
        "a new name ends nothing"
    );
    site.admin.patch(&user, json!({"status": "revoked"})).token(&site.root).ok().await;
    assert_eq!(client.closed().await, session_ended());
    site.admin.patch(&user, json!({"status": "active"})).token(&site.root).ok().await;
    site.admin.patch(&user, json!({"password": PASSWORD})).token(&site.root).ok().await;
    let login = |who: &'static str| site.employee_login(who);

    // One of two logins ends: the other's socket stays.
    let (one, two) = (login("ada@example.com").await, login("ada@example.com").await);
    let open = async |token: &str| {
        let ticket = ticket(&site.employee, token, "a0").await;
        let mut client = Client::open(&site.employee, "a0", &ticket, &[]).await.unwrap();
        client.event("relay.hello").await;
        client
    };
    let (mut first, mut second) = (open(&one).await, open(&two).await);
    site.employee.post("/auth/logout", json!({})).token(&one).ok().await;
    assert_eq!(first.closed().await, session_ended());
    second.request("sessions.list", json!({})).await.unwrap();
    let old = json!({"old": PASSWORD, "new": "another-password"});
    let fresh = site.employee.post("/me/password", old).token(&two).ok().await["token"].as_str().unwrap().to_owned();
    assert_eq!(second.closed().await, session_ended());

    let mut client = open(&fresh).await;
    site.admin.patch("/instances/a0/assign", json!({"user_id": null})).token(&site.root).ok().await;
    assert_eq!(client.closed().await, not_yours());
    site.admin.patch("/instances/a0/assign", json!({"user_id": talk.user})).token(&site.root).ok().await;
    let mut client = open(&fresh).await;
    site.admin.delete("/assistant-instances/a0").token(&site.root).ok().await;
    assert_eq!(client.closed().await, not_yours());
    testkit::until("nothing is open", async || site.app.sockets.count() == 0 && talk.assistant.connections() == 0)
        .await;
    talk.assistant.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sockets_end_with_login_and_binding_sqlite() {
    cases(Database::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sockets_end_with_login_and_binding_postgres() {
    if let Some(database) = Database::postgres(module_path!()).await {
        cases(database).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_runs_out_takes_its_socket_along() {
    let talk = Talk::start(Database::sqlite()).await;
    let mut client = talk.connect().await;
    talk.site.wait(Duration::from_secs(12 * 3600 + 1));
    // Something makes it look; by itself it does within fifteen seconds.
    let patch = json!({"notes": "looked at"});
    talk.site
        .admin
        .patch("/assistant-instances/a0", patch)
        .token(&talk.site.admin_login("root@example.com").await)
        .ok()
        .await;
    assert_eq!(client.closed().await, session_ended());
}

/// Two processes of the real binary on one PostgreSQL: what is asked of one holds on the other.
#[tokio::test(flavor = "multi_thread")]
async fn alone_sockets_of_another_replica_end_within_a_second() {
    let Some(database) = Database::postgres(module_path!()).await else { return };
    let folder = tempfile::tempdir().unwrap();
    let environment = [
        ("TIDEPOOL_DATABASE_URL", database.url.expose()),
        ("TIDEPOOL_BOOTSTRAP_ADMIN_EMAIL", "root@example.com"),
        ("TIDEPOOL_BOOTSTRAP_ADMIN_PASSWORD", PASSWORD),
    ];
    let mut one = Process::serve(folder.path(), &environment);
    one.ready().await;
    // Without a worker: it is the employee side that hears the notices.
    let mut two = Process::serve(folder.path(), &[&environment[..], &[("TIDEPOOL_ROLES", "employee,admin")]].concat());
    two.ready().await;
    let assistant = Assistant::start(Assistance::new("a-gateway-token-of-its-own")).await.unwrap();
    let login = json!({"email": "root@example.com", "password": PASSWORD});
    let root = one.admin.post("/auth/login", login).ok().await["token"].as_str().unwrap().to_owned();
    let admin = |path: &str, body| one.admin.post(path, body).token(&root);
    admin("/servers", json!({"id": "here", "name": "Here", "host": "local"})).ok().await;
    let instance = json!({"id": "a0", "name": "A", "server_id": "here", "gateway_port": assistant.port, "gateway_token": "a-gateway-token-of-its-own"});
    admin("/assistant-instances", instance).ok().await;
    let ada = admin("/users", json!({"email": "ada@example.com", "password": PASSWORD})).ok().await["id"]
        .as_str()
        .unwrap()
        .to_owned();
    one.admin.patch("/instances/a0/assign", json!({"user_id": ada})).token(&root).ok().await;
    let login = async || {
        let body = json!({"email": "ada@example.com", "password": PASSWORD});
        one.employee.post("/auth/login", body).ok().await["token"].as_str().unwrap().to_owned()
    };
    // A ticket of the one opens a socket of the other.
    let open = async |token: &str| {
        let ticket = ticket(&one.employee, token, "a0").await;
        let mut client = Client::open(&two.employee, "a0", &ticket, &[]).await.unwrap();
        client.event("relay.hello").await;
        client
    };
    let token = login().await;
    let mut client = open(&token).await;
    one.employee.post("/auth/logout", json!({})).token(&token).ok().await;
    assert_eq!(client.closed_within_a_second().await, session_ended());
    let token = login().await;
    let mut client = open(&token).await;
    one.admin.patch("/instances/a0/assign", json!({"user_id": null})).token(&root).ok().await;
    assert_eq!(client.closed_within_a_second().await, not_yours());
    one.admin.patch("/instances/a0/assign", json!({"user_id": ada})).token(&root).ok().await;
    let mut client = open(&token).await;
    one.admin.delete(&format!("/users/{ada}")).token(&root).ok().await;
    assert_eq!(client.closed_within_a_second().await, session_ended());
    // A process that stops says so.
    one.admin.patch(&format!("/users/{ada}"), json!({"status": "active"})).token(&root).ok().await;
    let token = login().await;
    let mut client = open(&token).await;
    two.terminate();
    assert_eq!(client.closed_within_a_second().await, Closed(1012, "the platform is restarting".into()));
    let (status, _) = two.end();
    assert!(status.success());
}
