//! The task that does a repair: proves it once more, does it, and writes into the ledger what came of it.

use std::time::Instant;

use base::id::InstanceId;
use base::{Kind, Result};
use serde::{Deserialize, Serialize};
use store::Tx;
use store::debt::{self, Owed};
use store::repair::{self, Repair, Status};

use super::{AUTO_RECOVERY, Case, Proof, conclude, handler, open, recover};
use crate::assistant::{Assistant, config, health};
use crate::key::{self, check::SELF_HEAL};
use crate::permission::Permission;
use crate::task::{Context, MOST_ATTEMPTS, Payload, Priority, Run};

/// A repair that was begun must be done.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RepairInstance {
    pub instance_id: String,
    pub repair_id: i64,
}

impl Payload for RepairInstance {
    const TYPE: &'static str = "repair_instance";
    const PRIORITY: Priority = Priority::Fleet;

    async fn instance(&self, _: &mut Tx) -> Result<Option<InstanceId>> {
        Ok(Some(InstanceId::named(&self.instance_id)))
    }

    fn permission(&self) -> Permission {
        Permission::ManageInstances
    }
}

impl Run for RepairInstance {
    /// A repair that fails is not tried again by the queue: the next scan decides that, within its budget. But for one that stopped
    /// the assistant and did not come to starting it: the next attempt does.
    async fn run(self, context: Context) -> Result<String> {
        let repair = repair::find(&context.app.db, self.repair_id).await?.ok_or(Kind::NotFound)?;
        if repair.status != Status::Running {
            return Ok("it is over already".into());
        }
        let began = Instant::now();
        let done = match repair.rule.as_str() {
            AUTO_RECOVERY => recover::restart(&context, &repair).await,
            SELF_HEAL => key::check::repair(&context, &repair).await,
            _ => carry_out(&context, &repair).await,
        };
        let ms = i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX);
        let (status, action, after) = match done {
            Ok((action, after)) => (Status::Success, action, after),
            Err(error) if is_left_down(&context, &repair).await? => return Err(error),
            Err(error) => (Status::Failed, repair.action.clone(), error.to_string()),
        };
        end(&context, &repair, status, &action, &after, ms).await?;
        Ok(format!("{}: {after}", status.as_str()))
    }
}

/// Whether it stopped the assistant, and another attempt can start it again.
async fn is_left_down(context: &Context, repair: &Repair) -> Result<bool> {
    let debt = debt::find(&context.app.db, &InstanceId::named(&repair.instance_id)).await?;
    Ok(debt.owed == Owed::Restart && context.held.attempt < MOST_ATTEMPTS)
}

/// What was done, and how it is now.
async fn carry_out(context: &Context, found: &Repair) -> Result<(String, String)> {
    let app = &*context.app;
    let id = InstanceId::named(&found.instance_id);
    let handler = handler(&found.rule).ok_or(Kind::NotFound)?;
    let Some(repair) = handler.repair else { return Ok(("nothing".into(), "only people may do something".into())) };
    let (assistant, version) = open(app, &id).await?;
    let document = config::read(&assistant).await?.map(|found| found.document);
    let case = Case { app, assistant: &assistant, version: &version, document: document.as_ref() };
    // It may have waited in the queue: what is not so any more is left alone.
    match (handler.confirm)(&case, None).await? {
        // A worker before this one began it, and went away in the middle.
        Proof::Refuted if config::settle(context, &assistant).await? => {
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

async fn end(context: &Context, of: &Repair, status: Status, action: &str, after: &str, ms: i64) -> Result<()> {
    let app = &*context.app;
    let mut tx = app.db.begin().await?;
    repair::end(&mut tx, of.id, status, action, after, ms, app.clock.now()).await?;
    conclude(app, &mut tx, &of.instance_id, &of.rule, status, after).await?;
    Ok(tx.commit().await?)
}
