//! Does what a rule says: proves it once more, repairs, and looks again.

use base::{Kind, Result};
use store::repair::Repair;

use super::{Case, Proof, handler, open};
use crate::assistant::{Assistant, config, health};
use crate::reconcile;
use crate::task::Context;

/// What was done, and how it is now.
pub async fn carry_out(context: &Context, found: &Repair) -> Result<(String, String)> {
    let app = &*context.app;
    let id = found.instance_id.clone();
    let handler = handler(&found.rule).ok_or(Kind::NotFound)?;
    let Some(repair) = handler.repair else { return Ok(("nothing".into(), "only people may do something".into())) };
    let (assistant, version) = open(app, &id).await?;
    let document = config::read(&assistant).await?.map(|found| found.document);
    let case = Case { app, assistant: &assistant, version: &version, document: document.as_ref() };
    // It may have waited in the queue: what is not so any more is left alone.
    match (handler.confirm)(&case, None).await? {
        // A worker before this one began it, and went away in the middle.
        Proof::Refuted if reconcile::finish(context, &assistant).await? => {
            return Ok((format!("{}, in two attempts", found.action), now(&assistant).await?));
        }
        Proof::Refuted => return Ok(("nothing".into(), "it was over before anything was done".into())),
        Proof::HandsOff(why) => return Err(base::Error::conflict(why)),
        Proof::Confirmed(_) => {}
    }
    let done = repair(context, &case).await?;
    let document = config::read(&assistant).await?.map(|found| found.document);
    let case = Case { document: document.as_ref(), ..case };
    match (handler.confirm)(&case, None).await? {
        Proof::Refuted => {}
        Proof::Confirmed(still) | Proof::HandsOff(still) => {
            return Err(base::Error::conflict(format!("still: {still}")));
        }
    }
    Ok((done, now(&assistant).await?))
}

async fn now(assistant: &Assistant) -> Result<String> {
    Ok(match health::stage(assistant).await? {
        health::Stage::Silent => "it is not answering".into(),
        health::Stage::Alive => "it is alive, but not ready".into(),
        health::Stage::Ready(failing) if failing.is_empty() => "it is ready".into(),
        health::Stage::Ready(failing) => format!("it is ready but for {}", failing.join(", ")),
    })
}
