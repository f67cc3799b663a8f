//! Where an instance lives on its server. Homes are below the server's base folder, unless an administrator chose another; the main
//! instance lives in the login user's.

use base::id::ServerId;
use base::{Error, Kind, NonEmpty, Result};
use openclaw::Layout;
use openclaw::unit::Name;
use remote::host::runner::Runner;
use remote::host::systemd::Unit;
use remote::host::{Host, home, ports};
use store::Tx;
use store::instance::{self, Instance, Runner as By};
use store::server;

use crate::{App, tenant};

/// How many numbers of homes are tried that somebody else has on the server.
const TRIES: usize = 100;

#[derive(Clone, Debug)]
pub struct Place {
    pub home: String,
    /// Whose home it is; nobody's before it is made.
    pub owner: Option<String>,
    pub name: Name,
    pub unit: Unit,
    /// What starts it.
    pub runner: Runner,
}

impl Place {
    /// Where the instance is. The caller made sure that it has a home, or is the main one.
    pub async fn find(instance: &Instance, host: &Host) -> Result<Place> {
        let home = match &instance.home {
            Some(home) => home.to_string(),
            None => host.home().await?,
        };
        let home = checked(&home)?;
        let name = tenant::unit(instance)?;
        let unit = Unit::parse(name.as_str())?;
        // The home of a container is inside of it.
        let owner = match instance.runner {
            By::Container => None,
            _ => home::owner(host, &home).await?,
        };
        // One whose home is gone may run all the same.
        let runs_as = || Some(instance.runs_as.clone()).filter(|user| !user.is_empty());
        let user = || owner.clone().or_else(runs_as).ok_or_else(|| Error::conflict("its user is not known"));
        let (unit, runner) = match instance.runner {
            By::Unit | By::Address => (unit.clone(), Runner::Unit(unit)),
            By::UserUnit => {
                let unit = unit.of_user(user()?);
                (unit.clone(), Runner::Unit(unit))
            }
            By::Container => (unit, Runner::Container { id: instance.container_id.clone() }),
            By::Process => {
                let (port, user) = (instance.gateway_port.number(), user()?);
                (unit, Runner::Process { port, user, state_dir: Layout::of(&home).state_dir() })
            }
        };
        Ok(Place { home, owner, name, unit, runner })
    }

    pub fn state_dir(&self) -> String {
        Layout::of(&self.home).state_dir()
    }

    pub fn config_path(&self) -> String {
        Layout::of(&self.home).config_path()
    }

    pub fn workspace(&self) -> String {
        Layout::of(&self.home).workspace()
    }

    pub fn log_file(&self) -> String {
        Layout::of(&self.home).log_file()
    }

    /// Whose gateway may be ended to free its port. A user's own systemd may have a unit that another user's has, too.
    pub fn gateway<'a>(&'a self, state_dir: &'a str) -> ports::Instance<'a> {
        ports::Instance { unit: &self.unit, state_dir, user: self.unit.user() }
    }

    /// Beside the home, so that what is moved there stays on the same disk.
    pub fn archive(&self) -> String {
        format!("{}.archive", self.home)
    }
}

/// Gives an instance that has none its home: the next number below the server's base folder.
pub async fn give_home(app: &App, host: &Host, instance: &Instance) -> Result<Instance> {
    if instance.is_on_server() {
        return Ok(instance.clone());
    }
    let server_id = instance.server_id.clone();
    let home = free_home(app, host, &server_id).await?;
    let mut tx = app.db.begin().await?;
    // Homes are given out under the server's lock, like ports.
    server::lock(&mut tx, &server_id).await?.ok_or(Kind::NotFound)?;
    let mut instance = instance::lock(&mut tx, &instance.id).await?.ok_or(Kind::NotFound)?;
    if instance.home.is_none() {
        require_free(&mut tx, &server_id, &home).await?;
        instance::set_home(&mut tx, &instance.id, &home).await?;
        instance.home = NonEmpty::new(home);
    }
    tx.commit().await?;
    Ok(instance)
}

/// The next home below the server's base folder at which there is nothing: neither a home that somebody else made, nor
/// what is kept of an earlier one.
pub async fn free_home(app: &App, host: &Host, server: &ServerId) -> Result<String> {
    let mut tx = app.db.begin().await?;
    let base = server::lock(&mut tx, server).await?.ok_or(Kind::NotFound)?.base_dir;
    let taken = instance::homes(&mut tx, server).await?;
    tx.commit().await?;
    let number = |home: &String| home.strip_prefix(&base)?.strip_prefix('/')?.parse::<u32>().ok();
    let last = taken.iter().filter_map(number).max().unwrap_or(0);
    for number in (last..).skip(1).take(TRIES) {
        let home = format!("{base}/{number}");
        if home::is_absent(host, &[&home, &format!("{home}.archive")]).await? {
            return Ok(home);
        }
    }
    Err(Error::conflict("no place for a home is free on the server"))
}

/// Refuses a home that was given out meanwhile. The caller holds the server's lock.
pub async fn require_free(tx: &mut Tx, server: &ServerId, home: &str) -> Result<()> {
    match instance::homes(tx, server).await?.iter().any(|taken| taken == home) {
        true => Err(Error::conflict("another instance got the same home at the same moment: it is tried again")),
        false => Ok(()),
    }
}

/// The names that the first releases gave to the Unix user of an instance: by its home's number, or by what its id comes to.
pub fn users_of(instance: &Instance, home: &str) -> Vec<String> {
    let last = home.rsplit('/').next().unwrap_or_default();
    let is_number = !last.is_empty() && last.len() <= 10 && last.bytes().all(|b| b.is_ascii_digit());
    let hash = remote::host::file::Hash::of(instance.id.as_bytes());
    let by_id = format!("assistant-x{}", &hash.as_str()[..12]);
    if is_number { vec![format!("assistant-{last}"), by_id] } else { vec![by_id] }
}

pub fn is_below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder.trim_end_matches('/')).is_some_and(|rest| rest.starts_with('/'))
}

/// An absolute path of plain segments. Backslashes would mean something to systemd.
fn checked(home: &str) -> Result<String> {
    let plain = |segment: &str| !matches!(segment, "" | "." | "..");
    let bare = home.strip_suffix('/').unwrap_or(home);
    let fits = bare.strip_prefix('/').is_some_and(|rest| rest.split('/').all(plain));
    if !fits || bare.trim() != bare || bare.chars().any(|c| c.is_control() || c == '\\') || bare.len() > 300 {
        return Err(Error::conflict("the instance's home must be an absolute path such as /srv/assistants/1"));
    }
    Ok(bare.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_is_a_plain_absolute_path() {
        assert_eq!(checked("/srv/assistants/1/").unwrap(), "/srv/assistants/1");
        assert_eq!(checked("/root").unwrap(), "/root");
        assert_eq!(checked("/srv/a b/$(id)'\"").unwrap(), "/srv/a b/$(id)'\"");
        for bad in [
            "",
            "/",
            "//",
            "srv/x",
            "~/x",
            "/srv/../etc",
            "/srv/./x",
            "/srv//x",
            "/srv/x\ny",
            "/srv/x\\y",
            "/srv/x ",
            "/srv/x\0",
        ] {
            assert!(checked(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn below_means_below() {
        assert!(is_below("/srv/assistants/1", "/srv/assistants"));
        assert!(is_below("/srv/assistants/1", "/srv/assistants/"));
        for other in ["/srv/assistants", "/srv/assistants-old/1", "/root", "/srv"] {
            assert!(!is_below(other, "/srv/assistants"), "{other}");
        }
    }
}
