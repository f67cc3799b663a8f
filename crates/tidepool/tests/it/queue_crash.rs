//! Workers killed at random: no task is lost, and none runs twice at the same time.
//!
//! The workers are real processes (crates/queue/examples/queue_worker.rs) that hold a file lock while a
//! task runs, so that two at once are seen even across processes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base::id::{InstanceId, TaskId};
use base::secret::random_bytes;
use store::task::Status;
use store::{Db, migrate};

use crate::kit::Database;

const TASKS: usize = 500;
/// How often a worker is killed, and how many tasks are finished between two times at least.
const KILLS: usize = 15;
const BETWEEN: i64 = 15;

fn worker_binary() -> PathBuf {
    // …/deps/it-0123 → …/examples/queue_worker
    let here = std::env::current_exe().unwrap();
    here.parent().unwrap().parent().unwrap().join("examples/queue_worker")
}

fn start(database: &Database, folder: &Path) -> Child {
    let mut command = Command::new(worker_binary());
    command.arg(database.url.expose()).arg(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit());
    command.spawn().unwrap()
}

async fn fill(db: &Db) {
    let mut tx = db.begin().await.unwrap();
    for i in 0..TASKS {
        let now = jiff::Timestamp::now();
        let task = store::task::Task {
            id: TaskId::fresh(),
            r#type: "crash_probe".into(),
            // One in fifty always fails, and ends dead.
            payload: format!("{{\"instance_id\":\"x{}\",\"fails\":{}}}", i % 40, i % 50 == 7),
            status: Status::Pending,
            attempts: 0,
            failures: 0,
            error: String::new(),
            client_message: String::new(),
            result: String::new(),
            source: "test".into(),
            operator: "test".into(),
            instance_id: Some(InstanceId::named(format!("x{}", i % 40))),
            server_id: None,
            priority: store::task::Priority::Fleet,
            coalesce_key: None,
            after_id: None,
            user_id: None,
            worker: None,
            lease_until: None,
            next_attempt_at: now,
            created_at: now,
            updated_at: now,
        };
        store::task::insert(&mut tx, &task).await.unwrap();
    }
    tx.commit().await.unwrap();
}

store::record! {
    struct Left { n: i64 }
}

async fn left(db: &Db) -> i64 {
    let sql = "SELECT COUNT(*) AS n FROM task WHERE status NOT IN ('done', 'dead')";
    db.first::<Left>(sql, vec![]).await.unwrap().unwrap().n
}

async fn survive(database: Database, workers: usize) {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(&database.url).await.unwrap();
    migrate::run(&db).await.unwrap();
    fill(&db).await;
    let mut running: Vec<Child> = (0..workers).map(|_| start(&database, folder.path())).collect();
    // Each kill comes when tasks were finished since the last one, so that a slow machine makes progress between two.
    for _ in 0..KILLS {
        let before = left(&db).await;
        testkit::until_ok("some tasks are finished", async || match left(&db).await {
            left if left + BETWEEN <= before => Ok(()),
            left => Err(left),
        })
        .await;
        // At any moment of what it does then.
        let random = random_bytes::<2>().unwrap();
        tokio::time::sleep(Duration::from_millis(u64::from(random[0]) / 8)).await;
        let victim = usize::from(random[1]) % workers;
        running[victim].kill().unwrap();
        running[victim].wait().unwrap();
        running[victim] = start(&database, folder.path());
    }
    testkit::until_ok_within(2 * testkit::LIMIT, "all tasks are finished", async || match left(&db).await {
        0 => Ok(()),
        left => Err(left),
    })
    .await;
    for mut worker in running {
        worker.kill().unwrap();
        worker.wait().unwrap();
    }
    let count = async |status: &str| {
        let sql = "SELECT COUNT(*) AS n FROM task WHERE status = ?";
        db.first::<Left>(sql, store::args![status]).await.unwrap().unwrap().n
    };
    let (done, dead) = (count("done").await, count("dead").await);
    assert_eq!(done + dead, TASKS as i64, "none is lost");
    assert!(dead >= 10, "those that always fail are dead");
    let violations = folder.path().join("violations");
    assert!(!violations.exists(), "ran twice at once: {}", fs::read_to_string(&violations).unwrap());
    let broken = store::invariant::broken(&db).await.unwrap();
    assert!(broken.is_empty(), "{broken:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_workers_on_postgres() {
    if let Some(database) = Database::postgres("queue_crash::postgres").await {
        survive(database, 2).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_worker_on_sqlite() {
    survive(Database::sqlite(), 1).await;
}
