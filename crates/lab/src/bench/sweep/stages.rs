//! Where a pass spends its time: its steps one after the other, on some of the servers, with the functions of a real
//! pass.

use std::time::{Duration, Instant};

use base::{Error, Result};
use fleet::sweep::{self, Since};
use fleet::{health, host, tenant};
use openclaw::Layout;
use openclaw::sweep::{Limits, Mark, Target};
use remote::host::Command;
use store::instance;

use super::super::report;
use super::super::site::Site;
use super::{INSTANCES, millis_each};

const SERVERS: usize = 200;

#[derive(Default)]
struct Spent {
    connect: Duration,
    command: Duration,
    parse: Duration,
    talk: Duration,
    write: Duration,
}

pub async fn run(site: &Site) -> Result<()> {
    let app = site.app();
    app.hosts.close().await;
    let mut posts = sweep::fleet(app).await?;
    posts.truncate(SERVERS);
    let limits = Limits { log_bytes: 0, journal: Duration::from_secs(1), instance: Duration::from_secs(15) };
    let mut spent = Spent::default();
    for post in &posts {
        let began = Instant::now();
        let host = host::reach(app, &post.server).await?;
        spent.connect += began.elapsed();

        let began = Instant::now();
        let targets: Result<Vec<Target>> = post.instances.iter().map(target).collect();
        let targets = targets?;
        let script = openclaw::sweep::script(&targets, &[&post.server.base_dir], &limits, remote::host::home::SHELL)?;
        let command = Command::long_script("sweep", script).keep(limits.output_bytes(targets.len()));
        let output = host.run(&command).await?;
        spent.command += began.elapsed();

        let began = Instant::now();
        let parsed = openclaw::sweep::parse(&output.stdout, &targets);
        spent.parse += began.elapsed();
        if !parsed.complete {
            return Err(Error::internal("a simulated server's answer was not whole"));
        }

        let looked = sweep::look(app, post, &limits, Since::End).await?;
        let began = Instant::now();
        let mut seen = vec![];
        for (number, member) in post.instances.iter().enumerate() {
            seen.push(health::look(app, &looked, number, member).await);
        }
        spent.talk += began.elapsed();

        let began = Instant::now();
        let mut tx = app.db.begin().await?;
        for (member, seen) in post.instances.iter().zip(&seen) {
            if let Some(instance) = instance::lock(&mut tx, &member.instance.id).await? {
                health::write(app, &mut tx, &instance, seen, app.clock.now()).await?;
            }
        }
        tx.commit().await?;
        spent.write += began.elapsed();
    }
    let count = posts.len();
    report(
        &format!("a server's steps, one after the other, {}", site.kind()),
        format!("connect {}, command {}", millis_each(spent.connect, count), millis_each(spent.command, count)),
        format!(
            "parse {}, {INSTANCES} conversations {}, write {}",
            millis_each(spent.parse, count),
            millis_each(spent.talk, count),
            millis_each(spent.write, count)
        ),
    );
    Ok(())
}

fn target(member: &sweep::Member) -> Result<Target> {
    let home = member.instance.home.as_deref().unwrap_or_default();
    Ok(Target {
        runner: tenant::runner(&member.instance)?,
        port: member.instance.gateway_port,
        home: home.to_owned(),
        config_path: Layout::of(home).config_path(),
        state_dir: Layout::of(home).state_dir(),
        log_file: Layout::of(home).log_file(),
        mark: Mark::default(),
        measure: false,
    })
}
