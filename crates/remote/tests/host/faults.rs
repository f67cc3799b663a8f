//! Servers that go away in the middle of things: crashed, rebooted, cut off. On h2, one case at a time.

use std::time::Duration;

use futures_util::future::join_all;
use remote::host::file::{Expect, Hash, Write};
use remote::host::{Actor, Command, Error, Host, Timing};
use testkit::until;

use crate::kit::{Fleet, NEVER, Relay, exists, folder, lives, processes, said, sh, sshd_of, unique};
use crate::on_hosts;

fn echo() -> Command {
    Command::new("echo").arg("here")
}

async fn answers(host: &Host) -> bool {
    host.run(&echo()).await.is_ok_and(|output| output.text() == "here\n")
}

/// Waits until h2 lets this user in, by connections that have nothing to do with the one that is looked at.
async fn is_back(fleet: &Fleet, login: &str) {
    until("h2 lets users in", async || answers(&fleet.host_as("h2", login)).await).await;
}

/// Time limits by which nobody has to wait after a failure: whether a host is used again shows at the first question.
fn eager() -> Timing {
    Timing { hold: Duration::ZERO, patience: NEVER, ..Timing::default() }
}

/// A command that says when it runs, and stays; answers the file by which it says so.
fn staying() -> (Command, String) {
    let begun = format!("/run/{}", unique("begun"));
    (sh(r#"touch "$1"; exec sleep 1000"#).arg(&begun), begun)
}

on_hosts! {
    async fn a_pulled_cable_ends_a_command_in_its_time_and_delays_nobody_else(fleet: Fleet) {
        let _alone = fleet.alone();
        // Nothing but the command's own time can end it: the connection is not found dead.
        let timing = Timing { keep_alive: NEVER, stuck: NEVER, slack: Duration::from_millis(200), ..Timing::default() };
        let (host, other) = (fleet.host_with("h2", "root", timing), fleet.host("h3"));
        assert!(answers(&host).await && answers(&other).await);
        let (slow, begun) = staying();
        let slow = slow.limit(Duration::from_secs(5));
        let asked = { let host = host.clone(); tokio::spawn(async move { host.run(&slow).await }) };
        let beside = fleet.host("h2");
        until("the command runs", async || exists(&beside, &begun).await).await;
        fleet.testbed("cable", &["h2", "down"]);
        let mut rounds = 0;
        while !asked.is_finished() {
            assert!(answers(&other).await);
            rounds += 1;
        }
        let outcome = asked.await.unwrap();
        assert!(matches!(outcome, Err(Error::CommandTimedOut { .. })), "{outcome:?}");
        // Who waits for the dead one comes to one round at most.
        assert!(rounds >= 2, "others waited for the dead one: {rounds} rounds");
    }

    async fn callers_of_a_dead_host_do_not_queue_up_for_its_time_out(fleet: Fleet) {
        let _alone = fleet.alone();
        let relay = Relay::before(fleet.machine("h2")).await;
        // After a failure they are answered from memory: only what is tried costs time.
        let seconds = Duration::from_secs;
        let timing = Timing { open: seconds(3), greet: seconds(5), hold: NEVER, longest_hold: NEVER, ..Timing::default() };
        let host = Host::with(relay.target(fleet.address("h2", "root")), timing);
        let direct = fleet.host_with("h2", "root", Timing { open: seconds(3), reach: seconds(3), ..eager() });
        assert!(answers(&host).await && answers(&direct).await);
        let before = relay.connections();
        relay.freeze();
        fleet.testbed("cable", &["h2", "down"]);
        let command = echo();
        let all = async |host: &Host| join_all((0..30).map(|_| host.run(&command))).await;
        let (frozen, cut) = tokio::join!(all(&host), all(&direct));
        for outcomes in [frozen, cut] {
            assert!(outcomes.iter().all(|outcome| outcome.as_ref().is_err_and(Error::is_unreachable)), "{outcomes:?}");
        }
        for _ in 0..5 {
            assert!(!answers(&host).await);
        }
        assert_eq!(relay.connections(), before + 1, "thirty-five callers had one attempt");
        fleet.testbed("cable", &["h2", "up"]);
        is_back(&fleet, "root").await;
        assert!(answers(&direct).await);
    }

    async fn a_silent_connection_is_found_dead_without_being_asked(fleet: Fleet) {
        let relay = Relay::before(fleet.machine("h3")).await;
        let timing = Timing { keep_alive: Duration::from_secs(1), stuck: NEVER, ..Timing::default() };
        let host = Host::with(relay.target(fleet.address("h3", "root")), timing);
        assert!(answers(&host).await);
        relay.freeze();
        until("the silent connection is given up", async || relay.ended() == 1).await;
        relay.repair();
        assert!(answers(&host).await);
        assert_eq!(relay.connections(), 2);
    }

    async fn a_crashed_host_is_used_again_as_soon_as_it_is_back(fleet: Fleet) {
        let _alone = fleet.alone();
        for login in ["root", "ops"] {
            let host = fleet.host_with("h2", login, eager());
            assert!(answers(&host).await);
            fleet.testbed("crash", &["h2"]);
            assert!(!answers(&host).await);
            let restarting = { let fleet = fleet.clone(); tokio::task::spawn_blocking(move || fleet.testbed("start", &["h2"])) };
            is_back(&fleet, login).await;
            assert!(answers(&host).await, "{login}: at the first question");
            restarting.await.unwrap();
        }
    }

    async fn a_reboot_in_the_middle_of_a_command_is_a_cut_and_then_over(fleet: Fleet) {
        let _alone = fleet.alone();
        let host = fleet.host_with("h2", "root", eager());
        assert!(answers(&host).await);
        let (slow, begun) = staying();
        let slow = slow.limit(NEVER);
        let beside = fleet.host("h2");
        let reboot = async {
            until("the command runs", async || exists(&beside, &begun).await).await;
            let fleet = fleet.clone();
            tokio::task::spawn_blocking(move || fleet.testbed("reboot", &["h2"])).await.unwrap();
        };
        let (outcome, ()) = tokio::join!(host.run(&slow), reboot);
        // systemd ends the session before the connection, so the command may still be seen to end.
        assert!(outcome.as_ref().map_or_else(|e| matches!(e, Error::CutOff { .. }), |output| !output.succeeded()), "{outcome:?}");
        is_back(&fleet, "root").await;
        assert!(answers(&host).await, "at the first question");
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
            let sshd = sshd_of(&host).await;
            relay.cut_after(cut);
            let outcome = host.write(&Write::new(&path, new.clone(), Expect::Unchanged(Hash::of(&old)))).await;
            // The last cut is beyond all that is sent.
            host.close().await;
            // What the host does about the end of its input takes it a moment: whatever it began is over when neither sshd's end of
            // the connection nor the script is there any more.
            let mut found = vec![];
            until("the host is done with it", async || {
                let over = !lives(&direct, &sshd).await && processes(&direct, &path).await == 0;
                found = direct.read(&path, 1 << 20, Actor::Root).await.unwrap().unwrap();
                assert!(found == old || found == new, "cut after {cut}: {} bytes", found.len());
                over
            })
            .await;
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
                // Each time at another point of the write: whichever it is, the outcome must be the same.
                tokio::time::sleep(Duration::from_millis(60 * u64::from(number))).await;
                fleet.testbed("crash", &["h2"]);
            };
            let (outcome, ()) = tokio::join!(host.write(&write), crash);
            fleet.testbed("start", &["h2"]);
            until("the host is usable", async || answers(&host).await).await;
            let found = host.read(&path, 8 << 20, Actor::Root).await.unwrap().unwrap();
            assert!(found == version(before) || found == version(number), "neither old nor new: {} bytes", found.len());
            assert!(outcome.is_err() || found == version(number));
            before = found[0];
        }
    }
}
