//! "Test": sends a real small request to a provider, and says what really came back. It costs what such a request costs.

use std::time::Duration;

use base::id::{ProviderId, ProviderKeyId};
use base::{Error, Result, Secret};
use queue::audit;
use queue::audit::{Action, AuditEvent, By, Level};
use remote::provider::{self as wire, Outcome, Question};
use serde_json::{Value, json};
use store::model::{Model, ProviderKind, Purpose};
use store::notice::{Notice, Topic};
use store::provider::{self, Counted, Failure, Protocol};

use super::{Provider, find, scrub};
use crate::App;
use crate::model::{self, Listed};

/// For everything: whoever asked waits for it.
const LIMIT: Duration = Duration::from_secs(30);
/// How much of an answer is shown, in characters.
const SHOWN: usize = 2_000;

/// What is asked for.
#[derive(Default)]
pub struct Trial {
    /// What the provider calls it, or one of our names for a model that it offers. When omitted, the first enabled model
    /// that it offers in the protocol.
    pub model: Option<String>,
    /// The first that it speaks, when omitted.
    pub protocol: Option<Protocol>,
    /// The first key, when omitted.
    pub key: Option<ProviderKeyId>,
}

/// What came back.
pub struct Tried {
    pub ok: bool,
    pub model: String,
    pub protocol: Protocol,
    /// The key that was used, as it is shown.
    pub hint: String,
    /// None without an answer.
    pub status: Option<u16>,
    pub took: Duration,
    /// The beginning of the answer, without any part of the key.
    pub body: String,
    pub failure: Option<Failure>,
    /// Why there was no answer.
    pub error: String,
}

pub async fn test(app: &App, by: &By, id: &ProviderId, trial: Trial) -> Result<Tried> {
    let provider = find(app, id).await?;
    if provider.is_unreadable {
        return Err(Error::conflict("its proxy cannot be unsealed, and it is not asked without: set the proxy again"));
    }
    let protocol = match trial.protocol.or_else(|| provider.protocols.first().copied()) {
        Some(protocol) => protocol,
        None => return Err(Error::field("protocol", "it is asked in none")),
    };
    let url = provider
        .url(protocol)
        .ok_or_else(|| Error::field("protocol", format_args!("{} is not spoken there", protocol.as_str())))?;
    let model = match trial.model {
        Some(asked) => its_name(app, &provider, asked).await?,
        None => first_model(app, &provider, protocol).await?,
    };
    let key = match &trial.key {
        Some(key) => Some(
            provider
                .keys
                .iter()
                .find(|known| known.id == *key)
                .ok_or_else(|| Error::field("key_id", "is no key of it"))?,
        ),
        None => provider.keys.first(),
    };
    if key.is_none() && provider.preset.needs_key {
        return Err(Error::conflict("it has no key yet"));
    }
    let body = question(provider.kind, protocol, &model);
    let answer = wire::ask(Question {
        url: &url,
        headers: headers(provider.kind, protocol, key.map(|key| &key.secret)),
        body: &body,
        proxy: provider.proxy.as_ref(),
        allow_private: provider.allow_private,
        connect: provider.connect,
        limit: LIMIT,
    })
    .await?;
    let clean = |text: &str| {
        let text = key.map_or_else(|| text.to_owned(), |key| scrub::without(text, key.secret.expose()));
        text.chars().take(SHOWN).collect::<String>()
    };
    let (status, body, failure, error) = match &answer.outcome {
        Outcome::Answered { status, body } => (Some(*status), clean(body), failure_of(*status), String::new()),
        Outcome::Unreachable(why) => (None, String::new(), Some(Failure::Unreachable), clean(why)),
        Outcome::Late => (None, String::new(), Some(Failure::Late), String::new()),
    };
    let ok = status.is_some_and(|status| (200..300).contains(&status));
    let hint = key.map_or_else(String::new, |key| key.hint.clone());
    let tried = Tried { ok, model, protocol, hint, status, took: answer.took, body, failure, error };
    note(app, by, &provider, key.map(|key| &key.id), &tried).await?;
    Ok(tried)
}

/// Writes the test down. A key that was taken is asked again at once.
async fn note(app: &App, by: &By, provider: &Provider, key: Option<&ProviderKeyId>, tried: &Tried) -> Result<()> {
    let result = match (tried.status, tried.failure) {
        (Some(status), _) => format!("answered {status}"),
        (None, Some(failure)) => failure.as_str().to_owned(),
        (None, None) => "no answer".to_owned(),
    };
    let with = if tried.hint.is_empty() { "without a key".to_owned() } else { format!("with key {}", tried.hint) };
    let detail =
        format!("{} in {} {with}: {result} after {} ms", tried.model, tried.protocol.as_str(), tried.took.as_millis());
    let target = format!("provider {}", provider.name);
    let level = if tried.ok { Level::Info } else { Level::Warn };
    let now = app.clock.now();
    let mut tx = app.db.begin().await?;
    let event = AuditEvent { action: Action::ProviderTest, level, target: &target, detail: &detail };
    audit::record(app, &mut tx, by, event).await?;
    let is_new = match key {
        Some(key) if tried.ok => provider::end_cooling(&mut tx, key).await?,
        _ => false,
    };
    if tried.ok || tried.failure.is_some() {
        let counted = Counted {
            provider_id: provider.id.clone(),
            key_id: key.cloned().unwrap_or_else(|| ProviderKeyId::named("")),
            succeeded: i64::from(tried.ok),
            failed: i64::from(!tried.ok),
            last_success_at: tried.ok.then_some(now),
            last_failure: tried.failure.map(|failure| (now, failure)),
        };
        provider::add_health(&mut tx, &counted, now).await?;
    }
    if is_new {
        tx.notify(Notice::new(Topic::Provider, &provider.name)).await?;
    }
    Ok(tx.commit().await?)
}

/// What a provider calls a model; `None` if it does not offer it.
fn called_by(listed: &Listed, provider: &str) -> Option<String> {
    if listed.model.provider == provider {
        return Some(listed.model.upstream().to_owned());
    }
    let offer = listed.offers.iter().find(|offer| offer.provider == provider)?;
    let name = if offer.upstream_name.is_empty() { &listed.model.id } else { &offer.upstream_name };
    Some(name.clone())
}

/// The provider's name for a model of ours, and any other name as it is.
async fn its_name(app: &App, provider: &Provider, asked: String) -> Result<String> {
    let models = model::list(app).await?;
    let by_id = models.iter().find(|listed| listed.model.id == asked);
    let ours = by_id.or_else(|| models.iter().find(|listed| listed.aliases.contains(&asked)));
    Ok(ours.and_then(|listed| called_by(listed, &provider.name)).unwrap_or(asked))
}

async fn first_model(app: &App, provider: &Provider, protocol: Protocol) -> Result<String> {
    let purpose = if protocol == Protocol::Embeddings { Purpose::Embedding } else { Purpose::Chat };
    let fits = |model: &Model| {
        let is_spoken = model.protocols.0.is_empty() || model.protocols.0.contains(&protocol);
        model.enabled && model.purpose == purpose && is_spoken
    };
    let models = model::list(app).await?;
    let mut offered = models.iter().filter(|listed| fits(&listed.model));
    let first = offered.find_map(|listed| called_by(listed, &provider.name));
    first.ok_or_else(|| {
        Error::field("model", "is needed: no model that is offered in this protocol names this provider")
    })
}

/// Whose failure a status is; `None` for an answer, and for what is wrong with the request itself.
fn failure_of(status: u16) -> Option<Failure> {
    match status {
        401 | 403 => Some(Failure::KeyRefused),
        402 => Some(Failure::Spent),
        429 => Some(Failure::RateLimited),
        300..=399 | 500.. => Some(Failure::Failed),
        _ => None,
    }
}

fn question(kind: ProviderKind, protocol: Protocol, model: &str) -> Value {
    let said = "Answer with the word ok.";
    match protocol {
        // OpenAI's newer models refuse `max_tokens`; others may not know its successor.
        Protocol::Chat if kind == ProviderKind::Openai => {
            json!({"model": model, "max_completion_tokens": 64, "messages": [{"role": "user", "content": said}]})
        }
        Protocol::Chat | Protocol::Messages => {
            json!({"model": model, "max_tokens": 64, "messages": [{"role": "user", "content": said}]})
        }
        Protocol::Responses => json!({"model": model, "max_output_tokens": 64, "store": false, "input": said}),
        Protocol::Embeddings => json!({"model": model, "input": said}),
    }
}

fn headers(kind: ProviderKind, protocol: Protocol, key: Option<&Secret>) -> Vec<(&'static str, Secret)> {
    let mut headers = vec![];
    if protocol == Protocol::Messages {
        headers.push(("anthropic-version", Secret::new("2023-06-01")));
    }
    let Some(key) = key else { return headers };
    let bearer = || ("authorization", Secret::new(format!("Bearer {}", key.expose())));
    match protocol {
        Protocol::Messages => {
            headers.push(("x-api-key", key.clone()));
            // Others than Anthropic take the key as one or the other.
            if kind != ProviderKind::Anthropic {
                headers.push(bearer());
            }
        }
        _ => headers.push(bearer()),
    }
    headers
}
