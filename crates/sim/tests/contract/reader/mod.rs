//! The reader that follows a foreign log into ours: every row once, late, by two at a time, after a crash (`crash`); and
//! what it says when it cannot (`trouble`).

mod crash;
mod trouble;

use std::collections::BTreeMap;
use std::sync::Arc;
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

use crate::bench::{Bench, Server, setup};
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
    struct Total { token_name: String, requests: i64, tokens: i64, nano: i64, rows: i64 }
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
            CAST(SUM((CASE type WHEN 2 THEN 1 WHEN 6 THEN -1 ELSE 0 END) * (quota * 2000 + quota_rest)) AS BIGINT) AS nano, \
            COUNT(*) AS rows FROM request_log GROUP BY token_name ORDER BY token_name";
        let totals: Vec<Total> = self.db.all(sql, args![]).await.unwrap();
        // The sums beside the rows agree with them.
        let sql = "SELECT token_name, CAST(SUM(requests) AS BIGINT) AS requests, \
            CAST(SUM(prompt_tokens + completion_tokens) AS BIGINT) AS tokens, CAST(SUM(quota * 2000 + quota_rest) AS BIGINT) AS nano, \
            CAST(SUM(requests + errors) AS BIGINT) AS rows FROM usage_slot GROUP BY token_name ORDER BY token_name";
        assert_eq!(self.db.all::<Total>(sql, args![]).await.unwrap(), totals);
        totals
    }

    async fn sums(&self) -> Totals {
        let known = |t: Total| {
            (t.requests > 0).then_some((t.token_name, (t.requests, t.tokens, (t.nano + 1_000).div_euclid(2_000))))
        };
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
