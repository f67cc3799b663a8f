//! `tidepool-lab bench`: the numbers that the README publishes, each beside a floor measured in the same run.
//!
//! Everything runs in a temporary folder and on loopback, has a limited size, and ends by itself.

mod claims;
mod cost;
mod forward;
mod pages;
mod proof;
mod serving;
mod site;
mod sockets;
mod start;
mod sweep;
mod tasks;
mod usage;

use std::time::Duration;

use base::Result;
use clap::ArgMatches;
use tidepool::config::Values;

pub use sweep::{SIMULATED, simulated};

/// The measurements, in their order.
pub const PARTS: &[&str] = &["start", "claims", "tasks", "pages", "usage", "forward", "sockets", "sweep"];

pub async fn run(values: Values, args: &ArgMatches) -> Result<()> {
    let chosen: Vec<&String> = args.get_many::<String>("part").into_iter().flatten().collect();
    for part in PARTS.iter().filter(|p| chosen.is_empty() || chosen.iter().any(|w| w == *p)) {
        match *part {
            "start" => start::run().await?,
            "claims" => claims::run(&values).await?,
            "tasks" => tasks::run(&values).await?,
            "pages" => pages::run(&values).await?,
            "usage" => usage::run(&values, args.get_one::<u64>("rows").copied()).await?,
            "forward" => forward::run(&values).await?,
            "sockets" => sockets::run(&values).await?,
            _ => match args.get_one::<String>("hosts") {
                Some(folder) => sweep::real(&values, folder.as_ref()).await?,
                None => sweep::run(&values, args.get_one::<usize>("servers").copied()).await?,
            },
        }
    }
    Ok(())
}

/// Prints one line of the result: the name, the result, and the baseline.
fn report(what: &str, reached: impl std::fmt::Display, beside: impl std::fmt::Display) {
    println!("{what:<44} {reached:<28} {beside}");
}

/// The percentile of sorted measurements, with `share` from 0 to 1.
fn percentile(sorted: &[Duration], share: f64) -> Duration {
    let last = sorted.len().saturating_sub(1);
    let index = (last as f64 * share).round() as usize;
    sorted.get(index).copied().unwrap_or_default()
}

fn millis(duration: Duration) -> String {
    format!("{:.2} ms", duration.as_secs_f64() * 1000.0)
}
