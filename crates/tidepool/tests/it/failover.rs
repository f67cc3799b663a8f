//! A PostgreSQL that fails over without a word: the connections to the old one are neither answered nor closed.

use std::time::{Duration, Instant};

use base::Secret;
use fleet::registry::JOBS;
use fleet::registry::TYPES;
use llm::provider;
use queue::job::Scheduler;
use queue::worker::Worker;
use store::notice::{Notice, Topic};
use store::{Db, Limits};
use testkit::Proxy;
use tokio::sync::watch;

use crate::kit::{Database, Gateway, Options, Site};
use crate::on_both;

/// As many as the pool has.
const CONNECTIONS: usize = 20;

/// A tenth of the usual limits.
const SHORT: Limits = Limits {
    read: Duration::from_secs(20),
    search: Duration::from_secs(5),
    log_rows: 200_000,
    message_rows: 20_000,
    statement: Duration::from_secs(3),
    ping: Duration::from_secs(1),
    release: Duration::from_secs(1),
    probe_every: Duration::from_millis(300),
    probe: Duration::from_secs(2),
};

store::record! {
    struct Count { n: i64 }
}

async fn proxied(name: &str) -> Option<(Proxy, Database, Db)> {
    let database = Database::postgres(name).await?;
    let straight = Db::open(&database.url).await.unwrap();
    let proxy = Proxy::to(&Proxy::target_of(database.url.expose())).await;
    let database = database.behind(&proxy);
    Some((proxy, database, straight))
}

/// Every place of the pool is taken by a statement or a transaction when the database goes away.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_answered_ends_and_its_connection_is_replaced() {
    let Some((proxy, database, straight)) = proxied(module_path!()).await else { return };
    let db = Db::open_with(&database.url, SHORT).await.unwrap();
    straight.run("CREATE TABLE a (n BIGINT NOT NULL)", vec![]).await.unwrap();
    let mut open = vec![];
    for n in 0..CONNECTIONS / 2 {
        let mut tx = db.begin().await.unwrap();
        tx.run("INSERT INTO a (n) VALUES (?)", store::args![n]).await.unwrap();
        open.push(tx);
    }
    let asking: Vec<_> = (0..CONNECTIONS / 2)
        .map(|_| {
            let db = db.clone();
            tokio::spawn(async move { db.run("SELECT pg_sleep(30)", vec![]).await })
        })
        .collect();
    let sleeping = "SELECT COUNT(*) AS n FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'SELECT pg_sleep%' AND state = 'active'";
    testkit::until("the pool is busy", async || {
        straight.all::<Count>(sleeping, vec![]).await.unwrap()[0].n as usize == asking.len()
            || asking.iter().all(|a| a.is_finished())
    })
    .await;
    proxy.fail_over();
    let began = Instant::now();
    let unreachable = |error: &store::Error| matches!(error, store::Error::Unreachable(_));
    let ended = async {
        for asked in asking {
            assert!(unreachable(&asked.await.unwrap().unwrap_err()));
        }
        // A commit is a statement like any other; and one that lets go waits for nobody.
        for tx in open.split_off(CONNECTIONS / 4) {
            assert!(unreachable(&tx.commit().await.unwrap_err()));
        }
    };
    tokio::time::timeout(testkit::LIMIT, ended).await.expect("a statement waits for ever");
    drop(open);
    // Everything is as before: as many at once as the pool has, each on a connection that answers.
    let again = (0..CONNECTIONS).map(|n| db.run("INSERT INTO a (n) VALUES (?)", store::args![100 + n]));
    for written in futures_util::future::join_all(again).await {
        written.unwrap_or_else(|error| panic!("{:?} after the failover: {error}", began.elapsed()));
    }
    let rows = straight.all::<Count>("SELECT n FROM a WHERE n < 100", vec![]).await.unwrap();
    assert!(rows.is_empty(), "of what was not committed nothing is there");
    assert!(db.connections().0 as usize <= CONNECTIONS);
}

/// Nothing is said on a connection that listens, so nobody would ever learn that it is dead.
#[tokio::test(flavor = "multi_thread")]
async fn notices_are_heard_again() {
    let Some((proxy, database, straight)) = proxied(module_path!()).await else { return };
    let db = Db::open_with(&database.url, SHORT).await.unwrap();
    let relay = tokio::spawn({
        let db = db.clone();
        async move { db.relay_notices().await }
    });
    db.notices_relayed().await;
    for round in 0..2 {
        let mut heard = db.listen();
        proxy.fail_over();
        let mut next = async |expected_one: &Notice| {
            let waited = async { while heard.recv().await.unwrap() != *expected_one {} };
            tokio::time::timeout(testkit::LIMIT, waited).await.expect("not heard");
        };
        next(&Notice::new(Topic::Anything, "")).await;
        let notice = Notice::new(Topic::Task, format!("after failover {round}"));
        let mut tx = straight.begin().await.unwrap();
        tx.notify(notice.clone()).await.unwrap();
        tx.commit().await.unwrap();
        next(&notice).await;
    }
    // The places of dead listeners are free: all others can be had at once.
    testkit::until("the pool is whole", async || {
        let all = futures_util::future::join_all((0..CONNECTIONS - 1).map(|_| db.begin())).await;
        all.iter().all(Result::is_ok)
    })
    .await;
    relay.abort();
}

/// Worker, scheduler, notices, the gateway's log, models and quotas: each does its work again, and /readyz says what is true.
#[tokio::test(flavor = "multi_thread")]
async fn every_loop_lives_on() {
    let Some((proxy, database, _)) = proxied(module_path!()).await else { return };
    let gateway = Gateway::Served(provider::Settings { echo: true, ..Default::default() });
    let site = Site::with(database, Options { gateway, limits: SHORT, ..Options::default() }).await;
    let (stop, stopped) = watch::channel(false);
    let timing = queue::worker::Timing { poll: Duration::from_millis(200), ..Default::default() };
    let working = tokio::spawn(Worker::new(site.app.clone(), TYPES, timing).run(stopped.clone()));
    let scheduling = tokio::spawn(Scheduler::new(site.app.clone(), &JOBS, Default::default()).run(stopped));
    let beats = &site.app.db.heartbeats;
    let expected = ["gateway_log", "models", "notices", "quotas", "scheduler", "worker"];
    // A run that is cut off in the middle would go on for ever: its lease runs by a clock that stands still.
    let jobs = JOBS.iter().filter(|job| !job.paused).count();
    testkit::until_ok("the first runs are over", async || {
        let sql = "SELECT COUNT(*) AS n FROM job_run WHERE status <> 'running'";
        let over = site.app.db.first::<Count>(sql, vec![]).await.unwrap().unwrap().n as usize;
        if over >= jobs { Ok(()) } else { Err(over) }
    })
    .await;
    for _ in 0..2 {
        let since = Instant::now();
        proxy.fail_over();
        let names = testkit::until_ok("every loop beats again", async || {
            let ages = beats.ages();
            // A beat of the last moment may have been before the failover was felt.
            let old: Vec<_> =
                ages.iter().filter(|(_, age)| since.elapsed() < *age + SHORT.statement).cloned().collect();
            if old.is_empty() { Ok(ages.into_iter().map(|(name, _)| name).collect::<Vec<_>>()) } else { Err(old) }
        })
        .await;
        assert_eq!(names, expected);
        testkit::until_ok("it is ready", async || {
            let answer = site.admin.http.get(format!("{}/readyz", site.admin.url)).send().await.unwrap();
            if answer.status().is_success() { Ok(()) } else { Err(answer.status()) }
        })
        .await;
        // What goes through the queue and the notices is done.
        site.run_job(&site.root, "token_usage_sync").await;
    }
    stop.send(true).unwrap();
    working.await.unwrap();
    scheduling.await.unwrap();
    assert!(beats.ages().iter().all(|(name, _)| !["worker", "scheduler"].contains(name)), "they ended on purpose");
    site.check().await;
}

/// A probe is answered, also when the database says nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_silent_database_is_said_to_be_away() {
    let Some((proxy, database, _)) = proxied(module_path!()).await else { return };
    let site = Site::with(database, Options { limits: SHORT, ..Options::default() }).await;
    site.admin.raw(reqwest::Method::GET, "/readyz").ok().await;
    proxy.swallow();
    site.admin.raw(reqwest::Method::GET, "/readyz").refused("5030").await;
    proxy.fail_over();
    testkit::until("it is ready again", async || {
        let answer = site.admin.http.get(format!("{}/readyz", site.admin.url)).send().await.unwrap();
        answer.status().is_success()
    })
    .await;
}

/// `tidepool check` and /readyz compare this machine's clock with the database's.
#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_off_is_reported() {
    let Some(database) = Database::postgres(module_path!()).await else { return };
    let site = Site::start(database).await;
    let clock = async || site.admin.raw(reqwest::Method::GET, "/readyz").ok().await["clock"].clone();
    // The site's clock stands still since before it was opened.
    site.app.clock.advance(jiff::Timestamp::now().duration_since(site.app.clock.now()));
    assert_eq!(clock().await["status"], "ok");
    site.wait(Duration::from_secs(60));
    let said = clock().await;
    assert_eq!(said["status"], "off", "{said}");
    assert!(said["detail"].as_str().unwrap().contains("s ahead of the database's"), "{said}");
}

on_both! {
    async fn a_loop_that_is_dead_for_a_minute_makes_the_process_not_ready(site: Site) {
        let ready = || site.admin.raw(reqwest::Method::GET, "/readyz");
        let ago = |seconds| Instant::now().checked_sub(Duration::from_secs(seconds)).unwrap();
        let beats = &site.app.db.heartbeats;
        beats.beat_at("scheduler", ago(30));
        assert_eq!(ready().ok().await["loops"]["status"], "ok");
        beats.beat_at("worker", ago(61));
        let said = ready().refused("5030").await;
        assert!(said.contains("worker") && !said.contains("scheduler"), "{said}");
        beats.beat("worker");
        ready().ok().await;
    }

    /// Whatever the clocks of the machines say, leases run by the database's.
    async fn leases_run_by_the_clock_of_the_database(site: Site) {
        use store::lease::{self, Now, Term};
        let db = &site.app.db;
        site.wait(Duration::from_secs(3600));
        let (length, now) = (jiff::SignedDuration::from_secs(60), Now::Database);
        assert!(lease::hold(db, "it", "a", Term { from: now, length }).await.unwrap());
        assert!(!lease::hold(db, "it", "b", Term { from: now, length }).await.unwrap(), "it was just taken");
        store::record! { struct Lease { until: jiff::Timestamp } }
        let held: Vec<Lease> = db.all("SELECT until FROM lease WHERE name = 'it'", vec![]).await.unwrap();
        let ends_in = held[0].until.duration_since(jiff::Timestamp::now());
        assert!((50..=60).contains(&ends_in.as_secs()), "{ends_in:?}, by the database's clock and not by the site's");
        db.run("UPDATE lease SET until = until - 120000", vec![]).await.unwrap();
        assert!(lease::hold(db, "it", "b", Term { from: now, length }).await.unwrap(), "it has run out");
        assert!(!lease::hold(db, "it", "a", Term { from: now, length }).await.unwrap());
    }
}

/// The whole binary with its usual limits.
#[tokio::test(flavor = "multi_thread")]
async fn check_says_how_the_clock_is() {
    let Some(database) = Database::postgres(module_path!()).await else { return };
    let folder = tempfile::tempdir().unwrap();
    let url = Secret::new(database.url.expose());
    let environment = [("TIDEPOOL_DATABASE_URL", url.expose())];
    assert!(crate::kit::run(folder.path(), &["db", "migrate"], &environment).status.success());
    let said = crate::kit::run(folder.path(), &["check"], &environment);
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(
        said.lines()
            .any(|line| line.starts_with("clock") && line.contains("ok") && line.contains("from the database's")),
        "{said}"
    );
}
