//! guardian_bot_token: no two instances use the same chat-bot, neither in our records nor on their servers.

use std::collections::HashMap;
use std::sync::Arc;

use base::{Result, Secret, When};
use store::chat_binding;

use super::{Dimension, Finding, brief, document, each_instance};
use crate::App;

pub(super) const DIMENSION: Dimension = Dimension {
    name: "guardian_bot_token",
    label: "Bot tokens",
    when: When::hourly(10),
    check: |app| Box::pin(check(app)),
};

async fn check(app: Arc<App>) -> Result<Vec<Finding>> {
    let mut owners: HashMap<String, String> = HashMap::new();
    let mut found = vec![];
    for (instance, hash) in chat_binding::hashes(&app.db).await? {
        if let Some(other) = owners.insert(hash, instance.to_string()) {
            found.push(Finding::new(&instance, format!("its chat-bot is also bound to {other}")));
        }
    }
    let findings = each_instance(&app, brief(), |app, _, member, answer| async move {
        let Ok(Some(document)) = document(&app, &member, &answer).await else { return vec![] };
        let Some(token) = document.get_str(["channels", "telegram", "botToken"]) else { return vec![] };
        vec![Finding { extra: app.sealer.hash(&Secret::new(token)).into(), ..Finding::new(&member.instance.id, "") }]
    })
    .await?;
    let mut seen: HashMap<String, String> = HashMap::new();
    for finding in findings {
        // The finding is about an unreachable server.
        let Some(hash) = finding.extra.as_str().map(str::to_owned) else {
            found.push(finding);
            continue;
        };
        if let Some(owner) = owners.get(&hash) {
            if *owner != finding.target {
                found.push(Finding::new(&finding.target, format!("its configuration has the chat-bot of {owner}")));
            }
        } else if let Some(other) = seen.get(&hash) {
            // No record has this bot: it was written into both configurations by hand.
            found.push(Finding::new(
                &finding.target,
                format!("its configuration has the same chat-bot as that of {other}"),
            ));
        } else {
            seen.insert(hash, finding.target);
        }
    }
    Ok(found)
}
