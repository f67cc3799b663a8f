//! reconcile: compares every instance with what our records want of it, and has what differs brought to it.

use std::sync::Arc;

use base::{Result, When};

use super::Job;
use crate::App;
use crate::reconcile::pass;

pub(super) const JOB: Job = Job::new("reconcile", "Reconcile", When::minutes(5), |app, _| Box::pin(run(app)));

async fn run(app: Arc<App>) -> Result<String> {
    pass::run(&app).await
}
