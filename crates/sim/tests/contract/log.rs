//! The log: every row in order, late ones asked for again, NULLs and old tables read, sums to the unit.

use base::Secret;
use jiff::{SignedDuration, Timestamp};
use sim::with;
use store::foreign::{ForeignLog, LogKind, Position, Sums, Token};
use store::request_log::RequestType;

use crate::bench::{Bench, Server, Setup, fault, setup};
use crate::on_every_log;

/// Around now, whole seconds and all.
fn today() -> (Timestamp, Timestamp) {
    let day = SignedDuration::from_hours(24);
    (Timestamp::now() - day, Timestamp::now() + day)
}

/// What rows cost together, rounded once.
fn cost<'a>(rows: impl Iterator<Item = &'a store::foreign::ForeignRow>) -> i64 {
    let nano: i64 = rows.map(|row| row.quota * 2_000 + row.quota_rest).sum();
    (nano + 1_000).div_euclid(2_000)
}

async fn sums(bench: &Bench) -> Vec<Sums> {
    let (from, to) = today();
    let mut sums = bench.log().sums(from, to).await.unwrap();
    sums.sort_by(|a, b| a.token_name.cmp(&b.token_name));
    sums
}

on_every_log! {
    async fn every_request_is_a_row(bench: Bench) {
        assert_eq!(bench.log().newest().await.unwrap(), None);
        assert!(bench.log().after(&bench.log().start(), 10).await.unwrap().is_empty());
        assert!(sums(bench).await.is_empty());
        let began = Timestamp::now();
        let (a, b) = (bench.create("inst-a", None).await, bench.create("inst-b", Some(1_000_000)).await);
        bench.say(&a, "one two three").await;
        let (status, body) = bench.chat(b.key.as_ref().unwrap(), "gpt-4o", "un deux trois quatre", true).await;
        assert!(status == 200 && body.ends_with("data: [DONE]\n\n"), "{body}");
        for _ in 0..5 {
            bench.say(&b, "hello").await;
        }
        bench.written().await;

        let rows = bench.rows().await;
        assert_eq!(rows.len(), 7, "{rows:#?}");
        assert!(rows.iter().all(|row| row.kind == RequestType::SUCCESS && row.error_message.is_empty()));
        let first = rows.iter().find(|row| row.token_name == "inst-a").unwrap();
        assert_eq!(first.model, "gpt-4o-mini");
        // The real LiteLLM takes the time of an answer's end twice: an answer in one piece can look like a short stream.
        assert!(!first.is_stream || bench.is_real());
        assert_eq!((first.prompt_tokens, first.completion_tokens), (3, 3));
        assert_eq!(first.provider, if bench.family() { "ch-1" } else { "openai" });
        let stream = rows.iter().find(|row| row.model == "gpt-4o").unwrap();
        let knows_streams = !(bench.is("one-api") && bench.setup.schema == Schema::Old);
        assert_eq!((stream.token_name.as_str(), stream.is_stream), ("inst-b", knows_streams));
        // (4 + 4 × 4) × 1.25, or 4 × 2.5 + 4 × 10 millionths of a dollar.
        assert_eq!(stream.quota, 25);
        for row in &rows {
            // To the second, as some gateways write it.
            let (second, now) = (SignedDuration::from_secs(1), Timestamp::now());
            assert!((began - second..=now + second).contains(&row.created_at), "{row:?}");
            let old = bench.setup.schema == Schema::Old && bench.family();
            assert_eq!(row.request_id.is_empty(), old, "{row:?}");
            assert!((0..=(now + second).duration_since(began).as_millis() as i64).contains(&row.duration_ms), "{row:?}");
        }
        assert_eq!(bench.log().newest().await.unwrap().as_ref(), rows.last().map(|row| &row.position));
        assert!(bench.log().after(&rows[6].position, 10).await.unwrap().is_empty());
        assert_eq!(bench.log().after(&rows[3].position, 10).await.unwrap(), &rows[4..]);
        // A position that was kept as text leads to the same place.
        let kept: Position = rows[3].position.to_string().parse().unwrap();
        assert_eq!(bench.log().after(&kept, 1).await.unwrap(), &rows[4..5]);

        let all = sums(bench).await;
        assert_eq!(all.iter().map(|s| s.requests).collect::<Vec<_>>(), [1, 6]);
        assert_eq!(all[1].prompt_tokens, 9);
        assert_eq!(all[1].quota, cost(rows.iter().filter(|row| row.token_name == "inst-b")));
        // (1 + 1 × 4) × 0.075 is a unit; a litellm charges 0.375 of one, and the sum of five is rounded once.
        assert_eq!(all[1].quota, if bench.is("litellm") { 27 } else { 30 });
        // Sums of a time are of that time.
        let (from, _) = today();
        assert!(bench.log().sums(from, from + SignedDuration::from_hours(1)).await.unwrap().is_empty());

        // What the gateway counts beside its log agrees with it.
        let used = bench.gateway.read_key(&b.gateway_id).await.unwrap().unwrap().used_quota;
        let counted = bench.log().token_used(Token::Id(&b.gateway_id)).await.unwrap().unwrap();
        assert_eq!((counted.name.as_str(), counted.used_quota), ("inst-b", used));
        assert_eq!(counted.remain_quota, Some(1_000_000 - used));
        assert_eq!(counted.owner_quota.is_some(), bench.family());
        assert_eq!(bench.log().token_used(Token::Name("inst-b")).await.unwrap(), Some(counted));
        assert_eq!(bench.log().token_used(Token::Name("INST-B")).await.unwrap(), None);
        assert_eq!(bench.log().token_used(Token::Id("987654321")).await.unwrap(), None);
        let unlimited = bench.log().token_used(Token::Id(&a.gateway_id)).await.unwrap().unwrap();
        assert_eq!(unlimited.remain_quota, None);
        bench.gateway.delete_key(&a.gateway_id).await.unwrap();
        assert_eq!(bench.log().token_used(Token::Id(&a.gateway_id)).await.unwrap(), None);
    }

    async fn what_came_from_a_cache_is_told_where_the_log_says_it(bench: Bench) {
        let key = bench.create("inst-cached", None).await;
        let texts = ["one two three four", "five"];
        for stream in [false, true] {
            let (status, body) = bench.converse(key.key.as_ref().unwrap(), "gpt-4o-mini", &texts, stream).await;
            assert_eq!(status, 200, "{body}");
        }
        bench.written().await;
        let rows = bench.rows().await;
        assert_eq!(rows.len(), 2);
        for row in &rows {
            let detail = &row.detail;
            if bench.is("one-api") {
                assert_eq!(detail, &Default::default(), "its log has no column for any of it");
                continue;
            }
            assert_eq!((row.prompt_tokens, detail.known_input_tokens, detail.cache_read_tokens), (5, Some(5), Some(4)));
            assert_eq!(detail.cache_write_tokens.unwrap_or(0), 0);
            assert_eq!(detail.protocol, "chat");
            let knows_tries = bench.is("new-api") || bench.setup.schema == Schema::Current;
            assert_eq!(detail.retries, knows_tries.then_some(0));
            // The real LiteLLM may take an answer in one piece for a short stream.
            assert_eq!(detail.first_byte_ms.is_some(), row.is_stream, "{row:?}");
        }
    }

    async fn failures_are_rows_where_the_gateway_writes_them(bench: Bench) {
        let key = bench.create("inst-fail", None).await;
        bench.provider_down();
        bench.sim().switches.set(|s| &s.log_errors, bench.is("new-api"));
        let (status, _) = bench.chat(key.key.as_ref().unwrap(), "gpt-4o-mini", "hello", false).await;
        assert_eq!(status, 500);
        bench.written().await;
        // The real LiteLLM writes it some seconds later.
        let rows = testkit::until_ok("the failure is in the log", async || {
            let rows = bench.rows().await;
            if rows.is_empty() && bench.logs_failures() { Err("no row") } else { Ok(rows) }
        })
        .await;
        if !bench.logs_failures() {
            assert!(rows.is_empty(), "it never writes them");
            return;
        }
        assert_eq!(rows.len(), 1);
        // An old litellm has no column that says so.
        let message = !(bench.is("litellm") && bench.setup.schema == Schema::Old);
        assert_eq!(rows[0].kind, if message { RequestType::ERROR } else { RequestType::SUCCESS });
        assert_eq!(!rows[0].error_message.is_empty(), message, "{:?}", rows[0]);
        // The real LiteLLM notes its own estimate of what was asked.
        assert_eq!((rows[0].quota, if bench.is_real() { 0 } else { rows[0].prompt_tokens }), (0, 0));
        assert_eq!(sums(bench).await.len(), usize::from(!message));
    }

    async fn late_odd_and_refunded_rows_are_read_right(bench: Bench) {
        if !bench.family() {
            return litellm_rows(bench).await;
        }
        let now = Timestamp::now().as_second();
        let columns = "id, created_at, type, token_name, model_name, quota, prompt_tokens, completion_tokens, channel_id";
        bench.log_row(columns, &format!("100, {now}, 2, 'inst-x', 'm', 10, 1, 2, 7")).await;
        // Nothing but a number.
        bench.log_row("id", "102").await;
        // A top-up is worth a lot, and is nobody's request.
        bench.log_row(columns, &format!("103, {now}, 1, '', '', 5000000, 0, 0, 0")).await;
        let ids = |rows: &[store::foreign::ForeignRow]| rows.iter().map(|r| r.position.id().unwrap()).collect::<Vec<_>>();
        let rows = bench.rows().await;
        assert_eq!(ids(&rows), [100, 102, 103]);
        assert_eq!(rows[0].provider, "ch-7");
        assert_eq!((rows[1].kind.number(), rows[1].quota, rows[1].duration_ms, rows[1].is_stream), (0, 0, 0, false));
        assert_eq!((rows[1].token_name.as_str(), rows[1].model.as_str(), rows[1].provider.as_str()), ("", "", ""));
        assert_eq!(rows[1].created_at, Timestamp::UNIX_EPOCH);

        // The number that was missing becomes visible late.
        assert!(bench.log().between(&[101..=101, 104..=i64::MAX], 10).await.unwrap().is_empty());
        bench.log_row(columns, &format!("101, {now}, 2, 'inst-x', 'm', 20, 3, 4, 7")).await;
        assert_eq!(ids(&bench.log().between(&[101..=101, 104..=110], 10).await.unwrap()), [101]);
        assert_eq!(ids(&bench.log().between(&[0..=100, 102..=103], 2).await.unwrap()), [100, 102]);
        assert!(bench.log().between(&[], 10).await.unwrap().is_empty());
        let many: Vec<_> = (0..400).map(|i| i * 2..=i * 2).collect();
        assert_eq!(ids(&bench.log().between(&many, 10).await.unwrap()), [100, 102]);

        // Types that mean other things to the two.
        bench.log_row(columns, &format!("104, {now}, 6, 'inst-x', 'm', 7, 0, 0, 7")).await;
        let content = "token 0123456789";
        bench
            .log_row(&format!("{columns}, content"), &format!("105, {now}, 5, 'inst-x', 'm', 0, 0, 0, 7, '{content}'"))
            .await;
        let refunded = if bench.is("new-api") { 30 - 7 } else { 30 };
        let sum = Sums {
            token_name: "inst-x".into(),
            requests: 2,
            prompt_tokens: 4,
            completion_tokens: 6,
            quota: refunded,
        };
        assert_eq!(sums(bench).await, [sum]);
        let rows = bench.rows().await;
        assert_eq!(rows[4].kind, RequestType::REFUND);
        assert_eq!(rows[5].error_message, if bench.is("new-api") { content } else { "" });
    }

    async fn names_are_summed_as_they_are(bench: Bench) {
        let names = ["inst", "INST", "Inst ", "ínst", "O''Brien", "名字", "😀", "a%", "a_", ""];
        let now = Timestamp::now();
        for (i, name) in names.iter().enumerate() {
            for _ in 0..=i {
                if bench.family() {
                    let columns = "created_at, type, token_name, quota";
                    bench.log_row(columns, &format!("{}, 2, '{name}', 3", now.as_second())).await;
                } else {
                    spend(bench, &base::id::fresh(), now, &name.replace("''", "'"), 3.0 / 500_000.0).await;
                }
            }
        }
        let mut expected: Vec<_> =
            names.iter().enumerate().map(|(i, name)| (name.replace("''", "'"), 1 + i as i64, 3 + 3 * i as i64)).collect();
        expected.sort();
        let found: Vec<_> = sums(bench).await.into_iter().map(|s| (s.token_name, s.requests, s.quota)).collect();
        assert_eq!(found, expected);
        let read: std::collections::BTreeSet<_> = bench.rows().await.into_iter().map(|r| r.token_name).collect();
        assert_eq!(read.into_iter().collect::<Vec<_>>(), expected.into_iter().map(|e| e.0).collect::<Vec<_>>());
    }

    async fn random_rows_sum_to_the_unit(bench: Bench) {
        // The database's own SUM over what is there, against ours over what was read.
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = move |below: u64| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed % below
        };
        let now = Timestamp::now();
        for i in 0..120 {
            let (name, quota, prompt) = (random(4), random(1_000_000), random(9_000));
            let kind = [2, 2, 2, 1, 3, 6][random(6) as usize];
            if bench.family() {
                let columns = "created_at, type, token_name, quota, prompt_tokens, completion_tokens";
                let at = now.as_second() - random(600) as i64;
                bench.log_row(columns, &format!("{at}, {kind}, 'inst-{name}', {quota}, {prompt}, NULL")).await;
            } else {
                let at = now - SignedDuration::from_millis(random(600_000) as i64);
                let dollars = quota as f64 / 1e9 + 1e-13;
                spend(bench, &format!("request {i}"), at, &format!("inst-{name}"), dollars).await;
            }
        }
        let rows = bench.rows().await;
        assert_eq!(rows.len(), 120);
        let direct: Vec<(String, i64, i64, i64)> = if bench.family() {
            let sql = "SELECT token_name, CAST(SUM(CASE WHEN type = 2 THEN 1 ELSE 0 END) AS BIG), \
                CAST(SUM(CASE WHEN type = 2 THEN prompt_tokens ELSE 0 END) AS BIG), \
                CAST(SUM(CASE WHEN type = 2 THEN quota WHEN type = 6 THEN REFUND ELSE 0 END) AS BIG) \
                FROM logs GROUP BY token_name ORDER BY token_name";
            let big = bench.sim().log.pick("INTEGER", "BIGINT", "SIGNED");
            let sql = sql.replace("BIG", big).replace("REFUND", if bench.is("new-api") { "-quota" } else { "0" });
            bench.sim().log.all(&sql, vec![]).await.unwrap()
        } else {
            let sql = "SELECT metadata->>'user_api_key_alias', COUNT(*), CAST(SUM(prompt_tokens) AS BIGINT), \
                CAST(ROUND(SUM(CAST(spend AS NUMERIC)) * 500000) AS BIGINT) FROM \"LiteLLM_SpendLogs\" \
                GROUP BY 1 ORDER BY 1";
            bench.sim().log.all(sql, vec![]).await.unwrap()
        };
        let ours: Vec<_> = sums(bench).await.into_iter().map(|s| (s.token_name, s.requests, s.prompt_tokens, s.quota)).collect();
        assert_eq!(ours, direct);
        let by_rows: Vec<_> = direct
            .iter()
            .map(|(name, ..)| {
                let of = || rows.iter().filter(|row| row.token_name == *name);
                let success = || of().filter(|row| row.kind == RequestType::SUCCESS);
                let refunds = of().filter(|row| row.kind == RequestType::REFUND && bench.is("new-api")).map(|r| r.quota).sum::<i64>();
                let quota = cost(success()) - refunds;
                (name.clone(), success().count() as i64, success().map(|row| row.prompt_tokens).sum::<i64>(), quota)
            })
            .collect();
        assert_eq!(by_rows, direct);
    }
}

/// A row of litellm's, written by hand.
async fn spend(bench: &Bench, request_id: &str, at: Timestamp, alias: &str, dollars: f64) {
    let sql = "INSERT INTO \"LiteLLM_SpendLogs\" (request_id, call_type, spend, prompt_tokens, \"startTime\", \"endTime\", \
        model, metadata) VALUES (?, 'acompletion', ?, 5, TIMESTAMP '1970-01-01' + CAST(? AS BIGINT) * INTERVAL \
        '1 millisecond', TIMESTAMP '1970-01-01' + CAST(? AS BIGINT) * INTERVAL '1 millisecond', 'openai/m', \
        jsonb_build_object('user_api_key_alias', CAST(? AS TEXT)))";
    let ms = at.as_millisecond();
    bench.sim().log.run(sql, with![request_id, dollars, ms, ms + 250, alias]).await.unwrap();
}

async fn litellm_rows(bench: &Bench) {
    let at = Timestamp::from_second(Timestamp::now().as_second()).unwrap();
    for (id, ms) in [("c", 5), ("a", 5), ("b", 5), ("z", 1)] {
        spend(bench, id, at + SignedDuration::from_millis(ms), "inst-x", 0.0000101).await;
    }
    // Nothing that may be missing.
    let sql = "INSERT INTO \"LiteLLM_SpendLogs\" (request_id, call_type, \"startTime\", \"endTime\", model_group, \
        custom_llm_provider, metadata) VALUES ('n', '', TIMESTAMP '2026-01-01', TIMESTAMP '2026-01-01', NULL, NULL, NULL)";
    bench.sim().log.run(sql, vec![]).await.unwrap();
    let rows = bench.rows().await;
    let ids: Vec<_> = rows.iter().map(|r| r.request_id.as_str()).collect();
    assert_eq!(ids, ["n", "z", "a", "b", "c"], "by time, then by request");
    assert_eq!((rows[0].token_name.as_str(), rows[0].model.as_str(), rows[0].quota), ("", "", 0));
    assert_eq!((rows[1].quota, rows[1].duration_ms, rows[1].kind), (5, 250, RequestType::SUCCESS));
    assert_eq!(rows[1].created_at, at + SignedDuration::from_millis(251));
    assert_eq!(rows[1].position, Position::Time { at: at + SignedDuration::from_millis(1), request_id: "z".into() });
    // A row that began before what was read already: found by going back a little.
    spend(bench, "late", at, "inst-x", 0.001).await;
    assert!(bench.log().after(&rows[4].position, 10).await.unwrap().is_empty());
    let back = rows[4].position.before(SignedDuration::from_secs(10));
    let again: Vec<_> = bench.log().after(&back, 10).await.unwrap().into_iter().map(|r| r.request_id).collect();
    assert_eq!(again, ["late", "z", "a", "b", "c"]);
    assert!(bench.log().between(&[1..=9], 10).await.unwrap().is_empty(), "its rows have no numbers");
    // An alias that the row does not know is the key's.
    let key = bench.smuggle("inst-joined", true).await;
    let sql = "INSERT INTO \"LiteLLM_SpendLogs\" (request_id, call_type, api_key, \"startTime\", \"endTime\") \
        VALUES ('joined', '', ?, TIMESTAMP '2026-01-02', TIMESTAMP '2026-01-02')";
    bench.sim().log.run(sql, with![key]).await.unwrap();
    assert!(bench.rows().await.iter().any(|r| r.token_name == "inst-joined"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_of_its_own_says_nothing_of_tokens() {
    for server in [Server::Sqlite, Server::Mariadb, Server::Postgres] {
        let setup = Setup { separate_log: true, ..setup("one-api", server) };
        let Some(bench) = Bench::start(setup, "log::a_log_of_its_own_says_nothing_of_tokens").await else { continue };
        let key = bench.create("inst-far", None).await;
        bench.say(&key, "hello").await;
        bench.written().await;
        assert_eq!(bench.rows().await.len(), 1);
        assert_eq!(bench.log().token_used(Token::Id(&key.gateway_id)).await.unwrap(), None);
        // The main database has a table for a log too, and nothing in it.
        let main = ForeignLog::open(LogKind::find("one-api").unwrap(), &bench.database).await.unwrap();
        assert_eq!(main.newest().await.unwrap(), None);
        assert!(main.token_used(Token::Id(&key.gateway_id)).await.unwrap().is_some());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_such_log_is_refused_without_its_password() {
    let litellm = LogKind::find("litellm").unwrap();
    let one_api = LogKind::find("one-api").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let empty = Secret::new(format!("sqlite:{}", folder.path().join("empty.db").display()));
    sim::llm::tables::Tables::open(&empty).await.unwrap().close().await;
    let password = "test-password-of-a-reader";
    for (kind, url, says) in [
        (one_api, format!("clickhouse://reader:{password}@host/db"), "ClickHouse"),
        (one_api, format!("reader:{password}@tcp(host:3306)/db"), "mysql://"),
        (one_api, format!("mysql://reader:{password}@:bad:/db"), "must be the address"),
        (one_api, format!("postgres://reader:{password}@:bad:/db"), "must be the address"),
        (one_api, format!("postgres://reader:{password}@127.0.0.1:1/db"), "reached"),
        (one_api, format!("mysql://reader:{password}@127.0.0.1:1/db"), "reached"),
        (one_api, "sqlite:".to_owned(), "must be the address"),
        (one_api, empty.expose().to_owned(), "table logs"),
        (litellm, empty.expose().to_owned(), "PostgreSQL only"),
    ] {
        let error = ForeignLog::open(kind, &Secret::new(&url)).await.unwrap_err();
        let (_, text) = fault::<()>(Err(error.into()));
        assert!(text.contains(says), "{url}: {text}");
        assert!(!text.contains(password), "{text}");
    }
    let missing = Secret::new(format!("sqlite:{}", folder.path().join("missing.db").display()));
    ForeignLog::open(one_api, &missing).await.unwrap_err();
    assert!(!folder.path().join("missing.db").exists(), "a file that is not there is not made");
}
