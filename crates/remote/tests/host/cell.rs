//! Cells on a real systemd: what the server can do of one, and what runs inside.

use remote::host::cell::{self, Inside, Part};
use remote::host::systemd::Unit;
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
            let expected = [
                part("PrivateTmp", &["PrivateTmp=yes"]),
                part("NoSuchDirective", &["NoSuchDirective=yes"]),
                part("SystemCallFilter", &["SystemCallFilter=@system-service", "SystemCallFilter=~@mount"]),
                part("BindPaths=/no/such/folder", &["BindPaths=/no/such/folder"]),
                part("CapabilityBoundingSet", &["CapabilityBoundingSet="]),
            ];
            let able = cell::ability(&host, &expected).await.unwrap();
            let names: Vec<&str> = able.refused.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(names, ["NoSuchDirective", "BindPaths=/no/such/folder"], "{able:?}");
            assert_eq!(able.broken, None);
            assert!(able.refused[0].1.contains("Unknown assignment"), "{able:?}");
        }
    }

    async fn a_systemd_that_is_disturbed_leaves_nothing_out(fleet: Fleet) {
        // The stand-in below is for every program of the host.
        let alone = fleet.alone();
        let host = fleet.host("h2");
        let part = |key: &str, of: &[&str]| Part { key: key.into(), lines: lines(of) };
        let expected = [
            part("PrivateTmp", &["PrivateTmp=yes"]),
            part("NoNewPrivileges", &["NoNewPrivileges=yes"]),
            part("NoSuchDirective", &["NoSuchDirective=yes"]),
        ];
        // As it says where systemd executes itself anew at that moment, which upgrades of its package do; once, or every time.
        let stand_in = r#"
            printf '#!/bin/sh\ncase $* in *NoNewPrivileges*PrivateTmp*|*PrivateTmp*NoNewPrivileges*) ;; *NoNewPrivileges*) %s\n{ echo "Failed to start transient service unit: Message recipient disconnected from message bus without replying" >&2; exit 1; } ;; esac\nexec /usr/bin/systemd-run "$@"\n' "$1" >/usr/local/bin/systemd-run
            chmod 755 /usr/local/bin/systemd-run; rm -f /run/disturbed"#;
        host.succeed(&sh(stand_in).arg("[ -e /run/disturbed ] || { : >/run/disturbed; false; } ||")).await.unwrap();
        let able = cell::ability(&host, &expected).await;
        host.succeed(&sh(stand_in).arg("")).await.unwrap();
        let unable = cell::ability(&host, &expected).await;
        host.succeed(&sh("printf '#!/bin/sh\nexit 1\n' >/usr/local/bin/systemd-run")).await.unwrap();
        let broken = cell::ability(&host, &expected).await;
        host.succeed(&sh("rm -f /usr/local/bin/systemd-run /run/disturbed")).await.unwrap();
        let names = |able: &cell::Ability| able.refused.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        assert_eq!(names(able.as_ref().unwrap()), ["NoSuchDirective"], "{able:?}");
        let error = unable.unwrap_err().to_string();
        assert!(error.contains("NoNewPrivileges"), "{error}");
        assert!(broken.is_err(), "a firewall is not proved by a program that did not run: {broken:?}");
        drop(alone);
    }

    /// A reload writes the command line of a transient unit down, and systemd then starts other words than it was given.
    async fn a_reload_in_between_changes_no_command(fleet: Fleet) {
        let alone = fleet.alone();
        let host = fleet.host("h2");
        let reloads = "touch /run/reloads; setsid -f timeout 60 sh -c 'while [ -e /run/reloads ]; do systemctl daemon-reload; done' </dev/null >/dev/null 2>&1";
        host.succeed(&sh(reloads)).await.unwrap();
        let mut found = vec![];
        for _ in 0..8 {
            found.push(cell::ability(&host, &[Part { key: "PrivateTmp".into(), lines: lines(&["PrivateTmp=yes"]) }]).await);
        }
        let unit = Unit::parse("reloads").unwrap();
        let inside = Inside { user: "nobody".into(), unit, lines: lines(&["PrivateTmp=yes"]) };
        let say = sh("printf '%s|' '$1' \"$1\" \"$2\" \"$#\" %h \"$(cat)\"")
            .args(["$HOME %n 'a'", "two\nlines \\ \"b\""])
            .stdin("from here")
            .by(Actor::Inside(inside));
        let mut answers = vec![];
        for _ in 0..12 {
            answers.push(host.run(&say).await.map(|output| output.text()));
        }
        host.succeed(&sh("rm -f /run/reloads")).await.unwrap();
        drop(alone);
        let expected = "$1|$HOME %n 'a'|two\nlines \\ \"b\"|2|%h|from here|";
        assert!(answers.iter().all(|answer| answer.as_ref().is_ok_and(|text| text == expected)), "{answers:?}");
        // A look that was disturbed says so, and nothing about the server.
        let clear: Vec<_> = found.iter().filter_map(|able| able.as_ref().ok()).collect();
        assert!(!clear.is_empty(), "{found:?}");
        for able in clear {
            assert_eq!(able.broken, None, "{able:?}");
        }
    }

    /// That a program ran does not show that its cell holds, and that one failed does not show that a packet was dropped.
    async fn what_has_no_effect_is_not_taken_for_a_cell(fleet: Fleet) {
        let alone = fleet.alone();
        let host = fleet.host("h2");
        let expected = ["NoNewPrivileges=yes", "PrivateUsers=yes", "CapabilityBoundingSet=", "SystemCallFilter=@system-service"]
            .map(|line| Part { key: line.split('=').next().unwrap().into(), lines: lines(&[line]) });
        let holds = cell::ability(&host, &expected).await;
        // One that passes directives over, as systemd does with some where the kernel cannot do them.
        let stand_in = r#"
            printf '#!/bin/bash\nall=(); for word; do case $word in PrivateUsers=*) word=PrivateTmp=yes ;; esac; all+=("$word"); done\nexec /usr/bin/systemd-run "${all[@]}"\n' >/usr/local/bin/systemd-run
            chmod 755 /usr/local/bin/systemd-run"#;
        host.succeed(&sh(stand_in)).await.unwrap();
        let passed_over = cell::ability(&host, &expected).await;
        let stand_in = r#"printf '#!/bin/sh\ncase $* in *IPAddressDeny*) exit 1 ;; esac\nexec /usr/bin/systemd-run "$@"\n' >/usr/local/bin/systemd-run"#;
        host.succeed(&sh(stand_in)).await.unwrap();
        let no_proof = cell::ability(&host, &expected).await;
        // The program that tries all of it ends once without a word, as when systemd is executed again.
        let stand_in = r#"printf '#!/bin/sh\ncase $* in *" sh -s") [ -e /run/once ] || { : >/run/once; exit 1; } ;; esac\nexec /usr/bin/systemd-run "$@"\n' >/usr/local/bin/systemd-run; rm -f /run/once"#;
        host.succeed(&sh(stand_in)).await.unwrap();
        let once = cell::ability(&host, &expected).await;
        host.succeed(&sh("rm -f /usr/local/bin/systemd-run /run/once")).await.unwrap();
        assert_eq!(once.unwrap().broken, None, "it is tried once more");
        assert_eq!(holds.unwrap().broken, None);
        let why = passed_over.unwrap().broken.unwrap_or_default();
        assert!(why.ends_with("no effect: PrivateUsers"), "{why}");
        let no_proof = no_proof.unwrap();
        assert!(no_proof.broken.is_none() && !no_proof.firewall && !no_proof.bind_filter, "{no_proof:?}");
        drop(alone);
    }

    /// The name servers that programs ask are those of /etc/resolv.conf; whom resolved asks in their place is its own affair.
    async fn only_name_servers_that_programs_ask_are_known(fleet: Fleet) {
        let alone = fleet.alone();
        let host = fleet.host("h2");
        let plant = r#"
            [ ! -e /etc/resolv.conf ] || mv /etc/resolv.conf /etc/resolv.conf.kept
            echo 'nameserver 127.0.0.53' >/etc/resolv.conf
            mkdir -p /run/systemd/resolve && echo 'nameserver 169.254.169.254' >/run/systemd/resolve/resolv.conf"#;
        host.succeed(&sh(plant)).await.unwrap();
        let stub = cell::ability(&host, &[]).await.unwrap().resolvers;
        host.succeed(&sh("ln -sf /run/systemd/resolve/resolv.conf /etc/resolv.conf")).await.unwrap();
        let direct = cell::ability(&host, &[]).await.unwrap().resolvers;
        let tidy = "rm -rf /etc/resolv.conf /run/systemd/resolve; [ ! -e /etc/resolv.conf.kept ] || mv /etc/resolv.conf.kept /etc/resolv.conf";
        host.succeed(&sh(tidy)).await.unwrap();
        assert_eq!(stub, ["127.0.0.53".parse::<std::net::IpAddr>().unwrap()]);
        assert_eq!(direct, ["169.254.169.254".parse::<std::net::IpAddr>().unwrap()]);
        drop(alone);
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
