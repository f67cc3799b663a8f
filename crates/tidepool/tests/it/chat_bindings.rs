//! Chat-bots: bound on both sides, one instance per bot, tokens sealed and masked.

use serde_json::json;

use crate::kit::{Database, Site, database_before, used_secret};
use crate::on_both;

on_both! {
    async fn a_bot_belongs_to_one_instance(site: Site) {
        let token = "123456:a-bot-token-of-a-test";
        used_secret(token);
        let ids = site.instances("a", 2).await;
        let bindings = |id: &str| format!("/instances/{id}/chat-bindings");
        let bind = |id: &str, token: &str| site.admin.post(&bindings(id), json!({"bot_token": token, "chat_id": "7"})).token(&site.root);
        let made = bind(&ids[0], token).ok().await;
        assert_eq!((made["platform"].as_str(), made["bot_token"].as_str(), made["is_active"].as_i64()), (Some("telegram"), Some("…test"), Some(1)));
        bind(&ids[1], token).refused("4090").await;
        bind(&ids[0], token).refused("4090").await;
        bind("none", "another-token-1").refused("4040").await;
        for bad in [json!({}), json!({"bot_token": ""}), json!({"bot_token": "x".repeat(256)}), json!({"bot_token": "x", "platform": "p".repeat(21)})] {
            site.admin.post(&bindings(&ids[0]), bad).token(&site.root).refused("4000").await;
        }
        let list = site.admin.get(&bindings(&ids[0])).token(&site.root).ok().await;
        assert_eq!((list["total"].as_i64(), list["list"][0]["bot_token"].as_str()), (Some(1), Some("…test")));
        let path = format!("{}/{}", bindings(&ids[0]), made["id"].as_str().unwrap());
        site.admin.delete(&path.replace("a0", "a1")).token(&site.root).refused("4040").await;
        site.admin.delete(&path).token(&site.root).ok().await;
        site.admin.delete(&path).token(&site.root).refused("4040").await;
        bind(&ids[1], token).ok().await;

        let racing = (0..10).map(|i| tokio::spawn(bind(&ids[i % 2], "one-token-for-all").send()));
        let won = futures_util::future::join_all(racing).await.into_iter().filter(|r| r.as_ref().unwrap().status == 200).count();
        assert_eq!(won, 1);
    }

    async fn employees_bind_bots_to_their_own_instances_only(site: Site) {
        let ids = site.ready_instances("a", 2).await;
        let (_, ada) = site.quick_employee("ada@example.com").await;
        let (_, bob) = site.quick_employee("bob@example.com").await;
        site.employee.post("/me/instances/claim", json!({"instance_id": ids[0]})).token(&ada).ok().await;
        let path = format!("/me/instances/{}/chat-bindings", ids[0]);
        let made = site.employee.post(&path, json!({"bot_token": "ada's-own-bot-token", "bot_username": "ada_bot"})).token(&ada).ok().await;
        let one = format!("{path}/{}", made["id"].as_str().unwrap());
        site.employee.get(&path).token(&bob).refused("4040").await;
        site.employee.post(&path, json!({"bot_token": "bobs-bot-token"})).token(&bob).refused("4040").await;
        site.employee.delete(&one).token(&bob).refused("4040").await;
        assert_eq!(site.employee.get(&path).token(&ada).ok().await["total"], 1);
        let audit = site.admin.get("/audit-logs?action=instance.update").token(&site.root).ok().await;
        assert_eq!((audit["list"][0]["operator"].as_str(), audit["list"][0]["detail"].as_str()), (Some("System"), Some("telegram bot ada_bot bound by ada@example.com")));
        site.employee.delete(&one).token(&ada).ok().await;
        site.employee.post(&path, json!({"bot_token": "ada's-own-bot-token"})).token(&ada).ok().await;
        // Given back, the instance keeps no bot of hers, and the bot is free for another instance.
        site.employee.delete(&format!("/me/instances/{}/claim", ids[0])).token(&ada).ok().await;
        assert_eq!(site.admin.get(&format!("/instances/{}/chat-bindings", ids[0])).token(&site.root).ok().await["total"], 0);
        site.admin.post(&format!("/instances/{}/chat-bindings", ids[1]), json!({"bot_token": "ada's-own-bot-token"})).token(&site.root).ok().await;
    }

    async fn a_bot_does_not_pass_to_the_next_user(site: Site) {
        let ids = site.instances("a", 1).await;
        let (ada, ada_token) = site.quick_employee("ada@example.com").await;
        let (bob, bob_token) = site.quick_employee("bob@example.com").await;
        let assign = |user: serde_json::Value| site.admin.patch("/instances/a0/assign", json!({"user_id": user})).token(&site.root);
        let path = format!("/me/instances/{}/chat-bindings", ids[0]);
        assign(json!(ada)).ok().await;
        site.employee.post(&path, json!({"bot_token": "adas-private-bot"})).token(&ada_token).ok().await;
        assign(json!(null)).ok().await;
        assign(json!(ada)).ok().await;
        assert_eq!(site.employee.get(&path).token(&ada_token).ok().await["total"], 1, "hers while it is hers");
        assign(json!(null)).ok().await;
        assign(json!(bob)).ok().await;
        assert_eq!(site.employee.get(&path).token(&bob_token).ok().await["total"], 0);
    }

    async fn rekeying_keeps_every_secret_and_every_uniqueness(site: Site) {
        let ids = site.instances("a", 1).await;
        let before = site.admin.get(&format!("/instances/{}", ids[0])).token(&site.root).ok().await["gateway_token"].clone();
        site.admin.post(&format!("/instances/{}/chat-bindings", ids[0]), json!({"bot_token": "a-bot-that-is-moved"})).token(&site.root).ok().await;
        let new = store::seal::Sealer::generate().unwrap();
        let moved = store::rekey::run(&site.app.db, "master_key", &site.master, &new).await.unwrap();
        assert_eq!(moved, 2);
        let sealer = store::seal::Sealer::new(&new).unwrap();
        let instance = store::instance::find(&site.app.db, &base::id::InstanceId::named(ids[0].as_str())).await.unwrap().unwrap();
        assert_eq!(instance.token(&sealer).unwrap().expose(), before.as_str().unwrap());
        assert!(instance.token(&site.app.sealer).is_err(), "the old key opens nothing any more");
        let bots = store::chat_binding::of_instance(&site.app.db, &instance.id).await.unwrap();
        assert_eq!(bots[0].token(&sealer).unwrap().expose(), "a-bot-that-is-moved");
        let hashes: Vec<Hash> = site.app.db.all("SELECT bot_token_hash FROM chat_binding", vec![]).await.unwrap();
        assert_eq!(hashes[0].bot_token_hash, sealer.hash(&base::Secret::new("a-bot-that-is-moved")));
    }
}

store::record! {
    struct Hash { bot_token_hash: String }
}

/// A bot of the release before senders: who was allowed stays allowed, and a process of that release may go on binding bots.
async fn senders_of_an_older_release(database: Database) {
    let db = database_before(23, &database.url).await;
    let mut tx = db.begin().await.unwrap();
    let instance = "INSERT INTO instance (id, id_key, server_id, pooled, name, gateway_port, gateway_url, gateway_token, model, \
        health_status, notes, config_json, created_at, updated_at) VALUES ('i', 'i', 's', 0, '', 18000, '', '', '', 'unknown', '', '{}', 0, 0)";
    tx.run(instance, vec![]).await.unwrap();
    let bind = "INSERT INTO chat_binding (id, instance_id, platform, bot_token, bot_token_hash, chat_id, bot_username, created_at) \
        VALUES (?, 'i', 'telegram', '', ?, '77', 'old_bot', 5)";
    tx.run(bind, store::args!["before", "before"]).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(store::migrate::run(&db).await.unwrap().first(), Some(&23));
    let mut tx = db.begin().await.unwrap();
    tx.run(bind, store::args!["after", "after"]).await.unwrap();
    tx.commit().await.unwrap();
    let bindings = store::chat_binding::of_instance(&db, &base::id::InstanceId::named("i")).await.unwrap();
    assert_eq!(bindings.len(), 2);
    for binding in bindings {
        let senders = store::chat_sender::of_binding(&db, &binding).await.unwrap();
        assert_eq!((senders.len(), senders[0].sender_id.as_str()), (1, "77"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn senders_of_an_older_release_sqlite() {
    senders_of_an_older_release(Database::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn senders_of_an_older_release_postgres() {
    if let Some(database) = Database::postgres(module_path!()).await {
        senders_of_an_older_release(database).await;
    }
}
