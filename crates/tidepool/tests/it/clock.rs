//! The scheduler: slots that run once, however many processes look, are frozen or come back.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use base::When;
use fleet::App;
use fleet::registry::JOBS;
use jiff::SignedDuration;
use queue::job::{Scheduler, Timing};
use serde_json::{Value, json};
use store::args;

use crate::kit::{Database, Options, Site};
use crate::on_both;

async fn runs(site: &Site, of: &str) -> Vec<Value> {
    let found = site.admin.get(&format!("/job-runs?job_name={of}&limit=200")).token(&site.root).ok().await;
    found["list"].as_array().unwrap().clone()
}

fn scheduler(app: &Arc<App>) -> Scheduler<App> {
    Scheduler::new(app.clone(), &JOBS, Timing::default())
}

/// A process of its own on the same database: another App, with the same clock.
async fn replica(site: &Site) -> Arc<App> {
    let of = &site.app;
    let db = store::Db::open(&site.database_url).await.unwrap();
    let (zone, sealer) = (of.zone.clone(), of.sealer.clone());
    let engine = queue::App { zone, sealer, ..queue::App::for_tests(db, of.clock.clone()).unwrap() };
    let people = people::App::for_tests(llm::App::for_tests(engine).unwrap()).unwrap();
    Arc::new(App::for_tests(people).unwrap())
}

on_both! {
    async fn every_slot_runs_once_and_what_was_missed_once(site: Site) {
        let clock = &site.app.clock;
        // At the start of a quarter of an hour, so that what follows is known.
        let quarter = 15 * 60 * 1000;
        clock.advance(SignedDuration::from_millis(quarter - clock.now().as_millisecond() % quarter));
        let scheduler = scheduler(&site.app);
        assert!(scheduler.tick().await.unwrap().unwrap() >= JOBS.iter().filter(|j| !j.paused).count());
        scheduler.settled().await;
        for _ in 0..3 {
            assert_eq!(scheduler.tick().await.unwrap(), Some(0), "the same slots");
        }
        for job in JOBS.iter() {
            let found = runs(site, job.name).await;
            assert_eq!(found.len(), usize::from(!job.paused), "{}", job.name);
            assert!(found.iter().all(|run| run["status"] != "running"), "{found:?}");
        }
        // Five minutes, with two looks in each of the shortest slots.
        for _ in 0..120 {
            clock.advance(SignedDuration::from_millis(2500));
            scheduler.tick().await.unwrap();
            scheduler.settled().await;
        }
        assert_eq!(runs(site, "queueWorker").await.len(), 61);
        assert_eq!(runs(site, "server_metrics").await.len(), 2);
        assert_eq!(runs(site, "token_usage_sync").await.len(), 1);
        // Six hours in which nobody looked: one run each, not seventy.
        clock.advance(SignedDuration::from_hours(6));
        scheduler.tick().await.unwrap();
        scheduler.settled().await;
        assert_eq!(runs(site, "server_metrics").await.len(), 3);
        assert_eq!(runs(site, "token_usage_sync").await.len(), 2);
        // A clock that goes back to what was seen makes nothing due again.
        clock.advance(SignedDuration::from_hours(-6));
        assert_eq!(scheduler.tick().await.unwrap(), Some(0));
    }

    /// Jobs stood still until the time that a clock had been ahead to.
    async fn a_clock_that_was_ahead_and_is_put_right_stops_no_job(site: Site) {
        let clock = &site.app.clock;
        let five = 5 * 60 * 1000;
        clock.advance(SignedDuration::from_millis(five - clock.now().as_millisecond() % five));
        let (before, ahead) = (clock.now(), SignedDuration::from_hours(72));
        clock.advance(ahead);
        let scheduler = scheduler(&site.app);
        scheduler.tick().await.unwrap();
        scheduler.settled().await;
        // What others wrote by that clock before they were killed: a run, the lead, and a task that failed.
        let far = clock.now() + SignedDuration::from_secs(30);
        let sql = "INSERT INTO job_run (job_name, slot, status, holder, lease_until, created_at) VALUES ('log_scan', 1, 'running', 'x', ?, ?)";
        site.app.db.run(sql, args![far, clock.now()]).await.unwrap();
        site.app.db.run("UPDATE lease SET holder = 'x', until = ? WHERE name = 'scheduler'", args![far]).await.unwrap();
        let mut tx = site.app.db.begin().await.unwrap();
        for key in ["k1", "k2"] {
            let payload = llm::key::ApplyKey { key_id: base::id::KeyId::named(key) };
            queue::task::enqueue(&site.app, &mut tx, &payload, "test", None).await.unwrap();
        }
        tx.run("UPDATE task SET status = 'failed', attempts = 1 WHERE payload LIKE '%k1%'", vec![]).await.unwrap();
        tx.commit().await.unwrap();
        clock.advance(-ahead + SignedDuration::from_secs(1));
        assert!(scheduler.tick().await.unwrap().unwrap() >= JOBS.iter().filter(|j| !j.paused).count() - 1);
        scheduler.settled().await;
        for job in JOBS.iter().filter(|job| !job.paused) {
            let now = runs(site, job.name).await;
            let ran = now.iter().any(|run| run["status"] != "running" && run["created_at"].as_str() < Some(site.app.zone.show(before + ahead / 2).as_str()));
            assert!(ran, "{}: {now:?}", job.name);
        }
        let (stop, stopped) = tokio::sync::watch::channel(false);
        let worker = queue::worker::Worker::new(site.app.clone(), fleet::registry::TYPES, queue::worker::Timing::default());
        let worker = tokio::spawn(worker.run(stopped));
        testkit::until_ok("both tasks are done", async || {
            let tasks = site.admin.get("/tasks?status=done&type=apply_key").token(&site.root).ok().await;
            if tasks["total"] == 2 { Ok(()) } else { Err(tasks) }
        })
        .await;
        stop.send(true).unwrap();
        worker.await.unwrap();
    }

    async fn a_job_never_runs_twice_at_once(site: Site) {
        // At the start of a slot, so that what follows is known.
        let five = 5 * 60 * 1000;
        let clock = &site.app.clock;
        clock.advance(SignedDuration::from_millis(five - clock.now().as_millisecond() % five));
        let now = clock.now();
        // Somebody is at it.
        let sql = "INSERT INTO job_run (job_name, slot, status, holder, lease_until, created_at) VALUES (?, ?, 'running', 'x', ?, ?)";
        let long_ago = now - SignedDuration::from_hours(1);
        site.app.db.run(sql, args!["server_metrics", long_ago, now + SignedDuration::from_secs(20), long_ago]).await.unwrap();
        let scheduler = scheduler(&site.app);
        scheduler.tick().await.unwrap();
        scheduler.settled().await;
        let status = |runs: &[Value]| runs.iter().map(|r| r["status"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
        assert_eq!(status(&runs(site, "server_metrics").await), ["running"], "whether it is alive is not known yet");
        site.admin.post("/job-runs/server_metrics/run", json!({})).token(&site.root).refused("4090").await;
        // Its process is gone: its run has failed, and the slot that waited has its own.
        site.wait(Duration::from_secs(25));
        scheduler.tick().await.unwrap();
        scheduler.settled().await;
        let found = runs(site, "server_metrics").await;
        assert_eq!(status(&found), ["success", "failed"]);
        assert_eq!(found[1]["message"], "the process that ran it is gone");

        // One that renews is alive: the slot is passed over.
        site.wait(Duration::from_secs(5 * 60));
        let now = clock.now();
        let until = now + SignedDuration::from_secs(30);
        site.app.db.run(sql, args!["server_metrics", long_ago + SignedDuration::from_mins(5), until, now]).await.unwrap();
        scheduler.tick().await.unwrap();
        let renewed = "UPDATE job_run SET lease_until = lease_until + ? WHERE job_name = 'server_metrics' AND status = 'running'";
        site.app.db.run(renewed, args![10_000i64]).await.unwrap();
        site.wait(Duration::from_secs(10));
        scheduler.tick().await.unwrap();
        assert_eq!(status(&runs(site, "server_metrics").await), ["skipped", "running", "success", "failed"]);

        // One that says nothing until the next slot: that was waited for in vain.
        let long = "UPDATE job_run SET lease_until = ? WHERE job_name = 'server_metrics' AND status = 'running'";
        site.app.db.run(long, args![clock.now() + SignedDuration::from_mins(8)]).await.unwrap();
        for _ in 0..2 {
            site.wait(Duration::from_secs(5 * 60));
            scheduler.tick().await.unwrap();
            scheduler.settled().await;
        }
        assert_eq!(status(&runs(site, "server_metrics").await), ["success", "skipped", "skipped", "failed", "success", "failed"]);
    }

    async fn any_job_can_be_run_now_and_paused(site: Site) {
        let begun = site.admin.post("/job-runs/token_usage_sync/run", json!({})).token(&site.root).ok().await;
        assert_eq!(begun["job_name"], "token_usage_sync");
        // With nothing to read it may be over before the answer is written.
        assert!(["running", "success"].contains(&begun["status"].as_str().unwrap()), "{begun}");
        let found = testkit::until_ok("it ends", async || {
            let found = runs(site, "token_usage_sync").await;
            if found[0]["status"] == "running" { Err(found) } else { Ok(found) }
        })
        .await;
        assert_eq!(found[0]["status"], "success");
        assert!(found[0]["message"].as_str().unwrap().contains("totals"));
        site.admin.post("/job-runs/nothing/run", json!({})).token(&site.root).refused("4040").await;
        site.admin.patch("/jobs/nothing", json!({"paused": true})).token(&site.root).refused("4040").await;
        let paused = site.admin.patch("/jobs/server_metrics", json!({"paused": true})).token(&site.root).ok().await;
        assert_eq!(paused["paused"], true);
        let scheduler = scheduler(&site.app);
        scheduler.tick().await.unwrap();
        scheduler.settled().await;
        assert!(runs(site, "server_metrics").await.is_empty());
        let jobs = site.admin.get("/jobs").token(&site.root).ok().await;
        let of = |name: &str| jobs["list"].as_array().unwrap().iter().find(|j| j["name"] == name).unwrap().clone();
        assert_eq!(of("server_metrics")["last_run"], Value::Null);
        assert_eq!(of("token_usage_sync")["schedule"], "every 15 min");
        site.admin.patch("/jobs/server_metrics", json!({"paused": false})).token(&site.root).ok().await;
        scheduler.tick().await.unwrap();
        scheduler.settled().await;
        assert_eq!(runs(site, "server_metrics").await.len(), 1);
    }
}

on_both! {
    async fn budgets_and_the_nightly_comparison(site: Site) {
        use store::request_log::{NewRequest, add};
        let key = site.key("some-key", None, Some(1000)).await;
        assert!(!key.is_empty());
        let app = &site.app;
        let yesterday = app.zone.midnight(app.clock.now()) - SignedDuration::from_hours(5);
        let request = |quota: i64, at: jiff::Timestamp| NewRequest {
            request_id: base::id::fresh(),
            token_name: "some-key".into(),
            model: "gpt-4o".into(),
            provider: "openai".into(),
            kind: store::request_log::RequestType::SUCCESS,
            is_stream: false,
            prompt_tokens: 10,
            completion_tokens: 5,
            quota,
            duration_ms: 1,
            error_message: String::new(),
            estimated: false,
            detail: Default::default(),
            created_at: at,
        };
        let mut tx = app.db.begin().await.unwrap();
        add(&mut tx, &app.zone, &[request(700, yesterday), request(50, app.clock.now())]).await.unwrap();
        tx.commit().await.unwrap();
        let run = async |name: &str| site.run_job(&site.root, name).await;
        let refusal = run("sync_llm_spend").await;
        assert!(refusal.starts_with("today $0.000100, this month") && refusal.ends_with("0 budgets near their limit"), "{refusal}");
        let mut tx = app.db.begin().await.unwrap();
        add(&mut tx, &app.zone, &[request(100, app.clock.now())]).await.unwrap();
        tx.commit().await.unwrap();
        for _ in 0..2 {
            assert!(run("sync_llm_spend").await.ends_with("1 budgets near their limit"));
        }
        let alerts = site.admin.get("/alerts?rule=budget_near_limit").token(&site.root).ok().await;
        assert_eq!((alerts["total"].as_i64(), alerts["list"][0]["subject"].as_str()), (Some(1), Some("key:some-key")));
        let warned = site.admin.get("/audit-logs?level=WARN&action=key.sync").token(&site.root).ok().await;
        assert_eq!(warned["total"], 1, "{warned}");
        // Paused by default, and can be run and switched on. This gateway's account has no limit; the key has little left.
        let jobs = site.admin.get("/jobs").token(&site.root).ok().await;
        let paused: Vec<&str> = jobs["list"].as_array().unwrap().iter().filter(|j| j["paused"] == true).map(|j| j["name"].as_str().unwrap()).collect();
        assert_eq!(paused, ["key_balance_alert"]);
        assert!(run("key_balance_alert").await.contains("key:some-key has $0.00 left"));
        // The comparison of yesterday: everything agrees, until somebody changes a sum.
        assert!(run("spend_comparison").await.ends_with("drift 0"));
        app.db.run("UPDATE usage_daily SET quota = quota + 3 WHERE quota = 700", args![]).await.unwrap();
        assert!(run("spend_comparison").await.ends_with("sums 703, rows 700, the gateway's count apart by unknown; drift 3"));
        let days = site.admin.get("/spend-days").token(&site.root).ok().await;
        assert_eq!((days["total"].as_i64(), days["list"][0]["drift"].as_i64()), (Some(1), Some(3)));
        assert_eq!(run("llm_self_heal").await, "0 of 1 sub keys fail", "our own gateway knows its keys");
        assert!(run("key_validity_check").await.starts_with("1 keys asked about, 0 refused"));
        // A budget that was taken away is near no limit, and the next is told of again.
        let open = async || site.admin.get("/alerts?rule=budget_near_limit&open=true").token(&site.root).ok().await["total"].as_i64();
        assert_eq!(open().await, Some(1));
        app.db.run("UPDATE gateway_key SET quota = NULL", args![]).await.unwrap();
        run("sync_llm_spend").await;
        assert_eq!(open().await, Some(0));
    }
}

/// Three processes on one PostgreSQL; the leader is frozen past its lease, another leads, the first comes back.
#[tokio::test(flavor = "multi_thread")]
async fn of_three_replicas_one_leads_and_every_slot_runs_once() {
    let Some(database) = Database::postgres("clock::of_three_replicas").await else { return };
    let site = Site::with(database, Options::default()).await;
    let (b, c) = (replica(&site).await, replica(&site).await);
    let all = [scheduler(&site.app), scheduler(&b), scheduler(&c)];
    const STEP: u64 = 3;
    let first_look = site.app.clock.now() + SignedDuration::from_secs(STEP as i64);
    let mut led = [0usize; 3];
    // Twenty minutes; in turns all but one are frozen, far beyond the lease, and then all look with what they remember.
    for second in (0..1200).step_by(STEP as usize) {
        site.wait(Duration::from_secs(STEP));
        let awake = second / 100 % 4;
        let looks = all.iter().enumerate().filter(|(i, _)| awake == 3 || *i == awake);
        let looked =
            futures_util::future::join_all(looks.map(|(i, s)| async move { (i, s.tick().await.unwrap()) })).await;
        let leaders: Vec<usize> = looked.iter().filter(|(_, led)| led.is_some()).map(|(i, _)| *i).collect();
        assert!(leaders.len() <= 1, "{leaders:?} lead at once");
        for i in leaders {
            led[i] += 1;
        }
    }
    for s in &all {
        s.settled().await;
    }
    assert!(led.iter().all(|n| *n > 0), "each led for a while: {led:?}");
    let mut per_slot: HashMap<(String, i64), usize> = HashMap::new();
    store::record! { struct Row { job_name: String, slot: Option<i64>, status: String } }
    let rows: Vec<Row> = site.app.db.all("SELECT job_name, slot, status FROM job_run", args![]).await.unwrap();
    for row in &rows {
        assert_ne!(row.status, "running", "{}", row.job_name);
        *per_slot.entry((row.job_name.clone(), row.slot.unwrap())).or_default() += 1;
    }
    assert!(per_slot.values().all(|n| *n == 1), "{per_slot:?}");
    // Nothing is missing but while nobody led: at most the lease's 15 s after each freezing.
    let five = When::minutes(5);
    let mut slot = five.slot(&site.app.zone, first_look);
    while slot <= five.slot(&site.app.zone, site.app.clock.now()) {
        assert!(per_slot.contains_key(&("server_metrics".to_owned(), slot.as_millisecond())), "{slot}");
        slot += SignedDuration::from_mins(5);
    }
    site.check().await;
}

/// A process that is frozen in the middle of a transaction holds what it wrote in it, and whoever wants to write the same
/// waits: until PostgreSQL ends the session, not until the process is thawed.
#[tokio::test(flavor = "multi_thread")]
async fn who_is_frozen_in_a_transaction_holds_nobody_up_for_long() {
    let Some(database) = Database::postgres("clock::who_is_frozen").await else { return };
    let site = Site::with(database, Options::default()).await;
    let frozen = replica(&site).await;
    let now = site.app.clock.now();
    let mut tx = frozen.db.begin().await.unwrap();
    store::record! { struct Patience { idle_in_transaction_session_timeout: String } }
    let patience = tx.first::<Patience>("SHOW idle_in_transaction_session_timeout", args![]).await.unwrap().unwrap();
    assert_eq!(patience.idle_in_transaction_session_timeout, "10s", "what every session of ours has");
    let new = store::job_run::New {
        job_name: "queueWorker",
        slot: Some(When::Seconds(5).slot(&site.app.zone, now)),
        status: store::job_run::Status::Running,
        message: "",
        holder: "frozen",
        lease: store::lease::Term::until(now + SignedDuration::from_secs(30)),
        created_at: now,
    };
    store::job_run::begin(&mut tx, &new).await.unwrap().unwrap();
    tx.run("SET LOCAL idle_in_transaction_session_timeout = '1s'", args![]).await.unwrap();
    let scheduler = scheduler(&site.app);
    let looked = tokio::time::timeout(testkit::LIMIT, scheduler.tick()).await;
    assert!(looked.expect("the scheduler waits for the frozen one").unwrap().unwrap() > 0);
    scheduler.settled().await;
    let found = runs(&site, "queueWorker").await;
    assert_eq!((found.len(), found[0]["status"].as_str()), (1, Some("success")), "{found:?}");
    tx.commit().await.expect_err("the frozen one comes back, and nothing of it is kept");
    site.check().await;
}
