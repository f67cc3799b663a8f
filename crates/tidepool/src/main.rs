//! The binary: reads the command line and the configuration, and runs what they name.

mod bench;
mod catalogue;
mod cli;
mod command;
mod config;
mod fault;
mod folder;
mod keys;
mod llm_gateway;
mod open;
mod restore;
mod sample;
mod serve;
mod telemetry;
mod web;

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let matches = cli::command().get_matches();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let outcome = match runtime {
        Ok(runtime) => {
            let outcome = runtime.block_on(command::run(&matches));
            // Hashing or name look-ups under way must not hold the exit up.
            runtime.shutdown_background();
            outcome
        }
        Err(error) => Err(base::Error::internal(error)),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("tidepool: {}", shown(&error));
            ExitCode::FAILURE
        }
    }
}

/// One line for the operator, who may know everything but secrets.
fn shown(error: &base::Error) -> &str {
    error.operator.as_deref().unwrap_or(&error.client)
}
