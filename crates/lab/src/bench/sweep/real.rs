//! The same check on real hosts, compared with `ssh` with ControlMaster: the same script on all hosts at once.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use base::{Error, Result};
use futures_util::future::try_join_all;
use openclaw::sweep::{Limits, Mark, Target, parse, script};
use openclaw::unit::Name;
use remote::host::file::{Expect, Write};
use remote::host::{Address, Command, Host, LoginKey, Target as Reached, Tenant, systemd};
use serde::Deserialize;
use tidepool::config::Values;
use tidepool::folder::Folder;
use tokio::io::AsyncWriteExt as _;

use super::super::cost::cpu;
use super::super::{proof, report};
use super::INSTANCES;

const PASSES: u32 = 5;

#[derive(Deserialize)]
struct Fleet {
    key: PathBuf,
    hosts: Vec<Machine>,
}

#[derive(Clone, Deserialize)]
struct Machine {
    relay: String,
    port: u16,
    host_key: String,
}

pub async fn real(_: &Values, folder: &Path) -> Result<()> {
    let text = std::fs::read_to_string(folder.join("hosts.json")).map_err(Error::internal)?;
    let fleet: Fleet = serde_json::from_str(&text).map_err(Error::internal)?;
    let targets = targets(false)?;
    let of = |targets: &[Target]| script(targets, &["/srv"], &Limits::default(), remote::host::home::SHELL);
    let (script, counting) = (of(&targets)?, of(&self::targets(true)?)?);
    let hosts: Result<Vec<Host>> = fleet.hosts.iter().map(|machine| host(&fleet, machine)).collect();
    let hosts = hosts?;
    try_join_all(hosts.iter().map(prepare)).await?;
    for host in &hosts {
        host.close().await;
    }

    let own = std::process::id();
    let look = async |script: &str| {
        let keep = Limits::default().output_bytes(targets.len());
        let command = Command::long_script("sweep", script).keep(keep).limit(Duration::from_secs(120));
        let outputs = try_join_all(hosts.iter().map(|host| host.run(&command))).await?;
        outputs.iter().try_for_each(|output| whole(&output.stdout, &targets))
    };
    let ours = compare(&|| cpu(&[own]), async || look(&script).await).await?;
    let counted = compare(&|| cpu(&[own]), async || look(&counting).await).await?;

    let control = Folder::make("tidepool-ssh")?;
    let ssh = Ssh { fleet: &fleet, control: control.path() };
    let theirs = compare(&|| ssh.cpu(), async || {
        let outputs = try_join_all(fleet.hosts.iter().map(|machine| ssh.run(machine, &script))).await?;
        outputs.iter().try_for_each(|output| whole(output, &targets))
    })
    .await;
    ssh.end().await;
    let theirs = theirs?;

    let count = fleet.hosts.len();
    for (what, ours, theirs) in [("first look", &ours.first, &theirs.first), ("next looks", &ours.next, &theirs.next)] {
        report(
            &format!("{count} real hosts × {INSTANCES}, {what}"),
            format!("{:.2} s, cpu {:.0} ms", ours.0.as_secs_f64(), ours.1.as_secs_f64() * 1000.0),
            format!(
                "{:.2} × ssh ({:.2} s), {:.2} × its cpu ({:.0} ms); goal 1 ×",
                ours.0.as_secs_f64() / theirs.0.as_secs_f64(),
                theirs.0.as_secs_f64(),
                ours.1.as_secs_f64() / theirs.1.as_secs_f64().max(0.001),
                theirs.1.as_secs_f64() * 1000.0,
            ),
        );
    }
    report(
        &format!("{count} real hosts × {INSTANCES}, disks of homes counted"),
        format!("{:.2} s", counted.next.0.as_secs_f64()),
        format!(
            "{:.2} × a look without, which is what most are",
            counted.next.0.as_secs_f64() / ours.next.0.as_secs_f64()
        ),
    );
    // Its sshd takes the place of an assistant that runs as the login user.
    let tenant = Tenant::Service { home: String::new(), unit: Some(systemd::Unit::parse("openclaw-bench-0")?) };
    if let Some(host) = hosts.first() {
        proof::run("a real host", host, 22, &tenant).await?;
    }
    try_join_all(hosts.iter().map(clear)).await?;
    for host in &hosts {
        host.close().await;
    }
    Ok(())
}

/// Time and CPU time of the first pass, which connects, and the average of the following ones.
struct Passes {
    first: (Duration, Duration),
    next: (Duration, Duration),
}

async fn compare(cpu: &dyn Fn() -> Result<Duration>, pass: impl AsyncFn() -> Result<()>) -> Result<Passes> {
    let (before, began) = (cpu()?, Instant::now());
    pass().await?;
    let first = (began.elapsed(), cpu()? - before);
    let (before, began) = (cpu()?, Instant::now());
    for _ in 0..PASSES {
        pass().await?;
    }
    Ok(Passes { first, next: (began.elapsed() / PASSES, (cpu()? - before) / PASSES) })
}

fn whole(output: &[u8], targets: &[Target]) -> Result<()> {
    let sweep = parse(output, targets);
    let running = sweep.instances.iter().flatten().filter(|answer| answer.unit.main_pid.is_some()).count();
    if sweep.complete && running == targets.len() {
        Ok(())
    } else {
        Err(Error::internal(format_args!("{running} of {} units run; whole: {}", targets.len(), sweep.complete)))
    }
}

/// `measure` says whether the sizes of their homes are measured.
fn targets(measure: bool) -> Result<Vec<Target>> {
    let target = |place: usize| {
        let home = home(place);
        Ok(Target {
            runner: openclaw::sweep::Runner::Unit(Name::parse(&format!("openclaw-bench-{place}"))?),
            port: i64::from(super::simulated::port(place)).try_into().map_err(Error::internal)?,
            home: home.clone(),
            config_path: format!("{home}/.openclaw/openclaw.json"),
            state_dir: format!("{home}/.openclaw"),
            log_file: format!("{home}/.openclaw/logs/openclaw.jsonl"),
            mark: Mark::default(),
            measure,
        })
    };
    (0..INSTANCES).map(target).collect()
}

fn home(place: usize) -> String {
    format!("/srv/bench/{place}")
}

fn host(fleet: &Fleet, machine: &Machine) -> Result<Host> {
    Ok(Host::new(Reached::Ssh(Address {
        host: machine.relay.clone(),
        port: machine.port,
        user: "root".into(),
        key: LoginKey::File(fleet.key.clone()),
        expected: None,
        host_key: Some(machine.host_key.parse()?),
    })))
}

/// Creates ten services that do nothing, each with a configuration and a log.
async fn prepare(host: &Host) -> Result<()> {
    let line = "{\"time\":\"2026-11-15T06:31:10.798+00:00\",\"message\":\"cron: disabled\"}\n";
    for place in 0..INSTANCES {
        let state = format!("{}/.openclaw", home(place));
        host.succeed(&Command::new("mkdir").args(["-p", &format!("{state}/logs")])).await?;
        let config = Write::new(format!("{state}/openclaw.json"), "{\"gateway\":{}}\n", Expect::Any);
        host.write(&config).await?;
        host.write(&Write::new(format!("{state}/logs/openclaw.jsonl"), line.repeat(500), Expect::Any)).await?;
        let unit = systemd::Unit::parse(&format!("openclaw-bench-{place}"))?;
        systemd::write_unit(host, &unit, "[Service]\nExecStart=/bin/sleep infinity\n", Expect::Any).await?;
        systemd::start(host, &unit).await?;
    }
    Ok(())
}

async fn clear(host: &Host) -> Result<()> {
    for place in 0..INSTANCES {
        let unit = systemd::Unit::parse(&format!("openclaw-bench-{place}"))?;
        systemd::stop(host, &unit).await?;
        host.succeed(&Command::new("rm").args(["-f", "--", &unit.path()])).await?;
    }
    host.succeed(&Command::new("rm").args(["-rf", "--", "/srv/bench"])).await?;
    systemd::daemon_reload(host).await?;
    Ok(())
}

/// OpenSSH's client, with one master connection per host.
struct Ssh<'a> {
    fleet: &'a Fleet,
    control: &'a Path,
}

impl Ssh<'_> {
    fn command(&self, machine: &Machine) -> tokio::process::Command {
        let mut command = tokio::process::Command::new("ssh");
        let path = format!("ControlPath={}/%h-%p", self.control.display());
        command.arg("-i").arg(&self.fleet.key).args([
            "-p",
            &machine.port.to_string(),
            "-o",
            "ControlMaster=auto",
            "-o",
            &path,
        ]);
        command.args([
            "-o",
            "ControlPersist=60",
            "-o",
            "StrictHostKeyChecking=no",
            "-o",
            "UserKnownHostsFile=/dev/null",
        ]);
        command.args(["-o", "LogLevel=ERROR", "-o", "BatchMode=yes", &format!("root@{}", machine.relay)]);
        command
    }

    async fn run(&self, machine: &Machine, script: &str) -> Result<Vec<u8>> {
        let mut command = self.command(machine);
        command.args(["sh", "-s"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(Error::internal)?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(script.as_bytes()).await.map_err(Error::internal)?;
        }
        Ok(child.wait_with_output().await.map_err(Error::internal)?.stdout)
    }

    /// The CPU time of the clients that have ended and of the masters that still run.
    fn cpu(&self) -> Result<Duration> {
        let stat = std::fs::read_to_string("/proc/self/stat").map_err(Error::internal)?;
        let (_, fields) = stat.rsplit_once(')').unwrap_or_default();
        let ticks: u64 = fields.split_whitespace().skip(13).take(2).filter_map(|f| f.parse::<u64>().ok()).sum();
        let ended = Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64);
        Ok(ended + cpu(&self.masters())?)
    }

    /// Processes whose title names one of our control sockets.
    fn masters(&self) -> Vec<u32> {
        let name = self.control.display().to_string();
        let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let is_master = |pid: &u32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line);
            line.starts_with("ssh: ") && line.contains(&name)
        };
        pids.filter(is_master).collect()
    }

    async fn end(&self) {
        for machine in &self.fleet.hosts {
            let mut command = self.command(machine);
            command.args(["-O", "exit"]).stdout(Stdio::null()).stderr(Stdio::null()).status().await.ok();
        }
    }
}
