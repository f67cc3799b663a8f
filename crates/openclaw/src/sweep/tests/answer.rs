//! Parses answers: recorded ones, truncated ones and random ones.

use std::time::Duration;

use base::GatewayPort;
use proptest::prelude::*;

use super::{Host, first, log_line, sample};
use crate::config::Bind;
use crate::log::Origin;
use crate::rule::{Evidence, Expected, RULES};
use crate::sweep::*;
use crate::unit::{Active, Exit};

#[test]
fn recorded_sockets_are_read() {
    let output = b"begin 0\n\
        port|LISTEN 0      511        127.0.0.1:18789      0.0.0.0:*    users:((\"openclaw-gatewa\",pid=389,fd=87))\n\
        port|LISTEN 0      511            [::1]:18789         [::]:*    users:((\"openclaw-gatewa\",pid=389,fd=88))\n\
        port|LISTEN 0      511                *:18789            *:*\n\
        port|LISTEN 0      128        0.0.0.0%eth0:18789      0.0.0.0:*\n\
        port|garbage\nport|\nport|LISTEN 0 1 x:y z\n\
        owner 389\ncomm|openclaw-gatewa\ncgroup|/system.slice/system-oc.slice/oc@i1.service\nconfig-path|/srv/a/openclaw.json\n\
        owner nobody\nrss 700000\nunit|MainPID=389\nunit|ExecMainStartTimestampMonotonic=5000000\nover 0\nuptime|65.5 3\n";
    let host = Host::new();
    let sweep = parse(output, &[host.target("one", 18789)]);
    let one = first(&sweep);
    let addresses: Vec<String> = one.listeners.iter().map(|l| l.address.to_string()).collect();
    assert_eq!(addresses, ["127.0.0.1", "::1", "::", "0.0.0.0"]);
    let owner = &one.owners[0];
    assert_eq!((owner.name.as_str(), one.owners.len()), ("openclaw-gatewa", 1));
    assert_eq!(owner.service_name(), "oc@i1.service");
    assert_eq!(owner.config_path.as_deref(), Some("/srv/a/openclaw.json"));
    assert_eq!(one.rss, Some(716_800_000));
    assert_eq!(one.strangers(&Runner::Unit(Name::parse("oc@i1").unwrap())).count(), 0);
    assert_eq!(one.running_for(&sweep.server), Some(Duration::from_millis(60_500)));
    assert!(!one.complete && !sweep.complete);
}

/// Units of users have names that are not theirs alone: that of the system, or of another user, is not the instance's.
#[test]
fn a_unit_of_a_user_is_that_users() {
    let runner = Runner::UserUnit(Name::parse("openclaw-gateway").unwrap());
    let count = |cgroup: &str, home: &str| {
        let output = format!("begin 0\nowner 389\ncgroup|{cgroup}\n{home}\nend\nover 0\n");
        let host = Host::new();
        let sweep = parse(output.as_bytes(), &[Target { runner: runner.clone(), ..host.target("one", 18789) }]);
        first(&sweep).strangers(&runner).count()
    };
    let of_user =
        |uid: u32| format!("/user.slice/user-{uid}.slice/user@{uid}.service/app.slice/openclaw-gateway.service");
    assert_eq!(count(&of_user(1001), "home ada 1001"), 0);
    assert_eq!(count(&of_user(1002), "home ada 1001"), 1);
    assert_eq!(count("/system.slice/openclaw-gateway.service", "home ada 1001"), 1);
    assert_eq!(count(&of_user(1002), "a home that is not there"), 0, "nothing is said of what is not known");
}

#[test]
fn the_first_line_of_a_log_that_was_begun_in_the_middle_is_not_trusted() {
    let host = Host::new();
    let (a, b) = (log_line("rest of a line"), log_line("whole"));
    let output = |from: usize| format!("begin 0\nlog 7 {from} {}\nlog|{a}log|{b}\nend\nover 0\n", a.len() + b.len());
    let lines = |from: usize, mark: Mark| {
        let target = Target { mark, ..host.target("one", 1024) };
        let sweep = parse(output(from).as_bytes(), &[target]);
        first(&sweep).log.as_ref().unwrap().lines.len()
    };
    assert_eq!(lines(100, Mark::default()), 1);
    assert_eq!(lines(100, Mark { inode: 7, offset: 50 }), 1);
    assert_eq!(lines(100, Mark { inode: 7, offset: 100 }), 2);
    assert_eq!(lines(0, Mark::default()), 2);
}

/// The answer of a real server: one healthy instance, one on the first one's port, and one that has lost its port to
/// another process.
#[test]
fn a_recorded_answer_is_read_and_its_troubles_found() {
    let target = |name: &str, port: i64| Target {
        runner: Runner::Unit(Name::parse(&format!("openclaw-{name}")).unwrap()),
        port: GatewayPort::try_from(port).unwrap(),
        home: "/srv/x".into(),
        config_path: format!("/srv/{name}/.openclaw/openclaw.json"),
        state_dir: format!("/srv/{name}/.openclaw"),
        log_file: format!("/srv/{name}/gateway.jsonl"),
        mark: Mark::default(),
        measure: false,
    };
    let targets = [target("i1", 18789), target("i2", 18789), target("i4", 19029)];
    let sweep = parse(&std::fs::read(sample("sweep.txt")).unwrap(), &targets);
    assert!(sweep.complete);
    let answers: Vec<&Answer> = sweep.instances.iter().flatten().collect();
    let states: Vec<_> = answers.iter().map(|a| (a.unit.active, a.unit.exit, a.is_live(), a.complete)).collect();
    assert_eq!(
        states,
        [
            (Active::Active, None, true, true),
            (Active::Failed, Some(Exit::CONFIG), true, true),
            (Active::Active, None, false, true)
        ]
    );
    // The second instance's port answers like the first one's: only the owner shows the difference.
    let owner = &answers[1].owners[0];
    assert_eq!((owner.service_name().as_str(), owner.name.as_str()), ("openclaw-i1.service", "openclaw-gatewa"));
    assert_eq!(answers[0].strangers(&targets[0].runner).count(), 0);
    assert_eq!(answers[2].owners[0].name, "python3");
    let gateways: Vec<_> = sweep.server.gateways.iter().map(Process::service_name).collect();
    assert_eq!(gateways, ["openclaw-i1.service", "openclaw-i4.service"]);

    let found: Vec<Vec<u8>> = targets
        .iter()
        .zip(&answers)
        .map(|(target, answer)| {
            let lines = [&answer.log.as_ref().unwrap().lines[..], &answer.journal[..]].concat();
            let expected = Expected { runner: target.runner.clone(), bind: Some(Bind::Loopback), bot: false };
            let now = jiff::Timestamp::from_second(sweep.server.time.unwrap()).unwrap();
            let state = Some((&sweep.server, *answer));
            let evidence = Evidence { now, lines: &lines, document: None, state, expected: &expected };
            RULES.iter().filter(|(_, detect)| detect(&evidence).is_some()).map(|(rule, _)| rule.number()).collect()
        })
        .collect();
    assert_eq!(found, [vec![], vec![6], vec![7]]);
}

/// An answer of a server with two instances.
fn recorded() -> (Vec<u8>, Vec<Target>) {
    let host = Host::new();
    host.program("journalctl", "true");
    host.file("one/gateway.jsonl", (log_line("first") + &log_line("second")).as_bytes());
    let targets = vec![host.target("one", 1024), host.target("two", 1025)];
    let output = host.output(&targets, &Limits::default());
    (output, targets)
}

#[test]
fn an_answer_may_be_cut_off_anywhere() {
    let (output, targets) = recorded();
    let whole = parse(&output, &targets);
    assert!(whole.complete);
    assert!(output.len() < Limits::default().output_bytes(2));
    let end = first(&whole).log.as_ref().unwrap().mark;
    for length in 0..output.len() {
        let sweep = parse(&output[..length], &targets);
        assert!(!sweep.complete || length + 1 == output.len());
        // A mark is never beyond what was read.
        if let Some(log) = sweep.instances[0].as_ref().and_then(|answer| answer.log.as_ref()) {
            assert!(log.mark.offset <= end.offset && log.lines.len() <= 2);
            let read: u64 = log.lines.iter().map(|line| log_line(&line.message).len() as u64).sum();
            assert_eq!(read, log.mark.offset);
        }
    }
}

proptest! {
    #[test]
    fn fuzz_any_answer_is_read(
        pieces in proptest::collection::vec(
            prop_oneof![
                "(sweep|time|begin|over|end|owner|rss|config|log|cores|gateway|done|legacy-auth)( -?[0-9]{0,20}){0,4}".prop_map(String::into_bytes),
                "(unit|port|comm|cgroup|config-path|healthz|readyz|log|journal|cpu|uptime|load|memory|disk)\\|.{0,60}".prop_map(String::into_bytes),
                proptest::collection::vec(any::<u8>(), 0..40),
                Just(b"begin 0".to_vec()),
                Just(b"begin 1".to_vec()),
                Just(b"cpu|cpu 18446744073709551615 18446744073709551615 1 1".to_vec()),
                Just(b"log 1 18446744073709551615 18446744073709551615".to_vec()),
            ],
            0..40,
        ),
    ) {
        let target = |port: i64| Target {
            runner: Runner::Unit(Name::parse("x").unwrap()),
            port: GatewayPort::try_from(port).unwrap(),
            home: "/srv/x".into(),
            config_path: "/x".into(), state_dir: "/x".into(), log_file: "/x".into(),
            mark: Mark { inode: 1, offset: 5 },
            measure: false,
        };
        let targets = [target(1024), target(1025)];
        let sweep = parse(&pieces.join(&b'\n'), &targets);
        prop_assert_eq!(sweep.instances.len(), 2);
        for answer in sweep.instances.iter().flatten() {
            let _ = (answer.is_live(), answer.ready(), answer.running_for(&sweep.server));
            prop_assert!(answer.journal.iter().all(|line| line.origin != Origin::File));
        }
        for percent in [sweep.server.cpu_percent, sweep.server.memory_percent, sweep.server.disk_percent].into_iter().flatten() {
            prop_assert!((0.0..=100.0).contains(&percent));
        }
    }
}

#[test]
fn what_is_kept_of_an_answer_is_bounded() {
    let host = Host::new();
    let mut output = b"begin 0\nlog 1 0 99999999\n".to_vec();
    for i in 0..50_000 {
        output.extend(
            format!("owner {i}\nport|LISTEN 0 1 127.0.0.1:1 x\nhealthz|{0}\nlog|{0}\nunit|{0}\n", "x".repeat(80))
                .bytes(),
        );
    }
    output.extend(b"over 0\n");
    let sweep = parse(&output, &[host.target("one", 1024)]);
    let one = first(&sweep);
    assert!(one.owners.len() <= 500 && one.listeners.len() <= 64);
    assert!(one.log.as_ref().unwrap().mark.offset < 1024 * 1024);
}
