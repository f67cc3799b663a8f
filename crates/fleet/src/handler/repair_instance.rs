//! The task that does a repair: proves it once more, does it, and writes into the ledger what came of it.

use std::time::Instant;

use base::{Kind, Result};
use queue::task::Run;
use queue::worker::MOST_ATTEMPTS;
use store::reconcile::{self, Pending};
use store::repair::{self, Repair, Status};

use crate::reconcile::hold;
use crate::repair::{AUTO_RECOVERY, SELF_HEAL, carry_out, conclude};
use crate::task::{Context, RepairInstance};
use crate::{App, key_check, recovery};

impl Run<App> for RepairInstance {
    /// A repair that fails is not tried again by the queue: the next scan decides that, within its budget. But for one that stopped
    /// the assistant and did not come to starting it: the next attempt does.
    async fn run(self, context: Context) -> Result<String> {
        let repair = repair::find(&context.app.db, self.repair_id).await?.ok_or(Kind::NotFound)?;
        if repair.status != Status::Running {
            return Ok("it is over already".into());
        }
        let began = Instant::now();
        if let Some(held) = hold::refusal(&context.app, &repair.instance_id).await? {
            end(&context, &repair, Status::Failed, "nothing", &held, 0).await?;
            return Ok(held);
        }
        let done = match repair.rule.as_str() {
            AUTO_RECOVERY => recovery::restart(&context, &repair).await,
            SELF_HEAL => key_check::repair(&context, &repair).await,
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
    let state = reconcile::find(&context.app.db, &repair.instance_id).await?;
    Ok(state.pending == Pending::Restart && context.held.attempt < MOST_ATTEMPTS)
}

async fn end(context: &Context, of: &Repair, status: Status, action: &str, after: &str, ms: i64) -> Result<()> {
    let app = &*context.app;
    let mut tx = app.db.begin().await?;
    repair::end(&mut tx, of.id, status, action, after, ms, app.clock.now()).await?;
    conclude(app, &mut tx, &of.instance_id, &of.rule, status, after).await?;
    Ok(tx.commit().await?)
}
