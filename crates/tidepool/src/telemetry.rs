//! Logs and metrics of the process.

use std::io::IsTerminal as _;
use std::sync::Arc;

use base::{Error, Result};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};
use tracing_subscriber::EnvFilter;

use crate::config::Config;

/// In seconds, from a cached answer to one that waits for a host.
const BUCKETS: &[f64] = &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

/// Logs go to standard error, because standard output is for what a command prints.
pub fn logs(config: &Config) -> Result<()> {
    let filter: EnvFilter = config.log.parse().map_err(Error::internal)?;
    let terminal = std::io::stderr().is_terminal();
    let pretty = config.log_format.as_deref().map_or(terminal, |f| f == "pretty");
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(terminal);
    let set = if pretty {
        subscriber.with_target(false).try_init()
    } else {
        subscriber.json().flatten_event(true).try_init()
    };
    set.map_err(Error::internal)
}

/// Installs the recorder; returns the function that renders the Prometheus text.
pub fn metrics() -> Result<Arc<dyn Fn() -> String + Send + Sync>> {
    let recorder = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".into()), BUCKETS)
        .map_err(Error::internal)?
        .build_recorder();
    let handle = recorder.handle();
    metrics::set_global_recorder(recorder).map_err(Error::internal)?;
    metrics::describe_counter!("tidepool_http_requests_total", "Requests by side, method, route and status");
    metrics::describe_histogram!("tidepool_http_request_seconds", "Time to answer by side, method and route");
    gateway::metrics::describe();
    remote::memory::describe();
    metrics::describe_gauge!("tidepool_db_connections", "Database connections, open and idle");
    metrics::describe_gauge!("tidepool_db_writers_waiting", "Transactions that wait for SQLite's one writer");
    metrics::describe_gauge!("tidepool_loop_age_seconds", "Seconds since a loop of this process last did its work");
    metrics::describe_gauge!("tidepool_clock_skew_seconds", "How far this machine's clock is ahead of the database's");
    metrics::describe_gauge!("tidepool_build_info", "The running build; always 1");
    metrics::gauge!("tidepool_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
    Ok(Arc::new(move || {
        handle.run_upkeep();
        handle.render()
    }))
}
