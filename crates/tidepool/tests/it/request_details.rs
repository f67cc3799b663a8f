//! What is known of a single request, and what an older release left of it.

use base::Zone;
use serde_json::{Value, json};
use store::request_log::{self, Detail, ExactRequest, NewRequest, RequestType};
use store::{Db, args, migrate, usage};

use crate::kit::{Database, Site, database_before};
use crate::on_both;

/// A request of the instance `a0`.
fn row(id: &str, at: jiff::Timestamp, detail: Detail) -> NewRequest {
    NewRequest {
        request_id: id.into(),
        token_name: "a0".into(),
        model: "gpt-4o".into(),
        provider: "openai".into(),
        kind: RequestType::SUCCESS,
        is_stream: true,
        prompt_tokens: 1_000,
        completion_tokens: 200,
        quota: 3,
        duration_ms: 900,
        error_message: String::new(),
        estimated: false,
        detail,
        created_at: at,
    }
}

fn detail() -> Detail {
    Detail {
        known_input_tokens: Some(1_000),
        cache_read_tokens: Some(620),
        cache_write_tokens: Some(0),
        reasoning_tokens: Some(64),
        protocol: "responses".into(),
        asked_model: "claude-opus-4-6".into(),
        key_hint: "…7f3a".into(),
        retries: Some(2),
        first_byte_ms: Some(310),
    }
}

async fn write(db: &Db, zone: &Zone, request: NewRequest, quota_rest: i64) {
    let mut tx = db.begin().await.unwrap();
    request_log::add_exact(&mut tx, zone, &[ExactRequest { request, quota_rest }]).await.unwrap();
    tx.commit().await.unwrap();
}

on_both! {
    async fn a_request_is_shown_with_all_that_is_known_of_it(site: Site) {
        site.instances("a", 1).await;
        let (user, _) = site.quick_employee("ada@example.com").await;
        site.admin.patch("/instances/a0/assign", json!({"user_id": user})).token(&site.root).ok().await;
        let now = site.app.clock.now();
        write(&site.app.db, &site.app.zone, row("r-all", now, detail()), -800).await;
        let failed = NewRequest {
            kind: RequestType::ERROR,
            token_name: "of-nobody".into(),
            error_message: "the provider answered 529".into(),
            quota: 0,
            ..row("r-little", now - jiff::SignedDuration::from_secs(1), Detail::default())
        };
        write(&site.app.db, &site.app.zone, failed, 0).await;

        let lists = async |path: &str| site.admin.get(path).token(&site.root).ok().await["list"].clone();
        let list = lists("/llm-request-logs").await;
        let one = async |place: usize| {
            let id = &list[place]["id"];
            site.admin.get(&format!("/llm-request-logs/{id}")).token(&site.root).ok().await
        };
        let all = one(0).await;
        for (field, value) in [
            ("request_id", json!("r-all")),
            ("instance_id", json!("a0")),
            ("gateway_token_name", json!("a0")),
            ("user_email", json!("ada@example.com")),
            ("model", json!("gpt-4o")),
            ("asked_model", json!("claude-opus-4-6")),
            ("provider", json!("openai")),
            ("key_hint", json!("…7f3a")),
            ("protocol", json!("responses")),
            ("status", json!("success")),
            ("is_stream", json!(true)),
            ("tokens_in", json!(1_000)),
            ("tokens_out", json!(200)),
            ("known_input_tokens", json!(1_000)),
            ("cache_read_tokens", json!(620)),
            ("cache_write_tokens", json!(0)),
            ("reasoning_tokens", json!(64)),
            ("retries", json!(2)),
            ("first_byte_ms", json!(310)),
            ("duration_ms", json!(900)),
            // 3 units less 800 billionths.
            ("cost_exact", json!("0.000005200")),
        ] {
            assert_eq!(all[field], value, "{field}: {all}");
        }
        let little = one(1).await;
        for field in ["known_input_tokens", "cache_read_tokens", "retries", "first_byte_ms", "instance_id"] {
            assert_eq!(little[field], Value::Null, "{field} is unknown, and not 0: {little}");
        }
        assert_eq!((&little["protocol"], &little["key_hint"]), (&json!(""), &json!("")));
        assert_eq!((&little["status"], &little["cost_exact"]), (&json!("error"), &json!("0.000000000")));
        assert_eq!(little["error_message"], "the provider answered 529");
        for path in ["/audit/request-logs", "/llm-logs"] {
            let list = lists(path).await;
            assert_eq!((&list[0]["cache_read_tokens"], &list[1]["cache_read_tokens"]), (&json!(620), &Value::Null), "{path}");
        }
        let stats = site.admin.get("/llm-stats?days=1").token(&site.root).ok().await;
        let stat = &stats["stats"][0];
        assert_eq!((&stat["known_input_tokens"], &stat["cache_read_tokens"]), (&json!(1_000), &json!(620)), "{stats}");

        for nothing in ["0", "-1", "999999999", "99999999999999999999", "r-all", "x%00"] {
            site.admin.get(&format!("/llm-request-logs/{nothing}")).token(&site.root).refused("4040").await;
        }
        // A row that the lists do not show any more is not kept, although it may not be deleted yet.
        usage::keep_rows_since(&site.app.db, now).await.unwrap();
        site.admin.get(&format!("/llm-request-logs/{}", list[1]["id"])).token(&site.root).refused("4040").await;
        assert_eq!(one(0).await["request_id"], "r-all");
    }
}

/// Requests of a release that knew nothing of their parts, before and while it is replaced.
async fn older_requests_are_right(database: Database) {
    let db = database_before(29, &database.url).await;
    let zone = Zone::named("UTC").unwrap();
    let at: jiff::Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
    let by_older = async |id: &str| {
        let run = async |sql: &str| db.run(sql, args![]).await.unwrap();
        let columns = "request_id, token_name, model, provider, type, is_stream, prompt_tokens, completion_tokens, quota, \
            quota_rest, duration_ms, error_message, estimated, created_at";
        let ms = at.as_millisecond();
        run(&format!(
            "INSERT INTO request_log ({columns}) VALUES ('{id}', 'a0', 'gpt-4o', 'openai', 2, 0, 500, 10, 7, 0, 5, '', 0, {ms})"
        ))
        .await;
        let sums = "requests, errors, prompt_tokens, completion_tokens, quota, quota_rest";
        let more = |table: &str| {
            let add = sums.split(", ").map(|column| format!("{column} = {table}.{column} + excluded.{column}"));
            add.collect::<Vec<_>>().join(", ")
        };
        for (table, key, values) in [
            (
                "usage_slot",
                "token_name, slot, model, provider",
                format!("'a0', {}, 'gpt-4o', 'openai'", ms / 900_000 * 900_000),
            ),
            ("usage_daily", "date, token_name, model, provider", "'2026-11-15', 'a0', 'gpt-4o', 'openai'".to_owned()),
            ("usage_total", "token_name", "'a0'".to_owned()),
        ] {
            run(&format!(
                "INSERT INTO {table} ({key}, {sums}) VALUES ({values}, 1, 0, 500, 10, 7, 0) ON CONFLICT ({key}) DO UPDATE SET {}",
                more(table)
            ))
            .await;
        }
    };
    by_older("before").await;
    migrate::run(&db).await.unwrap();
    by_older("meanwhile").await;
    write(&db, &zone, row("ours", at + jiff::SignedDuration::from_millis(1), detail()), 0).await;

    let rows = request_log::list(&db, &request_log::Asked::default(), base::Page::ALL).await.unwrap();
    let read: Vec<Option<i64>> = rows.iter().map(|row| row.cache_read_tokens).collect();
    assert_eq!(read, [Some(620), None, None], "what nobody wrote down is unknown");
    assert!(rows[1..].iter().all(|row| row.retries.is_none() && row.protocol.is_empty()));
    let check = async |what: &str| {
        let sums = usage::of_all_time(&db, "a0").await.unwrap();
        assert_eq!((sums.requests, sums.prompt_tokens, sums.quota()), (3, 2_000, 17), "{what}");
        assert_eq!(
            (sums.known_input_tokens, sums.cache_read_tokens, sums.reasoning_tokens),
            (1_000, 620, 64),
            "{what}"
        );
        let again = request_log::sum_again(&db, jiff::Timestamp::UNIX_EPOCH).await.unwrap();
        assert_eq!(again.iter().map(|keyed| keyed.sums).collect::<Vec<_>>(), [sums], "{what}");
    };
    check("as they were added").await;
    assert_eq!(usage::recount(&db).await.unwrap(), 0, "the totals are the sums of the days");
    usage::make_days(&db, &Zone::named("Asia/Shanghai").unwrap()).await.unwrap();
    check("in days of another zone").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn older_requests_are_right_sqlite() {
    older_requests_are_right(Database::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn older_requests_are_right_postgres() {
    if let Some(database) = Database::postgres("request_details::older_requests_are_right").await {
        older_requests_are_right(database).await;
    }
}
