//! The migration from the table of debts, which the release before this one had.

use store::args;
use store::reconcile::{self, Pending};

use crate::kit::{Database, database_before};

/// The table of debts, as the release before this one left it, with an upgrade in its middle.
async fn upgraded(database: Database) {
    let db = database_before(22, &database.url).await;
    let mut tx = db.begin().await.unwrap();
    for (port, id) in [(18000i64, "done"), (18100, "begun"), (18200, "never")] {
        let sql = "INSERT INTO instance (id, id_key, server_id, pooled, name, gateway_port, gateway_url, gateway_token, model, \
            health_status, notes, config_json, created_at, updated_at) VALUES (?, ?, 's', 0, '', ?, '', '', '', 'unknown', '', '{}', 0, 0)";
        tx.run(sql, args![id, id, port]).await.unwrap();
    }
    let sql = "INSERT INTO debt (instance_id, owed, log_size, told) VALUES ('done', '', 7, ''), ('begun', 'restart', 9, 'told')";
    tx.run(sql, vec![]).await.unwrap();
    let sql = "INSERT INTO task (id, type, payload, status, source, instance_id, next_attempt_at, created_at, updated_at) \
        VALUES ('t1', 'upgrade_instance', '{}', 'failed', '', 'begun', 0, 0, 0), ('t0', 'upgrade_instance', '{}', 'done', '', 'begun', 0, 0, 0)";
    tx.run(sql, vec![]).await.unwrap();
    tx.commit().await.unwrap();
    store::migrate::run(&db).await.unwrap();
    let of = async |id: &str| reconcile::find(&db, &base::id::InstanceId::named(id)).await.unwrap();
    let begun = of("begun").await;
    assert_eq!((begun.generation, begun.applied, begun.pending, begun.log_size), (1, 0, Pending::Restart, 9));
    assert_eq!((begun.unrecorded.as_str(), begun.operation.as_deref()), ("told", Some("t1")));
    assert!(begun.is_behind() && !of("done").await.is_behind() && !of("never").await.is_behind());
    assert_eq!(begun.release, "", "the first comparison only reports");

    // Processes of the older release may run beside this one for a week. Then the table is dropped, and they refuse to start.
    store::record! { struct Count { n: i64 } }
    let open = "SELECT COUNT(*) AS n FROM debt WHERE owed <> '' OR told <> ''";
    let debts = async || db.first::<Count>(open, vec![]).await.map(|found| found.map(|one| one.n));
    let newest = async || {
        let sql = "SELECT MAX(version) AS n FROM schema_version";
        db.first::<Count>(sql, vec![]).await.unwrap().unwrap().n
    };
    store::migrate::run(&db).await.unwrap();
    assert_eq!((debts().await.unwrap(), newest().await), (Some(0), 21));
    let week = 7 * 24 * 3_600_000i64;
    let sql = "UPDATE schema_step SET applied_at = applied_at - ? WHERE version = 22";
    db.run(sql, args![week]).await.unwrap();
    store::migrate::run(&db).await.unwrap();
    assert!(debts().await.is_err(), "the table is gone");
    assert_eq!(newest().await, 22);
    store::migrate::run(&db).await.unwrap();
}

#[tokio::test]
async fn open_debts_become_a_generation_behind_sqlite() {
    upgraded(Database::sqlite()).await;
}

#[tokio::test]
async fn open_debts_become_a_generation_behind_postgres() {
    if let Some(database) = Database::postgres(module_path!()).await {
        upgraded(database).await;
    }
}
