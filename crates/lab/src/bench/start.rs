//! The time from the start of the process to the first answer, on an existing SQLite database, and its memory then.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base::{Error, Result};
use tidepool::folder::Folder;

use super::cost::memory;
use super::{millis, percentile, report};

const STARTS: usize = 10;

pub async fn run() -> Result<()> {
    let folder = Folder::make("tidepool-bench")?;
    let binary = crate::product()?;
    let http = remote::http::client()?;
    let (mut starts, mut used) = (vec![], 0);
    // The first start creates the database and does not count.
    for i in 0..=STARTS {
        let listen = free_address()?;
        let mut command = Command::new(&binary);
        command
            .arg("serve")
            .env("TIDEPOOL_DATA_DIR", folder.path())
            .env("TIDEPOOL_EMPLOYEE_LISTEN", free_address()?)
            .env("TIDEPOOL_ADMIN_LISTEN", &listen)
            .env("TIDEPOOL_GATEWAY_LISTEN", free_address()?)
            .env("TIDEPOOL_EMBED_LISTEN", free_address()?)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let began = Instant::now();
        let server = Server(command.spawn().map_err(Error::internal)?);
        let url = format!("http://{listen}/readyz");
        while !http.get(&url).send().await.is_ok_and(|a| a.status().is_success()) {
            if began.elapsed() > Duration::from_secs(30) {
                return Err(Error::internal("the server did not come up"));
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        if i > 0 {
            starts.push(began.elapsed());
            used = used.max(memory(server.0.id())?);
        }
        drop(server);
    }
    let mut floors = vec![];
    for _ in 0..STARTS {
        let began = Instant::now();
        Command::new(&binary).arg("--version").stdout(Stdio::null()).status().map_err(Error::internal)?;
        floors.push(began.elapsed());
    }
    starts.sort();
    floors.sort();
    report(
        "from start to ready, existing SQLite",
        format!("p50 {}, worst {}", millis(percentile(&starts, 0.5)), millis(percentile(&starts, 1.0))),
        format!("goal 500 ms; `--version` alone {}", millis(percentile(&floors, 0.5))),
    );
    let size = std::fs::metadata(&binary).map_err(Error::internal)?.len() >> 10;
    report(
        "memory once it is ready",
        format!("{:.1} MiB", used as f64 / 1024.0),
        format!("{:.2} × the binary's own {:.1} MiB", used as f64 / size as f64, size as f64 / 1024.0),
    );
    Ok(())
}

/// A process that ends when this is dropped.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

pub fn free_address() -> Result<String> {
    let bound = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    bound.map(|address| address.to_string()).map_err(Error::internal)
}
