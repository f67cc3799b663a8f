//! Commands: what arrives, what comes back, how they end, and how many at once.

use std::time::Duration;

use futures_util::future::join_all;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use remote::host::{Actor, Command, Error, Host, Target, Timing};
use testkit::{LIMIT, until};

use crate::kit::{Fleet, NEVER, Sshd, exists, folder, lives, new_user, processes, said, sh, unique};
use crate::on_hosts;

/// What a host makes of the words.
async fn echoed(host: &Host, words: &[String], actor: Actor) -> Vec<String> {
    let command = Command::new("printf").arg(r"%s\0").args(words.iter().cloned()).by(actor);
    let output = host.succeed(&command).await.unwrap();
    String::from_utf8(output.stdout).unwrap().split_terminator('\0').map(str::to_owned).collect()
}

/// Time limits by which only the server itself ends a command.
fn by_the_server() -> Timing {
    Timing { slack: NEVER, ..Timing::default() }
}

on_hosts! {
    async fn status_output_and_errors_come_back(fleet: Fleet) {
        let host = fleet.host("h1");
        let output = host.run(&sh("cat; echo \"$A\"; echo oops >&2; exit 7").env("A", "b c").stdin("in\n")).await.unwrap();
        assert_eq!((output.status, output.text().as_str()), (7, "in\nb c\n"));
        assert_eq!(output.stderr, b"oops\n");
        assert!(!output.truncated);
        let killed = host.run(&sh("kill -KILL $$")).await.unwrap();
        assert_eq!(killed.status, 137);
        let missing = host.run(&Command::new("no-such-program")).await.unwrap();
        assert_eq!(missing.status, 127);
    }

    async fn a_command_is_done_by_whom_it_should(fleet: Fleet) {
        for (login, actor, who) in [
            ("root", Actor::Root, "root"),
            ("root", Actor::Login, "root"),
            ("root", Actor::User("guest".into()), "guest"),
            ("ops", Actor::Root, "root"),
            ("ops", Actor::Login, "ops"),
            ("ops", Actor::User("ops".into()), "ops"),
            ("ops", Actor::User("guest".into()), "guest"),
            ("fisher", Actor::Root, "root"),
            ("guest", Actor::Login, "guest"),
        ] {
            let host = fleet.host_as("h1", login);
            assert_eq!(said(&host, Command::new("id").arg("-un").by(actor.clone())).await, who, "{login} {actor:?}");
        }
        assert_eq!(fleet.host_as("h1", "ops").home().await.unwrap(), "/home/ops");
    }

    /// A tenant may send any signal to what runs as itself, the platform's own commands among it.
    async fn a_user_who_stops_what_runs_as_itself_is_not_waited_for(fleet: Fleet) {
        for login in ["root", "ops"] {
            let (root, host) = (fleet.host("h1"), fleet.host_with("h1", login, by_the_server()));
            let user = new_user(&root, "").await;
            let command = sh("kill -STOP 0; echo went on").by(Actor::User(user.clone())).limit(Duration::from_secs(2));
            let ended = tokio::time::timeout(LIMIT, host.run(&command)).await.expect("it ended by the server's own limit");
            assert!(matches!(ended, Err(Error::CommandTimedOut { .. })), "{login}: {ended:?}");
            until("nothing of it is left", async || said(&root, sh("ps -o pid= -u \"$1\" | wc -l").arg(&user)).await == "0").await;
        }
    }

    async fn without_the_right_to_sudo_that_is_what_is_said(fleet: Fleet) {
        let host = fleet.host_as("h1", "guest");
        for actor in [Actor::Root, Actor::User("ops".into())] {
            let error = host.run(&Command::new("id").by(actor)).await.unwrap_err();
            assert!(matches!(&error, Error::NoSudo { user, .. } if user == "guest"), "{error}");
        }
        // A command's own words are not taken for sudo's.
        let output = host.run(&sh("echo 'sudo: a password is required' >&2; exit 1").by(Actor::Login)).await.unwrap();
        assert_eq!(output.status, 1);
    }

    async fn what_a_login_shell_prints_by_itself_is_no_output(fleet: Fleet) {
        let root = fleet.host("h1");
        let public = std::fs::read_to_string(fleet.key.with_extension("pub")).unwrap();
        let user = new_user(&root, &public).await;
        let noise = r#"printf 'echo Welcome\necho sudo: oops >&2\n' >"/home/$1/.bashrc""#;
        root.succeed(&sh(noise).arg(&user)).await.unwrap();
        let host = fleet.host_as("h1", &user);
        let output = host.run(&sh("echo out; echo err >&2; exit 1")).await.unwrap();
        assert_eq!((output.status, output.stdout.as_slice(), output.stderr.as_slice()), (1, b"out\n".as_slice(), b"err\n".as_slice()));
        let mut lines = host.lines(&sh("echo first; exec cat")).await.unwrap();
        assert_eq!(lines.next().await.unwrap().unwrap(), b"first");
    }

    async fn hostile_words_arrive_as_they_are_whatever_the_shell(fleet: Fleet) {
        let words: Vec<String> = [
            "$(touch /tmp/pwned)", "`touch /tmp/pwned`", "'; touch /tmp/pwned; '", "a'b\"c", "\\", "\\'", "'\\", "a\\\\'", "\n", "a\nb\n",
            "-rf", "--", "", " ", "*", "~", "!!", "{a,b}", "%s", "\u{1b}[31m", "ä\u{1F41A}", "\r", "#", "&", "|", "<", ">", "(", ";",
        ]
        .map(str::to_owned)
        .to_vec();
        for (login, actor) in [("root", Actor::Root), ("ops", Actor::Root), ("fisher", Actor::Root), ("fisher", Actor::Login)] {
            let host = fleet.host_as("h1", login);
            assert_eq!(echoed(&host, &words, actor).await, words, "{login}");
            let hostile = Command::new("printenv").arg("X").env("X", words.concat()).by(Actor::Login);
            assert_eq!(host.succeed(&hostile).await.unwrap().text(), format!("{}\n", words.concat()));
        }
        let output = fleet.host("h1").run(&Command::new("id").by(Actor::User("$(touch /tmp/pwned)".into()))).await.unwrap();
        assert!(!output.succeeded());
        assert_eq!(fleet.host("h1").read("/tmp/pwned", 10, Actor::Root).await.unwrap(), None);
    }

    async fn random_words_arrive_as_they_are_whatever_the_shell(fleet: Fleet) {
        let mut runner = TestRunner::default();
        let words = prop::collection::vec("[^\0]{1,20}|['\"\\\\$`\n!*? ]{1,10}", 20..40);
        for login in ["root", "fisher"] {
            let host = fleet.host_as("h3", login);
            for _ in 0..15 {
                let words = words.new_tree(&mut runner).unwrap().current();
                assert_eq!(echoed(&host, &words, Actor::Login).await, words, "{login}");
            }
        }
    }

    async fn bytes_that_are_no_text_come_back_as_they_are(fleet: Fleet) {
        let all: Vec<u8> = (0..=255).collect();
        let output = fleet.host("h1").succeed(&Command::new("cat").stdin(all.clone())).await.unwrap();
        assert_eq!(output.stdout, all);
        assert!(output.text().contains('\u{fffd}'));
    }

    async fn output_is_bounded_and_says_so(fleet: Fleet) {
        let host = fleet.host("h1");
        let output = host.run(&sh("yes | head -c 60000000; echo end >&2").keep(1000).limit(LIMIT)).await.unwrap();
        assert!(output.truncated && output.succeeded());
        assert_eq!((output.stdout.len(), output.stderr.as_slice()), (1000, b"end\n".as_slice()));
        let exactly = host.run(&sh("head -c 1000 /dev/zero").keep(1000)).await.unwrap();
        assert!(!exactly.truncated);
    }

    async fn much_input_is_taken_or_left(fleet: Fleet) {
        let host = fleet.host("h1");
        let much = vec![7; 8 << 20];
        let sum = said(&host, Command::new("sha256sum").stdin(much.clone())).await;
        assert_eq!(sum.split(' ').next().unwrap(), remote::host::file::Hash::of(&much).as_str());
        // Nobody waits until it is taken: that would never be.
        assert!(host.run(&Command::new("true").stdin(much)).await.unwrap().succeeded());
    }

    async fn a_time_limit_ends_the_process_on_the_host(fleet: Fleet) {
        for login in ["root", "ops"] {
            let host = fleet.host_with("h1", login, by_the_server());
            let mark = unique("limit");
            let command = sh("sleep 1000; echo \"$1\"").arg(&mark).limit(Duration::from_secs(1));
            let error = host.run(&command).await.unwrap_err();
            assert!(matches!(error, Error::CommandTimedOut { .. }), "{error}");
            assert_eq!(processes(&host, &mark).await, 0);
        }
    }

    async fn a_process_that_will_not_end_is_made_to(fleet: Fleet) {
        let host = fleet.host_with("h1", "ops", by_the_server());
        let mark = unique("stubborn");
        let command = sh("trap '' TERM; while :; do sleep 1; done; echo \"$1\"").arg(&mark).limit(Duration::from_secs(1));
        let error = host.run(&command).await.unwrap_err();
        assert!(matches!(error, Error::CommandTimedOut { .. }), "{error}");
        assert_eq!(processes(&host, &mark).await, 0);
    }

    async fn whoever_stops_waiting_ends_the_command(fleet: Fleet) {
        let host = fleet.host_as("h1", "ops");
        let mark = unique("left");
        // It does not end by itself.
        let command = sh("touch \"/tmp/$1\"; sleep 1000; echo \"$1\"").arg(&mark).by(Actor::Login).limit(NEVER);
        let begun = format!("/tmp/{mark}");
        tokio::select! {
            outcome = host.run(&command) => panic!("it ended by itself: {outcome:?}"),
            _ = until("the command runs", async || exists(&host, &begun).await) => {}
        }
        until("the process is gone", async || processes(&host, &mark).await == 0).await;
    }

    async fn commands_that_were_left_do_not_use_up_the_sessions(fleet: Fleet) {
        // Through sudo they cannot be ended from outside: they take their time, and the next ones wait for them.
        let host = fleet.host_as("h1", "ops");
        let root = fleet.host("h1");
        let dir = folder(&root).await;
        let slow = sh(r#"mktemp "$1/XXXXXXXX"; exec sleep 1000"#).arg(&dir).limit(Duration::from_secs(3));
        let begun = async || said(&root, sh(r#"ls "$1" | wc -l"#).arg(&dir)).await.parse::<usize>().unwrap();
        tokio::select! {
            _ = join_all((0..12).map(|_| host.run(&slow))) => panic!("nobody left"),
            _ = until("as many run as there are sessions", async || begun().await >= 8) => {}
        }
        assert_eq!(said(&host, Command::new("echo").arg("still here")).await, "still here");
    }

    async fn a_command_that_leaves_something_running_is_not_waited_for(fleet: Fleet) {
        let host = fleet.host("h1");
        let output = host.run(&sh("sleep 1000 & echo $!")).await.unwrap();
        let (status, pid) = (output.status, output.text().trim().to_owned());
        assert!(status == 0 && lives(&host, &pid).await, "{status}, {pid}");
        host.succeed(&Command::new("kill").arg(&pid)).await.unwrap();
    }

    async fn forty_commands_at_once_are_more_than_sshd_allows_and_all_are_done(fleet: Fleet) {
        let host = fleet.host("h3");
        let dir = folder(&host).await;
        // Each says who it is, and how many it saw running. The first ones wait until there are eight, which shows that eight may run
        // at once; had there ever been more, somebody would have seen it.
        let script = r#"
            mkdir "$1/$2"
            until n=$(ls "$1" | grep -vc full); [ "$n" -ge 8 ] || [ -e "$1/full" ]; do sleep 0.05; done
            touch "$1/full"; sleep 0.1; rmdir "$1/$2"; echo "$2 $n""#;
        let said: Vec<String> = join_all((0..40).map(|number| {
            let (host, command) = (host.clone(), sh(script).args([dir.clone(), number.to_string()]).limit(LIMIT));
            async move { said(&host, command).await }
        }))
        .await;
        let (numbers, seen): (Vec<&str>, Vec<&str>) = said.iter().map(|line| line.split_once(' ').unwrap()).unzip();
        assert_eq!(numbers, (0..40).map(|number| number.to_string()).collect::<Vec<_>>());
        assert_eq!(seen.iter().map(|n| n.parse::<usize>().unwrap()).max(), Some(8), "{seen:?}");
    }

    async fn a_server_that_allows_two_sessions_gets_its_work_done_too(fleet: Fleet) {
        let root = fleet.host("h3");
        let sshd = Sshd::start(&root, &["MaxSessions=2"]).await;
        let mut address = fleet.address("h3", "root");
        address.port = sshd.port;
        let host = Host::new(Target::Ssh(address));
        let command = Command::new("sleep").arg("0.1");
        for one in join_all((0..12).map(|_| host.succeed(&command))).await {
            one.unwrap();
        }
        sshd.stop().await;
    }
}
