//! What is kept of an instance: everything that its last owner left, for seven days, and what an upgrade may have to go back to.
//!
//! An archive is made by moving: at once, on the same disk, whole. It bears the name of the task that made it, so that the same task run
//! again finds it done.

use std::time::Duration;

use base::Result;
use remote::host::Command;

use super::Assistant;

/// How long archives are kept.
pub const DAYS: u32 = 7;

/// Copying a state folder of some gigabytes takes a while.
const COPY: Duration = Duration::from_secs(300);
const REMOVE: Duration = Duration::from_secs(120);

// The folder of archives is root's alone: whoever had the instance does not get at it. `find -mtime` counts from when it was moved there.
const PREPARE: &str = r#"
set -eu
archive=$1 name=$2
mkdir -p -m 700 -- "$archive"
if [ -L "$archive" ]; then echo "$archive is a link" >&2; exit 1; fi
chown -h root:root -- "$archive"
exec 9<"$archive"
flock -w 20 9
find "$archive" -mindepth 1 -maxdepth 1 -mtime "+$3" -exec rm -rf -- {} +
"#;

fn script(deed: &str, assistant: &Assistant, name: &str) -> Command {
    let days = (DAYS - 1).to_string();
    let place = &assistant.place;
    Command::script(&format!("{PREPARE}\n{deed}"))
        .args([place.archive(), name.to_owned(), days, place.home.clone(), place.state_dir()])
        .limit(REMOVE)
}

/// Moves the home away, with everything in it that whoever had the instance may have left. The caller made sure that the platform made
/// it. From then on no upgrade goes back to it.
pub async fn put_away(assistant: &Assistant, name: &str) -> Result<()> {
    const DEED: &str = r#"
rm -f -- "$archive"/upgrade-*/complete
if [ ! -e "$archive/$name" ] && [ -e "$4" ]; then
  mv -T -- "$4" "$archive/$name"
  touch -h -- "$archive/$name"
fi
"#;
    assistant.host.succeed(&script(DEED, assistant, name)).await?;
    Ok(())
}

/// Copies the state of a stopped instance, with what it ran and how, to go back to.
pub async fn snapshot(assistant: &Assistant, name: &str, version: &str, unit: &str) -> Result<()> {
    const DEED: &str = r#"
rm -rf -- "$archive/$name"
mkdir -m 700 -- "$archive/$name"
cp -a --reflink=auto -- "$5" "$archive/$name/state"
rm -rf -- "$archive/$name/state/tmp" "$archive/$name/state/cache"
printf '%s\n' "$6" >"$archive/$name/version"
cat >"$archive/$name/unit"
sync -f -- "$archive/$name"
: >"$archive/$name/complete"
"#;
    let command = script(DEED, assistant, name).arg(version).stdin(unit).limit(COPY);
    assistant.host.succeed(&command).await?;
    Ok(())
}

/// Takes a snapshot away that is not to be gone back to. Nobody is waited for: a copy that is still being made, by a command whose
/// connection was cut, does not find its folder any more and ends without having become whole.
pub async fn discard(assistant: &Assistant, name: &str) -> Result<()> {
    const SCRIPT: &str = r#"
        set -eu
        [ -e "$1/$2" ] || exit 0
        mv -T -- "$1/$2" "$1/gone.$$"
        rm -rf -- "$1/gone.$$"
    "#;
    let command = Command::script(SCRIPT).args([assistant.place.archive(), name.to_owned()]).limit(REMOVE);
    assistant.host.succeed(&command).await?;
    Ok(())
}

/// What stands in a snapshot beside the state.
pub struct Kept {
    pub version: String,
    pub unit: String,
    /// Whether it was gone back to already.
    pub used: bool,
}

/// A snapshot that was made whole; `None` where there is none.
pub async fn find(assistant: &Assistant, name: &str) -> Result<Option<Kept>> {
    const SCRIPT: &str = r#"
        cd -- "$1/$2" 2>/dev/null && [ -e complete ] || exit 3
        if [ -e used ]; then echo used; else echo fresh; fi
        cat version unit
    "#;
    let output =
        assistant.host.run(&Command::script(SCRIPT).args([assistant.place.archive(), name.to_owned()])).await?;
    if output.status == 3 {
        return Ok(None);
    }
    let text = output.ok("a snapshot")?.text();
    let mut parts = text.splitn(3, '\n').map(str::to_owned);
    let (used, version, unit) = (parts.next(), parts.next(), parts.next());
    Ok(Some(Kept {
        version: version.unwrap_or_default(),
        unit: unit.unwrap_or_default(),
        used: used.as_deref() == Some("used"),
    }))
}

/// Puts a snapshot's state back, whole. What was there is kept beside it.
pub async fn restore(assistant: &Assistant, name: &str) -> Result<()> {
    const DEED: &str = r#"
snapshot=$archive/$name
[ -e "$snapshot/complete" ]
rm -rf -- "$snapshot/back"
cp -a --reflink=auto -- "$snapshot/state" "$snapshot/back"
if [ -e "$5" ]; then rm -rf -- "$snapshot/failed"; mv -T -- "$5" "$snapshot/failed"; fi
mv -T -- "$snapshot/back" "$5"
: >"$snapshot/used"
"#;
    assistant.host.succeed(&script(DEED, assistant, name).limit(COPY)).await?;
    Ok(())
}
