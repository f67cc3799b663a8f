//! llm_self_heal: starts the repair of sub keys that a foreign gateway refuses, and switches off those that it accepts
//! although they should be off. If more than half of all sub keys fail,
//! it raises one alert, and resolves it when that is over.

use std::sync::Arc;

use base::{Result, When};
use queue::alert::{self, Rule};

use super::Job;
use crate::{App, key_check, repair};

pub(super) const JOB: Job = Job::new("llm_self_heal", "LLM self-heal", When::minutes(5), |app, _| Box::pin(run(app)));

/// The alert's subject. The rule's other subject is the gateway itself.
const SUBJECT: &str = "keys";

async fn run(app: Arc<App>) -> Result<String> {
    let checked = key_check::ask_all(&app).await?;
    let open = repair::open_alerts(&app).await?;
    let failing = checked.iter().filter(|one| one.fails()).count();
    for one in &checked {
        key_check::note(&app, one).await?;
        if one.is_refused() {
            key_check::heal(&app, &one.key).await?;
        } else if let Some(instance) = one.key.instance_id.as_ref().filter(|_| !one.fails()) {
            repair::over(&app, &open, instance, repair::SELF_HEAL).await?;
        }
    }
    let open = key_check::ask_off(&app).await?;
    llm::key::alert_unrevoked(&app).await?;
    let most = failing * 2 > checked.len();
    let mut summary = format!("{failing} of {} sub keys fail", checked.len());
    if open > 0 {
        summary += &format!(", {open} should be off and are not");
    }
    let changed = alert::set_state(&app, Rule::GatewayDown, SUBJECT, most.then_some(summary.as_str())).await?;
    Ok(match (most, changed) {
        (true, true) => format!("{summary}; alert raised"),
        (false, true) => format!("{summary}; alert resolved"),
        _ => summary,
    })
}
