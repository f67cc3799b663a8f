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
use domain::App;
use domain::app::{Newcomers, Side};
use domain::hashing::Hasher;
use domain::llm::Llm;
use domain::permission::Permission;
use domain::task::{Context, Payload, Priority, Run, TaskType, Timing, Worker};
use domain::token::{Audience, TokenKey};
use jiff::SignedDuration;
use serde::{Deserialize, Serialize};
use store::seal::Sealer;
use store::{Db, Tx};

static FOLDER: OnceLock<PathBuf> = OnceLock::new();

#[derive(Serialize, Deserialize)]
struct CrashProbe {
    instance_id: String,
    fails: bool,
}

impl Payload for CrashProbe {
    const TYPE: &'static str = "crash_probe";
    const PRIORITY: Priority = Priority::Fleet;

    async fn instance(&self, _: &mut Tx) -> Result<Option<InstanceId>> {
        Ok(Some(InstanceId::named(&self.instance_id)))
    }

    fn permission(&self) -> Permission {
        Permission::ManageTasks
    }
}

impl Run for CrashProbe {
    async fn run(self, context: Context) -> Result<String> {
        let folder = FOLDER.get().ok_or_else(|| Error::internal("no folder"))?;
        let lock = File::create(folder.join(&self.instance_id)).map_err(Error::internal)?;
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

static TYPES: &[TaskType] = &[TaskType::run_by::<CrashProbe>()];

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let url = Secret::new(arguments.next().unwrap_or_default());
    FOLDER.get_or_init(|| PathBuf::from(arguments.next().unwrap_or_default()));
    let side = |audience| Side {
        tokens: TokenKey::new(&Secret::new("unused"), audience, SignedDuration::from_hours(1)),
        sso: None,
        newcomers: Newcomers::default(),
    };
    let db = Db::open(&url).await?;
    let sealer = Arc::new(Sealer::new(&Sealer::generate()?)?);
    let llm = Llm::embedded(db.clone(), Clock::default(), sealer.clone(), "http://127.0.0.1:9")?;
    let app = App {
        db,
        clock: Clock::default(),
        zone: Zone::UTC,
        sealer,
        hasher: Hasher::default(),
        employee: side(Audience::Employee),
        admin: side(Audience::Admin),
        proxy: None,
        mfa: Default::default(),
        audit_retention_days: 90,
        llm,
        quotas: domain::quota::Quotas::new("queue-worker"),
        feed: Arc::new(domain::usage::Local(Clock::default())),
        hosts: remote::host::Hosts::new(),
        assistants: domain::assistant::Defaults::default(),
        cells: Default::default(),
        webhooks: remote::webhook::Webhooks::default(),
        sockets: domain::relay::Sockets::default(),
        embed: domain::embed::Embed::disabled(),
        bots: domain::bot::Bots { platform: remote::bot::Platform::new("http://127.0.0.1:9")?, webhooks: None },
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
