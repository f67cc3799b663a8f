//! All parts together: on an empty file, on one that people have edited, twice, and for older releases.

use base::{GatewayPort, Secret};
use serde_json::{Value, json};

use super::*;

fn settings() -> Settings {
    Settings {
        gateway: Gateway {
            listen: Some((GatewayPort::try_from(18909).unwrap(), Bind::Loopback)),
            token: Secret::new("example-gateway-token"),
            log_file: "/srv/assistants/1/gateway.jsonl".into(),
            origins: vec!["https://assistants.example.com".into()],
        },
        access: Some(Access {
            gateway_url: "http://10.0.0.1:8082/".into(),
            key: Secret::new("example-sub-key"),
            models: vec![model("claude-opus-4-6", true), model("gpt-4o", false)],
            primary: "claude-opus-4-6".into(),
            fallbacks: vec!["gpt-4o".into()],
        }),
        background: Background::On,
        bot: None,
    }
}

fn model(id: &str, images: bool) -> Model {
    let (context_window, max_tokens) = if images { (Some(200_000), Some(8192)) } else { (None, None) };
    Model { id: id.into(), name: id.to_uppercase(), context_window, max_tokens, images }
}

fn telegram(delivery: Delivery) -> Telegram {
    Telegram {
        token: Secret::new("example-bot-token"),
        senders: Senders::Only(vec!["123".into()]),
        delivery,
        api_root: None,
    }
}

#[test]
fn an_empty_file_becomes_a_whole_configuration() {
    let mut document = Document::empty();
    let bot = Bot::Telegram(telegram(Delivery::Webhook {
        url: "https://work.example.com/hooks/bot/b-1".into(),
        secret: Secret::new("example_hook-secret"),
        port: webhook_port(GatewayPort::try_from(18909).unwrap()),
    }));
    let settings = Settings { bot: Some(bot), background: Background::Off, ..settings() };
    settings.apply(&mut document, &Version::TESTED).unwrap();
    assert_eq!(
        document.value(),
        json!({
            "gateway": {
                "mode": "local", "port": 18909, "bind": "loopback",
                "auth": {"mode": "token", "token": "example-gateway-token"},
                "terminal": {"enabled": false},
                "controlUi": {"allowedOrigins": ["https://assistants.example.com"], "communityInvite": false},
            },
            "logging": {"file": "/srv/assistants/1/gateway.jsonl"},
            "update": {"checkOnStart": false},
            "models": {"providers": {"tidepool": {
                "baseUrl": "http://10.0.0.1:8082/v1", "api": "openai-completions", "apiKey": "example-sub-key",
                "models": [
                    {"id": "claude-opus-4-6", "name": "CLAUDE-OPUS-4-6", "contextWindow": 200000, "maxTokens": 8192,
                        "input": ["text", "image"]},
                    {"id": "gpt-4o", "name": "GPT-4O"},
                ],
            }}},
            "agents": {"defaults": {
                "model": {"primary": "tidepool/claude-opus-4-6", "fallbacks": ["tidepool/gpt-4o"]},
                "heartbeat": {"every": "0m"},
            }},
            "cron": {"enabled": false},
            "channels": {"telegram": {
                "enabled": true, "botToken": "example-bot-token", "dmPolicy": "allowlist", "allowFrom": ["123"],
                "webhookUrl": "https://work.example.com/hooks/bot/b-1", "webhookSecret": "example_hook-secret",
                "webhookPath": "/telegram-webhook", "webhookHost": "127.0.0.1", "webhookPort": 18913,
            }},
        })
    );
}

/// A file as people edit it: with comments, older forms and keys of their own.
const WORKED_IN: &str = r#"// the assistant of the sales team
{
  "meta": { "lastTouchedVersion": "2026.9.6" },
  gateway: {
    token: 'old-token', // from before
    bind: '0.0.0.0',
    controlUi: { enabled: false, allowedOrigins: ['http://localhost:18789'] },
  },
  models: { providers: {
    own: { baseUrl: 'http://127.0.0.1:11434', api: 'ollama', models: [] }, /* the lab's */
    tidepool: { baseUrl: 'http://old/v1', apiKey: 'old-key', headers: { 'X-Team': 'sales' },
      models: [{ id: 'gpt-4o', name: 'x', cost: { input: 1 } }, { id: 'gone', name: 'gone' }] },
  } },
  agents: { defaults: { model: 'own/llama', modelPolicy: { allow: ['own/*'] } }, list: [{ id: 'main', name: 'Ada' }] },
  skills: { entries: { github: { enabled: false } } },
}
"#;

#[test]
fn what_is_not_ours_stays_and_applying_twice_changes_nothing() {
    let mut document = Document::parse(WORKED_IN).unwrap();
    let changes = settings().apply(&mut document, &Version::TESTED).unwrap();
    let value = document.value();
    assert_eq!(value["meta"], json!({"lastTouchedVersion": "2026.9.6"}));
    assert_eq!(value["skills"], json!({"entries": {"github": {"enabled": false}}}));
    assert_eq!(value["models"]["providers"]["own"]["api"], "ollama");
    let ours = &value["models"]["providers"]["tidepool"];
    assert_eq!(ours["headers"], json!({"X-Team": "sales"}));
    assert_eq!(ours["models"][1], json!({"id": "gpt-4o", "name": "GPT-4O", "cost": {"input": 1}}));
    assert_eq!(ours["models"].as_array().unwrap().len(), 2);
    assert_eq!(value["gateway"].get("token"), None);
    assert_eq!(value["gateway"]["auth"]["token"], "example-gateway-token");
    assert_eq!(value["gateway"]["bind"], "loopback");
    assert_eq!(
        value["gateway"]["controlUi"]["allowedOrigins"],
        json!(["http://localhost:18789", "https://assistants.example.com"])
    );
    assert_eq!(value["gateway"]["controlUi"]["enabled"], true);
    assert_eq!(value["agents"]["entries"], json!({"main": {"name": "Ada"}}));
    assert_eq!(value["agents"]["defaults"]["model"]["primary"], "tidepool/claude-opus-4-6");
    assert_eq!(value["agents"]["defaults"]["modelPolicy"]["allow"], json!(["own/*", "tidepool/*"]));
    for kept in [
        "// the assistant of the sales team\n{",
        "/* the lab's */",
        "skills: { entries: { github: { enabled: false } } },",
    ] {
        assert!(document.text().contains(kept), "{}", document.text());
    }

    let summary = crate::document::describe(&changes, 10_000);
    for secret in ["old-token", "old-key", "example-gateway-token", "example-sub-key", "sales"] {
        assert!(!summary.contains(secret), "{summary}");
    }
    assert!(summary.contains("gateway.bind: \"0.0.0.0\" → \"loopback\""), "{summary}");

    let once = document.text().to_owned();
    assert_eq!(settings().apply(&mut document, &Version::TESTED).unwrap(), []);
    assert_eq!(document.text(), once);
    assert_eq!(doubt(&Document::parse(WORKED_IN).unwrap(), &document), None);
}

#[test]
fn an_older_release_is_given_no_key_that_it_would_refuse() {
    let applied = |version: Version| {
        let mut document = Document::parse(WORKED_IN).unwrap();
        settings().apply(&mut document, &version).unwrap();
        document.value()
    };
    let oldest = applied(Version::new(2026, 5, 28));
    assert_eq!(oldest["gateway"].get("terminal"), None);
    assert_eq!(oldest["gateway"]["controlUi"].get("communityInvite"), None);
    assert_eq!(oldest["agents"].get("entries"), None);
    assert_eq!(oldest["agents"]["list"], json!([{"id": "main", "name": "Ada"}]));
    let middle = applied(Version::new(2026, 8, 2));
    assert_eq!(middle["gateway"]["terminal"], json!({"enabled": false}));
    assert_eq!(middle["gateway"]["controlUi"].get("communityInvite"), None);
    assert_eq!(middle["agents"].get("list"), None);

    let mut document = Document::parse(WORKED_IN).unwrap();
    let error = settings().apply(&mut document, &Version::new(2026, 4, 15)).unwrap_err();
    assert!(error.client.contains("2026.4.15"), "{error}");
    assert_eq!(document.text(), WORKED_IN);
}

#[test]
fn before_the_list_of_allowed_models_a_map_was_it() {
    let text = "{agents:{defaults:{models:{'own/llama':{alias:'l'},'tidepool/gpt-4o':{alias:'g'}}}}}";
    let mut document = Document::parse(text).unwrap();
    settings().apply(&mut document, &Version::new(2026, 7, 35)).unwrap();
    assert_eq!(
        document.get(["agents", "defaults", "models"]),
        Some(json!({"own/llama": {"alias": "l"}, "tidepool/gpt-4o": {"alias": "g"}, "tidepool/claude-opus-4-6": {}}))
    );
    let mut document = Document::parse("{agents:{defaults:{models:{}}}}").unwrap();
    settings().apply(&mut document, &Version::new(2026, 7, 35)).unwrap();
    assert_eq!(document.get(["agents", "defaults", "models"]), Some(json!({})));
}

#[test]
fn an_error_leaves_the_document_as_it_was() {
    let change = |change: fn(&mut Settings)| {
        let mut settings = settings();
        change(&mut settings);
        let mut document = Document::parse(WORKED_IN).unwrap();
        let refused = settings.apply(&mut document, &Version::TESTED).is_err();
        assert!(!refused || document.text() == WORKED_IN);
        refused
    };
    assert!(!change(|_| ()));
    assert!(change(|s| s.gateway.token = Secret::new("")));
    assert!(change(|s| s.gateway.token = Secret::new("a${HOME}b")));
    assert!(change(|s| s.gateway.log_file = "gateway.jsonl".into()));
    assert!(change(|s| s.access.as_mut().unwrap().key = Secret::new("")));
    assert!(change(|s| s.access.as_mut().unwrap().primary = "unknown".into()));
    assert!(change(|s| s.access.as_mut().unwrap().fallbacks = vec!["unknown".into()]));
    assert!(
        change(|s| s.bot = Some(Bot::Telegram(Telegram { token: Secret::new(""), ..telegram(Delivery::Polling) })))
    );
    let hook = |url: &str, secret: &str| Delivery::Webhook { url: url.into(), secret: Secret::new(secret), port: 1 };
    let mut document = Document::empty();
    assert!(telegram(hook("http://plain.example", "s")).apply(&mut document).is_err());
    assert!(telegram(hook("https://a.example", "")).apply(&mut document).is_err());
    assert!(telegram(hook("https://a.example", "a b")).apply(&mut document).is_err());
    let port = Delivery::Webhook { url: "https://a.example".into(), secret: Secret::new("s"), port: 65536 };
    assert!(telegram(port).apply(&mut document).is_err());
}

#[test]
fn a_bot_changes_its_delivery_and_leaves_nothing_behind() {
    let text = "{channels:{telegram:{tokenFile:'/t',streaming:{mode:'x'}},other:{a:1}}}";
    let mut document = Document::parse(text).unwrap();
    let hook = Delivery::Webhook { url: "https://a.example/x".into(), secret: Secret::new("s"), port: 18913 };
    Bot::Telegram(telegram(hook)).apply(&mut document).unwrap();
    assert_eq!(document.get(["channels", "telegram", "webhookPort"]), Some(json!(18913)));
    assert!(!document.has(["channels", "telegram", "tokenFile"]));
    let polling = Telegram { senders: Senders::Pairing, ..telegram(Delivery::Polling) };
    Bot::Telegram(polling).apply(&mut document).unwrap();
    assert_eq!(
        document.get(["channels", "telegram"]),
        Some(
            json!({"streaming": {"mode": "x"}, "enabled": true, "botToken": "example-bot-token", "dmPolicy": "pairing"})
        )
    );
    Bot::Off.apply(&mut document).unwrap();
    assert_eq!(
        document.get(["channels"]),
        Some(json!({"telegram": {"streaming": {"mode": "x"}, "enabled": false}, "other": {"a": 1}}))
    );
    let mut none = Document::empty();
    Bot::Off.apply(&mut none).unwrap();
    assert_eq!(none.value(), json!({}));
}

#[test]
fn the_access_that_is_there_is_read_and_judged() {
    let mut document = Document::empty();
    assert_eq!(
        Found::read(&document).problems(),
        [Problem::NoProvider, Problem::NoKey, Problem::NoModels, Problem::NoPrimary]
    );
    settings().apply(&mut document, &Version::TESTED).unwrap();
    let found = Found::read(&document);
    assert_eq!(found.problems(), []);
    assert_eq!(found.key, Some(Secret::new("example-sub-key")));
    assert_eq!(found.models, ["claude-opus-4-6", "gpt-4o"]);
    assert_eq!(found.fallbacks, ["tidepool/gpt-4o"]);
    let primary = ["agents", "defaults", "model", "primary"];
    document.set(primary, json!("own/llama")).unwrap();
    assert_eq!(Found::read(&document).problems(), [Problem::ForeignPrimary]);
    document.set(primary, json!("tidepool/gone")).unwrap();
    assert_eq!(Found::read(&document).problems(), [Problem::UnlistedPrimary]);
    document.set(["agents", "defaults", "model"], json!("tidepool/gpt-4o")).unwrap();
    assert_eq!(Found::read(&document).problems(), []);
    assert_eq!(base_url("http://h/v1"), "http://h/v1");
}

#[test]
fn a_sync_of_the_key_touches_nothing_but_the_key() {
    let mut document = Document::parse(WORKED_IN).unwrap();
    let changes = edit(&mut document, &Version::TESTED, |d| set_key(d, &Secret::new("new-key"))).unwrap();
    assert_eq!(document.text(), WORKED_IN.replace("'old-key'", "\"new-key\""));
    assert_eq!(changes.len(), 1);
    assert!(!needs_restart(&changes));
    let unchanged = edit(&mut document, &Version::TESTED, |d| set_key(d, &Secret::new("new-key"))).unwrap();
    assert_eq!((unchanged, document.get(["models", "x"])), (vec![], None::<Value>));
}

#[test]
fn only_what_cannot_make_a_file_invalid_is_routine() {
    let base = r#"{cron: {enabled: false}, gateway: {auth: {token: "a"}, port: 1}}"#;
    let after = |text: &str| {
        let (before, after) = (Document::parse(base).unwrap(), Document::parse(text).unwrap());
        is_routine(&before.diff(&after))
    };
    assert!(after(base), "nothing changed");
    assert!(after(r#"{gateway: {auth: {token: "b"}, port: 1}}"#), "cron given back, another token");
    let off = r#"{cron: {enabled: false}, agents: {defaults: {heartbeat: {every: "0m"}}}, gateway: {auth: {token: "a"}, port: 1}}"#;
    assert!(after(off), "heartbeats off");
    for odd in [
        r#"{cron: {enabled: "no"}, gateway: {auth: {token: "a"}, port: 1}}"#,
        r#"{cron: {enabled: false}, gateway: {auth: {token: {x: 1}}, port: 1}}"#,
        r#"{cron: {enabled: false}, gateway: {auth: {token: "a"}, port: 2}}"#,
        r#"{cron: {enabled: false, more: 1}, gateway: {auth: {token: "a"}, port: 1}}"#,
        r#"{cron: {enabled: false}, gateway: {auth: {token: "a"}, port: 1}, bogus: 1}"#,
    ] {
        assert!(!after(odd), "{odd}");
    }
}
