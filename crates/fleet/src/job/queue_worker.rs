//! queueWorker: workers of every process take tasks up by themselves (`queue::worker`). This run records how the queue
//! is doing, and fails when tasks wait although they are due: then no worker is there.

use std::sync::Arc;
use std::time::Duration;

use base::{Error, Result, When};
use jiff::SignedDuration;
use store::task::{self, Status};

use super::Job;
use crate::App;
use crate::handler::TYPES;

pub(super) const JOB: Job = Job {
    limit: Duration::from_secs(60),
    ..Job::new("queueWorker", "Task queue", When::Seconds(5), |app, _| Box::pin(run(app)))
};

/// A task that has been due for longer than this is late.
const LATE: SignedDuration = SignedDuration::from_mins(5);

async fn run(app: Arc<App>) -> Result<String> {
    let counts = task::counts(&app.db).await?;
    let of = |status: Status| counts.iter().find(|c| c.status == status).map_or(0, |c| c.n);
    let summary = format!(
        "{} pending, {} processing, {} failed, {} dead",
        of(Status::Pending),
        of(Status::Processing),
        of(Status::Failed),
        of(Status::Dead)
    );
    let handled: Vec<&str> = TYPES.iter().map(|t| t.name).collect();
    let late = task::late(&app.db, &handled, app.clock.now() - LATE).await?;
    if late > 0 && of(Status::Processing) == 0 {
        return Err(Error::internal(format_args!("{late} tasks are due for minutes and nobody works: {summary}")));
    }
    Ok(summary)
}
