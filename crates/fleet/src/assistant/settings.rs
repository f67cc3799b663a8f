//! What an instance is told: everything that our records say about it, as OpenClaw's configuration has it.

use base::{Error, Result, Secret};
use openclaw::config::{Access, Background, Bot, Delivery, Gateway, Senders, Settings, Telegram, webhook_port};
use openclaw::document::{Document, Path};
use people::chat_binding::DEFAULT_PLATFORM;
use serde_json::Value;
use store::instance::{Instance, Runner};
use store::{chat_binding, chat_sender, gateway_key};

use super::access::{self, access};
use super::{Assistant, Place};
use crate::{App, tenant};

/// Everything of an instance, as our records have it now. A key is made where there is none yet.
pub async fn of(app: &App, assistant: &Assistant) -> Result<Settings> {
    let access = access(app, &assistant.instance).await?;
    with(app, assistant, access).await
}

/// The same for who only looks: no key is made.
pub async fn known(app: &App, assistant: &Assistant) -> Result<Settings> {
    let access = match gateway_key::of_instance(&app.db, &assistant.id()).await? {
        Some(_) => access(app, &assistant.instance).await?,
        None => None,
    };
    with(app, assistant, access).await
}

/// The same for an instance that is not made yet.
pub async fn planned(app: &App, assistant: &Assistant) -> Result<Settings> {
    let key = Secret::new("a key that is made for it");
    let access = access::models(app, &assistant.instance).await?.map(|models| models.access(app, key));
    with(app, assistant, access).await
}

async fn with(app: &App, assistant: &Assistant, access: Option<Access>) -> Result<Settings> {
    let instance = &assistant.instance;
    let background = if instance.assigned_user_id.is_some() { Background::On } else { Background::Off };
    Ok(Settings {
        gateway: gateway(app, instance, &assistant.place)?,
        access,
        background,
        bot: bot(app, instance).await?,
    })
}

fn gateway(app: &App, instance: &Instance, place: &Place) -> Result<Gateway> {
    Ok(Gateway {
        listen: tenant::bind(instance).map(|bind| (instance.gateway_port, bind)),
        token: instance.token(&app.sealer)?,
        log_file: place.log_file(),
        origins: app.assistants.origins.clone(),
    })
}

/// The chat-bot, with whose direct messages it answers. One that was taken off is switched off; where there never was one
/// of ours, what is there stays.
async fn bot(app: &App, instance: &Instance) -> Result<Option<Bot>> {
    let bindings = chat_binding::of_instance(&app.db, &instance.id).await?;
    let bound = bindings.into_iter().find(|b| b.is_active && b.platform == DEFAULT_PLATFORM);
    let Some(binding) = bound else {
        let had_one = chat_binding::had_any(&app.db, &instance.id, DEFAULT_PLATFORM).await?;
        return Ok(had_one.then_some(Bot::Off));
    };
    let allowed = chat_sender::of_binding(&app.db, &binding).await?;
    let senders = match allowed.is_empty() {
        true => Senders::Pairing,
        false => Senders::Only(allowed.into_iter().map(|sender| sender.sender_id).collect()),
    };
    let delivery = match (app.bots.webhook(&binding.id), binding.secret(&app.sealer)?) {
        // Docker publishes the gateway's port alone.
        _ if instance.runner == Runner::Container => Delivery::Polling,
        (Some(url), Some(secret)) => Delivery::Webhook { url, secret, port: webhook_port(instance.gateway_port) },
        _ => Delivery::Polling,
    };
    let api_root = app.bots.platform.own_address().map(str::to_owned);
    Ok(Some(Bot::Telegram(Telegram { token: binding.token(&app.sealer)?, senders, delivery, api_root })))
}

/// Brings a document of wishes into another: objects key by key, everything else in place of what is there; null takes away.
pub fn merge(document: &mut Document, wishes: &Value) -> Result<()> {
    merge_at(document, &Path::root(), wishes)
}

fn merge_at(document: &mut Document, path: &Path, wish: &Value) -> Result<()> {
    match wish {
        Value::Object(map) if !map.is_empty() || path.segments().is_empty() => {
            if !path.segments().is_empty() && !matches!(document.get(path), Some(Value::Object(_))) {
                document.set(path, Value::Object(serde_json::Map::new()))?;
            }
            map.iter().try_for_each(|(key, wish)| merge_at(document, &path.clone().key(key), wish))
        }
        // What OpenClaw wrote about the file itself is its own.
        _ if path.segments().is_empty() => Ok(()),
        Value::Null => document.remove(path).map(drop),
        Value::Object(_) if matches!(document.get(path), Some(Value::Object(_))) => Ok(()),
        value => document.set(path, value.clone()).map(drop),
    }
}

/// What the instance's own record wishes (`config_json`).
pub fn wishes(instance: &Instance) -> Result<Value> {
    let mut wishes: Value = serde_json::from_str(&instance.config_json)
        .map_err(|e| Error::conflict("the stored configuration is no JSON object").with_operator(e))?;
    // OpenClaw trusts a file by its own `meta`: that is not for anybody to wish.
    if let Some(map) = wishes.as_object_mut() {
        map.remove("meta");
    }
    Ok(wishes)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn wishes_come_into_a_document_key_by_key() {
        let mut document = Document::parse("{ /* kept */ a: 1, b: {c: 2, d: [1, 2]}, meta: {x: 1} }").unwrap();
        let wishes = json!({"b": {"c": null, "d": [3], "e": {"f": {}}}, "g": "$(id)\n'\"", "a": {"h": true}});
        merge(&mut document, &wishes).unwrap();
        let expected = json!({"a": {"h": true}, "b": {"d": [3], "e": {"f": {}}}, "g": "$(id)\n'\"", "meta": {"x": 1}});
        assert_eq!(document.value(), expected);
        assert!(document.text().contains("/* kept */"));
        let once = document.text().to_owned();
        merge(&mut document, &wishes).unwrap();
        assert_eq!(document.text(), once);
        merge(&mut document, &json!({})).unwrap();
        assert_eq!(document.text(), once);
    }
}
