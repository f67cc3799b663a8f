//! Self-repair: logs and configurations are scanned for the rules (`scan`), what is found is proved a second time,
//! and a task (`RepairInstance`) does what the rule says, before and after in the ledger. One file per rule.
//!
//! The same repair of the same instance is done three times an hour at most; then it stops, with an alert.

mod auth_profiles;
mod bot_channel;
mod carry_out;
mod exit_loop;
mod no_api_key;
mod not_listening;
mod out_of_memory;
mod port_taken;
mod rate_limited;
mod scan;
mod unknown_key;

use std::collections::HashSet;
use std::time::Duration;

use base::id::{InstanceId, UserId};
use base::{Kind, Listing, Page, Result, Sort};
use futures_util::future::BoxFuture;
use jiff::SignedDuration;
use openclaw::rule::{Finding, Rule};
use openclaw::{Document, Version};
use people::holder;
use queue::audit::{self, Action, AuditEvent, By};
use queue::{alert, task};
use store::notice::{Notice, Topic};
pub use store::repair::{Repair, RepairFilter, SORTABLE, Status, Tally};
use store::{Tx, binding, repair};

use crate::App;
use crate::assistant::Assistant;
use crate::assistant::desired::Part;
use crate::reconcile::Wish;
use crate::task::{Context, RepairInstance};
pub use carry_out::carry_out;
pub use scan::{Planned, Preview, Scanned, preview, scan};

/// The words in the ledger of what is repaired without a rule: by `recovery`, and by `key_check`.
pub const AUTO_RECOVERY: &str = "auto_recovery";
pub const SELF_HEAL: &str = "llm_self_heal";

/// Repairs of one kind of one instance within the hour.
pub const BUDGET: i64 = 3;
pub const HOUR: SignedDuration = SignedDuration::from_hours(1);

/// An instance as a repair finds it.
pub struct Case<'a> {
    pub app: &'a App,
    pub assistant: &'a Assistant,
    pub version: &'a Version,
    /// None where there is no file.
    pub document: Option<&'a Document>,
}

/// The result of a second look.
pub enum Verdict {
    /// It is so; what was seen.
    Confirmed(String),
    /// It is so, and only people may do something: why.
    LeftToPeople(String),
    /// It is not so, or not any more.
    Refuted,
}

type Confirm = for<'a> fn(&'a Case<'a>, Option<&'a Finding>) -> BoxFuture<'a, Result<Verdict>>;
type RepairFn = for<'a> fn(&'a Context, &'a Case<'a>) -> BoxFuture<'a, Result<String>>;

/// What is done about a rule's case.
pub struct Handler {
    pub rule: Rule,
    /// What would be done, for people.
    pub plan: &'static str,
    /// The second proof, by another way than the first. Without a finding: whether it is (still) so now.
    confirm: Confirm,
    remedy: Remedy,
}

/// How a case is repaired.
pub(crate) enum Remedy {
    /// Only people may do something.
    LeftToPeople,
    /// What our records want is brought to the instance, as by any other reconcile.
    Reconcile(Reconcile),
    /// Steps of its own; returns what was done.
    Own(RepairFn),
}

/// A reconcile that repairs a case.
pub(crate) struct Reconcile {
    pub wish: Wish,
    /// What is written of our records if the platform never wrote the instance's configuration: the rest is its owner's.
    /// `None`: a restart is all that it takes.
    pub part: Option<Part>,
    /// Whether the instance gets a key if it has none.
    pub makes_key: bool,
    /// An edit beyond what our records want.
    pub also: fn(&mut Document) -> Result<()>,
    /// What was done, for the ledger.
    pub done: &'static str,
}

/// Every rule, in the order of their numbers.
pub const HANDLERS: &[Handler] = &[
    no_api_key::HANDLER,
    exit_loop::HANDLER,
    out_of_memory::HANDLER,
    unknown_key::HANDLER,
    auth_profiles::HANDLER,
    port_taken::HANDLER,
    not_listening::HANDLER,
    rate_limited::HANDLER,
    bot_channel::HANDLER,
];

pub fn handler(name: &str) -> Option<&'static Handler> {
    HANDLERS.iter().find(|handler| handler.rule.as_str() == name)
}

/// What came of the wish to repair something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begun {
    Yes,
    /// It was done three times within the hour: an alert says so.
    Spent,
    /// Another repair of the instance goes on: to be looked at again.
    Running,
    /// An administrator wants it to be left alone: to be looked at again.
    Held,
}

/// Begins a repair, if its budget allows it: ledger, task and audit entry together.
pub(crate) async fn begin(
    app: &App,
    tx: &mut Tx,
    instance: &InstanceId,
    rule: &str,
    before: &str,
    plan: &str,
) -> Result<Begun> {
    let now = app.clock.now();
    if store::reconcile::find(&mut *tx, instance).await?.is_held(now) {
        return Ok(Begun::Held);
    }
    if repair::count(tx, instance, rule, now - HOUR).await? >= BUDGET {
        tell(app, tx, instance, rule, before, &spent_words(before)).await?;
        return Ok(Begun::Spent);
    }
    let new = repair::New {
        rule,
        instance_id: instance,
        status: Status::Running,
        before,
        action: plan,
        after: "",
        created_at: now,
    };
    let Some(id) = repair::insert(tx, &new).await? else { return Ok(Begun::Running) };
    let payload = RepairInstance { instance_id: instance.clone(), repair_id: id };
    let task = task::enqueue(app, tx, &payload, rule, None).await?;
    repair::set_task(tx, id, &task).await?;
    let summary = format!("{rule}: {before}; {plan}");
    audit::record(app, tx, &By::system(), AuditEvent::warn(Action::InstanceHealth, instance, &summary)).await?;
    tx.notify(Notice::new(Topic::Repair, instance)).await?;
    Ok(Begun::Yes)
}

/// Whether a repair that is done on the spot may be done once more within the hour; if not, an alert is raised. An instance
/// that is held is not repaired.
pub(crate) async fn allows(app: &App, instance: &InstanceId, rule: &str, before: &str) -> Result<bool> {
    let mut tx = app.db.begin().await?;
    if store::reconcile::find(&mut tx, instance).await?.is_held(app.clock.now()) {
        return Ok(false);
    }
    let spent = repair::count(&mut tx, instance, rule, app.clock.now() - HOUR).await? >= BUDGET;
    if spent {
        tell(app, &mut tx, instance, rule, before, &spent_words(before)).await?;
    }
    tx.commit().await?;
    Ok(!spent)
}

/// A case that only people can end: the ledger says so once an hour, and an alert is open until it is over.
pub(crate) async fn alert_only(app: &App, instance: &InstanceId, rule: &str, found: &str) -> Result<()> {
    let mut tx = app.db.begin().await?;
    tell(app, &mut tx, instance, rule, found, found).await?;
    Ok(tx.commit().await?)
}

/// A repair that was done on the spot.
pub(crate) struct Done<'a> {
    pub instance: &'a InstanceId,
    pub rule: &'a str,
    pub before: &'a str,
    pub action: &'a str,
    /// How it is now, or why it failed.
    pub after: std::result::Result<&'a str, &'a str>,
    pub took: Duration,
}

/// Writes a repair into the ledger that was done on the spot.
pub(crate) async fn note(app: &App, done: &Done<'_>) -> Result<()> {
    let now = app.clock.now();
    let (status, after) = match done.after {
        Ok(after) => (Status::Success, after),
        Err(after) => (Status::Failed, after),
    };
    let new = repair::New {
        rule: done.rule,
        instance_id: done.instance,
        status,
        before: done.before,
        action: done.action,
        after,
        created_at: now,
    };
    let mut tx = app.db.begin().await?;
    if let Some(id) = repair::insert(&mut tx, &new).await? {
        repair::set_took(&mut tx, id, i64::try_from(done.took.as_millis()).unwrap_or(i64::MAX)).await?;
    }
    conclude(app, &mut tx, done.instance, done.rule, status, after).await?;
    Ok(tx.commit().await?)
}

/// What follows from the end of a repair: the alert, the audit entry, and that it is heard.
pub async fn conclude(
    app: &App,
    tx: &mut Tx,
    instance: &InstanceId,
    rule: &str,
    status: Status,
    after: &str,
) -> Result<()> {
    let summary = format!("{rule}: {after}");
    let event = if status == Status::Success {
        resolve(app, tx, instance, rule).await?;
        AuditEvent::info(Action::InstanceHealth, instance, &summary)
    } else {
        let message = format!("{instance}: {summary}");
        alert::raise(app, tx, alert::Rule::InstancesUnhealthy, &subject(instance, rule), &message).await?;
        AuditEvent::warn(Action::InstanceHealth, instance, &summary)
    };
    audit::record(app, tx, &By::system(), event).await?;
    Ok(tx.notify(Notice::new(Topic::Repair, instance)).await?)
}

fn spent_words(before: &str) -> String {
    format!("repaired {BUDGET} times within the hour, and still: {before}")
}

/// Nothing is done by itself: the ledger says so once an hour, and an alert is open.
async fn tell(app: &App, tx: &mut Tx, instance: &InstanceId, rule: &str, before: &str, why: &str) -> Result<()> {
    let now = app.clock.now();
    if !repair::was_alerted(tx, instance, rule, now - HOUR).await? {
        let new = repair::New {
            rule,
            instance_id: instance,
            status: Status::Alert,
            before,
            action: "nothing: somebody was told",
            after: why,
            created_at: now,
        };
        repair::insert(tx, &new).await?;
        audit::record(
            app,
            tx,
            &By::system(),
            AuditEvent::warn(Action::InstanceHealth, instance, &format!("{rule}: {why}")),
        )
        .await?;
        tx.notify(Notice::new(Topic::Repair, instance)).await?;
    }
    let message = format!("{instance}: {rule}: {why}");
    alert::raise(app, tx, alert::Rule::InstancesUnhealthy, &subject(instance, rule), &message).await.map(drop)
}

/// What an alert about a repair rule's case is about.
pub(crate) fn subject(instance: &InstanceId, rule: &str) -> String {
    format!("repair:{instance}:{rule}")
}

/// It is over: the alert about it ends.
pub(crate) async fn resolve(app: &App, tx: &mut Tx, instance: &InstanceId, rule: &str) -> Result<()> {
    alert::resolve(app, tx, alert::Rule::InstancesUnhealthy, &subject(instance, rule)).await.map(drop)
}

/// The same by itself, where the alert is one of the open ones.
pub(crate) async fn over(app: &App, open: &HashSet<String>, instance: &InstanceId, rule: &str) -> Result<()> {
    if !open.contains(&subject(instance, rule)) {
        return Ok(());
    }
    let mut tx = app.db.begin().await?;
    resolve(app, &mut tx, instance, rule).await?;
    Ok(tx.commit().await?)
}

/// The subjects of alerts about instances that are open.
pub(crate) async fn open_alerts(app: &App) -> Result<HashSet<String>> {
    alert::open_subjects(app, alert::Rule::InstancesUnhealthy).await
}

/// The instance is gone: so are the alerts about it.
pub(crate) async fn resolve_all(app: &App, tx: &mut Tx, instance: &InstanceId) -> Result<()> {
    let (whole, parts, prefix) =
        (format!("instance:{instance}"), format!("instance:{instance}:"), subject(instance, ""));
    let tasks: Vec<String> = store::task::dead_of(tx, instance).await?.iter().map(|id| format!("task:{id}")).collect();
    let about = |alert: &alert::Alert| {
        let is_of_it = alert.subject.starts_with(&prefix) || alert.subject.starts_with(&parts);
        alert.subject == whole || is_of_it || tasks.contains(&alert.subject)
    };
    alert::resolve_where(app, tx, about).await.map(drop)
}

pub async fn list(
    app: &App,
    filter: RepairFilter<'_>,
    sort: Sort,
    page: Page,
) -> Result<(Listing<Repair>, Vec<Tally>)> {
    Ok((repair::list(&app.db, filter, sort, page).await?, repair::tallies(&app.db).await?))
}

/// What was repaired of an employee's own instance since it is theirs, the newest first.
pub async fn own(app: &App, user: &UserId, id: &InstanceId, page: Page) -> Result<Listing<Repair>> {
    holder::own(app, user, id).await?;
    let bindings = binding::history(&app.db, id).await?;
    let live = bindings.into_iter().find(|b| b.ended_at.is_none() && b.user_id == *user);
    let since = live.ok_or(Kind::NotFound)?.created_at;
    let filter = RepairFilter { instance_id: Some(id.as_str()), since: Some(since), ..RepairFilter::default() };
    let newest = Sort { column: "created_at", descending: true };
    Ok(repair::list(&app.db, filter, newest, page).await?)
}

/// The instance's own place and version, for a second look.
pub async fn open(app: &App, id: &InstanceId) -> Result<(Assistant, Version)> {
    let assistant = Assistant::open(app, id).await?;
    let version = crate::assistant::install::of_instance(app, &assistant).await?;
    Ok((assistant, version))
}
