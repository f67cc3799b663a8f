//! Reaching a server, knowing it, logging in; and sharing the connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base::Secret;
use futures_util::StreamExt as _;
use futures_util::future::join_all;
use futures_util::stream;
use remote::host::{Actor, Address, Command, Error, Host, Hosts, LoginKey, Target, Timing};
use testkit::{LIMIT, until};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::kit::{self, Fleet, NEVER, Relay, Sshd, exists, host_key, new_key, new_user, said, sh, sshd_of, unique};
use crate::on_hosts;

fn echo() -> Command {
    Command::new("echo").arg("here")
}

async fn refused(address: Address) -> Error {
    Host::new(Target::Ssh(address)).run(&echo()).await.unwrap_err()
}

on_hosts! {
    async fn the_first_contact_tells_the_key_and_binds_from_then_on(fleet: Fleet) {
        let real = host_key(&fleet.machine("h1").host_key);
        let mut address = fleet.address("h1", "root");
        address.host_key = None;
        let host = Host::new(Target::Ssh(address.clone()));
        assert_eq!(host.contact().await.unwrap(), Some(real.clone()));

        // The same address shows another server's key later: refused, although nothing was stored yet.
        let relay = Relay::before(fleet.machine("h1")).await;
        let host = Host::new(relay.target(address));
        host.contact().await.unwrap();
        host.close().await;
        relay.redirect(fleet.machine("h3"));
        let error = host.run(&echo()).await.unwrap_err();
        let other = host_key(&fleet.machine("h3").host_key);
        assert!(matches!(&error, Error::HostKeyChanged { pinned, seen, .. } if *pinned == real && *seen == other), "{error}");
    }

    async fn a_changed_host_key_is_refused_before_anything_is_sent(fleet: Fleet) {
        let other = host_key(&fleet.machine("h3").host_key);
        // Had it come to a login, that would have been refused.
        let (_folder, stranger, _) = new_key("ed25519", "");
        let address = Address { host_key: Some(other.clone()), key: LoginKey::File(stranger), ..fleet.address("h1", "root") };
        let error = refused(address).await;
        assert!(matches!(&error, Error::HostKeyChanged { pinned, .. } if *pinned == other), "{error}");
        assert_eq!(base::Error::from(error).kind, base::Kind::Conflict);
    }

    async fn a_pinned_key_of_another_kind_is_the_one_that_is_asked_for(fleet: Fleet) {
        let root = fleet.host("h3");
        let path = format!("/root/{}", unique("hostkey"));
        let script = r#"ssh-keygen -q -t rsa -b 2048 -N '' -f "$1" && cut -d' ' -f1,2 "$1.pub""#;
        let rsa = host_key(&said(&root, sh(script).arg(&path)).await);
        let both = [format!("HostKey={path}"), "HostKey=/etc/ssh/ssh_host_ed25519_key".to_owned()];
        let sshd = Sshd::start(&root, &[&both[0], &both[1]]).await;
        for pinned in [rsa, host_key(&fleet.machine("h3").host_key)] {
            let address = Address { port: sshd.port, host_key: Some(pinned.clone()), ..fleet.address("h3", "root") };
            assert_eq!(Host::new(Target::Ssh(address)).contact().await.unwrap(), Some(pinned));
        }
        sshd.stop().await;
    }

    async fn keys_of_all_kinds_log_in_from_files_and_from_memory(fleet: Fleet) {
        let root = fleet.host("h1");
        let keys = [new_key("ed25519", ""), new_key("ecdsa", ""), new_key("rsa", "")];
        let known: String = keys.iter().map(|(_, _, public)| public.as_str()).collect();
        let user = new_user(&root, &known).await;
        for (_, path, public) in &keys {
            let text = Secret::new(std::fs::read_to_string(path).unwrap());
            for key in [LoginKey::File(path.clone()), LoginKey::Text(text)] {
                let address = Address { key, ..fleet.address("h1", &user) };
                let host = Host::new(Target::Ssh(address));
                assert_eq!(said(&host, echo().by(Actor::Login)).await, "here", "{public}");
            }
        }
    }

    async fn a_login_that_fails_says_why(fleet: Fleet) {
        let (_folder, stranger, _) = new_key("ed25519", "");
        let address = Address { key: LoginKey::File(stranger), ..fleet.address("h1", "root") };
        assert!(matches!(refused(address).await, Error::LoginRefused { user, .. } if user == "root"));

        let nobody = fleet.address("h1", "no-such-user");
        assert!(matches!(refused(nobody).await, Error::LoginRefused { .. }));

        let (_folder, locked, _) = new_key("ed25519", "a passphrase");
        let address = Address { key: LoginKey::File(locked), ..fleet.address("h1", "root") };
        assert!(matches!(refused(address).await, Error::Key { why, .. } if why.contains("passphrase")));

        let address = Address { key: LoginKey::File("/nowhere/key".into()), ..fleet.address("h1", "root") };
        assert!(matches!(refused(address).await, Error::Key { name, .. } if name == "/nowhere/key"));

        let address = Address { key: LoginKey::Text(Secret::new("nonsense")), ..fleet.address("h1", "root") };
        assert!(matches!(refused(address).await, Error::Key { .. }));
    }

    async fn a_server_that_is_not_there_is_told_apart(fleet: Fleet) {
        let address = |host: &str, port| Address { host: host.into(), port, ..fleet.address("h1", "root") };
        let closed = refused(address(&fleet.machine("h1").address, 1)).await;
        assert!(matches!(closed, Error::Refused { .. }), "{closed}");
        let unknown = refused(address("no-such-host.invalid", 22)).await;
        assert!(matches!(unknown, Error::Address { .. }), "{unknown}");
        // Nobody has this address in the hosts' network.
        let (network, _) = fleet.bridge.rsplit_once('.').unwrap();
        let nobody = refused(address(&format!("{network}.251"), 22)).await;
        assert!(matches!(nobody, Error::Unreachable { .. } | Error::ConnectTimedOut { .. }), "{nobody}");

        let talker = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = talker.local_addr().unwrap().port();
        tokio::spawn(async move {
            let (mut stream, _) = talker.accept().await.unwrap();
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\nno\r\n").await.unwrap();
        });
        let error = refused(address("127.0.0.1", port)).await;
        assert!(matches!(error, Error::NotSsh { .. } | Error::Unreachable { .. }), "{error}");
    }

    async fn a_server_that_accepts_and_says_nothing_is_given_up_in_time(fleet: Fleet) {
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = silent.local_addr().unwrap().port();
        let attempts = Arc::new(AtomicUsize::new(0));
        let accepted = attempts.clone();
        tokio::spawn(async move {
            let mut open = vec![];
            loop {
                open.push(silent.accept().await.unwrap());
                accepted.fetch_add(1, Ordering::SeqCst);
            }
        });
        let address = Address { host: "127.0.0.1".into(), port, ..fleet.address("h1", "root") };
        let greet = Duration::from_millis(300);
        let timing = Timing { greet, hold: NEVER, longest_hold: NEVER, ..Timing::default() };
        let host = Host::with(Target::Ssh(address), timing);
        let command = echo();
        let outcomes = join_all((0..30).map(|_| host.run(&command))).await;
        let given_up = |error: &Error| matches!(error, Error::ConnectTimedOut { limit, .. } if *limit == greet);
        assert!(outcomes.iter().all(|outcome| outcome.as_ref().is_err_and(given_up)), "{outcomes:?}");
        // From now on it is known to be down: nobody waits that long again.
        for _ in 0..5 {
            assert!(given_up(&host.run(&echo()).await.unwrap_err()));
        }
        assert_eq!(attempts.load(Ordering::SeqCst), 1, "all of them had the same attempt");
    }

    async fn who_comes_after_a_failure_does_not_wait_for_the_end_of_the_next_attempt(fleet: Fleet) {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = server.local_addr().unwrap().port();
        let address = Address { host: "127.0.0.1".into(), port, ..fleet.address("h1", "root") };
        let patience = Duration::from_millis(50);
        let timing = Timing { greet: NEVER, hold: Duration::ZERO, patience, ..Timing::default() };
        let host = Host::with(Target::Ssh(address), timing);
        // It hangs up at once; after that it accepts, and says nothing for ever.
        let hang_up = async { drop(server.accept().await.unwrap()) };
        let command = echo();
        let (first, ()) = tokio::join!(host.run(&command), hang_up);
        let first = first.unwrap_err();
        assert!(!matches!(first, Error::ConnectTimedOut { .. }), "{first}");
        for _ in 0..3 {
            let answer = tokio::time::timeout(LIMIT, host.run(&command)).await.expect("it waits for the attempt");
            assert_eq!(answer.unwrap_err(), first, "what is known already");
        }
        // All of them had the same attempt, and it goes on.
        let (mut attempt, _) = server.accept().await.unwrap();
        let mut greeting = vec![0; 1024];
        assert!(attempt.read(&mut greeting).await.unwrap() > 0);
        let more = tokio::time::timeout(patience, attempt.read(&mut greeting)).await;
        assert!(more.is_err(), "it was not hung up: {more:?}");
        let another = tokio::time::timeout(patience, server.accept()).await;
        assert!(another.is_err(), "there is no second attempt beside it: {another:?}");
    }

    async fn everybody_shares_two_connections(fleet: Fleet) {
        let relay = Relay::before(fleet.machine("h1")).await;
        let hosts = Hosts::new();
        let target = relay.target(fleet.address("h1", "root"));
        let many = join_all((0..30).map(|_| {
            let host = hosts.host("server-1", &target);
            async move { said(&host, echo()).await }
        }))
        .await;
        assert!(many.iter().all(|said| said == "here"));
        assert_eq!(relay.connections(), 1);
        let sockets = join_all((0..5).map(|_| async { hosts.host("server-1", &target).tunnel(22).await.unwrap() })).await;
        assert_eq!((sockets.len(), relay.connections()), (5, 2));

        // A key that was seen and is pinned from now on is no other server.
        let mut unpinned = fleet.address("h1", "root");
        unpinned.host_key = None;
        let first = hosts.host("server-2", &relay.target(unpinned));
        first.contact().await.unwrap();
        said(&hosts.host("server-2", &relay.target(fleet.address("h1", "root"))), echo()).await;
        assert_eq!(relay.connections(), 3);

        // Another login is another server: it does not ride on the old connection.
        let other = relay.target(fleet.address("h1", "ops"));
        assert_eq!(said(&hosts.host("server-1", &other), Command::new("id").arg("-un").by(Actor::Login)).await, "ops");
        assert_eq!(relay.connections(), 4);
        hosts.close().await;
    }

    async fn a_connection_that_broke_is_replaced_without_a_word(fleet: Fleet) {
        let relay = Relay::before(fleet.machine("h1")).await;
        // That it broke is noticed when it breaks, not when somebody has waited for an answer for too long.
        let timing = Timing { open: NEVER, keep_alive: NEVER, stuck: NEVER, ..Timing::default() };
        let host = Host::with(relay.target(fleet.address("h1", "root")), timing);
        assert_eq!(said(&host, echo()).await, "here");
        // sshd's end of this connection is killed: what is asked next finds it broken.
        let own = sshd_of(&host).await;
        fleet.host("h1").succeed(&Command::new("kill").args(["-9", &own])).await.unwrap();
        assert_eq!(said(&host, echo()).await, "here");
        assert_eq!(relay.connections(), 2);
    }

    async fn a_command_whose_connection_breaks_is_not_repeated(fleet: Fleet) {
        let host = fleet.host("h1");
        let folder = kit::folder(&host).await;
        let script = r#"echo once >>"$1/done"; kill -9 $(ps -o ppid= -p $PPID); sleep 1"#;
        let error = fleet.host("h1").run(&sh(script).arg(&folder)).await.unwrap_err();
        assert!(matches!(error, Error::CutOff { .. }), "{error}");
        assert_eq!(said(&host, Command::new("cat").arg(format!("{folder}/done"))).await, "once");
    }

    async fn after_many_commands_there_is_a_new_connection_and_nobody_notices(fleet: Fleet) {
        let relay = Relay::before(fleet.machine("h1")).await;
        let host = Host::new(relay.target(fleet.address("h1", "root")));
        let folder = kit::folder(&host).await;
        let stay = format!("{folder}/stay");
        let long = {
            let (host, stay) = (host.clone(), stay.clone());
            let script = r#"touch "$1"; while [ -e "$1" ]; do sleep 0.1; done; echo here"#;
            tokio::spawn(async move { said(&host, sh(script).arg(&stay).limit(NEVER)).await })
        };
        let other = fleet.host("h1");
        until("the long command runs", async || exists(&other, &stay).await).await;
        let many: Vec<String> = stream::iter(0..220).map(|_| said(&host, echo())).buffer_unordered(6).collect().await;
        assert!(many.iter().all(|said| said == "here"));
        assert_eq!((relay.connections(), relay.ended()), (2, 0), "the first is left to what still runs on it");
        said(&host, Command::new("rm").arg(&stay)).await;
        assert_eq!(long.await.unwrap(), "here");
        until("the first connection is over", async || relay.ended() == 1).await;
        assert_eq!(relay.connections(), 2);
    }

    async fn idle_connections_stay(fleet: Fleet) {
        let relay = Relay::before(fleet.machine("h1")).await;
        let keep_alive = Duration::from_millis(100);
        let timing = Timing { keep_alive, unanswered: 1000, stuck: Duration::from_secs(3), ..Timing::default() };
        let host = Host::with(relay.target(fleet.address("h1", "root")), timing);
        said(&host, echo()).await;
        // So many questions take longer than a silent connection would be kept.
        let before = relay.passed();
        until("it was asked forty times whether it lives", async || relay.passed() >= before + 40).await;
        said(&host, echo()).await;
        assert_eq!((relay.connections(), relay.ended()), (1, 0));
    }
}

#[test]
fn hosts_are_reached_from_the_machine_itself_too() {
    let Some(fleet) = kit::fleet() else { return };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let address = Address { host: fleet.machine("h1").relay.clone(), ..fleet.address("h1", "root") };
        let host = Host::new(Target::Ssh(address));
        assert_eq!(said(&host, Command::new("hostname")).await, "h1");
    });
}
