//! The archive of a home, `<home>.archive`, which only root can read. It keeps what the last holder left for some days,
//! and snapshots of the state for a rollback.
//!
//! A home that belongs to one instance alone is moved there as a whole, by root: root owns the folder above it, so
//! nobody else can have replaced the home. A snapshot is packed by the home's owner, with the owner's rights, into a
//! file that root writes, and unpacked by the owner. So no tenant can change a snapshot, and root follows no name that
//! a tenant chose. Each entry is named after the task that made it, so that a retry of the task finds it done.

use std::time::Duration;

use openclaw::{Layout, layout};

use super::{SHELL, checked};
use crate::host::command::Command;
use crate::host::error::{Error, Result};
use crate::host::{Host, Output};

/// Copying a state folder of some gigabytes takes a while.
const COPY: Duration = Duration::from_secs(300);
const REMOVE: Duration = Duration::from_secs(120);
/// The largest state that is copied. Half of the free space is a limit too.
const MOST: u64 = 16 << 30;

// Exit statuses of the scripts.
const NO_SNAPSHOT: i32 = 3;
const TOO_LARGE: i32 = 94;
const NO_STATE: i32 = 95;

// Every script that begins with this gets the home, a name, a number of days, the limits of a copy in bytes and in
// seconds, and the name of the state folder. `find -mtime` counts from when an entry was put there. `rm` opens each folder from the one above it and
// follows no link; only root can reach the folder where it begins.
const OPEN: &str = r#"
set -eu
umask 077
home=$1 name=$2 archive=$1.archive most_bytes=$4 seconds=$5 state=$6
protected "$home" || exit 96
if [ ! -e "$archive" ] && [ ! -L "$archive" ]; then mkdir -m 700 -- "$archive"; fi
if [ ! -d "$archive" ] || [ -L "$archive" ] || mountpoint -q -- "$archive"; then echo "$archive is no plain folder" >&2; exit 98; fi
chown -h root:root -- "$archive"
chmod 700 -- "$archive"
exec 9<"$archive"
flock -w 20 9
find "$archive" -mindepth 1 -maxdepth 1 -mtime "+$3" -exec rm -rf --one-file-system -- {} + || true
entry=$archive/$name
"#;

// pack FILE EXCLUDED…: packs the state as its owner. tar's status 1 means that a file changed while it was read. A
// state that is a link is packed as a link, or refused if `whole` is given.
const PACK: &str = r#"
pack() {
  packed=$1; shift
  most=$(($(stat -f -c '%a * %S' -- "$archive") / 2))
  if [ "$most" -gt "$most_bytes" ]; then most=$most_bytes; fi
  {
    status=0
    as_owner "$seconds" "$home" sh -c '
      cd -- "$1" || exit 2
      state=$2
      if [ "$3" = whole ]; then [ -d "$state" ] && [ ! -L "$state" ] || exit 95; fi
      shift 3
      exec tar -cSf - --anchored "$@" "$state"' sh "$home" "$state" "$@" </dev/null || status=$?
    echo "$status" >"$packed.status"
  } | head -c "$((most + 1))" >"$packed"
  status=$(cat -- "$packed.status")
  rm -f -- "$packed.status"
  if [ "$(stat -c %s -- "$packed")" -gt "$most" ]; then rm -f -- "$packed"; exit 94; fi
  if [ "$status" -gt 1 ]; then rm -f -- "$packed"; exit "$status"; fi
}
"#;

/// An archive of a home on a server.
#[derive(Clone, Copy)]
pub struct Archive<'a> {
    host: &'a Host,
    home: &'a str,
    /// How long entries are kept.
    days: u32,
    most: u64,
}

/// What a snapshot holds besides the state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    pub version: String,
    pub unit: String,
    /// The caller's note, in one line, about the unit that the change writes; empty in snapshots of older releases.
    pub next: String,
    /// Whether it was restored already.
    pub used: bool,
}

impl<'a> Archive<'a> {
    pub fn of(host: &'a Host, home: &'a str, days: u32) -> Archive<'a> {
        Archive { host, home, days, most: MOST }
    }

    /// Limits how many bytes of a state are copied.
    pub fn at_most(self, most: u64) -> Archive<'a> {
        Archive { most, ..self }
    }

    /// Adds the arguments that `OPEN` reads. `name` may be empty if the script works on the whole archive.
    fn on_entry(&self, script: Command, name: &str, limit: Duration) -> Result<Command> {
        let (days, bytes, seconds) = (self.days.saturating_sub(1), self.most, limit.as_secs());
        let numbers = [days.to_string(), bytes.to_string(), seconds.to_string()];
        Ok(script.args([self.home, entry(name)?]).args(numbers).arg(layout::STATE).limit(limit))
    }

    async fn succeed(&self, command: &Command) -> Result<Output> {
        let output = self.host.run(command).await?;
        let path = self.home.to_owned();
        match output.status {
            TOO_LARGE => Err(Error::TooLarge { path, limit: usize::try_from(self.most).unwrap_or(usize::MAX) }),
            NO_STATE => Err(Error::NoState { path: Layout::of(&path).state_dir() }),
            _ => checked(output, self.home),
        }
    }

    /// Moves the whole home away. Afterwards neither an upgrade nor a change of the cell can roll back to its state.
    pub async fn put_home_away(&self, name: &str) -> Result<()> {
        const SCRIPT: &str = r#"
rm -f -- "$archive"/upgrade-*/complete "$archive"/cell-*/complete
if [ ! -e "$entry" ] && [ -e "$home" ]; then
  if [ ! -d "$home" ] || [ -L "$home" ]; then exit 98; fi
  mv -T -- "$home" "$entry"
  touch -h -- "$entry"
fi
"#;
        let script = Command::script("archive-home", &[SHELL, OPEN, PACK, SCRIPT]);
        self.succeed(&self.on_entry(script, name, REMOVE)?).await.map(drop)
    }

    /// Copies the state of a stopped instance for a rollback, with its version and unit. `next` is a line about the
    /// unit that the instance gets now.
    pub async fn snapshot(&self, name: &str, version: &str, unit: &str, next: &str) -> Result<()> {
        const SCRIPT: &str = r#"
rm -rf -- "$entry"
mkdir -m 700 -- "$entry"
printf '%s\n' "$7" >"$entry/version"
printf '%s\n' "$8" >"$entry/next"
cat >"$entry/unit"
pack "$entry/state.tar" whole "--exclude=$state/tmp" "--exclude=$state/cache"
sync -f -- "$entry"
: >"$entry/complete"
"#;
        let script = Command::script("make-snapshot", &[SHELL, OPEN, PACK, SCRIPT]);
        self.succeed(&self.on_entry(script, name, COPY)?.args([version, next]).stdin(unit)).await.map(drop)
    }

    /// Deletes a snapshot that must not be restored. This does not wait for a copy that still runs because its
    /// connection was cut: that copy finds its folder missing and ends without becoming complete.
    pub async fn discard(&self, name: &str) -> Result<()> {
        const SCRIPT: &str = r#"
set -eu
protected "$1" || exit 96
if [ ! -d "$1.archive" ] || [ -L "$1.archive" ]; then exit 0; fi
[ -e "$1.archive/$2" ] || exit 0
mv -T -- "$1.archive/$2" "$1.archive/gone.$$"
rm -rf --one-file-system -- "$1.archive/gone.$$"
"#;
        let command =
            Command::script("discard-snapshot", &[SHELL, SCRIPT]).args([self.home, entry(name)?]).limit(REMOVE);
        self.succeed(&command).await.map(drop)
    }

    /// A complete snapshot; `None` if there is none.
    pub async fn find(&self, name: &str) -> Result<Option<Snapshot>> {
        const SCRIPT: &str = r#"
protected "$1" || exit 96
if [ ! -d "$1.archive" ] || [ -L "$1.archive" ]; then exit 3; fi
cd -- "$1.archive/$2" 2>/dev/null && [ -e complete ] || exit 3
if [ -e used ]; then echo used; else echo fresh; fi
cat next 2>/dev/null || echo
cat version unit
"#;
        let command = Command::script("find-snapshot", &[SHELL, SCRIPT]).args([self.home, entry(name)?]);
        let output = self.host.run(&command).await?;
        if output.status == NO_SNAPSHOT {
            return Ok(None);
        }
        let text = checked(output, self.home)?.text();
        let mut parts = text.splitn(4, '\n').map(str::to_owned);
        let mut part = || parts.next().unwrap_or_default();
        let (used, next, version, unit) = (part() == "used", part(), part(), part());
        Ok(Some(Snapshot { version, unit, next, used }))
    }

    /// Restores the whole state of a snapshot. The state before it is kept beside it, with `.failed`
    /// after its name.
    pub async fn restore(&self, name: &str) -> Result<()> {
        // Releases before 0.2 kept a folder instead of a packed file. Root owns the folder above it, and its links are
        // packed as links.
        const SCRIPT: &str = r#"
[ -e "$entry/complete" ]
unpack() {
  as_owner "$seconds" "$home" sh -c '
    umask 077
    cd -- "$1" || exit 1
    discard() { [ -L "$1" ] || [ ! -d "$1" ] || chmod -R u+rwX -- "$1" 2>/dev/null; rm -rf -- "$1"; }
    state=$2
    discard "$state.back" && mkdir "$state.back" || exit 1
    tar -xpf - -C "$state.back" || exit 1
    [ -d "$state.back/$state" ] || exit 1
    if [ -e "$state" ] || [ -L "$state" ]; then discard "$state.failed" && mv -T -- "$state" "$state.failed" || exit 1; fi
    mv -T -- "$state.back/$state" "$state" && rmdir "$state.back"' sh "$home" "$state"
}
if [ -f "$entry/state.tar" ]; then
  unpack <"$entry/state.tar"
else
  if [ ! -d "$entry/state" ] || [ -L "$entry/state" ]; then exit 95; fi
  tar -C "$entry" "--transform=s,^state,$state,S" -cf "$entry/state.new" state
  mv -T -- "$entry/state.new" "$entry/state.tar"
  unpack <"$entry/state.tar"
fi
: >"$entry/used"
"#;
        let script = Command::script("restore-snapshot", &[SHELL, OPEN, PACK, SCRIPT]);
        self.succeed(&self.on_entry(script, name, COPY)?).await.map(drop)
    }
}

impl Archive<'_> {
    /// Copies the state of another home, whose gateway is stopped, into this one, and keeps the copy here. The owner of
    /// each home reads or writes its own.
    pub async fn bring_state(&self, name: &str, from: &str) -> Result<()> {
        const SCRIPT: &str = r#"
to=$home home=$7
rm -rf -- "$entry"
mkdir -m 700 -- "$entry"
pack "$entry/state.tar" whole "--exclude=$state/tmp" "--exclude=$state/cache"
sync -f -- "$entry"
as_owner "$seconds" "$to" sh -c '
  umask 077
  cd -- "$1" || exit 1
  tar -xf - --no-same-owner && [ -d "$2" ] && [ ! -L "$2" ]' sh "$to" "$state" <"$entry/state.tar"
"#;
        if !from.starts_with('/') || from.contains(char::is_control) {
            return Err(Error::BadCommand("the home of another assistant"));
        }
        let script = Command::script("bring-state", &[SHELL, OPEN, PACK, SCRIPT]);
        // It is packed and unpacked, each in its time.
        self.succeed(&self.on_entry(script, name, COPY)?.arg(from).limit(2 * COPY + REMOVE)).await.map(drop)
    }
}

fn entry(name: &str) -> Result<&str> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    if name.bytes().all(plain) && !name.starts_with('.') {
        Ok(name)
    } else {
        Err(Error::BadCommand("the name of an entry of an archive"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_a_plain_name() {
        let host = Host::local();
        let archive = Archive::of(&host, "/srv/assistants/1", 7);
        let on_entry = |name| archive.on_entry(Command::new("true"), name, COPY);
        assert!(on_entry("upgrade-0193-a").is_ok());
        for bad in ["../x", "a/b", ".hidden", "a b", "a\n"] {
            assert!(on_entry(bad).is_err() && entry(bad).is_err(), "{bad}");
        }
    }
}
