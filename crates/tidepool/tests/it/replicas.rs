//! Three processes of the binary on one PostgreSQL, and assistants that need repairs, while the leader is killed, frozen and
//! brought back: every slot runs once, and every fault is repaired once. The servers themselves are asked how often.
//!
//! Slots are minutes apart, so the processes' wall clock is moved (libfaketime) to just before the next one, and only while nothing
//! runs. Leases pass in real time: they run by the database's clock.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base::Secret;
use fleet::registry::JOBS;
use jiff::{SignedDuration, Timestamp};
use queue::job::Timing;
use serde_json::{Value, json};
use sim::host::{Hosts, Instance, Machine, Power};
use store::{Db, args};

use crate::kit::{Database, PASSWORD, Process, skip, used_secret};

const NAME: &str = "replicas::heavy_every_slot_and_every_repair_runs_once";
const TOKEN: &str = "the-token-of-every-assistant-here";
/// Crashed in a round, three rounds of them; and two that are wedged before the last.
const EACH: usize = 6;
const ROUNDS: usize = 3;
const WEDGED: usize = 2;
/// The slot that health_check and log_scan have in common.
const FIVE: i64 = 5 * 60 * 1000;
/// What a process logs when it does not lead any more.
const FOLLOWS: &str = "another process leads";

fn faketime() -> Option<PathBuf> {
    let folders = std::fs::read_dir("/usr/lib").ok()?;
    let library = |folder: std::fs::DirEntry| folder.path().join("faketime/libfaketimeMT.so.1");
    folders.flatten().map(library).find(|path| path.exists())
}

/// The wall clock of all processes.
struct Wall {
    file: PathBuf,
    ahead: SignedDuration,
}

impl Wall {
    fn now(&self) -> i64 {
        (Timestamp::now() + self.ahead).as_millisecond()
    }

    fn set(&mut self, ahead: SignedDuration) {
        let new = self.file.with_extension("new");
        std::fs::write(&new, format!("{:+}", ahead.as_secs())).unwrap();
        std::fs::rename(new, &self.file).unwrap();
        self.ahead = ahead;
    }

    /// To some seconds before the next slot of five minutes; answers that.
    fn before_the_next_slot(&mut self) -> i64 {
        let from = self.now();
        let slot = (from / FIVE + 1) * FIVE;
        let by = (slot - from) / 1000 - 4;
        if by > 0 {
            self.set(self.ahead + SignedDuration::from_secs(by));
        }
        slot
    }
}

/// The time of the database, by which leases run. Its clock is this machine's own.
fn databases_now() -> i64 {
    Timestamp::now().as_millisecond()
}

store::record! {
    #[derive(Debug)]
    struct Lease { holder: String, until: i64 }
}
store::record! { struct Count { n: i64 } }
store::record! {
    #[derive(Debug)]
    struct Run { job_name: String, slot: Option<i64>, status: String, created_at: i64, updated_at: i64 }
}
store::record! {
    #[derive(Debug)]
    struct Repair { instance_id: String, rule: String, status: String, action: String, after: String }
}

struct Ground {
    folder: tempfile::TempDir,
    environment: Vec<(&'static str, String)>,
    replicas: Vec<Process>,
    db: Db,
    wall: Wall,
    machine: Arc<Machine>,
}

impl Ground {
    fn replica(folder: &Path, environment: &[(&'static str, String)], number: usize) -> Process {
        let folder = folder.join(number.to_string());
        std::fs::create_dir_all(&folder).unwrap();
        let environment: Vec<(&str, &str)> = environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
        Process::serve_logging(&folder, &environment)
    }

    async fn start(&mut self, number: usize) {
        let mut process = Ground::replica(self.folder.path(), &self.environment, number);
        process.ready().await;
        match self.replicas.get_mut(number) {
            Some(place) => *place = process,
            None => self.replicas.push(process),
        }
    }

    async fn count(&self, sql: &str) -> i64 {
        self.db.first::<Count>(sql, args![]).await.unwrap().unwrap().n
    }

    fn log(&self, number: usize) -> String {
        std::fs::read_to_string(self.folder.path().join(format!("{number}/log"))).unwrap()
    }

    async fn lease(&self) -> Option<Lease> {
        let sql = "SELECT holder, until FROM lease WHERE name = 'scheduler'";
        self.db.first(sql, args![]).await.unwrap()
    }

    /// The number of the process that holds the lease, by what they say in their logs; once one does.
    async fn leader(&self) -> usize {
        testkit::until_ok("one leads", async || {
            let lease = self.lease().await;
            let holder = lease.as_ref().filter(|lease| lease.until > databases_now()).map(|lease| &lease.holder);
            let said = holder.map(|holder| format!("\"holder\":\"{holder}\""));
            let leads = |number: &usize| {
                let said = said.as_ref()?;
                self.log(*number).lines().any(|l| l.contains("this process leads") && l.contains(said)).then_some(())
            };
            (0..self.replicas.len()).find(|number| leads(number).is_some()).ok_or(lease)
        })
        .await
    }

    /// The leader, which is about to be killed or frozen: nobody waits for it for longer than a lease.
    async fn last_of_the_leader(&self) -> usize {
        let leader = self.leader().await;
        let lease = self.lease().await.unwrap();
        let now = databases_now();
        let most = now + Timing::default().lease.as_millis() as i64;
        assert!(lease.until <= most, "held until {}, it is {now}", lease.until);
        leader
    }

    /// Waits until another than this one leads.
    async fn another_leads(&self, than: usize) {
        testkit::until_ok("another one leads", async || match self.leader().await {
            leader if leader == than => Err(leader),
            _ => Ok(()),
        })
        .await;
    }

    async fn until(&self, what: &str, sql: &str, expected: impl Fn(i64) -> bool) {
        testkit::until_ok_within(2 * testkit::LIMIT, what, async || match self.count(sql).await {
            n if expected(n) => Ok(()),
            n => Err((n, self.repairs().await)),
        })
        .await;
    }

    async fn at_rest(&self) {
        let busy = "SELECT (SELECT COUNT(*) FROM job_run WHERE status = 'running') \
            + (SELECT COUNT(*) FROM task WHERE status IN ('pending', 'processing', 'failed')) \
            + (SELECT COUNT(*) FROM repair WHERE status = 'running') AS n";
        self.until("everything has ended", busy, |n| n == 0).await;
    }

    async fn repairs(&self) -> Vec<Repair> {
        let sql = "SELECT instance_id, rule, status, action, after FROM repair ORDER BY id";
        self.db.all(sql, args![]).await.unwrap()
    }

    /// Lets the next slot come, and waits until its repairs go on.
    async fn next_slot(&mut self, expected: i64) -> i64 {
        self.at_rest().await;
        let sql = "SELECT COUNT(*) AS n FROM repair";
        let begun = self.count(sql).await;
        let slot = self.wall.before_the_next_slot();
        self.until("repairs are begun", sql, |n| n >= begun + expected).await;
        slot
    }

    /// Lets the next slot come, in which nothing is to be repaired, and waits until its looks are over.
    async fn quiet_slot(&mut self) -> i64 {
        self.at_rest().await;
        let slot = self.wall.before_the_next_slot();
        let sql = format!("SELECT COUNT(*) AS n FROM job_run WHERE job_name = 'health_check' AND slot = {slot}");
        self.until("somebody looks", &sql, |n| n == 1).await;
        slot
    }
}

fn id(number: usize) -> String {
    format!("a{number}")
}

fn unit(number: usize) -> String {
    format!("openclaw-a{number}.service")
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_every_slot_and_every_repair_runs_once() {
    let Some(library) = faketime() else { return skip(NAME, "no libfaketime") };
    let Some(database) = Database::postgres(NAME).await else { return };
    let folder = tempfile::tempdir().unwrap();
    let machine = Machine::new("m1");
    machine.write(&format!("/opt/tidepool/openclaw/{}/openclaw", sim::assistant::VERSION), "simulated");
    let all = EACH * ROUNDS + WEDGED;
    for number in 0..=all {
        let (unit, home) = (unit(number), format!("/srv/assistants/{number}"));
        machine.add(&Instance { unit, home, port: 20_000 + 10 * number as u16, token: TOKEN.into() });
    }
    let hosts = Hosts::of(machine.clone()).await.unwrap();
    let mut wall = Wall { file: folder.path().join("wall"), ahead: SignedDuration::ZERO };
    // Half a minute after a slot of ten minutes: the first of the run is the odd one.
    let into = Timestamp::now().as_second() % 600;
    wall.set(SignedDuration::from_secs(600 - into + 30));
    let keys = [(); 3].map(|()| store::seal::Sealer::generate().unwrap());
    for secret in keys.iter().map(Secret::expose).chain([TOKEN, PASSWORD]) {
        used_secret(secret);
    }
    let environment = vec![
        ("LD_PRELOAD", library.display().to_string()),
        ("FAKETIME_TIMESTAMP_FILE", wall.file.display().to_string()),
        ("FAKETIME_NO_CACHE", "1".into()),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".into()),
        ("TIDEPOOL_DATABASE_URL", database.url.expose().to_owned()),
        ("TIDEPOOL_MASTER_KEY", keys[0].expose().to_owned()),
        ("TIDEPOOL_EMPLOYEE_JWT_SECRET", keys[1].expose().to_owned()),
        ("TIDEPOOL_ADMIN_JWT_SECRET", keys[2].expose().to_owned()),
        ("TIDEPOOL_BOOTSTRAP_ADMIN_PASSWORD", PASSWORD.into()),
        ("TIDEPOOL_TIMEZONE", "Europe/Berlin".into()),
        // So that a round's repairs are spread over the three, and the dead one's are taken up soon.
        ("TIDEPOOL_TASK_SLOTS", "2".into()),
        ("TIDEPOOL_TASK_LEASE_SECONDS", "5".into()),
        ("TIDEPOOL_LOG_FORMAT", "json".into()),
        // So that it can be read when they looked for due jobs.
        ("TIDEPOOL_LOG", "info,queue::job=debug".into()),
    ];
    let mut first = Ground::replica(folder.path(), &environment, 0);
    first.ready().await;
    let db = Db::open(&database.url).await.unwrap();
    let mut ground = Ground { folder, environment, replicas: vec![first], db, wall, machine };
    populate(&ground, hosts.address.port(), all).await;
    for number in 1..3 {
        ground.start(number).await;
    }
    let crash = |ground: &Ground, round: usize| {
        (EACH * round..EACH * (round + 1)).for_each(|number| ground.machine.crash(&unit(number)));
    };

    // The leader is killed in the middle of its repairs, while the server takes its time.
    ground.leader().await;
    crash(&ground, 0);
    let mut slots = vec![ground.next_slot(EACH as i64).await];
    ground.machine.set_power(Power::Hung);
    let leader = ground.last_of_the_leader().await;
    ground.replicas[leader].kill();
    // This is how long the server hangs; nothing is waited for.
    tokio::time::sleep(Duration::from_millis(700)).await;
    ground.machine.set_power(Power::Up);
    ground.another_leads(leader).await;
    ground.at_rest().await;
    ground.start(leader).await;

    // The leader is frozen in the middle of its repairs, past its lease; the others go on, and it comes back.
    crash(&ground, 1);
    slots.push(ground.next_slot(EACH as i64).await);
    freeze_the_leader(&mut ground).await;

    // Once more with all of them; and what does not answer for three looks is restarted in the slot after.
    for number in 0..WEDGED {
        ground.machine.wedge(&unit(EACH * ROUNDS + number));
    }
    crash(&ground, 2);
    slots.push(ground.next_slot(EACH as i64).await);
    for _ in 0..2 {
        slots.push(ground.quiet_slot().await);
    }
    slots.push(ground.next_slot(WEDGED as i64).await);
    freeze_the_leader(&mut ground).await;
    ground.at_rest().await;

    // Every fault has one repair, and the server saw one start.
    let repairs = ground.repairs().await;
    for number in 0..=all {
        let of: Vec<&Repair> = repairs.iter().filter(|repair| repair.instance_id == id(number)).collect();
        let starts = ground.machine.starts(&unit(number));
        assert!(ground.machine.is_well(&unit(number)), "{number} is down: {of:#?}");
        if number == all {
            assert!(of.is_empty() && starts == 1, "nothing was wrong with it: {starts} starts, {of:#?}");
            continue;
        }
        let rule = if number < EACH * ROUNDS { "exit_loop" } else { "auto_recovery" };
        let found: Vec<(&str, &str)> = of.iter().map(|repair| (repair.rule.as_str(), repair.status.as_str())).collect();
        assert_eq!(found, [(rule, "success")], "{number}, {starts} starts: {of:#?}");
        assert_eq!(starts, 2, "{number} was started other than once: {of:#?}");
    }
    assert_eq!(ground.machine.unknown(), Vec::<String>::new());
    every_slot_once(&ground, &slots).await;
    let broken = store::invariant::broken(&ground.db).await.unwrap();
    assert!(broken.is_empty(), "{broken:#?}");
}

/// Frozen for longer than its lease, until another leads and everything is done; then it goes on where it was.
async fn freeze_the_leader(ground: &mut Ground) {
    let leader = ground.last_of_the_leader().await;
    ground.replicas[leader].freeze();
    let says = |ground: &Ground| ground.log(leader).matches(FOLLOWS).count();
    let said = says(ground);
    ground.another_leads(leader).await;
    let running = "SELECT COUNT(*) AS n FROM repair WHERE status = 'running'";
    ground.until("the repairs of the frozen one are taken up", running, |n| n == 0).await;
    ground.replicas[leader].thaw();
    // It comes back with all that it believed, and finds that another leads.
    testkit::until("the thawed one follows", async || says(ground) > said).await;
    assert_ne!(ground.leader().await, leader, "who comes back does not lead");
}

async fn populate(ground: &Ground, port: u16, last: usize) {
    let admin = &ground.replicas[0].admin;
    let login = json!({"email": "admin@tidepool.local", "password": PASSWORD});
    let token = admin.post("/auth/login", login).ok().await["token"].as_str().unwrap().to_owned();
    let key = sim::host::login_key().unwrap();
    used_secret(&key);
    let server =
        json!({"id": "m1", "name": "m1", "host": "127.0.0.1", "ssh_port": port, "ssh_user": "root", "ssh_key": key});
    admin.post("/servers", server).token(&token).ok().await;
    for number in 0..=last {
        let body = json!({"id": id(number), "name": id(number), "server_id": "m1", "model": "claude-sonnet-4-6",
            "gateway_port": 20_000 + 10 * number, "gateway_token": TOKEN, "home": format!("/srv/assistants/{number}")});
        admin.post("/assistant-instances", body).token(&token).ok().await;
    }
    let checked: Value = admin.get("/instances/health-check").token(&token).ok().await;
    for one in checked["list"].as_array().unwrap() {
        assert_eq!(one["health_status"], "healthy", "{one}");
    }
}

/// No slot twice, none missing but while nobody could lead, no two runs of a job at once.
async fn every_slot_once(ground: &Ground, slots: &[i64]) {
    let sql = "SELECT job_name, slot, status, created_at, updated_at FROM job_run ORDER BY created_at, id";
    let runs: Vec<Run> = ground.db.all(sql, args![]).await.unwrap();
    let mut by_job: BTreeMap<&str, Vec<&Run>> = BTreeMap::new();
    for run in &runs {
        by_job.entry(&run.job_name).or_default().push(run);
    }
    for job in JOBS.iter().filter(|job| !job.paused) {
        let of = by_job.get(job.name).unwrap_or_else(|| panic!("{} never ran", job.name));
        let mut per_slot: HashMap<i64, usize> = HashMap::new();
        of.iter().for_each(|run| *per_slot.entry(run.slot.unwrap()).or_default() += 1);
        assert!(per_slot.values().all(|n| *n == 1), "{}: {of:#?}", job.name);
        let ran: Vec<&&Run> = of.iter().filter(|run| run.status != "skipped").collect();
        for pair in ran.windows(2) {
            assert!(pair[0].updated_at <= pair[1].created_at, "two at once: {pair:#?}");
        }
    }
    for job in ["health_check", "log_scan", "server_metrics", "guardian_session"] {
        for slot in slots {
            assert!(by_job[job].iter().any(|run| run.slot == Some(*slot)), "{job} has no run at {slot}");
        }
    }
    // Every five seconds: whoever looked in a slot twice, and then in a later one, left a run of that slot behind. (The first
    // look may come at the moment when the run before it ends.)
    let there: Vec<i64> = by_job["queueWorker"].iter().filter_map(|run| run.slot).collect();
    let mut looks: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for number in 0..ground.replicas.len() {
        // The last line may be half written.
        let lines: Vec<Value> = ground.log(number).lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        for line in lines.iter().filter(|line| line["message"] == "looked for due jobs") {
            let holder = line["holder"].as_str().unwrap().to_owned();
            looks.entry(holder).or_default().push(line["at"].as_i64().unwrap() / 5000 * 5000);
        }
    }
    assert!(looks.len() >= 3, "three led for a while: {looks:#?}");
    for (holder, slots) in &looks {
        let last = slots.iter().max().unwrap();
        let twice = |slot: &i64| slots.iter().filter(|other| *other == slot).count() > 1;
        let missing: Vec<&i64> = slots.iter().filter(|s| *s < last && twice(s) && !there.contains(s)).collect();
        assert!(missing.is_empty(), "{holder} looked and there is no run at {missing:?}");
    }
    assert!(there.len() >= 8, "{} slots ran: the test proves little", there.len());
}
