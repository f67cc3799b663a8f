//! A day on which workers die: records are changed, files are edited by hand and restarts are asked for all over the fleet,
//! and every few moments the process that works on it is killed, between any two steps. In the end every assistant is
//! what our records want, none is stuck, and none was stopped without a reason.
//!
//! `make torture` runs it with 2,000 assistants (TIDEPOOL_TEST_FLEET=2000x24); here the fleet is a small one.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use base::id::InstanceId;
use fleet::assistant::Defaults;
use fleet::instance::{self, Patch};
use fleet::reconcile::pass;
use fleet::registry::TYPES;
use jiff::SignedDuration;
use queue::audit::By;
use queue::worker::{Timing, Worker};
use serde_json::{Value, json};
use store::args;
use testkit::until_ok_within;
use tokio::sync::watch;

use crate::day::{Chance, EACH, config_path, edit, id, populate, size, unit};
use crate::kit::{Database, Options, Site};

const MODELS: [&str; 2] = ["claude-sonnet-4-6", "gpt-4o"];
/// Longer than any retry waits, and than any lease.
const BETWEEN: SignedDuration = SignedDuration::from_mins(70);

const AT_REST: &str = "0 differ: 0 are reconciled, 0 are left to people";

store::record! { struct Count { n: i64 } }

/// A process that works on the queue: it has a runtime and connections of its own, and everything of it ends with them.
struct Process {
    runtime: tokio::runtime::Runtime,
    _stop: watch::Sender<bool>,
}

impl Process {
    async fn start(site: &Site) -> Process {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let (stop, stopped) = watch::channel(false);
        let pace = Timing { poll: Duration::from_millis(20), slots: 32, ..Timing::default() };
        let app = runtime.spawn(site.another_process()).await.unwrap();
        runtime.spawn(Worker::new(Arc::new(app), TYPES, pace).run(stopped));
        Process { runtime, _stop: stop }
    }

    /// As by kill -9.
    fn kill(self) {
        self.runtime.shutdown_background();
    }
}

async fn open_tasks(site: &Site, statuses: &str) -> i64 {
    let sql = format!("SELECT COUNT(*) AS n FROM task WHERE status IN ({statuses})");
    site.app.db.first::<Count>(&sql, args![]).await.unwrap().unwrap().n
}

/// Whether an alert asks a person what is to be done.
async fn is_asked(site: &Site, subject: &str) -> bool {
    let sql = "SELECT COUNT(*) AS n FROM alert WHERE resolved_at IS NULL AND subject = ?";
    site.app.db.first::<Count>(sql, args![subject]).await.unwrap().unwrap().n > 0
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_workers_die_between_any_two_steps_and_nothing_is_stuck() {
    let (instances, rounds) = size();
    // The small one of the suite: every step is still met many times.
    let (instances, rounds) = if instances > 100 { (instances, rounds) } else { (60, 12) };
    let given = std::env::var("TIDEPOOL_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| u64::from_le_bytes(base::secret::random_bytes().unwrap()));
    eprintln!("TIDEPOOL_TEST_SEED={seed} repeats the changes");
    let mut chance = Chance(seed);
    let servers = instances.div_ceil(EACH);
    let assistants =
        Defaults { settle: Duration::from_millis(50), start_limit: Duration::from_secs(60), ..Defaults::default() };
    let site = Site::with(Database::sqlite(), Options { assistants, ..Options::default() }).await;
    let (machines, _hosts) = populate(&site, servers).await;
    let mut had_a_reason: HashSet<String> = HashSet::new();
    let mut crashes = 0;
    for _ in 0..rounds {
        for _ in 0..(instances / 6).max(1) {
            let (server, place) = (chance.below(servers), chance.below(EACH));
            let name = id(server, place);
            let change = async |patch: Patch| {
                instance::update(&site.app, &By::system(), &InstanceId::named(name.as_str()), patch).await.unwrap()
            };
            match chance.below(8) {
                0..=2 => {
                    let model = MODELS[chance.below(2)].to_owned();
                    change(Patch { model: Some(model), ..Patch::default() }).await;
                }
                3 | 4 => {
                    edit(&machines[server], place, |config| {
                        config["agents"]["defaults"]["model"]["primary"] = json!("somebody/else");
                        config["messages"] = json!({"responsePrefix": "theirs"});
                    });
                }
                5 => {
                    let config = json!({"messages": {"ackReaction": format!("p{}", chance.below(1000))}});
                    change(Patch { config_json: Some(config.to_string()), ..Patch::default() }).await;
                }
                6 => {
                    let address = ["ws://127.0.0.1:1", "ws://192.0.2.7:18789"][chance.below(2)].to_owned();
                    change(Patch { gateway_url: Some(address), ..Patch::default() }).await;
                    had_a_reason.insert(name);
                }
                _ => {
                    let id = InstanceId::named(name.as_str());
                    instance::restart(&site.app, &By::system(), &id).await.unwrap();
                    had_a_reason.insert(name);
                }
            }
        }
        pass::run(&site.app).await.unwrap();
        // Some live long enough to do something whole, most do not.
        for _ in 0..3 {
            let process = Process::start(&site).await;
            tokio::time::sleep(Duration::from_millis(20 + chance.below(600) as u64)).await;
            process.kill();
            crashes += 1;
            site.app.clock.advance(BETWEEN);
        }
    }
    // From here on nobody dies: what was begun is finished, and what differs is brought.
    let process = Process::start(&site).await;
    let mut last = String::new();
    for _ in 0..12 + instances / 32 {
        until_ok_within(Duration::from_secs(900), "nothing is to be done", async || {
            let (busy, failed) =
                (open_tasks(&site, "'pending', 'processing'").await, open_tasks(&site, "'failed'").await);
            if busy == 0 && failed > 0 {
                // Only while nothing runs: otherwise it would end the leases.
                site.app.clock.advance(BETWEEN);
            }
            if busy + failed == 0 { Ok(()) } else { Err((busy, failed)) }
        })
        .await;
        site.app.clock.advance(BETWEEN);
        last = pass::run(&site.app).await.unwrap();
        if last == AT_REST {
            break;
        }
        // A change that needs a restart, and whose task died with five workers, waits for a person: here is one, who
        // knows of it by its alert. The others wait until one of the few that may be written at once is done.
        for state in store::reconcile::all_live(&site.app.db).await.unwrap() {
            if is_asked(&site, &pass::subject(&state.instance_id)).await {
                had_a_reason.insert(state.instance_id.to_string());
                instance::reconcile(&site.app, &By::system(), &state.instance_id, true).await.unwrap();
            }
        }
    }
    process.kill();
    eprintln!("{instances} assistants, {crashes} crashes, {} with a reason to restart; {last}", had_a_reason.len());
    let states = store::reconcile::all_live(&site.app.db).await.unwrap();
    let left: Vec<_> = states.into_iter().filter(|state| state.is_behind() || state.failures > 0).collect();
    assert_eq!(last, AT_REST, "{left:#?}");
    for (server, machine) in machines.iter().enumerate() {
        for place in 0..EACH {
            let name = id(server, place);
            let state = store::reconcile::find(&site.app.db, &InstanceId::named(name.as_str())).await.unwrap();
            assert!(!state.is_behind(), "{name} is stuck: {state:?}");
            assert!(machine.is_well(&unit(server, place)), "{name} is down");
            let config: Value = serde_json::from_slice(&machine.read(&config_path(place)).unwrap()).unwrap();
            assert_ne!(config["agents"]["defaults"]["model"]["primary"], "somebody/else", "{name}");
            if !had_a_reason.contains(&name) {
                assert_eq!(machine.starts(&unit(server, place)), 1, "{name} was restarted without a reason");
            }
        }
    }
    site.check().await;
}
