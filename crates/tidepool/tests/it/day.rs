//! A day of a fleet: simulated servers on which assistants crash, wedge, are stopped, starve and get broken configurations, and
//! which go down and hang, at random; the real scheduler, jobs and worker look after them, on a clock that is moved minute by minute.
//!
//! The test keeps its own list of what it did and asks the machines themselves what was done about it: every fault is found within
//! two periods, what was well is never touched, nothing is repaired more often than its fault demands, and memory stays flat.
//! `make torture` runs it with 2,000 assistants for 24 hours (TIDEPOOL_TEST_FLEET=2000x24); here it is a small one for some hours.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use base::id::InstanceId;
use fleet::App;
use fleet::assistant::desired::Desired;
use fleet::assistant::{Assistant, Defaults, install};
use fleet::registry::{JOBS, TYPES};
use jiff::SignedDuration;
use queue::job::{Scheduler, Timing};
use queue::worker::{Timing as Pace, Worker};
use serde_json::{Value, json};
use sim::host::{Hosts, Instance, Machine, Power};
use store::args;
use testkit::until_ok_within;
use tokio::sync::watch;

use crate::kit::{Database, Options, Site, used_secret};

const TOKEN: &str = "the-token-of-every-assistant-of-the-fleet";
pub const EACH: usize = 10;
const MINUTE: i64 = 60_000;
/// health_check and log_scan are the jobs that look for faults; auto_recovery has twice that.
const PERIOD: i64 = 5 * MINUTE;
/// Repairs of one kind of one instance within the hour.
const BUDGET: usize = 3;
/// How much more memory the last quarter may need than the first.
const MARGIN_MIB: u64 = 48;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Crash,
    Stop,
    Wedge,
    Starve,
    Config,
    /// It crashes again whenever it was repaired.
    Curse,
    Down,
    Hang,
}

#[derive(Debug)]
struct Fault {
    what: What,
    /// Milliseconds since the beginning.
    at: i64,
    /// Until when it goes on by itself.
    until: i64,
    server: usize,
    /// All assistants of the server, where there is none.
    place: Option<usize>,
    found: Option<i64>,
    mended: Option<i64>,
    /// A person did what is left to people.
    helped: bool,
}

impl Fault {
    fn hits(&self) -> Vec<String> {
        match self.place {
            Some(place) => vec![id(self.server, place)],
            None => (0..EACH).map(|place| id(self.server, place)).collect(),
        }
    }

    fn unit(&self) -> String {
        unit(self.server, self.place.unwrap())
    }

    /// The longest that it may take until all is well again; `None` where that is not the platform's doing.
    fn limit(&self) -> Option<i64> {
        match self.what {
            What::Crash | What::Config => Some(3 * PERIOD),
            // Three looks, and then the next of auto_recovery's.
            What::Stop | What::Wedge => Some(7 * PERIOD),
            What::Starve | What::Curse | What::Down | What::Hang => None,
        }
    }
}

pub fn id(server: usize, place: usize) -> String {
    format!("f{server}-{place}")
}

pub fn unit(server: usize, place: usize) -> String {
    format!("openclaw-f{server}-{place}.service")
}

fn home(place: usize) -> String {
    format!("/srv/assistants/{place}")
}

pub fn config_path(place: usize) -> String {
    format!("{}/.openclaw/openclaw.json", home(place))
}

/// Somebody types something into the configuration that OpenClaw does not know.
fn misspell(machine: &Machine, place: usize) {
    edit(machine, place, |config| config["typed_by_somebody"] = json!(true));
}

/// Somebody edits the configuration on the server.
pub fn edit(machine: &Machine, place: usize, edit: impl Fn(&mut Value)) {
    let mut config: Value = serde_json::from_slice(&machine.read(&config_path(place)).unwrap()).unwrap();
    edit(&mut config);
    machine.write(&config_path(place), &config.to_string());
}

/// As provisioning leaves it: everything that our records want is in its configuration.
async fn configure(site: &Site, machine: &Machine, server: usize, place: usize) {
    let id = InstanceId::named(id(server, place));
    let assistant = Assistant::open(&site.app, &id).await.unwrap();
    let version = install::of_instance(&site.app, &assistant).await.unwrap();
    let desired = Desired::of(&site.app, &assistant, &version).await.unwrap();
    let mut document = openclaw::Document::empty();
    desired.apply(&mut document).unwrap();
    machine.write(&config_path(place), document.text());
    store::instance::set_config_hash(&site.app.db, &id, &document.hash()).await.unwrap();
}

fn port(place: usize) -> u16 {
    20_000 + 10 * place as u16
}

/// Steele's SplitMix: the same faults for the same seed.
pub struct Chance(pub u64);

impl Chance {
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }
}

/// What happens: each assistant is hit once at most. The first fifth of the servers go down, the others' assistants fail.
fn faults(servers: usize, hours: usize, chance: &mut Chance) -> Vec<Fault> {
    let minutes = hours * 60;
    let fault = |what, at: usize, until: usize, server, place| {
        let (at, until) = (at as i64 * 1000, until as i64 * 1000);
        Fault { what, at, until, server, place, found: None, mended: None, helped: false }
    };
    let away = servers.div_ceil(5);
    let (mut all, mut away_at) = (vec![], vec![]);
    let hangs = hours / 8;
    for number in 0..away.div_ceil(2) {
        // Nothing is expected of the last hour but that it ends well.
        let at = 60 + chance.below((minutes - 60) * 60);
        let (what, long) =
            if number < hangs { (What::Hang, 7 * 60) } else { (What::Down, (22 + chance.below(20)) * 60) };
        away_at.push(at);
        all.push(fault(what, at, at + long, number, None));
    }
    let mut places: Vec<(usize, usize)> =
        (away..servers).flat_map(|server| (0..EACH).map(move |place| (server, place))).collect();
    let mut any = |chance: &mut Chance| places.swap_remove(chance.below(places.len()));
    for number in 0..servers.div_ceil(50) {
        let ((server, place), at) = (any(chance), 4 * 60 + number * 600);
        all.push(fault(What::Curse, at, at + 90 * 60, server, Some(place)));
    }
    // Some of them at once, and while a server is away: who is asked and says nothing is waited for in real time.
    for burst in 0..=hours / 8 {
        let at = away_at[burst % away_at.len()];
        for _ in 0..1 + servers / 10 {
            let (server, place) = any(chance);
            all.push(fault(What::Wedge, at, at, server, Some(place)));
        }
    }
    let kinds = [What::Crash, What::Stop, What::Starve, What::Config];
    for number in 0..(servers * EACH * hours / 100).max(servers * EACH / 8) {
        let ((server, place), at) = (any(chance), chance.below((minutes - 60) * 60));
        all.push(fault(kinds[number % kinds.len()], at, at, server, Some(place)));
    }
    all.sort_by_key(|fault| fault.at);
    all
}

store::record! { struct State { id: String, health_status: String, health_fail_count: i64 } }
store::record! {
    #[derive(Clone, Debug)]
    struct Repair { instance_id: String, rule: String, status: String, action: String, after: String, created_at: i64 }
}
store::record! {
    #[derive(Debug)]
    struct Check { status: String, layer: String, created_at: i64 }
}
store::record! { struct Count { n: i64 } }
store::record! { struct Subject { subject: String } }

struct Fleet {
    site: Site,
    machines: Arc<Vec<Arc<Machine>>>,
    faults: Vec<Fault>,
    start: i64,
}

impl Fleet {
    fn now(&self) -> i64 {
        self.site.app.clock.now().as_millisecond() - self.start
    }

    fn move_to(&self, at: i64) {
        self.site.app.clock.advance(SignedDuration::from_millis(at - self.now()));
    }

    async fn repairs(&self) -> Vec<Repair> {
        let sql = "SELECT instance_id, rule, status, action, after, created_at FROM repair ORDER BY id";
        self.site.app.db.all(sql, args![]).await.unwrap()
    }

    /// What happens in the time up to the next look, each thing at its own instant.
    fn live_until(&mut self, next: i64) {
        let mut now = self.now();
        while now < next {
            let upcoming = self.faults.iter().flat_map(|fault| [fault.at, fault.until]).filter(|at| *at > now);
            let at = upcoming.min().unwrap_or(next).min(next);
            self.move_to(at);
            for fault in &mut self.faults {
                happen(fault, &self.machines[fault.server], now, at);
            }
            now = at;
        }
    }

    /// After a look of the jobs: what they know, held against what was done.
    async fn look(&mut self) {
        let now = self.now();
        let sql = "SELECT id, health_status, health_fail_count FROM instance";
        let states: Vec<State> = self.site.app.db.all(sql, args![]).await.unwrap();
        let is_ill = |state: &&State| state.health_status != "healthy" || state.health_fail_count > 0;
        let mut ill: HashMap<&str, &State> =
            states.iter().filter(is_ill).map(|state| (state.id.as_str(), state)).collect();
        let mut repairs: HashMap<String, Vec<Repair>> = HashMap::new();
        for repair in self.repairs().await {
            repairs.entry(repair.instance_id.clone()).or_default().push(repair);
        }
        for fault in self.faults.iter_mut().filter(|fault| fault.at <= now) {
            let hits = fault.hits();
            let of: Vec<&Repair> = hits.iter().filter_map(|id| repairs.get(id)).flatten().collect();
            let all_ill = hits.iter().all(|id| ill.contains_key(id.as_str()));
            if fault.found.is_none() && (all_ill || !of.is_empty()) {
                fault.found = Some(now);
            }
            assert!(fault.found.is_some() || now - fault.at <= 2 * PERIOD, "not found after two periods: {fault:?}");
            let none_ill = hits.iter().all(|id| !ill.contains_key(id.as_str()));
            let done = of.iter().all(|repair| repair.status != "running");
            if fault.found.is_some() && fault.mended.is_none() && none_ill && done && now > fault.until {
                fault.mended = Some(now);
            }
            if let (None, Some(limit)) = (fault.mended, fault.limit()) {
                assert!(now - fault.at <= limit, "not mended in time: {fault:?} {of:#?}");
            }
            if fault.mended.is_none() {
                ill.retain(|id, _| !hits.iter().any(|hit| hit == id));
            }
        }
        let ill: Vec<String> = ill.into_keys().map(str::to_owned).collect();
        if let Some(id) = ill.first() {
            let of: Vec<&Fault> = self.faults.iter().filter(|fault| fault.hits().contains(id)).collect();
            let checks =
                "SELECT status, layer, created_at FROM heartbeat WHERE instance_id = ? ORDER BY id DESC LIMIT 8";
            let checks: Vec<Check> = self.site.app.db.all(checks, args![id]).await.unwrap();
            let repairs = repairs.get(id);
            panic!(
                "nothing is wrong with {id} at {now}: {of:#?} {checks:#?} {repairs:#?}; {} are said to be ill",
                ill.len()
            );
        }
    }

    /// The books of the whole day.
    async fn audit(&self) {
        let mut repairs: BTreeMap<String, Vec<Repair>> = BTreeMap::new();
        for repair in self.repairs().await {
            repairs.entry(repair.instance_id.clone()).or_default().push(repair);
        }
        let subjects: Vec<Subject> = self.site.app.db.all("SELECT subject FROM alert", args![]).await.unwrap();
        let subjects: HashSet<String> = subjects.into_iter().map(|one| one.subject).collect();
        let mut hit = HashSet::new();
        for fault in &self.faults {
            assert!(fault.found.is_some() && fault.mended.is_some(), "{fault:?}");
            hit.extend(fault.hits());
            let Some(place) = fault.place else {
                let ids = fault.hits();
                assert!(ids.iter().all(|id| !repairs.contains_key(id)), "a server that is away is no reason to repair");
                let message = subjects.contains(&format!("server:s{}", fault.server));
                assert!(message || fault.what == What::Hang, "nobody was told: {fault:?}");
                continue;
            };
            let of = repairs.get(&id(fault.server, place)).cloned().unwrap_or_default();
            let starts = self.machines[fault.server].starts(&fault.unit()) - 1;
            if fault.what == What::Curse {
                cursed(fault, &of, starts);
                continue;
            }
            let (rule, status, expected) = match fault.what {
                What::Crash => ("exit_loop", "success", 1),
                What::Stop | What::Wedge => ("auto_recovery", "success", 1),
                // systemd's own, and the person's.
                What::Starve => ("out_of_memory", "alert", 2),
                _ => ("unknown_key", "success", 0),
            };
            let found: Vec<(&str, &str)> = of.iter().map(|one| (one.rule.as_str(), one.status.as_str())).collect();
            assert_eq!((found.as_slice(), starts), ([(rule, status)].as_slice(), expected), "{fault:?} {of:#?}");
        }
        for (server, machine) in self.machines.iter().enumerate() {
            assert_eq!(machine.unknown(), Vec::<String>::new());
            for place in 0..EACH {
                let name = id(server, place);
                assert!(machine.is_well(&unit(server, place)), "{name} is down");
                if !hit.contains(&name) {
                    assert_eq!(machine.starts(&unit(server, place)), 1, "{name} was well, and was started anew");
                    assert!(!repairs.contains_key(&name), "{name} was well: {:#?}", repairs[&name]);
                }
            }
        }
        let open = "SELECT subject FROM alert WHERE resolved_at IS NULL AND rule = 'instances_unhealthy'";
        let open: Vec<Subject> = self.site.app.db.all(open, args![]).await.unwrap();
        let open: Vec<String> = open.into_iter().map(|one| one.subject).collect();
        assert!(open.is_empty(), "all is well, and still open: {open:?}");
    }
}

/// The budget: each kind of repair three times within any hour, and then somebody was told.
fn cursed(fault: &Fault, of: &[Repair], starts: u32) {
    let begun: Vec<&Repair> = of.iter().filter(|one| one.status != "alert").collect();
    for one in &begun {
        let hour = one.created_at..one.created_at + 60 * MINUTE;
        let same = begun.iter().filter(|other| other.rule == one.rule && hour.contains(&other.created_at)).count();
        assert!(same <= BUDGET, "{same} within the hour: {of:#?}");
    }
    assert!(starts as usize <= begun.len(), "{starts} starts: {of:#?}");
    assert!(begun.len() > BUDGET && of.iter().any(|one| one.status == "alert"), "{fault:?}: {of:#?}");
}

/// What a fault does in the time from `before` to `now`.
fn happen(fault: &mut Fault, machine: &Machine, before: i64, now: i64) {
    let begins = before < fault.at && fault.at <= now;
    match fault.what {
        What::Crash if begins => machine.crash(&fault.unit()),
        What::Stop if begins => machine.stop(&fault.unit()),
        What::Wedge if begins => machine.wedge(&fault.unit()),
        What::Starve if begins => machine.run_out_of_memory(&fault.unit()),
        What::Config if begins => misspell(machine, fault.place.unwrap()),
        What::Down if begins => machine.set_power(Power::Down),
        What::Hang if begins => machine.set_power(Power::Hung),
        What::Down | What::Hang if before < fault.until && fault.until <= now => machine.set_power(Power::Up),
        What::Curse if (fault.at..=fault.until).contains(&now) && machine.is_well(&fault.unit()) => {
            machine.crash(&fault.unit());
        }
        // Somebody comes for it by and by.
        What::Starve if !fault.helped && fault.found.is_some_and(|found| now >= found + 20 * MINUTE) => {
            machine.restart(&fault.unit());
            fault.helped = true;
        }
        _ => {}
    }
}

/// The memory of this process that is no file's, in MiB.
fn memory() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

/// Instances and hours.
pub fn size() -> (usize, usize) {
    let Ok(given) = std::env::var("TIDEPOOL_TEST_FLEET") else { return (100, 3) };
    let (instances, hours) = given.split_once('x').expect("TIDEPOOL_TEST_FLEET=2000x24");
    (instances.parse().unwrap(), hours.parse().unwrap())
}

pub async fn populate(site: &Site, servers: usize) -> (Arc<Vec<Arc<Machine>>>, Hosts) {
    let machine = |server: usize| {
        let machine = Machine::with_clock(&format!("s{server}"), site.app.clock.clone());
        machine.write(&format!("/opt/tidepool/openclaw/{}/openclaw", sim::assistant::VERSION), "simulated");
        for place in 0..EACH {
            let unit = unit(server, place);
            machine.add(&Instance { unit, home: home(place), port: port(place), token: TOKEN.into() });
            machine.write(&config_path(place), "{}");
        }
        machine
    };
    let machines: Arc<Vec<Arc<Machine>>> = Arc::new((0..servers).map(machine).collect());
    let behind = machines.clone();
    let lookup = move |user: &str| behind.get(user.strip_prefix('h')?.parse::<usize>().ok()?).cloned();
    let hosts = Hosts::listen(Arc::new(lookup)).await.unwrap();
    let key = sim::host::login_key().unwrap();
    used_secret(&key);
    used_secret(TOKEN);
    for server in 0..servers {
        let body = json!({"id": format!("s{server}"), "name": format!("Server {server}"), "host": "127.0.0.1",
            "ssh_port": hosts.address.port(), "ssh_user": format!("h{server}"), "ssh_key": key});
        site.admin.post("/servers", body).token(&site.root).ok().await;
        for place in 0..EACH {
            let body = json!({"id": id(server, place), "name": id(server, place), "server_id": format!("s{server}"),
                "model": "claude-sonnet-4-6", "gateway_port": port(place), "gateway_token": TOKEN, "home": home(place)});
            site.admin.post("/assistant-instances", body).token(&site.root).ok().await;
        }
    }
    for server in 0..servers {
        for place in 0..EACH {
            configure(site, &machines[server], server, place).await;
        }
    }
    (machines, hosts)
}

async fn at_rest(site: &Site, scheduler: &Scheduler<App>) {
    scheduler.settled().await;
    let sql = "SELECT COUNT(*) AS n FROM task WHERE status IN ('pending', 'processing')";
    until_ok_within(Duration::from_secs(120), "nothing is to be done", async || {
        let left = site.app.db.first::<Count>(sql, args![]).await.unwrap().unwrap().n;
        if left == 0 { Ok(()) } else { Err(left) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_a_fleet_is_looked_after_for_a_day() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let (instances, hours) = size();
    let given = std::env::var("TIDEPOOL_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| u64::from_le_bytes(base::secret::random_bytes().unwrap()));
    eprintln!("TIDEPOOL_TEST_SEED={seed} repeats the faults");
    let most = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most }).unwrap();
    let servers = instances.div_ceil(EACH);
    let assistants =
        Defaults { settle: Duration::from_millis(100), start_limit: Duration::from_secs(10), ..Defaults::default() };
    let site = Site::with(Database::sqlite(), Options { assistants, ..Options::default() }).await;
    let (machines, _hosts) = populate(&site, servers).await;
    let hour = 60 * MINUTE;
    let clock = &site.app.clock;
    clock.advance(SignedDuration::from_millis(hour - clock.now().as_millisecond() % hour));
    let start = clock.now().as_millisecond();
    let scheduler = Scheduler::new(site.app.clone(), &JOBS, Timing::default());
    let (stop, stopped) = watch::channel(false);
    let pace = Pace { poll: Duration::from_millis(50), slots: 32, ..Pace::default() };
    let worker = tokio::spawn(Worker::new(site.app.clone(), TYPES, pace).run(stopped));
    let faults = faults(servers, hours, &mut Chance(seed));
    let mut fleet = Fleet { site, machines, faults, start };
    scheduler.tick().await.unwrap();
    at_rest(&fleet.site, &scheduler).await;
    fleet.look().await;

    let began = Instant::now();
    let minutes = hours as i64 * 60;
    // It goes up and down with the connections to the servers, which are renewed: the highest of the day's parts are compared.
    let (mut at_first, mut at_last) = (0, 0);
    for minute in 1..=minutes {
        fleet.live_until(minute * MINUTE);
        scheduler.tick().await.unwrap();
        at_rest(&fleet.site, &scheduler).await;
        if minute % 5 == 0 {
            fleet.look().await;
            let memory = memory();
            if minute <= minutes / 4 {
                at_first = at_first.max(memory);
            } else if minute > minutes * 3 / 4 {
                at_last = at_last.max(memory);
            }
        }
        if minute % 60 == 0 {
            let found = fleet.faults.iter().filter(|fault| fault.found.is_some()).count();
            let (took, memory, all) = (began.elapsed().as_secs(), memory(), fleet.faults.len());
            let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
            let hour = minute / 60;
            eprintln!("hour {hour}: {took} s, {found} of {all} faults found, {memory} MiB, {tasks} tokio tasks");
        }
    }
    fleet.audit().await;
    eprintln!("at most {at_first} MiB in the first quarter, {at_last} MiB in the last");
    let most = at_first + at_first / 10 + MARGIN_MIB;
    assert!(at_last <= most, "{at_last} MiB in the last quarter of the time, {at_first} MiB in the first");
    stop.send(true).unwrap();
    worker.await.unwrap();
    fleet.site.check().await;
}
