//! A database as a release before this one left it: what migrations are tried from.

use store::{Db, migrate};

/// A database with the steps before `version`, and a server `s` in it.
pub async fn database_before(version: i64, url: &base::Secret) -> Db {
    let db = Db::open(url).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    tx.script("CREATE TABLE schema_version (version {int} NOT NULL PRIMARY KEY, name {text} NOT NULL, applied_at {int} NOT NULL)")
        .await
        .unwrap();
    for (step, name, sql) in migrate::STEPS.iter().filter(|(step, ..)| *step < version) {
        tx.script(sql).await.unwrap();
        let sql = "INSERT INTO schema_version (version, name, applied_at) VALUES (?, ?, 0)";
        tx.run(sql, store::args![*step, *name]).await.unwrap();
    }
    let server = "INSERT INTO server (id, id_key, name, host, ssh_port, ssh_user, ssh_key_path, status, notes, created_at, updated_at) \
         VALUES ('s', 's', 'S', '192.0.2.1', 22, 'root', '', 'active', '', 0, 0)";
    tx.run(server, vec![]).await.unwrap();
    tx.commit().await.unwrap();
    db
}
