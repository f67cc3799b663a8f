//! The health of instances, seen by the real sweep on a real host: running, stopped, wedged, starting, and a server that is away.

use std::time::{Duration, Instant};

use base::id::InstanceId;
use serde_json::{Value, json};
use sim::assistant::{Assistant, Options as Assistance};
use sim::host::{Hosts, Machine};
use testkit::{until_ok, until_ok_within};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::kit::hosts::Ground;
use crate::kit::{Database, Site, free_port, used_secret};

pub async fn check(ground: &Ground) -> Value {
    ground.site.admin.get("/instances/health-check").token(&ground.site.root).ok().await
}

fn of(checked: &Value, id: &str) -> Value {
    checked["list"].as_array().unwrap().iter().find(|one| one["id"] == id).unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_sweep_tells_how_everything_is() {
    // An address of this machine that is not its loopback.
    let Some(own) = crate::kit::talk::own_address("health::one_sweep_tells_how_everything_is") else { return };
    let Some(mut ground) = Ground::new("health::one_sweep_tells_how_everything_is").await else { return };
    let well = ground.provisioned(json!({})).await;
    let stopped = ground.provisioned(json!({})).await;
    let wedged = ground.provisioned(json!({})).await;
    let nowhere = ground.instance(json!({})).await;
    // A server that takes a connection and says nothing, and later is away; with one instance that answers by its own address and
    // one that does not.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let dead = base::id::fresh();
    let ssh_port = silent.local_addr().unwrap().port();
    let body = json!({"id": dead, "name": "Away", "host": "127.0.0.1", "ssh_port": ssh_port, "ssh_key_path": ground.fleet.key});
    ground.site.admin.post("/servers", body).token(&ground.site.root).ok().await;
    let token = format!("gateway-token-{}", base::id::fresh());
    let assistant = Assistant::start(Assistance { address: own, ..Assistance::new(&token) }).await.unwrap();
    let gone = ground.instance(json!({"server_id": dead, "home": "/srv/x/1"})).await;
    let url = format!("http://{own}:{}", assistant.port);
    let reached = ground
        .instance(json!({"server_id": dead, "home": "/srv/x/2", "gateway_url": url, "gateway_token": token}))
        .await;
    let mute = ground
        .instance(
            json!({"server_id": dead, "home": "/srv/x/3", "gateway_url": format!("http://{own}:{}", free_port())}),
        )
        .await;
    ground.sh("systemctl stop \"openclaw-$1\"", &[&stopped]).await;
    ground.wrong(&wedged, json!({"wedged": true})).await;

    // Nobody waits for the server that says nothing: how the others are is known before it is given up.
    let others = async {
        let asked = silent.accept().await.unwrap();
        let since = Instant::now();
        until_ok("the others were looked at", async || {
            let path = format!("/instances/{well}/heartbeat");
            let beats = ground.site.admin.get(&path).token(&ground.site.root).ok().await;
            if beats["list"].as_array().unwrap().is_empty() { Err(beats) } else { Ok(()) }
        })
        .await;
        drop((asked, silent));
        (Instant::now(), since.elapsed())
    };
    let all = async {
        let checked = check(&ground).await;
        (checked, Instant::now())
    };
    let ((others, known_after), (checked, all)) = tokio::join!(others, all);
    // On a machine so busy that the silent one was given up meanwhile, nothing is known.
    assert!(others < all || known_after >= remote::host::Timing::default().greet, "{known_after:?}");
    let state = |checked: &Value, id: &str| {
        let one = of(checked, id);
        (
            one["health_status"].as_str().unwrap().to_owned(),
            one["layer"].as_str().unwrap().to_owned(),
            one["health_fail_count"].as_i64().unwrap(),
        )
    };
    let is = |status: &str, layer: &str, fails: i64| (status.to_owned(), layer.to_owned(), fails);
    assert_eq!(state(&checked, &well), is("healthy", "key", 0), "{checked}");
    assert!(of(&checked, &well)["latency_ms"].is_number());
    assert_eq!(state(&checked, &stopped), is("unhealthy", "service", 1), "at once");
    assert_eq!(state(&checked, &wedged), is("unknown", "websocket", 1), "alive, but no answer: counted");
    assert_eq!(state(&checked, &nowhere), is("unknown", "none", 0));
    assert_eq!(state(&checked, &gone), is("unknown", "ssh", 1));
    assert_eq!(state(&checked, &reached), is("healthy", "websocket", 0), "{checked}");
    assert_eq!(state(&checked, &mute), is("unknown", "ssh", 1), "neither way gets there: {checked}");
    check(&ground).await;
    let checked = check(&ground).await;
    assert_eq!(state(&checked, &wedged), is("unhealthy", "websocket", 3), "the third counts");
    assert_eq!(state(&checked, &gone), is("unhealthy", "ssh", 3));
    assert_eq!(state(&checked, &stopped), is("unhealthy", "service", 3));
    let beats = ground.site.admin.get(&format!("/instances/{wedged}/heartbeat")).token(&ground.site.root).ok().await;
    let states: Vec<&str> =
        beats["list"].as_array().unwrap().iter().map(|beat| beat["health_status"].as_str().unwrap()).collect();
    assert_eq!(states, ["unknown", "unknown", "unhealthy"], "oldest first");
    ground.site.admin.get("/instances/nothing/heartbeat").token(&ground.site.root).refused("4040").await;
    // What is shown elsewhere is the same.
    assert_eq!(ground.show(&wedged).await["health_status"], "unhealthy");
    let alerts = ground.site.admin.get("/alerts?open=true").token(&ground.site.root).ok().await;
    let subjects: Vec<&str> =
        alerts["list"].as_array().unwrap().iter().map(|a| a["subject"].as_str().unwrap()).collect();
    for expected in [format!("instance:{stopped}"), format!("instance:{wedged}"), format!("server:{dead}")] {
        assert!(subjects.contains(&expected.as_str()), "{expected}: {subjects:?}");
    }
    assert_eq!(subjects.len(), 3, "each once, and the server's instances by their server: {subjects:?}");

    // Auto recovery restarts what failed three times, and looks again.
    ground.wrong(&wedged, json!({})).await;
    let (begun, left) = fleet::recovery::recover(&ground.site.app).await.unwrap();
    let has = |list: &[InstanceId], id: &str| list.iter().any(|one| *one == id);
    assert!(has(&begun, &stopped) && has(&begun, &wedged), "{begun:?} {left:?}");
    assert!(has(&left, &gone) && has(&left, &mute), "nobody gets there: {left:?}");
    let (again, _) = fleet::recovery::recover(&ground.site.app).await.unwrap();
    assert!(again.is_empty(), "what is being repaired is not begun again: {again:?}");
    let repairs = settled(&ground).await;
    for id in [&stopped, &wedged] {
        let one = repairs.iter().find(|r| r["instance_id"] == **id).unwrap();
        assert_eq!((one["rule"].as_str(), one["status"].as_str()), (Some("auto_recovery"), Some("success")), "{one}");
        // What answers again by itself is left alone.
        let action = if *id == wedged { "nothing" } else { "restarted the service" };
        assert_eq!(one["action"], action, "{one}");
        let shown = ground.show(id).await;
        assert_eq!((shown["health_status"].as_str(), shown["health_fail_count"].as_i64()), (Some("healthy"), Some(0)));
    }
    let alerts = ground.site.admin.get("/alerts?open=true").token(&ground.site.root).ok().await;
    assert_eq!(alerts["total"], 1, "those two are over: {alerts}");
    ground.end().await;
}

/// Answers /healthz and nothing else: `then` says what becomes of the next connection.
async fn only_live(own: std::net::Ipv4Addr, then: &'static [u8]) -> u16 {
    let listener = tokio::net::TcpListener::bind((own, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let mut silent = vec![];
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut head = [0; 1024];
            let read = socket.read(&mut head).await.unwrap_or_default();
            let is_healthz = head[..read].starts_with(b"GET /healthz ");
            let answer = if is_healthz { &b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"[..] } else { then };
            socket.write_all(answer).await.ok();
            if then.is_empty() {
                silent.push(socket);
            }
        }
    });
    port
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_server_an_instance_is_healthy_only_if_it_answers_a_call() {
    let name = "health::without_its_server_an_instance_is_healthy_only_if_it_answers_a_call";
    let Some(own) = crate::kit::talk::own_address(name) else { return };
    let site = Site::start(Database::sqlite()).await;
    let key = sim::host::login_key().unwrap();
    used_secret(&key);
    let gone = json!({"id": "gone", "name": "Gone", "host": "127.0.0.1", "ssh_port": free_port(), "ssh_key": key});
    site.admin.post("/servers", gone).token(&site.root).ok().await;
    // This one answers, with another host key than the expected one.
    let hosts = Hosts::of(Machine::new("other")).await.unwrap();
    let expected = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPdU2gFyX0RrEgly4iUaJbkaPzYZUaHYuzbzkf85LRze";
    let other = json!({"id": "other", "name": "Other", "host": "127.0.0.1", "ssh_port": hosts.address.port(), "ssh_key": key, "expected_host_key": expected});
    site.admin.post("/servers", other).token(&site.root).ok().await;
    let token = format!("gateway-token-{}", base::id::fresh());
    used_secret(&token);
    let start = async |change: fn(&mut Assistance)| {
        let mut options = Assistance { address: own, ..Assistance::new(&token) };
        change(&mut options);
        Assistant::start(options).await.unwrap()
    };
    let well = start(|_| {}).await;
    let limited = start(|options| options.grants_nothing = true).await;
    let failing = start(|options| options.fails_calls = true).await;
    let starting = start(|_| {}).await;
    starting.set_starting(true);
    let stranger = start(|options| options.token = "another".into()).await;
    let impostor = start(|_| {}).await;
    let refusing = only_live(own, b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").await;
    let silent = only_live(own, b"").await;
    for (id, server, port) in [
        ("well", "gone", well.port),
        ("limited", "gone", limited.port),
        ("failing", "gone", failing.port),
        ("starting", "gone", starting.port),
        ("stranger", "gone", stranger.port),
        ("refusing", "gone", refusing),
        ("silent", "gone", silent),
        ("impostor", "other", impostor.port),
    ] {
        let body = json!({"id": id, "name": id, "server_id": server, "home": format!("/srv/{id}"), "gateway_token": token,
            "gateway_url": format!("http://{own}:{port}")});
        site.admin.post("/assistant-instances", body).token(&site.root).ok().await;
    }
    let check = async || site.admin.get("/instances/health-check").token(&site.root).ok().await;
    let state = |checked: &Value, id: &str| {
        let one = of(checked, id);
        let text = |field: &str| one[field].as_str().unwrap().to_owned();
        (text("health_status"), text("layer"), one["health_fail_count"].as_i64().unwrap())
    };
    let is = |status: &str, layer: &str, fails: i64| (status.to_owned(), layer.to_owned(), fails);
    let checked = check().await;
    for id in ["well", "limited"] {
        assert_eq!(state(&checked, id), is("healthy", "websocket", 0), "{id}: {checked}");
        assert!(of(&checked, id)["latency_ms"].is_number());
    }
    for id in ["failing", "starting", "stranger", "refusing", "silent"] {
        assert_eq!(state(&checked, id), is("unknown", "websocket", 1), "{id}: {checked}");
    }
    assert!(of(&checked, "silent")["detail"].as_str().unwrap().contains("within 5 s"), "{checked}");
    assert_eq!(state(&checked, "impostor"), is("unknown", "ssh", 1), "{checked}");
    assert!(impostor.connects().is_empty(), "its token is not sent past a wrong host key");
    check().await;
    let checked = check().await;
    for id in ["failing", "starting", "stranger", "refusing", "silent"] {
        assert_eq!(state(&checked, id), is("unhealthy", "websocket", 3), "{id}: {checked}");
    }
    // Nobody can restart what is on a server that is away: the server is what somebody must look at.
    let alerts = site.admin.get("/alerts?open=true").token(&site.root).ok().await;
    let subjects: Vec<&str> =
        alerts["list"].as_array().unwrap().iter().map(|a| a["subject"].as_str().unwrap()).collect();
    assert!(subjects.contains(&"server:gone") && subjects.iter().all(|s| s.starts_with("server:")), "{subjects:?}");
    site.check().await;
}

/// The ledger once nothing runs any more.
pub async fn settled(ground: &Ground) -> Vec<Value> {
    until_ok_within(Duration::from_secs(150), "no repair runs any more", async || {
        let found = ground.site.admin.get("/repairs?limit=200").token(&ground.site.root).ok().await;
        let list = found["list"].as_array().unwrap().clone();
        if list.iter().all(|one| one["status"] != "running") { Ok(list) } else { Err(found) }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn three_restarts_an_hour_and_no_more() {
    let Some(mut ground) = Ground::with("health::three_restarts_an_hour_and_no_more", Duration::from_secs(8)).await
    else {
        return;
    };
    let id = ground.provisioned(json!({})).await;
    ground.wrong(&id, json!({"crash": ["2026.9.6"]})).await;
    ground.sh("systemctl stop \"openclaw-$1\"", &[&id]).await;
    for _ in 0..3 {
        check(&ground).await;
    }
    for round in 0..5 {
        fleet::recovery::recover(&ground.site.app).await.unwrap();
        let repairs = settled(&ground).await;
        let tried = repairs.iter().filter(|r| r["status"] == "failed").count();
        assert_eq!(tried, (round + 1).min(3), "{repairs:?}");
        ground.site.wait(Duration::from_secs(600));
    }
    let repairs = settled(&ground).await;
    let message: Vec<&Value> = repairs.iter().filter(|r| r["status"] == "alert").collect();
    assert_eq!(message.len(), 1, "said once: {repairs:?}");
    assert!(message[0]["after"].as_str().unwrap().contains("3 times within the hour"), "{message:?}");
    let alerts = ground.site.admin.get(&format!("/alerts?open=true&q=repair:{id}")).token(&ground.site.root).ok().await;
    assert_eq!(alerts["total"], 1, "{alerts}");
    ground.end().await;
}

/// Counts what is said to the database from this thread.
#[derive(Clone, Default)]
struct Statements(std::sync::Arc<std::sync::atomic::AtomicUsize>);

impl<S: tracing::Subscriber> tracing_subscriber::Layer<S> for Statements {
    fn on_event(&self, event: &tracing::Event<'_>, _: tracing_subscriber::layer::Context<'_, S>) {
        if event.metadata().target().starts_with("sqlx::query") {
            self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        }
    }
}

/// A check of a server with many instances held them all while it said ten things about each.
#[tokio::test]
async fn a_check_says_little_to_the_database_however_many_instances_there_are() {
    use tracing_subscriber::layer::SubscriberExt as _;
    let Some(database) = Database::postgres("health::a_check_says_little").await else { return };
    let site = Site::start(database).await;
    let statements = Statements::default();
    let mut said = vec![];
    for (server, instances) in [("few", 2), ("many", 60)] {
        let body = json!({"id": server, "name": server, "host": "127.0.0.1", "ssh_port": free_port(), "ssh_key_path": "/none"});
        site.admin.post("/servers", body).token(&site.root).ok().await;
        for number in 0..instances {
            let id = format!("{server}-{number}");
            let body =
                json!({"id": id, "name": id, "server_id": server, "model": "gpt-4o", "home": format!("/srv/{id}")});
            site.admin.post("/assistant-instances", body).token(&site.root).ok().await;
        }
        // Only this server is looked at.
        let sql = "UPDATE server SET status = CASE WHEN id = ? THEN 'active' ELSE 'disabled' END";
        site.app.db.run(sql, store::args![server]).await.unwrap();
        let _here = tracing::subscriber::set_default(tracing_subscriber::registry().with(statements.clone()));
        let before = statements.0.load(std::sync::atomic::Ordering::SeqCst);
        let checked = fleet::health::check(&site.app).await.unwrap();
        assert_eq!(checked.reports.len(), instances);
        said.push(statements.0.load(std::sync::atomic::Ordering::SeqCst) - before);
    }
    assert!(said[0] > 5, "the statements are counted: {said:?}");
    assert!(said[1] <= said[0] + 5, "no more for sixty than for two: {said:?}");
    let beats = store::heartbeat::last(&site.app.db, &base::id::InstanceId::named("many-59"), 9).await.unwrap();
    assert_eq!(beats.len(), 1);
    site.check().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_cannot_be_written_down_leaves_the_others() {
    let site = Site::start(Database::sqlite()).await;
    site.instances("a", 1).await;
    site.instances("b", 1).await;
    let sql =
        "CREATE TRIGGER no BEFORE UPDATE ON instance WHEN NEW.server_id = 'srv-b' BEGIN SELECT RAISE(ABORT, 'no'); END";
    site.app.db.run(sql, vec![]).await.unwrap();
    let checked = site.admin.get("/instances/health-check").token(&site.root).ok().await;
    let ids: Vec<&str> = checked["list"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["a0"]);
}
