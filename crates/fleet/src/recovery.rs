//! auto_recovery: restarts an instance that is unhealthy and failed three times in a row, and checks it again ten
//! seconds after it answers. There are at most three restarts an hour. If an instance fails again within half an hour
//! of a restart, an alert is raised at once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base::id::InstanceId;
use base::{Error, Result};
use jiff::SignedDuration;
use queue::alert::{self, Rule};
use store::instance::{self, Health};
use store::instance_health;
use store::instance_health::Layer;
use store::repair::{self, Repair};

use crate::assistant::{health as pages, pending};
use crate::health::judge::{Found, MOST_FAILURES};
use crate::reconcile;
use crate::repair::{AUTO_RECOVERY, Begun, begin, open, subject};
use crate::sweep::{self, Member, Post, Since};
use crate::task::Context;
use crate::{App, health};

/// A failure within this time after a restart raises an alert.
const WATCH: SignedDuration = SignedDuration::from_mins(30);
/// How long to wait for an answer after a restart.
const ANSWER: Duration = Duration::from_secs(90);

/// Starts the restarts that are due. Returns the instances that are restarted, and those that are left to
/// administrators.
pub async fn recover(app: &Arc<App>) -> Result<(Vec<InstanceId>, Vec<InstanceId>)> {
    repair::abandon(&app.db, app.clock.now()).await?;
    let (mut begun, mut left) = (vec![], vec![]);
    for post in sweep::fleet(app).await? {
        for member in post.instances {
            let instance = &member.instance;
            let due = instance.health_status == Health::Unhealthy && instance.health_fail_count >= MOST_FAILURES;
            // What nothing starts cannot be started again.
            if !due || member.busy || !member.instance.is_managed() {
                continue;
            }
            match consider(app, &member).await {
                Ok(true) => begun.push(member.instance.id),
                Ok(false) => left.push(member.instance.id),
                Err(error) => tracing::warn!(instance = %member.instance.id, %error, "its recovery could not be begun"),
            }
        }
    }
    Ok((begun, left))
}

async fn consider(app: &App, member: &Member) -> Result<bool> {
    let now = app.clock.now();
    let mut tx = app.db.begin().await?;
    let Some(instance) = instance::lock(&mut tx, &member.instance.id).await? else { return Ok(false) };
    if instance.health_status != Health::Unhealthy || instance.health_fail_count < MOST_FAILURES {
        return Ok(false);
    }
    let known = instance_health::find(&mut tx, &instance.id).await?;
    let detail = known.as_ref().map_or(String::new(), |known| known.detail.clone());
    // An unreachable server cannot restart anything. An instance that ran out of memory is left to administrators.
    if known.as_ref().is_some_and(|known| known.memory_out_at.is_some() || known.layer == Some(Layer::Ssh)) {
        return Ok(false);
    }
    let before = format!("{} failures in a row: {detail}", instance.health_fail_count);
    if let Some(at) = known.and_then(|known| known.restarted_at).filter(|at| now.duration_since(*at) < WATCH) {
        let minutes = now.duration_since(at).as_mins();
        let message = format!("{} failed again {minutes} minutes after it was restarted: {detail}", instance.name);
        alert::raise(app, &mut tx, Rule::InstancesUnhealthy, &subject(&instance.id, AUTO_RECOVERY), &message).await?;
    }
    let begun =
        begin(app, &mut tx, &instance.id, AUTO_RECOVERY, &before, "restart the service, look again after 10 s").await?;
    tx.commit().await?;
    Ok(begun == Begun::Yes)
}

/// Checks the instance, restarts it if it is still down, and checks it again.
pub(super) async fn restart(context: &Context, of: &Repair) -> Result<(String, String)> {
    let app = &*context.app;
    let id = of.instance_id.clone();
    let (assistant, version) = open(app, &id).await?;
    let seen = look(app, &assistant).await?;
    if seen.works() {
        let report = write(app, &id, &seen).await?;
        return Ok(("nothing".into(), format!("it was over before anything was done: {}", report.detail)));
    }
    if seen.found == Found::Unknown {
        return Err(Error::conflict(format!("nothing was done: {}", seen.detail)));
    }
    // An earlier worker may have restarted it, or it was started a moment ago. Then only the second check is left to
    // do.
    let known = instance_health::find(&app.db, &id).await?;
    let was_restarted = known.and_then(|known| known.restarted_at).is_some_and(|at| at >= of.created_at);
    let restarted = if was_restarted && pending::of(app, &assistant).await?.pending.is_start() {
        // The earlier worker stopped in the middle of the restart.
        reconcile::finish(context, &assistant).await.map(drop)
    } else if was_restarted || seen.found == Found::Starting {
        Ok(())
    } else {
        let restart = reconcile::Restart::prepare(app, &assistant, &version).await?;
        instance_health::set_restarted(&app.db, &of.instance_id, app.clock.now()).await?;
        restart.go(context, &assistant).await
    };
    // The ten seconds begin when it answers, or when the wait for an answer ends.
    let began = Instant::now();
    while began.elapsed() < ANSWER.min(app.assistants.start_limit) {
        if pages::stage(&assistant).await? != pages::Stage::Silent {
            break;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    tokio::time::sleep(app.assistants.settle).await;
    let seen = look(app, &assistant).await?;
    // At this point, a start that is not over counts as failed.
    let found = if seen.found == Found::Starting { Found::Failed } else { seen.found.clone() };
    let seen = health::Seen { found, ..seen };
    let report = write(app, &id, &seen).await?;
    match (seen.works(), restarted) {
        (true, _) => Ok(("restarted the service".into(), format!("{}: {}", report.status.as_str(), report.detail))),
        (false, Ok(())) => Err(Error::conflict(format!("looked at again: {}", report.detail))),
        (false, Err(error)) => Err(error),
    }
}

async fn write(app: &App, id: &InstanceId, seen: &health::Seen) -> Result<health::Report> {
    let mut tx = app.db.begin().await?;
    let instance = instance::lock(&mut tx, id).await?.ok_or(base::Kind::NotFound)?;
    let report = health::write(app, &mut tx, &instance, seen, app.clock.now()).await?;
    health::follow_up(app, &mut tx, &report).await?;
    tx.commit().await?;
    Ok(report)
}

/// The periodic health check, for one instance.
async fn look(app: &App, assistant: &crate::assistant::Assistant) -> Result<health::Seen> {
    let instance = instance::find(&app.db, &assistant.id()).await?.ok_or(base::Kind::NotFound)?;
    let known = instance_health::find(&app.db, &assistant.id()).await?;
    let post =
        Post { server: assistant.server.clone(), instances: vec![Member { instance, known, cell: None, busy: false }] };
    let looked = sweep::look(app, &post, &sweep::brief(), Since::End).await?;
    Ok(health::look(app, &looked, 0, &post.instances[0]).await)
}
