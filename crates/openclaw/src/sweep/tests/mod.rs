//! Runs the script in a real shell against real files and sockets; only systemd is simulated.

mod answer;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use base::GatewayPort;
use tempfile::TempDir;

use super::*;
use crate::unit::{Active, Exit};
use crate::{Document, shell};

/// The shell functions with which the platform runs commands as a home's owner.
const AS_OWNER: &str = include_str!("../../../../remote/src/host/home/shell.sh");

/// A folder that simulates a server.
struct Host {
    folder: TempDir,
    path: String,
}

const SHOWN: &str = "LoadState=loaded\nActiveState=active\nSubState=running\nResult=success\nMainPID=0\nNRestarts=2\n\
                     ExecMainCode=0\nExecMainStatus=0\nUnitFileState=enabled\n";

impl Host {
    fn new() -> Host {
        let folder = tempfile::tempdir().unwrap();
        let bin = folder.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
        let host = Host { folder, path };
        host.program("systemctl", &format!("printf '%s' {}", shell::quote(SHOWN).unwrap()));
        host.program("journalctl", &format!("cat {}", quoted(&sample("rules/2.journal.jsonl"))));
        host
    }

    /// A program that is found before the machine's own one.
    fn program(&self, name: &str, body: &str) {
        let path = self.folder.path().join("bin").join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    }

    fn file(&self, name: &str, content: &[u8]) -> String {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    }

    fn append(&self, name: &str, content: &[u8]) {
        let path = self.folder.path().join(name);
        let mut file = std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
        file.write_all(content).unwrap();
    }

    fn target(&self, name: &str, port: u16) -> Target {
        let at = |file: &str| self.folder.path().join(name).join(file).display().to_string();
        Target {
            runner: Runner::Unit(
                Name::parse(&format!("openclaw-{}", name.replace(|c: char| !c.is_ascii_alphanumeric(), "_"))).unwrap(),
            ),
            port: GatewayPort::try_from(i64::from(port)).unwrap(),
            home: self.folder.path().join(name).display().to_string(),
            config_path: at("openclaw.json"),
            state_dir: at(""),
            log_file: at("gateway.jsonl"),
            mark: Mark::default(),
            measure: false,
        }
    }

    fn output(&self, targets: &[Target], limits: &Limits) -> Vec<u8> {
        let text = script(targets, &["/"], limits, AS_OWNER).unwrap();
        let mut child = Command::new("sh")
            .env("PATH", &self.path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        assert!(output.status.success());
        output.stdout
    }

    fn sweep(&self, targets: &[Target]) -> Sweep {
        parse(&self.output(targets, &Limits::default()), targets)
    }
}

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("samples").join(name)
}

fn quoted(path: &Path) -> String {
    shell::quote(&path.display().to_string()).unwrap().into_owned()
}

/// A server on loopback that answers every request alike, for as long as the test runs.
fn serve(answer: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 1024];
            let _ = stream.read(&mut request);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    port
}

const READY: &str = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n\
                     {\"ready\":false,\"ok\":true,\"failing\":[\"telegram\"],\"suppressed\":[\"telegram\"]}";

fn log_line(message: &str) -> String {
    let message = serde_json::Value::from(message);
    format!(
        r#"{{"0":{message},"_meta":{{"logLevelName":"INFO","name":"openclaw"}},"time":"2026-11-15T01:42:01.910+00:00","message":{message}}}"#
    ) + "\n"
}

fn messages(answer: &Answer) -> Vec<&str> {
    answer.log.as_ref().unwrap().lines.iter().map(|line| line.message.as_str()).collect()
}

fn first(sweep: &Sweep) -> &Answer {
    sweep.instances[0].as_ref().unwrap()
}

#[test]
fn a_server_is_asked_about_everything_at_once() {
    let host = Host::new();
    let port = serve(READY);
    let document = Document::parse("{gateway: {mode: 'local'}}\n").unwrap();
    host.file("one/openclaw.json", document.text().as_bytes());
    host.file("one/gateway.jsonl", (log_line("first") + &log_line("second")).as_bytes());
    host.file("one/agents/main/agent/auth-profiles.json", b"{}");
    let targets = [host.target("one", port), host.target("nothing there", 1024)];
    let sweep = host.sweep(&targets);
    assert!(sweep.complete);

    let one = first(&sweep);
    assert!(one.complete);
    assert_eq!((one.unit.active, one.unit.restarts, one.unit.loaded), (Active::Active, 2, true));
    assert_eq!(one.listeners, [Listener { address: "127.0.0.1".parse().unwrap(), port }]);
    assert_eq!(one.owners.iter().map(|owner| owner.pid).collect::<Vec<_>>(), [std::process::id()]);
    assert_eq!(one.strangers(&targets[0].runner).count(), 1);
    assert_eq!(one.readyz.as_ref().unwrap().status, 503);
    assert_eq!(
        one.ready(),
        Some(Ready { ready: false, failing: vec!["telegram".into()], suppressed: vec!["telegram".into()] })
    );
    assert!(!one.is_live());
    assert_eq!(one.config, Some(ConfigFile::Content { sha256: document.hash(), bytes: document.text().len() as u64 }));
    assert!(one.legacy_auth);
    assert_eq!(messages(one), ["first", "second"]);
    let exits: Vec<Exit> = one.journal.iter().filter_map(Line::exit).collect();
    assert_eq!(exits, [Exit::Status(1); 3]);

    let two = sweep.instances[1].as_ref().unwrap();
    assert!(two.complete && !two.legacy_auth);
    assert_eq!((&two.config, two.log.is_none(), &two.healthz), (&Some(ConfigFile::Missing), true, &None));
    assert!(two.listeners.is_empty() && two.owners.is_empty());

    let server = &sweep.server;
    assert!(server.uptime_s.unwrap() > 0.0 && server.cores.unwrap() > 0 && server.load_1m.is_some());
    for percent in [server.cpu_percent, server.memory_percent, server.disk_percent] {
        assert!((0.0..=100.0).contains(&percent.unwrap()));
    }
    let now = jiff::Timestamp::now().as_second();
    assert!((now - server.time.unwrap()).abs() < 60);
}

#[test]
fn a_log_is_read_from_where_the_last_look_ended() {
    let host = Host::new();
    let mut target = host.target("one", 1024);
    let look = |target: &mut Target| {
        let sweep = host.sweep(std::slice::from_ref(target));
        let answer = first(&sweep).clone();
        let log = answer.log.clone().unwrap();
        target.mark = log.mark;
        (messages(&answer).iter().map(|m| m.to_string()).collect::<Vec<_>>(), log.gap)
    };
    host.file("one/gateway.jsonl", log_line("a").as_bytes());
    assert_eq!(look(&mut target), (vec!["a".into()], false));
    assert_eq!(look(&mut target), (vec![], false));
    // An unfinished line is read once it is complete.
    let b = log_line("b");
    host.append("one/gateway.jsonl", &b.as_bytes()[..30]);
    assert_eq!(look(&mut target), (vec![], false));
    host.append("one/gateway.jsonl", &b.as_bytes()[30..]);
    host.append("one/gateway.jsonl", b"\xff\x00 no json\n\n");
    assert_eq!(look(&mut target), (vec!["b".into()], false));
    assert_eq!(look(&mut target), (vec![], false));
    // Another file under the same name: the end of the old one is read too.
    let path = host.folder.path().join("one/gateway.jsonl");
    host.append("one/gateway.jsonl", log_line("last of the old").as_bytes());
    std::fs::rename(&path, path.with_extension("1")).unwrap();
    host.append("one/gateway.jsonl", log_line("c").as_bytes());
    assert_eq!(look(&mut target), (vec!["last of the old".into(), "c".into()], false));
    assert_eq!(look(&mut target), (vec![], false));
    // The old file is gone.
    let gone = host.folder.path().join("one/gone");
    std::fs::rename(&path, &gone).unwrap();
    host.append("one/gateway.jsonl", log_line("e").as_bytes());
    std::fs::remove_file(&gone).unwrap();
    assert_eq!(look(&mut target), (vec!["e".into()], true));
    // The same file was truncated.
    std::fs::write(&path, log_line("d")).unwrap();
    target.mark.offset = 1_000_000;
    assert_eq!(look(&mut target), (vec!["d".into()], true));
    // There is more than is read at once: the last lines count, and the first of them is complete.
    for i in 0..1000 {
        host.append("one/gateway.jsonl", log_line(&format!("line {i}")).as_bytes());
    }
    let (lines, gap) = look(&mut target);
    assert!(gap && lines.len() > 100 && lines.last().unwrap() == "line 999");
    assert!(lines.iter().all(|line| line.starts_with("line ")));
    assert_eq!(look(&mut target), (vec![], false));
    // A line without an end is not read for ever.
    host.append("one/gateway.jsonl", &vec![b'x'; 200_000]);
    assert_eq!(look(&mut target).0.len(), 0);
    host.append("one/gateway.jsonl", format!("\n{}", log_line("after")).as_bytes());
    assert_eq!(look(&mut target).0, ["after"]);
}

#[test]
fn nothing_in_a_log_or_an_answer_passes_for_a_line_of_ours() {
    let host = Host::new();
    let evil = "over 0\nend\nbegin 1\nlegacy-auth\nowner 1\nunit|ActiveState=failed\nlog|x\ndone\nconfig missing\n";
    host.file("one/gateway.jsonl", format!("{evil}{}", log_line("true")).as_bytes());
    host.program(
        "journalctl",
        &format!("printf '%s' {}", shell::quote(&evil.replace('\n', "\n\"_PID\":\"1\"\n")).unwrap()),
    );
    let port = serve("HTTP/1.0 200 OK\n\nover 0\nend\nlegacy-auth\nbegin 1\ndone\nowner 1\nunit|ActiveState=failed\n");
    let targets = [host.target("one", port), host.target("two", 1024)];
    let sweep = host.sweep(&targets);
    let one = first(&sweep);
    assert!(sweep.complete && one.complete && !one.legacy_auth);
    assert_eq!(one.unit.active, Active::Active);
    assert_eq!(messages(one), ["true"]);
    assert_eq!(one.owners.iter().map(|owner| owner.pid).collect::<Vec<_>>(), [std::process::id()]);
    assert_eq!(one.config, Some(ConfigFile::Missing));
    assert!(one.healthz.as_ref().unwrap().body.starts_with("over 0\nend"));
    assert!(sweep.instances[1].as_ref().unwrap().owners.is_empty());
}

#[test]
fn a_process_does_not_own_a_port_by_its_name() {
    let host = Host::new();
    // A process may call itself `",pid=1,fd=3),(`, which is what `ss` prints then.
    host.program("ss", r#"PATH=${PATH#*:} ss "$@" | sed 's/users:((/users:(("",pid=1,fd=3),(/'"#);
    let port = serve(READY);
    let sweep = host.sweep(&[host.target("one", port)]);
    assert_eq!(first(&sweep).owners.iter().map(|owner| owner.pid).collect::<Vec<_>>(), [std::process::id()]);
}

#[test]
fn hostile_names_reach_no_shell() {
    let host = Host::new();
    let proof = host.folder.path().join("proof");
    let name = "$(touch proof) `touch proof`'; touch proof; '\" @SECTION@ @FOLDERS@ -rf *";
    let mut target = host.target("plain", 1024);
    target.config_path = host.file(&format!("x{name}/openclaw.json"), b"{}");
    target.home = target.config_path.strip_suffix("/openclaw.json").unwrap().to_owned();
    target.log_file = format!("{}.log", target.config_path);
    std::fs::write(&target.log_file, log_line("here")).unwrap();
    let folder = format!("/nowhere/{name}");
    let text = script(std::slice::from_ref(&target), &[&folder], &Limits::default(), AS_OWNER).unwrap();
    assert!(!text.contains("@TIMEOUT@"));
    let output = Command::new("sh")
        .arg("-c")
        .arg(&text)
        .env("PATH", &host.path)
        .current_dir(host.folder.path())
        .output()
        .unwrap();
    let sweep = parse(&output.stdout, std::slice::from_ref(&target));
    assert!(sweep.complete && !proof.exists());
    assert_eq!(messages(first(&sweep)), ["here"]);
    assert!(matches!(first(&sweep).config, Some(ConfigFile::Content { bytes: 2, .. })));
    for bad in ["relative", "", "~/x", "/a\nb", "/a\0b"] {
        target.log_file = bad.into();
        assert!(script(std::slice::from_ref(&target), &[], &Limits::default(), AS_OWNER).is_err(), "{bad:?}");
    }
}

#[test]
fn one_that_hangs_holds_back_nobody() {
    let host = Host::new();
    host.program("systemctl", "case \"$*\" in *slow*) sleep 90;; esac; echo ActiveState=active");
    let mut targets: Vec<Target> = (0..9).map(|i| host.target(&format!("fast{i}"), 1024)).collect();
    targets.insert(3, host.target("slow", 1024));
    let began = Instant::now();
    // Enough time for the others on a busy machine.
    let limits = Limits { instance: Duration::from_secs(10), ..Limits::default() };
    let sweep = parse(&host.output(&targets, &limits), &targets);
    assert!(began.elapsed() < Duration::from_secs(60));
    assert!(sweep.complete);
    for (i, answer) in sweep.instances.iter().enumerate() {
        let answer = answer.as_ref().unwrap();
        assert_eq!(answer.complete, i != 3, "{i}");
        assert_eq!(answer.unit.active, if i == 3 { Active::Unknown } else { Active::Active }, "{i}");
    }
}

#[test]
fn a_host_without_curl_is_asked_by_perl() {
    let host = Host::new();
    let bin = host.folder.path().join("bin");
    for folder in std::env::var("PATH").unwrap_or_default().split(':') {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let (from, to) = (entry.path(), bin.join(entry.file_name()));
            if entry.file_name() != "curl" && !to.exists() {
                std::os::unix::fs::symlink(from, to).unwrap();
            }
        }
    }
    let host = Host { path: bin.display().to_string(), ..host };
    let port = serve(READY);
    let sweep = host.sweep(&[host.target("one", port)]);
    assert_eq!(first(&sweep).readyz.as_ref().unwrap().status, 503);
    assert_eq!(first(&sweep).ready().unwrap().failing, ["telegram"]);
}

#[test]
fn without_a_folder_for_answers_they_come_one_after_the_other() {
    let host = Host::new();
    host.program("mktemp", "exit 1");
    host.file("one/gateway.jsonl", log_line("a").as_bytes());
    let sweep = host.sweep(&[host.target("one", 1024), host.target("two", 1024)]);
    assert!(sweep.complete);
    assert_eq!(messages(first(&sweep)), ["a"]);
    assert!(sweep.instances[1].as_ref().unwrap().complete);
}

#[test]
fn the_script_has_no_fault_that_a_linter_sees() {
    let host = Host::new();
    let path = host.file("script.sh", b"");
    let targets = [host.target("one", 1024), host.target("a b'c", 1025)];
    std::fs::write(&path, script(&targets, &["/srv/a b"], &Limits::default(), AS_OWNER).unwrap()).unwrap();
    let checked = Command::new("sh").arg("-n").arg(&path).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    // If a linter is installed, check the section as a file of its own, because the script contains it as a quoted
    // text.
    for (file, text) in [("whole", std::fs::read_to_string(&path).unwrap()), ("section", SECTION_FILE.to_owned())] {
        let path = host.file(&format!("{file}.sh"), text.as_bytes());
        if let Ok(checked) = Command::new("shellcheck").args(["--shell=sh", "--exclude=SC2016", &path]).output() {
            assert!(checked.status.success(), "{file}: {}", String::from_utf8_lossy(&checked.stdout));
        }
    }
}

const SECTION_FILE: &str = include_str!("../section.sh");

#[test]
fn what_cannot_be_looked_at_is_not_called_missing() {
    let host = Host::new();
    let mut target = host.target("one", 1024);
    target.config_path = format!("{}/openclaw.json", host.file("one/plain", b"no folder"));
    assert_eq!(first(&host.sweep(&[target])).config, Some(ConfigFile::Unreadable));
}

#[test]
fn a_reader_that_goes_away_leaves_nothing_behind() {
    let host = Host::new();
    let folder = host.folder.path().join("tmp");
    std::fs::create_dir(&folder).unwrap();
    let text = script(&[host.target("one", 1024)], &[], &Limits::default(), AS_OWNER).unwrap();
    let mut child = Command::new("sh")
        .env("PATH", &host.path)
        .env("TMPDIR", &folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let mut some = [0; 8];
    child.stdout.take().unwrap().read_exact(&mut some).unwrap();
    child.wait().unwrap();
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
}
