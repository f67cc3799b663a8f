//! Scripts about files and folders.

use super::Call;
use crate::host::command::Answer;
use crate::host::state::State;
use crate::host::tree::{parent, sha256};

fn missing(path: &str) -> Answer {
    Answer::failed(1, &format!("stat: cannot statx '{path}': No such file or directory"))
}

/// Arguments: the path, and the limit in bytes.
pub fn read(state: &mut State, call: &Call<'_>) -> Answer {
    content(state, call, call.arg(1))
}

/// Arguments: the path, the limit in bytes, and which older version.
pub fn read_kept(state: &mut State, call: &Call<'_>) -> Answer {
    content(state, call, &format!("{}.tidepool-{}", call.arg(1), call.arg(3)))
}

fn content(state: &State, call: &Call<'_>, path: &str) -> Answer {
    match state.files.get(path).map(|node| node.bytes.as_ref()) {
        None => missing(path),
        Some(None) => Answer::status(82),
        Some(Some(bytes)) if bytes.len() > call.arg(2).parse().unwrap_or(0) => Answer::status(84),
        Some(Some(bytes)) => Answer::said(bytes.clone()),
    }
}

/// Arguments: the path, and how many bytes.
pub fn read_end(state: &mut State, call: &Call<'_>) -> Answer {
    let path = call.arg(1);
    let Some(bytes) = state.files.file(path) else { return missing(path) };
    let from = bytes.len().saturating_sub(call.arg(2).parse().unwrap_or(0));
    Answer::said([format!("{}\n", bytes.len()).as_bytes(), &bytes[from..]].concat())
}

pub fn write(state: &mut State, call: &Call<'_>) -> Answer {
    let (path, expect, want, owner) = (call.arg(1), call.arg(2), call.arg(3), call.arg(5));
    if !state.files.is_folder(parent(path)) {
        return Answer::status(85);
    }
    if state.files.is_folder(path) {
        return Answer::status(82);
    }
    let there = state.files.file(path).map(<[u8]>::to_vec);
    let now = there.as_deref().map_or_else(|| "absent".to_owned(), sha256);
    if now == want {
        return Answer::said("same\n");
    }
    if expect != "any" && expect != now {
        return Answer::status(81);
    }
    if sha256(call.stdin) != want {
        return Answer::status(87);
    }
    let owner = match owner {
        "" => state.files.owner(parent(path)).to_owned(),
        owner => owner.split(':').next().unwrap_or_default().to_owned(),
    };
    let answer = match there {
        None => Answer::said("new\n"),
        Some(old) => {
            let kept = format!("{path}.tidepool-{}", state.now().strftime("%Y%m%dT%H%M%S.%NZ"));
            state.files.write(&kept, old, &owner);
            let versions = state.files.beginning(&format!("{path}.tidepool-"));
            let most = call.arg(6).parse().unwrap_or(5);
            for name in versions.iter().take(versions.len().saturating_sub(most)) {
                state.files.remove(name);
            }
            Answer::said(format!("kept {kept}"))
        }
    };
    state.files.write(path, call.stdin, &owner);
    state.reload(path);
    answer
}

pub fn kept_versions(state: &mut State, call: &Call<'_>) -> Answer {
    let names = state.files.beginning(&format!("{}.tidepool-", call.arg(1)));
    let line = |name: &String| format!("{} {name}\n", state.files.file(name).map_or(0, <[u8]>::len));
    Answer::said(names.iter().map(line).collect::<String>())
}

pub fn make_folders(state: &mut State, call: &Call<'_>) -> Answer {
    for folder in call.args {
        state.files.folder(folder, call.user);
    }
    Answer::nothing()
}

fn remove_versions(state: &mut State, path: &str) {
    state.files.remove(path);
    for name in state.files.beginning(&format!("{path}.tidepool-")) {
        state.files.remove(&name);
    }
}

pub fn remove(state: &mut State, call: &Call<'_>) -> Answer {
    remove_versions(state, call.arg(1));
    Answer::nothing()
}

/// Arguments: a folder, and the path of a file below it.
pub fn remove_below(state: &mut State, call: &Call<'_>) -> Answer {
    let (folder, path) = (call.arg(1), format!("{}/{}", call.arg(1), call.arg(2)));
    remove_versions(state, &path);
    let mut above = parent(&path);
    while above.len() > folder.len() && state.files.below(above).len() == 1 {
        state.files.remove(above);
        above = parent(above);
    }
    Answer::nothing()
}

pub fn size(state: &mut State, call: &Call<'_>) -> Answer {
    Answer::said(format!("{}\n", state.files.file(call.arg(1)).map_or(0, <[u8]>::len)))
}

/// Finds which of some phrases occurs last after an offset in a log. Arguments: the log, the offset, how long to wait,
/// and the phrases.
pub fn find_in_log(state: &mut State, call: &Call<'_>) -> Answer {
    let bytes = state.files.file(call.arg(1)).unwrap_or_default();
    let new = bytes.get(call.arg(2).parse().unwrap_or(0)..).unwrap_or_default();
    let new = String::from_utf8_lossy(new);
    let last = call.args.iter().skip(3).filter_map(|words| Some((new.rfind(words)?, *words))).max();
    Answer::said(last.map_or_else(String::new, |(_, words)| format!("{words}\n")))
}
