//! The reader that follows a foreign log into ours: every row once, late, odd, after a crash and by two at a time; and
//! what it says when it cannot.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use base::{Clock, Secret, Zone};
use jiff::{SignedDuration, Timestamp};
use llm::usage::reader::{Reader, follow};
use llm::usage::{AsOf, Feed as _};
use remote::llm::Gateway;
use sim::with;
use store::foreign::LogKind;
use store::{Db, args, record, usage_source};
use tempfile::TempDir;
use testkit::until_ok;
use tokio::io::AsyncReadExt as _;

use crate::bench::{Bench, Server, Setup, open, setup};
use crate::on_every_log;

/// Our own database, on a server of its own kind.
struct Ours {
    url: Secret,
    db: Db,
    clock: Clock,
    _folder: Option<TempDir>,
}

record! {
    #[derive(Debug, PartialEq, Eq)]
    struct Total { token_name: String, requests: i64, tokens: i64, quota: i64, rows: i64 }
}

/// The least time between the beginnings of two pulls.
const EVERY: SignedDuration = SignedDuration::from_secs(1);

type Totals = BTreeMap<String, (i64, i64, i64)>;

impl Ours {
    async fn new(server: Server) -> Ours {
        let (url, folder) = match (server, std::env::var("TIDEPOOL_TEST_PG_URL")) {
            (Server::Postgres, Ok(server)) => {
                let name = format!("t_{}", base::id::fresh().replace('-', ""));
                let admin = Db::open(&Secret::new(&server)).await.unwrap();
                admin.run(&format!("CREATE DATABASE {name}"), vec![]).await.unwrap();
                admin.close().await;
                let (server, _) = server.rsplit_once('/').unwrap();
                (Secret::new(format!("{server}/{name}")), None)
            }
            _ => {
                let folder = tempfile::tempdir().unwrap();
                let url = Secret::new(format!("sqlite:{}", folder.path().join("ours.db").display()));
                (url, Some(folder))
            }
        };
        let db = Db::open(&url).await.unwrap();
        store::migrate::run(&db).await.unwrap();
        Ours { url, db, clock: Clock::manual(Timestamp::now()), _folder: folder }
    }

    fn reader(&self, bench: &Bench) -> Reader {
        self.reader_of(bench, bench.gateway.clone(), &bench.sim().log_url)
    }

    /// A reader whose pulls are waited for to their end, however busy the machine is.
    fn reader_of(&self, bench: &Bench, gateway: Arc<dyn Gateway>, log: &Secret) -> Reader {
        let kind = LogKind::find(bench.setup.kind).unwrap();
        let (db, clock, zone) = (self.db.clone(), self.clock.clone(), Zone::named("UTC").unwrap());
        Reader::new(db, clock, zone, gateway, kind, log.clone()).with_patience(testkit::LIMIT)
    }

    /// What a process that has just started reads.
    async fn read(&self, bench: &Bench) -> AsOf {
        let reader = self.reader(bench);
        let as_of = reader.pull().await;
        assert!(!as_of.stale, "{:?}", reader.trouble());
        as_of
    }

    async fn totals(&self) -> Vec<Total> {
        let sql = "SELECT token_name, CAST(SUM(CASE WHEN type = 2 THEN 1 ELSE 0 END) AS BIGINT) AS requests, \
            CAST(SUM(CASE WHEN type = 2 THEN prompt_tokens + completion_tokens ELSE 0 END) AS BIGINT) AS tokens, \
            CAST(SUM(CASE WHEN type = 2 THEN quota WHEN type = 6 THEN -quota ELSE 0 END) AS BIGINT) AS quota, \
            COUNT(*) AS rows FROM request_log GROUP BY token_name ORDER BY token_name";
        let totals: Vec<Total> = self.db.all(sql, args![]).await.unwrap();
        // The sums beside the rows agree with them.
        let sql = "SELECT token_name, CAST(SUM(requests) AS BIGINT) AS requests, \
            CAST(SUM(prompt_tokens + completion_tokens) AS BIGINT) AS tokens, CAST(SUM(quota) AS BIGINT) AS quota, \
            CAST(SUM(requests + errors) AS BIGINT) AS rows FROM usage_slot GROUP BY token_name ORDER BY token_name";
        assert_eq!(self.db.all::<Total>(sql, args![]).await.unwrap(), totals);
        totals
    }

    async fn sums(&self) -> Totals {
        let known = |t: Total| (t.requests > 0).then_some((t.token_name, (t.requests, t.tokens, t.quota)));
        self.totals().await.into_iter().filter_map(known).collect()
    }

    async fn rows(&self) -> i64 {
        self.totals().await.iter().map(|t| t.rows).sum()
    }

    async fn gaps(&self, bench: &Bench) -> Vec<std::ops::RangeInclusive<i64>> {
        let gaps = usage_source::gaps(&self.db, bench.setup.kind).await.unwrap();
        gaps.into_iter().map(|gap| gap.ids).collect()
    }
}

/// What a plain SUM over the gateway's own log says.
async fn theirs(bench: &Bench) -> Totals {
    let ever =
        bench.log().sums(Timestamp::UNIX_EPOCH, Timestamp::now() + SignedDuration::from_hours(48)).await.unwrap();
    let known = ever.into_iter().filter(|s| !s.token_name.is_empty() && s.requests > 0);
    known.map(|s| (s.token_name, (s.requests, s.prompt_tokens + s.completion_tokens, s.quota))).collect()
}

const COLUMNS: &str =
    "id, created_at, type, token_name, model_name, quota, prompt_tokens, completion_tokens, channel_id";

async fn numbered(bench: &Bench, id: i64, at: Timestamp, kind: i64, name: &str, quota: i64) {
    let values = format!("{id}, {}, {kind}, '{name}', 'm', {quota}, 2, 1, 7", at.as_second());
    bench.log_row(COLUMNS, &values).await;
}

on_every_log! {
    async fn every_row_arrives_once(bench: Bench) {
        let ours = Ours::new(bench.setup.server).await;
        assert_eq!(ours.read(bench).await.at, ours.clock.now());
        assert_eq!(ours.rows().await, 0);
        let (a, b) = (bench.create("inst-a", None).await, bench.create("inst-b", None).await);
        for i in 0..7 {
            bench.say(if i % 2 == 0 { &a } else { &b }, "one two three").await;
        }
        bench.chat(a.key.as_ref().unwrap(), "gpt-4o", "quatre mots en français", true).await;
        bench.written().await;
        ours.read(bench).await;
        assert_eq!(ours.rows().await, 8);
        assert_eq!(ours.sums().await, theirs(bench).await);
        // Nothing new; a restart; a second process.
        ours.read(bench).await;
        ours.read(bench).await;
        assert_eq!(ours.rows().await, 8);
        bench.say(&b, "and one more").await;
        bench.written().await;
        ours.read(bench).await;
        assert_eq!(ours.rows().await, 9);
        assert_eq!(ours.sums().await, theirs(bench).await);
        // The gateway's log may be emptied: what was read is ours.
        let kept = ours.sums().await;
        let table = if bench.family() { "logs" } else { "\"LiteLLM_SpendLogs\"" };
        bench.sim().log.run(&format!("DELETE FROM {table}"), vec![]).await.unwrap();
        ours.read(bench).await;
        assert_eq!(ours.sums().await, kept);
        bench.say(&a, "hello again").await;
        bench.written().await;
        ours.read(bench).await;
        assert_eq!(ours.rows().await, 10);
    }

    async fn a_row_that_comes_late_arrives_once(bench: Bench) {
        let ours = Ours::new(bench.setup.server).await;
        let now = ours.clock.now();
        if !bench.family() {
            return late_by_time(bench, &ours).await;
        }
        let hour_ago = now - SignedDuration::from_hours(1);
        for (id, at) in [(3, hour_ago), (5, hour_ago), (8, now), (10, now), (14, now)] {
            numbered(bench, id, at, 2, "inst-x", 10).await;
        }
        // A top-up is nobody's request, but it has a number.
        numbered(bench, 9, now, 1, "", 5_000_000).await;
        ours.read(bench).await;
        assert_eq!(ours.rows().await, 5);
        assert_eq!(ours.gaps(bench).await, [6..=7, 11..=13], "beside an old row nothing is late");
        numbered(bench, 12, now, 2, "inst-x", 100).await;
        numbered(bench, 7, now, 2, "inst-y", 1000).await;
        numbered(bench, 4, now, 2, "inst-z", 1).await;
        ours.read(bench).await;
        ours.read(bench).await;
        assert_eq!(ours.gaps(bench).await, [6..=6, 11..=11, 13..=13]);
        assert_eq!(ours.rows().await, 7);
        ours.clock.advance(SignedDuration::from_mins(9));
        numbered(bench, 6, now, 2, "inst-x", 7).await;
        ours.read(bench).await;
        assert_eq!(ours.rows().await, 8);
        assert_eq!(ours.gaps(bench).await, [11..=11, 13..=13]);
        // After ten minutes nobody waits any longer.
        ours.clock.advance(SignedDuration::from_mins(1));
        numbered(bench, 13, now, 2, "inst-x", 7).await;
        ours.read(bench).await;
        assert!(ours.gaps(bench).await.is_empty());
        assert_eq!(ours.rows().await, 8);
        let sums = ours.sums().await;
        assert_eq!(sums["inst-x"], (7, 21, 157));
        assert_eq!(sums["inst-y"], (1, 3, 1000));
    }
}

/// A row of litellm's, written by hand, of a request that began `at` and took a quarter of a second.
async fn spend(bench: &Bench, request_id: &str, alias: &str, at: Timestamp) {
    let sql = "INSERT INTO \"LiteLLM_SpendLogs\" (request_id, call_type, spend, prompt_tokens, \"startTime\", \"endTime\", \
        metadata) VALUES (?, 'acompletion', 0.00002, 3, TIMESTAMP '1970-01-01' + CAST(? AS BIGINT) * INTERVAL \
        '1 millisecond', TIMESTAMP '1970-01-01' + CAST(? AS BIGINT) * INTERVAL '1 millisecond', \
        jsonb_build_object('user_api_key_alias', CAST(? AS TEXT)))";
    let ms = at.as_millisecond();
    bench.sim().log.run(sql, with![request_id, ms, ms + 250, alias]).await.unwrap();
}

async fn late_by_time(bench: &Bench, ours: &Ours) {
    let now = ours.clock.now();
    let ago = |minutes| now - SignedDuration::from_mins(minutes);
    for (id, minutes) in [("a", 120), ("b", 30), ("c", 0)] {
        spend(bench, id, "inst-x", ago(minutes)).await;
    }
    spend(bench, "nobody's", "", ago(1)).await;
    let reader = ours.reader(bench);
    reader.pull().await;
    assert_eq!(ours.rows().await, 3);
    // Requests that began before what was read, and ended only now: close by, far, and further than anybody looks.
    for (id, minutes) in [("close", 0), ("far", 50), ("too far", 90)] {
        spend(bench, id, "inst-x", ago(minutes) - SignedDuration::from_secs(20)).await;
    }
    ours.clock.advance(EVERY);
    reader.pull().await;
    assert_eq!(ours.rows().await, 4, "the close one at once");
    ours.read(bench).await;
    assert_eq!(ours.rows().await, 5, "the far one when it is looked for");
    // Whoever comes next knows what is there already.
    ours.read(bench).await;
    ours.clock.advance(EVERY);
    reader.pull().await;
    assert_eq!(ours.rows().await, 5);
    assert_eq!(ours.sums().await["inst-x"], (5, 15, 50));
}

/// Processes that read at the same time and die at any moment, over rows that become visible in any order and are
/// deleted again once they were read.
async fn crashes(setup: Setup, name: &str) {
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
async fn crashes_of_two_readers_lose_and_repeat_nothing_one_api_sqlite() {
    let name = "reader::crashes_of_two_readers_lose_and_repeat_nothing_one_api_sqlite";
    crashes(setup("one-api", Server::Sqlite), name).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn crashes_of_two_readers_lose_and_repeat_nothing_one_api_postgres() {
    let name = "reader::crashes_of_two_readers_lose_and_repeat_nothing_one_api_postgres";
    crashes(setup("one-api", Server::Postgres), name).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn crashes_of_two_readers_lose_and_repeat_nothing_new_api_mariadb() {
    let name = "reader::crashes_of_two_readers_lose_and_repeat_nothing_new_api_mariadb";
    crashes(setup("new-api", Server::Mariadb), name).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn crashes_of_two_readers_lose_and_repeat_nothing_litellm_postgres() {
    let name = "reader::crashes_of_two_readers_lose_and_repeat_nothing_litellm_postgres";
    crashes(setup("litellm", Server::Postgres), name).await;
}

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
async fn a_pull_begins_once_a_second() {
    let bench = Bench::start(setup("one-api", Server::Sqlite), "").await.unwrap();
    let ours = Ours::new(Server::Sqlite).await;
    let reader = ours.reader(&bench);
    reader.pull().await;
    numbered(&bench, 1, Timestamp::now(), 2, "inst-a", 1).await;
    ours.clock.advance(EVERY - SignedDuration::from_millis(1));
    for _ in 0..50 {
        reader.pull().await;
    }
    assert_eq!(ours.rows().await, 0, "the last pull was just now");
    ours.clock.advance(SignedDuration::from_millis(1));
    reader.pull().await;
    assert_eq!(ours.rows().await, 1);
}

/// The time itself is the subject: two pulls, a second apart.
#[tokio::test(flavor = "multi_thread")]
async fn alone_a_row_is_there_within_two_seconds() {
    let bench = Bench::start(setup("one-api", Server::Sqlite), "").await.unwrap();
    let ours = Ours { clock: Clock::default(), ..Ours::new(Server::Sqlite).await };
    let reader = Arc::new(ours.reader(&bench));
    let following = tokio::spawn({
        let reader = reader.clone();
        async move { follow(&*reader, &base::Heartbeats::default()).await }
    });
    for id in 1..=2 {
        numbered(&bench, id, Timestamp::now(), 2, "inst-a", 1).await;
        let visible = Instant::now();
        // The rows alone: the reader may write between two questions, and then the sums would be of more rows.
        until_ok("the row is read", async || {
            let sql = "SELECT COUNT(*) AS n FROM request_log";
            match ours.db.first::<store::row::Number>(sql, args![]).await.unwrap().unwrap().n {
                rows if rows == id => Ok(()),
                rows => Err(rows),
            }
        })
        .await;
        assert!(visible.elapsed() < Duration::from_secs(2), "{:?}", visible.elapsed());
    }
    following.abort();
    following.await.ok();
    assert_eq!(ours.rows().await, 2);
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

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_was_overtaken_is_none() {
    for server in [Server::Sqlite, Server::Postgres] {
        let ours = Ours::new(server).await;
        let start = store::foreign::Position::Id(7);
        let from = usage_source::find(&ours.db, "some log", &start).await.unwrap();
        assert_eq!((&from.position, from.updated_at), (&start, Timestamp::UNIX_EPOCH));
        // Two that found the same late row want to write it, and neither moves the position.
        let to = usage_source::Source { position: start, updated_at: Timestamp::now() };
        for expected in [true, false] {
            let mut tx = ours.db.begin().await.unwrap();
            assert_eq!(usage_source::step(&mut tx, "some log", &from, &to).await.unwrap(), expected);
            tx.commit().await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_that_find_a_late_row_at_one_moment_write_it_once() {
    let bench = Bench::start(setup("one-api", Server::Sqlite), "").await.unwrap();
    let ours = Ours::new(Server::Sqlite).await;
    numbered(&bench, 100, Timestamp::now(), 2, "inst-a", 1).await;
    ours.read(&bench).await;
    for late in 1..40 {
        numbered(&bench, late, Timestamp::now(), 2, "inst-a", 1).await;
        let (one, two) = (ours.reader(&bench), ours.reader(&bench));
        tokio::join!(one.pull(), two.pull());
        assert_eq!(ours.rows().await, late + 1);
    }
}
