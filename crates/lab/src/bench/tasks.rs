//! Tasks per second through the queue with a handler that does nothing, and the time until a task begins.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use base::id::InstanceId;
use base::{Error, Result};
use fleet::App;
use queue::permission::Permission;
use queue::task::{self, Context, Payload, Priority, Run, TaskType};
use queue::worker::{Timing, Worker};
use serde::{Deserialize, Serialize};
use store::Tx;
use tidepool::config::Values;
use tokio::sync::watch;

use super::site::Site;
use super::{millis, percentile, report};

const DRAINED: usize = 5000;
const TIMED: usize = 500;

#[derive(Serialize, Deserialize)]
struct Nothing {}

static BEGAN: Mutex<Option<Instant>> = Mutex::new(None);

impl Payload for Nothing {
    const TYPE: &'static str = "bench_nothing";
    const PRIORITY: Priority = Priority::People;
    const PERMISSION: Permission = Permission::ManageTasks;

    async fn instance(&self, _: &mut Tx) -> Result<Option<InstanceId>> {
        Ok(None)
    }
}

impl Run<App> for Nothing {
    async fn run(self, _: Context<App>) -> Result<String> {
        if let Ok(mut began) = BEGAN.lock() {
            *began = Some(Instant::now());
        }
        Ok(String::new())
    }
}

static TYPES: &[TaskType<App>] = &[TaskType::run_by::<Nothing>()];

pub async fn run(values: &Values) -> Result<()> {
    let site = Site::open(values).await?;
    let mut tx = site.app().db.begin().await?;
    for _ in 0..DRAINED {
        task::enqueue(site.app(), &mut tx, &Nothing {}, "bench", None).await?;
    }
    tx.commit().await?;
    let (stop, stopped) = watch::channel(false);
    let timing = Timing { slots: 32, ..Timing::default() };
    let began = Instant::now();
    let worker = tokio::spawn(Worker::new(site.opened.app.clone(), TYPES, timing).run(stopped));
    let db = site.app().db.clone();
    let relay = tokio::spawn(async move { db.relay_notices().await });
    while done(&site).await? < DRAINED as i64 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let rate = DRAINED as f64 / began.elapsed().as_secs_f64();
    report(&format!("tasks drained, no-op handler, {}", site.kind()), format!("{rate:.0}/s"), "goal 1000/s");

    let mut waits = vec![];
    for _ in 0..TIMED {
        let mut tx = site.app().db.begin().await?;
        task::enqueue(site.app(), &mut tx, &Nothing {}, "bench", None).await?;
        let enqueued = Instant::now();
        tx.commit().await?;
        let deadline = enqueued + Duration::from_secs(30);
        let began = loop {
            let began = BEGAN.lock().map_err(|_| Error::internal("a task panicked"))?.filter(|b| *b >= enqueued);
            match began {
                Some(began) => break began,
                None if Instant::now() > deadline => return Err(Error::internal("a task did not begin")),
                None => tokio::time::sleep(Duration::from_micros(200)).await,
            }
        };
        waits.push(began - enqueued);
    }
    waits.sort();
    report(
        &format!("from enqueue to start, {}", site.kind()),
        format!("p50 {}, p99 {}", millis(percentile(&waits, 0.5)), millis(percentile(&waits, 0.99))),
        "goal p99 100 ms",
    );
    stop.send(true).ok();
    worker.await.map_err(Error::internal)?;
    relay.abort();
    Ok(())
}

async fn done(site: &Site) -> Result<i64> {
    let counts = store::task::counts(&site.app().db).await?;
    Ok(counts.iter().find(|c| c.status == task::Status::Done).map_or(0, |c| c.n))
}
