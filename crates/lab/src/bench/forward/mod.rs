//! Each protocol through the gateway with keys, quotas and the log enabled, compared with the bare upstream, with nginx as
//! a plain proxy and, for a few rows, with LiteLLM.

mod exchange;
mod litellm;
mod load;
mod nginx;
mod upstream;

use std::net::SocketAddr;

use base::id::{KeyId, NewInstanceId, ServerId, UserId};
use base::{Error, Result, Secret};
use fleet::{App, instance, server};
use people::user;
use queue::audit::By;
use store::gateway_key::{self, GatewayKey, Status};
use tidepool::config::Values;

use super::report;
use super::serving::Serving;
use super::site::Site;
use exchange::Exchange;
use litellm::LiteLlm;
use load::{Measured, Target};
use nginx::Nginx;
use upstream::Upstream;

const CONNECTIONS: &[usize] = &[1, 32, 128];
/// Of the rows of LiteLLM.
const OF_LITELLM: usize = 32;
/// How often the three are measured in turn, so that other load on the machine affects all of them.
const ROUNDS: usize = 3;
/// More than is ever used: the limits are checked but never reached.
const PLENTY: i64 = 1_000_000_000_000;

pub async fn run(values: &Values) -> Result<()> {
    let site = Site::open(values).await?;
    let key = people(site.app()).await?;
    let exchanges = exchange::all();
    let upstream = Upstream::start(&exchanges).await?;
    let (gateway, address) = gateway(&site, &upstream).await?;
    let nginx = Nginx::start(site.folder.path(), upstream.address)?;
    if nginx.is_none() {
        println!("no nginx on this machine: nothing to compare with but the bare upstream");
    }
    let target = |address: SocketAddr, pids: Vec<u32>| Target { address, pids, key: key.clone() };
    let mut all = vec![target(upstream.address, vec![]), target(address, vec![gateway.pid()])];
    if let Some(nginx) = &nginx {
        all.push(target(nginx.address, nginx.pids()));
    }
    for exchange in &exchanges {
        for connections in CONNECTIONS {
            let mut best: Vec<Option<Measured>> = vec![None; all.len()];
            for _ in 0..ROUNDS {
                for (target, best) in all.iter().zip(&mut best) {
                    let measured = load::measure(target, exchange, *connections).await?;
                    if best.as_ref().is_none_or(|best| measured.rate > best.rate) {
                        *best = Some(measured);
                    }
                }
            }
            let best: Vec<Measured> = best.into_iter().flatten().collect();
            print(&row(exchange, *connections), &best);
        }
    }
    beside_litellm(&site, &upstream, &key, &exchanges).await
}

/// Chat completions through LiteLLM: to be read beside the rows of the same name.
async fn beside_litellm(site: &Site, upstream: &Upstream, key: &Secret, exchanges: &[Exchange]) -> Result<()> {
    let Some(litellm) = LiteLlm::start(site.folder.path(), upstream.address, key)? else {
        println!("no LiteLLM on this machine: testbed/install.sh litellm installs it");
        return Ok(());
    };
    let target = Target { address: litellm.address, pids: litellm.pids(), key: key.clone() };
    for exchange in exchanges.iter().filter(|one| one.name == "chat") {
        let measured = load::measure(&target, exchange, OF_LITELLM).await?;
        let cpu = format!("{:.1} µs of CPU a request", measured.cpu_us);
        report(&format!("{}, LiteLLM", row(exchange, OF_LITELLM)), shown(&measured), cpu);
    }
    Ok(())
}

fn row(exchange: &Exchange, connections: usize) -> String {
    let kind = if exchange.is_stream { "stream" } else { "whole" };
    format!("{} {kind}, {connections} connections", exchange.name)
}

fn shown(measured: &Measured) -> String {
    format!("{:.0}/s, p50 {}, p99 {}", measured.rate, super::millis(measured.p50), super::millis(measured.p99))
}

fn print(row: &str, best: &[Measured]) {
    let [direct, gateway, rest @ ..] = best else { return };
    report(&format!("{row}, bare upstream"), shown(direct), "");
    for nginx in rest {
        let cpu = format!("{:.1} µs of CPU a request", nginx.cpu_us);
        report(&format!("{row}, nginx"), shown(nginx), cpu);
    }
    let mut beside = format!("{:.1} µs of CPU a request", gateway.cpu_us);
    if let Some(nginx) = rest.first() {
        let added = gateway.p99.as_secs_f64() - nginx.p99.as_secs_f64();
        let ratio = gateway.cpu_us / nginx.cpu_us;
        beside =
            format!("{beside}, {ratio:.2} × nginx (goal 2.5 ×); p99 {:+.2} ms beside nginx (goal 2 ms)", added * 1e3);
    }
    report(&format!("{row}, gateway"), shown(gateway), beside);
}

/// A user with an instance and a key, both with limits.
async fn people(app: &App) -> Result<Secret> {
    let by = By::system();
    let new = user::New {
        email: "bench@example.com".parse()?,
        name: "Bench".into(),
        department: "Bench".into(),
        quota_daily: PLENTY,
        password: None,
    };
    let user = UserId::named(user::create(app, &by, new).await?.id);
    let new = server::New {
        id: Some("bench".into()),
        name: "Bench".into(),
        host: "192.0.2.1".into(),
        ssh_port: 22,
        ssh_user: "root".into(),
        ssh_key_path: String::new(),
        ssh_key: None,
        expected_host_key: None,
        base_dir: None,
        notes: String::new(),
    };
    let server = server::create(app, &by, new).await?.id;
    let new = instance::New {
        id: NewInstanceId::parse("bench-1")?,
        name: "Bench".into(),
        server_id: ServerId::named(server),
        gateway_port: None,
        gateway_url: None,
        gateway_token: None,
        model: "gpt-4o".into(),
        config_json: "{}".into(),
        notes: String::new(),
        is_main: false,
        home: String::new(),
        unit: String::new(),
        container_id: String::new(),
        provision: false,
    };
    let id = new.id.id();
    instance::create(app, &by, new).await?;
    instance::assign(app, &by, &id, Some(&user)).await?;
    let secret = Secret::new(format!("sk-{}", base::secret::random_token()?.expose()));
    let (key_id, now) = (KeyId::fresh(), app.clock.now());
    let key = GatewayKey {
        secret: app.sealer.seal(gateway_key::place(&key_id), &secret)?,
        id: key_id,
        instance_id: Some(id.clone()),
        name: id.to_string(),
        gateway_id: String::new(),
        status: Status::Active,
        user_revoked: false,
        quota_spent: false,
        quota: Some(PLENTY),
        used_quota: 0,
        logged_quota: 0,
        carried_quota: 0,
        quota_from: 0,
        dirty: false,
        rotate: false,
        last_checked_at: None,
        created_at: now,
        updated_at: now,
    };
    let mut tx = app.db.begin().await?;
    gateway_key::insert(&mut tx, &key, &app.sealer.hash(&secret)).await?;
    tx.commit().await?;
    Ok(secret)
}

/// A process with the role gateway only.
async fn gateway(site: &Site, upstream: &Upstream) -> Result<(Serving, SocketAddr)> {
    let listen = super::start::free_address()?;
    let settings = [
        ("TIDEPOOL_ROLES", "gateway".to_owned()),
        ("TIDEPOOL_GATEWAY_LISTEN", listen.clone()),
        ("TIDEPOOL_PROVIDER_OPENAI_URL", format!("http://{}", upstream.address)),
        ("TIDEPOOL_PROVIDER_OPENAI_KEY", "of-nobody".to_owned()),
        ("TIDEPOOL_PROVIDER_ANTHROPIC_URL", format!("http://{}", upstream.address)),
        ("TIDEPOOL_PROVIDER_ANTHROPIC_KEY", "of-nobody".to_owned()),
    ];
    let serving = Serving::start(site, &settings, &format!("http://{listen}/healthz")).await?;
    Ok((serving, listen.parse().map_err(Error::internal)?))
}
