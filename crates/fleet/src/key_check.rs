//! Checks sub keys: whether the LLM gateway accepts them, and whether every instance has the one that is stored for it.

use std::sync::Arc;

use base::id::InstanceId;
use base::{Error, Kind, Page, Result, Sort};
use futures_util::future::BoxFuture;
use futures_util::{StreamExt as _, stream};
use jiff::SignedDuration;
use llm::key::ApplyKey;
use openclaw::config::Found;
use openclaw::rule::Rule;
use queue::audit::{self, Action, AuditEvent, By, Level};
use queue::task::{self, Payload as _};
use remote::llm::KeyState;
use store::gateway_key::{self, GatewayKey};
use store::instance::Instance;

use crate::assistant::{Assistant, config};
use crate::repair::{self, Begun, Repair, SELF_HEAL};
use crate::task::Context;
use crate::{App, host, sweep};

/// How many checks run at the same time.
const AT_ONCE: usize = 16;

/// A key that should work, and what the gateway says of it.
pub struct Checked {
    pub key: GatewayKey,
    pub state: KeyState,
}

impl Checked {
    /// Whether the gateway refuses it.
    pub fn is_refused(&self) -> bool {
        matches!(self.state, KeyState::Invalid | KeyState::Denied)
    }

    /// Whether it does not work now: the gateway refuses it or cannot be reached.
    pub fn fails(&self) -> bool {
        self.is_refused() || matches!(self.state, KeyState::Unreachable(_))
    }

    fn word(&self) -> &'static str {
        match self.state {
            KeyState::Valid => "valid",
            KeyState::Invalid => "invalid",
            KeyState::Exhausted => "exhausted",
            KeyState::Denied => "denied",
            KeyState::Throttled | KeyState::Unreachable(_) => "unknown",
        }
    }
}

/// Asks the gateway about every key that should work.
pub async fn ask_all(app: &App) -> Result<Vec<Checked>> {
    let sort = Sort { column: "created_at", descending: false };
    let keys = gateway_key::list(&app.db, None, sort, Page::ALL).await?.list;
    let mut asks: Vec<BoxFuture<'_, Result<Checked>>> = vec![];
    for key in keys.into_iter().filter(GatewayKey::enabled) {
        asks.push(Box::pin(async move {
            let state = app.upstream.gateway.check_key(&key.key(&app.sealer)?).await;
            Ok(Checked { key, state })
        }));
    }
    stream::iter(asks).buffer_unordered(AT_ONCE).collect::<Vec<_>>().await.into_iter().collect()
}

/// Records the state of a key. A change to any state but valid is an error in the audit log. Returns whether it
/// changed.
pub async fn note(app: &App, checked: &Checked) -> Result<bool> {
    let word = checked.word();
    // The last known state stays.
    if word == "unknown" {
        return Ok(false);
    }
    let mut tx = app.db.begin().await?;
    let changed = gateway_key::set_state(&mut tx, &checked.key.id, word, app.clock.now()).await?;
    if changed && word != "valid" {
        let detail = format!("the gateway says: {word}");
        let event =
            AuditEvent { action: Action::KeySync, level: Level::Error, target: &checked.key.name, detail: &detail };
        audit::record(app, &mut tx, &By::system(), event).await?;
    }
    tx.commit().await?;
    Ok(changed)
}

/// How often a key that is off, and was off when it was last asked about, is asked about again.
const OFF_AGAIN: SignedDuration = SignedDuration::from_mins(55);

/// Asks a foreign gateway about every key that should be off, with the key itself: that needs no management token.
/// Records what it says, and starts to switch off what is on. Returns how many are.
pub async fn ask_off(app: &App) -> Result<usize> {
    if app.upstream.embedded {
        return Ok(0);
    }
    let sort = Sort { column: "created_at", descending: false };
    let now = app.clock.now();
    let mut asks: Vec<BoxFuture<'_, Result<bool>>> = vec![];
    for key in gateway_key::list(&app.db, None, sort, Page::ALL).await?.list {
        let known = gateway_key::observed(&app.db, &key.id).await?;
        let recent = key.last_checked_at.is_some_and(|at| now.duration_since(at).abs() < OFF_AGAIN);
        if key.enabled() || key.gateway_id.is_empty() || (known.is_on() == Some(false) && recent) {
            continue;
        }
        asks.push(Box::pin(note_off(app, key)));
    }
    let answers = stream::iter(asks).buffer_unordered(AT_ONCE).collect::<Vec<_>>().await;
    let on = answers.into_iter().collect::<Result<Vec<bool>>>()?;
    Ok(on.into_iter().filter(|is_on| *is_on).count())
}

/// Asks about one of them. Returns whether it is on.
async fn note_off(app: &App, key: GatewayKey) -> Result<bool> {
    let is_on = match app.upstream.gateway.check_key(&key.key(&app.sealer)?).await {
        KeyState::Valid | KeyState::Exhausted => true,
        KeyState::Invalid | KeyState::Denied => false,
        KeyState::Throttled | KeyState::Unreachable(_) => return Ok(false),
    };
    let mut tx = app.db.begin().await?;
    let Some(record) = gateway_key::lock(&mut tx, &key.id).await?.filter(|record| !record.enabled()) else {
        return Ok(false);
    };
    let state = if is_on { gateway_key::ON } else { gateway_key::OFF };
    let changed = gateway_key::set_state(&mut tx, &key.id, state, app.clock.now()).await?;
    if is_on && changed {
        let detail = "the gateway accepts it, although it is switched off here";
        let event = AuditEvent { action: Action::KeySync, level: Level::Error, target: &key.name, detail };
        audit::record(app, &mut tx, &By::system(), event).await?;
    }
    if is_on && !record.dirty {
        llm::key::switch(app, &mut tx, record, SELF_HEAL).await?;
    }
    tx.commit().await?;
    Ok(is_on)
}

const PLAN: &str = "make the LLM gateway agree with the record of its sub key";

/// Starts to make a foreign gateway agree with our record of a key that it refuses: by a repair of the key's instance
/// or, if it has none, by a task. Either is tried at most three times an hour. Returns whether it was started.
pub async fn heal(app: &App, key: &GatewayKey) -> Result<bool> {
    if app.upstream.embedded {
        return Ok(false);
    }
    let now = app.clock.now();
    let mut tx = app.db.begin().await?;
    let Some(mut record) = gateway_key::lock(&mut tx, &key.id).await? else { return Ok(false) };
    if record.dirty {
        // A change of the key is already under way.
        return Ok(false);
    }
    let begun = match &record.instance_id {
        Some(instance) => {
            let before = "the LLM gateway refuses its sub key";
            repair::begin(app, &mut tx, instance, SELF_HEAL, before, PLAN).await? == Begun::Yes
        }
        None => {
            let payload = ApplyKey { key_id: record.id.clone() };
            let text = serde_json::to_string(&payload).map_err(Error::internal)?;
            let tried = store::task::count_of(&mut tx, ApplyKey::TYPE, &text, SELF_HEAL, now - repair::HOUR).await?;
            if tried < repair::BUDGET {
                task::enqueue(app, &mut tx, &payload, SELF_HEAL, None).await?;
            }
            tried < repair::BUDGET
        }
    };
    if begun {
        (record.dirty, record.updated_at) = (true, now);
        gateway_key::update(&mut tx, &record).await?;
    }
    tx.commit().await?;
    Ok(begun)
}

/// Repairs a refused key: makes the gateway agree with our record, and checks the key again.
pub(crate) async fn repair(context: &Context, of: &Repair) -> Result<(String, String)> {
    let app = &*context.app;
    let id = of.instance_id.clone();
    let Some(key) = gateway_key::of_instance(&app.db, &id).await?.filter(GatewayKey::enabled) else {
        return Ok(("nothing".into(), "it has no sub key any more".into()));
    };
    let done = if key.dirty { llm::key::agree(app, &key.id).await? } else { "nothing".to_owned() };
    context.log(&done).await?;
    // Read the key again: it may have been replaced.
    let key = gateway_key::of_instance(&app.db, &id).await?.ok_or(Kind::NotFound)?;
    let checked = Checked { state: app.upstream.gateway.check_key(&key.key(&app.sealer)?).await, key };
    note(app, &checked).await?;
    if checked.fails() {
        return Err(Error::conflict(format!("the gateway still says: {}", checked.word())));
    }
    Ok((done, format!("the gateway says: {}", checked.word())))
}

/// Starts repairs that write the stored key to the instances whose configuration has another one. An unreachable server
/// is skipped: the health check reports it.
pub async fn rewrite_wrong(app: &Arc<App>) -> Result<Vec<InstanceId>> {
    let posts = sweep::fleet(app).await?;
    let wrong = sweep::everywhere(app, posts, |app, post| async move {
        if post.instances.is_empty() || host::reach(&app, &post.server).await.is_err() {
            return vec![];
        }
        let looks = post.instances.iter().filter(|member| member.instance.is_managed() && !member.busy);
        let looks: Vec<BoxFuture<'_, Option<InstanceId>>> =
            looks.map(|member| Box::pin(has_wrong(&app, &member.instance)) as BoxFuture<'_, _>).collect();
        stream::iter(looks).buffer_unordered(AT_ONCE).collect::<Vec<_>>().await.into_iter().flatten().collect()
    })
    .await;
    let handler = repair::handler(Rule::NoApiKey.as_str()).ok_or_else(|| Error::internal("the rule has no handler"))?;
    let mut begun = vec![];
    for id in wrong.into_iter().flatten() {
        let mut tx = app.db.begin().await?;
        let before = "the configuration has another key than the stored one";
        if repair::begin(app, &mut tx, &id, handler.rule.as_str(), before, handler.plan).await? == Begun::Yes {
            begun.push(id);
        }
        tx.commit().await?;
    }
    Ok(begun)
}

/// Returns the instance's id if its configuration has another key than the stored one; `None` also if that is unknown.
async fn has_wrong(app: &App, instance: &Instance) -> Option<InstanceId> {
    let stored = gateway_key::of_instance(&app.db, &instance.id).await.ok()??.key(&app.sealer).ok()?;
    let assistant = Assistant::open(app, &instance.id).await.ok()?;
    let document = config::read(&assistant).await.ok()??.document;
    let is = Found::read(&document).key;
    is.is_none_or(|is| is.expose() != stored.expose()).then(|| instance.id.clone())
}
