//! The providers of the embedded gateway as administrators see and change them.

use base::Secret;
use base::id::{ProviderId, ProviderKeyId};
use jiff::{SignedDuration, Timestamp};
use llm::provider::{Access, Settings};
use serde_json::{Value, json};
use store::migrate;
use store::provider::{self as stored, Cooling, Counted, Failure};

use crate::kit::{Database, Gateway, Options, Site, answering, database_before, run, used_secret};
use crate::on_both;

const KEY: &str = "sk-a-key-at-a-provider-which-nobody-may-see-1234";
const OTHER: &str = "sk-another-key-at-that-provider-for-nobody-5678";

fn local() -> Settings {
    Settings { allow_local: true, ..Settings::default() }
}

fn with(providers: Settings) -> Options {
    used_secret(KEY);
    used_secret(OTHER);
    Options { gateway: Gateway::Served(providers), ..Options::default() }
}

async fn site(providers: Settings) -> Site {
    Site::with(Database::sqlite(), with(providers)).await
}

/// The actions of the audit log about a provider, newest first, with their details.
async fn audited(site: &Site, action: &str) -> Vec<String> {
    let found = site.admin.get(&format!("/audit-logs?action={action}")).token(&site.root).ok().await;
    let list = found["list"].as_array().unwrap().iter();
    list.map(|entry| format!("{}: {}", entry["target"].as_str().unwrap(), entry["detail"].as_str().unwrap())).collect()
}

on_both! {
    /// Made, changed, its keys put in order and deleted: each step is on record, and no answer has a key.
    async fn a_provider_is_made_changed_and_deleted(site: Site) {
        used_secret(KEY);
        used_secret(OTHER);
        let body = json!({"name": "groq", "kind": "compatible", "preset": "groq", "keys": [KEY]});
        let made = site.admin.post("/providers", body.clone()).token(&site.root).ok().await;
        assert_eq!((&made["base_url"], &made["protocols"]), (&json!("https://api.groq.com/openai"), &json!(["chat", "responses"])));
        assert_eq!((&made["state"], &made["source"], &made["keys"][0]["hint"]), (&json!("unknown"), &json!("record"), &json!("…1234")));
        site.admin.post("/providers", body).token(&site.root).refused("4090").await;
        let path = format!("/providers/{}", made["id"].as_str().unwrap());
        let two = site.admin.post(&format!("{path}/keys"), json!({"key": OTHER})).token(&site.root).ok().await;
        site.admin.post(&format!("{path}/keys"), json!({"key": OTHER})).token(&site.root).refused("4090").await;
        let second = two["keys"][1]["id"].as_str().unwrap();
        let first = site.admin.post(&format!("{path}/keys/{second}/first"), json!({})).token(&site.root).ok().await;
        assert_eq!((&first["keys"][0]["hint"], &first["keys"][1]["hint"]), (&json!("…5678"), &json!("…1234")));
        let one = site.admin.delete(&format!("{path}/keys/{second}")).token(&site.root).ok().await;
        assert_eq!(one["keys"].as_array().unwrap().len(), 1);
        let off = site.admin.patch(&path, json!({"enabled": false, "answer_timeout_seconds": 90})).token(&site.root).ok().await;
        assert_eq!((&off["state"], &off["answer_timeout_seconds"]), (&json!("off"), &json!(90)));
        assert_eq!(off["keys"].as_array().unwrap().len(), 1, "the address is the same");
        let moved = site.admin.patch(&path, json!({"base_url": "https://groq.example.com"})).token(&site.root).ok().await;
        assert_eq!((&moved["keys"], &moved["state"]), (&json!([]), &json!("off")));
        // What it may not be.
        let refused = async |body: Value, field: &str| {
            let why = site.admin.patch(&path, body).token(&site.root).refused("4000").await;
            assert!(why.contains(field), "{why}");
        };
        refused(json!({"base_url": "https://10.0.0.1"}), "base_url").await;
        refused(json!({"base_url": "http://groq.example.com"}), "base_url").await;
        refused(json!({"protocols": ["embeddings"]}), "protocols").await;
        refused(json!({"protocols": []}), "protocols").await;
        refused(json!({"connect_timeout_seconds": 61}), "connect_timeout_seconds").await;
        refused(json!({"proxy": "http://169.254.169.254"}), "proxy").await;
        let proxied = site.admin.patch(&path, json!({"proxy": "http://ada:a-secret-of-a-proxy@proxy.example.com:3128"}))
            .token(&site.root).ok().await;
        assert_eq!(proxied["proxy"], json!("http://***@proxy.example.com:3128"));
        site.admin.delete(&path).token(&site.root).ok().await;
        site.admin.get(&path).token(&site.root).refused("4040").await;
        let actions = audited(site, "provider.change").await;
        for part in ["created: compatible at https://api.groq.com/openai, 1 keys", "key …5678 added", "key …5678 put first", "key …5678 deleted",
            "enabled: true → false", "1 keys forgotten", "proxy changed", "deleted"] {
            assert!(actions.iter().any(|action| action.starts_with("provider groq: ") && action.contains(part)), "{part}: {actions:?}");
        }
    }

    /// What is spared ends no earlier by another failure, and what processes count is summed.
    async fn coolings_and_health_are_kept(site: Site) {
        let db = &site.app.db;
        // As it is stored.
        let now = Timestamp::from_millisecond(site.app.clock.now().as_millisecond()).unwrap();
        let (key, provider) = (ProviderKeyId::named("key-of-nobody"), ProviderId::named("provider-of-nobody"));
        let after = |minutes: i64| now + SignedDuration::from_mins(minutes);
        let mut tx = db.begin().await.unwrap();
        for (minutes, model, reason) in [(30, "", Failure::KeyRefused), (10, "", Failure::Spent), (5, "m", Failure::RateLimited)] {
            let cooling = Cooling { key_id: key.clone(), model: model.into(), reason, until_at: after(minutes) };
            stored::cool(&mut tx, &cooling, now).await.unwrap();
        }
        tx.commit().await.unwrap();
        let kept = stored::coolings(db, now).await.unwrap();
        let kept: Vec<_> = kept.iter().map(|one| (one.model.as_str(), one.reason, one.until_at)).collect();
        assert_eq!(kept, [("", Failure::KeyRefused, after(30)), ("m", Failure::RateLimited, after(5))]);
        let later = Cooling { key_id: key.clone(), model: String::new(), reason: Failure::Late, until_at: after(40) };
        let mut tx = db.begin().await.unwrap();
        stored::cool(&mut tx, &later, after(6)).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(stored::coolings(db, now).await.unwrap(), [later], "what is over is forgotten");
        // One row of the key, and all of them.
        let of_model = Cooling { key_id: key.clone(), model: "m".into(), reason: Failure::RateLimited, until_at: after(40) };
        let mut tx = db.begin().await.unwrap();
        stored::cool(&mut tx, &of_model, now).await.unwrap();
        stored::end_cooling_of(&mut tx, &key, "").await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(stored::coolings(db, now).await.unwrap(), [of_model]);
        let mut tx = db.begin().await.unwrap();
        assert!(stored::end_cooling(&mut tx, &key).await.unwrap());
        assert!(!stored::end_cooling(&mut tx, &key).await.unwrap());
        tx.commit().await.unwrap();
        assert!(stored::coolings(db, now).await.unwrap().is_empty());
        for (succeeded, failed, last_failure) in [(3, 0, None), (0, 2, Some((now, Failure::Late)))] {
            let counted = Counted {
                provider_id: provider.clone(),
                key_id: key.clone(),
                succeeded,
                failed,
                last_success_at: (succeeded > 0).then_some(now),
                last_failure,
            };
            let mut tx = db.begin().await.unwrap();
            stored::add_health(&mut tx, &counted, now).await.unwrap();
            tx.commit().await.unwrap();
        }
        let health = stored::health(db).await.unwrap();
        let of_it = health.iter().find(|health| health.provider_id == provider).unwrap();
        assert_eq!((of_it.key_id.as_str(), of_it.recent(now), of_it.failure), (key.as_str(), (3, 2), Some(Failure::Late)));
        let shown = |at: Option<Timestamp>| at.map(Timestamp::as_millisecond);
        let at = Some(now.as_millisecond());
        assert_eq!((shown(of_it.last_success_at), shown(of_it.last_failure_at)), (at, at));
        db.run("DELETE FROM provider_health WHERE provider_id = ?", store::args![&provider]).await.unwrap();
    }

    /// Everybody who signs in there sees them, masked; only a super administrator changes or tests them.
    async fn only_a_super_administrator_changes_providers(site: Site) {
        used_secret(KEY);
        let body = json!({"name": "groq", "kind": "compatible", "preset": "groq", "keys": [KEY]});
        let made = site.admin.post("/providers", body.clone()).token(&site.root).ok().await;
        let path = format!("/providers/{}", made["id"].as_str().unwrap());
        for role in ["admin", "operator", "auditor"] {
            let login = site.plain_admin(&format!("{role}@example.com"), role).await;
            let shown = site.admin.get("/providers").token(&login).ok().await;
            assert_eq!(shown["list"][0]["keys"][0]["hint"], "…1234");
            site.admin.get("/providers/presets").token(&login).ok().await;
            site.admin.post("/providers", body.clone()).token(&login).refused("4030").await;
            site.admin.patch(&path, json!({"enabled": false})).token(&login).refused("4030").await;
            site.admin.post(&format!("{path}/test"), json!({"model": "m"})).token(&login).refused("4030").await;
            site.admin.post(&format!("{path}/keys"), json!({"key": OTHER})).token(&login).refused("4030").await;
            site.admin.delete(&path).token(&login).refused("4030").await;
        }
    }
}

/// What the release knows of providers says where it is from.
#[tokio::test(flavor = "multi_thread")]
async fn presets_are_listed() {
    let site = site(local()).await;
    let presets = site.admin.get("/providers/presets").token(&site.root).ok().await;
    let titles: Vec<&str> =
        presets["list"].as_array().unwrap().iter().map(|one| one["title"].as_str().unwrap()).collect();
    for title in
        ["OpenAI", "Anthropic", "Google", "Ollama", "DeepSeek", "Mistral", "Groq", "OpenRouter", "vLLM", "LM Studio"]
    {
        assert!(titles.contains(&title), "{titles:?}");
    }
    let mistral = presets["list"].as_array().unwrap().iter().find(|one| one["title"] == "Mistral").unwrap();
    assert_eq!(mistral["oddities"][0]["code"], "unknown_fields_refused");
}

/// A test says what the provider answered. The key that it quotes is in no answer, no audit entry and no log line.
#[tokio::test(flavor = "multi_thread")]
async fn a_test_says_what_the_provider_answered() {
    let site = site(local()).await;
    let url = answering(401, "application/json", &format!(r#"{{"error":{{"message":"wrong key {KEY}"}}}}"#)).await;
    let body = json!({"name": "own", "kind": "compatible", "base_url": url, "keys": [KEY]});
    let made = site.admin.post("/providers", body).token(&site.root).ok().await;
    let path = format!("/providers/{}", made["id"].as_str().unwrap());
    // No model names it.
    let why = site.admin.post(&format!("{path}/test"), json!({})).token(&site.root).refused("4000").await;
    assert!(why.contains("model"), "{why}");
    let tried = site.admin.post(&format!("{path}/test"), json!({"model": "m"})).token(&site.root).ok().await;
    assert_eq!(
        (&tried["ok"], &tried["status"], &tried["failure"]),
        (&json!(false), &json!(401), &json!("key_refused"))
    );
    assert_eq!((&tried["key"], &tried["protocol"]), (&json!("…1234"), &json!("chat")));
    assert!(tried["body"].as_str().unwrap().contains("wrong key ***"), "{tried}");
    let entries = audited(&site, "provider.test").await;
    assert!(entries[0].starts_with("provider own: m in chat with key …1234: answered 401 after"), "{entries:?}");
    // It is known now, and a readiness probe tells.
    let shown = site.admin.get(&path).token(&site.root).ok().await;
    assert_eq!(
        (&shown["state"], &shown["keys"][0]["health"]["last_failure"]),
        (&json!("failing"), &json!("key_refused"))
    );
    let why = site
        .admin
        .post(&format!("{path}/test"), json!({"model": "m", "protocol": "messages"}))
        .token(&site.root)
        .refused("4000")
        .await;
    assert!(why.contains("protocol"), "{why}");
}

/// A test names a model as the provider does, whatever we call it.
#[tokio::test(flavor = "multi_thread")]
async fn a_test_asks_by_the_name_that_the_provider_knows() {
    let site = site(local()).await;
    let url = answering(200, "application/json", r#"{"choices":[]}"#).await;
    for name in ["rack", "second"] {
        let body = json!({"name": name, "kind": "compatible", "base_url": url, "protocols": ["chat", "responses"], "keys": [KEY]});
        site.admin.post("/providers", body).token(&site.root).ok().await;
    }
    for model in [
        json!({"id": "a-off", "provider": "rack", "enabled": false}),
        json!({"id": "b-vectors", "provider": "rack", "purpose": "embedding"}),
        json!({"id": "c-responses", "provider": "rack", "protocols": ["responses"]}),
        json!({"id": "house", "provider": "rack", "upstream_name": "house-7b", "aliases": ["cheap"],
            "offers": [{"provider": "second", "upstream_name": "h7"}]}),
    ] {
        let mut body = json!({"kind": "compatible"});
        body.as_object_mut().unwrap().extend(model.as_object().unwrap().clone());
        site.admin.post("/models", body).token(&site.root).ok().await;
    }
    let listed = site.admin.get("/providers").token(&site.root).ok().await;
    for (provider, body, asked) in [
        ("rack", json!({}), "house-7b"),
        ("rack", json!({"protocol": "responses"}), "c-responses"),
        ("rack", json!({"model": "house"}), "house-7b"),
        ("rack", json!({"model": "cheap"}), "house-7b"),
        ("rack", json!({"model": "house-7b"}), "house-7b"),
        ("rack", json!({"model": "gpt-4o"}), "gpt-4o"),
        ("second", json!({}), "h7"),
        ("second", json!({"model": "cheap"}), "h7"),
    ] {
        let of = listed["list"].as_array().unwrap().iter().find(|one| one["name"] == provider).unwrap();
        let path = format!("/providers/{}/test", of["id"].as_str().unwrap());
        let tried = site.admin.post(&path, body.clone()).token(&site.root).ok().await;
        assert_eq!(tried["model"], asked, "{provider} {body}");
    }
}

/// What the variables name is shown, and edited there.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_configuration_names_is_shown_and_not_edited() {
    let url = answering(200, "application/json", r#"{"choices":[]}"#).await;
    let openai = Some(Access { url, key: Secret::new(KEY) });
    let site = site(Settings { openai, ..local() }).await;
    let shown = site.admin.get("/providers").token(&site.root).ok().await;
    let openai = &shown["list"][0];
    assert_eq!(
        (&openai["name"], &openai["source"], &openai["keys"][0]["hint"]),
        (&json!("openai"), &json!("environment"), &json!("…1234"))
    );
    let path = format!("/providers/{}", openai["id"].as_str().unwrap());
    let why = site.admin.patch(&path, json!({"enabled": false})).token(&site.root).refused("4090").await;
    assert!(why.contains("TIDEPOOL_PROVIDER_"), "{why}");
    site.admin.delete(&path).token(&site.root).refused("4090").await;
    site.admin.post("/providers", json!({"name": "openai", "kind": "openai"})).token(&site.root).refused("4090").await;
    let tried = site.admin.post(&format!("{path}/test"), json!({})).token(&site.root).ok().await;
    assert_eq!((&tried["ok"], &tried["model"]), (&json!(true), &json!("gpt-4o")));
}

/// A provider that models name is not deleted under them.
#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_models_name_stays() {
    let site = site(local()).await;
    let made = site
        .admin
        .post("/providers", json!({"name": "google", "kind": "google", "keys": [KEY]}))
        .token(&site.root)
        .ok()
        .await;
    let path = format!("/providers/{}", made["id"].as_str().unwrap());
    let why = site.admin.delete(&path).token(&site.root).refused("4090").await;
    assert!(why.contains("gemini-2.5-pro"), "{why}");
    for model in ["gemini-3.1-pro", "gemini-3-flash", "gemini-2.5-flash", "gemini-2.5-pro"] {
        site.admin.patch(&format!("/models/{model}"), json!({"enabled": false})).token(&site.root).ok().await;
    }
    site.admin.delete(&path).token(&site.root).ok().await;
}

/// A database of before the migration has the tables afterwards, and its models find their providers.
#[tokio::test(flavor = "multi_thread")]
async fn an_older_database_gets_the_tables() {
    let database = Database::sqlite();
    let db = database_before(30, &database.url).await;
    let model = "INSERT INTO model (id, kind, provider, price, enabled, sort_order, created_at) VALUES ('m', 'openai', 'openai', 5, 1, 1, 0)";
    db.run(model, store::args![]).await.unwrap();
    migrate::run(&db).await.unwrap();
    assert!(store::provider::all(&db).await.unwrap().is_empty());
    assert_eq!(store::model::all(&db).await.unwrap()[0].provider, "openai");
    db.close().await;
}

/// A file names providers, too. One that is wrong stops the start with one line, which quotes no key.
#[test]
fn a_file_names_providers_and_stops_the_start_if_it_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("providers.toml");
    let check = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let output = run(folder.path(), &["check"], &[("TIDEPOOL_PROVIDERS_FILE", file.to_str().unwrap())]);
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("sk-"), "{said}");
        (output.status.success(), said)
    };
    let good = format!(
        "[[providers]]\nname = \"rack\"\nkind = \"compatible\"\npreset = \"vllm\"\nbase_url = \"http://10.0.0.7:8000\"\nkeys = [\"{KEY}\"]\n"
    );
    let (ok, said) = check(&good);
    assert!(ok && said.contains("rack (chat, messages, responses, embeddings)"), "{said}");
    for (text, naming) in [
        (good.replace("vllm", "nobody"), "the provider `rack`: preset"),
        (format!("{good}keys = 7\n"), "line 7"),
        (good.replace("[[providers]]", "[[provider]]"), "provider"),
    ] {
        let (ok, said) = check(&text);
        assert!(!ok && said.contains("TIDEPOOL_PROVIDERS_FILE") && said.contains(naming), "{said}");
        assert_eq!(said.trim().lines().count(), 1, "{said}");
    }
}
