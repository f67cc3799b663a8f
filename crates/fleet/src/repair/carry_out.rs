//! Does what a rule says: proves it once more, repairs, and looks again.

use base::{Kind, Result};
use store::repair::Repair;

use super::{Case, Remedy, Verdict, handler, open};
use crate::assistant::desired::Desired;
use crate::assistant::{Assistant, config, health};
use crate::reconcile::{self, Restart};
use crate::task::Context;

/// What was done, and how it is now.
pub async fn carry_out(context: &Context, found: &Repair) -> Result<(String, String)> {
    let app = &*context.app;
    let id = found.instance_id.clone();
    let handler = handler(&found.rule).ok_or(Kind::NotFound)?;
    if matches!(handler.remedy, Remedy::LeftToPeople) {
        return Ok(("nothing".into(), "only people may do something".into()));
    }
    let (assistant, version) = open(app, &id).await?;
    let document = config::read(&assistant).await?.map(|found| found.document);
    let case = Case { app, assistant: &assistant, version: &version, document: document.as_ref() };
    // It may have waited in the queue: what is not so any more is left alone.
    match (handler.confirm)(&case, None).await? {
        // A worker before this one began it, and went away in the middle.
        Verdict::Refuted if reconcile::finish(context, &assistant).await? => {
            return Ok((format!("{}, in two attempts", found.action), now(&assistant).await?));
        }
        Verdict::Refuted => return Ok(("nothing".into(), "it was over before anything was done".into())),
        Verdict::LeftToPeople(why) => return Err(base::Error::conflict(why)),
        Verdict::Confirmed(_) => {}
    }
    let done = match &handler.remedy {
        Remedy::Own(repair) => repair(context, &case).await?,
        Remedy::Reconcile(reconcile) => bring(context, &case, reconcile).await?,
        Remedy::LeftToPeople => String::new(),
    };
    let document = config::read(&assistant).await?.map(|found| found.document);
    let case = Case { document: document.as_ref(), ..case };
    match (handler.confirm)(&case, None).await? {
        Verdict::Refuted => {}
        Verdict::Confirmed(still) | Verdict::LeftToPeople(still) => {
            return Err(base::Error::conflict(format!("still: {still}")));
        }
    }
    Ok((done, now(&assistant).await?))
}

/// Brings what our records want, as the rule wishes it.
async fn bring(context: &Context, case: &Case<'_>, rule: &super::Reconcile) -> Result<String> {
    let (app, assistant, version) = (case.app, case.assistant, case.version);
    let is_ours = !assistant.instance.config_hash.is_empty();
    if rule.part.is_none() {
        Restart::prepare(app, assistant, version).await?.go(context, assistant).await?;
        return Ok(rule.done.into());
    }
    let desired = match rule.makes_key {
        true => Desired::of(app, assistant, version).await?,
        false => Desired::known(app, assistant, version).await?,
    };
    let edit = |document: &mut openclaw::Document| {
        match rule.part.filter(|_| !is_ours) {
            Some(part) => desired.apply_part(document, part)?,
            None => desired.apply(document)?,
        }
        (rule.also)(document)
    };
    reconcile::edit(context, assistant, version, rule.wish, &edit).await?;
    if is_ours {
        desired.was_applied(app, assistant).await?;
    }
    Ok(rule.done.into())
}

async fn now(assistant: &Assistant) -> Result<String> {
    Ok(match health::stage(assistant).await? {
        health::Stage::Silent => "it is not answering".into(),
        health::Stage::Alive => "it is alive, but not ready".into(),
        health::Stage::Ready(failing) if failing.is_empty() => "it is ready".into(),
        health::Stage::Ready(failing) => format!("it is ready but for {}", failing.join(", ")),
    })
}
