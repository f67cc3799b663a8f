//! The cell of an instance on its server: what it consists of there, what became of writing it, and how a program is run inside of it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use base::cell::{Effective, Limits, Openings};
use base::id::{ProfessionId, ServerId};
use base::{Error, Result};
use openclaw::unit::cell::{ENFORCED_BY, Enforcer};
use openclaw::unit::{Cell, Confinement, cell as text};
use remote::host::cell::{self as host_cell, Ability, Part};
use remote::host::{Command, Output, users};
use store::cell::{self, State, Subject};
use store::instance::{self, Instance};
use store::{Db, pool};

use super::{Assistant, settings, unit};
use crate::App;

/// What an instance, its profession and its server say together.
pub async fn limits(db: &Db, instance: &Instance) -> Result<Limits> {
    let (id, server) = (instance.id(), ServerId::named(&instance.server_id));
    let mut limits = cell::limits(db, Subject::Instance(&id)).await?;
    if let Some(entry) = pool::of_instance(db, &id).await? {
        let profession = ProfessionId::named(entry.profession_id);
        limits = limits.or(cell::limits(db, Subject::Profession(&profession)).await?);
    }
    Ok(limits.or(cell::limits(db, Subject::Server(&server)).await?))
}

/// A cell that its server can do, and the directives in it that the server takes without carrying them out.
pub struct Plan {
    pub cell: Cell,
    pub not_enforced: Vec<String>,
}

/// How the disk's limit is named where the server has no quota for it: then there is an alert, and nothing else.
const DISK: &str = "disk quota";

/// How long what a server can do is taken for granted: a fleet of instances on it is made without trying everything for each.
const KNOWN_FOR: Duration = Duration::from_secs(600);

/// What servers can do of a cell, as last tried by this process.
#[derive(Default)]
pub struct Abilities(Mutex<HashMap<String, Known>>);

struct Known {
    at: Instant,
    /// The directives that were tried.
    keys: Vec<String>,
    ability: Ability,
}

impl Abilities {
    async fn of(&self, assistant: &Assistant, cell: &Cell) -> Result<Ability> {
        // Homes differ from instance to instance; what a server can do of them does not.
        let keys: Vec<String> = cell.directives()?.iter().map(|one| one.key().replace(&cell.home, "HOME")).collect();
        let server = &assistant.server.id;
        if let Some(known) =
            self.lock().get(server).filter(|known| known.keys == keys && known.at.elapsed() < KNOWN_FOR)
        {
            return Ok(known.ability.clone());
        }
        host_cell::put_program(&assistant.host, text::SYSTEMCTL, text::SYSTEMCTL_TEXT).await?;
        let ability = host_cell::ability(&assistant.host, &parts(cell)?).await?;
        if ability.broken.is_none() {
            let known = Known { at: Instant::now(), keys, ability: ability.clone() };
            self.lock().insert(server.clone(), known);
        }
        Ok(ability)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The cell of an instance, each of its directives tried on the server.
pub async fn plan(app: &App, assistant: &Assistant) -> Result<Plan> {
    let instance = &assistant.instance;
    let mut cell = Cell {
        home: assistant.place.home.clone(),
        port: settings::port(instance)?,
        others: other_ports(app, instance).await?,
        limits: limits(&app.db, instance).await?.effective(),
        openings: cell::find(&app.db, &assistant.id()).await?.openings(),
        resolvers: vec![],
        left_out: vec![],
    };
    let ability = app.cells.of(assistant, &cell).await?;
    if let Some(why) = ability.broken {
        return Err(Error::conflict("the server starts no program in a cell").with_operator(why));
    }
    let not_enforced = not_enforced(&ability);
    cell.resolvers = ability.resolvers;
    cell.left_out = ability.refused.into_iter().map(|(name, _)| name).collect();
    Ok(Plan { cell, not_enforced })
}

/// The ports of the other instances of its server.
pub async fn other_ports(app: &App, instance: &Instance) -> Result<Vec<i64>> {
    let mut tx = app.db.begin().await?;
    Ok(instance::ports(&mut tx, &ServerId::named(&instance.server_id), Some(&instance.id())).await?)
}

/// The parts of a cell that a server can do or not.
fn parts(cell: &Cell) -> Result<Vec<Part>> {
    let directives = cell.directives()?;
    let groups = directives.chunk_by(|one, other| one.key() == other.key());
    Ok(groups
        .map(|group| Part { key: group[0].key(), lines: group.iter().map(text::Directive::line).collect() })
        .collect())
}

/// The directives that a server takes without carrying them out: it lacks what they need.
pub fn not_enforced(ability: &Ability) -> Vec<String> {
    let has = |enforcer: &Enforcer| match enforcer {
        Enforcer::Controller(name) => ability.controllers.iter().any(|one| one == name),
        Enforcer::Firewall => ability.firewall,
        Enforcer::BindFilter => ability.bind_filter,
    };
    let refused = |name: &str| ability.refused.iter().any(|(one, _)| one == name);
    let lacking = ENFORCED_BY.iter().filter(|(name, enforcer)| !has(enforcer) && !refused(name));
    lacking.map(|(name, _)| (*name).to_owned()).collect()
}

/// Every directive of a cell for an instance that is yet to be made below a folder: for the test of a server.
pub fn sample(base_dir: &str) -> Result<Vec<Part>> {
    let cell = Cell {
        home: format!("{}/0", base_dir.trim_end_matches('/')),
        port: base::GatewayPort::next(&[]).ok_or_else(|| Error::internal("no port is free"))?,
        others: vec![],
        limits: Effective::default(),
        openings: Openings::default(),
        resolvers: vec![],
        left_out: vec![],
    };
    // There may be no such folder yet, and there is no such home: what is about them is tried when an instance is made.
    let is_there =
        |part: &Part| part.lines.iter().all(|line| !line.contains(base_dir) && !line.contains(text::SYSTEMCTL));
    Ok(parts(&cell)?.into_iter().filter(is_there).collect())
}

/// Writes down what a unit that was just written confines, and how safe systemd says that it is.
pub async fn record(app: &App, assistant: &Assistant, plan: Option<&Plan>) -> Result<()> {
    let score = host_cell::score(&assistant.host, &assistant.place.unit).await?;
    let (state, left_out, not_enforced) = match plan {
        Some(plan) => {
            let (home, most) = (&assistant.place.home, plan.cell.limits.disk_mib);
            let mut not_enforced = plan.not_enforced.clone();
            if !users::limit_disk(&assistant.host, home, most).await? {
                not_enforced.push(DISK.to_owned());
            }
            (State::Confined, plan.cell.left_out.join(","), not_enforced.join(","))
        }
        None => (State::Unconfined, String::new(), String::new()),
    };
    Ok(cell::set_written(&app.db, &assistant.id(), state, score, &left_out, &not_enforced).await?)
}

/// What a look at a unit file means for the record.
pub fn seen(confinement: Confinement) -> State {
    match confinement {
        Confinement::Foreign => State::Foreign,
        Confinement::Unconfined => State::Unconfined,
        Confinement::Confined => State::Confined,
    }
}

/// Runs a program as the instance's user: inside of the very cell that its unit has, because what a tenant wrote may run in it.
pub async fn run(assistant: &Assistant, command: Command) -> Result<Output> {
    let unit = unit::read(assistant).await?.unwrap_or_default();
    let lines: Vec<String> = text::of_text(&unit).into_iter().map(str::to_owned).collect();
    let is_confined = Confinement::of(&unit) == Confinement::Confined;
    let cell = is_confined.then_some((&assistant.place.unit, lines));
    Ok(assistant.home()?.run(command, cell).await?)
}

/// What a server's test says of cells there; an error where it cannot start a program in one.
pub fn verdict(ability: &Ability) -> std::result::Result<String, String> {
    if let Some(why) = &ability.broken {
        return Err(why.clone());
    }
    let refused: Vec<String> = ability.refused.iter().map(|(name, _)| name.clone()).collect();
    let not_enforced = not_enforced(ability);
    let part = |words: &str, names: &[String]| (!names.is_empty()).then(|| format!("{words}: {}", names.join(", ")));
    let parts: Vec<String> =
        [part("left out", &refused), part("not enforced here", &not_enforced)].into_iter().flatten().collect();
    Ok(if parts.is_empty() { "complete".into() } else { parts.join("; ") })
}
