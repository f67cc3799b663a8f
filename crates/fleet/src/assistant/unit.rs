//! The unit that runs an instance. Only what we wrote is written over, or removed.

use base::{Error, Kind, Result};
use openclaw::Version;
use openclaw::unit::Confinement;
pub use openclaw::unit::is_ours;
use queue::audit::{self, Action, AuditEvent, By};
use remote::host::file::{Expect, Hash};
use remote::host::{Actor, systemd, users};
use store::instance::Runner;

use super::{Assistant, cell, install, unix_user};
use crate::App;

const MOST: usize = 64 * 1024;

/// The file of its unit of the system, as it is on the server; `None` where there is none, or where something else runs it.
pub async fn read(assistant: &Assistant) -> Result<Option<String>> {
    if assistant.instance.runner != Runner::Unit {
        return Ok(None);
    }
    let found = assistant.host.read(&assistant.place.unit.path(), MOST, Actor::Root).await?;
    Ok(found.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

/// Whether an instance is to have its cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confine {
    /// As it is; a unit that is not there yet gets one.
    Keep,
    Yes,
    No,
}

/// A unit's text before it is written.
pub struct Draft {
    pub text: String,
    /// None: it has no cell.
    cell: Option<cell::Plan>,
    /// What the cell that is there has, and this one has not: the server cannot do it any more.
    weaker_by: Vec<String>,
}

/// Whether the unit on the server is ours and starts this version.
pub async fn starts(assistant: &Assistant, version: &Version) -> Result<bool> {
    let program = install::program(version);
    Ok(read(assistant).await?.is_some_and(|text| is_ours(&text) && text.contains(&program)))
}

/// The unit for a version. What confines it was tried on the server.
pub async fn draft(app: &App, assistant: &Assistant, version: &Version, confine: Confine) -> Result<Draft> {
    let place = &assistant.place;
    let owner =
        place.owner.clone().ok_or_else(|| Error::from(Kind::Internal).with_operator("a unit before its home"))?;
    let there = read(assistant).await?;
    let is_confined = match confine {
        Confine::Yes => true,
        Confine::No => false,
        Confine::Keep => there.as_ref().is_none_or(|text| Confinement::of(text) != Confinement::Unconfined),
    };
    let cell = if is_confined { Some(cell::plan(app, assistant).await?) } else { None };
    let weaker_by = match (&cell, &there) {
        (Some(plan), Some(there)) if Confinement::of(there) == Confinement::Confined => {
            let before = openclaw::unit::cell::left_out_of(there);
            plan.cell.left_out.iter().filter(|key| !before.contains(&key.as_str())).cloned().collect()
        }
        _ => vec![],
    };
    let unit = openclaw::unit::Unit {
        name: place.name.clone(),
        description: described(&assistant.instance.name, &assistant.instance.id),
        user: Some(owner),
        home: place.home.clone(),
        state_dir: place.state_dir(),
        config_path: place.config_path(),
        program: vec![install::program(version)],
        path: install::path(),
        port: assistant.instance.gateway_port,
        cell: cell.as_ref().map(|plan| plan.cell.clone()),
    };
    Ok(Draft { text: unit.render()?, cell, weaker_by })
}

/// Puts a draft in the unit's place, and writes down what it confines; says whether it changed.
pub async fn put_draft(app: &App, assistant: &Assistant, draft: &Draft) -> Result<bool> {
    if let (Some(plan), Some(owner)) = (&draft.cell, &assistant.place.owner) {
        let account = unix_user::account(app, assistant, &plan.cell.openings).await?;
        users::prepare_for_cell(&assistant.host, owner, account).await?;
    }
    let changed = put(assistant, &draft.text).await?;
    note(app, assistant, Hash::of(draft.text.as_bytes()).as_str()).await?;
    if !draft.weaker_by.is_empty() {
        let detail = format!("its server cannot do {} any more: its cell is without it", draft.weaker_by.join(", "));
        let event = AuditEvent::warn(Action::InstanceUpdate, &assistant.instance.id, &detail);
        audit::record_alone(app, &By::system(), event).await?;
    }
    cell::record(app, assistant, draft.cell.as_ref()).await?;
    Ok(changed)
}

/// Writes the unit for a version, confined as it was; says whether it changed. A unit of somebody else's is refused.
pub async fn write(app: &App, assistant: &Assistant, version: &Version) -> Result<bool> {
    put_draft(app, assistant, &draft(app, assistant, version, Confine::Keep).await?).await
}

/// Brings the record's port into the unit, where it is ours: a gateway takes the port that it is started with, whatever its
/// configuration says. Answers whether it changed.
pub async fn follow_port(app: &App, assistant: &Assistant) -> Result<bool> {
    let port = assistant.instance.gateway_port;
    let there = read(assistant).await?.filter(|text| is_ours(text));
    let known = store::cell::find(&app.db, &assistant.id()).await?.unit_hash;
    let is_known = |text: &String| known.is_empty() || Hash::of(text.as_bytes()).as_str() == known;
    // What somebody changed by hand stays a change by hand, also with another port in it.
    let is_as_written = there.as_ref().is_some_and(is_known);
    let Some(text) = there.and_then(|text| openclaw::unit::with_port(&text, port)) else { return Ok(false) };
    let others = cell::other_ports(app, &assistant.instance).await?;
    let new = openclaw::unit::cell::with_ports(&text, port, &others);
    let changed = put(assistant, &new).await?;
    if is_as_written {
        note(app, assistant, Hash::of(new.as_bytes()).as_str()).await?;
    }
    Ok(changed)
}

/// Writes down which text is the unit's, by its hash, so that a change by anybody else is seen.
pub async fn note(app: &App, assistant: &Assistant, hash: &str) -> Result<()> {
    Ok(store::cell::set_unit_hash(&app.db, &assistant.id(), hash).await?)
}

/// Puts a text in the unit's place, unless somebody else's is there.
pub async fn put(assistant: &Assistant, text: &str) -> Result<bool> {
    let expect = match read(assistant).await? {
        None => Expect::Absent,
        Some(there) if is_ours(&there) => Expect::Unchanged(Hash::of(there.as_bytes())),
        Some(_) => {
            let message = "there is a unit of this name that the platform did not write";
            return Err(Error::conflict(message).with_operator(&assistant.place.unit));
        }
    };
    let written = systemd::write_unit(&assistant.host, &assistant.place.unit, text, expect).await?;
    Ok(written != remote::host::file::Written::Same)
}

/// For whoever reads `systemctl status`. A name may hold what would be another line of the unit.
fn described(name: &str, id: &str) -> String {
    let name: String = name.chars().map(|c| if c.is_control() || c == '\\' { ' ' } else { c }).take(100).collect();
    format!("Assistant {id}: {}", name.trim()).trim_end_matches([':', ' ']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_one_line_whatever_the_name() {
        assert_eq!(described("Ada's \"helper\" $(id) %h", "a-1"), "Assistant a-1: Ada's \"helper\" $(id) %h");
        assert_eq!(described("a\nExecStartPre=/bin/x\\", "a-1"), "Assistant a-1: a ExecStartPre=/bin/x");
        assert_eq!(described(" \n", "a-1"), "Assistant a-1");
    }
}
