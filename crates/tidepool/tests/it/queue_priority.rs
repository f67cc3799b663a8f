//! Who comes first in the queue, and that nothing takes all of it: neither what is less urgent, nor a server that is sick, nor the same
//! task again and again.

use std::collections::HashSet;
use std::sync::LazyLock;
use std::time::Duration;

use base::Result;
use base::id::{InstanceId, TaskId};
use fleet::App;
use queue::permission::Permission;
use queue::task::{self, Context, Payload, Priority, Run, Status, TaskType};
use queue::task_admin;
use queue::worker::{Timing, Worker};
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::{Dialect, Tx, args, gateway_key};
use tokio::sync::watch;

use crate::kit::{Database, Site, database_before};
use crate::on_both;
use crate::queue::{enqueue, until};

/// The gates that are open: a task of a gate runs until the test opens it.
static OPEN: LazyLock<watch::Sender<HashSet<String>>> = LazyLock::new(|| watch::Sender::new(HashSet::new()));

macro_rules! gated {
    ($($name:ident $type:literal $priority:ident $coalesces:literal)*) => {$(
        #[derive(Clone, Debug, Serialize, Deserialize)]
        struct $name {
            instance_id: Option<String>,
            gate: String,
        }

        impl Payload for $name {
            const TYPE: &'static str = $type;
            const PRIORITY: Priority = Priority::$priority;
            const PERMISSION: Permission = Permission::ManageTasks;
            const COALESCES: bool = $coalesces;

            async fn instance(&self, _: &mut Tx) -> Result<Option<InstanceId>> {
                Ok(self.instance_id.clone().map(InstanceId::named))
            }
        }

        impl Run<App> for $name {
            async fn run(self, _: Context<App>) -> Result<String> {
                OPEN.subscribe().wait_for(|open| self.gate.is_empty() || open.contains(&self.gate)).await.unwrap();
                Ok("done".into())
            }
        }
    )*};
}

gated! {
    Urgent "urgent" Security false
    Asked "asked" People false
    Slow "slow" Background false
    Sync "sync" Background true
}

static TYPES: &[TaskType<App>] = &[
    TaskType::run_by::<Urgent>(),
    TaskType::run_by::<Asked>(),
    TaskType::run_by::<Slow>(),
    TaskType::run_by::<Sync>(),
];

const TIMING: Timing = Timing {
    lease: Duration::from_secs(30),
    poll: Duration::from_millis(20),
    backoff: Duration::from_secs(5),
    slots: 8,
    drain: Duration::from_millis(200),
};

/// A worker; it ends when it is told to, or dropped.
struct Working(watch::Sender<bool>, tokio::task::JoinHandle<()>);

impl Working {
    fn begin(site: &Site) -> Working {
        let (stop, stopped) = watch::channel(false);
        Working(stop, tokio::spawn(Worker::new(site.app.clone(), TYPES, TIMING).run(stopped)))
    }

    async fn end(self) {
        self.0.send(true).unwrap();
        self.1.await.unwrap();
    }
}

store::record! { struct Count { n: i64 } }

/// How many tasks of a type run.
async fn running(site: &Site, kind: &str) -> i64 {
    let sql = "SELECT COUNT(*) AS n FROM task WHERE status = 'processing' AND type = ?";
    site.app.db.first::<Count>(sql, args![kind]).await.unwrap().unwrap().n
}

fn open(gate: &str) {
    OPEN.send_modify(|open| {
        open.insert(gate.to_owned());
    });
}

on_both! {
    async fn what_is_less_urgent_never_has_all_workers(site: Site) {
        let gate = base::id::fresh();
        let mut slow = vec![];
        for _ in 0..40 {
            slow.push(enqueue(site, &Slow { instance_id: None, gate: gate.clone() }).await);
        }
        let working = Working::begin(site);
        testkit::until("half of the slots are taken", async || running(site, "slow").await == 4).await;
        // Both begin and end while the others hold what they have and thirty-six more wait before them.
        for _ in 0..3 {
            let asked = enqueue(site, &Asked { instance_id: None, gate: String::new() }).await;
            until(site, &asked, Status::Done).await;
        }
        let mut all = vec![];
        for _ in 0..8 {
            all.push(enqueue(site, &Asked { instance_id: None, gate: gate.clone() }).await);
        }
        testkit::until("every slot is taken", async || running(site, "asked").await == 4).await;
        let urgent = enqueue(site, &Urgent { instance_id: None, gate: String::new() }).await;
        until(site, &urgent, Status::Done).await;
        assert_eq!((running(site, "slow").await, running(site, "asked").await), (4, 4));
        open(&gate);
        for id in slow.iter().chain(&all) {
            until(site, id, Status::Done).await;
        }
        working.end().await;
    }

    /// A gateway that does not answer holds every task of security; those of people are done all the same.
    async fn security_that_hangs_holds_up_nobody_else(site: Site) {
        let gate = base::id::fresh();
        let mut hung = vec![];
        for _ in 0..40 {
            hung.push(enqueue(site, &Urgent { instance_id: None, gate: gate.clone() }).await);
        }
        let working = Working::begin(site);
        testkit::until("it has its own slots and half of the others", async || running(site, "urgent").await == 8).await;
        for _ in 0..3 {
            let asked = enqueue(site, &Asked { instance_id: None, gate: String::new() }).await;
            until(site, &asked, Status::Done).await;
        }
        assert_eq!(running(site, "urgent").await, 8);
        open(&gate);
        for id in &hung {
            until(site, id, Status::Done).await;
        }
        working.end().await;
    }

    async fn the_more_urgent_begins_first(site: Site) {
        let gate = String::new();
        let slow = enqueue(site, &Slow { instance_id: None, gate: gate.clone() }).await;
        site.wait(Duration::from_secs(1));
        let asked = enqueue(site, &Asked { instance_id: None, gate: gate.clone() }).await;
        site.wait(Duration::from_secs(1));
        let urgent = enqueue(site, &Urgent { instance_id: None, gate }).await;
        let mut tx = site.app.db.begin().await.unwrap();
        let types = &["urgent", "asked", "slow"];
        let due = store::task::Due { types, priorities: &(Priority::Security..=Priority::Background), full: &[], limit: 9 };
        let found = store::task::lock_due(&mut tx, due, site.app.clock.now()).await.unwrap();
        let order: Vec<&str> = found.iter().map(|task| task.id.as_str()).collect();
        assert_eq!(order, [urgent.as_str(), asked.as_str(), slow.as_str()]);
    }

    async fn a_sick_server_takes_no_more_than_its_share(site: Site) {
        let gate = base::id::fresh();
        let (sick, well) = (site.instances("s", 12).await, site.instances("w", 1).await);
        let mut waiting = vec![];
        for id in sick {
            waiting.push(enqueue(site, &Asked { instance_id: Some(id), gate: gate.clone() }).await);
        }
        let working = Working::begin(site);
        testkit::until("its share runs", async || running(site, "asked").await == 4).await;
        let other = enqueue(site, &Asked { instance_id: Some(well[0].clone()), gate: String::new() }).await;
        until(site, &other, Status::Done).await;
        let nowhere = enqueue(site, &Asked { instance_id: None, gate: String::new() }).await;
        until(site, &nowhere, Status::Done).await;
        assert_eq!(running(site, "asked").await, 4, "half of the slots, since there are two servers");
        open(&gate);
        for id in &waiting {
            until(site, id, Status::Done).await;
        }
        working.end().await;
    }

    async fn one_sync_of_an_instance_waits_at_a_time(site: Site) {
        let ids = site.instances("a", 2).await;
        let gate = base::id::fresh();
        let sync = |id: &str| Sync { instance_id: Some(id.to_owned()), gate: gate.clone() };
        let first = enqueue(site, &sync(&ids[0])).await;
        for _ in 0..20 {
            assert_eq!(enqueue(site, &sync(&ids[0])).await.as_str(), first.as_str());
        }
        assert_ne!(enqueue(site, &sync(&ids[1])).await.as_str(), first.as_str(), "another instance's is another task");
        let working = Working::begin(site);
        until(site, &first, Status::Processing).await;
        // It may have read what was there before: what comes now needs another.
        let second = enqueue(site, &sync(&ids[0])).await;
        assert_ne!(second.as_str(), first.as_str());
        assert_eq!(enqueue(site, &sync(&ids[0])).await.as_str(), second.as_str());
        // The worker stops and gives back what it runs: the other one is enough.
        working.end().await;
        assert_eq!(until(site, &first, Status::Done).await.result, "another task that does the same waits");
        assert_eq!(until(site, &second, Status::Pending).await.attempts, 0);
        // One that was given up is not brought back beside one that waits.
        let dead = "UPDATE task SET status = 'dead', attempts = 5 WHERE id = ?";
        site.app.db.run(dead, args![first.as_str()]).await.unwrap();
        site.admin.post(&format!("/tasks/{first}/retry"), json!({})).token(&site.root).refused("4090").await;
        open(&gate);
        let working = Working::begin(site);
        until(site, &second, Status::Done).await;
        working.end().await;
        // By name, too.
        let new = || site.admin.post("/tasks", json!({"type": "sync_models", "payload": {"instance_id": ids[0]}}));
        let made = new().token(&site.root).ok().await;
        assert_eq!(new().token(&site.root).ok().await["id"], made["id"]);
    }

    async fn a_task_that_is_joined_becomes_as_urgent_as_whoever_joins(site: Site) {
        let sync = Sync { instance_id: None, gate: String::new() };
        let id = enqueue(site, &sync).await;
        let mut tx = site.app.db.begin().await.unwrap();
        for priority in [Priority::Security, Priority::Background] {
            assert_eq!(task::enqueue_at(&site.app, &mut tx, priority, &sync, "test").await.unwrap(), id);
        }
        tx.commit().await.unwrap();
        assert_eq!(task_admin::show(&site.app, &id).await.unwrap().priority, Priority::Security);
    }

    async fn a_joined_task_begins_when_whoever_joined_it_is_done(site: Site) {
        // SQLite has one writer: nothing begins beside a transaction.
        if site.app.db.dialect() == Dialect::Sqlite {
            return;
        }
        let sync = Sync { instance_id: None, gate: String::new() };
        let first = enqueue(site, &sync).await;
        let mut tx = site.begin_patient().await;
        let joined = task::enqueue(&site.app, &mut tx, &sync, "test", None).await.unwrap();
        assert_eq!(joined.as_str(), first.as_str());
        let working = Working::begin(site);
        // A worker that has looked and taken all that it may.
        let marker = enqueue(site, &Slow { instance_id: None, gate: String::new() }).await;
        until(site, &marker, Status::Done).await;
        assert_eq!(task_admin::show(&site.app, &first).await.unwrap().status, Status::Pending);
        tx.commit().await.unwrap();
        until(site, &first, Status::Done).await;
        working.end().await;
    }
}

/// A queue and keys as a release before priorities left them.
async fn upgraded(database: Database) {
    let db = database_before(21, &database.url).await;
    let mut tx = db.begin().await.unwrap();
    tx.script(
        "INSERT INTO users (id, email, email_key, name, department, status, quota_daily, created_at) VALUES \
            ('r', 'r@example.com', 'r@example.com', '', '', 'revoked', 0, 0), ('n', 'n@example.com', 'n@example.com', '', '', 'active', 0, 0)",
    )
    .await
    .unwrap();
    for (port, id, holder) in [(18000i64, "revoked", Some("r")), (18100, "next", Some("n")), (18200, "idle", None)] {
        let sql = "INSERT INTO instance (id, id_key, server_id, assigned_user_id, pooled, name, gateway_port, gateway_url, gateway_token, model, \
            health_status, notes, config_json, created_at, updated_at) VALUES (?, ?, 's', ?, 0, '', ?, '', '', '', 'unknown', '', '{}', 0, 0)";
        tx.run(sql, args![id, id, holder, port]).await.unwrap();
        let sql = "INSERT INTO gateway_key (id, instance_id, name, secret, secret_hash, status, user_revoked, created_at, updated_at) \
            VALUES (?, ?, ?, '', ?, 'active', 1, 0, 0)";
        tx.run(sql, args![id, id, id, id]).await.unwrap();
    }
    for (id, kind, instance) in [
        ("1", "apply_key", None),
        ("2", "sync_models_to_instance", Some("next")),
        ("3", "init_instance", Some("idle")),
        ("4", "upgrade_instance", Some("idle")),
    ] {
        let sql = "INSERT INTO task (id, type, payload, status, source, instance_id, next_attempt_at, created_at, updated_at) \
            VALUES (?, ?, '{}', 'pending', '', ?, 0, 0, 0)";
        tx.run(sql, args![id, kind, instance]).await.unwrap();
    }
    tx.commit().await.unwrap();
    store::migrate::run(&db).await.unwrap();
    let found = async |id: &str| {
        let task = store::task::find(&db, &TaskId::named(id)).await.unwrap().unwrap();
        (task.priority, task.server_id)
    };
    let s = Some(base::id::ServerId::named("s"));
    assert_eq!(found("1").await, (Priority::Security, None));
    assert_eq!(found("2").await, (Priority::Background, s.clone()));
    assert_eq!(found("3").await, (Priority::People, s.clone()));
    assert_eq!(found("4").await, (Priority::Fleet, s));
    for (id, revoked) in [("revoked", true), ("next", false), ("idle", false)] {
        let key = gateway_key::named(&db, id).await.unwrap().unwrap();
        assert_eq!(
            (key.user_revoked, key.dirty),
            (revoked, !revoked),
            "{id}: what was put right is brought to the gateway"
        );
    }
}

#[tokio::test]
async fn an_older_queue_gets_its_priorities_and_keys_their_flags_sqlite() {
    upgraded(Database::sqlite()).await;
}

#[tokio::test]
async fn an_older_queue_gets_its_priorities_and_keys_their_flags_postgres() {
    if let Some(database) = Database::postgres(module_path!()).await {
        upgraded(database).await;
    }
}
