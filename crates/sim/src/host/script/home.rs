//! Scripts about homes, their users and their archives.

use super::Call;
use crate::host::command::Answer;
use crate::host::state::State;
use crate::host::tree::parent;

pub fn owner(state: &mut State, call: &Call<'_>) -> Answer {
    let path = call.arg(1);
    match state.files.get(path) {
        None => Answer::status(97),
        Some(node) if node.bytes.is_some() => Answer::status(98),
        Some(node) => Answer::said(format!("{}\n", node.owner)),
    }
}

/// Arguments: the home, the user, its number and more.
pub fn make_user(state: &mut State, call: &Call<'_>) -> Answer {
    let (home, user) = (call.arg(1), call.arg(2));
    if state.files.get(home).is_some() {
        return Answer::failed(78, &format!("{home} is there already"));
    }
    if state.users.contains_key(user) {
        return Answer::status(79);
    }
    state.users.insert(user.to_owned(), home.to_owned());
    state.files.folder(parent(home), "root");
    state.files.folder(home, user);
    Answer::nothing()
}

/// Closes, vacates or prepares a user: simulated users have nothing but their unit and their home.
pub fn leave_user(_: &mut State, _: &Call<'_>) -> Answer {
    Answer::nothing()
}

pub fn remove_user(state: &mut State, call: &Call<'_>) -> Answer {
    state.users.remove(call.arg(1));
    Answer::nothing()
}

/// Arguments: the home, and its limit in KiB. The machine does not support disk quotas.
pub fn limit_disk(state: &mut State, call: &Call<'_>) -> Answer {
    state.disk_limits.push(call.arg(2).to_owned());
    Answer::status(3)
}

/// The paths of an entry of an archive. The first arguments of each script are the home, and the entry's name.
struct Entry<'a> {
    home: &'a str,
    state_dir: String,
    archive: String,
    place: String,
}

impl<'a> Entry<'a> {
    fn of(call: &Call<'a>) -> Entry<'a> {
        let home = call.arg(1);
        let archive = format!("{home}.archive");
        let place = format!("{archive}/{}", call.arg(2));
        Entry { home, state_dir: format!("{home}/.openclaw"), archive, place }
    }

    fn file(&self, name: &str) -> String {
        format!("{}/{name}", self.place)
    }
}

/// Moves a home into its archive. The snapshots there can no longer be restored.
pub fn archive(state: &mut State, call: &Call<'_>) -> Answer {
    let entry = Entry::of(call);
    state.files.folder(&entry.archive, "root");
    for kind in ["upgrade-", "cell-"] {
        for file in state.files.beginning(&format!("{}/{kind}", entry.archive)) {
            if file.ends_with("/complete") {
                state.files.remove(&file);
            }
        }
    }
    if state.files.get(&entry.place).is_none() && state.files.get(entry.home).is_some() {
        state.files.rename(entry.home, &entry.place);
        state.conversations.remove(&entry.state_dir);
        state.senders.remove(&entry.state_dir);
    }
    Answer::nothing()
}

/// The seventh argument is the version, the eighth a line about the next unit.
pub fn make_snapshot(state: &mut State, call: &Call<'_>) -> Answer {
    let entry = Entry::of(call);
    state.files.folder(&entry.archive, "root");
    state.files.remove(&entry.place);
    state.files.folder(&entry.place, "root");
    state.files.copy(&entry.state_dir, &entry.file("state"));
    state.files.write(&entry.file("version"), format!("{}\n", call.arg(7)), "root");
    state.files.write(&entry.file("next"), format!("{}\n", call.arg(8)), "root");
    state.files.write(&entry.file("unit"), call.stdin, "root");
    state.files.write(&entry.file("complete"), "", "root");
    Answer::nothing()
}

pub fn restore_snapshot(state: &mut State, call: &Call<'_>) -> Answer {
    let entry = Entry::of(call);
    state.files.folder(&entry.archive, "root");
    if state.files.get(&entry.file("complete")).is_none() {
        return Answer::status(1);
    }
    state.files.rename(&entry.state_dir, &format!("{}.failed", entry.state_dir));
    state.files.copy(&entry.file("state"), &entry.state_dir);
    state.files.write(&entry.file("used"), "", "root");
    Answer::nothing()
}

pub fn find_snapshot(state: &mut State, call: &Call<'_>) -> Answer {
    let entry = Entry::of(call);
    let has = |name: &str| state.files.get(&entry.file(name)).is_some();
    if !has("complete") {
        return Answer::status(3);
    }
    let text = |name: &str| state.files.text(&entry.file(name)).unwrap_or_default();
    let used = if has("used") { "used" } else { "fresh" };
    let next = if has("next") { text("next") } else { "\n" };
    Answer::said(format!("{used}\n{next}{}{}", text("version"), text("unit")))
}

/// The seventh argument is the home whose state is brought into this one.
pub fn bring_state(state: &mut State, call: &Call<'_>) -> Answer {
    let entry = Entry::of(call);
    let from = format!("{}/.openclaw", call.arg(7));
    if !state.files.is_folder(&from) {
        return Answer::status(95);
    }
    state.files.folder(&entry.archive, "root");
    state.files.copy(&from, &entry.file("state"));
    let owner = state.files.owner(entry.home).to_owned();
    for file in state.files.below(&from) {
        let to = format!("{}{}", entry.state_dir, &file[from.len()..]);
        match state.files.file(&file).map(<[u8]>::to_vec) {
            Some(bytes) => state.files.write(&to, bytes, &owner),
            None => state.files.folder(&to, &owner),
        }
    }
    // Its people find what they said.
    if let Some(conversations) = state.conversations.get(&from).cloned() {
        state.conversations.insert(entry.state_dir, conversations);
    }
    Answer::nothing()
}

pub fn discard_snapshot(state: &mut State, call: &Call<'_>) -> Answer {
    state.files.remove(&Entry::of(call).place);
    Answer::nothing()
}
