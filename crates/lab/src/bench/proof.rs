//! The cost of the proof who answers: a connection to an assistant's port with the proof, compared with one without.

use std::time::{Duration, Instant};

use base::Result;
use futures_util::future::try_join_all;
use remote::host::{Host, Tenant};

use super::{millis, percentile, report};

const ONE_BY_ONE: usize = 100;
const AT_ONCE: usize = 32;

/// `what` names the servers in the report.
pub async fn run(what: &str, host: &Host, port: u16, tenant: &Tenant) -> Result<()> {
    // Open the connection to the server before anything is measured.
    host.forward(port, tenant).await?;
    let bare = sorted(async || host.tunnel(port).await.map(drop)).await?;
    let proved = sorted(async || host.forward(port, tenant).await.map(drop)).await?;
    let began = Instant::now();
    try_join_all((0..AT_ONCE).map(|_| host.forward(port, tenant))).await?;
    let together = began.elapsed();
    let p50 = |took: &[Duration]| percentile(took, 0.5);
    report(
        &format!("a proved connection, {what}"),
        format!("p50 {}, p99 {}", millis(p50(&proved)), millis(percentile(&proved, 0.99))),
        format!("bare p50 {}; {AT_ONCE} at once, proved, {}", millis(p50(&bare)), millis(together)),
    );
    Ok(())
}

async fn sorted(connect: impl AsyncFn() -> remote::host::Result<()>) -> Result<Vec<Duration>> {
    let mut took = vec![];
    for _ in 0..ONE_BY_ONE {
        let began = Instant::now();
        connect().await?;
        took.push(began.elapsed());
    }
    took.sort();
    Ok(took)
}
