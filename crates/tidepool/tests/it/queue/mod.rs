//! The task queue: states, attempts, leases, exclusion per instance, and waking up.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

use base::id::{InstanceId, TaskId};
use base::{Error, Result};
use fleet::{App, registry};
use people::task::CleanInstance;
use queue::permission::Permission;
use queue::task::{self, Context, Payload, Priority, Run, Status, TaskType};
use queue::task_admin;
use queue::worker::{Timing, Worker};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::Tx;
use store::lease::{Now, Term};
use tokio::sync::watch;

use crate::kit::Site;
use crate::on_both;

mod leases;

/// A task that does what a test needs.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Probe {
    instance_id: Option<String>,
    #[serde(default)]
    millis: u64,
    /// It runs until the test opens this gate.
    #[serde(default)]
    gate: Option<String>,
    #[serde(default)]
    fails: bool,
    #[serde(default)]
    panics: bool,
}

/// Instances whose probe runs at this moment, and how many did at once.
static RUNNING: Mutex<Vec<String>> = Mutex::new(vec![]);
static MOST_AT_ONCE: AtomicUsize = AtomicUsize::new(0);

/// The gates that are open.
static OPEN: LazyLock<watch::Sender<HashSet<String>>> = LazyLock::new(|| watch::Sender::new(HashSet::new()));

/// A gate of its own for a test.
fn gate() -> String {
    base::id::fresh()
}

fn open(gate: &str) {
    OPEN.send_modify(|open| {
        open.insert(gate.to_owned());
    });
}

async fn pass(gate: Option<&String>) {
    if let Some(gate) = gate {
        OPEN.subscribe().wait_for(|open| open.contains(gate)).await.unwrap();
    }
}

impl Payload for Probe {
    const TYPE: &'static str = "probe";
    const PRIORITY: Priority = Priority::People;
    const PERMISSION: Permission = Permission::ManageTasks;

    async fn instance(&self, _: &mut Tx) -> Result<Option<InstanceId>> {
        Ok(self.instance_id.clone().map(InstanceId::named))
    }
}

impl Run<App> for Probe {
    async fn run(self, context: Context<App>) -> Result<String> {
        let _ends = Ends(self.gate.clone());
        context.log("begins").await?;
        if let Some(instance) = &self.instance_id {
            let mut running = RUNNING.lock().unwrap();
            assert!(!running.contains(instance), "two tasks of {instance} at the same time");
            running.push(instance.clone());
            MOST_AT_ONCE.fetch_max(running.len(), Ordering::SeqCst);
        }
        // How long the work takes, so that tasks that run at once are seen to.
        tokio::time::sleep(Duration::from_millis(self.millis)).await;
        pass(self.gate.as_ref()).await;
        if let Some(instance) = &self.instance_id {
            RUNNING.lock().unwrap().retain(|r| r != instance);
        }
        assert!(!self.panics, "as it was told to");
        if self.fails {
            return Err(Error::internal("it was told to fail"));
        }
        context.log("ends").await?;
        Ok("probed".into())
    }
}

/// The gates whose probe has ended, in whatever way.
static ENDED: LazyLock<watch::Sender<HashSet<String>>> = LazyLock::new(|| watch::Sender::new(HashSet::new()));

/// Says that a probe ended, also when it was dropped in the middle.
struct Ends(Option<String>);

impl Drop for Ends {
    fn drop(&mut self) {
        if let Some(gate) = self.0.take() {
            ENDED.send_modify(|ended| {
                ended.insert(gate);
            });
        }
    }
}

/// Cleaning, as the real one behaves in the queue.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Clean {
    instance_id: String,
    #[serde(default)]
    gate: Option<String>,
}

impl Payload for Clean {
    const TYPE: &'static str = CleanInstance::TYPE;
    const PRIORITY: Priority = Priority::People;
    const PERMISSION: Permission = Permission::ManageTasks;

    async fn instance(&self, _: &mut Tx) -> Result<Option<InstanceId>> {
        Ok(Some(InstanceId::named(&self.instance_id)))
    }
}

impl Run<App> for Clean {
    async fn run(self, _: Context<App>) -> Result<String> {
        pass(self.gate.as_ref()).await;
        Ok("cleaned".into())
    }
}

static TYPES: &[TaskType<App>] = &[TaskType::run_by::<Probe>(), TaskType::run_by::<Clean>()];

const QUICK: Timing = Timing {
    lease: Duration::from_secs(30),
    poll: Duration::from_millis(20),
    backoff: Duration::from_secs(5),
    slots: 8,
    drain: Duration::from_millis(200),
};

/// One probe that is due, whatever its priority.
const DUE: store::task::Due<'_> = store::task::Due {
    types: &["probe"],
    priorities: &(Priority::Security..=Priority::Background),
    full: &[],
    limit: 1,
};

/// A worker in the background; stops when it is dropped, or when told.
struct Working {
    stop: watch::Sender<bool>,
    ended: tokio::task::JoinHandle<()>,
}

fn work(site: &Site, timing: Timing) -> Working {
    let (stop, stopped) = watch::channel(false);
    let worker = Worker::new(site.app.clone(), TYPES, timing);
    Working { stop, ended: tokio::spawn(async move { worker.run(stopped).await }) }
}

impl Working {
    async fn stop(self) {
        self.stop.send(true).unwrap();
        self.ended.await.unwrap();
    }
}

pub async fn enqueue(site: &Site, payload: &impl Payload) -> TaskId {
    let mut tx = site.app.db.begin().await.unwrap();
    let id = task::enqueue(&site.app, &mut tx, payload, "test", None).await.unwrap();
    tx.commit().await.unwrap();
    id
}

/// Waits until the task is in this state.
pub async fn until(site: &Site, id: &TaskId, status: Status) -> task::Task {
    testkit::until_ok(&format!("the task is {status:?}"), async || {
        let task = task_admin::show(&site.app, id).await.unwrap();
        if task.status == status { Ok(task) } else { Err(task) }
    })
    .await
}

/// Returns when a worker has looked for due tasks once more: whatever was due before that, and free to run, is taken by then.
async fn another_look(site: &Site) {
    let marker = enqueue(site, &probe(None)).await;
    until(site, &marker, Status::Done).await;
}

/// A task that a worker began and left behind; its lease ends when this says.
async fn left_behind(site: &Site, instance: &str, lease_until: jiff::Timestamp) -> (TaskId, store::task::Held) {
    let mut tx = site.app.db.begin().await.unwrap();
    let now = site.app.clock.now();
    let id = task::enqueue(&site.app, &mut tx, &probe(Some(instance)), "test", None).await.unwrap();
    let due = store::task::lock_due(&mut tx, DUE, now).await.unwrap();
    assert_eq!(due[0].id, id.as_str());
    let held = store::task::begin(&mut tx, &due[0], "a worker that died", now, Term::until(lease_until)).await.unwrap();
    tx.commit().await.unwrap();
    (id, held)
}

fn probe(instance: Option<&str>) -> Probe {
    Probe { instance_id: instance.map(str::to_owned), ..Probe::default() }
}

on_both! {
    async fn tasks_are_made_and_seen_by_administrators(site: Site) {
        let ids = site.instances("a", 1).await;
        let new = |body: Value| site.admin.post("/tasks", body).token(&site.root);
        let message = new(json!({"type": "nonsense", "payload": {}})).refused("4000").await;
        assert!(message.contains("init_instance") && message.contains("clean_instance"), "the known types are listed: {message}");
        for bad in [json!({}), json!({"instance_id": 5}), json!([]), json!(null), json!({"instance_id": "none"})] {
            new(json!({"type": "sync_key_to_instance", "payload": bad})).refused("4000").await;
        }
        new(json!({"type": "init_instance", "payload": {"instance_id": ids[0]}})).refused("4000").await;
        let made = new(json!({"type": "sync_models", "payload": {"instance_id": ids[0]}})).ok().await;
        assert_eq!((made["type"].as_str(), made["status"].as_str(), made["source"].as_str()), (Some("sync_models_to_instance"), Some("pending"), Some("root@example.com")), "by its other name");
        new(json!({"type": "sync_key_to_instance", "payload": {"instance_id": ids[0]}, "source": "by hand"})).ok().await;
        for path in ["/task-queue", "/tasks"] {
            let list = site.admin.get(path).token(&site.root).ok().await;
            assert_eq!((list["total"].as_i64(), list["counts"]["pending"].as_i64(), list["counts"]["dead"].as_i64()), (Some(2), Some(2), Some(0)));
            assert!(list["list"][0]["next_attempt_at"].is_string());
        }
        assert_eq!(site.admin.get("/task-queue?status=done").token(&site.root).ok().await["total"], 0);
        assert_eq!(site.admin.get("/task-queue?type=sync_key_to_instance&q=HAND").token(&site.root).ok().await["total"], 1);
        site.admin.get("/task-queue?status=odd").token(&site.root).refused("4000").await;
        let path = format!("/tasks/{}", made["id"].as_str().unwrap());
        site.admin.post(&format!("{path}/retry"), json!({})).token(&site.root).refused("4090").await;
        assert_eq!(site.admin.post(&format!("{path}/cancel"), json!({})).token(&site.root).ok().await["status"], "dead");
        site.admin.post(&format!("{path}/cancel"), json!({})).token(&site.root).refused("4090").await;
        let again = format!("/task-queue/{}/retry", made["id"].as_str().unwrap());
        assert_eq!(site.admin.post(&again, json!({})).token(&site.root).ok().await["status"], "pending");
        let detail = site.admin.get(&path).token(&site.root).ok().await;
        assert_eq!(detail["log"][0]["line"], "retried; last error: cancelled", "the last error stays: {detail}");
        site.admin.get("/tasks/none").token(&site.root).refused("4040").await;
        site.admin.post("/tasks/none/retry", json!({})).token(&site.root).refused("4040").await;
        // The real handlers run them, and say what there was to do, or why they cannot.
        new(json!({"type": "write_config", "payload": {"instance_id": ids[0]}})).ok().await;
        let worker = Worker::new(site.app.clone(), registry::TYPES, QUICK);
        let (stop, stopped) = watch::channel(false);
        let ended = tokio::spawn(worker.run(stopped));
        let failed = testkit::until_ok("one failed and two are done", async || {
            let failed = site.admin.get("/tasks?status=failed").token(&site.root).ok().await;
            // The page, its total and the counts are read one after the other, while the worker goes on.
            let all = failed["list"][0].is_object() && failed["total"] == 1 && failed["counts"]["done"] == 2;
            if all { Ok(failed) } else { Err(failed) }
        })
        .await;
        assert!(failed["list"][0]["error"].as_str().unwrap().contains("not on its server yet"), "{failed}");
        stop.send(true).unwrap();
        ended.await.unwrap();
    }

    async fn a_task_is_done_once_and_says_what_it_did(site: Site) {
        let working = work(site, QUICK);
        let id = enqueue(site, &probe(None)).await;
        let done = until(site, &id, Status::Done).await;
        assert_eq!((done.attempts, done.result.as_str(), done.worker, done.failures), (1, "probed", None, 0));
        let log = task_admin::log_of(&site.app, &id).await.unwrap();
        assert_eq!(log.iter().map(|l| l.line.as_str()).collect::<Vec<_>>(), ["begins", "ends"]);
        working.stop().await;
    }

    async fn a_failing_task_is_tried_five_times_with_growing_waits_and_is_dead(site: Site) {
        let working = work(site, QUICK);
        let id = enqueue(site, &Probe { fails: true, ..probe(None) }).await;
        for (attempt, least) in [(1, 5), (2, 10), (3, 20), (4, 40)] {
            let failed = until(site, &id, Status::Failed).await;
            assert_eq!(failed.attempts, attempt);
            let wait = failed.next_attempt_at.duration_since(site.app.clock.now());
            let millis = wait.as_millis();
            assert!((least * 1000..=least * 1250).contains(&millis), "attempt {attempt} waits {millis} ms");
            site.wait(Duration::from_millis(millis as u64 - 1));
            another_look(site).await;
            assert_eq!(task_admin::show(&site.app, &id).await.unwrap().attempts, attempt, "not before its time");
            site.wait(Duration::from_millis(1));
            testkit::until_ok("the next attempt", async || {
                let task = task_admin::show(&site.app, &id).await.unwrap();
                if task.attempts == attempt { Err(task) } else { Ok(()) }
            })
            .await;
        }
        let dead = until(site, &id, Status::Dead).await;
        assert_eq!((dead.attempts, dead.failures), (5, 5));
        assert!(dead.error.contains("told to fail"));
        assert_eq!(dead.client_message, "internal error", "what employees read of it");
        let lines = task_admin::log_of(&site.app, &id).await.unwrap();
        assert!(lines.iter().all(|l| !l.line.contains("told to fail")), "{lines:?}");
        let audit = site.admin.get("/audit-logs?action=task.failed&level=ERROR").token(&site.root).ok().await;
        assert_eq!((audit["total"].as_i64(), audit["list"][0]["operator"].as_str()), (Some(5), Some("System")));
        site.admin.post(&format!("/tasks/{id}/retry"), json!({})).token(&site.root).ok().await;
        let failed = until(site, &id, Status::Failed).await;
        assert_eq!((failed.attempts, failed.failures), (1, 6), "from the beginning, the history kept");
        working.stop().await;
    }

    async fn a_panic_is_a_failed_attempt_and_nobody_elses(site: Site) {
        let working = work(site, QUICK);
        let bad = enqueue(site, &Probe { panics: true, ..probe(None) }).await;
        let good = enqueue(site, &probe(None)).await;
        until(site, &good, Status::Done).await;
        assert!(until(site, &bad, Status::Failed).await.error.contains("panicked"));
        working.stop().await;
    }

    async fn two_tasks_of_one_instance_never_run_at_the_same_time(site: Site) {
        let workers = [work(site, QUICK), work(site, QUICK), work(site, QUICK)];
        // Tasks of different instances do: these two cannot end before both run.
        let gate = gate();
        let mut ids = vec![];
        for name in ["y0", "y1"] {
            ids.push(enqueue(site, &Probe { gate: Some(gate.clone()), ..probe(Some(name)) }).await);
        }
        testkit::until("both run", async || MOST_AT_ONCE.load(Ordering::SeqCst) > 1).await;
        open(&gate);
        for i in 0..60 {
            let name = format!("x{}", i % 6);
            ids.push(enqueue(site, &Probe { millis: 10, ..probe(Some(&name)) }).await);
        }
        for id in &ids {
            let done = until(site, id, Status::Done).await;
            assert_eq!(done.failures, 0, "{}", done.error);
        }
        for worker in workers {
            worker.stop().await;
        }
    }

    async fn cleaning_holds_back_everything_else_of_its_instance(site: Site) {
        let gate = gate();
        let clean = enqueue(site, &Clean { instance_id: "x".into(), gate: Some(gate.clone()) }).await;
        let after = enqueue(site, &probe(Some("x"))).await;
        let pending = async |id: &TaskId| task_admin::show(&site.app, id).await.unwrap().status == Status::Pending;
        // Cleaning that waits for its next attempt holds back too, and so does a dead one.
        let later = "UPDATE task SET status = ?, next_attempt_at = next_attempt_at + 60000 WHERE id = ?";
        site.app.db.run(later, store::args!["failed", clean.as_str()]).await.unwrap();
        let working = work(site, QUICK);
        another_look(site).await;
        assert!(pending(&after).await, "held back by a cleaning that failed");
        site.admin.post(&format!("/tasks/{clean}/cancel"), json!({})).token(&site.root).ok().await;
        another_look(site).await;
        assert!(pending(&after).await, "held back by a dead cleaning");
        // A later cleaning that is done is as good.
        let again = enqueue(site, &Clean { instance_id: "x".into(), gate: None }).await;
        until(site, &again, Status::Done).await;
        until(site, &after, Status::Done).await;
        // The dead one is tried again: while it runs, nothing else of its instance does.
        site.admin.post(&format!("/tasks/{clean}/retry"), json!({})).token(&site.root).ok().await;
        until(site, &clean, Status::Processing).await;
        let after = enqueue(site, &probe(Some("x"))).await;
        another_look(site).await;
        assert!(pending(&after).await, "held back by a cleaning that runs");
        open(&gate);
        until(site, &after, Status::Done).await;
        assert_eq!(task_admin::show(&site.app, &clean).await.unwrap().status, Status::Done);
        working.stop().await;
    }

    async fn whoever_only_waits_for_a_dead_cleaning_is_not_at_work(site: Site) {
        let busy = async || {
            let mut tx = site.app.db.begin().await.unwrap();
            let one = store::task::is_busy(&mut tx, &InstanceId::named("x")).await.unwrap();
            drop(tx);
            (store::task::busy_instances(&site.app.db).await.unwrap(), one)
        };
        let set = async |id: &TaskId, status: &str| {
            site.app.db.run("UPDATE task SET status = ? WHERE id = ?", store::args![status, id.as_str()]).await.unwrap();
        };
        let (somebody, nobody) = ((vec![InstanceId::named("x")], true), (vec![], false));
        assert_eq!(busy().await, nobody);
        let clean = enqueue(site, &Clean { instance_id: "x".into(), gate: None }).await;
        assert_eq!(busy().await, somebody, "a cleaning waits for its turn");
        let after = enqueue(site, &probe(Some("x"))).await;
        set(&clean, "dead").await;
        assert_eq!(busy().await, nobody, "held back until somebody sees to the cleaning");
        set(&clean, "done").await;
        assert_eq!(busy().await, somebody, "free to run");
        set(&clean, "dead").await;
        set(&after, "dead").await;
        assert_eq!(busy().await, nobody);
    }

    async fn a_failed_task_does_not_hold_back_others_of_its_instance(site: Site) {
        let working = work(site, QUICK);
        let bad = enqueue(site, &Probe { fails: true, ..probe(Some("x")) }).await;
        until(site, &bad, Status::Failed).await;
        let good = enqueue(site, &probe(Some("x"))).await;
        until(site, &good, Status::Done).await;
        working.stop().await;
    }

    async fn workers_wake_at_once_when_a_task_is_enqueued(site: Site) {
        // By itself it would look again in an hour.
        let hour = Duration::from_secs(3600);
        let working = work(site, Timing { poll: hour, lease: 3 * hour, ..QUICK });
        // Another handle on the same database is another process, as far as notices go; SQLite has one process only.
        let elsewhere = match site.app.db.dialect() {
            store::Dialect::Sqlite => site.app.db.clone(),
            store::Dialect::Postgres => store::Db::open(&site.database_url).await.unwrap(),
        };
        // One might be found by a look that was under way; so many are not.
        for _ in 0..10 {
            let mut tx = elsewhere.begin().await.unwrap();
            let id = task::enqueue(&site.app, &mut tx, &probe(None), "elsewhere", None).await.unwrap();
            tx.commit().await.unwrap();
            until(site, &id, Status::Done).await;
        }
        working.stop().await;
    }
}

/// A type that is defined and not listed would be enqueued and never run.
#[test]
fn every_type_of_task_is_listed() {
    let mut defined = vec![];
    for krate in ["queue", "llm", "people", "fleet"] {
        for_each_source(Path::new(&format!("{}/../{krate}/src", env!("CARGO_MANIFEST_DIR"))), &mut |text| {
            // Unit tests, at the end of a file, have types of their own.
            let product = text.lines().take_while(|line| *line != "#[cfg(test)]");
            defined.extend(product.filter_map(|line| defined_type(line.trim())).map(str::to_owned));
        });
    }
    assert!(defined.len() >= 17, "the types were not found: {defined:?}");
    for name in defined {
        assert!(registry::TYPES.iter().any(|t| t.name == name), "{name} is not in TYPES");
    }
}

fn for_each_source(folder: &Path, each: &mut impl FnMut(&str)) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            for_each_source(&path, each);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            each(&std::fs::read_to_string(path).unwrap());
        }
    }
}

/// The name of the type that a line defines: `const TYPE`, or a line of `of_instance!`, which is Name = "type" { fields }.
fn defined_type(line: &str) -> Option<&str> {
    let of_instance = || {
        let (name, rest) = line.split_once(" = \"")?;
        let is_one = name.chars().all(char::is_alphanumeric) && rest.contains("\" {");
        is_one.then_some(rest)
    };
    line.strip_prefix("const TYPE: &'static str = \"").or_else(of_instance)?.split('"').next()
}

on_both! {
    async fn what_waits_on_purpose_is_not_late(site: Site) {
        let id = site.instances("late", 1).await[0].clone();
        let make = async |kind: &str| {
            let body = json!({"type": kind, "payload": {"instance_id": id}});
            site.admin.post("/tasks", body).token(&site.root).ok().await["id"].as_str().unwrap().to_owned()
        };
        make("restart_instance").await;
        let cleaning = make("clean_instance").await;
        site.admin.post(&format!("/tasks/{cleaning}/cancel"), json!({})).token(&site.root).ok().await;
        site.wait(Duration::from_secs(600));
        let late = async || store::task::late(&site.app.db, &["restart_instance"], site.app.clock.now()).await.unwrap();
        assert_eq!(late().await, 0, "it waits for the cleaning, which is dead");
        site.app.db.run("UPDATE task SET status = 'done' WHERE id = ?", store::args![&cleaning]).await.unwrap();
        assert_eq!(late().await, 1);
    }
}
