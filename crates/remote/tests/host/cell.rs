//! Cells on a real systemd: what the server can do of one, and what runs inside.

use remote::host::cell::{self, Inside, Part};
use remote::host::{Actor, Command};

use crate::kit::{Fleet, said, sh};
use crate::on_hosts;
use crate::systemd::{remove, unit};

fn lines(of: &[&str]) -> Vec<String> {
    of.iter().map(|line| (*line).to_owned()).collect()
}

on_hosts! {
    async fn what_a_server_cannot_do_is_named_and_the_rest_works(fleet: Fleet) {
        for login in ["root", "ops"] {
            let host = fleet.host_as("h3", login);
            let part = |key: &str, of: &[&str]| Part { key: key.into(), lines: lines(of) };
            let wanted = [
                part("PrivateTmp", &["PrivateTmp=yes"]),
                part("NoSuchDirective", &["NoSuchDirective=yes"]),
                part("SystemCallFilter", &["SystemCallFilter=@system-service", "SystemCallFilter=~@mount"]),
                part("BindPaths=/no/such/folder", &["BindPaths=/no/such/folder"]),
                part("CapabilityBoundingSet", &["CapabilityBoundingSet="]),
            ];
            let able = cell::ability(&host, &wanted).await.unwrap();
            let names: Vec<&str> = able.refused.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(names, ["NoSuchDirective", "BindPaths=/no/such/folder"], "{able:?}");
            assert_eq!(able.broken, None);
            assert!(able.refused[0].1.contains("Unknown assignment"), "{able:?}");
        }
    }

    async fn a_program_runs_in_the_cell_of_a_unit_and_shares_its_folder_for_temporary_files(fleet: Fleet) {
        let host = fleet.host("h3");
        let cell = lines(&["PrivateTmp=yes", "NoNewPrivileges=yes", "PrivateUsers=yes"]);
        let text = format!("User=nobody\n{}\nExecStart=sh -c 'echo held >/tmp/lock; exec sleep 1000'", cell.join("\n"));
        let unit = unit(&host, &text).await;
        remote::host::systemd::start(&host, &unit).await.unwrap();
        let inside = Inside { user: "nobody".into(), unit: unit.clone(), lines: cell.clone() };
        let command = || sh("path=/a/b; echo ${path%/*} $$; id -un; sed -n 's/^NoNewPrivs:.//p' /proc/self/status; cat; cat /tmp/lock; exit 7")
            .stdin("by standard input\n")
            .by(Actor::Inside(inside.clone()));
        testkit::until("the lock is there", async || host.run(&command()).await.unwrap().text().contains("held")).await;
        let output = host.run(&command()).await.unwrap();
        let text = output.text();
        let (first, rest) = text.split_once('\n').unwrap();
        assert!(first.strip_prefix("/a ").is_some_and(|pid| pid.parse::<u32>().is_ok()), "systemd expands nothing: {first}");
        assert_eq!(rest, "nobody\n1\nby standard input\nheld\n");
        assert_eq!(output.status, 7);
        // Outside, nobody sees it.
        assert!(!host.run(&Command::new("test").args(["-e", "/tmp/lock"])).await.unwrap().succeeded());
        let score = cell::score(&host, &unit).await.unwrap().unwrap();
        assert!((10..100).contains(&score), "{score}");
        remove(&host, &unit).await;
        assert_eq!(said(&host, sh("echo on")).await, "on");
    }
}
