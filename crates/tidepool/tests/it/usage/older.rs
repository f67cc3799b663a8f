//! What an older release has counted belongs to whoever held the instance then, and no total changes.

use std::collections::BTreeMap;

use base::Zone;
use base::id::UserId;
use jiff::{SignedDuration, Timestamp};
use store::holder::{self, Among};
use store::usage::{self, Sums};
use store::{args, migrate, user, user_department};

use crate::kit::{Database, database_before};

const HOUR: i64 = 3_600_000;

async fn older_sums_find_their_holders(database: Database) {
    let db = database_before(28, &database.url).await;
    let run = async |sql: &str, args| db.run(sql, args).await.unwrap();
    for (id, department) in [("ada", "Research"), ("bob", "Sales")] {
        let sql = "INSERT INTO users (id, email, email_key, name, department, status, created_at) VALUES (?, ?, ?, '', ?, 'active', 0)";
        run(sql, args![id, id, id, department]).await;
    }
    let sql = "INSERT INTO instance (id, id_key, server_id, pooled, name, gateway_port, gateway_url, gateway_token, model, \
        health_status, notes, config_json, created_at, updated_at) VALUES ('a0', 'a0', 's', 0, '', 18000, '', '', '', 'unknown', '', '{}', 0, 0)";
    run(sql, args![]).await;
    // Ada had it from 10:00 to 12:00, nobody until 14:00, then Bob.
    for (id, user, from, to) in [("b1", "ada", 10, Some(12 * HOUR)), ("b2", "bob", 14, None)] {
        let sql = "INSERT INTO binding (id, user_id, instance_id, origin, created_at, ended_at) VALUES (?, ?, 'a0', 'assigned', ?, ?)";
        run(sql, args![id, user, from * HOUR, to]).await;
    }
    let sums = "requests, errors, prompt_tokens, completion_tokens, quota, quota_rest";
    for (hour, tokens) in [(1, 1i64), (11, 10), (13, 100), (15, 1_000), (30, 10_000)] {
        let sql = format!(
            "INSERT INTO usage_slot (token_name, slot, model, provider, {sums}) VALUES ('a0', ?, 'm', 'p', 1, 0, ?, 0, ?, 0)"
        );
        run(&sql, args![hour * HOUR, tokens, tokens]).await;
    }
    for (date, tokens) in [("1970-01-01", 1_111i64), ("1970-01-02", 10_000)] {
        let sql = format!(
            "INSERT INTO usage_daily (date, token_name, model, provider, {sums}) VALUES (?, 'a0', 'm', 'p', 1, 0, ?, 0, ?, 0)"
        );
        run(&sql, args![date, tokens, tokens]).await;
    }
    run("INSERT INTO setting (name, value) VALUES ('usage_zone', 'UTC')", args![]).await;
    migrate::run(&db).await.unwrap();
    let total = usage::of_all_time(&db, "a0").await.unwrap();
    assert_eq!((total.tokens(), total.units), (11_111, 11_111), "no total has changed");

    let since = user_department::recorded_since(&db).await.unwrap().unwrap();
    let age = Timestamp::now().duration_since(since).as_secs();
    assert!((0..600).contains(&age), "recorded since the migration, {age} s ago");
    let memberships = user_department::all(&db).await.unwrap();
    let periods = holder::periods(&db, Among::All).await.unwrap();
    let zone = Zone::named("UTC").unwrap();
    let mut by_department: BTreeMap<String, i64> = BTreeMap::new();
    let mut all = Sums::default();
    for part in holder::parts(&periods["a0"], Some(&memberships)) {
        for group in usage::of_token(&db, &zone, "a0", part.span, None).await.unwrap() {
            *by_department.entry(part.department.clone().unwrap_or_default()).or_default() += group.sums.tokens();
            all += group.sums;
        }
    }
    let expected = [("", 100), ("Research", 11), ("Sales", 11_000)];
    assert_eq!(by_department, expected.map(|(name, tokens)| (name.to_owned(), tokens)).into());
    assert_eq!(all.tokens(), total.tokens());

    // A replica of the older release makes an account and changes another beside us.
    let sql = "INSERT INTO users (id, email, email_key, name, department, status, created_at) VALUES ('cy', 'cy', 'cy', '', 'Legal', 'active', 0)";
    run(sql, args![]).await;
    run("UPDATE users SET department = 'Support' WHERE id = 'ada'", args![]).await;
    let now = Timestamp::now();
    assert_eq!(user_department::record_missed(&db, now).await.unwrap(), 2);
    assert_eq!(user_department::record_missed(&db, now).await.unwrap(), 0);
    let memberships = user_department::all(&db).await.unwrap();
    let of = |id: &str| {
        let of = &memberships[&UserId::named(id)];
        of.iter().map(|one| (one.since.as_millisecond(), one.department.clone())).collect::<Vec<_>>()
    };
    assert_eq!(of("cy"), [(0, "Legal".to_owned())]);
    assert_eq!(
        of("ada"),
        [(since.as_millisecond(), "Research".to_owned()), (now.as_millisecond(), "Support".to_owned())]
    );

    // The older replica changes her again, and we do before that was recorded; then a clock goes back.
    let ada = UserId::named("ada");
    let change = async |department: &str, at: Timestamp| {
        let mut tx = db.begin().await.unwrap();
        let mut account = user::lock(&mut tx, &ada).await.unwrap().unwrap();
        account.department = department.to_owned();
        user::update(&mut tx, &account, at).await.unwrap();
        tx.commit().await.unwrap();
    };
    let later = now + SignedDuration::from_mins(1);
    run("UPDATE users SET department = 'Legal' WHERE id = 'ada'", args![]).await;
    change("Sales", later).await;
    change("Research", now).await;
    run("UPDATE users SET department = 'Support' WHERE id = 'ada'", args![]).await;
    assert_eq!(user_department::record_missed(&db, now).await.unwrap(), 1);
    let memberships = user_department::all(&db).await.unwrap();
    let last = memberships[&ada].iter().skip(2).map(|one| (one.since, one.department.as_str())).collect::<Vec<_>>();
    // The database has whole milliseconds.
    let later = Timestamp::from_millisecond(later.as_millisecond()).unwrap();
    let expected = ["Legal", "Sales", "Research", "Support"];
    let expected = expected.into_iter().zip(0..).map(|(name, ms)| (later + SignedDuration::from_millis(ms), name));
    assert_eq!(last, expected.collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn older_sums_find_their_holders_sqlite() {
    older_sums_find_their_holders(Database::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn older_sums_find_their_holders_postgres() {
    if let Some(database) = Database::postgres(module_path!()).await {
        older_sums_find_their_holders(database).await;
    }
}
