//! Self-repair: logs and configurations are scanned for the nine rules (`scan`), what is found is proved a second time,
//! and a task (`RepairInstance`) does what the rule says, before and after in the ledger. One file per rule.
//!
//! The same repair of the same instance is done three times an hour at most; then it stops, and somebody is told.

mod auth_profiles;
mod bot_channel;
mod exit_loop;
mod no_api_key;
mod not_listening;
mod out_of_memory;
mod port_taken;
mod rate_limited;
mod recover;
mod run;
mod scan;
mod unknown_key;

use base::id::{InstanceId, UserId};
use base::{Kind, Listing, Page, Result, Sort};
use futures_util::future::BoxFuture;
use jiff::SignedDuration;
use openclaw::rule::{Finding, Rule};
use openclaw::{Document, Version};
use store::notice::{Notice, Topic};
pub use store::repair::{Repair, SORTABLE, Status, Tally, Wanted};
use store::{Tx, binding, repair};

use crate::alert;
use crate::assistant::Assistant;
use crate::audit::{self, Action, By, Deed};
use crate::task::{self, Context};
use crate::{App, claim};
pub use recover::{AUTO_RECOVERY, recover};
pub use run::RepairInstance;
pub use scan::{Planned, Scanned, preview, scan};

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

/// What a second look says.
pub enum Proof {
    /// It is so; what was seen.
    Confirmed(String),
    /// It is so, and nothing may be done by itself: why.
    HandsOff(String),
    /// It is not so, or not any more.
    Refuted,
}

type Confirm = for<'a> fn(&'a Case<'a>, Option<&'a Finding>) -> BoxFuture<'a, Result<Proof>>;
type Mend = for<'a> fn(&'a Context, &'a Case<'a>) -> BoxFuture<'a, Result<String>>;

/// What is done about a rule's case.
pub struct Handler {
    pub rule: Rule,
    /// What would be done, for people.
    pub plan: &'static str,
    /// The second proof, by another way than the first. Without a finding: whether it is (still) so now.
    confirm: Confirm,
    /// Does it; answers what was done. None for what only people may do.
    repair: Option<Mend>,
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

/// Begins a repair, if its budget allows it: ledger, task and audit entry together. Answers whether it was begun.
async fn begin(app: &App, tx: &mut Tx, instance: &str, rule: &str, before: &str, plan: &str) -> Result<bool> {
    let now = app.clock.now();
    if repair::count(tx, instance, rule, now - HOUR).await? >= BUDGET {
        let why = format!("repaired {BUDGET} times within the hour, and still: {before}");
        tell(app, tx, instance, rule, before, &why).await?;
        return Ok(false);
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
    let Some(id) = repair::insert(tx, &new).await? else { return Ok(false) };
    let payload = RepairInstance { instance_id: instance.to_owned(), repair_id: id };
    let task = task::enqueue(app, tx, &payload, rule, None).await?;
    repair::set_task(tx, id, task.as_str()).await?;
    let told = format!("{rule}: {before}; {plan}");
    audit::record(app, tx, &By::system(), Deed::warn(Action::InstanceHealth, instance, &told)).await?;
    tx.notify(Notice::new(Topic::Repair, instance)).await?;
    Ok(true)
}

/// Nothing is done by itself: the ledger says so once an hour, and an alert is open.
async fn tell(app: &App, tx: &mut Tx, instance: &str, rule: &str, before: &str, why: &str) -> Result<()> {
    let now = app.clock.now();
    if !repair::told(tx, instance, rule, now - HOUR).await? {
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
        audit::record(app, tx, &By::system(), Deed::warn(Action::InstanceHealth, instance, &format!("{rule}: {why}")))
            .await?;
        tx.notify(Notice::new(Topic::Repair, instance)).await?;
    }
    let message = format!("{instance}: {rule}: {why}");
    alert::raise(app, tx, alert::Rule::InstancesUnhealthy, &subject(instance, rule), &message).await.map(drop)
}

fn subject(instance: &str, rule: &str) -> String {
    format!("repair:{instance}:{rule}")
}

pub async fn list(app: &App, wanted: Wanted<'_>, sort: Sort, page: Page) -> Result<(Listing<Repair>, Vec<Tally>)> {
    Ok((repair::list(&app.db, wanted, sort, page).await?, repair::tallies(&app.db).await?))
}

/// What was repaired of an employee's own instance since it is theirs, the newest first.
pub async fn own(app: &App, user: &UserId, id: &InstanceId, page: Page) -> Result<Listing<Repair>> {
    claim::own(app, user, id).await?;
    let bindings = binding::history(&app.db, id).await?;
    let live = bindings.into_iter().find(|b| b.ended_at.is_none() && b.user_id == user.as_str());
    let since = live.ok_or(Kind::NotFound)?.created_at;
    let wanted = Wanted { instance_id: Some(id.as_str()), since: Some(since), ..Wanted::default() };
    let newest = Sort { column: "created_at", descending: true };
    Ok(repair::list(&app.db, wanted, newest, page).await?)
}

/// The instance's own place and version, for a second look.
async fn open(app: &App, id: &InstanceId) -> Result<(Assistant, Version)> {
    let assistant = Assistant::open(app, id).await?;
    let version = crate::assistant::install::of_instance(app, &assistant).await?;
    Ok((assistant, version))
}
