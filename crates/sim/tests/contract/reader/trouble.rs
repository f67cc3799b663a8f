//! What the reader says of a log that it cannot read.

use std::time::Duration;

use base::Secret;
use jiff::{SignedDuration, Timestamp};
use llm::usage::Feed as _;
use testkit::until_ok;
use tokio::io::AsyncReadExt as _;

use super::{EVERY, Ours, numbered};
use crate::bench::{Bench, Server, Setup, open, setup};

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_is_away_leaves_the_last_known_numbers() {
    let bench = Bench::start(setup("one-api", Server::Sqlite), "").await.unwrap();
    let ours = Ours::new(Server::Sqlite).await;
    let key = bench.create("inst-a", None).await;
    bench.say(&key, "hello").await;
    bench.written().await;
    let known = ours.read(&bench).await;
    // A server that takes connections and says nothing until it is told to close them.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = Secret::new(format!("postgres://reader:test-password-of-nobody@{}/away", silent.local_addr().unwrap()));
    let (connected, reached) = tokio::sync::oneshot::channel();
    let (close, closing) = tokio::sync::oneshot::channel::<()>();
    tokio::spawn(async move {
        let (mut client, _) = silent.accept().await.unwrap();
        client.read_u8().await.unwrap();
        connected.send(()).unwrap();
        closing.await.unwrap();
    });
    let reader = ours.reader_of(&bench, bench.gateway.clone(), &url).with_patience(Duration::from_millis(50));
    let as_of = reader.pull().await;
    assert!(as_of.stale);
    assert_eq!(reader.trouble(), None, "it was not waited for until the pull had failed");
    reached.await.unwrap();
    let as_of = reader.pull().await;
    assert!(as_of.stale);
    assert!((as_of.at - known.at).get_milliseconds().abs() <= 2, "known until the last step: {as_of:?} {known:?}");
    assert_eq!(ours.rows().await, 1, "and never zero");
    close.send(()).unwrap();
    let trouble = until_ok("the pull fails", async || reader.trouble().ok_or("no trouble")).await;
    assert!(trouble.contains("reached") && !trouble.contains("test-password"), "{trouble}");
    assert!(reader.pull().await.stale);

    // A file that is not there yet, then is: nothing has to be started anew.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("later.db");
    let url = Secret::new(format!("sqlite:{}", file.display()));
    let reader = ours.reader_of(&bench, bench.gateway.clone(), &url);
    assert!(reader.pull().await.stale);
    std::fs::copy(bench.sim().log_url.expose().strip_prefix("sqlite:").unwrap(), &file).unwrap();
    ours.clock.advance(EVERY);
    let as_of = reader.pull().await;
    assert!(!as_of.stale && reader.trouble().is_none(), "{:?}", reader.trouble());
    assert_eq!(ours.rows().await, 1, "the same row is the same row");
}

#[tokio::test(flavor = "multi_thread")]
async fn units_are_scaled_or_waited_for() {
    let setup = Setup { quota_per_unit: 100_000.0, ..setup("new-api", Server::Sqlite) };
    let bench = Bench::start(setup, "").await.unwrap();
    numbered(&bench, 1, Timestamp::now(), 2, "inst-a", 7).await;
    let ours = Ours::new(Server::Sqlite).await;
    // A gateway that does not answer does not say what its units are worth, and nothing is guessed.
    let dead = open("new-api", "http://127.0.0.1:1", &bench.sim().admin_token);
    let reader = ours.reader_of(&bench, dead, &bench.sim().log_url);
    assert!(reader.pull().await.stale);
    assert!(reader.trouble().unwrap().contains("worth"), "{:?}", reader.trouble());
    bench.sim().switches.set(|s| &s.throttled, true);
    assert!(ours.reader(&bench).pull().await.stale, "throttled is no answer either");
    assert_eq!(ours.rows().await, 0);
    bench.sim().switches.set(|s| &s.throttled, false);
    ours.read(&bench).await;
    assert_eq!(ours.sums().await["inst-a"], (1, 3, 35));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_counts_anew_is_told() {
    let bench = Bench::start(setup("one-api", Server::Sqlite), "").await.unwrap();
    let ours = Ours::new(Server::Sqlite).await;
    let old = Timestamp::now() - SignedDuration::from_hours(3);
    for id in [5, 1000] {
        numbered(&bench, id, old, 2, "inst-a", 1).await;
    }
    ours.read(&bench).await;
    bench.sim().log.run("DELETE FROM logs WHERE id = 1000", vec![]).await.unwrap();
    ours.read(&bench).await;
    numbered(&bench, 6, Timestamp::now(), 2, "inst-a", 1).await;
    let reader = ours.reader(&bench);
    assert!(reader.pull().await.stale);
    assert!(reader.trouble().unwrap().contains("counts anew"), "{:?}", reader.trouble());
}
