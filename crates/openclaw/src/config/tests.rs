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
            models: vec![opus(), model("gpt-4o", &[Api::Completions])],
            primary: "claude-opus-4-6".into(),
            fallbacks: vec!["gpt-4o".into()],
            embedding: None,
        }),
        background: Background::On,
        bot: None,
    }
}

/// A model of which nothing is known.
fn model(id: &str, apis: &[Api]) -> Model {
    Model { id: id.into(), name: id.to_uppercase(), apis: apis.into(), ..Model::default() }
}

fn opus() -> Model {
    let rates = Rates { input: 5.0, output: 25.0, cache_read: 0.5, cache_write: 6.25 };
    Model {
        context_window: Some(200_000),
        max_tokens: Some(64_000),
        images: Some(true),
        reasoning: Some(true),
        cost: Some(Cost { rates, above: vec![] }),
        ..model("claude-opus-4-6", &[Api::Messages, Api::Completions])
    }
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
    let opus = json!({
        "id": "claude-opus-4-6", "name": "CLAUDE-OPUS-4-6", "contextWindow": 200000, "maxTokens": 64000,
        "input": ["text", "image"], "reasoning": true,
        "cost": {"input": 5, "output": 25, "cacheRead": 0.5, "cacheWrite": 6.25},
    });
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
            "models": {"providers": {
                "tidepool": {
                    "baseUrl": "http://10.0.0.1:8082/v1", "api": "openai-completions", "apiKey": "example-sub-key",
                    "models": [opus, {"id": "gpt-4o", "name": "GPT-4O"}],
                },
                "tidepool-anthropic": {
                    "baseUrl": "http://10.0.0.1:8082", "api": "anthropic-messages", "apiKey": "example-sub-key",
                    "models": [opus],
                },
            }},
            "agents": {"defaults": {
                "model": {"primary": "tidepool-anthropic/claude-opus-4-6", "fallbacks": ["tidepool/gpt-4o"]},
                "params": {"cacheRetention": "short"},
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
    assert_eq!(value["agents"]["defaults"]["model"]["primary"], "tidepool-anthropic/claude-opus-4-6");
    let allowed = json!(["own/*", "tidepool/*", "tidepool-anthropic/*"]);
    assert_eq!(value["agents"]["defaults"]["modelPolicy"]["allow"], allowed);
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
fn without_a_list_of_allowed_models_the_settings_of_single_models_are_one() {
    let text = "{agents:{defaults:{models:{'own/llama':{alias:'l'},'tidepool/gpt-4o':{alias:'g'}}}}}";
    let mut document = Document::parse(text).unwrap();
    for version in [Version::TESTED, Version::new(2026, 7, 35)] {
        settings().apply(&mut document, &version).unwrap();
    }
    assert_eq!(
        document.get(["agents", "defaults", "models"]),
        Some(json!({"own/llama": {"alias": "l"}, "tidepool/gpt-4o": {"alias": "g"}, "tidepool/claude-opus-4-6": {},
            "tidepool-anthropic/claude-opus-4-6": {"params": {"cacheRetention": "short"}}}))
    );
    // A first entry would forbid all others.
    let mut document = Document::parse("{agents:{defaults:{models:{}}}}").unwrap();
    settings().apply(&mut document, &Version::new(2026, 7, 35)).unwrap();
    assert_eq!(document.get(["agents", "defaults", "models"]), Some(json!({})));
    assert_eq!(document.get(["agents", "defaults", "params"]), Some(json!({"cacheRetention": "short"})));
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
    let listed = ["tidepool/claude-opus-4-6", "tidepool/gpt-4o", "tidepool-anthropic/claude-opus-4-6"];
    assert_eq!(found.models, listed);
    assert_eq!(found.fallbacks, ["tidepool/gpt-4o"]);
    let primary = ["agents", "defaults", "model", "primary"];
    document.set(primary, json!("own/llama")).unwrap();
    assert_eq!(Found::read(&document).problems(), [Problem::ForeignPrimary]);
    document.set(primary, json!("tidepool/gone")).unwrap();
    assert_eq!(Found::read(&document).problems(), [Problem::UnlistedPrimary]);
    // A session, or a file of before, may name a model in the entry that has all of them.
    document.set(["agents", "defaults", "model"], json!("tidepool/gpt-4o")).unwrap();
    assert_eq!(Found::read(&document).problems(), []);
    document.set(["models", "providers", "tidepool-anthropic", "apiKey"], json!("another-key")).unwrap();
    assert_eq!((Found::read(&document).key, Found::read(&document).problems()), (None, vec![Problem::NoKey]));
    document.remove(["models", "providers", "tidepool-anthropic"]).unwrap();
    assert_eq!(Found::read(&document).key, Some(Secret::new("example-sub-key")));
}

#[test]
fn addresses_are_those_that_the_protocols_are_added_to() {
    for url in ["http://h", "http://h/", "http://h/v1", "http://h/v1/"] {
        assert_eq!(Api::ALL.map(|api| api.base_url(url)), ["http://h/v1", "http://h", "http://h/v1"]);
    }
}

#[test]
fn a_new_key_changes_nothing_but_the_keys() {
    let mut document = Document::empty();
    settings().apply(&mut document, &Version::TESTED).unwrap();
    let mut with_new = settings();
    with_new.access.as_mut().unwrap().key = Secret::new("new-key");
    let changes = with_new.apply(&mut document, &Version::TESTED).unwrap();
    let changed: Vec<String> = changes.iter().map(|change| change.path.to_string()).collect();
    assert_eq!(changed, ["models.providers.tidepool.apiKey", "models.providers.tidepool-anthropic.apiKey"]);
    assert!(!needs_restart(&changes) && is_routine(&changes));
}

fn with_access(change: impl FnOnce(&mut Access)) -> Settings {
    let mut settings = settings();
    change(settings.access.as_mut().unwrap());
    settings
}

#[test]
fn an_assistant_of_before_gets_its_entries_while_it_runs() {
    let of_before = with_access(|access| {
        access.models = vec![model("claude-opus-4-6", &[Api::Completions]), model("gpt-4o", &[Api::Completions])]
    });
    let mut document = Document::empty();
    of_before.apply(&mut document, &Version::TESTED).unwrap();
    assert_eq!(document.keys(["models", "providers"]), ["tidepool"]);
    let changes = settings().apply(&mut document, &Version::TESTED).unwrap();
    assert!(!changes.is_empty() && !needs_restart(&changes));
    // What sessions name is still there.
    assert!(Found::read(&document).models.contains(&"tidepool/claude-opus-4-6".to_owned()));
    // A protocol that no model needs any more is taken away.
    of_before.apply(&mut document, &Version::TESTED).unwrap();
    assert_eq!(document.keys(["models", "providers"]), ["tidepool"]);
    assert_eq!(document.get_str(["agents", "defaults", "model", "primary"]).unwrap(), "tidepool/claude-opus-4-6");
}

#[test]
fn models_of_responses_have_an_entry_and_a_key_for_their_cache() {
    let thinks = Model { takes_cache_key: true, ..model("gpt-5", &[Api::Responses, Api::Completions]) };
    let alone = model("gpt-5-pro", &[Api::Responses]);
    let settings = with_access(|access| {
        access.models.extend([thinks, alone]);
        access.primary = "gpt-5".into();
    });
    let mut document = Document::empty();
    settings.apply(&mut document, &Version::TESTED).unwrap();
    let entry = |name| document.get(["models", "providers", name]).unwrap();
    let keyed = json!({"id": "gpt-5", "name": "GPT-5", "compat": {"supportsPromptCacheKey": true}});
    assert_eq!(
        entry("tidepool-responses"),
        json!({"baseUrl": "http://10.0.0.1:8082/v1", "api": "openai-responses", "apiKey": "example-sub-key",
            "models": [keyed, {"id": "gpt-5-pro", "name": "GPT-5-PRO"}]})
    );
    let of_completions = entry("tidepool")["models"].clone();
    assert_eq!((of_completions.as_array().unwrap().len(), &of_completions[2]), (3, &keyed));
    assert_eq!(document.get_str(["agents", "defaults", "model", "primary"]).unwrap(), "tidepool-responses/gpt-5");
}

#[test]
fn prices_of_long_inputs_are_ranges_that_begin_after_the_limit() {
    let rates = |input| Rates { input, output: 10.0, cache_read: 0.1, cache_write: input };
    let cost = Cost { rates: rates(1.0), above: vec![(200_000, rates(2.0))] };
    let settings = with_access(|access| access.models[1].cost = Some(cost));
    let mut document = Document::empty();
    settings.apply(&mut document, &Version::TESTED).unwrap();
    let written = document.get(["models", "providers", "tidepool"]).unwrap()["models"][1]["cost"].clone();
    assert_eq!(
        written,
        json!({"input": 1, "output": 10, "cacheRead": 0.1, "cacheWrite": 1, "tieredPricing": [
            {"input": 1, "output": 10, "cacheRead": 0.1, "cacheWrite": 1, "range": [0, 200001]},
            {"input": 2, "output": 10, "cacheRead": 0.1, "cacheWrite": 2, "range": [200001]},
        ]})
    );
    assert_eq!(settings.apply(&mut document, &Version::TESTED).unwrap(), []);
}

#[test]
fn what_an_owner_chose_for_caches_stays() {
    let name = "tidepool-anthropic/claude-opus-4-6";
    for text in [
        "{agents:{defaults:{params:{cacheRetention:'none'}}}}".to_owned(),
        format!("{{agents:{{defaults:{{models:{{'{name}':{{params:{{cacheRetention:'long'}}}}}}}}}}}}"),
    ] {
        let mut document = Document::parse(&text).unwrap();
        let chosen = document.get(["agents", "defaults"]).unwrap();
        settings().apply(&mut document, &Version::TESTED).unwrap();
        let after = document.get(["agents", "defaults"]).unwrap();
        assert_eq!((&after["params"], &after["models"][name]), (&chosen["params"], &chosen["models"][name]), "{text}");
    }
}

#[test]
fn texts_for_the_memory_are_embedded_by_a_model_of_ours() {
    let search = |text: &str, embedding: Option<&str>, version: Version| {
        let settings = with_access(|access| access.embedding = embedding.map(str::to_owned));
        let mut document = Document::parse(text).unwrap();
        settings.apply(&mut document, &version).unwrap();
        document.get(["memory", "search"]).unwrap_or_default()
    };
    let ours = json!({"provider": "tidepool", "model": "text-embedding-3-small"});
    assert_eq!(search("{}", Some("text-embedding-3-small"), Version::TESTED), ours);
    assert_eq!(search("{}", None, Version::TESTED), Value::Null);
    let before = "{memory:{search:{provider:'tidepool',model:'gone',sync:{watch:true}}}}";
    assert_eq!(search(before, None, Version::TESTED), json!({"sync": {"watch": true}}));
    let own = "{memory:{search:{provider:'ollama',model:'nomic'}}}";
    assert_eq!(search(own, Some("m"), Version::TESTED), json!({"provider": "ollama", "model": "nomic"}));
    assert_eq!(search("{}", Some("m"), Version::new(2026, 7, 35)), Value::Null, "it has no such key");
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
