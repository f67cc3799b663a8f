//! Servers that go away in the middle of things: crashed, rebooted, cut off. On h2, one case at a time.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use remote::host::file::{Expect, Hash, Write};
use remote::host::{Actor, Command, Error, Host};

use crate::kit::{Fleet, Relay, folder, said, sh, until};
use crate::on_hosts;

fn echo() -> Command {
    Command::new("echo").arg("here")
}

async fn answers(host: &Host) -> bool {
    host.run(&echo()).await.is_ok_and(|output| output.text() == "here\n")
}

/// Whether sshd answers on the host, by a connection that has nothing to do with ours.
async fn listens(fleet: &Fleet) -> bool {
    let machine = fleet.machine("h2");
    let banner = async {
        use tokio::io::AsyncReadExt as _;
        let mut stream = tokio::net::TcpStream::connect((machine.address.as_str(), machine.port)).await?;
        stream.read_u8().await
    };
    matches!(tokio::time::timeout(Duration::from_millis(300), banner).await, Ok(Ok(b'S')))
}

on_hosts! {
    async fn a_pulled_cable_ends_a_command_in_its_time_and_delays_nobody_else(fleet: Fleet) {
        let _alone = fleet.alone();
        let (host, other) = (fleet.host("h2"), fleet.host("h3"));
        assert!(answers(&host).await && answers(&other).await);
        let slow = Command::new("sleep").arg("30").limit(Duration::from_secs(3));
        let asked = async {
            let began = Instant::now();
            (host.run(&slow).await, began.elapsed())
        };
        let cut = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            fleet.testbed("cable", &["h2", "down"]);
            let mut slowest = Duration::ZERO;
            for _ in 0..40 {
                let began = Instant::now();
                assert!(answers(&other).await);
                slowest = slowest.max(began.elapsed());
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            slowest
        };
        let ((outcome, took), slowest) = tokio::join!(asked, cut);
        assert!(matches!(outcome, Err(Error::CommandTimedOut { .. })), "{outcome:?}");
        assert!(took < Duration::from_secs(9), "{took:?}");
        assert!(slowest < Duration::from_secs(1), "others waited for the dead one: {slowest:?}");
    }

    async fn callers_of_a_dead_host_do_not_queue_up_for_its_time_out(fleet: Fleet) {
        let _alone = fleet.alone();
        let host = fleet.host("h2");
        assert!(answers(&host).await);
        fleet.testbed("cable", &["h2", "down"]);
        let began = Instant::now();
        let command = echo();
        let outcomes = join_all((0..30).map(|_| host.run(&command))).await;
        assert!(outcomes.iter().all(|outcome| outcome.as_ref().is_err_and(Error::is_unreachable)), "{outcomes:?}");
        assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
        let began = Instant::now();
        for _ in 0..5 {
            assert!(!answers(&host).await);
        }
        assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
        fleet.testbed("cable", &["h2", "up"]);
        let took = until("the host answers again", Duration::from_secs(8), async || answers(&host).await).await;
        eprintln!("measured: usable {took:?} after the cable was put back");
    }

    async fn a_silent_connection_is_found_dead_without_being_asked(fleet: Fleet) {
        let relay = Relay::before(fleet.machine("h3")).await;
        let host = Host::new(relay.target(fleet.address("h3", "root")));
        assert!(answers(&host).await);
        relay.freeze();
        tokio::time::sleep(Duration::from_secs(17)).await;
        relay.mend();
        let began = Instant::now();
        assert!(answers(&host).await);
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
        assert_eq!(relay.connections(), 2);
    }

    async fn a_crashed_host_is_used_again_as_soon_as_it_is_back(fleet: Fleet) {
        let _alone = fleet.alone();
        for login in ["root", "ops"] {
            let host = fleet.host_as("h2", login);
            assert!(answers(&host).await);
            fleet.testbed("crash", &["h2"]);
            assert!(!answers(&host).await);
            let restarting = { let fleet = fleet.clone(); tokio::task::spawn_blocking(move || fleet.testbed("start", &["h2"])) };
            until("sshd answers", Duration::from_secs(20), async || listens(&fleet).await).await;
            let took = until("the host is usable", Duration::from_secs(3), async || answers(&host).await).await;
            restarting.await.unwrap();
            eprintln!("measured: usable by {login} {took:?} after sshd answered (crash)");
        }
    }

    async fn a_reboot_in_the_middle_of_a_command_is_a_cut_and_then_over(fleet: Fleet) {
        let _alone = fleet.alone();
        let host = fleet.host("h2");
        assert!(answers(&host).await);
        let slow = Command::new("sleep").arg("30");
        let reboot = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            let fleet = fleet.clone();
            tokio::task::spawn_blocking(move || fleet.testbed("reboot", &["h2"])).await.unwrap();
        };
        let (outcome, ()) = tokio::join!(host.run(&slow), reboot);
        // systemd ends the session before the connection, so the command may still be seen to end.
        assert!(outcome.as_ref().map_or_else(|e| matches!(e, Error::CutOff { .. }), |output| !output.succeeded()), "{outcome:?}");
        let took = until("the host is usable", Duration::from_secs(3), async || answers(&host).await).await;
        eprintln!("measured: usable {took:?} after the reboot was over");
    }

    async fn a_write_that_is_cut_leaves_the_old_file_or_the_new(fleet: Fleet) {
        let machine = fleet.machine("h3");
        let direct = fleet.host("h3");
        let dir = folder(&direct).await;
        let path = format!("{dir}/a");
        let old = vec![b'o'; 300_000];
        let new = vec![b'n'; 300_000];
        for cut in [1, 100, 5_000, 50_000, 150_000, 290_000, 299_000, 301_000, 303_000, 400_000] {
            direct.write(&Write::new(&path, old.clone(), Expect::Any)).await.unwrap();
            let relay = Relay::before(machine).await;
            let host = Host::new(relay.target(fleet.address("h3", "root")));
            assert!(answers(&host).await);
            relay.cut_after(cut);
            let outcome = host.write(&Write::new(&path, new.clone(), Expect::Unchanged(Hash::of(&old)))).await;
            // What the host does about the end of its input takes it a moment.
            let mut found = vec![];
            for _ in 0..20 {
                found = direct.read(&path, 1 << 20, Actor::Root).await.unwrap().unwrap();
                assert!(found == old || found == new, "cut after {cut}: {} bytes", found.len());
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            if outcome.is_ok() {
                assert!(found == new, "cut after {cut}: said to be written");
            } else if cut < 300_000 {
                assert!(found == old, "cut after {cut}: not all of it arrived");
            }
        }
        direct.write(&Write::new(&path, "last", Expect::Any)).await.unwrap();
        let left = said(&direct, sh(r#"ls -A "$1" | grep tidepool-new | wc -l"#).arg(&dir)).await;
        assert_eq!(left, "0");
    }

    async fn a_crash_in_the_middle_of_a_write_leaves_the_old_file_or_the_new(fleet: Fleet) {
        let _alone = fleet.alone();
        let host = fleet.host("h2");
        let path = format!("{}/a", folder(&host).await);
        let version = |number: u8| vec![number; 6_000_000];
        host.write(&Write::new(&path, version(0), Expect::Any)).await.unwrap();
        let mut before = 0;
        for number in 1..=4u8 {
            let write = Write::new(&path, version(number), Expect::Any);
            let crash = async {
                tokio::time::sleep(Duration::from_millis(60 * u64::from(number))).await;
                fleet.testbed("crash", &["h2"]);
            };
            let (outcome, ()) = tokio::join!(host.write(&write), crash);
            fleet.testbed("start", &["h2"]);
            until("the host is usable", Duration::from_secs(5), async || answers(&host).await).await;
            let found = host.read(&path, 8 << 20, Actor::Root).await.unwrap().unwrap();
            assert!(found == version(before) || found == version(number), "neither old nor new: {} bytes", found.len());
            assert!(outcome.is_err() || found == version(number));
            before = found[0];
        }
    }
}
