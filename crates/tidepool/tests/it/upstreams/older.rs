//! What an older release left is read as it was meant.

use base::id::KeyId;
use store::request_log::{self, ExactRequest, NewRequest, RequestType};
use store::{args, gateway_key, migrate, usage};

use super::here;
use crate::kit::{Database, database_before};

/// Sums of whole units, a key, and a comparison of the night before.
async fn older_records_are_kept(database: Database) {
    let db = database_before(26, &database.url).await;
    let sums = "requests, errors, prompt_tokens, completion_tokens, quota";
    let run = async |sql: String| db.run(&sql, args![]).await.unwrap();
    run(format!("INSERT INTO usage_daily (date, token_name, model, provider, {sums}) VALUES ('2026-11-15', 'a0', 'm', 'p', 5, 0, 20, 40, 10)")).await;
    run(format!("INSERT INTO usage_total (token_name, {sums}) VALUES ('a0', 5, 0, 20, 40, 10)")).await;
    run("INSERT INTO gateway_key (id, name, gateway_id, secret, secret_hash, status, logged_quota, dirty, created_at, updated_at) \
         VALUES ('k', 'a0', '7', 's', 'h', 'disabled', 10, 1, 0, 0)"
        .into())
    .await;
    run("INSERT INTO spend_day (date, summed, logged, balance, used_total, created_at) VALUES ('2026-11-15', 10, 10, 0, -10, 0)".into())
        .await;
    migrate::run(&db).await.unwrap();
    assert_eq!(usage::of_all_time(&db, "a0").await.unwrap().quota(), 10);
    let observed = gateway_key::observed(&db, &KeyId::named("k")).await.unwrap();
    assert!(observed.is_on().is_none() && observed.problem.is_empty() && observed.drift.is_none(), "{observed:?}");
    let unrevoked = gateway_key::unrevoked(&db, gateway_key::Of::All, 10).await.unwrap();
    assert_eq!(unrevoked.len(), 1, "a change that never arrived is shown");
    assert_eq!(store::spend_day::before(&db, "2026-11-16").await.unwrap().unwrap().used_total, None);
    // Fractions of a unit are added to it: 2 and 0.6, three times, are 17.8.
    let zone = base::Zone::named("UTC").unwrap();
    let row = |n: usize| ExactRequest {
        request: NewRequest {
            request_id: format!("r{n}"),
            token_name: "a0".into(),
            model: "m".into(),
            provider: "p".into(),
            kind: RequestType::SUCCESS,
            is_stream: false,
            prompt_tokens: 1,
            completion_tokens: 1,
            quota: 3,
            duration_ms: 1,
            error_message: String::new(),
            estimated: false,
            detail: Default::default(),
            created_at: "2026-11-15T12:00:00Z".parse().unwrap(),
        },
        quota_rest: -800,
    };
    for n in 0..3 {
        let mut tx = db.begin().await.unwrap();
        request_log::add_exact(&mut tx, &zone, &[row(n)]).await.unwrap();
        tx.commit().await.unwrap();
    }
    assert_eq!(usage::of_all_time(&db, "a0").await.unwrap().quota(), 18);
    let key = gateway_key::named(&db, "a0").await.unwrap().unwrap();
    assert_eq!(key.logged_quota, 18, "each row by itself would make it 19");
    assert_eq!(usage::recount(&db).await.unwrap(), 0, "the totals are the sums of the days");
}

#[tokio::test(flavor = "multi_thread")]
async fn older_records_are_kept_sqlite() {
    older_records_are_kept(Database::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn older_records_are_kept_postgres() {
    if let Some(database) = Database::postgres(here!("older::older_records_are_kept_postgres")).await {
        older_records_are_kept(database).await;
    }
}
