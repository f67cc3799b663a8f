//! The periodic pass: compares every instance with what our records want of it, and enqueues at most one
//! `reconcile_instance` for each that differs. What needs a restart waits, with an alert; so does what was written again
//! and again and did not stay, and what failed five times.
//!
//! The first comparison of an instance after an upgrade of the platform only records what differs: an upgrade restarts and
//! writes nothing.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use base::Result;
use base::id::{InstanceId, ServerId};
use futures_util::{StreamExt as _, stream};
use jiff::{SignedDuration, Timestamp};
use openclaw::sweep::{Answer, ConfigFile};
use queue::alert::{self, Rule};
use queue::task::{self, Payload as _};
use store::Tx;
use store::reconcile::{self, Reconcile};
use tokio::sync::Mutex;

use super::compare::{self, Comparison, Effect, UnitState, compare};
use crate::App;
use crate::assistant::Assistant;
use crate::assistant::desired::release;
use crate::sweep::{self, Member, Post, Since};
use crate::task::ReconcileInstance;

/// The source of the tasks of the pass.
pub const SOURCE: &str = "reconcile";
/// After so many failures in a row about the same state, it is left to people.
pub const MOST_FAILURES: i64 = 5;
/// How often the pass has the same instance written within the hour. What does not stay is left to people.
const MOST_TRIES: i64 = 3;
const HOUR: SignedDuration = SignedDuration::from_hours(1);
/// How many reconciles may be open at the same time, on one server and in all.
const MOST_ON_SERVER: usize = 4;
const MOST_IN_FLEET: usize = 32;
/// An instance about which nothing is new is compared this often.
const CLOSE_LOOK: SignedDuration = SignedDuration::from_hours(1);
/// How many instances of one server are compared at the same time.
const TALKS: usize = 8;

/// What the decision about one instance depends on.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    pub is_held: bool,
    /// The platform was upgraded since the last pass.
    pub is_report: bool,
    /// Something differs that a running gateway takes over by itself.
    pub is_hot: bool,
    /// Something differs that needs a restart.
    pub is_cold: bool,
    /// Somebody changed the unit on the server.
    pub is_unit_changed: bool,
    /// The configuration on the server cannot be compared.
    pub is_unreadable: bool,
    /// A step was begun and not finished.
    pub is_unfinished: bool,
    /// That step is a reload which the running gateway has not confirmed.
    pub is_reload_pending: bool,
    /// Failures in a row about this very state.
    pub failures: i64,
    /// How often the pass had it written within the hour.
    pub tried: i64,
    /// Whether one more reconcile may be open.
    pub has_room: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    Nothing,
    /// It differs, and is left as it is for now.
    Wait,
    Enqueue,
    /// A person must decide: an alert says why.
    Ask(&'static str),
}

pub const NEEDS_RESTART: &str = "it takes a restart: it is brought with the next one, or by a person";
pub const UNIT_CHANGED: &str = "somebody changed its unit on the server: a person decides whether it is put back";
pub const UNREADABLE: &str = "its configuration on the server cannot be read: a person must repair it";
pub const DOES_NOT_STAY: &str = "it was written again and again, and did not stay";
pub const KEEPS_FAILING: &str = "it failed five times: it is tried again when something changes, or by a person";

pub fn decide(facts: Facts) -> Decision {
    let can_do = (facts.is_hot || facts.is_unfinished) && !facts.is_unreadable;
    if !can_do && !facts.is_cold && !facts.is_unit_changed && !facts.is_unreadable {
        return Decision::Nothing;
    }
    if facts.is_held || facts.is_report {
        return Decision::Wait;
    }
    match can_do {
        true if facts.failures >= MOST_FAILURES => Decision::Ask(KEEPS_FAILING),
        true if facts.tried >= MOST_TRIES && facts.is_reload_pending => Decision::Ask(NEEDS_RESTART),
        true if facts.tried >= MOST_TRIES => Decision::Ask(DOES_NOT_STAY),
        true if !facts.has_room => Decision::Wait,
        true => Decision::Enqueue,
        false if facts.is_unreadable => Decision::Ask(UNREADABLE),
        false if facts.is_cold => Decision::Ask(NEEDS_RESTART),
        false => Decision::Ask(UNIT_CHANGED),
    }
}

/// The reconciles that are open.
#[derive(Default)]
struct Open {
    instances: HashSet<InstanceId>,
    total: usize,
    by_server: HashMap<ServerId, usize>,
}

impl Open {
    async fn now(app: &App) -> Result<Open> {
        let mut open = Open::default();
        for task in store::task::open_of(&app.db, ReconcileInstance::TYPE).await? {
            if let Some(instance) = task.instance_id {
                open.instances.insert(instance);
            }
            // One that a cleaning holds back for days takes nobody's place.
            if let Some(server) = task.server_id.filter(|_| task.is_at_work) {
                open.total += 1;
                *open.by_server.entry(server).or_default() += 1;
            }
        }
        Ok(open)
    }

    fn has_room(&self, id: &InstanceId, server: &ServerId) -> bool {
        !self.instances.contains(id)
            && self.total < MOST_IN_FLEET
            && self.by_server.get(server).copied().unwrap_or(0) < MOST_ON_SERVER
    }

    fn add(&mut self, id: &InstanceId, server: &ServerId) {
        self.instances.insert(id.clone());
        self.total += 1;
        *self.by_server.entry(server.clone()).or_default() += 1;
    }
}

/// What came of a pass.
#[derive(Default)]
struct Tally {
    differing: usize,
    enqueued: usize,
    asked: usize,
    reported: usize,
}

/// Compares the fleet. Returns a summary. Each server's differences are followed up as soon as it has answered.
pub async fn run(app: &Arc<App>) -> Result<String> {
    reconcile::end_past_holds(&app.db, app.clock.now()).await?;
    let states = reconcile::all_live(&app.db).await?.into_iter().map(|one| (one.instance_id.clone(), one));
    let known: Arc<HashMap<InstanceId, Reconcile>> = Arc::new(states.collect());
    let open = Arc::new(Mutex::new(Open::now(app).await?));
    let posts = sweep::fleet(app).await?;
    let (known, open) = (&known, &open);
    let tallies = sweep::everywhere(app, posts, |app, post| {
        let (known, open) = (known.clone(), open.clone());
        async move { compare_server(&app, post, &known, &open).await }
    })
    .await;
    let mut all = Tally::default();
    for tally in tallies {
        all.differing += tally.differing;
        all.enqueued += tally.enqueued;
        all.asked += tally.asked;
        all.reported += tally.reported;
    }
    let Tally { differing, enqueued, asked, reported } = all;
    let only = if reported > 0 { format!("; {reported} are only reported after an upgrade") } else { String::new() };
    Ok(format!("{differing} differ: {enqueued} are reconciled, {asked} are left to people{only}"))
}

/// Compares those instances of a server about which something is new. An unreachable server is the health check's.
async fn compare_server(
    app: &Arc<App>,
    post: Post,
    known: &HashMap<InstanceId, Reconcile>,
    open: &Mutex<Open>,
) -> Tally {
    let mut tally = Tally::default();
    if post.instances.iter().all(|member| !member.is_there()) {
        return tally;
    }
    let Ok(looked) = sweep::look(app, &post, &sweep::brief(), Since::End).await else { return tally };
    let now = app.clock.now();
    let mut looks = vec![];
    for (number, member) in post.instances.iter().enumerate().filter(|(_, member)| !member.busy) {
        let Some(answer) = looked.of(number) else { continue };
        let state = known.get(&member.instance.id);
        let is_old = state.and_then(|state| state.compared_at).is_none_or(|at| now.duration_since(at) >= CLOSE_LOOK);
        if is_old || is_news(member, answer) || state.is_some_and(needs_look) {
            looks.push(close_look(app.clone(), member.instance.id.clone()));
        }
    }
    let mut looks = stream::iter(looks).buffer_unordered(TALKS);
    while let Some(found) = looks.next().await {
        let Some((id, comparison)) = found else { continue };
        match act(app, &id, &post.server.id, &comparison, open).await {
            Ok(Acted { decision: Decision::Enqueue, .. }) => tally.enqueued += 1,
            Ok(Acted { decision: Decision::Ask(_), .. }) => tally.asked += 1,
            Ok(Acted { is_report: true, .. }) => tally.reported += usize::from(!comparison.summary().is_empty()),
            Ok(_) => {}
            Err(error) => tracing::warn!(instance = %id, %error, "what differs was not recorded; it is compared again"),
        }
        tally.differing += usize::from(!comparison.summary().is_empty());
    }
    tally
}

fn needs_look(state: &Reconcile) -> bool {
    state.is_behind() || !state.differs.is_empty() || state.release != release()
}

/// Whether the file is not the one that we wrote last. A file that the platform never wrote is not its own.
fn is_news(member: &Member, answer: &Answer) -> bool {
    !member.instance.config_hash.is_empty()
        && !matches!(&answer.config, Some(ConfigFile::Content { sha256, .. }) if *sha256 == member.instance.config_hash)
}

/// A server that answers slowly must not hold up the others of the pass.
const LONGEST_LOOK: Duration = Duration::from_secs(90);

async fn close_look(app: Arc<App>, id: InstanceId) -> Option<(InstanceId, Comparison)> {
    let compared = async {
        let Some(assistant) = Assistant::find(&app, &id).await? else { return Ok(None) };
        if assistant.instance.config_hash.is_empty() {
            return Ok(None);
        }
        compare(&app, &assistant).await.map(Some)
    };
    let limited = tokio::time::timeout(LONGEST_LOOK, compared).await;
    match limited.unwrap_or_else(|_| Err(base::Error::from(base::Kind::TimedOut))) {
        Ok(found) => found.map(|comparison| (id, comparison)),
        Err(error) => {
            tracing::warn!(instance = %id, %error, "it could not be compared with our records");
            None
        }
    }
}

/// What came of a comparison.
pub struct Acted {
    pub decision: Decision,
    /// It is the first comparison since an upgrade of the platform.
    pub is_report: bool,
    /// The task that was enqueued.
    pub task: Option<base::id::TaskId>,
}

async fn act(
    app: &App,
    id: &InstanceId,
    server: &ServerId,
    comparison: &Comparison,
    open: &Mutex<Open>,
) -> Result<Acted> {
    let now = app.clock.now();
    let payload = ReconcileInstance { instance_id: id.clone(), restart: false };
    let mut tx = app.db.begin().await?;
    if store::instance::lock(&mut tx, id).await?.is_none() || store::task::is_busy(&mut tx, id).await? {
        return Ok(Acted { decision: Decision::Nothing, is_report: false, task: None });
    }
    let state = reconcile::find(&mut tx, id).await?;
    let tried = tried(app, &mut tx, id).await?;
    // Held until the task is enqueued, so that no other server takes the same place.
    let mut open = open.lock().await;
    let facts = Facts { has_room: open.has_room(id, server), ..facts(&state, comparison, tried, now) };
    let decision = decide(facts);
    let differs = comparison.summary();
    if decision == Decision::Nothing && state.is_behind() && state.generation == comparison.generation {
        // Nothing of it differs on the server, so all of it is there.
        reconcile::set_applied(&mut tx, id, state.generation, release()).await?;
    }
    reconcile::set_compared(&mut tx, id, &differs, release(), now).await?;
    let task = match decision {
        Decision::Enqueue => Some(task::enqueue(app, &mut tx, &payload, SOURCE, None).await?),
        _ => None,
    };
    // What is hot and what is cold may differ at once: the cold part is asked for in any case.
    let why = match decision {
        Decision::Ask(why) => Some(why),
        Decision::Enqueue if facts.is_cold => Some(NEEDS_RESTART),
        Decision::Enqueue if facts.is_unit_changed => Some(UNIT_CHANGED),
        _ => None,
    };
    match why {
        Some(why) => {
            let message = format!("{id} is not what our records want ({}); {why}", short(&differs));
            alert::raise(app, &mut tx, Rule::InstancesUnhealthy, &subject(id), &message).await?;
        }
        None if decision == Decision::Nothing => {
            alert::resolve(app, &mut tx, Rule::InstancesUnhealthy, &subject(id)).await?;
        }
        None => {}
    }
    tx.commit().await?;
    if decision == Decision::Enqueue {
        open.add(id, server);
    }
    Ok(Acted { decision, is_report: facts.is_report, task })
}

fn facts(state: &Reconcile, comparison: &Comparison, tried: i64, now: Timestamp) -> Facts {
    Facts {
        is_held: state.is_held(now),
        is_report: state.release != release(),
        is_hot: comparison.is_any(Effect::Hot),
        is_cold: comparison.fields.iter().any(|field| field.effect == Effect::Restart && field.name != compare::UNIT),
        is_unit_changed: comparison.unit == UnitState::Changed,
        is_unreadable: comparison.unreadable.is_some(),
        is_unfinished: comparison.is_unfinished(),
        is_reload_pending: comparison.is_reload_pending(),
        failures: if state.failed_state == comparison.fingerprint { state.failures } else { 0 },
        tried,
        has_room: true,
    }
}

/// How often the pass had the instance written within the hour.
async fn tried(app: &App, tx: &mut Tx, id: &InstanceId) -> Result<i64> {
    let payload = ReconcileInstance { instance_id: id.clone(), restart: false };
    let text = serde_json::to_string(&payload).map_err(base::Error::internal)?;
    let since = app.clock.now() - HOUR;
    Ok(store::task::count_of(tx, ReconcileInstance::TYPE, &text, SOURCE, since).await?)
}

/// What the next pass will do about an instance, for people.
pub async fn outlook(app: &App, comparison: &Comparison) -> Result<Decision> {
    let mut tx = app.db.begin().await?;
    let tried = tried(app, &mut tx, &comparison.state.instance_id).await?;
    Ok(decide(facts(&comparison.state, comparison, tried, app.clock.now())))
}

fn short(text: &str) -> String {
    text.chars().take(300).collect()
}

/// The subject of the alert that asks a person what is to become of a difference.
pub fn subject(id: &InstanceId) -> String {
    format!("instance:{id}:configuration")
}

/// What differs about one instance, and what was done about it; for a check of the guardian that found something.
pub struct Followed {
    /// Empty if nothing differs.
    pub differs: String,
    /// Empty if nothing was done.
    pub done: String,
}

/// Compares one instance, and follows up as the pass does.
pub async fn follow(app: &Arc<App>, member: &Member) -> Result<Followed> {
    let (id, server) = (&member.instance.id, &member.instance.server_id);
    let Some((_, comparison)) = close_look(app.clone(), id.clone()).await else {
        return Ok(Followed { differs: String::new(), done: String::new() });
    };
    let open = Mutex::new(Open::now(app).await?);
    let acted = act(app, id, server, &comparison, &open).await?;
    let done = acted.task.map(|task| format!("it is reconciled: task {task}")).unwrap_or_default();
    Ok(Followed { differs: comparison.summary(), done })
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT_REST: Facts = Facts {
        is_held: false,
        is_report: false,
        is_hot: false,
        is_cold: false,
        is_unit_changed: false,
        is_unreadable: false,
        is_unfinished: false,
        is_reload_pending: false,
        failures: 0,
        tried: 0,
        has_room: true,
    };
    const HOT: Facts = Facts { is_hot: true, ..AT_REST };

    #[test]
    fn what_is_taken_over_hot_is_done_at_once_and_the_rest_is_asked_for() {
        assert_eq!(decide(AT_REST), Decision::Nothing);
        assert_eq!(decide(HOT), Decision::Enqueue);
        assert_eq!(decide(Facts { is_unfinished: true, ..AT_REST }), Decision::Enqueue);
        assert_eq!(decide(Facts { is_cold: true, ..AT_REST }), Decision::Ask(NEEDS_RESTART));
        assert_eq!(decide(Facts { is_cold: true, ..HOT }), Decision::Enqueue);
        assert_eq!(decide(Facts { is_unit_changed: true, ..AT_REST }), Decision::Ask(UNIT_CHANGED));
        assert_eq!(decide(Facts { is_unreadable: true, is_unfinished: true, ..AT_REST }), Decision::Ask(UNREADABLE));
        // A gateway that reloads nothing is restarted by nobody but a person.
        let reload = Facts { is_unfinished: true, is_reload_pending: true, ..AT_REST };
        assert_eq!(decide(reload), Decision::Enqueue);
        assert_eq!(decide(Facts { tried: 3, ..reload }), Decision::Ask(NEEDS_RESTART));
    }

    #[test]
    fn an_upgrade_of_the_platform_and_a_hold_change_nothing() {
        for facts in [HOT, Facts { is_cold: true, ..AT_REST }, Facts { is_unfinished: true, ..HOT }] {
            assert_eq!(decide(Facts { is_report: true, ..facts }), Decision::Wait);
            assert_eq!(decide(Facts { is_held: true, ..facts }), Decision::Wait);
        }
    }

    #[test]
    fn it_stops_after_five_failures_and_three_writes_an_hour() {
        assert_eq!(decide(Facts { failures: 4, ..HOT }), Decision::Enqueue);
        assert_eq!(decide(Facts { failures: 5, ..HOT }), Decision::Ask(KEEPS_FAILING));
        assert_eq!(decide(Facts { tried: 2, ..HOT }), Decision::Enqueue);
        assert_eq!(decide(Facts { tried: 3, ..HOT }), Decision::Ask(DOES_NOT_STAY));
    }

    #[test]
    fn a_server_and_the_fleet_have_only_so_many_at_once() {
        let (server, other) = (ServerId::named("s"), ServerId::named("t"));
        let mut open = Open::default();
        for n in 0..MOST_ON_SERVER {
            assert!(open.has_room(&InstanceId::named(format!("a{n}")), &server));
            open.add(&InstanceId::named(format!("a{n}")), &server);
        }
        assert!(!open.has_room(&InstanceId::named("b"), &server), "the server is full");
        assert!(open.has_room(&InstanceId::named("b"), &other));
        assert!(!open.has_room(&InstanceId::named("a0"), &other), "it has one");
        for n in 0..MOST_IN_FLEET - MOST_ON_SERVER {
            open.add(&InstanceId::named(format!("c{n}")), &ServerId::named(format!("u{n}")));
        }
        assert!(!open.has_room(&InstanceId::named("b"), &other), "the fleet is full");
        assert_eq!(decide(Facts { has_room: false, ..HOT }), Decision::Wait);
    }
}
