//! Commands: what arrives, what comes back, how they end, and how many at once.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use remote::host::{Actor, Command, Error, Host, Target};

use crate::kit::{Fleet, Sshd, new_user, processes, said, sh, unique, until};
use crate::on_hosts;

/// What a host makes of the words.
async fn echoed(host: &Host, words: &[String], actor: Actor) -> Vec<String> {
    let command = Command::new("printf").arg(r"%s\0").args(words.iter().cloned()).by(actor);
    let output = host.succeed(&command).await.unwrap();
    String::from_utf8(output.stdout).unwrap().split_terminator('\0').map(str::to_owned).collect()
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
        let began = Instant::now();
        let output = host.run(&sh("yes | head -c 60000000; echo end >&2").keep(1000)).await.unwrap();
        assert!(output.truncated && output.succeeded());
        assert_eq!((output.stdout.len(), output.stderr.as_slice()), (1000, b"end\n".as_slice()));
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
        let exactly = host.run(&sh("head -c 1000 /dev/zero").keep(1000)).await.unwrap();
        assert!(!exactly.truncated);
    }

    async fn much_input_is_taken_or_left(fleet: Fleet) {
        let host = fleet.host("h1");
        let much = vec![7; 8 << 20];
        let sum = said(&host, Command::new("sha256sum").stdin(much.clone())).await;
        assert_eq!(sum.split(' ').next().unwrap(), remote::host::file::Hash::of(&much).as_str());
        let began = Instant::now();
        assert!(host.run(&Command::new("true").stdin(much)).await.unwrap().succeeded());
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    }

    async fn a_time_limit_ends_the_process_on_the_host(fleet: Fleet) {
        for login in ["root", "ops"] {
            let host = fleet.host_as("h1", login);
            let mark = unique("limit");
            host.contact().await.unwrap();
            let began = Instant::now();
            let command = sh("sleep 60; echo \"$1\"").arg(&mark).limit(Duration::from_secs(1));
            let error = host.run(&command).await.unwrap_err();
            assert!(matches!(error, Error::CommandTimedOut { .. }), "{error}");
            assert!(began.elapsed() < Duration::from_millis(2500), "{:?}", began.elapsed());
            assert_eq!(processes(&host, &mark).await, 0);
        }
    }

    async fn a_process_that_will_not_end_is_made_to(fleet: Fleet) {
        let host = fleet.host_as("h1", "ops");
        let mark = unique("stubborn");
        let command = sh("trap '' TERM; while :; do sleep 1; done; echo \"$1\"").arg(&mark).limit(Duration::from_secs(1));
        let error = host.run(&command).await.unwrap_err();
        assert!(matches!(error, Error::CommandTimedOut { .. }), "{error}");
        assert_eq!(processes(&host, &mark).await, 0);
    }

    async fn whoever_stops_waiting_ends_the_command(fleet: Fleet) {
        let host = fleet.host_as("h1", "ops");
        let mark = unique("left");
        let command = sh("sleep 50; echo \"$1\"").arg(&mark).by(Actor::Login);
        assert!(tokio::time::timeout(Duration::from_millis(400), host.run(&command)).await.is_err());
        until("the process is gone", Duration::from_secs(3), async || processes(&host, &mark).await == 0).await;
    }

    async fn commands_that_were_left_do_not_use_up_the_sessions(fleet: Fleet) {
        // Through sudo they cannot be ended from outside: they take their time, and the next ones wait for them.
        let host = fleet.host_as("h1", "ops");
        let slow = Command::new("sleep").arg("60").limit(Duration::from_secs(2));
        let left = join_all((0..12).map(|_| tokio::time::timeout(Duration::from_millis(500), host.run(&slow)))).await;
        assert!(left.iter().all(Result::is_err));
        let began = Instant::now();
        assert_eq!(said(&host, Command::new("echo").arg("still here")).await, "still here");
        assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    }

    async fn a_command_that_leaves_something_running_is_not_waited_for(fleet: Fleet) {
        let host = fleet.host("h1");
        let began = Instant::now();
        let output = host.run(&sh("sleep 8 & echo started")).await.unwrap();
        assert_eq!((output.status, output.text().as_str()), (0, "started\n"));
        assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    }

    async fn forty_commands_at_once_are_more_than_sshd_allows_and_all_are_done(fleet: Fleet) {
        let host = fleet.host("h3");
        let began = Instant::now();
        let numbers = join_all((0..40).map(|number| {
            let host = host.clone();
            async move { said(&host, sh("sleep 0.2; echo \"$1\"").arg(number.to_string())).await }
        }))
        .await;
        assert_eq!(numbers, (0..40).map(|number| number.to_string()).collect::<Vec<_>>());
        // Eight at a time, so five rounds: proof that there is a bound, and that it is used.
        assert!((1000..15_000).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
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
