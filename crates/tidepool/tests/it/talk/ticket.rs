//! Tickets: for one's own instance, once, for half a minute, from our own pages.

use std::time::Duration;

use serde_json::json;

use crate::kit::Database;
use crate::kit::talk::{Client, Closed, Talk, ticket};

async fn open(talk: &Talk, instance: &str, ticket: &str, headers: &[(&'static str, &str)]) -> Result<Client, u16> {
    Client::open(&talk.site.employee, instance, ticket, headers).await
}

async fn cases(database: Database) {
    let talk = Talk::start(database).await;
    let site = &talk.site;
    let shown = talk.ticket().await;
    open(&talk, "a0", &shown, &[]).await.unwrap();
    assert_eq!(open(&talk, "a0", &shown, &[]).await.err(), Some(401), "used");
    for bad in ["", "rubbish", "%00", &"x".repeat(5000)] {
        assert!(matches!(open(&talk, "a0", bad, &[]).await.err(), Some(400 | 401)), "{bad}");
    }
    let late = talk.ticket().await;
    site.wait(Duration::from_secs(31));
    assert_eq!(open(&talk, "a0", &late, &[]).await.err(), Some(401), "too late");
    // Of many at one moment, one gets in.
    let one = talk.ticket().await;
    let racing = (0..10).map(|_| open(&talk, "a0", &one, &[]));
    let won = futures_util::future::join_all(racing).await.into_iter().filter(Result::is_ok).count();
    assert_eq!(won, 1);
    // Not for another's instance, and not for another instance than it was given for.
    let (bob, bobs) = site.quick_employee("bob@example.com").await;
    site.employee.post("/me/instances/a0/ws-ticket", json!({})).token(&bobs).refused("4040").await;
    site.admin
        .post("/assistant-instances", json!({"id": "b0", "name": "B", "server_id": "here"}))
        .token(&site.root)
        .ok()
        .await;
    site.admin.patch("/instances/b0/assign", json!({"user_id": bob})).token(&site.root).ok().await;
    let for_b = ticket(&site.employee, &bobs, "b0").await;
    assert_eq!(open(&talk, "a0", &for_b, &[]).await.err(), Some(401));
    assert_eq!(open(&talk, "b0", &for_b, &[]).await.err(), Some(401), "spent on the wrong door");
    // A login that ended between the two.
    let ended = talk.ticket().await;
    site.employee.post("/auth/logout", json!({})).token(&talk.token).ok().await;
    assert_eq!(open(&talk, "a0", &ended, &[]).await.err(), Some(401));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ticket_is_good_once_sqlite() {
    cases(Database::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ticket_is_good_once_postgres() {
    if let Some(database) = Database::postgres(module_path!()).await {
        cases(database).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_others_are_refused() {
    let talk = Talk::start(Database::sqlite()).await;
    let host = talk.site.employee.url.clone();
    for bad in ["https://evil.example", "null", "http://127.0.0.1:1", "http://127.0.0.1"] {
        let ticket = talk.ticket().await;
        let mut refused = open(&talk, "a0", &ticket, &[("origin", bad)]).await.expect("let in, to be told why not");
        assert_eq!(refused.closed().await, Closed(1008, "origin not allowed".into()), "{bad}");
        open(&talk, "a0", &ticket, &[("origin", &host)]).await.expect("the ticket is not spent");
    }
    // By plain HTTP: what a page asks to learn why its socket did not open.
    let path = "/me/instances/a0/ws";
    talk.site.employee.get(path).refused("4010").await;
    talk.site.employee.get(path).header("origin", "https://evil.example").refused("4030").await;
    let ticket = talk.ticket().await;
    talk.site.employee.get(&format!("{path}?ticket={ticket}")).refused("4000").await;
    assert_eq!(open(&talk, "a0", &ticket, &[]).await.err(), Some(401), "it stood in a log: it is spent");
}
