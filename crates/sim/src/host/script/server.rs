//! Scripts about a server as a whole: how busy it is, what it supports, what it reaches, and the programs on it.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use serde_json::json;

use super::Call;
use crate::assistant::Senders;
use crate::host::command::{Answer, Vitals};
use crate::host::openclaw::validation;
use crate::host::state::{PROGRAMS, State};

pub fn metrics(state: &mut State, call: &Call<'_>) -> Answer {
    let Vitals { cpu: [before, after], load, memory, disk } = Vitals::of(state, call.machine);
    Answer::said(format!("{before}\nload {load}\n{memory}\ndisk {disk}\n{after}\n"))
}

/// Whether an address of this machine answers. Others are never reached. The argument is the URL.
pub async fn reach(call: &Call<'_>) -> Answer {
    let url = call.arg(1);
    let place = url.split_once("://").map_or(url, |(_, rest)| rest).split('/').next().unwrap_or_default();
    let place = place.replace("localhost", "127.0.0.1");
    let away = || Answer::failed(7, "curl: (7) a simulated server reaches nothing but this machine");
    let Ok(address) = place.parse::<SocketAddr>() else { return away() };
    if address.ip() != Ipv4Addr::LOCALHOST {
        return away();
    }
    match tokio::time::timeout(Duration::from_secs(2), tokio::net::TcpStream::connect(address)).await {
        Ok(Ok(_)) => Answer::said("401"),
        _ => away(),
    }
}

/// What the machine supports of a cell: everything, except what a test removed.
pub fn cells(state: &mut State, _: &Call<'_>) -> Answer {
    let odd = &state.odd_about_cells;
    Answer::said(format!("{odd}whole\ncontrollers cpuset cpu io memory pids\nfirewall\nbind-filter\nend\n"))
}

pub fn validate(state: &mut State, call: &Call<'_>) -> Answer {
    match state.files.file(call.arg(1)) {
        Some(_) => Answer::said(format!("{}\n", validation(call.stdin))),
        None => Answer::status(3),
    }
}

/// The people who wait to be allowed to write to a bot. Arguments: Node, and the gateway's state folder.
pub fn pairing_requests(state: &mut State, call: &Call<'_>) -> Answer {
    if state.files.file(call.arg(1)).is_none() {
        return Answer::status(3);
    }
    let requests = state.senders.get(call.arg(2)).map(Senders::stored).unwrap_or_default();
    Answer::said(json!({"requests": requests}).to_string())
}

pub fn installed(state: &mut State, call: &Call<'_>) -> Answer {
    let path = call.arg(1);
    let version = path.rsplit('/').nth(1).unwrap_or_default();
    match state.files.file(path) {
        Some(_) => Answer::said(format!("pinned\nOpenClaw {version} (simulated)\n")),
        None => Answer::status(3),
    }
}

/// Arguments: the folder, the registry, the versions of Node, npm and OpenClaw, and more. Nothing is downloaded.
pub fn install(state: &mut State, call: &Call<'_>) -> Answer {
    let (folder, node, version) = (call.arg(1), call.arg(3), call.arg(5));
    if folder != PROGRAMS {
        return Answer::status(1);
    }
    for (place, program) in
        [(format!("{folder}/node/{node}/bin"), "node"), (format!("{folder}/openclaw/{version}"), "openclaw")]
    {
        state.files.folder(&place, "root");
        state.files.write(&format!("{place}/{program}"), "simulated", "root");
    }
    Answer::nothing()
}
