//! Files of an instance: its guide, and what marketplace items bring. Everything below the home is touched as the
//! user whose home it is, so that no link put in the way leads anywhere that user could not go.

use base::{Error, FilePath, Result};
use remote::host::file::{Expect, Write};
use store::marketplace::Scope;
use store::user::User;

use super::Assistant;

/// What an instance's workspace says to whoever begins with it.
pub const GUIDE: &str = "BOOTSTRAP.md";

/// Writes the guide for a new owner.
pub async fn write_guide(assistant: &Assistant, user: &User) -> Result<()> {
    let plain = |text: &str| -> String {
        let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect();
        text.trim().to_owned()
    };
    let (assistant_name, name, email) = (plain(&assistant.instance.name), plain(&user.name), plain(&user.email));
    let department = plain(&user.department);
    let mut text = format!("# Welcome\n\nYou are {assistant_name}, the assistant of {name} ({email})");
    if !department.is_empty() {
        text.push_str(&format!(", {department}"));
    }
    text.push_str(
        ".\n\n- Begin by greeting them and asking what they would like help with.\n\
         - Keep what they tell you about their work in USER.md.\n\
         - When both of you know each other, delete this file: it is only for the beginning.\n",
    );
    put(assistant, &assistant.place.workspace(), GUIDE, text.as_bytes()).await
}

fn folder(assistant: &Assistant, scope: Scope) -> String {
    match scope {
        Scope::Config => assistant.place.state_dir(),
        Scope::Workspace => assistant.place.workspace(),
    }
}

/// Puts a file of an item in its place.
pub async fn place_item(assistant: &Assistant, scope: Scope, path: &str, content: &str) -> Result<()> {
    put(assistant, &folder(assistant, scope), path, content.as_bytes()).await
}

async fn put(assistant: &Assistant, folder: &str, path: &str, content: &[u8]) -> Result<()> {
    let path = checked(path)?;
    let whole = format!("{folder}/{}", path.as_str());
    let parent = whole.rsplit_once('/').map_or(folder, |(parent, _)| parent);
    let home = assistant.home()?;
    home.make_folders(&[parent.to_owned()]).await?;
    home.write(Write::new(whole, content, Expect::Any)).await?;
    Ok(())
}

/// Takes a file of an item away, with the folders that are empty then.
pub async fn remove_item(assistant: &Assistant, scope: Scope, path: &str) -> Result<()> {
    let path = checked(path)?;
    Ok(assistant.home()?.remove(&folder(assistant, scope), path.as_str()).await?)
}

/// Checked when it was uploaded, and once more where it is used.
fn checked(path: &str) -> Result<FilePath> {
    FilePath::parse(path).map_err(|why| Error::internal(format_args!("a file of an item: {path:?} {why}")))
}
