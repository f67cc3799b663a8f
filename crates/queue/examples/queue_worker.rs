//! A worker process for the crash tests: `queue_worker DATABASE_URL FOLDER`, until it is killed.
//!
//! Each task holds a file lock of its instance while it runs. The system gives the lock of a killed
//! process back, so whoever finds it taken has seen two tasks of one instance at the same time.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base::id::InstanceId;
use base::{Clock, Error, Result, Secret, Zone};
use queue::App;
use queue::permission::Permission;
use queue::task::{Context, Payload, Priority, Run, TaskType};
use queue::worker::{Timing, Worker};
use remote::webhook::Webhooks;
use serde::{Deserialize, Serialize};
use store::seal::Sealer;
use store::{Db, Tx};

static FOLDER: OnceLock<PathBuf> = OnceLock::new();

#[derive(Serialize, Deserialize)]
struct CrashProbe {
    instance_id: InstanceId,
    fails: bool,
}

impl Payload for CrashProbe {
    const TYPE: &'static str = "crash_probe";
    const PRIORITY: Priority = Priority::Fleet;
    const PERMISSION: Permission = Permission::ManageTasks;

    async fn instance(&self, _: &mut Tx) -> Result<Option<InstanceId>> {
        Ok(Some(self.instance_id.clone()))
    }
}

impl Run<App> for CrashProbe {
    async fn run(self, context: Context<App>) -> Result<String> {
        let folder = FOLDER.get().ok_or_else(|| Error::internal("no folder"))?;
        let lock = File::create(folder.join(self.instance_id.as_str())).map_err(Error::internal)?;
        if lock.try_lock().is_err() {
            let log = OpenOptions::new().create(true).append(true).open(folder.join("violations"));
            writeln!(log.map_err(Error::internal)?, "{} {}", self.instance_id, context.task.id)
                .map_err(Error::internal)?;
        }
        let random = base::secret::random_bytes::<1>()?[0];
        tokio::time::sleep(Duration::from_millis(u64::from(random) / 4)).await;
        if self.fails { Err(Error::internal("it always fails")) } else { Ok("survived".into()) }
    }
}

static TYPES: &[TaskType<App>] = &[TaskType::run_by::<CrashProbe>()];

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let url = Secret::new(arguments.next().unwrap_or_default());
    FOLDER.get_or_init(|| PathBuf::from(arguments.next().unwrap_or_default()));
    let db = Db::open(&url).await?;
    let sealer = Arc::new(Sealer::new(&Sealer::generate()?)?);
    let app = App {
        db,
        clock: Clock::default(),
        zone: Zone::UTC,
        sealer,
        audit_retention_days: 90,
        webhooks: Webhooks::default(),
    };
    let timing = Timing {
        lease: Duration::from_millis(1500),
        poll: Duration::from_millis(200),
        backoff: Duration::from_millis(100),
        slots: 4,
        drain: Duration::from_secs(1),
    };
    let app = Arc::new(app);
    let worker = Worker::new(app.clone(), TYPES, timing);
    let (_never, stop) = tokio::sync::watch::channel(false);
    tokio::select! {
        () = app.db.relay_notices() => {}
        () = worker.run(stop) => {}
    }
    Ok(())
}
