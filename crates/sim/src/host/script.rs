//! The platform's scripts. Each is recognised by a phrase that only it has, and executed on the machine's model instead
//! of by a shell.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::command::{Answer, Vitals, show};
use super::machine::{Machine, WEBHOOK};
use super::openclaw::validation;
use super::state::{PROGRAMS, State};
use super::tree::{parent, sha256};
use super::words::Invocation;
use super::{command, journal};

/// A call of a script: its user, arguments and input.
struct Call<'a> {
    user: &'a str,
    text: &'a str,
    args: &'a [&'a str],
    stdin: &'a [u8],
}

impl<'a> Call<'a> {
    fn arg(&self, number: usize) -> &'a str {
        self.args.get(number - 1).copied().unwrap_or_default()
    }
}

type ScriptFn = fn(&mut State, &Call<'_>) -> Answer;

/// A phrase of each script, and the function that simulates it. The first match is used.
const SCRIPTS: &[(&str, ScriptFn)] = &[
    (".tidepool-new.", write),
    ("exec head -c \"$(($2 + 1))\"", read),
    ("stat -c '%s %n' -- \"$kept\"", kept_versions),
    ("exec tail -c \"$2\"", tail),
    ("show() {", systemctl),
    ("look() {", look),
    ("/proc/net/tcp6", listeners),
    ("show -p LoadState --value", unit_user),
    ("each() { signal=", end),
    ("--pipe -p User=nobody", cells),
    ("find \"$archive\" -mindepth 1", archive),
    ("[ -e complete ] || exit 3", kept),
    ("mv -T -- \"$1.archive/$2\" \"$1.archive/gone.$$\"", discard),
    ("config validate --json", validate),
    ("npm-cli.js", install),
    ("useradd --system", make_home),
    ("usermod --expiredate 1", vacate),
    ("userdel --", remove_user),
    ("setquota -P", limit_disk),
    ("mask=/etc/systemd/system/user@", |_, _| Answer::nothing()),
    ("exec mkdir -p -- \"$@\"", make_folders),
    ("rmdir -p --ignore-fail-on-non-empty", remove_item),
    ("rm -f -- \"$1\" \"$1\".tidepool-[0-9]*", remove),
    ("exec \"$1\" --version", installed),
    ("printf '%s\\n' \"${found#* }\"", owner),
    ("stat -Lc %s -- \"$1\" 2>/dev/null || echo 0", size),
    ("grep -aoF \"$@\"", find_in_log),
];

pub(super) async fn run(
    machine: &Arc<Machine>,
    invocation: &Invocation,
    text: &str,
    args: &[&str],
    stdin: &[u8],
) -> Option<Answer> {
    if text.contains("/proc/loadavg") {
        return Some(metrics(machine));
    }
    if text.contains("head -n \"$most\"") {
        return Some(journal_after(machine, args));
    }
    if text.contains("exec curl -sS -o /dev/null") {
        return Some(reach(args.first().copied().unwrap_or_default()).await);
    }
    let (_, script) = SCRIPTS.iter().find(|(phrase, _)| text.contains(phrase))?;
    Some(script(&mut machine.lock(), &Call { user: &invocation.user, text, args, stdin }))
}

// ── metrics and capabilities ──

fn metrics(machine: &Machine) -> Answer {
    let Vitals { cpu: [before, after], load, memory, disk } = Vitals::of(&machine.lock(), &machine.name);
    Answer::said(format!("{before}\nload {load}\n{memory}\ndisk {disk}\n{after}\n"))
}

fn journal_after(machine: &Machine, args: &[&str]) -> Answer {
    let most = args.first().and_then(|most| most.parse().ok()).unwrap_or(0);
    let unit = args.iter().position(|word| *word == "-u").and_then(|at| args.get(at + 1));
    let cursor = args.iter().find_map(|word| word.strip_prefix("--after-cursor=")).and_then(journal::number);
    let (lines, _) = command::entries_after(machine, unit.copied().unwrap_or_default(), cursor);
    Answer::said(lines.lines().take(most).map(|line| format!("{line}\n")).collect::<String>())
}

/// Whether an address of this machine answers. Others are never reached.
async fn reach(url: &str) -> Answer {
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
fn cells(state: &mut State, _: &Call<'_>) -> Answer {
    let odd = &state.odd_about_cells;
    Answer::said(format!("{odd}whole\ncontrollers cpuset cpu io memory pids\nfirewall\nbind-filter\nend\n"))
}

// ── files ──

fn missing(path: &str) -> Answer {
    Answer::failed(1, &format!("stat: cannot statx '{path}': No such file or directory"))
}

/// Arguments: the path, the limit in bytes, and optionally which older version.
fn read(state: &mut State, call: &Call<'_>) -> Answer {
    let path = match call.arg(3) {
        "" => call.arg(1).to_owned(),
        stamp => format!("{}.tidepool-{stamp}", call.arg(1)),
    };
    let path = path.as_str();
    match state.files.get(path).map(|node| node.bytes.as_ref()) {
        None => missing(path),
        Some(None) => Answer::status(82),
        Some(Some(bytes)) if bytes.len() > call.arg(2).parse().unwrap_or(0) => Answer::status(84),
        Some(Some(bytes)) => Answer::said(bytes.clone()),
    }
}

fn tail(state: &mut State, call: &Call<'_>) -> Answer {
    let path = call.arg(1);
    let Some(bytes) = state.files.file(path) else { return missing(path) };
    let from = bytes.len().saturating_sub(call.arg(2).parse().unwrap_or(0));
    Answer::said([format!("{}\n", bytes.len()).as_bytes(), &bytes[from..]].concat())
}

fn write(state: &mut State, call: &Call<'_>) -> Answer {
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

fn kept_versions(state: &mut State, call: &Call<'_>) -> Answer {
    let names = state.files.beginning(&format!("{}.tidepool-", call.arg(1)));
    let line = |name: &String| format!("{} {name}\n", state.files.file(name).map_or(0, <[u8]>::len));
    Answer::said(names.iter().map(line).collect::<String>())
}

fn make_folders(state: &mut State, call: &Call<'_>) -> Answer {
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

fn remove(state: &mut State, call: &Call<'_>) -> Answer {
    remove_versions(state, call.arg(1));
    Answer::nothing()
}

fn remove_item(state: &mut State, call: &Call<'_>) -> Answer {
    let (folder, path) = (call.arg(1), format!("{}/{}", call.arg(1), call.arg(2)));
    remove_versions(state, &path);
    let mut above = parent(&path);
    while above.len() > folder.len() && state.files.below(above).len() == 1 {
        state.files.remove(above);
        above = parent(above);
    }
    Answer::nothing()
}

fn owner(state: &mut State, call: &Call<'_>) -> Answer {
    let path = call.arg(1);
    match state.files.get(path) {
        None => Answer::status(97),
        Some(node) if node.bytes.is_some() => Answer::status(98),
        Some(node) => Answer::said(format!("{}\n", node.owner)),
    }
}

fn size(state: &mut State, call: &Call<'_>) -> Answer {
    Answer::said(format!("{}\n", state.files.file(call.arg(1)).map_or(0, <[u8]>::len)))
}

/// Finds which of some phrases occurs last after an offset in a log. Arguments: the log, the offset, how long to wait,
/// and the phrases.
fn find_in_log(state: &mut State, call: &Call<'_>) -> Answer {
    let bytes = state.files.file(call.arg(1)).unwrap_or_default();
    let new = bytes.get(call.arg(2).parse().unwrap_or(0)..).unwrap_or_default();
    let new = String::from_utf8_lossy(new);
    let last = call.args.iter().skip(3).filter_map(|words| Some((new.rfind(words)?, *words))).max();
    Answer::said(last.map_or_else(String::new, |(_, words)| format!("{words}\n")))
}

// ── homes and their archives ──

/// Arguments: the home, the user, its number and more.
fn make_home(state: &mut State, call: &Call<'_>) -> Answer {
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

/// Simulated users have nothing but their unit and their home.
fn vacate(_: &mut State, _: &Call<'_>) -> Answer {
    Answer::nothing()
}

fn remove_user(state: &mut State, call: &Call<'_>) -> Answer {
    state.users.remove(call.arg(1));
    Answer::nothing()
}

/// Arguments: the home, and its limit in KiB. The machine does not support disk quotas.
fn limit_disk(state: &mut State, call: &Call<'_>) -> Answer {
    state.disk_limits.push(call.arg(2).to_owned());
    Answer::status(3)
}

/// Arguments: the home, the name of the archive, days, and more.
fn archive(state: &mut State, call: &Call<'_>) -> Answer {
    let (home, does) = (call.arg(1), |phrase: &str| call.text.contains(phrase));
    let (folder, state_dir) = (format!("{home}.archive"), format!("{home}/.openclaw"));
    let place = format!("{folder}/{}", call.arg(2));
    state.files.folder(&folder, "root");
    if does(": >\"$entry/used\"") {
        if state.files.get(&format!("{place}/complete")).is_none() {
            return Answer::status(1);
        }
        state.files.rename(&state_dir, &format!("{state_dir}.failed"));
        state.files.copy(&format!("{place}/state"), &state_dir);
        state.files.write(&format!("{place}/used"), "", "root");
    } else if does("pack \"$entry/state.tar\" whole") {
        state.files.remove(&place);
        state.files.folder(&place, "root");
        state.files.copy(&state_dir, &format!("{place}/state"));
        state.files.write(&format!("{place}/version"), format!("{}\n", call.arg(4)), "root");
        state.files.write(&format!("{place}/next"), format!("{}\n", call.arg(5)), "root");
        state.files.write(&format!("{place}/unit"), call.stdin, "root");
        state.files.write(&format!("{place}/complete"), "", "root");
    } else {
        for kind in ["upgrade-", "cell-"].into_iter().filter(|kind| does(&format!("\"$archive\"/{kind}*/complete"))) {
            for file in state.files.beginning(&format!("{folder}/{kind}")) {
                if file.ends_with("/complete") {
                    state.files.remove(&file);
                }
            }
        }
        if state.files.get(&place).is_none() && state.files.get(home).is_some() {
            state.files.rename(home, &place);
            state.conversations.remove(&state_dir);
        }
    }
    Answer::nothing()
}

fn kept(state: &mut State, call: &Call<'_>) -> Answer {
    let place = format!("{}.archive/{}", call.arg(1), call.arg(2));
    let has = |name: &str| state.files.get(&format!("{place}/{name}")).is_some();
    if !has("complete") {
        return Answer::status(3);
    }
    let text = |name: &str| state.files.text(&format!("{place}/{name}")).unwrap_or_default();
    let used = if has("used") { "used" } else { "fresh" };
    let next = if has("next") { text("next") } else { "\n" };
    Answer::said(format!("{used}\n{next}{}{}", text("version"), text("unit")))
}

fn discard(state: &mut State, call: &Call<'_>) -> Answer {
    state.files.remove(&format!("{}.archive/{}", call.arg(1), call.arg(2)));
    Answer::nothing()
}

// ── programs ──

fn validate(state: &mut State, call: &Call<'_>) -> Answer {
    match state.files.file(call.arg(1)) {
        Some(_) => Answer::said(format!("{}\n", validation(call.stdin))),
        None => Answer::status(3),
    }
}

fn installed(state: &mut State, call: &Call<'_>) -> Answer {
    let path = call.arg(1);
    let version = path.rsplit('/').nth(1).unwrap_or_default();
    match state.files.file(path) {
        Some(_) => Answer::said(format!("pinned\nOpenClaw {version} (simulated)\n")),
        None => Answer::status(3),
    }
}

/// Arguments: the folder, the registry, the versions of Node, npm and OpenClaw, and more. Nothing is downloaded.
fn install(state: &mut State, call: &Call<'_>) -> Answer {
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

// ── units and ports ──

fn systemctl(state: &mut State, call: &Call<'_>) -> Answer {
    let verb = call.text.lines().find_map(|line| line.strip_prefix("systemctl ")?.split(' ').next());
    let unit = call.arg(1);
    let done = match verb {
        None => true,
        Some("start") => state.start(unit),
        Some("stop") => state.stop(unit),
        Some("restart") => state.stop(unit) && state.start(unit),
        Some("reset-failed") => {
            state.reset_failed(unit);
            true
        }
        Some(verb @ ("enable" | "disable")) => {
            let loaded = state.service(unit).is_some();
            if loaded {
                state.units.entry(unit.to_owned()).or_default().enabled = verb == "enable";
            }
            loaded
        }
        Some(_) => false,
    };
    let mut text = String::new();
    for name in call.args {
        writeln!(text, "{}", show(state, name)).ok();
    }
    text.push('\n');
    for name in call.args.iter().filter(|name| state.units.get(**name).is_some_and(|unit| unit.given_up)) {
        writeln!(text, "StartLimit={name}").ok();
    }
    let stderr = if done { vec![] } else { format!("Failed: {unit} could not be handled\n").into_bytes() };
    Answer { status: if done { 0 } else { 5 }, stdout: text.into_bytes(), stderr }
}

fn look(state: &mut State, call: &Call<'_>) -> Answer {
    let port = call.arg(1).parse().unwrap_or(0);
    let mut text = String::new();
    for (name, process) in state.units.iter().filter_map(|(name, unit)| Some((name, unit.process()?))) {
        if process.service.port != port {
            continue;
        }
        let (pid, service) = (process.pid, &process.service);
        let coded = |text: &str| STANDARD.encode(text);
        let environment = format!("HOME={}\nOPENCLAW_STATE_DIR={}\n", service.home, service.state_dir);
        writeln!(
            text,
            "L LISTEN 0 511 127.0.0.1:{port} 0.0.0.0:* users:((\"openclaw-gatewa\",pid={pid},fd=22))\nP {pid} {} {} ={} ={} ={}",
            process.started_us / 10_000,
            service.user,
            coded("openclaw-gateway\0"),
            coded(&format!("0::/system.slice/{name}\n")),
            coded(&environment),
        )
        .ok();
    }
    Answer::said(text)
}

/// The owners of homes, and the users that listen on ports. Arguments: the ports, in hexadecimal, and the homes.
fn listeners(state: &mut State, call: &Call<'_>) -> Answer {
    const FOLDER: &str = "41c0";
    let mut text = format!("login {}\n", uid_of(call.user));
    for home in call.args.iter().skip(1).filter(|home| state.files.is_folder(home)) {
        writeln!(text, "home {} {FOLDER} {home}", uid_of(state.files.owner(home))).ok();
    }
    for port in call.arg(1).split_whitespace() {
        let number = u16::from_str_radix(port, 16).unwrap_or(0);
        let processes = state.units.values().filter_map(super::state::Unit::process);
        let own = processes.filter(|process| [number, number.wrapping_sub(WEBHOOK)].contains(&process.service.port));
        let users = own.map(|process| process.service.user.as_str());
        let others = state.strangers.iter().filter(|(taken, _)| *taken == number).map(|(_, user)| user.as_str());
        for user in users.chain(others) {
            writeln!(text, "listens {port} {}", uid_of(user)).ok();
        }
    }
    Answer::said(text)
}

/// The user of a unit, and the names of users. Arguments: a home, a unit, and user numbers.
fn unit_user(state: &mut State, call: &Call<'_>) -> Answer {
    let mut text = String::new();
    if let Some(service) = state.service(call.arg(2)) {
        writeln!(text, "unit {}", uid_of(&service.user)).ok();
    }
    let strangers = state.strangers.iter().map(|(_, user)| user);
    for user in state.users.keys().chain(strangers) {
        writeln!(text, "name {} {user}", uid_of(user)).ok();
    }
    Answer::said(text)
}

/// The number of a user; it is the same on all machines.
fn uid_of(user: &str) -> u32 {
    match user {
        "root" => 0,
        name => 1000 + name.bytes().fold(7u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into())) % 50_000,
    }
}

/// Ends processes that listen on a port. The arguments after the first are `pid:start`.
fn end(state: &mut State, call: &Call<'_>) -> Answer {
    for pid in call.args.iter().skip(1).filter_map(|pair| pair.split(':').next()?.parse::<u32>().ok()) {
        let its = |unit: &super::state::Unit| unit.process().is_some_and(|process| process.pid == pid);
        if let Some(name) = state.units.iter().find(|(_, unit)| its(unit)).map(|(name, _)| name.clone()) {
            state.stop(&name);
        }
    }
    Answer::nothing()
}
