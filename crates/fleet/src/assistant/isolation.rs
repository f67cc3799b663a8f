//! How an instance is kept apart from everybody else on its server: as whom it runs, and in whose home.
//!
//! An assistant runs any command as its Unix user. One whose user or home is not its own alone is given to somebody by a super
//! administrator only: it is not listed, claimed or pooled.

use std::collections::HashMap;

use base::Result;
use base::cell::Openings;
use base::id::{InstanceId, ServerId};
use people::holder;
use queue::alert::{self, Rule};
use queue::audit::{self, Action, AuditEvent, By};
use store::instance::{self, Instance, Isolation, Neighbour, Runner};
use store::notice::{Notice, Topic};
use store::pool::{self, Entry};
use store::unix_user::{self, UnixUser};
use store::{Tx, cell, task};

use super::place;
use crate::App;

/// What was seen on the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The user who logs in there.
    pub login: String,
    /// Whose its home is; none where it has none.
    pub home_owner: Option<String>,
    /// The user of its unit; none where it has none.
    pub unit_user: Option<String>,
}

impl Seen {
    /// As whom it runs, or would.
    pub fn runs_as(&self) -> &str {
        self.unit_user.as_deref().or(self.home_owner.as_deref()).unwrap_or_default()
    }
}

/// What follows from what was seen. What is still open in its unit counts as much as what was asked for. `made` are the users that the platform made for this instance; among its neighbours it may be itself.
fn judge(
    instance: &Instance,
    seen: &Seen,
    openings: &Openings,
    made: &[String],
    neighbours: &[Neighbour],
) -> Isolation {
    // Somebody else made the container and what is in it, and the platform cannot clean it.
    if !instance.container_id.is_empty() && !instance.is_main || instance.runner == Runner::Address {
        return Isolation::Adopted;
    }
    if !instance.is_on_server() {
        return Isolation::None;
    }
    let users = [seen.home_owner.as_deref(), seen.unit_user.as_deref()];
    let mut others = neighbours.iter().filter(|neighbour| neighbour.id != instance.id);
    let is_shared =
        |user: &str| user == "root" || user == seen.login || others.clone().any(|neighbour| neighbour.runs_as == user);
    if instance.is_main || users.iter().flatten().any(|user| is_shared(user)) {
        return Isolation::Shared;
    }
    if others.any(|neighbour| overlap(neighbour.home.as_deref(), instance.home.as_deref())) {
        return Isolation::Shared;
    }
    match &seen.home_owner {
        None => Isolation::Unknown,
        Some(owner) if !made.contains(owner) => Isolation::Adopted,
        Some(owner) if seen.unit_user.as_ref().is_some_and(|user| user != owner) => Isolation::Adopted,
        Some(_) if openings.is_root() => Isolation::Opened,
        Some(_) => Isolation::Own,
    }
}

/// Whether one is the other, or lies in it.
fn overlap(a: Option<&str>, b: Option<&str>) -> bool {
    let (Some(a), Some(b)) = (a, b) else { return false };
    let (a, b) = (a.trim_end_matches('/'), b.trim_end_matches('/'));
    !a.is_empty() && !b.is_empty() && (a == b || place::is_below(a, b) || place::is_below(b, a))
}

/// The users that the platform made for an instance. Those of its first releases are known by their names alone.
fn made<'a>(users: &'a [UnixUser], instance: &'a Instance) -> impl Iterator<Item = String> + 'a {
    let recorded = users.iter().filter(|user| user.instance_id == instance.id).map(|user| user.name.clone());
    recorded.chain(place::users_of(instance, instance.home.as_deref().unwrap_or_default()))
}

/// Judges all instances of a server by what a look at it saw, and writes down what changed.
pub async fn observe(app: &App, server: &ServerId, all: &[Instance], seen: &[(usize, Seen)]) -> Result<()> {
    let users = unix_user::of_server(&app.db, server).await?;
    // The home of a container is inside of it, whatever it is called.
    let on_server = all.iter().filter(|instance| instance.container_id.is_empty());
    let neighbours: Vec<Neighbour> = on_server.map(Neighbour::from).collect();
    let cells: HashMap<InstanceId, Openings> = cell::of_server(&app.db, server)
        .await?
        .into_iter()
        .map(|cell| (cell.instance_id.clone(), cell.openings_at_most()))
        .collect();
    let closed = Openings::default();
    for (number, seen) in seen {
        let Some(instance) = all.get(*number) else { continue };
        let made: Vec<String> = made(&users, instance).collect();
        let openings = cells.get(&instance.id).unwrap_or(&closed);
        let isolation = judge(instance, seen, openings, &made, &neighbours);
        let is_known = isolation == instance.isolation && seen.runs_as() == instance.runs_as;
        if !is_known || (instance.pooled && !isolation.is_offered()) {
            write(app, &instance.id, isolation, seen.runs_as(), Tasks::Respect).await?;
        }
    }
    Ok(())
}

/// Judges one instance by what was seen of it.
pub async fn of(app: &App, instance: &Instance, seen: &Seen) -> Result<Isolation> {
    let server = instance.server_id.clone();
    let users = unix_user::of_instance(&app.db, &instance.id).await?;
    let neighbours = instance::neighbours(&app.db, &server, &instance.id).await?;
    let made: Vec<String> = made(&users, instance).collect();
    let openings = cell::find(&app.db, &instance.id).await?.openings_at_most();
    Ok(judge(instance, seen, &openings, &made, &neighbours))
}

/// The same by the task that is at work on the instance, which writes it down.
pub async fn record(app: &App, instance: &Instance, seen: &Seen) -> Result<Isolation> {
    let isolation = of(app, instance, seen).await?;
    write(app, &instance.id, isolation, seen.runs_as(), Tasks::Ignore).await?;
    Ok(isolation)
}

/// Whether a task that is at work on the instance knows better.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tasks {
    Respect,
    Ignore,
}

async fn write(app: &App, id: &InstanceId, isolation: Isolation, runs_as: &str, tasks: Tasks) -> Result<()> {
    let mut tx = app.db.begin().await?;
    let entry = held_entry(&mut tx, id).await?;
    let Some(instance) = instance::lock(&mut tx, id).await? else { return Ok(()) };
    if tasks == Tasks::Respect && task::is_busy(&mut tx, id).await? {
        return Ok(());
    }
    if isolation != instance.isolation || runs_as != instance.runs_as {
        instance::set_isolation(&mut tx, id, isolation, runs_as).await?;
        let detail = format!("isolation: {} → {}, runs as {runs_as}", instance.isolation.as_str(), isolation.as_str());
        let event = match isolation.is_offered() {
            true => AuditEvent::info(Action::InstanceUpdate, &instance.id, &detail),
            false => AuditEvent::warn(Action::InstanceUpdate, &instance.id, &detail),
        };
        audit::record(app, &mut tx, &By::system(), event).await?;
        tx.notify(Notice::new(Topic::Instance, &instance.id)).await?;
    }
    follow_up(app, &mut tx, &instance, entry, isolation, runs_as).await?;
    Ok(tx.commit().await?)
}

/// The instance's pool entry, held before the instance is: the order in which everybody holds them.
async fn held_entry(tx: &mut Tx, id: &InstanceId) -> Result<Option<Entry>> {
    match pool::of_instance(&mut *tx, id).await? {
        Some(entry) => Ok(pool::lock(tx, &entry.id).await?),
        None => Ok(None),
    }
}

/// Takes what must not be offered out of its pool, and says so; ends that alert once it is kept apart, or in no pool.
async fn follow_up(
    app: &App,
    tx: &mut Tx,
    instance: &Instance,
    entry: Option<Entry>,
    isolation: Isolation,
    runs_as: &str,
) -> Result<()> {
    let subject = format!("instance:{}", instance.id);
    let Some(mut entry) = entry.filter(|_| isolation.is_withdrawn()) else {
        return alert::resolve(app, tx, Rule::InstanceNotIsolated, &subject).await.map(drop);
    };
    let why = holder::refusal(isolation, runs_as);
    if entry.status == pool::Status::Idle {
        entry.status = pool::Status::Maintenance;
        pool::update(tx, &entry).await?;
        let detail = format!("status: idle → maintenance: {why}");
        audit::record(app, tx, &By::system(), AuditEvent::warn(Action::ConfigChange, &entry.id, &detail)).await?;
    }
    let message = format!("{} is in a profession's pool, but {why}", instance.name);
    alert::raise(app, tx, Rule::InstanceNotIsolated, &subject, &message).await.map(drop)
}

/// Takes entries out of the pools whose instances are known not to be kept apart: those that an older release put there.
pub async fn withdraw(app: &App) -> Result<()> {
    for id in instance::pooled_but_shared(&app.db).await? {
        let mut tx = app.db.begin().await?;
        let entry = held_entry(&mut tx, &id).await?;
        if let Some(instance) = instance::lock(&mut tx, &id).await? {
            follow_up(app, &mut tx, &instance, entry, instance.isolation, &instance.runs_as).await?;
        }
        tx.commit().await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use base::NonEmpty;

    use super::*;
    use store::instance::Health;

    fn instance(home: &str, is_main: bool) -> Instance {
        Instance {
            id: InstanceId::named("a-1"),
            container_id: String::new(),
            server_id: ServerId::named("s"),
            assigned_user_id: None,
            pooled: false,
            name: "A".into(),
            gateway_port: base::GatewayPort::try_from(20_000).unwrap(),
            gateway_url: String::new(),
            gateway_token: String::new(),
            model: String::new(),
            health_status: Health::Unknown,
            health_fail_count: 0,
            total_requests: 0,
            total_tokens: 0,
            last_health_at: None,
            notes: String::new(),
            config_json: String::new(),
            is_main,
            home: NonEmpty::new(home),
            unit: None,
            runner: Runner::Unit,
            isolation: Isolation::Unknown,
            runs_as: String::new(),
            openclaw_version: None,
            config_hash: String::new(),
            traces_of: None,
            own_llm: false,
            embed_enabled: true,
            created_at: jiff::Timestamp::UNIX_EPOCH,
            updated_at: jiff::Timestamp::UNIX_EPOCH,
        }
    }

    fn seen(home_owner: &str, unit_user: &str) -> Seen {
        let some = |name: &str| (!name.is_empty()).then(|| name.to_owned());
        Seen { login: "ops".into(), home_owner: some(home_owner), unit_user: some(unit_user) }
    }

    fn closed() -> Openings {
        Openings::default()
    }

    #[test]
    fn a_cell_that_is_open_for_root_counts_as_root() {
        let made = ["assistant-70000".to_owned()];
        let judged = |openings: &str| {
            let seen = seen("assistant-70000", "assistant-70000");
            judge(&instance("/srv/assistants/1", false), &seen, &Openings::parse(openings), &made, &[])
        };
        for root in ["sudo", "docker", "devices", "browser,sudo"] {
            assert_eq!(judged(root), Isolation::Opened, "{root}");
        }
        assert_eq!(judged("browser"), Isolation::Own);
    }

    #[test]
    fn only_a_user_and_a_home_of_its_own_are_offered() {
        let made = ["assistant-70000".to_owned()];
        let judged = |home: &str, seen: Seen| judge(&instance(home, false), &seen, &closed(), &made, &[]);
        let own = "/srv/assistants/1";
        assert_eq!(judged(own, seen("assistant-70000", "assistant-70000")), Isolation::Own);
        assert_eq!(judged(own, seen("assistant-70000", "")), Isolation::Own, "before it has a unit");
        for (owner, unit) in
            [("root", "root"), ("root", ""), ("ops", "ops"), ("assistant-70000", "root"), ("assistant-70000", "ops")]
        {
            assert_eq!(judged(own, seen(owner, unit)), Isolation::Shared, "{owner} {unit}");
        }
        for (owner, unit) in [("claw", "claw"), ("claw", ""), ("assistant-70000", "claw")] {
            assert_eq!(judged(own, seen(owner, unit)), Isolation::Adopted, "{owner} {unit}");
        }
        assert_eq!(judged(own, seen("", "")), Isolation::Unknown);
        assert_eq!(judged("", seen("", "")), Isolation::None);
        let container = Instance { container_id: "claw".into(), ..instance("", false) };
        assert_eq!(
            judge(&container, &seen("", ""), &closed(), &made, &[]),
            Isolation::Adopted,
            "nobody cleans a container"
        );
        assert_eq!(
            judge(&instance("", true), &seen("assistant-70000", ""), &closed(), &made, &[]),
            Isolation::Shared,
            "the main one"
        );
    }

    #[test]
    fn a_neighbours_user_or_home_is_not_its_own() {
        let made = ["assistant-70000".to_owned()];
        let judged = |home: &str, runs_as: &str| {
            let neighbour =
                Neighbour { id: InstanceId::named("b"), home: NonEmpty::new(home), runs_as: runs_as.into() };
            judge(&instance("/srv/assistants/1", false), &seen("assistant-70000", ""), &closed(), &made, &[neighbour])
        };
        assert_eq!(judged("/srv/assistants/2", "assistant-70001"), Isolation::Own);
        assert_eq!(judged("/srv/assistants/10", ""), Isolation::Own);
        assert_eq!(judged("/srv/assistants/2", "assistant-70000"), Isolation::Shared);
        for home in ["/srv/assistants/1", "/srv/assistants/1/", "/srv/assistants", "/srv/assistants/1/x"] {
            assert_eq!(judged(home, ""), Isolation::Shared, "{home}");
        }
        assert_eq!(judged("", ""), Isolation::Own, "one that is not on the server");
    }
}
