//! Runs the script in a real shell against real files, processes and sockets; systemd and Docker are simulated. And puts
//! together what other servers say.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::*;
use crate::shell;

/// The shell functions with which the platform runs commands as a home's owner.
const AS_OWNER: &str = include_str!("../../../remote/src/host/home/shell.sh");

/// Ends the process with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn program(folder: &Path, name: &str, text: &str) {
    std::fs::create_dir_all(folder).unwrap();
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
}

/// A process that is called so, with these arguments, and listens on a port of its own.
fn gateway(folder: &TempDir, home: &str, name: &str, args: &[&str]) -> (Running, u16) {
    let said = folder.path().join(format!("{name}.port"));
    let text = "#!/usr/bin/python3\nimport socket, sys, time\ns = socket.socket()\ns.bind(('127.0.0.1', 0))\ns.listen()\n\
        open(sys.argv[1] + '.new', 'w').write(str(s.getsockname()[1]))\nimport os\nos.rename(sys.argv[1] + '.new', sys.argv[1])\ntime.sleep(60)\n";
    program(&folder.path().join("run"), name, text);
    let child = Command::new(folder.path().join("run").join(name))
        .arg(&said)
        .args(args)
        .env_clear()
        .env("HOME", home)
        .env("OPENAI_API_KEY", "sk-not-to-be-printed")
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let running = Running(child);
    let limit = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(port) = std::fs::read_to_string(&said).ok().and_then(|text| text.parse().ok()) {
            return (running, port);
        }
        assert!(Instant::now() < limit, "it does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn run(folder: &TempDir, base: &str) -> (Raw, String) {
    let bin = folder.path().join("bin");
    let script = script(base, ".owner", AS_OWNER).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let mut child = Command::new("sh")
        .args(["-s", "discover"])
        .env("PATH", path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), script.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    (parse(&output.stdout), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn what_runs_and_what_is_only_configured_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    for home in ["ada", "bob", "eve", "it's broken"] {
        std::fs::create_dir_all(path(&format!("{home}/.openclaw"))).unwrap();
    }
    std::fs::create_dir_all(path("ada/.openclaw/agents/main/sessions")).unwrap();
    std::fs::write(path("ada/.openclaw/agents/main/sessions/1.jsonl"), "{}").unwrap();
    let (running, port) = gateway(&folder, &path("ada"), "openclaw-gateway", &[]);
    // The kernel cuts the name of Node's main thread so, and its file names the package.
    let file = "/usr/lib/node_modules/openclaw/dist/index.js";
    let (of_node, node_port) = gateway(&folder, &path("eve"), "node-MainThread", &[file, "gateway"]);
    let (_other, _) = gateway(&folder, &path("bob"), "nodejs", &[file, "node"]);
    let (_wrapper, _) = gateway(&folder, &path("bob"), "timeout", &[file, "gateway"]);
    let config = format!("{{gateway: {{port: {port}}}, meta: {{lastTouchedVersion: '2026.9.6'}}}}\ndone\nprocess 1\n");
    std::fs::write(path("ada/.openclaw/openclaw.json"), config.split("\ndone").next().unwrap()).unwrap();
    std::fs::write(path("bob/.owner"), "# whose it is\n  bob@example.com \n").unwrap();
    std::fs::write(path("ada/.owner"), "https://ada:ghp_secret@example.com\n").unwrap();
    std::fs::write(path("it's broken/.openclaw/openclaw.json"), "{gateway: \ndone\nprocess 1\n").unwrap();
    let bin = folder.path().join("bin");
    let passwd = format!("ada:x:1000:1000::{}:/bin/sh\nnobody:x:65534:65534::/nonexistent:/bin/sh\n", path("ada"));
    program(&bin, "getent", &format!("#!/bin/sh\nprintf '%s' {}\n", shell::quote(&passwd).unwrap()));
    program(&bin, "systemctl", "#!/bin/sh\nexit 0\n");
    program(&bin, "docker", "#!/bin/sh\nexit 1\n");
    let base = folder.path().display().to_string();

    let (raw, text) = run(&folder, &base);
    assert!(raw.complete, "{text}");
    assert!(!text.contains("sk-not-to-be-printed"), "a secret of its environment left the server");
    let all = gather(&raw);
    let ours: Vec<&Gateway> =
        all.iter().filter(|one| one.home.as_ref().is_some_and(|h| h.starts_with(&base))).collect();
    let of = |home: &str| ours.iter().find(|one| one.home.as_deref() == Some(&*path(home))).copied().unwrap();
    assert_eq!(ours.len(), 4, "{ours:#?}");
    let eve = of("eve");
    assert_eq!((&eve.runner, eve.port()), (&Runner::Process { pid: of_node.0.id() }, Some(node_port)));
    let ada = of("ada");
    assert_eq!(ada.runner, Runner::Process { pid: running.0.id() });
    assert_eq!((ada.port(), ada.is_running, ada.is_open_to_others()), (Some(port), true, false));
    assert_eq!(ada.version, Some("2026.9.6".parse().unwrap()));
    assert!(ada.last_session.is_some());
    let bob = of("bob");
    assert_eq!((bob.email.as_deref(), ada.email.as_deref()), (Some("bob@example.com"), None));
    assert!(!text.contains("ghp_secret"), "{text}");
    assert!(matches!((&bob.runner, &bob.config), (Runner::Home, Config::Missing)), "{bob:?}");
    assert!(matches!(of("it's broken").config, Config::Broken));
}

const UNIT: &str = "unit\nshow|Id=claw.service\nshow|LoadState=loaded\nshow|ActiveState=active\nshow|MainPID=40\nshow|User=ada\n\
    show|ExecStart={ path=/usr/bin/node ; argv[]=/usr/bin/node /opt/openclaw/2026.8.2/openclaw.mjs gateway --port 19000 ; }\n";
const HOME: &str =
    "home\npath|/home/ada\nuser|ada\nconfig|{gateway: {port: 19000, auth: {token: 't'}}}\nsession 1700000000\n";

fn gathered(text: &str) -> Vec<Gateway> {
    gather(&parse(text.as_bytes()))
}

#[test]
fn a_unit_its_process_and_its_home_are_one_gateway() {
    let process =
        "process 40\nuser|ada\ncgroup|/system.slice/claw.service\nvariable|HOME=/home/ada\nlistens 0100007F:4A38\n";
    let all = gathered(&format!("{process}{UNIT}{HOME}done\n"));
    assert_eq!(all.len(), 1, "{all:#?}");
    assert_eq!(all[0].runner, Runner::Unit { name: "claw.service".into() });
    assert_eq!((all[0].user.as_str(), all[0].home.as_deref()), ("ada", Some("/home/ada")));
    assert_eq!((all[0].port(), all[0].version.clone()), (Some(19000), Some("2026.8.2".parse().unwrap())));
    // The same, stopped: its home is that of its user.
    let all = gathered(&format!("{}{HOME}", UNIT.replace("ActiveState=active", "ActiveState=inactive")));
    assert_eq!((all.len(), all[0].is_running, all[0].home.as_deref()), (1, false, Some("/home/ada")));
    assert_eq!(all[0].port(), Some(19000), "the configured one");
}

#[test]
fn a_unit_of_a_user_and_one_of_the_system_with_the_same_name_are_two() {
    let user = "user-unit\nuser-show|Id=claw.service\nuser-show|ActiveState=active\nuser-show|MainPID=0\n\
        user-show|ExecStart={ argv[]=/opt/claw/openclaw gateway run ; }\nlingers\n";
    let cgroup = "/user.slice/user-1000.slice/user@1000.service/app.slice/claw.service";
    let process = format!("process 41\nuser|ada\ncgroup|{cgroup}\nvariable|HOME=/home/ada\nlistens 00000000:4A38\n");
    let all = gathered(&format!("{process}{}{HOME}{user}", UNIT.replace("MainPID=40", "MainPID=0")));
    let runners: Vec<&Runner> = all.iter().map(|one| &one.runner).collect();
    let name = || "claw.service".to_owned();
    assert_eq!(runners, [&Runner::Unit { name: name() }, &Runner::UserUnit { name: name(), lingers: true }]);
    assert!(all[1].is_running && all[1].is_open_to_others() && all[0].listens.is_empty(), "{all:#?}");
}

#[test]
fn a_container_is_found_by_what_it_runs() {
    let id = "0a".repeat(32);
    let container = format!(
        r#"container|{{"id":"{id}","name":"/claw","image":"ghcr.io/openclaw/openclaw:2026.9.6","status":"running","user":"node","path":"node","args":[],"mounts":[{{"Source":"/srv/claw","Destination":"/data/.openclaw"}}],"ports":{{"18789/tcp":[{{"HostIp":"127.0.0.1","HostPort":"28789"}}],"18790/tcp":null}}}}"#
    );
    let process = format!("process 42\nuser|node\ncgroup|/system.slice/docker-{id}.scope\ninner 00000000:4965\n");
    let inside = format!(
        "inside {id}\npath|/home/node\nconfig|{{gateway: {{auth: {{token: 't'}}}}}}\nuser-unit\nemail|ada@example.com\n"
    );
    let all = gathered(&format!("{process}{container}\n{inside}inside unknown\npath|/etc\n"));
    assert_eq!(all.len(), 1, "the process is the container's: {all:#?}");
    assert_eq!((all[0].home.as_deref(), all[0].email.as_deref()), (Some("/home/node"), Some("ada@example.com")));
    assert!(all[0].config.document().is_some());
    assert_eq!((all[0].port(), all[0].version.clone()), (Some(28789), Some("2026.9.6".parse().unwrap())));
    assert!(matches!(&all[0].runner, Runner::Container { name, .. } if name == "claw"));
}

/// Somebody started it by hand in a session of sshd's: it must not be stopped with that.
#[test]
fn a_process_in_somebody_elses_service_is_in_no_unit() {
    let process =
        "process 40\nuser|ada\ncgroup|/system.slice/ssh.service\nvariable|HOME=/home/ada\nlistens 0100007F:4A38\n";
    let ssh = "unit\nshow|Id=ssh.service\nshow|LoadState=loaded\nshow|ActiveState=active\nshow|MainPID=7\nshow|User=\n\
        show|ExecStart={ path=/usr/sbin/sshd ; argv[]=/usr/sbin/sshd -D ; }\n";
    let all = gathered(&format!("{process}{ssh}{HOME}"));
    assert_eq!(all.iter().map(|one| &one.runner).collect::<Vec<_>>(), [&Runner::Process { pid: 40 }]);
    let own = ssh
        .replace("ssh.service", "claw.service")
        .replace("User=", "User=ada")
        .replace("/usr/sbin/sshd -D", "/srv/start.sh");
    let all = gathered(&format!("{}{own}{HOME}", process.replace("ssh.service", "claw.service")));
    assert_eq!(all.iter().map(|one| &one.runner).collect::<Vec<_>>(), [&Runner::Unit { name: "claw.service".into() }]);
}

/// Its environment is its user's word: it must not lead to the files of somebody else.
#[test]
fn the_home_of_somebody_else_is_nobodys_gateway() {
    let root = "home\npath|/root\nuser|root\nconfig|{gateway: {auth: {token: 'roots'}}}\n";
    let process = "process 40\nuser|mallory\ncgroup|/init.scope\nvariable|HOME=/root\nlistens 0100007F:4A38\n";
    let all = gathered(&format!("{process}{root}"));
    assert!(all[0].home.is_none() && all[0].config.document().is_none(), "{all:#?}");
    // Nor is a process of somebody else the main one of a user's unit, and a socket in another network is at no port.
    let unit = "user-unit\nuser-show|Id=claw.service\nuser-show|ActiveState=active\nuser-show|MainPID=41\n\
        user-show|ExecStart={ argv[]=/opt/claw/openclaw gateway run ; }\n";
    let victim = "process 41\nuser|bob\ncgroup|/init.scope\nvariable|HOME=/home/bob\nlistens 0100007F:4A38\n";
    let all = gathered(&format!("{victim}{HOME}{unit}"));
    assert!(all.iter().all(|one| one.user == "bob" || one.listens.is_empty()), "{all:#?}");
    assert!(gathered(&victim.replace("listens", "inner")).is_empty());
}

#[test]
fn what_may_do_as_root_counts_as_root() {
    let of = |more: &str| {
        let text = format!(r#"container|{{"id":"a","name":"/a","image":"openclaw","status":"running"{more}}}"#);
        gathered(&text)[0].user.clone()
    };
    assert_eq!(of(r#","user":"1000:1000""#), "1000");
    for root in [
        "",
        r#","user":"0:0""#,
        r#","user":"root:root""#,
        r#","user":"node","privileged":true"#,
        r#","user":"node","mounts":[{"Source":"/var/run/docker.sock","Destination":"/x"}]"#,
    ] {
        assert_eq!(of(root), "root", "{root}");
    }
}

#[test]
fn a_state_that_is_elsewhere_is_said() {
    let process = |variable: &str| {
        format!(
            "process 43\nuser|ada\ncgroup|/init.scope\nvariable|HOME=/home/ada\nvariable|{variable}\nlistens 0100007F:4A38\n"
        )
    };
    for (variable, home) in [
        ("OPENCLAW_STATE_DIR=/var/lib/claw", None),
        ("OPENCLAW_PROFILE=dev", None),
        ("OPENCLAW_CONFIG_PATH=/etc/claw.json", None),
        ("OPENCLAW_STATE_DIR=/srv/one/.openclaw", Some("/srv/one")),
        ("OPENCLAW_CONFIG_PATH=/srv/one/.openclaw/openclaw.json", Some("/srv/one")),
        ("OPENCLAW_HOME=/srv/two", Some("/srv/two")),
        ("OPENCLAW_PROFILE=default", Some("/home/ada")),
    ] {
        let all = gathered(&process(variable));
        assert_eq!(all[0].home.as_deref(), home, "{variable}");
        assert_eq!(all[0].elsewhere.is_some(), home.is_none(), "{variable}");
    }
}

#[test]
fn sockets_are_read_as_the_kernel_prints_them() {
    let listens = |text: &str| {
        let raw = parse(format!("process 1\nlistens {text}\n").as_bytes());
        raw.processes[0].listens.first().map(ToString::to_string)
    };
    assert_eq!(listens("0100007F:4965").as_deref(), Some("127.0.0.1:18789"));
    assert_eq!(listens("00000000000000000000000001000000:4965").as_deref(), Some("[::1]:18789"));
    assert_eq!(listens("0000000000000000FFFF00000100007F:4965").as_deref(), Some("[::ffff:127.0.0.1]:18789"));
    for bad in ["", "0100007F", "0100007F:x", "0100007:4965", "x:y", "é000000:4965"] {
        assert_eq!(listens(bad), None, "{bad}");
    }
}

proptest::proptest! {
    #[test]
    fn fuzz_any_answer_of_a_server_is_read(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..2000)) {
        gather(&parse(&bytes));
    }

    #[test]
    fn fuzz_lines_in_any_order_are_read(lines in proptest::collection::vec(0usize..12, 0..40)) {
        let known = ["process 1", "unit", "home", "user-unit", "user|x", "show|Id=x.service", "config|{", "path|/x", "listens 0:0",
            "config missing", "done", "container|{}"];
        let text: Vec<&str> = lines.into_iter().map(|at| known[at]).collect();
        gather(&parse(text.join("\n").as_bytes()));
    }
}
