//! guardian_inst_logs: errors in the last 15 minutes of the instances' logs that users notice: unknown models, models
//! that failed over, chat-bots that another program uses too.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::{Result, When};
use jiff::{SignedDuration, Timestamp};
use openclaw::log::{Line, Signal, signal};
use openclaw::sweep::Limits;
use serde_json::json;

use super::{Dimension, Finding, each_instance};
use crate::App;

pub(super) const DIMENSION: Dimension = Dimension {
    name: "guardian_inst_logs",
    label: "Errors in logs",
    when: When::Minutes { every: 15, past: 2 },
    check: |app| Box::pin(check(app)),
};

const WINDOW: SignedDuration = SignedDuration::from_mins(15);

async fn check(app: Arc<App>) -> Result<Vec<Finding>> {
    // Read the end of the log regardless of what a scan has read. The window selects lines by time.
    let limits = Limits { log_bytes: 256 * 1024, ..Limits::default() };
    each_instance(&app, limits, |_, looked, member, answer| async move {
        let now = looked.sweep.server.time.and_then(|s| Timestamp::from_second(s).ok()).unwrap_or_else(Timestamp::now);
        let lines = answer.log.iter().flat_map(|tail| tail.lines.iter());
        let recent = lines.filter(|line| line.time.is_some_and(|time| now.duration_since(time) <= WINDOW));
        found(&member.instance.id, recent)
    })
    .await
}

fn found<'a>(id: &str, lines: impl Iterator<Item = &'a Line>) -> Vec<Finding> {
    let mut kinds: BTreeMap<&'static str, (usize, String)> = BTreeMap::new();
    for line in lines {
        let (kind, message) = match signal(line) {
            Some(Signal::UnknownModel { model }) => {
                ("unknown_model", format!("unknown model {}", model.unwrap_or_default()))
            }
            Some(Signal::Failover { model, reason }) => {
                ("failover", format!("model {} failed: {reason}", model.unwrap_or_default()))
            }
            Some(Signal::BotConflict) => ("conflict", "another program uses the same chat-bot (409)".to_owned()),
            _ => continue,
        };
        kinds.entry(kind).and_modify(|(n, _)| *n += 1).or_insert((1, message));
    }
    let finding = |(kind, (times, message)): (&str, (usize, String))| {
        let mut finding = Finding::new(id, format!("{message}, {times} times"));
        finding.extra = json!({"kind": kind, "times": times});
        finding
    };
    kinds.into_iter().map(finding).collect()
}
