//! Sends requests as fast as a number of connections can, and measures the time here and the CPU time of the target.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use base::{Error, Result, Secret};
use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::exchange::Exchange;
use crate::bench::cost::cpu;
use crate::bench::percentile;

const WARM_UP: Duration = Duration::from_millis(500);
const TIME: Duration = Duration::from_secs(3);

/// The server to measure, and the processes whose CPU time counts.
pub struct Target {
    pub address: SocketAddr,
    pub pids: Vec<u32>,
    pub key: Secret,
}

#[derive(Clone)]
pub struct Measured {
    /// Requests per second.
    pub rate: f64,
    pub p50: Duration,
    pub p99: Duration,
    /// CPU time of the target's processes per request.
    pub cpu_us: f64,
}

pub async fn measure(target: &Target, exchange: &Exchange, connections: usize) -> Result<Measured> {
    let body = Bytes::from(exchange.question.clone());
    let mut asking = JoinSet::new();
    let counts_from = Instant::now() + WARM_UP;
    let until = counts_from + TIME;
    for _ in 0..connections {
        asking.spawn(ask(target.address, exchange.path, target.key.clone(), body.clone(), counts_from, until));
    }
    tokio::time::sleep_until(counts_from.into()).await;
    let before = cpu(&target.pids)?;
    let mut times = vec![];
    tokio::time::sleep_until(until.into()).await;
    let spent = cpu(&target.pids)? - before;
    while let Some(ended) = asking.join_next().await {
        times.extend(ended.map_err(Error::internal)??);
    }
    times.sort_unstable();
    let count = times.len().max(1) as f64;
    Ok(Measured {
        rate: count / TIME.as_secs_f64(),
        p50: percentile(&times, 0.5),
        p99: percentile(&times, 0.99),
        cpu_us: spent.as_secs_f64() * 1e6 / count,
    })
}

/// Sends requests over one connection; returns how long each took that began within the measured time.
async fn ask(
    address: SocketAddr,
    path: &'static str,
    key: Secret,
    body: Bytes,
    from: Instant,
    until: Instant,
) -> Result<Vec<Duration>> {
    let socket = TcpStream::connect(address).await.map_err(Error::internal)?;
    socket.set_nodelay(true).map_err(Error::internal)?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(socket)).await.map_err(Error::internal)?;
    let connection = tokio::spawn(connection);
    let mut times = Vec::with_capacity(100_000);
    loop {
        let began = Instant::now();
        if began >= until {
            break;
        }
        let request = Request::builder()
            .method(Method::POST)
            .uri(path)
            .header(header::HOST, "bench")
            .header(header::AUTHORIZATION, format!("Bearer {}", key.expose()))
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(body.clone()))
            .map_err(Error::internal)?;
        let answer = sender.send_request(request).await.map_err(Error::internal)?;
        let status = answer.status();
        let bytes = answer.into_body().collect().await.map_err(Error::internal)?.to_bytes();
        if !status.is_success() || bytes.len() < 300 {
            return Err(Error::internal(format_args!("{status}: {}", String::from_utf8_lossy(&bytes))));
        }
        if began >= from {
            times.push(began.elapsed());
        }
    }
    connection.abort();
    Ok(times)
}
