//! Everything below the home of an instance. A tenant runs any command there and can replace any file or folder by a
//! link at any moment. So everything below a home is read, written, copied and deleted as the home's user, never as
//! root: a link then leads nowhere that this user could not go alone. The user may still reach more than its cell
//! allows: see `write`. No other code of the platform builds commands that touch a home.
//!
//! The home itself is different: root owns the folder above it, so root creates the home and moves it away as a whole
//! (`archive`).

pub mod archive;

use std::time::Duration;

use super::cell::Inside;
use super::command::{Actor, Command};
use super::error::{Error, Result};
use super::file::{Kept, Tail, Write, Written};
use super::systemd::Unit;
use super::{Host, Output};

/// Functions for scripts that root runs: `protected HOME` and `as_owner SECONDS HOME PROGRAM ARGUMENT…`.
pub const SHELL: &str = include_str!("shell.sh");

/// A home on a server or in a container of it, and as whom it is looked into. Every path given to it must be below it.
#[derive(Clone, Copy)]
pub struct Home<'a> {
    host: &'a Host,
    path: &'a str,
    access: Access<'a>,
}

#[derive(Clone, Copy)]
enum Access<'a> {
    Owner(&'a str),
    /// From inside of this container, as the user that it runs as.
    Container(&'a str),
}

// Exit statuses of the scripts: see `shell.sh`.
const REPLACEABLE: i32 = 96;
const MISSING: i32 = 97;
const NOT_A_HOME: i32 = 98;

const OWNER: &str = r#"
if [ ! -e "$1" ] && [ ! -L "$1" ]; then exit 97; fi
if [ ! -d "$1" ] || [ -L "$1" ]; then exit 98; fi
found=$(stat -c '%u %U' -- "$1") || exit 1
if [ "${found%% *}" = 0 ]; then protected "$1" || exit 96; fi
printf '%s\n' "${found#* }"
"#;

/// The owner of a home; `None` if the home does not exist. Only the folder itself is examined. A home that root owns
/// and others can replace is refused: we would use whatever they put there as root.
pub async fn owner(host: &Host, path: &str) -> Result<Option<String>> {
    let output = host.run(&find_owner(path)).await?;
    if output.status == MISSING {
        return Ok(None);
    }
    match checked(output, path)?.text().trim() {
        "UNKNOWN" => Err(Error::NotAHome { path: path.to_owned() }),
        "" => Err(Error::odd("stat", "no owner")),
        user => Ok(Some(user.to_owned())),
    }
}

fn find_owner(path: &str) -> Command {
    Command::script("find-home-owner", &[SHELL, OWNER]).arg(path)
}

/// Whether there is nothing at any of these paths, which are of folders that root owns.
pub async fn is_absent(host: &Host, paths: &[&str]) -> Result<bool> {
    for path in paths {
        if host.run(&find_owner(path)).await?.status != MISSING {
            return Ok(false);
        }
    }
    Ok(true)
}

const MAKE_FOLDERS: &str = r#"umask 077; exec mkdir -p -- "$@""#;

const REMOVE: &str = r#"
cd -- "$1" 2>/dev/null || exit 0
rm -f -- "$2" "$2".tidepool-[0-9]* || exit
case $2 in */*) rmdir -p --ignore-fail-on-non-empty -- "${2%/*}" 2>/dev/null ;; esac
exit 0
"#;

const SIZE: &str = r#"stat -Lc %s -- "$1" 2>/dev/null || echo 0"#;

// Each round searches only the first 4 MiB after the position.
const FIND_IN_LOG: &str = r#"
log=$1 from=$2 left=$3
shift 3
for words; do set -- "$@" -e "$words"; shift; done
while [ "$left" -gt 0 ]; do
  found=$(tail -c "+$((from + 1))" -- "$log" 2>/dev/null | head -c 4194304 | grep -aoF "$@" | tail -n 1)
  if [ -n "$found" ]; then printf '%s\n' "$found"; exit 0; fi
  sleep 0.2
  left=$((left - 1))
done
"#;

impl<'a> Home<'a> {
    /// `owner` is the result of the function `owner`.
    pub fn new(host: &'a Host, path: &'a str, owner: &'a str) -> Home<'a> {
        Home { host, path, access: Access::Owner(owner) }
    }

    /// A home inside of a container. Its user can do nothing there that it could not do without us.
    pub fn in_container(host: &'a Host, path: &'a str, container: &'a str) -> Home<'a> {
        Home { host, path, access: Access::Container(container) }
    }

    fn actor(&self) -> Actor {
        match self.access {
            Access::Owner(owner) => Actor::User(owner.to_owned()),
            Access::Container(id) => Actor::Container(id.to_owned()),
        }
    }

    /// Checks that a path is below the home and has no `..` in it.
    fn inside<'p>(&self, path: &'p str) -> Result<&'p str> {
        let rest = path.strip_prefix(self.path).and_then(|rest| rest.strip_prefix('/'));
        let plain = |segment: &str| !matches!(segment, "" | "." | "..");
        match rest {
            Some(rest) if rest.split('/').all(plain) => Ok(path),
            _ => Err(Error::BadCommand("a path must be below the home")),
        }
    }

    /// A file's content; `None` if there is no such file. A file larger than `limit` is an error.
    pub async fn read(&self, path: &str, limit: usize) -> Result<Option<Vec<u8>>> {
        self.host.read(self.inside(path)?, limit, self.actor()).await
    }

    /// The last bytes of a file, however large it is.
    pub async fn tail(&self, path: &str, limit: usize) -> Result<Option<Tail>> {
        self.host.tail(self.inside(path)?, limit, self.actor()).await
    }

    /// The older versions that are kept beside a file, newest first.
    pub async fn kept(&self, path: &str) -> Result<Vec<Kept>> {
        self.host.kept(self.inside(path)?, self.actor()).await
    }

    /// The content of one older version, by the suffix of its name.
    pub async fn read_kept(&self, path: &str, stamp: &str, limit: usize) -> Result<Option<Vec<u8>>> {
        self.host.read_kept(self.inside(path)?, stamp, limit, self.actor()).await
    }

    /// Writes a file. A tenant's user can go to more places than its cell allows, so the write follows no link in a
    /// tenant's home; there is no good reason for one. The login user may have links in its home, and has no cell.
    pub async fn write(&self, write: Write) -> Result<Written> {
        self.inside(write.path())?;
        let is_tenant = match self.access {
            Access::Owner(owner) => owner != "root" && owner != self.host.user(),
            // Its folders may be links to volumes, and lead nowhere outside of it.
            Access::Container(_) => false,
        };
        let write = if is_tenant { write.below(self.path) } else { write };
        self.host.write(&write.by(self.actor())).await
    }

    /// Creates missing folders and their parents; only the owner can look into them.
    pub async fn make_folders(&self, paths: &[String]) -> Result<()> {
        for path in paths {
            self.inside(path)?;
        }
        let command =
            Command::script("make-folders", &[MAKE_FOLDERS]).args(paths.iter().map(String::as_str)).by(self.actor());
        self.host.succeed(&command).await.map(drop)
    }

    /// Deletes a file below a folder, its older versions, and the folders between that are then empty.
    pub async fn remove(&self, folder: &str, path: &str) -> Result<()> {
        self.inside(&format!("{folder}/{path}"))?;
        let command = Command::script("remove-file", &[REMOVE]).args([folder, path]).by(self.actor());
        self.host.succeed(&command).await.map(drop)
    }

    pub async fn has(&self, path: &str) -> Result<bool> {
        let command = Command::new("test").args(["-e", self.inside(path)?]).by(self.actor());
        Ok(self.host.run(&command).await?.succeeded())
    }

    /// A file's size; 0 where there is none.
    pub async fn size(&self, path: &str) -> Result<u64> {
        let command = Command::script("read-file-size", &[SIZE]).arg(self.inside(path)?).by(self.actor());
        let text = self.host.succeed(&command).await?.text();
        Ok(text.trim().parse().unwrap_or(0))
    }

    /// Waits until one of these phrases appears in a log after a position. Returns the last that does; `None` after the
    /// time limit.
    pub async fn await_in_log(
        &self,
        log: &str,
        from: u64,
        phrases: &[&str],
        limit: Duration,
    ) -> Result<Option<String>> {
        let tries = (limit.as_millis() / 200).to_string();
        let words = [self.inside(log)?.to_owned(), from.to_string(), tries];
        let command = Command::script("await-in-log", &[FIND_IN_LOG]).args(words).args(phrases.iter().copied());
        let output = self.host.succeed(&command.limit(limit * 3).by(self.actor())).await?;
        let text = output.text();
        Ok(phrases.iter().find(|phrase| text.trim() == **phrase).map(|phrase| (*phrase).to_owned()))
    }

    /// Runs a program as the owner, with `HOME` set to the home. With `cell`, it runs inside the cell of this unit,
    /// given its lines.
    pub async fn run(&self, command: Command, cell: Option<(&Unit, Vec<String>)>) -> Result<Output> {
        let actor = match (cell, self.access) {
            (Some((unit, lines)), Access::Owner(owner)) => {
                Actor::Inside(Inside { user: owner.to_owned(), unit: unit.clone(), lines })
            }
            _ => self.actor(),
        };
        self.host.run(&command.env("HOME", self.path).by(actor)).await
    }
}

/// Checks the output of a script that uses the functions of `SHELL`: their exit statuses become errors about the home.
pub fn checked(output: Output, home: &str) -> Result<Output> {
    let path = home.to_owned();
    match output.status {
        REPLACEABLE => Err(Error::HomeReplaceable { path }),
        MISSING => Err(Error::NoFolder { path }),
        NOT_A_HOME => Err(Error::NotAHome { path }),
        _ => output.ok("a home"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_below_a_home_is_touched() {
        let host = Host::local();
        let home = Home::new(&host, "/srv/assistants/1", "assistant-1");
        assert!(home.inside("/srv/assistants/1/.openclaw/openclaw.json").is_ok());
        for bad in [
            "/srv/assistants/1",
            "/srv/assistants/1/",
            "/srv/assistants/10/x",
            "/srv/assistants/1/../2/x",
            "/srv/assistants/1/./x",
            "/srv/assistants/1//x",
            "/etc/shadow",
            "x",
        ] {
            assert!(home.inside(bad).is_err(), "{bad}");
        }
    }
}
