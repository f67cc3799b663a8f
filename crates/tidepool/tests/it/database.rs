//! Migrations, copies and keys of the database, by the binary and by the store.

use std::fs;
use std::path::Path;

use base::Secret;
use base::id::InstanceId;
use base::secret::random_token;
use serde_json::json;
use store::{Db, migrate};

use crate::kit::{Database, PASSWORD, Process, Site, run};
use crate::on_both;

const ADMIN: &[(&str, &str)] =
    &[("TIDEPOOL_BOOTSTRAP_ADMIN_EMAIL", "root@example.com"), ("TIDEPOOL_BOOTSTRAP_ADMIN_PASSWORD", PASSWORD)];

on_both! {
    async fn migrations_run_once_and_a_newer_database_is_refused(site: Site) {
        let db = &site.app.db;
        assert_eq!(migrate::version(db).await.unwrap(), Some(migrate::known()));
        assert!(migrate::run(db).await.unwrap().is_empty(), "nothing is left to do");
        let newer = "INSERT INTO schema_version (version, name, applied_at) VALUES (?, 'from the future', 0)";
        db.run(newer, store::args![migrate::known() + 1]).await.unwrap();
        let error = migrate::run(db).await.unwrap_err().to_string();
        assert!(error.contains("schema version") && error.contains("newer binary"), "{error}");
        site.admin.raw(reqwest::Method::GET, "/readyz").refused("5030").await;
    }

    /// A newer release has added to the schema: this one works on and may start again, unless the step says that it is too old.
    async fn a_newer_schema_that_only_adds_is_lived_with(site: Site) {
        let db = &site.app.db;
        let newer = "INSERT INTO schema_step (version, name, oldest, applied_at) VALUES (?, 'from the future', ?, 0)";
        let known = migrate::known();
        db.run(newer, store::args![known + 1, known]).await.unwrap();
        assert!(migrate::run(db).await.unwrap().is_empty());
        assert_eq!(migrate::version(db).await.unwrap(), Some(known + 1));
        assert_eq!(site.admin.raw(reqwest::Method::GET, "/readyz").ok().await["schema_version"], known + 1);
        db.run(newer, store::args![known + 2, known + 1]).await.unwrap();
        let error = migrate::run(db).await.unwrap_err().to_string();
        assert!(error.contains("newer binary"), "{error}");
        site.admin.raw(reqwest::Method::GET, "/readyz").refused("5030").await;
    }

    async fn every_table_is_listed(site: Site) {
        let sql = match site.app.db.dialect() {
            store::Dialect::Sqlite => "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
            store::Dialect::Postgres => "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = current_schema()",
        };
        let mut names: Vec<String> = site.app.db.all::<TableName>(sql, vec![]).await.unwrap().into_iter().map(|t| t.name).collect();
        names.retain(|n| n != "schema_version" && n != "schema_step");
        let mut listed: Vec<String> = store::table::TABLES.iter().map(|t| (*t).to_owned()).collect();
        names.sort();
        listed.sort();
        assert_eq!(names, listed, "a table that is not in TABLES is neither copied nor counted");
    }

    /// The answer to a commit may be lost while the commit is still made: who asks then waits for its end.
    async fn a_database_that_is_being_moved_to_another_key_is_not_said_to_be_under_the_old(site: Site) {
        const SETTING: &str = "moved_key";
        let key = |key| store::key_check::Key { setting: SETTING, key };
        let (old, new) = (random_token().unwrap(), random_token().unwrap());
        let db = site.app.db.clone();
        store::key_check::replace(&db, key(&old)).await.unwrap();
        let mut tx = site.begin_patient().await;
        tx.lock(store::db::Lock::Rekey).await.unwrap();
        store::key_check::replace(&mut tx, key(&new)).await.unwrap();
        let asking = {
            let (db, old) = (db.clone(), old.clone());
            tokio::spawn(async move { store::rekey::is_under(&db, SETTING, &old).await })
        };
        site.until_blocked().await;
        assert!(!asking.is_finished(), "answered before it could know");
        tx.commit().await.unwrap();
        assert!(!asking.await.unwrap().unwrap(), "it is under the new one");
    }
}

store::record! {
    struct TableName { name: String }
}

async fn many_start_at_once(database: Database) {
    let starts = (0..4).map(|_| {
        let url = database.url.clone();
        tokio::spawn(async move {
            let db = Db::open(&url).await?;
            migrate::run(&db).await
        })
    });
    let applied: usize =
        futures_util::future::join_all(starts).await.into_iter().map(|r| r.unwrap().unwrap().len()).sum();
    assert_eq!(applied, migrate::STEPS.len(), "each step was applied by exactly one of them");
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_that_start_together_migrate_once_sqlite() {
    // Often, because the moment in which one is refused is short.
    for _ in 0..10 {
        many_start_at_once(Database::sqlite()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_that_start_together_migrate_once_postgres() {
    if let Some(database) = Database::postgres("database::replicas").await {
        many_start_at_once(database).await;
    }
}

/// What an older release reads of the schema's version: nothing newer than it knows, where all that is newer only adds.
async fn an_older_release_finds_its_version(database: Database) {
    let db = crate::kit::database_before(12, &database.url).await;
    assert_eq!(migrate::run(&db).await.unwrap().first(), Some(&12));
    assert!(migrate::run(&db).await.unwrap().is_empty());
    let seen: Vec<Counted> = db.all("SELECT MAX(version) AS n FROM schema_version", vec![]).await.unwrap();
    assert_eq!(seen[0].n, 11, "of steps that it can live with it reads nothing");
    assert_eq!(migrate::version(&db).await.unwrap(), Some(migrate::known()));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_release_finds_its_version_sqlite() {
    an_older_release_finds_its_version(Database::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_release_finds_its_version_postgres() {
    if let Some(database) = Database::postgres("database::an_older_release").await {
        an_older_release_finds_its_version(database).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_servers_on_one_postgres_share_everything() {
    let Some(database) = Database::postgres("database::two_servers").await else { return };
    let folder = tempfile::tempdir().unwrap();
    let environment = [ADMIN, &[("TIDEPOOL_DATABASE_URL", database.url.expose())]].concat();
    let mut one = Process::serve(folder.path(), &environment);
    let mut two = Process::serve(folder.path(), &environment);
    one.ready().await;
    two.ready().await;
    let login = json!({"email": "root@example.com", "password": PASSWORD});
    let token = one.admin.post("/auth/login", login).ok().await["token"].as_str().unwrap().to_owned();
    two.admin.get("/auth/me").token(&token).ok().await;
    two.admin.post("/auth/logout", json!({})).token(&token).ok().await;
    one.admin.get("/auth/me").token(&token).refused("4010").await;
    // Nobody changes the keys under them.
    let output = run(folder.path(), &["db", "rekey"], &environment);
    assert!(!output.status.success(), "re-keyed under two running servers");
    // A replica without the keys, or with others, is told so.
    let elsewhere = tempfile::tempdir().unwrap();
    let mut other = Process::serve(elsewhere.path(), &environment);
    let message = other.ended().await;
    assert!(message.contains("that this database was made with is not here"), "{message}");
    let key = [("TIDEPOOL_MASTER_KEY", "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=")];
    let jwt = ["EMPLOYEE", "ADMIN"].map(|side| (format!("TIDEPOOL_{side}_JWT_SECRET"), side.repeat(8)));
    let jwt: Vec<(&str, &str)> = jwt.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let mut other = Process::serve(elsewhere.path(), &[&environment[..], &key, &jwt].concat());
    let message = other.ended().await;
    assert!(message.contains("is not the key"), "{message}");
    drop((one, two));
    let output = run(folder.path(), &["db", "rekey"], &environment);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn said(folder: &Path, args: &[&str]) -> (bool, String) {
    let output = run(folder, args, &[]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.success(), text)
}

async fn users(server: &Process) -> serde_json::Value {
    let login = json!({"email": "root@example.com", "password": PASSWORD});
    let token = server.admin.post("/auth/login", login).ok().await["token"].as_str().unwrap().to_owned();
    server.admin.get("/users").token(&token).ok().await
}

async fn add_user(server: &Process, email: &str) {
    let login = json!({"email": "root@example.com", "password": PASSWORD});
    let token = server.admin.post("/auth/login", login).ok().await["token"].as_str().unwrap().to_owned();
    server.admin.post("/users", json!({"email": email})).token(&token).ok().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_is_made_while_serving_and_restored_after_checking() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let mut server = Process::serve(home, ADMIN);
    server.ready().await;
    add_user(&server, "before@example.com").await;
    let (good, text) = said(home, &["db", "backup", "copy-1"]);
    assert!(good && text.contains("users 1") && text.contains("master_key: kept in"), "{text}");
    let files = |folder: &str| fs::read_dir(home.join(folder)).unwrap().count();
    assert_eq!(files("copy-1"), 1, "the database alone, without side files");
    let (good, text) = said(home, &["db", "backup", "copy-2", "--with-keys"]);
    assert!(good && text.contains("taken along"), "{text}");
    assert!(!said(home, &["db", "backup", "copy-1"]).0, "an existing copy is never overwritten");
    add_user(&server, "after@example.com").await;
    let (good, text) = said(home, &["db", "restore", "copy-1"]);
    assert!(!good && text.contains("stop the server first"), "{text}");
    server.terminate();
    server.end();

    // A damaged copy, one of nothing, and one of other keys change nothing.
    fs::create_dir(home.join("damaged")).unwrap();
    let mut bytes = fs::read(home.join("copy-1/tidepool.db")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 4096].fill(0x5a);
    fs::write(home.join("damaged/tidepool.db"), bytes).unwrap();
    fs::create_dir(home.join("empty")).unwrap();
    fs::write(home.join("empty/tidepool.db"), "").unwrap();
    fs::create_dir(home.join("other")).unwrap();
    fs::copy(home.join("copy-1/tidepool.db"), home.join("other/tidepool.db")).unwrap();
    fs::write(home.join("other/admin_jwt_secret.key"), "some-other-key-of-thirty-two-letters").unwrap();
    for bad in ["damaged", "empty", "other", "nowhere"] {
        let (good, text) = said(home, &["db", "restore", bad]);
        assert!(!good, "{bad}: {text}");
    }
    let mut server = Process::serve(home, &[]);
    server.ready().await;
    assert_eq!(users(&server).await["total"], 2);
    server.terminate();
    server.end();

    for _ in 0..3 {
        let (good, text) = said(home, &["db", "restore", "copy-1"]);
        assert!(good && text.contains("is now"), "{text}");
    }
    // A log that outlived its database is not played over the copy.
    fs::write(home.join("data/tidepool.db-wal"), "what another database was told").unwrap();
    fs::remove_file(home.join("data/tidepool.db")).unwrap();
    let (good, text) = said(home, &["db", "restore", "copy-1"]);
    assert!(good && text.contains("is now") && !home.join("data/tidepool.db-wal").exists(), "{text}");
    let kept = fs::read_dir(home.join("data"))
        .unwrap()
        .filter(|f| f.as_ref().unwrap().file_name().to_string_lossy().contains(".db.before-"));
    assert!(kept.count() >= 3, "each database that was replaced is kept");
    let mut server = Process::serve(home, &[]);
    server.ready().await;
    assert_eq!(users(&server).await["total"], 1, "as it was when the copy was made");
    drop(server);

    // Onto another machine, keys and all.
    let elsewhere = tempfile::tempdir().unwrap();
    let copy = home.join("copy-2");
    let (good, text) = said(elsewhere.path(), &["db", "restore", copy.to_str().unwrap()]);
    assert!(good, "{text}");
    let mut server = Process::serve(elsewhere.path(), &[]);
    server.ready().await;
    assert_eq!(users(&server).await["total"], 1);
    let without_keys = tempfile::tempdir().unwrap();
    let copy = home.join("copy-1");
    let (good, text) = said(without_keys.path(), &["db", "restore", copy.to_str().unwrap()]);
    assert!(!good && text.contains("has this key"), "{text}");
}

/// Killed between its renames, a restore left no database at all, and the next start made an empty one.
#[tokio::test(flavor = "multi_thread")]
async fn a_restore_that_was_broken_off_is_finished_by_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let mut server = Process::serve(home, ADMIN);
    server.ready().await;
    add_user(&server, "before@example.com").await;
    assert!(said(home, &["db", "backup", "copy"]).0);
    add_user(&server, "after@example.com").await;
    server.terminate();
    server.end();
    // The key's place is taken, so that the process ends with the database renamed and the key not.
    let (good, text) = said(home, &["db", "backup", "with-keys", "--with-keys"]);
    assert!(good, "{text}");
    let key = home.join("data/master_key.key");
    let kept = fs::read(&key).unwrap();
    fs::remove_file(&key).unwrap();
    fs::create_dir_all(key.join("in-the-way")).unwrap();
    let (good, text) = said(home, &["db", "restore", "with-keys"]);
    assert!(!good && text.contains("master_key"), "{text}");
    fs::remove_dir_all(&key).unwrap();
    let mut server = Process::serve(home, &[]);
    server.ready().await;
    assert_eq!(users(&server).await["total"], 2);
    assert_eq!(fs::read(&key).unwrap(), kept, "the key has come after all");
    server.terminate();
    server.end();
    // Killed right after the first rename.
    let data = |name: &str| home.join("data").join(name);
    fs::copy(home.join("copy/tidepool.db"), data("tidepool.incoming")).unwrap();
    let plan = json!({"aside": [[data("tidepool.db"), data("tidepool.db.before-x")]], "place": [[data("tidepool.incoming"), data("tidepool.db")]]});
    fs::write(data("tidepool.restoring"), plan.to_string()).unwrap();
    fs::rename(data("tidepool.db"), data("tidepool.db.before-x")).unwrap();
    let mut server = Process::serve(home, &[]);
    server.ready().await;
    assert_eq!(users(&server).await["total"], 1, "as it was when the copy was made");
    assert!(!data("tidepool.restoring").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_moves_from_sqlite_to_postgres_with_equal_counts() {
    let Some(database) = Database::postgres("database::copy").await else { return };
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let mut server = Process::serve(home, ADMIN);
    server.ready().await;
    for i in 0..3 {
        add_user(&server, &format!("user{i}@example.com")).await;
    }
    let (good, text) = said(home, &["db", "copy", "--to", database.url.expose()]);
    assert!(!good && text.contains("stop the server"), "{text}");
    server.terminate();
    server.end();
    let (good, text) = said(home, &["db", "copy", "--to", database.url.expose()]);
    assert!(good && text.contains("users: 3 rows in both"), "{text}");
    let (good, text) = said(home, &["db", "copy", "--to", database.url.expose()]);
    assert!(!good && text.contains("not empty"), "{text}");
    let mut server = Process::serve(home, &[("TIDEPOOL_DATABASE_URL", database.url.expose())]);
    server.ready().await;
    assert_eq!(users(&server).await["total"], 3);
    add_user(&server, "user4@example.com").await;
    assert_eq!(users(&server).await["total"], 4, "counters go on after the copied rows");
}

#[tokio::test(flavor = "multi_thread")]
async fn rekeying_changes_the_keys_and_keeps_the_data() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let mut server = Process::serve(home, ADMIN);
    server.ready().await;
    let login = json!({"email": "root@example.com", "password": PASSWORD});
    let token = server.admin.post("/auth/login", login).ok().await["token"].as_str().unwrap().to_owned();
    let (good, text) = said(home, &["db", "rekey"]);
    assert!(!good && text.contains("stop the server"), "{text}");
    server.terminate();
    server.end();
    let key = |name: &str| fs::read_to_string(home.join(format!("data/{name}.key"))).unwrap();
    let before = (key("master_key"), key("admin_jwt_secret"));
    let (good, text) = said(home, &["db", "rekey"]);
    assert!(good, "{text}");
    assert!(!text.contains(key("master_key").trim()), "the key itself is not printed");
    let after = (key("master_key"), key("admin_jwt_secret"));
    assert_ne!(before.0, after.0);
    assert_eq!(before.1, after.1);
    let mut server = Process::serve(home, &[]);
    server.ready().await;
    server.admin.get("/auth/me").token(&token).ok().await;
    server.terminate();
    server.end();
    // The old key is of no use any more.
    let output = run(home, &["check"], &[("TIDEPOOL_MASTER_KEY", before.0.trim())]);
    assert!(!output.status.success());
    let (good, text) = said(home, &["db", "rekey", "--jwt"]);
    assert!(good, "{text}");
    let mut server = Process::serve(home, &[]);
    server.ready().await;
    server.admin.get("/auth/me").token(&token).refused("4010").await;
    users(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_newer_than_the_binary_is_refused_with_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    assert!(said(home, &["db", "migrate"]).0);
    let url = Secret::new(format!("sqlite:{}", home.join("data/tidepool.db").display()));
    let db = Db::open(&url).await.unwrap();
    db.run("INSERT INTO schema_version (version, name, applied_at) VALUES (99999, 'x', 0)", vec![]).await.unwrap();
    db.close().await;
    for command in [vec!["serve"], vec!["db", "migrate"]] {
        let (good, text) = said(home, &command);
        assert!(!good && text.contains("schema version 99999") && text.trim().lines().count() == 1, "{text}");
    }
}

/// A process whose connection for notices is cut says that some may be lost, and hears again.
#[tokio::test(flavor = "multi_thread")]
async fn lost_notices_are_told() {
    use store::notice::{Notice, Topic};
    let Some(database) = Database::postgres(module_path!()).await else { return };
    let site = Site::start(database).await;
    let db = &site.app.db;
    let mut heard = db.listen();
    let mut next = async |expected: Notice| {
        let waited = async { while heard.recv().await.unwrap() != expected {} };
        tokio::time::timeout(testkit::LIMIT, waited).await.expect("not told");
    };
    let probe = Notice::new(Topic::Metric, "probe");
    let tell = async |notice: Notice| {
        let mut tx = db.begin().await.unwrap();
        tx.notify(notice).await.unwrap();
        tx.commit().await.unwrap();
    };
    tell(probe.clone()).await;
    next(probe).await;
    let cut = "SELECT CAST(COUNT(pg_terminate_backend(pid)) AS BIGINT) AS n FROM pg_stat_activity \
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE 'LISTEN%'";
    let cut: Vec<Counted> = db.all(cut, vec![]).await.unwrap();
    assert!(cut[0].n > 0, "nobody listened");
    next(Notice::new(Topic::Anything, "")).await;
    let again = Notice::new(Topic::Metric, "again");
    tell(again.clone()).await;
    next(again).await;
}

#[tokio::test]
async fn a_transaction_that_sqlite_ended_by_itself_is_in_nobodys_way() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(&Secret::new(format!("sqlite:{}", folder.path().join("a.db").display()))).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    tx.run("CREATE TABLE a (n INTEGER NOT NULL)", vec![]).await.unwrap();
    tx.commit().await.unwrap();
    // What a full disk does in the middle of a transaction.
    let mut tx = db.begin().await.unwrap();
    tx.run("INSERT INTO a (n) VALUES (1)", vec![]).await.unwrap();
    tx.run("ROLLBACK", vec![]).await.unwrap();
    drop(tx);
    let mut tx = db.begin().await.unwrap();
    tx.run("INSERT INTO a (n) VALUES (2)", vec![]).await.unwrap();
    tx.commit().await.unwrap();
    let found: Vec<Counted> = db.all("SELECT n FROM a", vec![]).await.unwrap();
    assert_eq!(found.iter().map(|row| row.n).collect::<Vec<_>>(), [2]);
}

store::record! {
    struct Counted { n: i64 }
}

/// A health check holds a server's instances one after the other, by id. Whoever holds several of them in another order makes
/// the two wait for each other, and PostgreSQL ends one.
#[tokio::test(flavor = "multi_thread")]
async fn totals_are_copied_in_the_order_in_which_everybody_holds_instances() {
    let name = "database::totals_are_copied_in_the_order_in_which_everybody_holds_instances";
    let Some(database) = Database::postgres(name).await else { return };
    let site = Site::start(database).await;
    let db = &site.app.db;
    let ids: Vec<InstanceId> = site.instances("a", 2).await.iter().map(InstanceId::named).collect();
    // Written anew, a0 lies behind a1.
    db.run("UPDATE instance SET notes = 'moved' WHERE id = 'a0'", vec![]).await.unwrap();
    db.run("UPDATE instance SET total_requests = 1", vec![]).await.unwrap();
    db.run("UPDATE instance SET notes = 'moved again' WHERE id = 'a0'", vec![]).await.unwrap();
    let mut tx = site.begin_patient().await;
    store::instance::lock(&mut tx, &ids[0]).await.unwrap().unwrap();
    let copying = tokio::spawn({
        let db = db.clone();
        async move { store::usage::copy_totals(&db).await }
    });
    site.until_blocked().await;
    store::instance::lock(&mut tx, &ids[1]).await.unwrap().unwrap();
    tx.commit().await.unwrap();
    assert_eq!(copying.await.unwrap().unwrap(), 2);
}
