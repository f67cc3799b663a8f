//! Compares what our records want of an instance with what is on its server, for people and for the periodic pass.
//! Nothing is changed.

use base::{Kind, Result};
use jiff::Timestamp;
use openclaw::config::needs_restart;
use openclaw::document::Change;
use openclaw::{Document, Version};
use remote::host::file::Hash;
use serde_json::Value;
use store::reconcile::{Pending, Reconcile};

use super::observed::{Observed, Service};
use super::plan::{Difference, plan};
use super::step::Step;
use crate::App;
use crate::assistant::desired::Desired;
use crate::assistant::{Assistant, access, config, install, unit};

/// What a difference takes to be over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// There is no difference.
    Nothing,
    /// The running gateway takes it over by itself.
    Hot,
    /// The gateway must be restarted.
    Restart,
    /// The gateway must be started: auto_recovery does that.
    Start,
    /// An operation that a person asks for, such as an upgrade.
    Operation,
}

impl Effect {
    pub fn as_str(self) -> &'static str {
        match self {
            Effect::Nothing => "nothing",
            Effect::Hot => "hot",
            Effect::Restart => "restart",
            Effect::Start => "start",
            Effect::Operation => "operation",
        }
    }
}

/// One thing that our records want, with what is there. Secrets are masked.
#[derive(Clone, Debug)]
pub struct Field {
    /// A name such as `service`, or a path in the configuration.
    pub name: String,
    pub desired: String,
    pub observed: String,
    pub effect: Effect,
}

/// A setting on the server that is not ours: it stays as it is.
#[derive(Clone, Debug)]
pub struct Foreign {
    pub path: String,
    /// Secrets are masked.
    pub value: String,
}

/// How the unit on the server differs from the one that the platform wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitState {
    Missing,
    AsWritten,
    /// It is ours, and somebody changed it on the server.
    Changed,
    /// Somebody else wrote it.
    Stranger,
}

impl UnitState {
    fn as_str(self) -> &'static str {
        match self {
            UnitState::Missing => "missing",
            UnitState::AsWritten => "as written",
            UnitState::Changed => "changed on the server",
            UnitState::Stranger => "not ours",
        }
    }
}

pub struct Comparison {
    pub state: Reconcile,
    /// What our records want, with what is there: first the instance as a whole, then what differs in its configuration.
    pub fields: Vec<Field>,
    pub foreign: Vec<Foreign>,
    /// Whether the configuration is what we wrote last, to the byte.
    pub is_untouched: bool,
    /// What a reconcile would do, if it may restart the instance.
    pub steps: Vec<Step>,
    /// What it is about: a failure counts for this state only.
    pub fingerprint: String,
    pub unit: UnitState,
    /// The generation of our records that was compared, or an older one.
    pub generation: i64,
    /// Why the configuration on the server cannot be compared.
    pub unreadable: Option<String>,
    observed: Observed,
}

/// The name of the unit's field.
pub const UNIT: &str = "unit";

/// How many settings of somebody else are shown.
const MOST_FOREIGN: usize = 100;

impl Comparison {
    pub fn is_any(&self, effect: Effect) -> bool {
        self.fields.iter().any(|field| field.effect == effect)
    }

    /// What differs on one line; empty if nothing does.
    pub fn summary(&self) -> String {
        let differing: Vec<String> = self
            .fields
            .iter()
            .filter(|field| field.effect != Effect::Nothing)
            .map(|field| format!("{}: {} → {}", field.name, field.observed, field.desired))
            .collect();
        differing.join("; ").chars().take(1000).collect()
    }

    /// Whether a step was begun that only the next task finishes.
    pub fn is_unfinished(&self) -> bool {
        self.observed.pending != Pending::Nothing || !self.state.unrecorded.is_empty()
    }

    /// Whether a file was written that the running gateway has not taken over.
    pub fn is_reload_pending(&self) -> bool {
        self.observed.pending == Pending::Reload
    }
}

/// What a failed reconcile was about: our records and the file on the server.
pub fn fingerprint(generation: i64, document: Option<&Document>) -> String {
    format!("{generation} {}", document.map_or_else(String::new, Document::hash))
}

/// Looks closely at one instance on its server.
pub async fn compare(app: &App, assistant: &Assistant) -> Result<Comparison> {
    let instance = &assistant.instance;
    let state = store::reconcile::find(&app.db, &instance.id).await?;
    let version = install::of_instance(app, assistant).await?;
    let desired = Desired::known(app, assistant, &version).await?;
    let service = assistant.service().await?;
    let observed = Observed { service: Service::of(&service), pending: state.pending };
    let (document, changes, unreadable) = match read(assistant, &desired).await {
        Ok(Some((document, changes))) => (Some(document), changes, None),
        Ok(None) => (None, vec![], None),
        // The tenant may have written anything: that is a difference, too.
        Err(error) if matches!(error.kind, Kind::Conflict | Kind::BadRequest) => {
            (None, vec![], Some(error.client.into_owned()))
        }
        Err(error) => return Err(error),
    };
    let (unit, starts) = unit_state(app, assistant, &version).await?;
    let mut fields = whole(assistant, &observed, service.since, unit, &version, starts);
    if document.is_none() {
        let (observed, effect) = match &unreadable {
            Some(why) => (why.clone(), Effect::Operation),
            None => ("missing".to_owned(), Effect::Restart),
        };
        fields.push(Field { name: "configuration".into(), desired: "there".into(), observed, effect });
    }
    let models = access::models(app, instance).await?;
    if models.is_some() && store::gateway_key::of_instance(&app.db, &instance.id).await?.is_none() {
        // An administrator may have deleted it to end its use: only what a person asks for makes another.
        let (desired, observed) = ("a key of its own".to_owned(), "none".to_owned());
        fields.push(Field { name: "key".into(), desired, observed, effect: Effect::Operation });
    }
    fields.extend(changes.iter().map(field));
    let foreign = match &document {
        Some(document) => foreign(&desired, document)?,
        None => vec![],
    };
    let difference = match (&document, changes.is_empty(), needs_restart(&changes)) {
        _ if unreadable.is_some() => Difference::Nothing,
        (Some(_), true, _) => Difference::Nothing,
        (Some(_), false, false) => Difference::Hot,
        _ => Difference::NeedsRestart,
    };
    let mut steps = plan(difference, &observed);
    if unit == UnitState::Changed {
        steps.retain(|step| !matches!(step, Step::Reload | Step::Restart | Step::Start));
        steps.extend([Step::WriteUnit, Step::Restart]);
    }
    let is_untouched = document.as_ref().is_some_and(|document| document.hash() == instance.config_hash);
    let generation = assistant.generation;
    let fingerprint = fingerprint(state.generation, document.as_ref());
    Ok(Comparison { state, fields, foreign, is_untouched, steps, fingerprint, unit, generation, unreadable, observed })
}

/// The configuration on the server, and what our records would change in it.
async fn read(assistant: &Assistant, desired: &Desired) -> Result<Option<(Document, Vec<Change>)>> {
    let Some(found) = config::read(assistant).await? else { return Ok(None) };
    let changes = desired.changes(&found.document)?;
    Ok(Some((found.document, changes)))
}

/// The unit on the server, and the program that it starts if it is ours.
async fn unit_state(app: &App, assistant: &Assistant, version: &Version) -> Result<(UnitState, bool)> {
    let Some(text) = unit::read(assistant).await? else { return Ok((UnitState::Missing, false)) };
    if !unit::is_ours(&text) {
        return Ok((UnitState::Stranger, false));
    }
    let written = store::cell::find(&app.db, &assistant.id()).await?.unit_hash;
    let is_as_written = written.is_empty() || Hash::of(text.as_bytes()).as_str() == written;
    let state = if is_as_written { UnitState::AsWritten } else { UnitState::Changed };
    Ok((state, text.contains(&install::program(version))))
}

/// The instance as a whole.
fn whole(
    assistant: &Assistant,
    observed: &Observed,
    since: Option<Timestamp>,
    unit: UnitState,
    version: &Version,
    starts: bool,
) -> Vec<Field> {
    let instance = &assistant.instance;
    let field = |name: &str, desired: String, observed: String, effect| Field {
        name: name.to_owned(),
        desired,
        observed,
        effect,
    };
    let service_effect = match observed.service {
        Service::Runs => Effect::Nothing,
        Service::Down => Effect::Start,
        Service::Missing => Effect::Operation,
    };
    let runs = match (observed.service, since) {
        (Service::Runs, Some(since)) => format!("runs since {since:.0}"),
        (service, _) => service.as_str().to_owned(),
    };
    let unit_effect = match unit {
        UnitState::AsWritten | UnitState::Stranger => Effect::Nothing,
        UnitState::Changed => Effect::Restart,
        UnitState::Missing => Effect::Operation,
    };
    let owner = assistant.place.owner.clone().unwrap_or_else(|| "missing".to_owned());
    let user = if instance.runs_as.is_empty() { owner.clone() } else { instance.runs_as.clone() };
    let user_effect = if user == owner { Effect::Nothing } else { Effect::Operation };
    let mut all = vec![
        field("service", "runs".into(), runs, service_effect),
        field(UNIT, assistant.place.unit.to_string(), unit.as_str().into(), unit_effect),
        field("unix_user", user, owner, user_effect),
    ];
    if matches!(unit, UnitState::AsWritten | UnitState::Changed) {
        let observed = if starts { version.to_string() } else { "another release".to_owned() };
        let effect = if starts { Effect::Nothing } else { Effect::Operation };
        all.push(field("release", version.to_string(), observed, effect));
    }
    all
}

/// A change of the configuration, for people.
pub(crate) fn field(change: &Change) -> Field {
    let text = |value: &Option<Value>| value.as_ref().map_or_else(|| "missing".to_owned(), shown);
    let effect = if needs_restart(std::slice::from_ref(change)) { Effect::Restart } else { Effect::Hot };
    Field { name: change.path.to_string(), desired: text(&change.after), observed: text(&change.before), effect }
}

fn shown(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    text.chars().take(200).collect()
}

/// What is in the file and our records say nothing about. `meta` is OpenClaw's own.
fn foreign(desired: &Desired, document: &Document) -> Result<Vec<Foreign>> {
    let mut ours = Document::empty();
    desired.apply(&mut ours)?;
    let is_foreign = |change: &&Change| change.before.is_none() && !change.path.is_at_or_below(&["meta"]);
    let one = |change: &Change| Foreign {
        path: change.path.to_string(),
        value: change.after.as_ref().map(shown).unwrap_or_default(),
    };
    Ok(ours.diff(document).iter().filter(is_foreign).take(MOST_FOREIGN).map(one).collect())
}
