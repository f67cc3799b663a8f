//! Putting tasks into the queue.

use base::id::{TaskId, UserId};
use base::{Error, Result};
use store::Tx;
use store::notice::{Notice, Topic};
use store::task::{self, Status, Task};

use super::kind::{self, Payload, Priority};
use crate::App;

/// Puts a task into the queue, in the transaction of the change that needs it. Workers wake when it commits. If the
/// type coalesces and a task with the same payload waits already, that task is returned; it does not start before this
/// transaction ends.
///
/// A caller that enqueues for several instances must do so in the order of their ids. Otherwise two transactions could
/// wait for each other's tasks and deadlock.
pub async fn enqueue<P: Payload>(
    app: &App,
    tx: &mut Tx,
    payload: &P,
    source: &str,
    on_behalf_of: Option<&UserId>,
) -> Result<TaskId> {
    let new = kind::NewTask::of(payload, tx).await?;
    let asked = Asked { source, operator: source, on_behalf_of };
    insert(app, tx, new, asked).await
}

/// Like `enqueue`, with a priority other than its type's. A waiting task that is reused gets the higher of the two
/// priorities.
pub async fn enqueue_at<P: Payload>(
    app: &App,
    tx: &mut Tx,
    priority: Priority,
    payload: &P,
    source: &str,
) -> Result<TaskId> {
    let task = kind::NewTask { priority, ..kind::NewTask::of(payload, tx).await? };
    insert(app, tx, task, Asked { source, operator: source, on_behalf_of: None }).await
}

/// Who asks for a task.
pub(crate) struct Asked<'a> {
    /// A label for people: what caused the task.
    pub source: &'a str,
    /// The name in the audit log.
    pub operator: &'a str,
    pub on_behalf_of: Option<&'a UserId>,
}

/// A longer payload is not used as an index key, so its task does not coalesce. Only POST /tasks can send one.
const LONGEST_KEY: usize = 300;
/// How often to try again when the waiting task starts just as it is looked up.
const MOST_LOOKS: usize = 10;

pub(crate) async fn insert(app: &App, tx: &mut Tx, new: kind::NewTask, asked: Asked<'_>) -> Result<TaskId> {
    let kind::NewTask { name, priority, coalesces, raises, payload, instance, server } = new;
    if let Some(instance) = instance.as_ref().filter(|_| raises) {
        store::reconcile::raise(&mut *tx, instance).await?;
    }
    let coalesce_key = (coalesces && payload.len() <= LONGEST_KEY).then(|| format!("{name} {payload}"));
    let id = TaskId::fresh();
    let now = app.clock.now();
    let record = Task {
        id: id.clone(),
        r#type: name.to_owned(),
        payload,
        status: Status::Pending,
        attempts: 0,
        failures: 0,
        error: String::new(),
        client_message: String::new(),
        result: String::new(),
        source: asked.source.to_owned(),
        operator: asked.operator.to_owned(),
        instance_id: instance,
        server_id: server,
        priority,
        coalesce_key,
        after_id: None,
        user_id: asked.on_behalf_of.cloned(),
        worker: None,
        lease_until: None,
        next_attempt_at: now,
        created_at: now,
        updated_at: now,
    };
    for _ in 0..MOST_LOOKS {
        if let Some(key) = &record.coalesce_key
            && let Some(waiting) = task::lock_waiting(tx, key).await?
        {
            let id = waiting.id;
            if record.priority < waiting.priority {
                task::set_priority(tx, &id, record.priority).await?;
                tx.notify(Notice::new(Topic::Task, id.as_str())).await?;
            }
            return Ok(id);
        }
        if task::insert(tx, &record).await? {
            tx.notify(Notice::new(Topic::Task, id.as_str())).await?;
            return Ok(id);
        }
    }
    Err(Error::internal(format_args!("a task {name} could neither be made nor joined")))
}

/// The subject of an alert about a task.
pub(crate) fn subject(id: &str) -> String {
    format!("task:{id}")
}

#[cfg(test)]
mod tests {
    use base::Clock;
    use base::id::InstanceId;
    use testkit::Database;

    use super::*;

    crate::of_instance! {
        Sync = "sync" {} for ManageInstances at Background, coalesces;
        Restart = "restart" {} for ManageInstances at People;
    }

    async fn app() -> (App, Database) {
        let database = Database::sqlite();
        let clock = Clock::manual("2026-11-15T12:00:00Z".parse().unwrap());
        (App::for_tests(database.migrated().await, clock).unwrap(), database)
    }

    async fn asked<P: Payload>(app: &App, payload: &P) -> TaskId {
        let mut tx = app.db.begin().await.unwrap();
        let id = enqueue(app, &mut tx, payload, "a test", None).await.unwrap();
        tx.commit().await.unwrap();
        id
    }

    #[tokio::test]
    async fn a_waiting_task_serves_whoever_asks_for_the_same_again() {
        let (app, _database) = app().await;
        let of = |id: &str| Sync { instance_id: InstanceId::named(id) };
        let first = asked(&app, &of("a")).await;
        assert_eq!(asked(&app, &of("a")).await, first);
        assert_ne!(asked(&app, &of("b")).await, first, "another instance's");
    }

    #[tokio::test]
    async fn a_type_that_does_not_coalesce_is_enqueued_each_time() {
        let (app, _database) = app().await;
        let again = Restart { instance_id: InstanceId::named("a") };
        assert_ne!(asked(&app, &again).await, asked(&app, &again).await);
    }

    #[tokio::test]
    async fn a_waiting_task_becomes_as_urgent_as_whoever_joins_it() {
        let (app, _database) = app().await;
        let payload = Sync { instance_id: InstanceId::named("a") };
        let id = asked(&app, &payload).await;
        let mut tx = app.db.begin().await.unwrap();
        assert_eq!(enqueue_at(&app, &mut tx, Priority::Security, &payload, "a test").await.unwrap(), id);
        assert_eq!(enqueue_at(&app, &mut tx, Priority::Fleet, &payload, "a test").await.unwrap(), id);
        tx.commit().await.unwrap();
        assert_eq!(task::find(&app.db, &id).await.unwrap().unwrap().priority, Priority::Security, "never less urgent");
    }

    #[tokio::test]
    async fn a_task_is_not_there_when_its_transaction_is_not() {
        let (app, _database) = app().await;
        let mut tx = app.db.begin().await.unwrap();
        let id =
            enqueue(&app, &mut tx, &Restart { instance_id: InstanceId::named("a") }, "a test", None).await.unwrap();
        drop(tx);
        assert!(task::find(&app.db, &id).await.unwrap().is_none());
    }

    #[test]
    fn a_payload_of_an_instance_is_about_it() {
        let payload = Restart { instance_id: InstanceId::named("a") };
        assert_eq!((Restart::TYPE, Restart::COALESCES, Sync::COALESCES), ("restart", false, true));
        assert_eq!(serde_json::to_value(&payload).unwrap(), serde_json::json!({"instance_id": "a"}));
        assert_eq!(payload.instance_id, InstanceId::named("a"));
    }
}
