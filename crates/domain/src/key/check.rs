//! Looks at sub keys: do they open the gateway, and does every instance have the one that is stored for it.

use std::sync::Arc;

use base::{Page, Result, Sort};
use futures_util::future::BoxFuture;
use futures_util::{StreamExt as _, stream};
use openclaw::config::Found;
use remote::llm::KeyState;
use store::gateway_key::{self, GatewayKey};
use store::instance;

use super::ApplyKey;
use crate::App;
use crate::assistant::{Assistant, config};
use crate::audit::{self, Action, By, Deed, Level};
use crate::task::{self, SyncKeyToInstance};

/// Questions at the same time.
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

    /// Whether it does not work now, for whatever reason of the gateway's.
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
            let state = app.llm.gateway.check_key(&key.key(&app.sealer)?).await;
            Ok(Checked { key, state })
        }));
    }
    stream::iter(asks).buffer_unordered(AT_ONCE).collect::<Vec<_>>().await.into_iter().collect()
}

/// Writes down what was said of a key; a change for the worse is an error in the audit log. Answers whether it changed.
pub async fn note(app: &App, checked: &Checked) -> Result<bool> {
    let word = checked.word();
    // Nothing is known: what was known last stays.
    if word == "unknown" {
        return Ok(false);
    }
    let mut tx = app.db.begin().await?;
    let changed = gateway_key::set_state(&mut tx, &checked.key.id, word, app.clock.now()).await?;
    if changed && word != "valid" {
        let detail = format!("the gateway says: {word}");
        let deed = Deed { action: Action::KeySync, level: Level::Error, target: &checked.key.name, detail: &detail };
        audit::record(app, &mut tx, &By::system(), deed).await?;
    }
    tx.commit().await?;
    Ok(changed)
}

/// Makes a foreign gateway agree with our record of a key that it refuses.
pub async fn heal(app: &App, key: &GatewayKey) -> Result<()> {
    if app.llm.embedded {
        return Ok(());
    }
    let mut tx = app.db.begin().await?;
    let id = base::id::KeyId::named(&key.id);
    let Some(mut now) = gateway_key::lock(&mut tx, &id).await? else { return Ok(()) };
    if now.dirty {
        // Somebody is at it.
        return Ok(());
    }
    (now.dirty, now.updated_at) = (true, app.clock.now());
    gateway_key::update(&mut tx, &now).await?;
    task::enqueue(app, &mut tx, &ApplyKey { key_id: now.id }, "llm_self_heal", None).await?;
    Ok(tx.commit().await?)
}

/// The instances whose configuration has another key than the stored one. Each gets it by a task.
pub async fn rewrite_wrong(app: &Arc<App>) -> Result<Vec<String>> {
    let busy = store::task::busy_instances(&app.db).await?;
    let mut looks: Vec<BoxFuture<'_, Option<String>>> = vec![];
    for instance in instance::all_live(&app.db).await? {
        let there = instance.is_main || !instance.home.is_empty();
        if there && !busy.contains(&instance.id) {
            looks.push(Box::pin(async move {
                let stored = gateway_key::of_instance(&app.db, &instance.id()).await.ok()??.key(&app.sealer).ok()?;
                let assistant = Assistant::open(app, &instance.id()).await.ok()?;
                let document = config::read(&assistant).await.ok()??.document;
                let is = Found::read(&document).key;
                is.is_none_or(|is| is.expose() != stored.expose()).then_some(instance.id)
            }));
        }
    }
    let wrong: Vec<String> =
        stream::iter(looks).buffer_unordered(AT_ONCE).collect::<Vec<_>>().await.into_iter().flatten().collect();
    for id in &wrong {
        let mut tx = app.db.begin().await?;
        task::enqueue(app, &mut tx, &SyncKeyToInstance { instance_id: id.clone() }, "key_validity_check", None).await?;
        let deed = Deed::warn(Action::KeySync, id, "its key was not the stored one: it is written again");
        audit::record(app, &mut tx, &By::system(), deed).await?;
        tx.commit().await?;
    }
    Ok(wrong)
}
