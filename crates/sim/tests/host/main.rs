//! Simulated hosts, talked to as the platform talks to servers: by `remote::host`, over SSH.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use base::Secret;
use openclaw::sweep::{Limits, Mark, Target as Asked, parse, script};
use openclaw::unit::{Active, Name};
use remote::host::file::{Expect, Hash, Write, Written};
use remote::host::{Actor, Address, Command, Error, Host, LoginKey, Target, home, journal, metrics, ports, systemd};
use sim::host::{Hosts, Instance, Machine, Power};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

fn instance(number: u16) -> Instance {
    Instance {
        unit: format!("openclaw-a{number}.service"),
        home: format!("/srv/assistants/{number}"),
        port: 20_000 + 10 * number,
        token: "a-token".into(),
    }
}

async fn machine(instances: u16) -> (Arc<Machine>, Hosts, Host) {
    let machine = Machine::new("m1");
    for number in 1..=instances {
        machine.add(&instance(number));
    }
    let hosts = Hosts::of(machine.clone()).await.unwrap();
    let host = reach(&hosts, "root");
    (machine, hosts, host)
}

fn reach(hosts: &Hosts, user: &str) -> Host {
    Host::new(Target::Ssh(Address {
        host: "127.0.0.1".into(),
        port: hosts.address.port(),
        user: user.into(),
        key: LoginKey::Text(Secret::new(sim::host::login_key().unwrap())),
        expected: None,
        host_key: None,
    }))
}

fn asked(number: u16) -> Asked {
    let instance = instance(number);
    let state_dir = format!("{}/.openclaw", instance.home);
    Asked {
        runner: openclaw::sweep::Runner::Unit(Name::parse(&format!("openclaw-a{number}")).unwrap()),
        port: i64::from(instance.port).try_into().unwrap(),
        home: instance.home.clone(),
        config_path: format!("{state_dir}/openclaw.json"),
        log_file: format!("{state_dir}/logs/openclaw.jsonl"),
        state_dir,
        mark: Mark::default(),
        measure: true,
    }
}

#[tokio::test]
async fn a_sweep_says_what_the_machine_is() {
    let (machine, _hosts, host) = machine(3).await;
    machine.crash("openclaw-a2.service");
    machine.run_out_of_memory("openclaw-a3.service");
    let targets: Vec<Asked> = (1..=4).map(asked).collect();
    let script = script(&targets, &["/srv"], &Limits::default(), home::SHELL).unwrap();
    let output = host.run(&Command::long_script("sweep", script)).await.unwrap();
    let sweep = parse(&output.stdout, &targets);
    assert!(sweep.complete);
    let of = |number: usize| sweep.instances[number - 1].as_ref().unwrap();

    let well = of(1);
    assert!(well.complete && well.is_live() && well.ready().unwrap().ready);
    assert_eq!((well.unit.active, well.listeners.len(), well.owners.len()), (Active::Active, 1, 1));
    assert_eq!(well.strangers(&targets[0].runner).count(), 0);
    let config = machine.read(&targets[0].config_path).unwrap();
    let refusal = openclaw::sweep::ConfigFile::Content {
        sha256: Hash::of(&config).as_str().to_owned(),
        bytes: config.len() as u64,
    };
    assert_eq!(well.config, Some(refusal));
    let log = well.log.as_ref().unwrap();
    assert!(log.lines.iter().any(|line| line.message.contains("listening on ws://127.0.0.1:20010")));
    assert_eq!(log.mark.offset, machine.read(&targets[0].log_file).unwrap().len() as u64);

    let crashed = of(2);
    assert_eq!((crashed.unit.active, crashed.is_live(), crashed.unit.restarts), (Active::Failed, false, 10));
    let out = of(3);
    assert!(out.is_live() && out.journal.iter().any(|line| line.message.contains("oom-kill")));
    assert!(!of(4).unit.loaded);
    assert_eq!(sweep.server.gateways.len(), 2);
    assert!(sweep.server.cpu_percent.is_some_and(|cpu| cpu > 0.0) && sweep.server.memory_percent.is_some());
    let metrics = metrics::collect(&host).await.unwrap();
    assert!(metrics.cpu_percent > 0.0 && metrics.memory_available > 1 << 30);
    assert_eq!(machine.unknown(), Vec::<String>::new());
}

#[tokio::test]
async fn a_forwarded_socket_reaches_the_assistant() {
    let (machine, _hosts, host) = machine(1).await;
    let answer = get(&host, 20_010, "/healthz").await;
    assert!(answer.starts_with("HTTP/1.0 200") && answer.ends_with(r#"{"ok":true,"status":"live"}"#), "{answer}");
    assert!(get(&host, 20_010, "/startupz").await.contains(sim::assistant::VERSION));
    // Where a bot's messages are taken.
    assert!(get(&host, 20_014, "/healthz").await.ends_with("ok"));
    assert!(matches!(host.tunnel(20_011).await, Err(Error::PortClosed { port: 20_011 })));
    machine.crash("openclaw-a1.service");
    assert!(matches!(host.tunnel(20_010).await, Err(Error::PortClosed { .. })));
}

async fn get(host: &Host, port: u16, path: &str) -> String {
    let mut socket = host.tunnel(port).await.unwrap();
    socket.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn what_is_written_is_read_back_and_nothing_is_lost() {
    let (machine, hosts, _) = machine(1).await;
    // One who is not root does it by sudo.
    let host = reach(&hosts, "ops");
    let path = "/srv/assistants/1/it's $(a) file";
    assert_eq!(host.read(path, 100, Actor::Root).await.unwrap(), None);
    let write = |text: &str, expect| Write::new(path, text, expect);
    assert_eq!(host.write(&write("one", Expect::Absent)).await.unwrap(), Written::New);
    assert_eq!(host.write(&write("one", Expect::Any)).await.unwrap(), Written::Same);
    let unchanged = Expect::Unchanged(Hash::of(b"one"));
    let Written::Replaced { kept } = host.write(&write("two", unchanged.clone())).await.unwrap() else {
        panic!("not replaced");
    };
    assert!(matches!(host.write(&write("three", unchanged)).await, Err(Error::ChangedMeanwhile { .. })));
    assert_eq!(host.read(path, 100, Actor::Root).await.unwrap().unwrap(), b"two");
    assert_eq!(machine.read(&kept).unwrap(), b"one");
    assert!(matches!(host.read(path, 2, Actor::Root).await, Err(Error::TooLarge { .. })));
    assert_eq!(host.tail(path, 2, Actor::Root).await.unwrap().unwrap().bytes, b"wo");
    assert!(matches!(host.write(&Write::new("/no/x", "", Expect::Any)).await, Err(Error::NoFolder { .. })));
}

#[tokio::test]
async fn units_are_stopped_and_started_and_their_journal_tells() {
    let (machine, _hosts, host) = machine(1).await;
    let unit = systemd::Unit::parse("openclaw-a1").unwrap();
    let whose = ports::Instance { unit: &unit, state_dir: "/srv/assistants/1/.openclaw", user: None };
    let mut follow = journal::follow(&host, &unit, None, Duration::from_secs(30)).await.unwrap();
    assert!(systemd::state(&host, &unit).await.unwrap().is_running());
    let listening = ports::look(&host, 20_010).await.unwrap();
    assert_eq!(listening.owners[0].judge(&whose), ports::Verdict::Own);
    assert_eq!(systemd::stop(&host, &unit).await.unwrap().active, systemd::Active::Inactive);
    assert!(follow.next().await.unwrap().message.contains("Deactivated"));
    assert!(ports::look(&host, 20_010).await.unwrap().is_free());
    assert!(systemd::start(&host, &unit).await.unwrap().is_running());
    let last = journal::last(&host, &unit, 2).await.unwrap();
    assert!(last.len() == 2 && last[1].message.ends_with("[gateway] ready"));

    machine.crash(unit.as_str());
    assert!(matches!(systemd::start(&host, &unit).await, Err(Error::StartLimit { .. })));
    systemd::reset_failed(&host, &unit).await.unwrap();
    assert!(systemd::start(&host, &unit).await.unwrap().is_running());
    // A configuration that OpenClaw refuses leaves it down.
    machine.write("/srv/assistants/1/.openclaw/openclaw.json", r#"{"nonsense": 1}"#);
    systemd::restart(&host, &unit).await.unwrap();
    assert!(systemd::state(&host, &unit).await.unwrap().refused_its_config());
    let other = systemd::Unit::parse("openclaw-none").unwrap();
    assert!(matches!(systemd::start(&host, &other).await, Err(Error::UnitMissing { .. })));
}

#[tokio::test]
async fn what_is_not_understood_is_said_and_remembered() {
    let (machine, _hosts, host) = machine(0).await;
    let output = host.run(&Command::new("cowsay").arg("moo")).await.unwrap();
    assert_eq!(
        (output.status, String::from_utf8_lossy(&output.stderr).into_owned()),
        (127, "sh: cowsay: not found\n".into())
    );
    // The text of a script is not looked at.
    let output = host.run(&Command::script("say-moo", &["exec printenv HOME"])).await.unwrap();
    assert_eq!((output.status, output.text().as_str()), (127, ""));
    let output = host.run(&Command::long_script("say-moo", "echo \"sweep 1\"")).await.unwrap();
    assert_eq!((output.status, output.text().as_str()), (127, ""));
    assert_eq!(machine.unknown(), ["cowsay moo", "script say-moo", "script say-moo"]);
}

#[tokio::test]
async fn a_machine_hangs_goes_down_and_comes_back() {
    let (machine, _hosts, host) = machine(1).await;
    let id = Command::new("id").arg("-un");
    assert_eq!(host.run(&id).await.unwrap().text(), "root\n");
    machine.set_power(Power::Hung);
    // That nothing comes can only be waited for.
    let hung = tokio::time::timeout(Duration::from_millis(300), host.run(&id)).await;
    assert!(hung.is_err());
    machine.set_power(Power::Down);
    assert!(host.run(&id).await.is_err());
    assert!(host.contact().await.is_err());
    machine.set_power(Power::Up);
    // After a failed contact the host is left alone for a moment.
    let answer = testkit::until_ok("the machine answers again", async || host.run(&id).await).await;
    assert_eq!(answer.text(), "root\n");
}
