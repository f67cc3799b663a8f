//! The product as a program: its commands, its configuration, and how all parts are opened and served. `crates/lab` is the other program that
//! is made of it, for demonstrations and measurements.

pub mod cli;
mod command;
pub mod config;
mod fault;
pub mod folder;
pub mod keys;
mod llm_gateway;
pub mod open;
mod restore;
pub mod serve;
pub mod telemetry;
mod web;

use std::future::Future;
use std::process::ExitCode;

use base::Result;

/// What the command line names.
pub async fn run() -> Result<ExitCode> {
    command::run(&cli::command().get_matches()).await
}

/// Runs a program to its end on all cores, and prints what went wrong.
pub fn program(name: &str, work: impl Future<Output = Result<ExitCode>>) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let outcome = match runtime {
        Ok(runtime) => {
            let outcome = runtime.block_on(work);
            // Hashing or name look-ups under way must not hold the exit up.
            runtime.shutdown_background();
            outcome
        }
        Err(error) => Err(base::Error::internal(error)),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{name}: {}", fault::shown(&error));
            ExitCode::FAILURE
        }
    }
}
