//! Chat messages of an employee: saved once, recognised when the platform stored them itself, found again, exported.

use std::time::Duration;

use base::id::{InstanceId, MessageId, UserId};
use serde_json::{Value, json};
use store::chat_message::{self, ChatMessage, Role, Unconfirmed};

use crate::kit::Site;
use crate::on_both;

/// Ada with a0 of two instances; answers her id and token.
async fn ada(site: &Site) -> (String, String) {
    site.instances("a", 2).await;
    let (user, token) = site.quick_employee("ada@example.com").await;
    site.admin.patch("/instances/a0/assign", json!({"user_id": user})).token(&site.root).ok().await;
    (user, token)
}

async fn save(site: &Site, token: &str, more: Value) -> crate::kit::Reply {
    let mut body = json!({"instance_id": "a0", "role": "user", "content": "Hello"});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    site.employee.post("/me/chat/save", body).token(token).send().await
}

async fn history(site: &Site, token: &str, query: &str) -> Value {
    site.employee.get(&format!("/me/chat/history{query}")).token(token).ok().await
}

fn words(history: &Value) -> Vec<&str> {
    history["messages"].as_array().unwrap().iter().map(|m| m["content"].as_str().unwrap()).collect()
}

on_both! {
    async fn a_save_is_refused_in_the_words_of_the_interface(site: Site) {
        let (_, ada) = ada(site).await;
        assert_eq!(save(site, &ada, json!({})).await.ok(), Value::Null);
        for bad in [
            json!({"role": "system"}), json!({"role": null}), json!({"content": ""}), json!({"content": " \n"}), json!({"content": 7}),
            json!({"content": "\0"}), json!({"tokens": -1}), json!({"tokens": 1.5}), json!({"tokens": "7"}), json!({"client_id": "not-a-uuid"}),
            json!({"instance_id": null}), json!({"instance_id": ""}), json!({"session_key": "x".repeat(201)}),
        ] {
            assert_eq!(save(site, &ada, bad.clone()).await.refused("4000"), "bad request", "{bad}");
        }
        let long = "x".repeat(256 * 1024 + 1);
        assert_eq!(save(site, &ada, json!({"content": long})).await.refused("4000"), "bad request", "too long");
        for body in ["", "{", "[]", "{} {}", "null"] {
            let call = site.employee.call(reqwest::Method::POST, "/me/chat/save").body("application/json", body).token(&ada);
            assert_eq!(call.refused("4000").await, "bad request");
        }
        let call = site.employee.call(reqwest::Method::POST, "/me/chat/save").body("text/plain", "{}").token(&ada);
        assert_eq!(call.refused("4000").await, "bad request");
        for other in ["a1", "nothing", "A0"] {
            assert_eq!(save(site, &ada, json!({"instance_id": other})).await.refused("4030"), "no access");
        }
        let (_, bob) = site.quick_employee("bob@example.com").await;
        assert_eq!(save(site, &bob, json!({})).await.refused("4030"), "no access");
        assert_eq!(history(site, &ada, "").await["total"], 1);
        assert_eq!(history(site, &bob, "").await["total"], 0);
        // A database that cannot take it.
        site.app.db.run("ALTER TABLE chat_message RENAME TO chat_message_away", vec![]).await.unwrap();
        assert_eq!(save(site, &ada, json!({})).await.refused("5001"), "save failed");
        site.app.db.run("ALTER TABLE chat_message_away RENAME TO chat_message", vec![]).await.unwrap();
        site.admin.patch("/instances/a0/assign", json!({"user_id": null})).token(&site.root).ok().await;
        assert_eq!(save(site, &ada, json!({})).await.refused("4030"), "no access");
        assert_eq!(history(site, &ada, "").await["total"], 1, "one's own words stay one's own");
    }

    async fn a_repeat_under_the_same_client_id_is_harmless(site: Site) {
        let (_, ada) = ada(site).await;
        let id = "018f3f5e-0000-7000-8000-00000000000A";
        let racing = (0..12).map(|_| save(site, &ada, json!({"client_id": id, "content": "once"})));
        for reply in futures_util::future::join_all(racing).await {
            reply.ok();
        }
        save(site, &ada, json!({"client_id": id.to_lowercase(), "content": "once, again"})).await.ok();
        assert_eq!(words(&history(site, &ada, "").await), ["once"]);
        save(site, &ada, json!({"content": "once"})).await.ok();
        assert_eq!(history(site, &ada, "").await["total"], 2, "without an id each one counts");
    }

    async fn what_the_platform_stored_itself_is_recognised_once(site: Site) {
        let (user, ada) = ada(site).await;
        let stored = |role, content: &str| ChatMessage {
            id: MessageId::fresh(), user_id: UserId::named(&user), instance_id: InstanceId::named("a0"), role, content: content.into(), tokens: 4,
            session_key: String::new(), client_id: None, unconfirmed: Unconfirmed::Stored, created_at: site.app.clock.now(),
        };
        let mut tx = site.app.db.begin().await.unwrap();
        for message in [stored(Role::User, "Hello"), stored(Role::User, "Hello"), stored(Role::Assistant, "Hello"), stored(Role::User, "late")] {
            chat_message::insert(&mut tx, &message).await.unwrap();
        }
        tx.commit().await.unwrap();
        let client_id = uuid();
        for _ in 0..2 {
            save(site, &ada, json!({"client_id": client_id, "session_key": "s"})).await.ok();
        }
        assert_eq!(history(site, &ada, "").await["total"], 4);
        assert_eq!(history(site, &ada, "?session_key=s").await["total"], 1, "it takes over what the client knows");
        save(site, &ada, json!({})).await.ok();
        assert_eq!(history(site, &ada, "").await["total"], 4, "the second of the two");
        save(site, &ada, json!({"role": "assistant", "tokens": 9})).await.ok();
        let all = history(site, &ada, "").await;
        let reply = all["messages"].as_array().unwrap().iter().find(|m| m["role"] == "assistant").unwrap();
        assert_eq!((&all["total"], &reply["tokens"]), (&json!(4), &json!(4)), "the server's own count stays");
        save(site, &ada, json!({})).await.ok();
        assert_eq!(history(site, &ada, "").await["total"], 5, "both were recognised already");
        site.wait(Duration::from_secs(601));
        save(site, &ada, json!({"content": "late"})).await.ok();
        assert_eq!(history(site, &ada, "").await["total"], 6, "ten minutes are over");
    }

    async fn history_is_paged_searched_and_exported(site: Site) {
        let (_, ada) = ada(site).await;
        for i in 0..25 {
            let session = if i % 2 == 0 { "even" } else { "odd" };
            let role = if i % 2 == 0 { "user" } else { "assistant" };
            save(site, &ada, json!({"content": format!("Message {i} *50%_ Ärger"), "role": role, "session_key": session})).await.ok();
            // Some in the same millisecond.
            if i % 3 == 0 {
                site.wait(Duration::from_millis(1));
            }
        }
        let first = history(site, &ada, "?instance_id=a0").await;
        assert_eq!((&first["total"], &first["page"], &first["size"]), (&json!(25), &json!(1), &json!(20)));
        assert_eq!((words(&first)[0], words(&first).len()), ("Message 24 *50%_ Ärger", 20));
        let second = history(site, &ada, "?page=2&size=10").await;
        assert_eq!((words(&second)[0], &second["page"]), ("Message 14 *50%_ Ärger", &json!(2)));
        assert_eq!(history(site, &ada, "?size=10&page=2").await, site.employee.get("/me/history?size=10&page=2").token(&ada).ok().await);
        // From one to the next by its id: nothing twice, nothing lost, also while messages come in.
        let (mut seen, mut before) = (vec![], String::new());
        loop {
            let page = history(site, &ada, &format!("?size=7{before}")).await;
            let list = page["messages"].as_array().unwrap();
            let Some(last) = list.last() else { break };
            seen.extend(words(&page).iter().map(|w| (*w).to_owned()));
            assert_eq!(page["total"].as_u64().unwrap() as usize, 25 - seen.len() + list.len());
            before = format!("&before={}", last["id"].as_str().unwrap());
        }
        let expected: Vec<String> = (0..25).rev().map(|i| format!("Message {i} *50%_ Ärger")).collect();
        assert_eq!(seen, expected);
        assert_eq!(history(site, &ada, "?session_key=odd").await["total"], 12);
        let listed = site.employee.get("/me/chat/conversations?instance_id=a0").token(&ada).ok().await;
        let one = |n: usize| (listed["list"][n]["session_key"].as_str().unwrap(), listed["list"][n]["messages"].as_i64().unwrap());
        assert_eq!((listed["total"].as_i64(), one(0), one(1)), (Some(2), ("even", 13), ("odd", 12)), "the last used first");
        assert_eq!(listed["list"][0]["last_message_at"], first["messages"][0]["created_at"]);
        assert_eq!(site.employee.get("/me/chat/conversations?size=1&page=2").token(&ada).ok().await["list"][0]["session_key"], "odd");
        for (q, found) in [("message%2024", 1), ("MESSAGE%202", 6), ("%C3%A4RGER", 25), ("50%25_", 25), ("*5", 25), ("5?%25", 0), ("nowhere", 0)] {
            assert_eq!(history(site, &ada, &format!("?q={q}")).await["total"], found, "{q}");
        }
        assert_eq!(history(site, &ada, "?instance_id=a1").await["total"], 0);
        let (_, bob) = site.quick_employee("bob@example.com").await;
        assert_eq!(site.employee.get("/me/chat/conversations").token(&bob).ok().await["total"], 0);
        let one = first["messages"][0]["id"].as_str().unwrap();
        site.employee.get(&format!("/me/chat/history?before={one}")).token(&bob).refused("4040").await;
        assert_eq!(history(site, &bob, "?instance_id=a0").await["total"], 0);
        for bad in ["?page=0", "?size=-1", "?page=x"] {
            site.employee.get(&format!("/me/chat/history{bad}")).token(&ada).refused("4000").await;
        }

        let export = |query: &str| {
            let url = format!("{}/api/v1/me/chat/export{query}", site.employee.url);
            site.employee.http.get(url).bearer_auth(&ada).send()
        };
        let file = export("").await.unwrap();
        assert_eq!(file.headers()["content-disposition"], "attachment; filename=\"messages.json\"");
        let file: Value = file.json().await.unwrap();
        let mut oldest_first: Vec<&str> = words(&file);
        oldest_first.reverse();
        assert_eq!(oldest_first, seen);
        let text = export("?format=markdown&session_key=even&instance_id=a0").await.unwrap().text().await.unwrap();
        assert_eq!(text.matches("## You · ").count(), 13);
        assert!(text.starts_with("## You · ") && text.contains("\n\nMessage 24 *50%_ Ärger\n"), "{text}");
        assert_eq!(export("?instance_id=none").await.unwrap().json::<Value>().await.unwrap(), json!({"messages": []}));
        site.employee.get("/me/chat/export?format=pdf").token(&ada).refused("4000").await;
    }

    async fn saves_keep_an_instance_at_five_thousand(site: Site) {
        let (user, ada) = ada(site).await;
        let mut tx = site.app.db.begin().await.unwrap();
        for i in 0..chat_message::KEPT {
            let message = ChatMessage {
                id: MessageId::fresh(), user_id: UserId::named(&user), instance_id: InstanceId::named("a0"), role: Role::User, content: format!("old {i}"), tokens: 0,
                session_key: String::new(), client_id: None, unconfirmed: Unconfirmed::No, created_at: site.app.clock.now(),
            };
            chat_message::insert_unchecked(&mut tx, &message).await.unwrap();
        }
        tx.commit().await.unwrap();
        site.wait(Duration::from_secs(1));
        for i in 0..3 {
            save(site, &ada, json!({"content": format!("new {i}")})).await.ok();
        }
        let all = history(site, &ada, "?size=3").await;
        assert_eq!((&all["total"], words(&all)), (&json!(5000), vec!["new 2", "new 1", "new 0"]));
        assert_eq!(words(&history(site, &ada, "?size=1&page=5000").await), ["old 3"]);
        // The next holder's messages push out none of them.
        let (bob_id, bob) = site.quick_employee("bob@example.com").await;
        site.admin.patch("/instances/a0/assign", json!({"user_id": null})).token(&site.root).ok().await;
        site.admin.patch("/instances/a0/assign", json!({"user_id": bob_id})).token(&site.root).ok().await;
        for i in 0..3 {
            save(site, &bob, json!({"content": format!("of bob {i}")})).await.ok();
        }
        assert_eq!(history(site, &ada, "?size=1").await["total"], 5000);
        assert_eq!(history(site, &bob, "?size=1").await["total"], 3);
    }
}

fn uuid() -> String {
    base::id::fresh()
}
