//! The cell of an instance on its server: what it consists of there, what became of writing it, and how a program is run inside of it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use base::cell::{Effective, Limits, Openings};
use base::id::ServerId;
use base::{Error, GatewayPort, NonEmpty, Result};
use openclaw::sweep::Answer;
use openclaw::unit::cell::{ENFORCED_BY, Enforcer};
use openclaw::unit::{Cell, Confinement, cell as text};
use remote::host::cell::{Ability, Part};
use remote::host::users::{self, Account};
use remote::host::{Command, Output, cell as host_cell};
use store::cell::{self, State, Subject, Written};
use store::instance::{self, Instance};
use store::{Db, pool};

use super::{Assistant, unit, unix_user};
use crate::App;

/// What an instance, its profession and its server say together.
pub async fn limits(db: &Db, instance: &Instance) -> Result<Limits> {
    let (id, server) = (instance.id.clone(), instance.server_id.clone());
    let mut limits = cell::limits(db, Subject::Instance(&id)).await?;
    if let Some(entry) = pool::of_instance(db, &id).await? {
        let profession = entry.profession_id;
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
/// How it is named that somebody may log in as its user, whom the platform did not make: sshd then opens sockets outside of the cell.
const ACCOUNT: &str = "closed account";

/// How long what a server can do is taken for granted: a fleet of instances on it is made without trying everything for each.
const KNOWN_FOR: Duration = Duration::from_secs(600);

/// What servers can do of a cell, as last tried by this process.
#[derive(Default)]
pub struct Abilities(Mutex<HashMap<ServerId, Known>>);

struct Known {
    at: Instant,
    /// Address and key of the machine: a server's record may name another one later.
    machine: (String, i64, Option<NonEmpty>),
    /// The directives that were tried.
    keys: Vec<String>,
    ability: Ability,
}

impl Abilities {
    async fn of(&self, assistant: &Assistant, cell: &Cell) -> Result<Ability> {
        // Homes differ from instance to instance; what a server can do of them does not.
        let keys: Vec<String> = cell.directives()?.iter().map(|one| one.key().replace(&cell.home, "HOME")).collect();
        let server = &assistant.server;
        let machine = (server.host.clone(), server.ssh_port, server.host_key.clone());
        let holds = |known: &&Known| known.machine == machine && known.keys == keys && known.at.elapsed() < KNOWN_FOR;
        if let Some(known) = self.lock().get(&server.id).filter(holds) {
            return Ok(known.ability.clone());
        }
        host_cell::put_program(&assistant.host, text::SYSTEMCTL, text::SYSTEMCTL_TEXT).await?;
        let ability = host_cell::ability(&assistant.host, &parts(cell)?).await?;
        // What somebody has to repair there is looked at again when they have.
        if ability.broken.is_none() && missing(&ability).is_empty() {
            let known = Known { at: Instant::now(), machine, keys, ability: ability.clone() };
            self.lock().insert(server.id.clone(), known);
        }
        Ok(ability)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ServerId, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The cell of an instance, each of its directives tried on the server.
pub async fn plan(app: &App, assistant: &Assistant) -> Result<Plan> {
    let instance = &assistant.instance;
    let mut cell = Cell {
        home: assistant.place.home.clone(),
        port: instance.gateway_port,
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
    let missing = missing(&ability);
    if !missing.is_empty() && !app.assistants.weak_cells {
        return Err(Error::conflict(format!("the server cannot do {}: no cell holds without it", missing.join(", "))));
    }
    let not_enforced = not_enforced(&ability);
    cell.resolvers = ability.resolvers;
    cell.left_out = ability.refused.into_iter().map(|(name, _)| name).collect();
    Ok(Plan { cell, not_enforced })
}

/// The ports of the other instances of its server.
pub async fn other_ports(app: &App, instance: &Instance) -> Result<Vec<i64>> {
    let mut tx = app.db.begin().await?;
    let ports = instance::ports(&mut tx, &instance.server_id, Some(&instance.id)).await?;
    Ok(ports.into_iter().map(GatewayPort::get).collect())
}

/// The parts of a cell that a server can do or not.
fn parts(cell: &Cell) -> Result<Vec<Part>> {
    let directives = cell.directives()?;
    let groups = directives.chunk_by(|one, other| one.key() == other.key());
    Ok(groups
        .map(|group| Part { key: group[0].key(), lines: group.iter().map(text::Directive::line).collect() })
        .collect())
}

/// What a server cannot do of that which a cell needs.
fn missing(ability: &Ability) -> Vec<&str> {
    ability.refused.iter().map(|(name, _)| name.as_str()).filter(|name| text::is_required(name)).collect()
}

/// What a server does not carry out of the directives that it takes: it lacks what they need, or needs an exception itself.
pub fn not_enforced(ability: &Ability) -> Vec<String> {
    let has = |enforcer: &Enforcer| match enforcer {
        Enforcer::Controller(name) => ability.controllers.iter().any(|one| one == name),
        Enforcer::Firewall => ability.firewall,
        Enforcer::BindFilter => ability.bind_filter,
    };
    let refused = |name: &str| ability.refused.iter().any(|(one, _)| one == name);
    let lacking = ENFORCED_BY.iter().filter(|(name, enforcer)| !has(enforcer) && !refused(name));
    let open = text::metadata_left_open(&ability.resolvers);
    let exceptions = open.iter().map(|address| format!("IPAddressDeny={address} (its name server)"));
    lacking.map(|(name, _)| (*name).to_owned()).chain(exceptions).collect()
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
    let written = match plan {
        Some(plan) => Written {
            state: State::Confined,
            score,
            left_out: plan.cell.left_out.clone(),
            not_enforced: limited(app, assistant, plan).await?,
            openings: plan.cell.openings.clone(),
        },
        None => {
            // Outside of its cell no limit holds for it.
            users::limit_disk(&assistant.host, &assistant.place.home, 0).await?;
            unconfined(State::Unconfined, score)
        }
    };
    Ok(cell::set_written(&app.db, &assistant.id(), &written).await?)
}

fn unconfined(state: State, score: Option<i64>) -> Written {
    Written { state, score, left_out: vec![], not_enforced: vec![], openings: Openings::default() }
}

/// Limits the disk, and names all that the server does not carry out of a cell.
async fn limited(app: &App, assistant: &Assistant, plan: &Plan) -> Result<Vec<String>> {
    let mut not_enforced = plan.not_enforced.clone();
    // Whoever is in the server's own user namespace may change the project of its own files, and so whose quota they count for.
    let is_bound = plan.cell.directives()?.iter().any(|one| one.name == "PrivateUsers");
    let is_limited = users::limit_disk(&assistant.host, &assistant.place.home, plan.cell.limits.disk_mib).await?;
    if !is_limited || !is_bound {
        not_enforced.push(DISK.to_owned());
    }
    if unix_user::account(app, assistant, &plan.cell.openings).await? == Account::Foreign {
        not_enforced.push(ACCOUNT.to_owned());
    }
    Ok(not_enforced)
}

/// Writes down what the unit on the server confines, whoever wrote it: after a change that was taken back.
pub async fn record_there(app: &App, assistant: &Assistant) -> Result<()> {
    let there = unit::read(assistant).await?.unwrap_or_default();
    let score = host_cell::score(&assistant.host, &assistant.place.unit).await?;
    let written = match seen(Confinement::of(&there)) {
        State::Confined => {
            // What the server carries out is asked of the server; one that does not say so now said it before.
            let not_enforced = match plan(app, assistant).await {
                Ok(plan) => limited(app, assistant, &plan).await?,
                Err(_) => {
                    let known = cell::find(&app.db, &assistant.id()).await?.not_enforced;
                    known.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
                }
            };
            let left_out = text::left_out_of(&there).into_iter().map(str::to_owned).collect();
            Written { state: State::Confined, score, left_out, not_enforced, openings: text::openings_of(&there) }
        }
        state => unconfined(state, score),
    };
    Ok(cell::set_written(&app.db, &assistant.id(), &written).await?)
}

/// What a look at a whole unit means for the record. The line above a cell proves nothing: it counts while the unit is what was written, and
/// no file beside it changes it.
pub fn seen_in(answer: &Answer, known: Option<&cell::Cell>) -> Option<State> {
    let state = seen(answer.confinement?);
    let is_written = match (known.map(|cell| cell.unit_hash.as_str()), &answer.unit_hash) {
        (Some(written), Some(there)) => written.is_empty() || written == there,
        _ => true,
    };
    let is_whole = is_written && !answer.unit.has_drop_ins;
    Some(if state == State::Confined && !is_whole { State::Altered } else { state })
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
    let missing = missing(ability);
    if !missing.is_empty() {
        return Err(format!("it cannot do {}, without which no cell holds", missing.join(", ")));
    }
    let refused: Vec<String> = ability.refused.iter().map(|(name, _)| name.clone()).collect();
    let not_enforced = not_enforced(ability);
    let part = |words: &str, names: &[String]| (!names.is_empty()).then(|| format!("{words}: {}", names.join(", ")));
    let parts: Vec<String> =
        [part("left out", &refused), part("not enforced here", &not_enforced)].into_iter().flatten().collect();
    Ok(if parts.is_empty() { "complete".into() } else { parts.join("; ") })
}
