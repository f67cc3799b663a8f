//! Statements that take too long or that nobody waits for, searches of long tables, and what must not wait for either.

use std::time::Duration;

use base::id::{InstanceId, UserId};
use serde_json::{Value, json};
use store::Limits;
use store::db::Number;
use store::request_log::NewRequest;
use store::{Conn, Db, Dialect, Error};
use testkit::{until, until_within};
use tokio::task::JoinHandle;

use crate::kit::{Database, Options, Site, database_before};
use crate::on_both;

/// Pairs of numbers, more than any database counts while a test runs.
const ENDLESS: &str = "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 100000) \
    SELECT COUNT(*) AS n FROM numbers a CROSS JOIN numbers b WHERE a.n + b.n > 0";
const SOON: Duration = Duration::from_secs(4);

fn endless(db: &Db, count: usize, is_search: bool) -> Vec<JoinHandle<()>> {
    let read = |db: Db| async move {
        let conn = if is_search { Conn::Search(&db) } else { Conn::Db(&db) };
        conn.first::<Number>(ENDLESS, vec![]).await.ok();
    };
    (0..count).map(|_| tokio::spawn(read(db.clone()))).collect()
}

/// Waits until so many connections are in use.
async fn until_busy(db: &Db, count: usize) {
    until("the connections are busy", async || {
        let (open, idle) = db.connections();
        open as usize - idle >= count
    })
    .await;
}

async fn one(db: &Db) -> Result<i64, Error> {
    let number =
        tokio::time::timeout(SOON, Conn::from(db).one::<Number>("SELECT CAST(1 AS BIGINT) AS n", vec![])).await;
    number.expect("a plain read is answered at once").map(|number| number.n)
}

/// How many connections can read at once.
fn readers(db: &Db) -> usize {
    match db.dialect() {
        Dialect::Sqlite => 8,
        Dialect::Postgres => 20,
    }
}

on_both! {
    async fn a_statement_that_takes_too_long_is_ended(site: Site) {
        let limits = Limits { read: Duration::from_millis(400), search: Duration::from_millis(200), ..Limits::default() };
        let db = Db::open_with(&site.database_url, limits).await.unwrap();
        for conn in [Conn::from(&db), Conn::Search(&db)] {
            let ended = tokio::time::timeout(SOON, conn.first::<Number>(ENDLESS, vec![])).await.expect("it ends");
            assert!(matches!(ended, Err(Error::TooSlow(_))), "{:?}", ended.err());
        }
        assert_eq!(one(&db).await.unwrap(), 1, "the connection is good for the next");
        assert_eq!(one(&db.without_limit()).await.unwrap(), 1);
        let client = base::Error::from(tokio::time::timeout(SOON, db.all::<Number>(ENDLESS, vec![])).await.unwrap().err().unwrap());
        assert!(client.client.contains("took too long"), "{}", client.client);
    }

    /// As one types, each search is given up for the next.
    async fn a_read_ends_when_nobody_waits_for_it(site: Site) {
        let db = Db::open(&site.database_url).await.unwrap();
        let reads = endless(&db, readers(&db), false);
        until_busy(&db, readers(&db)).await;
        reads.iter().for_each(JoinHandle::abort);
        assert_eq!(one(&db).await.unwrap(), 1);
        if db.dialect() == Dialect::Postgres {
            let sql = "SELECT COUNT(*) AS n FROM pg_stat_activity WHERE datname = current_database() AND state = 'active' \
                AND query LIKE '%CROSS JOIN numbers%' AND pid <> pg_backend_pid()";
            until_within(Duration::from_secs(10), "the server has ended them too", async || {
                db.first::<Number>(sql, vec![]).await.unwrap().unwrap().n == 0
            })
            .await;
        }
    }

    async fn searches_keep_nobody_else_waiting(site: Site) {
        let db = Db::open(&site.database_url).await.unwrap();
        let searches = endless(&db, 40, true);
        until_busy(&db, 2).await;
        for _ in 0..20 {
            assert_eq!(one(&db).await.unwrap(), 1);
        }
        searches.iter().for_each(JoinHandle::abort);
    }

    /// A grant is decided while SQLite's one writer is held: whoever waits for a reader then lets everybody wait who writes.
    async fn a_grant_of_quota_needs_no_second_connection(site: Site) {
        let (app, db) = (&site.app, &site.app.db);
        let (user, _) = site.quick_employee("ada@example.com").await;
        let subject = llm::quota::Subject::user(app, &UserId::named(&user), 1_000_000).unwrap();
        let busy: usize = match db.dialect() {
            Dialect::Sqlite => 8,
            // The last one is for the transaction itself.
            Dialect::Postgres => 19,
        };
        let mut reads = vec![];
        until("but one connection is busy", async || {
            let (open, idle) = db.connections();
            let missing = busy.saturating_sub(open as usize - idle);
            reads.extend(endless(db, missing.min(1), false));
            missing == 0
        })
        .await;
        let reserved = tokio::time::timeout(SOON, app.quotas.reserve(app, &subject, 10)).await;
        let reserved = reserved.expect("nobody is waited for").unwrap();
        reserved.settle(0);
        reads.iter().for_each(JoinHandle::abort);
    }

    /// The rows of a busy key are more with every request; those before its user came are not.
    async fn what_was_spent_since_a_binding_is_not_summed_from_its_rows(site: Site) {
        let app = &site.app;
        site.instances("a", 1).await;
        add(site, "before", 5).await;
        site.wait(Duration::from_secs(1));
        let (user, _) = site.quick_employee("ada@example.com").await;
        site.admin.patch("/instances/a0/assign", json!({"user_id": user})).token(&site.root).ok().await;
        let began = app.clock.now();
        site.wait(Duration::from_secs(1));
        add(site, "since", 7).await;
        let spent = async || llm::usage::spent(app, &UserId::named(&user), app.zone.midnight(began)).await.unwrap();
        assert_eq!(spent().await, 7);
        app.db.run("DELETE FROM request_log WHERE created_at >= ?", store::args![began]).await.unwrap();
        assert_eq!(spent().await, 7, "by the sum that is kept");
    }

    async fn totals_are_kept_as_rows_are_added(site: Site) {
        let db = &site.app.db;
        site.instances("a", 2).await;
        add(site, "r1", 7).await;
        add(site, "r2", 5).await;
        let total = async || {
            let totals = store::usage::totals(db).await.unwrap();
            totals.iter().map(|t| (t.key.clone(), t.sums.requests, t.sums.tokens())).collect::<Vec<_>>()
        };
        assert_eq!(total().await, [("a0".to_owned(), 2, 12)]);
        // Where a replica of an older release wrote rows.
        db.run("UPDATE usage_total SET requests = 99", vec![]).await.unwrap();
        assert_eq!((store::usage::recount(db).await.unwrap(), store::usage::recount(db).await.unwrap()), (1, 0));
        assert_eq!(total().await, [("a0".to_owned(), 2, 12)]);
        // The history is not read for them.
        db.run("DELETE FROM usage_daily", vec![]).await.unwrap();
        assert_eq!(store::usage::copy_totals(db).await.unwrap(), 1);
        assert_eq!(store::usage::copy_totals(db).await.unwrap(), 0, "nothing changed since");
        let instance = store::instance::find(db, &InstanceId::named("a0")).await.unwrap().unwrap();
        assert_eq!((instance.total_requests, instance.total_tokens), (2, 12));
    }

    /// However many instances there are, one query says which keys are to be looked at.
    async fn quotas_of_days_are_compared_by_one_query_on_the_leader(site: Site) {
        let (app, db) = (&site.app, &site.app.db);
        let ids = site.instances("a", 4).await;
        for (number, id) in ids.iter().enumerate() {
            let (user, _) = site.quick_employee(&format!("u{number}@example.com")).await;
            site.admin.patch(&format!("/instances/{id}/assign"), json!({"user_id": user})).token(&site.root).ok().await;
            site.admin.patch(&format!("/users/{user}"), json!({"quota_daily": 10})).token(&site.root).ok().await;
            site.admin.post("/keys", json!({"instance_id": id})).token(&site.root).ok().await;
        }
        site.wait(Duration::from_secs(1));
        add(site, "r1", 11).await;
        let midnight = app.zone.midnight(app.clock.now());
        let date = app.zone.date(midnight).to_string();
        let due = store::gateway_key::spent_days(db, &date, midnight, false).await.unwrap();
        assert_eq!(due.iter().map(|d| (d.at_most, d.is_partial, d.quota_spent)).collect::<Vec<_>>(), [(11, true, false)]);
        let spent = async || {
            let keys = site.admin.get("/keys?limit=100").token(&site.root).ok().await;
            keys["list"].as_array().unwrap().iter().filter(|key| key["quota_spent"] == true).count()
        };
        let schedulers = [(); 2].map(|()| queue::job::Scheduler::new(app.clone(), &[], queue::job::Timing::default()));
        for scheduler in &schedulers {
            scheduler.tick().await.unwrap();
        }
        assert!(!llm::watch::watch_once(app, &schedulers[1].leads()).await, "another one leads");
        assert_eq!(spent().await, 0);
        assert!(llm::watch::watch_once(app, &schedulers[0].leads()).await);
        assert_eq!(spent().await, 1);
        // A key that the gateway does not follow, and for which no task waits.
        let key = store::gateway_key::named(db, "a1").await.unwrap().unwrap();
        db.run("UPDATE gateway_key SET dirty = 1 WHERE id = ?", store::args![&key.id]).await.unwrap();
        let overdue = async || {
            let around = ("{\"key_id\":\"", "\"}");
            let later = app.clock.now() + jiff::SignedDuration::from_secs(1);
            store::gateway_key::overdue(db, "apply_key", around, later..=later, later..=later, 10).await.unwrap().len()
        };
        assert_eq!(overdue().await, 2, "it, and the one that was switched off");
        let task = json!({"type": "apply_key", "payload": {"key_id": key.id}});
        site.admin.post("/tasks", task).token(&site.root).ok().await;
        assert_eq!(overdue().await, 1);
    }
}

async fn a_search_names_how_far_back_it_came(database: Database) {
    let limits = Limits { log_rows: 1000, message_rows: 1000, ..Limits::default() };
    let site = &Site::with(database, Options { limits, ..Options::default() }).await;
    site.instances("a", 1).await;
    site.admin.patch("/assistant-instances/a0", json!({"name": "小明"})).token(&site.root).ok().await;
    let (user, token) = site.quick_employee("ada@example.com").await;
    fill(site, &user).await;
    let found = async |path: &str| {
        let answer = match path.starts_with("/me") {
            true => site.employee.get(path).token(&token).ok().await,
            false => site.admin.get(path).token(&site.root).ok().await,
        };
        (answer["total"].as_i64().unwrap(), answer["searched_since"].clone())
    };
    for list in ["/llm-request-logs?limit=5", "/audit-logs?limit=5", "/me/chat/history?size=5"] {
        // A name of two characters, in one of the newest rows.
        let (total, since) = found(&format!("{list}&q=张伟")).await;
        assert_eq!(total, 1, "{list}");
        let since = since.as_str().unwrap_or_else(|| panic!("{list} says how far back it looked")).replace('+', "%2B");
        let (total, again) = found(&format!("{list}&q=李娜")).await;
        assert_eq!((total, again.is_null()), (0, false), "{list}: the oldest row is not looked at yet");
        let (total, end) = found(&format!("{list}&q=李娜&search_before={since}")).await;
        assert_eq!((total, end), (1, Value::Null), "{list}: nothing is older");
        let (total, _) = found(&format!("{list}&q=张伟&search_before={since}")).await;
        assert_eq!(total, 0, "{list}: what was looked through is not looked through again");
    }
    // By the name of its instance, and by a model that no index knows.
    assert_eq!(found("/llm-request-logs?q=小明").await.0, 1);
    let (total, since) = found("/llm-request-logs?model=rare").await;
    assert_eq!((total, since.is_null()), (1, false));
    // An export has all, however long it takes.
    let file = site.admin.get("/audit-logs/export?q=李娜").token(&site.root).send().await.text;
    assert_eq!(file.lines().count(), 2, "{file}");
    site.check().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_names_how_far_back_it_came_sqlite() {
    a_search_names_how_far_back_it_came(Database::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_names_how_far_back_it_came_postgres() {
    if let Some(database) = Database::postgres("reads::a_search_names_how_far_back_it_came").await {
        a_search_names_how_far_back_it_came(database).await;
    }
}

/// A successful request of a0, now.
pub async fn add(site: &Site, id: &str, tokens: i64) {
    let row = NewRequest {
        request_id: id.into(),
        token_name: "a0".into(),
        model: "gpt-4o".into(),
        provider: "ch-1".into(),
        kind: store::request_log::RequestType::SUCCESS,
        is_stream: false,
        prompt_tokens: tokens,
        completion_tokens: 0,
        quota: tokens,
        duration_ms: 1,
        error_message: String::new(),
        estimated: false,
        detail: Default::default(),
        created_at: site.app.clock.now(),
    };
    let mut tx = site.app.db.begin().await.unwrap();
    store::request_log::add(&mut tx, &site.app.zone, &[row]).await.unwrap();
    tx.commit().await.unwrap();
}

/// More rows than a search looks through, one each second until now. The oldest and one of the newest have a name in them.
async fn fill(site: &Site, user: &str) {
    let mut tx = site.app.db.begin().await.unwrap();
    let now = site.app.clock.now().as_millisecond();
    let numbers = |rows: i64| {
        let text = format!(
            "CASE n WHEN 1 THEN 'asked by 李娜' WHEN {} THEN 'asked by 张伟' ELSE 'request ' || n END, {now} - ({rows} - n) * 1000",
            rows - 3
        );
        let from =
            format!("WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {rows})");
        (from, text)
    };
    let (from, text) = numbers(2_100);
    let log = "INSERT INTO request_log (request_id, token_name, model, provider, type, is_stream, prompt_tokens, completion_tokens, \
        quota, duration_ms, estimated, error_message, created_at)";
    let sql = format!(
        "{log} {from} SELECT 'fill-' || n, CASE n WHEN 2099 THEN 'a0' ELSE 'nobody' END, CASE n WHEN 2098 THEN 'rare' ELSE 'gpt-4o' END, \
         'openai', 5, 0, 0, 0, 0, 1, 0, {text} FROM numbers"
    );
    tx.run(&sql, vec![]).await.unwrap();
    let sql = format!(
        "INSERT INTO audit_log (operator, operator_key, action, level, target, ip, user_agent, detail, created_at) {from} \
         SELECT 'System', 'system', 'config.change', 'INFO', 'filled', '', '', {text} FROM numbers"
    );
    tx.run(&sql, vec![]).await.unwrap();
    let sql = format!(
        "INSERT INTO chat_message (id, user_id, instance_id, role, tokens, content, created_at) {from} \
         SELECT 'm-' || n, ?, 'a0', 'user', 0, {text} FROM numbers"
    );
    tx.run(&sql, store::args![user]).await.unwrap();
    tx.commit().await.unwrap();
}

/// A database of the release before the totals, with days in it.
async fn totals_of_an_older_database(database: Database) {
    let db = database_before(19, &database.url).await;
    for (date, requests) in [("2026-11-01", 2), ("2026-11-02", 3)] {
        let sql = "INSERT INTO usage_daily (date, token_name, model, provider, requests, errors, prompt_tokens, completion_tokens, quota) \
            VALUES (?, 'a0', 'gpt-4o', 'ch-1', ?, 1, 10, 20, 5)";
        db.run(sql, store::args![date, requests]).await.unwrap();
    }
    store::migrate::run(&db).await.unwrap();
    let totals = store::usage::totals(&db).await.unwrap();
    let sums = store::usage::Sums {
        requests: 5,
        errors: 2,
        prompt_tokens: 20,
        completion_tokens: 40,
        units: 10,
        ..Default::default()
    };
    assert_eq!(totals.iter().map(|t| (t.key.as_str(), t.sums)).collect::<Vec<_>>(), [("a0", sums)]);
    assert_eq!(store::usage::recount(&db).await.unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn totals_of_an_older_database_sqlite() {
    totals_of_an_older_database(Database::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn totals_of_an_older_database_postgres() {
    if let Some(database) = Database::postgres("reads::totals_of_an_older_database").await {
        totals_of_an_older_database(database).await;
    }
}
