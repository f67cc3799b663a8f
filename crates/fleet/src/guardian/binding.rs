//! guardian_binding: bindings, pool entries, stored keys and gateway tokens agree.

use std::sync::Arc;

use base::{Page, Result, Sort, When};
use store::{gateway_key, instance, invariant};

use super::{Dimension, Finding};
use crate::App;

pub(super) const DIMENSION: Dimension = Dimension {
    name: "guardian_binding",
    label: "Bindings",
    when: When::hourly(25),
    check: |app| Box::pin(check(app)),
};

async fn check(app: Arc<App>) -> Result<Vec<Finding>> {
    let mut found: Vec<Finding> = invariant::broken_of(&app.db, invariant::OF_BINDINGS)
        .await?
        .into_iter()
        .map(|(rule, id)| Finding::new(&id, format!("does not hold: {rule}")))
        .collect();
    let live = instance::all_live(&app.db).await?;
    for instance in &live {
        if instance.token(&app.sealer).is_err() {
            found.push(Finding::new(&instance.id, "its gateway token cannot be opened with this master key"));
        }
    }
    let sort = Sort { column: "created_at", descending: false };
    for key in gateway_key::list(&app.db, None, sort, Page::ALL).await?.list {
        if key.key(&app.sealer).is_err() {
            found.push(Finding::new(&key.name, "its sub key cannot be opened with this master key"));
        }
        let Some(of) = &key.instance_id else { continue };
        if of.as_str() != key.name {
            found.push(Finding::new(of, format!("its sub key is named {}", key.name)));
        }
        if key.enabled() && live.iter().all(|instance| instance.id != *of) {
            found.push(Finding::new(of, "it is deleted, and its sub key is on"));
        }
    }
    Ok(found)
}
