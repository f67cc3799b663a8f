//! Whether a server can be used, step by step; and how busy it is.

use remote::host::cell::Part;
use remote::host::probe::{Probe, Step, Wants, probe};
use remote::host::{Address, LoginKey, Target, metrics};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;

use crate::kit::{Fleet, host_key, new_key};
use crate::on_hosts;

pub fn wants(gateway_url: Option<String>) -> Wants {
    Wants {
        node: "node".into(),
        openclaw: "/opt/openclaw/bin/openclaw".into(),
        cell: ["PrivateTmp", "NoSuchDirective"]
            .map(|name| Part { key: name.into(), lines: vec![format!("{name}=yes")] })
            .to_vec(),
        cell_verdict: |ability| Ok(format!("{:?}", ability.refused)),
        gateway_url,
    }
}

fn passed(probe: &Probe) -> Vec<&'static str> {
    assert_eq!(probe.reports.iter().map(|report| report.step).collect::<Vec<_>>(), Step::ALL);
    probe.reports.iter().filter(|report| report.ok).map(|report| report.step.as_str()).collect()
}

fn detail(probe: &Probe, step: Step) -> &str {
    &probe.reports.iter().find(|report| report.step == step).unwrap().detail
}

on_hosts! {
    async fn every_step_of_a_good_server_is_told(fleet: Fleet) {
        // Something that answers, where the hosts can reach it.
        let gateway = TcpListener::bind((fleet.bridge.as_str(), 0)).await.unwrap();
        let url = format!("http://{}/v1/models", gateway.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = gateway.accept().await {
                stream.write_all(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n").await.ok();
            }
        });
        for login in ["root", "ops"] {
            let target = Target::Ssh(fleet.address("h1", login));
            let probe = probe(&target, &wants(Some(url.clone()))).await;
            // Neither Node nor OpenClaw is installed there.
            assert_eq!(passed(&probe), ["address", "host_key", "login", "sudo", "systemd", "cell", "docker", "free_memory", "gateway"], "{probe:?}");
            assert!(detail(&probe, Step::Cell).starts_with("[(\"NoSuchDirective\", \"Unknown assignment"), "{probe:?}");
            assert_eq!(detail(&probe, Step::Sudo), "root");
            assert!(detail(&probe, Step::Node).contains("not installed") && detail(&probe, Step::Openclaw).contains("not installed"));
            assert_eq!(detail(&probe, Step::Gateway), "answers 401");
            assert_eq!(probe.host_key, Some(host_key(&fleet.machine("h1").host_key)));
            eprintln!("measured: {:?}", probe.reports.iter().map(|report| (report.step.as_str(), report.ms)).collect::<Vec<_>>());
        }
    }

    async fn the_first_step_that_fails_ends_it(fleet: Fleet) {
        let good = fleet.address("h1", "root");
        let ends = async |address: Address, last: &[&str]| {
            let probe = probe(&Target::Ssh(address), &wants(None)).await;
            assert_eq!(passed(&probe), last, "{probe:?}");
            assert!(last.len() > 3 || probe.reports[last.len() + 1..].iter().all(|report| report.detail == "not tried"), "{probe:?}");
            probe
        };
        ends(Address { port: 1, ..good.clone() }, &[]).await;
        let other = host_key(&fleet.machine("h3").host_key);
        let changed = ends(Address { host_key: Some(other), ..good.clone() }, &["address"]).await;
        assert!(detail(&changed, Step::HostKey).contains("changed"));
        assert_eq!(changed.host_key, Some(host_key(&fleet.machine("h1").host_key)));
        let (_folder, stranger, _) = new_key("ed25519", "");
        let unknown = Address { key: LoginKey::File(stranger), host_key: None, ..good.clone() };
        let refused = ends(unknown, &["address", "host_key"]).await;
        assert!(detail(&refused, Step::HostKey).contains("first time"));
        ends(Address { user: "guest".into(), ..good }, &["address", "host_key", "login"]).await;
    }

    async fn a_gateway_that_cannot_be_reached_from_there_is_found(fleet: Fleet) {
        let target = Target::Ssh(fleet.address("h3", "root"));
        let found = probe(&target, &wants(Some("http://127.0.0.1:1/$(id)".into()))).await;
        assert!(!passed(&found).contains(&"gateway") && detail(&found, Step::Gateway).contains("curl: (7)"), "{found:?}");
        assert!(!passed(&found).contains(&"docker"));
    }

    async fn metrics_are_numbers_that_can_be(fleet: Fleet) {
        let metrics = metrics::collect(&fleet.host_as("h1", "guest")).await.unwrap();
        for percent in [metrics.cpu_percent, metrics.memory_percent, metrics.disk_percent] {
            assert!((0.0..=100.0).contains(&percent), "{metrics:?}");
        }
        assert!(metrics.memory_total > metrics.memory_available && metrics.load_1m >= 0.0, "{metrics:?}");
    }
}
