//! What is kept of an instance: everything that its last owner left, for seven days, and what an upgrade may have to go back to. How it is
//! kept out of every tenant's reach: `remote::host::home::archive`.

use base::Result;
use remote::host::home::archive::Archive;
pub use remote::host::home::archive::Snapshot;

use super::Assistant;

/// How long archives are kept.
pub const DAYS: u32 = 7;

fn of(assistant: &Assistant) -> Archive<'_> {
    Archive::of(&assistant.host, &assistant.place.home, DAYS)
}

/// Moves the home away, with everything in it that whoever had the instance may have left. The caller made sure that the platform made
/// it. From then on neither an upgrade nor a change of the cell goes back to it.
pub async fn put_away(assistant: &Assistant, name: &str) -> Result<()> {
    Ok(of(assistant).put_home_away(name).await?)
}

/// Copies the state of a stopped instance, with what it ran and how, to go back to; and what is known of the unit that it gets now.
pub async fn snapshot(assistant: &Assistant, name: &str, version: &str, unit: &str, next: &str) -> Result<()> {
    Ok(of(assistant).snapshot(name, version, unit, next).await?)
}

/// Takes a snapshot away that is not to be gone back to.
pub async fn discard(assistant: &Assistant, name: &str) -> Result<()> {
    Ok(of(assistant).discard(name).await?)
}

/// A snapshot that was made whole; `None` where there is none.
pub async fn find(assistant: &Assistant, name: &str) -> Result<Option<Snapshot>> {
    Ok(of(assistant).find(name).await?)
}

/// Puts a snapshot's state back, whole. What was there is kept beside it.
pub async fn restore(assistant: &Assistant, name: &str) -> Result<()> {
    Ok(of(assistant).restore(name).await?)
}
