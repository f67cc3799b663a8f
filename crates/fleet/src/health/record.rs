//! Records the results of a health check, for all instances of a server in one transaction. It uses few statements,
//! however many instances there are, because their rows are locked meanwhile and claims of them wait.

use std::collections::{HashMap, HashSet};

use base::Result;
use base::id::InstanceId;
use jiff::{SignedDuration, Timestamp};
use queue::alert::{self, Rule};
use queue::audit::{self, Action, AuditEvent, By, Level};
use store::heartbeat::{self, Beat};
use store::instance::{Health, Instance};
use store::instance_health::{self, InstanceHealth, Judged, Sight};
use store::notice::{Notice, Topic};
use store::{Tx, task};

use super::judge::{self, Before, Found};
use super::{Report, Seen};
use crate::sweep::{Member, Post};
use crate::{App, listener, repair, server};

const MEMORY_OUT: &str = "it answers, but ran out of memory; a restart by hand clears this";
/// How long an instance's checks are kept.
const BEATS_KEPT: SignedDuration = SignedDuration::from_hours(24);

/// Records the results of a check that started at `began`, in one transaction.
pub(super) async fn record(app: &App, post: &Post, seen: Vec<Seen>, began: Timestamp) -> Result<Vec<Report>> {
    let now = app.clock.now();
    let ids: Vec<InstanceId> = post.instances.iter().map(|member| member.instance.id.clone()).collect();
    let mut tx = app.db.begin().await?;
    // Read the rows again: a repair may have changed one since the fleet was read.
    let locked = instance_health::lock_instances(&mut tx, &ids).await?;
    let mut locked: HashMap<InstanceId, Instance> = locked.into_iter().map(|i| (i.id.clone(), i)).collect();
    let known = instance_health::of(&mut tx, &ids).await?;
    let mut known: HashMap<InstanceId, InstanceHealth> =
        known.into_iter().map(|k| (k.instance_id.clone(), k)).collect();
    let busy: HashSet<InstanceId> = task::busy_among(&mut tx, &ids).await?.into_iter().collect();
    let mut look = Look::begin(&mut tx, now).await?;
    let away = seen.iter().any(|seen| seen.unreachable);
    let mut reports = vec![];
    for (member, seen) in post.instances.iter().zip(seen) {
        let Some(instance) = locked.remove(&member.instance.id) else { continue };
        let known = known.remove(&instance.id);
        if is_stale(member, &instance, known.as_ref(), &busy, began, now) {
            reports.push(as_known(&instance, known));
            continue;
        }
        let report = look.judge(app, &mut tx, &instance, known, &seen).await?;
        // A server that cannot be reached gets one alert of its own, below.
        if !(seen.unreachable && seen.found == Found::Failed) {
            look.follow_up(app, &mut tx, &report).await?;
        }
        reports.push(report);
    }
    look.write(app, &mut tx).await?;
    let subject = server::subject(&post.server.id);
    if away && reports.iter().any(|r| r.status == Health::Unhealthy) {
        let message = format!("server {} cannot be reached; {} instances are on it", post.server.name, reports.len());
        if alert::raise(app, &mut tx, Rule::InstancesUnhealthy, &subject, &message).await? {
            let event = AuditEvent::error(Action::ServerAction, &post.server.id, &message);
            audit::record(app, &mut tx, &By::system(), event).await?;
        }
    } else if !away {
        alert::resolve(app, &mut tx, Rule::InstancesUnhealthy, &subject).await?;
    }
    tx.commit().await?;
    Ok(reports)
}

/// Computes and records the state of one instance, with its audit entry. The caller holds the lock on its row.
pub async fn write(app: &App, tx: &mut Tx, instance: &Instance, seen: &Seen, now: Timestamp) -> Result<Report> {
    let known = instance_health::find(&mut *tx, &instance.id).await?;
    let mut look = Look::begin(tx, now).await?;
    let report = look.judge(app, tx, instance, known, seen).await?;
    look.write(app, tx).await?;
    Ok(report)
}

/// Raises or resolves the alert of one instance.
pub async fn follow_up(app: &App, tx: &mut Tx, report: &Report) -> Result<()> {
    Look::begin(tx, app.clock.now()).await?.follow_up(app, tx, report).await
}

/// Whether the result is outdated: another check, a restart or a task has come in between.
fn is_stale(
    member: &Member,
    instance: &Instance,
    known: Option<&InstanceHealth>,
    busy: &HashSet<InstanceId>,
    began: Timestamp,
    now: Timestamp,
) -> bool {
    // Ignore a time in the future. A clock that was ahead wrote it, and no check would be recorded until then.
    let later = |at: Option<Timestamp>| at.is_some_and(|at| began < at && at <= now);
    later(instance.last_health_at)
        || later(known.and_then(|known| known.restarted_at))
        || (!member.busy && busy.contains(&instance.id))
}

/// The state as it was recorded last.
fn as_known(instance: &Instance, known: Option<InstanceHealth>) -> Report {
    let (layer, detail, latency_ms) =
        known.map_or_else(Default::default, |known| (known.layer, known.detail, known.latency_ms));
    Report {
        id: instance.id.clone(),
        name: instance.name.clone(),
        server_id: instance.server_id.clone(),
        status: instance.health_status,
        fails: instance.health_fail_count,
        layer,
        detail,
        latency_ms,
    }
}

/// Collects the rows to write for one check.
struct Look {
    now: Timestamp,
    /// The subjects of all open alerts about instances, read once instead of with a query for each instance.
    open: HashSet<String>,
    judged: Vec<Judged>,
    sights: Vec<Sight>,
    beats: Vec<(InstanceId, Beat)>,
    events: Vec<(Level, String, String)>,
}

impl Look {
    async fn begin(tx: &mut Tx, now: Timestamp) -> Result<Look> {
        let open = alert::open_subjects_in(tx, Rule::InstancesUnhealthy).await?;
        Ok(Look { now, open, judged: vec![], sights: vec![], beats: vec![], events: vec![] })
    }

    /// Computes the state of one instance. Rare changes are written at once; all others are written together by
    /// `write`.
    async fn judge(
        &mut self,
        app: &App,
        tx: &mut Tx,
        instance: &Instance,
        known: Option<InstanceHealth>,
        seen: &Seen,
    ) -> Result<Report> {
        let memory_out_at = known.and_then(|known| known.memory_out_at);
        let memory_out = memory_out_at.is_some_and(|at| seen.started_at.is_none_or(|started| started <= at));
        if memory_out_at.is_some() && !memory_out {
            instance_health::set_memory_out(&mut *tx, &instance.id, None).await?;
            self.end_repair(app, tx, &instance.id, openclaw::rule::Rule::OutOfMemory.as_str()).await?;
        }
        // The instance's own gateway answered, so no foreign listener has its port.
        if seen.works() && !seen.unreachable {
            self.end_repair(app, tx, &instance.id, listener::FOREIGN_LISTENER).await?;
        }
        let before = Before { status: instance.health_status, fails: instance.health_fail_count, memory_out };
        let (status, fails) = judge::next(before, &seen.found);
        self.judged.push(Judged { id: instance.id.clone(), status, fails });
        // Otherwise the detail of a passed check would be shown as the reason why the instance is unhealthy.
        let detail = if memory_out && seen.found == Found::Passed { MEMORY_OUT } else { &seen.detail };
        let detail: String = detail.chars().take(500).collect();
        let (layer, latency_ms) = (seen.layer, seen.latency_ms);
        self.sights.push(Sight { id: instance.id.clone(), layer, detail: detail.clone(), latency_ms });
        let beat = Beat { status, layer, latency_ms, created_at: self.now };
        self.beats.push((instance.id.clone(), beat));
        if status != instance.health_status {
            let level = match status {
                Health::Healthy | Health::Unknown => Level::Info,
                Health::KeyInvalid => Level::Error,
                _ => Level::Warn,
            };
            let change = format!("{} → {}: {detail}", instance.health_status.as_str(), status.as_str());
            self.events.push((level, instance.id.to_string(), change));
            tx.notify(Notice::new(Topic::Instance, &instance.id)).await?;
        } else if matches!(seen.found, Found::Failed | Found::Inactive) && fails <= judge::MOST_FAILURES {
            let again = format!("check failed ({fails} in a row): {detail}");
            self.events.push((Level::Warn, instance.id.to_string(), again));
        }
        Ok(Report {
            id: instance.id.clone(),
            name: instance.name.clone(),
            server_id: instance.server_id.clone(),
            status,
            fails,
            layer: Some(layer),
            detail,
            latency_ms,
        })
    }

    async fn end_repair(&mut self, app: &App, tx: &mut Tx, instance: &InstanceId, rule: &str) -> Result<()> {
        if self.open.remove(&repair::subject(instance, rule)) {
            repair::resolve(app, tx, instance, rule).await?;
        }
        Ok(())
    }

    /// Raises or resolves the alert of one instance.
    async fn follow_up(&mut self, app: &App, tx: &mut Tx, report: &Report) -> Result<()> {
        let subject = format!("instance:{}", report.id);
        match report.status {
            Health::Unhealthy | Health::KeyInvalid => {
                if !self.open.contains(&subject) {
                    let message = format!("{} is {}: {}", report.name, report.status.as_str(), report.detail);
                    alert::raise(app, tx, Rule::InstancesUnhealthy, &subject, &message).await?;
                    self.open.insert(subject);
                }
            }
            Health::Healthy => {
                if self.open.remove(&subject) {
                    alert::resolve(app, tx, Rule::InstancesUnhealthy, &subject).await?;
                }
                self.end_repair(app, tx, &report.id, repair::AUTO_RECOVERY).await?;
            }
            Health::Unknown | Health::RateLimited => {}
        }
        Ok(())
    }

    async fn write(&self, app: &App, tx: &mut Tx) -> Result<()> {
        instance_health::judged_all(tx, &self.judged, self.now).await?;
        instance_health::saw_all(tx, &self.sights).await?;
        heartbeat::write_all(tx, &self.beats, self.now - BEATS_KEPT).await?;
        let events = self.events.iter();
        let events = events.map(|(level, target, detail)| AuditEvent {
            action: Action::InstanceHealth,
            level: *level,
            target,
            detail,
        });
        audit::record_all(app, tx, &By::system(), &events.collect::<Vec<_>>()).await
    }
}
