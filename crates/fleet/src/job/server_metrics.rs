//! server_metrics: reads the metrics of all active servers concurrently. An unreachable server does not delay the
//! others.

use std::sync::Arc;

use base::{Page, Result, Sort, When};
use futures_util::{StreamExt as _, stream};
use remote::host::metrics;
use store::notice::{Notice, Topic};
use store::server::{self, Server};
use store::server_metric::{self, Metric};

use super::Job;
use crate::{App, host};

pub(super) const JOB: Job = Job::new("server_metrics", "Server metrics", When::minutes(5), |app, _| Box::pin(run(app)));

/// How many servers are measured at the same time.
const AT_ONCE: usize = 64;

async fn run(app: Arc<App>) -> Result<String> {
    let sort = Sort { column: "id", descending: false };
    let servers = server::list(&app.db, None, Some(server::Status::Active), sort, Page::ALL).await?.list;
    let all = servers.len();
    let measured = stream::iter(servers)
        .map(|server| {
            let app = app.clone();
            async move { (measure(&app, &server).await, server.name) }
        })
        .buffer_unordered(AT_ONCE)
        .collect::<Vec<_>>()
        .await;
    let away: Vec<String> = measured
        .iter()
        .filter_map(|(done, name)| done.as_ref().err().map(|e| format!("{name}: {}", e.client)))
        .collect();
    let summary = format!("{} of {all} servers measured", all - away.len());
    Ok(if away.is_empty() { summary } else { format!("{summary}; {}", away.join("; ")) })
}

async fn measure(app: &App, server: &Server) -> Result<()> {
    let host = host::reach(app, server).await?;
    let found = metrics::collect(&host).await?;
    let metric = Metric {
        cpu_percent: found.cpu_percent,
        memory_percent: found.memory_percent,
        disk_percent: found.disk_percent,
        load_1m: found.load_1m,
        created_at: app.clock.now(),
    };
    let mut tx = app.db.begin().await?;
    server_metric::insert(&mut tx, &server.id, &metric).await?;
    tx.notify(Notice::new(Topic::Metric, &server.id)).await?;
    Ok(tx.commit().await?)
}
