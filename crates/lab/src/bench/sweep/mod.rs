//! One health check of a large fleet: all servers, ten instances on each, every layer of the check, with its result
//! stored in the database.
//!
//! The servers are simulated in a separate process, so that their memory and CPU time are not counted as the
//! platform's. `real` checks real hosts instead, compared with `ssh` with ControlMaster.

mod real;
mod simulated;
mod stages;

use std::time::{Duration, Instant};

use base::id::{InstanceId, ServerId};
use base::{Error, GatewayPort, NonEmpty, Result, Secret};
use fleet::health;
use jiff::Timestamp;
use store::instance as record;
use store::instance::{Health, Instance, Isolation};
use store::instance_health::Layer;
use store::server::{self, Server};
use tidepool::config::Values;
use tidepool::serve::allow_many_files;

use super::cost::{cpu, peak_memory};
use super::report;
use super::site::Site;
pub use real::real;
pub use simulated::{SIMULATED, Simulated, TOKEN, instance, port, simulated, user};

/// On each server.
const INSTANCES: usize = 10;
/// Servers per transaction.
const BATCH: usize = 500;

pub async fn run(values: &Values, servers: Option<usize>) -> Result<()> {
    allow_many_files();
    let sizes = servers.map_or_else(|| vec![1_000, 10_000], |one| vec![one]);
    for servers in sizes {
        of(values, servers).await?;
    }
    Ok(())
}

async fn of(values: &Values, servers: usize) -> Result<()> {
    let site = Site::open(values).await?;
    let hosts = Simulated::start()?;
    fill(&site, servers, hosts.port).await?;
    let (own, theirs) = (std::process::id(), hosts.pid());
    for pass in ["first pass", "second pass"] {
        let (before, before_theirs) = (cpu(&[own])?, cpu(&[theirs])?);
        let began = Instant::now();
        let reports = health::check(&site.opened.app).await?.reports;
        let took = began.elapsed();
        let (ours, of_hosts) = (cpu(&[own])? - before, cpu(&[theirs])? - before_theirs);
        let healthy = reports.iter().filter(|report| report.status == Health::Healthy).count();
        if healthy != servers * INSTANCES {
            let ill = reports.iter().find(|report| report.status != Health::Healthy);
            let why = ill.map_or_else(String::new, |report| {
                format!("{}: {}", report.layer.map_or("", Layer::as_str), report.detail)
            });
            return Err(Error::internal(format_args!("{healthy} of {} are healthy; {why}", servers * INSTANCES)));
        }
        report(
            &format!("{servers} servers × {INSTANCES}, {pass}, {}", site.kind()),
            format!("{:.1} s, {:.0} servers/s", took.as_secs_f64(), servers as f64 / took.as_secs_f64()),
            format!(
                "cpu {:.1} s ({:.1} ms a server), the hosts' {:.1} s; memory {} MiB, the hosts' {} MiB{}",
                ours.as_secs_f64(),
                ours.as_secs_f64() * 1000.0 / servers as f64,
                of_hosts.as_secs_f64(),
                peak_memory(own)?,
                peak_memory(theirs)?,
                if servers == 10_000 { "; goal 300 s, 1024 MiB" } else { "" },
            ),
        );
    }
    stages::run(&site).await?;
    site.app().hosts.close().await;
    Ok(())
}

/// Creates servers, which differ in their login user, and their instances, in the state after provisioning.
pub(super) async fn fill(site: &Site, servers: usize, port: u16) -> Result<()> {
    let app = site.app();
    let key = Secret::new(sim::host::login_key().map_err(Error::internal)?);
    let token = Secret::new(simulated::TOKEN);
    let now = app.clock.now();
    for first in (0..servers).step_by(BATCH) {
        let mut tx = app.db.begin().await?;
        for number in first..(first + BATCH).min(servers) {
            let record = server_record(number, port, app.sealer.seal(server::key_place(&id(number)), &key)?, now);
            server::insert(&mut tx, &record).await?;
            for place in 0..INSTANCES {
                let name = instance(number, place);
                let sealed = app.sealer.seal(record::token_place(&name), &token)?;
                record::insert(&mut tx, &instance_record(number, place, &name, sealed, now)?).await?;
            }
        }
        tx.commit().await?;
    }
    Ok(())
}

fn id(server: usize) -> ServerId {
    ServerId::named(format!("bench-{server}"))
}

fn server_record(number: usize, port: u16, ssh_key: String, now: Timestamp) -> Server {
    Server {
        id: id(number),
        name: format!("Bench {number}"),
        host: "127.0.0.1".into(),
        ssh_port: i64::from(port),
        ssh_user: simulated::user(number),
        ssh_key_path: String::new(),
        ssh_key: Some(ssh_key),
        expected_host_key: None,
        host_key: None,
        base_dir: fleet::server::BASE_DIR.into(),
        openclaw_version: None,
        openclaw_pinned: false,
        prepared_at: None,
        status: server::Status::Active,
        notes: String::new(),
        created_at: now,
        updated_at: now,
    }
}

fn instance_record(server: usize, place: usize, name: &str, gateway_token: String, now: Timestamp) -> Result<Instance> {
    let port = simulated::port(place);
    Ok(Instance {
        id: InstanceId::named(name),
        container_id: String::new(),
        runner: store::instance::Runner::Unit,
        server_id: id(server),
        assigned_user_id: None,
        pooled: false,
        name: name.to_owned(),
        gateway_port: GatewayPort::try_from(i64::from(port)).map_err(Error::internal)?,
        gateway_url: format!("http://127.0.0.1:{port}"),
        gateway_token,
        model: "claude-sonnet-4-6".into(),
        health_status: Health::Unknown,
        health_fail_count: 0,
        total_requests: 0,
        total_tokens: 0,
        last_health_at: None,
        notes: String::new(),
        config_json: "{}".into(),
        is_main: false,
        isolation: Isolation::Own,
        runs_as: String::new(),
        home: NonEmpty::new(simulated::home(place)),
        unit: None,
        openclaw_version: None,
        config_hash: String::new(),
        traces_of: None,
        own_llm: false,
        embed_enabled: true,
        created_at: now,
        updated_at: now,
    })
}

fn millis_each(sum: Duration, count: usize) -> String {
    format!("{:.2} ms", sum.as_secs_f64() * 1000.0 / count.max(1) as f64)
}
