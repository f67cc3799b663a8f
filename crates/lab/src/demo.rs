//! `tidepool-lab demo`: the product with sample data in a temporary folder and simulated servers, gone when it ends.

use std::net::{SocketAddr, TcpListener};
use std::pin::pin;

use base::{Error, Result};
use tidepool::config::Values;
use tidepool::folder::Folder;
use tidepool::serve::{End, Running};
use tidepool::{open, telemetry};

use crate::sample::{self, Fleet, PASSWORD};

pub async fn run(mut values: Values) -> Result<()> {
    let end = End::listen()?;
    let folder = Folder::make("tidepool-demo")?;
    values.set("data_dir", folder.path().display().to_string());
    for name in ["employee_listen", "admin_listen", "gateway_listen", "embed_listen"] {
        if !values.is_set(name) {
            values.set(name, free_address(name)?);
        }
    }
    if !values.is_set("provider_echo") {
        values.set("provider_echo", "true");
    }
    if !values.is_set("log") {
        values.set("log", "warn");
    }
    values.set("database_url", format!("sqlite:{}", folder.path().join("tidepool.db").display()));
    let config = values.config()?;
    telemetry::logs(&config)?;
    let opened = open::serving(&config).await?;
    let fleet = Fleet::start().await?;
    let company = sample::company(&opened.app, &fleet).await?;
    let running = Running::start(&config, opened).await?;
    let mut stopping = pin!(end.requested());
    println!("three simulated servers are being prepared…");
    tokio::select! {
        settled = fleet.settle(&running.app, &company) => settled?,
        () = &mut stopping => {
            running.stop().await;
            return Ok(());
        }
    }
    println!("employees       {}   mara@demo.example / {PASSWORD}", config.employee.public_url.join("/"));
    println!("administrators  {}   admin@demo.example / {PASSWORD}", config.admin.public_url.join("/"));
    println!(
        "                tom@demo.example (admin), priya@demo.example (operator), hana@demo.example (auditor): the same password"
    );
    println!("LLM gateway     {}   answers by echo", config.gateway.url);
    println!(
        "windows         {}   an origin for each assistant",
        config.embed.url.origin().replacen("://", "://*.", 1)
    );
    println!("API docs        {}", config.admin.public_url.join("/api/v1/docs"));
    println!("The servers are simulated, with twelve assistants. One of them ran out of memory: restart it.");
    println!("Ctrl-C ends the demo and removes its data.");
    stopping.await;
    running.stop().await;
    Ok(())
}

/// The usual port of a listener, or any free one if that is in use.
fn free_address(name: &str) -> Result<String> {
    let usual =
        tidepool::config::setting::default_address(name).ok_or_else(|| Error::internal("no default address"))?;
    let any = SocketAddr::new(usual.ip(), 0);
    let bound = TcpListener::bind(usual).or_else(|_| TcpListener::bind(any));
    let address = bound.and_then(|listener| listener.local_addr()).map_err(Error::internal)?;
    Ok(address.to_string())
}
