//! A rolling upgrade: replicas of an older release and of this one on one PostgreSQL. `testbed/install.sh former` builds the older one.

use std::path::Path;

use serde_json::{Value, json};
use store::Db;

use crate::kit::{Database, PASSWORD, Process};

const ADMIN: &str = "root@example.com";

struct Installation<'a> {
    folder: &'a Path,
    database: &'a Database,
    former: String,
}

impl Installation<'_> {
    fn environment(&self) -> [(&str, &str); 5] {
        [
            ("TIDEPOOL_BOOTSTRAP_ADMIN_EMAIL", ADMIN),
            ("TIDEPOOL_BOOTSTRAP_ADMIN_PASSWORD", PASSWORD),
            ("TIDEPOOL_DATABASE_URL", self.database.url.expose()),
            ("TIDEPOOL_TIMEZONE", "Europe/Berlin"),
            ("TIDEPOOL_PROVIDER_ECHO", "true"),
        ]
    }

    async fn former(&self) -> Process {
        let mut process = Process::serve_with(&self.former, self.folder, &self.environment());
        process.ready().await;
        process
    }

    async fn current(&self) -> Process {
        let mut process = Process::serve(self.folder, &self.environment());
        process.ready().await;
        process
    }
}

async fn admin(process: &Process) -> String {
    let login = json!({"email": ADMIN, "password": PASSWORD});
    process.admin.post("/auth/login", login).ok().await["token"].as_str().unwrap().to_owned()
}

/// Somebody is made on one, gets an instance on the other, talks on both, and it is taken back on the first.
async fn live(one: &Process, other: &Process, name: &str) {
    let (here, there) = (admin(one).await, admin(other).await);
    let email = format!("{name}@example.com");
    let user = json!({"email": email, "name": name, "password": PASSWORD});
    let user = one.admin.post("/users", user).token(&here).ok().await;
    one.admin
        .post("/servers", json!({"id": format!("s-{name}"), "name": name, "host": "192.0.2.1"}))
        .token(&here)
        .ok()
        .await;
    let instance = json!({"id": format!("i-{name}"), "name": name, "server_id": format!("s-{name}"), "model": "claude-sonnet-4-6"});
    other.admin.post("/assistant-instances", instance).token(&there).ok().await;
    let login = json!({"email": email, "password": PASSWORD});
    let token = other.employee.post("/auth/login", login).ok().await["token"].as_str().unwrap().to_owned();
    let id = format!("i-{name}");
    let assign = format!("/instances/{id}/assign");
    other.admin.patch(&assign, json!({"user_id": user["id"]})).token(&there).ok().await;
    for process in [one, other] {
        let said: Value =
            process.employee.post("/me/chat", json!({"instance_id": id, "message": name})).token(&token).ok().await;
        assert_eq!(said["content"], name);
    }
    one.admin.patch(&assign, json!({"user_id": null})).token(&here).ok().await;
    for (process, token) in [(one, &here), (other, &there)] {
        for path in ["/users", "/instances", "/task-queue", "/audit-logs", "/llm-request-logs", "/job-runs", "/servers"]
        {
            process.admin.get(path).token(token).ok().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_release_runs_and_starts_beside_this_one() {
    let former = std::env::var("TIDEPOOL_TEST_FORMER").expect("make test-real builds the older release");
    let database = Database::postgres("real::rolling").await.expect("make test-real starts PostgreSQL");
    let folder = tempfile::tempdir().unwrap();
    let installation = Installation { folder: folder.path(), database: &database, former };
    let (old, older) = (installation.former().await, installation.former().await);
    live(&old, &older, "before").await;
    // The first new one changes the schema, under the feet of the others.
    let new = installation.current().await;
    live(&old, &new, "beside").await;
    live(&new, &older, "aside").await;
    // One of the old ones is started again, as after a crash.
    older.terminate();
    older.end();
    let older = installation.former().await;
    live(&older, &new, "again").await;
    // One after the other is replaced.
    old.terminate();
    old.end();
    let second = installation.current().await;
    live(&second, &older, "nearly").await;
    older.terminate();
    older.end();
    live(&new, &second, "after").await;
    let db = Db::open(&database.url).await.unwrap();
    // What the older release wrote down without the totals, which it does not know: spend_comparison corrects them every night.
    assert!(store::usage::recount(&db).await.unwrap() > 0);
    assert_eq!(store::invariant::broken(&db).await.unwrap(), []);
    assert_eq!(store::migrate::version(&db).await.unwrap(), Some(store::migrate::known()));
}
