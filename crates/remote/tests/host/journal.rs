//! What units write, and what systemd writes about them.

use std::time::Duration;

use remote::host::journal::{self, Cursor};
use remote::host::systemd::{self, Unit};
use remote::host::{Command, Error, Host};
use testkit::{LIMIT, until};

use crate::kit::{Fleet, followers, processes, unique};
use crate::on_hosts;

/// Runs a script as a unit of its own, to its end.
async fn ran(host: &Host, script: &str) -> Unit {
    let unit = Unit::parse(&unique("journal")).unwrap();
    let command = Command::new("systemd-run").args(["-q", "--wait", "--unit", unit.as_str(), "sh", "-c", script]);
    host.run(&command).await.unwrap();
    host.succeed(&Command::new("journalctl").arg("--sync")).await.unwrap();
    unit
}

async fn messages(host: &Host, unit: &Unit, entries: usize) -> Vec<String> {
    journal::last(host, unit, entries).await.unwrap().into_iter().map(|entry| entry.message).collect()
}

on_hosts! {
    async fn the_last_entries_come_in_order_whatever_they_hold(fleet: Fleet) {
        let host = fleet.host_as("h1", "ops");
        let script = r#"echo first; printf 'bytes \377\n'; printf 'esc \033[31m\n'; echo '$(id) "q" \ {"a":1}'; exit 3"#;
        let unit = ran(&host, script).await;
        let found = messages(&host, &unit, 50).await;
        for expected in ["first", "bytes \u{fffd}", "esc \u{1b}[31m", r#"$(id) "q" \ {"a":1}"#] {
            assert!(found.iter().any(|message| message == expected), "{expected:?} in {found:?}");
        }
        let entries = journal::last(&host, &unit, 50).await.unwrap();
        let exit = entries.iter().find(|entry| entry.message_id.as_deref() == Some("98e322203f7a4ed290d09fe03c09fe15")).unwrap();
        assert_eq!((exit.exit_code.as_deref(), exit.exit_status.as_deref(), exit.pid), (Some("exited"), Some("3"), Some(1)));
        let one = journal::last(&host, &unit, 1).await.unwrap();
        assert_eq!(one.as_slice(), &entries[entries.len() - 1..]);
        assert!(journal::last(&host, &Unit::parse("no-such-unit").unwrap(), 5).await.unwrap().is_empty());
    }

    async fn from_a_place_on_nothing_is_lost_and_nothing_comes_twice(fleet: Fleet) {
        let host = fleet.host("h1");
        let unit = ran(&host, "for i in $(seq 100); do echo line $i; done").await;
        let all = journal::last(&host, &unit, 1000).await.unwrap();
        let mut seen = vec![all[0].clone()];
        loop {
            let page = journal::after(&host, &unit, &seen[seen.len() - 1].cursor, 30).await.unwrap();
            if page.is_empty() {
                break;
            }
            assert!(page.len() <= 30);
            seen.extend(page);
        }
        assert_eq!(seen, all);
        let error = journal::after(&host, &unit, &Cursor::kept("$(id)"), 30).await.unwrap_err();
        assert!(matches!(error, Error::Failed { .. }), "{error}");
    }

    async fn new_entries_are_followed_and_nothing_is_left_running(fleet: Fleet) {
        for login in ["root", "ops"] {
            let host = fleet.host_as("h1", login);
            let unit = super::systemd::unit(&host, "ExecStart=sh -c 'echo up; sleep 1; echo again; sleep 1000'").await;
            let mut follow = journal::follow(&host, &unit, None, Duration::from_secs(60)).await.unwrap();
            until("journalctl waits for entries", async || followers(&host, unit.as_str()).await > 0).await;
            systemd::start(&host, &unit).await.unwrap();
            let mut seen = vec![];
            while !seen.iter().any(|message| message == "again") {
                let entry = tokio::time::timeout(LIMIT, follow.next()).await.expect("no entry").unwrap();
                seen.push(entry.message);
            }
            assert!(seen.iter().any(|message| message == "up"), "{seen:?}");
            drop(follow);
            until("journalctl is gone", async || processes(&host, unit.as_str()).await == 0).await;
            super::systemd::remove(&host, &unit).await;
        }
    }

    async fn following_ends_with_its_time(fleet: Fleet) {
        let host = fleet.host("h1");
        let unit = Unit::parse("ssh").unwrap();
        let mut follow = journal::follow(&host, &unit, None, Duration::from_secs(1)).await.unwrap();
        let error = loop {
            match tokio::time::timeout(LIMIT, follow.next()).await.expect("it goes on") {
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::CommandTimedOut { .. }), "{error}");
    }

    async fn a_flood_stays_in_bounds_and_what_was_missed_is_counted(fleet: Fleet) {
        let host = fleet.host("h1");
        let unit = Unit::parse(&unique("flood")).unwrap();
        let mut follow = journal::follow(&host, &unit, None, Duration::from_secs(60)).await.unwrap();
        until("journalctl waits for entries", async || followers(&host, unit.as_str()).await > 0).await;
        let flood = ["-q", "--wait", "-p", "LogRateLimitIntervalSec=0", "--unit", unit.as_str(), "sh", "-c", "seq 5000; echo the-end"];
        host.run(&Command::new("systemd-run").args(flood)).await.unwrap();
        // Nobody read while it came; commands went on all the same.
        assert!(host.run(&Command::new("true")).await.unwrap().succeeded());
        // What waits for a reader is no more than 256 entries: the others of the 5001 are lost, and counted.
        testkit::until_ok("all entries have come", async || {
            let missed = follow.missed();
            if missed >= 5001 - 256 { Ok(()) } else { Err(missed) }
        }).await;
        let mut got = 0;
        while got + follow.missed() < 5001 {
            tokio::time::timeout(LIMIT, follow.next()).await.expect("no entry").unwrap();
            got += 1;
        }
        assert!(got >= 200, "{got} entries, {} missed", follow.missed());
    }
}
