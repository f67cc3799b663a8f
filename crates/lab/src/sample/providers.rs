//! Two providers of the demo's company. Nobody asks them: the model of the first is switched off, and the second is only asked when
//! the first provider of a model fails. What they met is invented.

use base::{Result, Secret};
use fleet::App;
use jiff::SignedDuration;
use llm::provider::{self, Cooling, Failure, NewProvider};
use queue::audit::By;
use store::model::ProviderKind;
use store::provider::{self as stored, Counted};

/// preset, keys: public, since they are in the source, and good for nothing
const PROVIDERS: &[(&str, &[&str])] =
    &[("deepseek", &["demo-key-of-nobody-7f3a", "demo-key-of-nobody-91cd"]), ("mistral", &["demo-key-of-nobody-5be2"])];

pub async fn add(app: &App, by: &By) -> Result<()> {
    let now = app.clock.now();
    for (preset, keys) in PROVIDERS {
        let new = NewProvider {
            name: (*preset).into(),
            kind: ProviderKind::Compatible,
            preset: (*preset).into(),
            base_url: None,
            protocols: None,
            enabled: true,
            connect_seconds: None,
            answer_seconds: None,
            proxy: None,
            keys: keys.iter().map(|key| Secret::new(*key)).collect(),
        };
        let id = provider::create(app, by, new).await?;
        let made = provider::find(app, &id).await?;
        let mut tx = app.db.begin().await?;
        for (place, key) in made.keys.iter().enumerate() {
            // The first of two is refused since a while; the other goes on.
            let is_refused = made.keys.len() > 1 && place == 0;
            let counted = Counted {
                provider_id: id.clone(),
                key_id: key.id.clone(),
                succeeded: if is_refused { 12 } else { 184 },
                failed: i64::from(is_refused),
                last_success_at: Some(now - SignedDuration::from_mins(if is_refused { 14 } else { 1 })),
                last_failure: is_refused.then_some((now - SignedDuration::from_mins(13), Failure::KeyRefused)),
            };
            stored::add_health(&mut tx, &counted, now).await?;
            if is_refused {
                let until_at = now + SignedDuration::from_mins(47);
                let cooling =
                    Cooling { key_id: key.id.clone(), model: String::new(), reason: Failure::KeyRefused, until_at };
                stored::cool(&mut tx, &cooling, now).await?;
            }
        }
        tx.commit().await?;
    }
    Ok(())
}
