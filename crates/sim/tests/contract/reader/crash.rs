//! Processes that follow a log and die.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use base::{Clock, Zone};
use jiff::{SignedDuration, Timestamp};
use llm::usage::reader::{Reader, follow};
use store::Db;
use store::foreign::LogKind;
use testkit::until_ok;

use super::{Ours, Totals, numbered, spend, theirs};
use crate::bench::{Bench, Server, Setup, open, setup};

/// Processes that read at the same time and die at any moment, over rows that become visible in any order and are
/// deleted again once they were read.
async fn crash(setup: Setup, name: &str) {
    let Some(bench) = Bench::start(setup, name).await else { return };
    let ours = Arc::new(Ours::new(setup.server).await);
    let mut seed =
        base::id::fresh().bytes().fold(0x9e37_79b9_u64, |seed, byte| seed.wrapping_mul(31) ^ u64::from(byte));
    println!("seed {seed}");
    let mut random = move |below: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % below
    };
    let over = Arc::new(AtomicBool::new(false));
    let deaths = Arc::new(AtomicUsize::new(0));
    let processes: Vec<_> = (0..2)
        .map(|number| {
            let (over, deaths, url, kind) = (over.clone(), deaths.clone(), ours.url.clone(), bench.setup.kind);
            let (gateway_url, admin, log) =
                (bench.sim().url.clone(), bench.sim().admin_token.clone(), bench.sim().log_url.clone());
            std::thread::spawn(move || {
                let mut life = 3 + number * 2;
                while !over.load(Ordering::SeqCst) {
                    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
                    let runtime = runtime.unwrap();
                    let (url, log) = (url.clone(), log.clone());
                    let gateway = open(kind, &gateway_url, &admin);
                    runtime.spawn(async move {
                        let Ok(db) = Db::open(&url).await else { return };
                        let zone = Zone::named("UTC").unwrap();
                        let log_kind = LogKind::find(kind).unwrap();
                        let reader = Reader::new(db, Clock::default(), zone, gateway, log_kind, log);
                        follow(&reader, &base::Heartbeats::default()).await;
                    });
                    // A life of another length each time: everything that it was doing ends wherever it stands, and its
                    // connections with it.
                    std::thread::sleep(Duration::from_millis(life));
                    runtime.shutdown_background();
                    deaths.fetch_add(1, Ordering::SeqCst);
                    life = (life * 7 + 3) % 160 + 2;
                }
            })
        })
        .collect();
    let mut expected = Totals::new();
    let mut waiting: Vec<i64> = vec![];
    let count = 300;
    for next in 1..=count + 25 {
        if next <= count {
            waiting.push(next);
        }
        if waiting.len() < 20 && next <= count {
            continue;
        }
        let Some(place) = (!waiting.is_empty()).then(|| random(waiting.len() as u64) as usize) else { break };
        let id = waiting.swap_remove(place);
        let (name, quota) = (format!("inst-{}", random(3)), random(1000) as i64);
        let sums = expected.entry(name.clone()).or_default();
        *sums = (sums.0 + 1, sums.1 + 3, sums.2 + if bench.family() { quota } else { 10 });
        if bench.family() {
            numbered(&bench, id, Timestamp::now(), 2, &name, quota).await;
        } else {
            let began = Timestamp::now() - SignedDuration::from_millis(random(30_000) as i64);
            spend(&bench, &format!("request {id}"), &name, began).await;
        }
        if next % 10 == 0 {
            // Rows come at any moment of a reader's life.
            tokio::time::sleep(Duration::from_millis(random(80))).await;
        }
    }
    while let Some(id) = waiting.pop() {
        let sums = expected.entry("inst-last".into()).or_default();
        *sums = (sums.0 + 1, sums.1 + 3, sums.2 + if bench.family() { 5 } else { 10 });
        match bench.family() {
            true => numbered(&bench, id, Timestamp::now(), 2, "inst-last", 5).await,
            false => spend(&bench, &format!("request {id}"), "inst-last", Timestamp::now()).await,
        }
    }
    // The last rows are read by processes that die, too.
    let enough = deaths.load(Ordering::SeqCst) + 10;
    until_ok("the readers die ten times more", async || match deaths.load(Ordering::SeqCst) {
        deaths if deaths >= enough => Ok(()),
        deaths => Err(deaths),
    })
    .await;
    over.store(true, Ordering::SeqCst);
    tokio::task::spawn_blocking(|| processes.into_iter().for_each(|p| p.join().unwrap())).await.unwrap();
    ours.read(&bench).await;
    assert_eq!(theirs(&bench).await, expected);
    assert_eq!(ours.sums().await, expected);
    assert_eq!(ours.rows().await, count);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_readers_that_die_lose_and_repeat_nothing_one_api_sqlite() {
    let name = "reader::crash::two_readers_that_die_lose_and_repeat_nothing_one_api_sqlite";
    crash(setup("one-api", Server::Sqlite), name).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_readers_that_die_lose_and_repeat_nothing_one_api_postgres() {
    let name = "reader::crash::two_readers_that_die_lose_and_repeat_nothing_one_api_postgres";
    crash(setup("one-api", Server::Postgres), name).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_readers_that_die_lose_and_repeat_nothing_new_api_mariadb() {
    let name = "reader::crash::two_readers_that_die_lose_and_repeat_nothing_new_api_mariadb";
    crash(setup("new-api", Server::Mariadb), name).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_readers_that_die_lose_and_repeat_nothing_litellm_postgres() {
    let name = "reader::crash::two_readers_that_die_lose_and_repeat_nothing_litellm_postgres";
    crash(setup("litellm", Server::Postgres), name).await;
}
