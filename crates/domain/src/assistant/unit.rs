//! The unit that runs an instance. Only what we wrote is written over, or removed.

use base::{Error, Kind, Result};
use openclaw::Version;
use remote::host::Actor;
use remote::host::file::{Expect, Hash};
use remote::host::systemd;

use super::{Assistant, install, settings};

/// How every unit of ours begins.
const MARK: &str = "# Written by tidepool.";
const MOST: usize = 64 * 1024;

/// The unit file as it is on the server; `None` where there is none.
pub async fn read(assistant: &Assistant) -> Result<Option<String>> {
    let found = assistant.host.read(&assistant.place.unit.path(), MOST, Actor::Root).await?;
    Ok(found.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

pub fn is_ours(text: &str) -> bool {
    text.starts_with(MARK)
}

/// Whether the unit on the server is ours and starts this version.
pub async fn starts(assistant: &Assistant, version: &Version) -> Result<bool> {
    let program = install::program(version);
    Ok(read(assistant).await?.is_some_and(|text| is_ours(&text) && text.contains(&program)))
}

/// Writes the unit for a version; says whether it changed. A unit of somebody else's is refused.
pub async fn write(assistant: &Assistant, version: &Version) -> Result<bool> {
    let place = &assistant.place;
    let owner =
        place.owner.clone().ok_or_else(|| Error::from(Kind::Internal).with_operator("a unit before its home"))?;
    let unit = openclaw::unit::Unit {
        name: place.name.clone(),
        description: described(&assistant.instance.name, &assistant.instance.id),
        user: Some(owner),
        home: place.home.clone(),
        state_dir: place.state_dir(),
        config_path: place.config_path(),
        program: vec![install::program(version)],
        path: install::path(),
        port: settings::port(&assistant.instance)?,
        memory_max: None,
    };
    put(assistant, &unit.render()?).await
}

/// Brings the record's port into the unit, where it is ours: a gateway takes the port that it is started with, whatever its
/// configuration says. Answers whether it changed.
pub async fn follow_port(assistant: &Assistant) -> Result<bool> {
    let port = settings::port(&assistant.instance)?;
    let there = read(assistant).await?.filter(|text| is_ours(text));
    match there.and_then(|text| openclaw::unit::with_port(&text, port)) {
        Some(text) => put(assistant, &text).await,
        None => Ok(false),
    }
}

/// Puts a text in the unit's place, unless somebody else's is there.
pub async fn put(assistant: &Assistant, text: &str) -> Result<bool> {
    let expect = match read(assistant).await? {
        None => Expect::Absent,
        Some(there) if is_ours(&there) => Expect::Unchanged(Hash::of(there.as_bytes())),
        Some(_) => {
            let told = "there is a unit of this name that the platform did not write";
            return Err(Error::conflict(told).with_operator(&assistant.place.unit));
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
