//! The Unix user of an instance. Each holder's is another one, with a number of its own from a range of ours, so that nothing that a
//! holder left anywhere on the server belongs to the next. Numbers are recorded before they are used.

use base::cell::{Opening, Openings};
use base::{Error, Kind, Result};
use openclaw::Layout;
use remote::host::users::{self, Account, Made, New};
use store::instance::Runner;
use store::server;
use store::unix_user::{self, UnixUser};

use super::{Assistant, place};
use crate::App;

/// How many numbers are tried of which a server says that they are somebody else's.
const TRIES: usize = 50;

/// Makes the user, the home and its folders, where they are missing. A home that is there keeps its owner.
/// Answers whether they were made now.
pub async fn make(app: &App, assistant: &mut Assistant) -> Result<bool> {
    let is_new = assistant.place.owner.is_none();
    if is_new {
        if assistant.instance.runner != Runner::Unit {
            return Err(Error::conflict("its home is missing, and the platform did not make it"));
        }
        if assistant.instance.is_main {
            return Err(Error::conflict("the home of the login user is missing; the platform does not make it"));
        }
        assistant.place.owner = Some(make_user(app, assistant).await?);
    }
    let layout = Layout::of(&assistant.place.home);
    let folders = [layout.workspace(), layout.logs()];
    assistant.home()?.make_folders(&folders).await?;
    Ok(is_new)
}

async fn make_user(app: &App, assistant: &Assistant) -> Result<String> {
    for _ in 0..TRIES {
        let (user, used_before) = give_number(app, assistant).await?;
        let uid = u32::try_from(user.uid).map_err(Error::internal)?;
        let new = New { name: &user.name, uid, home: &assistant.place.home, used_before };
        match users::make(&assistant.host, &new).await? {
            Made::Yes => return Ok(user.name),
            Made::NumberTaken => {
                tracing::warn!(server = %user.server_id, uid, "a number of our range is somebody else's on this server");
                unix_user::removed(&app.db, &user.server_id, user.uid, app.clock.now()).await?;
            }
        }
    }
    Err(Error::conflict("no number for a Unix user is free on the server"))
}

/// Gives the instance a number, and says whether somebody had it before.
async fn give_number(app: &App, assistant: &Assistant) -> Result<(UnixUser, bool)> {
    let server = assistant.instance.server_id.clone();
    let mut tx = app.db.begin().await?;
    // Numbers are given out under the server's lock, like ports and homes.
    server::lock(&mut tx, &server).await?.ok_or(Kind::NotFound)?;
    let next = unix_user::next(&mut tx, &server).await?;
    let next = next.ok_or_else(|| Error::conflict("no number for a Unix user is free on the server"))?;
    let user = UnixUser {
        server_id: assistant.instance.server_id.clone(),
        uid: next.uid,
        name: format!("assistant-{}", next.uid),
        instance_id: assistant.instance.id.clone(),
        created_at: app.clock.now(),
        removed_at: None,
    };
    unix_user::give(&mut tx, &user).await?;
    tx.commit().await?;
    Ok((user, next.used_before))
}

/// A user of the instance's that may be on the server. Those of the first releases have no record, and no number of our range.
pub struct Old {
    pub name: String,
    uid: Option<i64>,
}

/// The users that the platform made for the instance and did not remove yet.
pub async fn old(app: &App, assistant: &Assistant) -> Result<Vec<Old>> {
    let recorded = unix_user::of_instance(&app.db, &assistant.id()).await?;
    let mut all: Vec<Old> = recorded.into_iter().map(|user| Old { name: user.name, uid: Some(user.uid) }).collect();
    if let Some(owner) = &assistant.place.owner
        && all.iter().all(|user| user.name != *owner)
        && place::users_of(&assistant.instance, &assistant.place.home).contains(owner)
    {
        all.push(Old { name: owner.clone(), uid: None });
    }
    Ok(all)
}

/// What becomes of the account of its user when the instance gets a cell with these openings.
pub async fn account(app: &App, assistant: &Assistant, openings: &Openings) -> Result<Account> {
    let is_owner = |user: &Old| assistant.place.owner.as_ref() == Some(&user.name);
    Ok(match old(app, assistant).await?.iter().any(is_owner) {
        false => Account::Foreign,
        true if openings.has(Opening::Sudo) => Account::Open,
        true => Account::Closed,
    })
}

/// Ends everything that the instance's user runs beside its unit, which is stopped: a cell that somebody of the same user can be reached
/// from outside of is none. A user that the platform did not make may have other work to do.
pub async fn close(app: &App, assistant: &Assistant) -> Result<()> {
    for user in old(app, assistant).await?.iter().filter(|user| assistant.place.owner.as_ref() == Some(&user.name)) {
        let uid = user.uid.map(u32::try_from).transpose().map_err(Error::internal)?;
        users::close(&assistant.host, &user.name, uid).await?;
    }
    Ok(())
}

/// Ends everything that these users run, and removes what they left outside of their home.
pub async fn vacate(assistant: &Assistant, old: &[Old]) -> Result<()> {
    for user in old {
        let uid = user.uid.map(u32::try_from).transpose().map_err(Error::internal)?;
        users::vacate(&assistant.host, &user.name, uid).await?;
    }
    Ok(())
}

/// Removes users that were vacated, once their home was moved away.
pub async fn remove(app: &App, assistant: &Assistant, old: &[Old]) -> Result<()> {
    for user in old {
        users::remove(&assistant.host, &user.name).await?;
        if let Some(uid) = user.uid {
            unix_user::removed(&app.db, &assistant.instance.server_id, uid, app.clock.now()).await?;
        }
    }
    Ok(())
}
