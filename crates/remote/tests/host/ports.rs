//! Ports and who holds them. What calls itself a gateway here is python by another name.

use remote::host::ports::{self, Freed, Instance, Verdict};
use remote::host::systemd::{self, Unit};
use remote::host::{Command, Host};
use testkit::until;

use crate::kit::{Fleet, said, sh, unique};
use crate::on_hosts;

async fn free_port(host: &Host) -> u16 {
    let script = "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); print(s.getsockname()[1])";
    said(host, Command::new("python3").args(["-c", script])).await.parse().unwrap()
}

async fn unit_on(host: &Host, port: u16, title: &str) -> Unit {
    let start = format!("ExecStart=bash -c 'exec -a {title} python3 -m http.server {port} --bind 127.0.0.1'");
    let unit = super::systemd::unit(host, &start).await;
    systemd::start(host, &unit).await.unwrap();
    listening(host, port).await;
    unit
}

async fn listening(host: &Host, port: u16) {
    let listens = async || !ports::look(host, port).await.unwrap().owners.is_empty();
    until("it listens", listens).await;
}

on_hosts! {
    async fn a_strangers_process_is_named_and_left_alone(fleet: Fleet) {
        let host = fleet.host_as("h1", "ops");
        let port = free_port(&host).await;
        let stranger = unit_on(&host, port, "nginx").await;
        let own = Unit::parse("openclaw-mine").unwrap();
        let freed = ports::free(&host, port, &Instance { unit: &own, state_dir: "/srv/assistants/1/.openclaw", user: None }).await.unwrap();
        let Freed::Held { by, verdict } = freed else { panic!("{freed:?}") };
        assert_eq!((verdict, by.user.as_str(), by.unit.as_deref()), (Verdict::Stranger, "root", Some(stranger.as_str())));
        assert_eq!(Some(by.pid), systemd::state(&host, &stranger).await.unwrap().main_pid);
        assert!(by.describe().contains("nginx -m http.server"), "{}", by.describe());
        assert!(systemd::state(&host, &stranger).await.unwrap().is_running());
        super::systemd::remove(&host, &stranger).await;
    }

    async fn another_instances_gateway_is_left_alone_too(fleet: Fleet) {
        let host = fleet.host("h1");
        let port = free_port(&host).await;
        let other = unit_on(&host, port, "openclaw-gateway").await;
        let own = Unit::parse("openclaw-mine").unwrap();
        let freed = ports::free(&host, port, &Instance { unit: &own, state_dir: "/srv/assistants/1/.openclaw", user: None }).await.unwrap();
        assert!(matches!(freed, Freed::Held { verdict: Verdict::OtherGateway, .. }), "{freed:?}");
        assert!(systemd::state(&host, &other).await.unwrap().is_running());

        // Seen from its own instance, it may go.
        let freed = ports::free(&host, port, &Instance { unit: &other, state_dir: "/nowhere", user: None }).await.unwrap();
        assert!(matches!(&freed, Freed::Ended(owners) if owners.len() == 1), "{freed:?}");
        let again = ports::free(&host, port, &Instance { unit: &other, state_dir: "/nowhere", user: None }).await.unwrap();
        assert_eq!(again, Freed::WasFree);
        super::systemd::remove(&host, &other).await;
    }

    async fn a_gateway_that_was_left_over_is_ended_even_if_it_will_not(fleet: Fleet) {
        let host = fleet.host_as("h1", "ops");
        let port = free_port(&host).await;
        let state_dir = format!("/srv/{}", unique("state"));
        let stubborn = "import signal, runpy, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); sys.argv[1:] = sys.argv[1:]; runpy.run_module(\"http.server\", run_name=\"__main__\")";
        let script = r#"cd /; OPENCLAW_STATE_DIR=$1 setsid bash -c 'exec -a openclaw-gateway python3 -c "$0" "$1"' "$2" "$3" >/dev/null 2>&1 </dev/null &"#;
        host.succeed(&sh(script).args([&state_dir, stubborn, &port.to_string()])).await.unwrap();
        listening(&host, port).await;
        let own = Unit::parse("openclaw-mine").unwrap();
        let other = ports::free(&host, port, &Instance { unit: &own, state_dir: "/srv/another", user: None }).await.unwrap();
        assert!(matches!(other, Freed::Held { verdict: Verdict::OtherGateway, .. }), "{other:?}");
        let freed = ports::free(&host, port, &Instance { unit: &own, state_dir: &state_dir, user: None }).await.unwrap();
        assert!(matches!(freed, Freed::Ended(_)), "{freed:?}");
        assert!(ports::look(&host, port).await.unwrap().owners.is_empty());
    }

    async fn hostile_command_lines_are_only_texts(fleet: Fleet) {
        let host = fleet.host("h1");
        let port = free_port(&host).await;
        let title = "x\nP 1 1 root =b3BlbmNsYXctZ2F0ZXdheQ== = =\n$(touch /tmp/pwned)";
        let script = r#"cd /; setsid bash -c 'exec -a "$0" python3 -m http.server "$1" --bind 127.0.0.1' "$1" "$2" >/dev/null 2>&1 </dev/null &"#;
        host.succeed(&sh(script).args([title, &port.to_string()])).await.unwrap();
        listening(&host, port).await;
        let found = ports::look(&host, port).await.unwrap();
        let [owner] = found.owners.as_slice() else { panic!("{found:?}") };
        assert_eq!((owner.command[0].as_str(), found.addresses.as_slice()), (title, ["127.0.0.1".to_owned()].as_slice()));
        assert!(!owner.describe().contains('\n'));
        host.succeed(&Command::new("kill").arg(owner.pid.to_string())).await.unwrap();
    }
}
