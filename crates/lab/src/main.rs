//! The product in the laboratory: with sample data and simulated servers (`demo`), and measured beside floors (`bench`). What is simulated
//! is in this program and not in the product's.

mod bench;
mod catalogue;
mod demo;
mod sample;

use std::path::PathBuf;
use std::process::ExitCode;

use base::{Error, Result};
use clap::{Arg, Command};
use tidepool::cli::with_settings;
use tidepool::config::Values;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    tidepool::program("tidepool-lab", run())
}

async fn run() -> Result<ExitCode> {
    let matches = command().get_matches();
    let (name, sub) = matches.subcommand().ok_or_else(|| Error::internal("unknown command"))?;
    match name {
        "demo" => demo::run(Values::read(sub, std::env::vars_os())?).await?,
        "bench" => bench::run(Values::read(sub, std::env::vars_os())?, sub).await?,
        bench::SIMULATED => bench::simulated().await?,
        _ => return Err(Error::internal("unknown command")),
    }
    Ok(ExitCode::SUCCESS)
}

fn command() -> Command {
    let program = Command::new("tidepool-lab")
        .version(env!("CARGO_PKG_VERSION"))
        .about("tidepool with sample data and simulated servers, and its measurements");
    with_settings(program)
        .subcommand(Command::new("demo").about("Serve the whole product with sample data in a temporary folder"))
        .subcommand(
            Command::new("bench")
                .about("Measure this build on this machine, in a temporary folder or an empty PostgreSQL database")
                .arg(Arg::new("part").num_args(0..).value_parser(bench::PARTS.to_vec()))
                .arg(
                    Arg::new("rows")
                        .long("rows")
                        .value_parser(clap::value_parser!(u64))
                        .help("The most rows of the request log that usage is measured with [default: 10000000]"),
                )
                .arg(
                    Arg::new("servers")
                        .long("servers")
                        .value_parser(clap::value_parser!(usize))
                        .help("How many simulated servers sweep looks at [default: 1000, then 10000]"),
                )
                .arg(
                    Arg::new("hosts")
                        .long("hosts")
                        .value_name("DIR")
                        .help("Real hosts by testbed/hosts.sh: sweep looks at these, beside ssh with ControlMaster"),
                ),
        )
        .subcommand(
            Command::new(bench::SIMULATED)
                .about("The simulated servers of `bench sweep` and `bench sockets`, until standard input ends")
                .hide(true),
        )
}

/// The product's binary, which is built into the same folder.
fn product() -> Result<PathBuf> {
    let this = std::env::current_exe().map_err(Error::internal)?;
    let product = this.with_file_name("tidepool");
    match product.is_file() {
        true => Ok(product),
        false => Err(Error::internal(format_args!("{} is not there: build it first", product.display()))),
    }
}
