//! A simulated assistant as a program: `assistant --port 18789 --token … [--origin …]`. What stands for OpenClaw on hosts and
//! in demonstrations.

use sim::assistant::{Assistant, Options};

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let mut options = Options::new("");
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        let value = args.next().unwrap_or_default();
        match name.as_str() {
            "--port" => options.port = value.parse().map_err(std::io::Error::other)?,
            "--token" => options.token = value,
            "--origin" => options.origins.push(value),
            other => return Err(std::io::Error::other(format!("unknown option {other}"))),
        }
    }
    let assistant = Assistant::start(options).await?;
    println!("listening on 127.0.0.1:{}", assistant.port);
    tokio::signal::ctrl_c().await
}
