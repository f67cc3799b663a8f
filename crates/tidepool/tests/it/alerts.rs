//! Alerts: raised once, delivered with a signature and again when that fails, ended, acknowledged; and live events.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::Secret;
use fleet::registry::TYPES;
use futures_util::StreamExt as _;
use queue::alert::{self, Rule};
use queue::worker::{Timing, Worker};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::kit::{Database, Site, used_secret};
use crate::on_both;

/// A webhook that refuses the first delivery and takes all others.
async fn webhook() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook/secret-part", listener.local_addr().unwrap());
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let refusal = heard.clone();
    tokio::spawn(async move {
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            let (mut text, mut piece) = (String::new(), [0; 8192]);
            loop {
                let n = socket.read(&mut piece).await.unwrap();
                text.push_str(&String::from_utf8_lossy(&piece[..n]));
                let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                let length =
                    head.lines().find_map(|l| l.to_lowercase().strip_prefix("content-length: ")?.parse::<usize>().ok());
                if n == 0 || body.len() >= length.unwrap_or(0) {
                    break;
                }
            }
            let first = {
                let mut refusal = refusal.lock().unwrap();
                refusal.push(text);
                refusal.len() == 1
            };
            let status = if first { "500 Not Now" } else { "204 No Content" };
            socket
                .write_all(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").as_bytes())
                .await
                .unwrap();
        }
    });
    (url, heard)
}

async fn heard(site: &Site, heard: &Mutex<Vec<String>>, count: usize) -> Vec<String> {
    testkit::until_ok(&format!("{count} deliveries"), async || {
        let all = heard.lock().unwrap().clone();
        if all.len() >= count {
            return Ok(all);
        }
        // A failed delivery waits for its next attempt by the site's clock.
        if site.admin.get("/tasks?type=deliver_alert&status=failed").token(&site.root).ok().await["total"] == 1 {
            site.wait(Duration::from_secs(1));
        }
        Err(all)
    })
    .await
}

on_both! {
    async fn an_alert_is_raised_once_and_delivered_until_it_is_taken(site: Site) {
        let (url, refusal) = webhook().await;
        used_secret("secret-part");
        let set = site.admin.call(reqwest::Method::PUT, "/alerts/rules/gateway_down").json(json!({"enabled": true, "channel": url})).token(&site.root).ok().await;
        let secret = set["signing_secret"].as_str().unwrap().to_owned();
        used_secret(&secret);
        assert_eq!(set["channel"], url);
        // Others see where it goes, and nothing that opens it.
        let plain = site.plain_admin("plain@example.com", "admin").await;
        site.admin.call(reqwest::Method::PUT, "/alerts/rules/gateway_down").json(json!({"enabled": false})).token(&plain).refused("4030").await;
        let rules = site.admin.get("/alerts/rules").token(&plain).ok().await;
        let rule = rules["list"].as_array().unwrap().iter().find(|r| r["id"] == "gateway_down").unwrap().clone();
        assert!(!rule["channel"].as_str().unwrap().contains("secret-part") && rule["signing_secret"].is_null(), "{rule}");
        assert_eq!(rules["total"], 9);
        site.admin.call(reqwest::Method::PUT, "/alerts/rules/nothing").json(json!({"enabled": false})).token(&site.root).refused("4040").await;
        site.admin.call(reqwest::Method::PUT, "/alerts/rules/task_dead").json(json!({"enabled": true, "channel": "ftp://x"})).token(&site.root).refused("4000").await;
        for (rule, threshold) in [("budget_near_limit", 800.0), ("key_balance_low", -1.0), ("task_dead", 5.0)] {
            let body = json!({"enabled": true, "threshold": threshold});
            site.admin.call(reqwest::Method::PUT, &format!("/alerts/rules/{rule}")).json(body).token(&site.root).refused("4000").await;
        }

        let (stop, stopped) = watch::channel(false);
        let timing = Timing { poll: Duration::from_millis(50), ..Timing::default() };
        let worker = tokio::spawn(Worker::new(site.app.clone(), TYPES, timing).run(stopped));
        assert!(alert::set_state(&site.app, Rule::GatewayDown, "gateway", Some("it does not answer")).await.unwrap());
        for _ in 0..3 {
            assert!(!alert::set_state(&site.app, Rule::GatewayDown, "gateway", Some("it still does not")).await.unwrap(), "once");
        }
        let requests = heard(site, &refusal, 2).await;
        assert_eq!(requests.len(), 2, "refused, and again");
        let part = |text: &str, name: &str| {
            let line = text.lines().find(|l| l.to_lowercase().starts_with(name)).unwrap();
            line.split_once(": ").unwrap().1.to_owned()
        };
        assert_eq!(part(&requests[0], "x-tidepool-delivery"), part(&requests[1], "x-tidepool-delivery"));
        let body = requests[1].split_once("\r\n\r\n").unwrap().1;
        let signature = part(&requests[1], "x-tidepool-signature");
        let time: i64 = signature.strip_prefix("t=").unwrap().split(',').next().unwrap().parse().unwrap();
        assert_eq!(signature, format!("t={time},v1={}", remote::webhook::sign(&Secret::new(&secret), time, body)));
        let sent: Value = serde_json::from_str(body).unwrap();
        assert_eq!((sent["event"].as_str(), sent["rule"].as_str(), sent["message"].as_str()), (Some("raised"), Some("gateway_down"), Some("it does not answer")));

        let listed = site.admin.get("/alerts?open=true").token(&site.root).ok().await;
        let id = listed["list"][0]["id"].as_str().unwrap().to_owned();
        assert_eq!((listed["total"].as_i64(), listed["list"][0]["acked_at"].is_null()), (Some(1), true));
        let acked = site.admin.post(&format!("/alerts/{id}/ack"), json!({})).token(&plain).ok().await;
        assert_eq!(acked["acked_by"], "plain@example.com");
        let again = site.admin.post(&format!("/alerts/{id}/ack"), json!({})).token(&site.root).ok().await;
        assert_eq!(again["acked_by"], "plain@example.com");
        site.admin.post("/alerts/nothing/ack", json!({})).token(&site.root).refused("4040").await;

        assert!(alert::set_state(&site.app, Rule::GatewayDown, "gateway", None).await.unwrap());
        assert!(!alert::set_state(&site.app, Rule::GatewayDown, "gateway", None).await.unwrap());
        let requests = heard(site, &refusal, 3).await;
        let sent: Value = serde_json::from_str(requests[2].split_once("\r\n\r\n").unwrap().1).unwrap();
        assert_eq!((sent["event"].as_str(), sent["id"].as_str()), (Some("resolved"), Some(id.as_str())));
        // It may come again, as another.
        assert!(alert::set_state(&site.app, Rule::GatewayDown, "gateway", Some("once more")).await.unwrap());
        // A rule that is off raises nothing.
        site.admin.call(reqwest::Method::PUT, "/alerts/rules/task_dead").json(json!({"enabled": false})).token(&site.root).ok().await;
        assert!(!alert::set_state(&site.app, Rule::TaskDead, "task:x", Some("dead")).await.unwrap());
        stop.send(true).unwrap();
        worker.await.unwrap();
    }

    /// The first delivery fails and waits; the end came meanwhile, and overtook it.
    async fn the_end_of_an_alert_is_told_after_its_beginning(site: Site) {
        let (url, refusal) = webhook().await;
        let set = site.admin.call(reqwest::Method::PUT, "/alerts/rules/gateway_down").json(json!({"enabled": true, "channel": url})).token(&site.root).ok().await;
        used_secret(set["signing_secret"].as_str().unwrap());
        let (stop, stopped) = watch::channel(false);
        let timing = Timing { poll: Duration::from_millis(50), ..Timing::default() };
        let worker = tokio::spawn(Worker::new(site.app.clone(), TYPES, timing).run(stopped));
        alert::set_state(&site.app, Rule::GatewayDown, "gateway", Some("it does not answer")).await.unwrap();
        heard(site, &refusal, 1).await;
        alert::set_state(&site.app, Rule::GatewayDown, "gateway", None).await.unwrap();
        let event = |text: &str| {
            let body: Value = serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap();
            body["event"].as_str().unwrap().to_owned()
        };
        let events: Vec<String> = heard(site, &refusal, 3).await.iter().map(|text| event(text)).collect();
        assert_eq!(events, ["raised", "raised", "resolved"]);
        stop.send(true).unwrap();
        worker.await.unwrap();
        // Nobody was told of the next one's beginning: its delivery was given up.
        alert::set_state(&site.app, Rule::GatewayDown, "gateway", Some("once more")).await.unwrap();
        let waiting = site.admin.get("/tasks?type=deliver_alert&status=pending").token(&site.root).ok().await;
        let id = waiting["list"][0]["id"].as_str().unwrap().to_owned();
        site.admin.post(&format!("/tasks/{id}/cancel"), json!({})).token(&site.root).ok().await;
        alert::set_state(&site.app, Rule::GatewayDown, "gateway", None).await.unwrap();
        let (stop, stopped) = watch::channel(false);
        let worker = tokio::spawn(Worker::new(site.app.clone(), TYPES, timing).run(stopped));
        testkit::until_ok("nothing waits", async || {
            let tasks = site.admin.get("/tasks?type=deliver_alert&status=done").token(&site.root).ok().await;
            if tasks["total"] == 3 { Ok(()) } else { Err(tasks) }
        })
        .await;
        assert_eq!(refusal.lock().unwrap().len(), 3, "and so nobody was told of its end");
        stop.send(true).unwrap();
        worker.await.unwrap();
    }
}

/// The next events of a stream, until one of this kind has come.
async fn until(
    stream: &mut (impl futures_util::Stream<Item = reqwest::Result<bytes::Bytes>> + Unpin),
    kind: &str,
) -> (String, String) {
    let mut text = String::new();
    let waited = async {
        loop {
            while let Some((event, rest)) = text.split_once("\n\n").map(|(e, r)| (e.to_owned(), r.to_owned())) {
                text = rest;
                let of = |name: &str| event.lines().find_map(|l| l.strip_prefix(name).map(str::to_owned));
                if of("event: ").as_deref() == Some(kind) {
                    return (of("id: ").unwrap(), of("data: ").unwrap());
                }
            }
            text.push_str(&String::from_utf8_lossy(&stream.next().await.unwrap().unwrap()));
        }
    };
    tokio::time::timeout(testkit::LIMIT, waited).await.unwrap_or_else(|_| panic!("no {kind}"))
}

async fn events(
    site: &Site,
    last: Option<&str>,
) -> impl futures_util::Stream<Item = reqwest::Result<bytes::Bytes>> + Unpin {
    let mut request = site.admin.http.get(format!("{}/api/v1/events", site.admin.url)).bearer_auth(&site.root);
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    Box::pin(answer.bytes_stream())
}

on_both! {
    async fn changes_are_heard_and_what_was_missed_comes_first(site: Site) {
        site.admin.get("/events").refused("4010").await;
        let mut stream = events(site, None).await;
        site.admin.patch("/jobs/server_metrics", json!({"paused": true})).token(&site.root).ok().await;
        let (id, data) = until(&mut stream, "job").await;
        assert_eq!(serde_json::from_str::<Value>(&data).unwrap(), json!({"id": "server_metrics"}));
        drop(stream);
        // While nobody listened.
        site.wait(Duration::from_secs(20));
        alert::set_state(&site.app, Rule::GatewayDown, "gateway", Some("away")).await.unwrap();
        let ids = site.instances("ev", 1).await;
        let mut stream = events(site, Some(&id)).await;
        let (_, data) = until(&mut stream, "instance").await;
        assert_eq!(serde_json::from_str::<Value>(&data).unwrap()["id"], ids[0]);
        until(&mut stream, "guardian_alert").await;
        // Too long away: everything is to be looked at.
        let mut stream = events(site, Some("1")).await;
        until(&mut stream, "reset").await;
    }
}

on_both! {
    async fn what_ended_meanwhile_is_told_too(site: Site) {
        use store::{job_run, repair};
        let id = site.instances("end", 1).await[0].clone();
        let app = &site.app;
        let began = app.clock.now();
        let mut tx = app.db.begin().await.unwrap();
        let run = job_run::New { job_name: "log_scan", slot: None, status: job_run::Status::Running, message: "", holder: "h", lease: store::lease::Term::until(began), created_at: began };
        let run = job_run::begin(&mut tx, &run).await.unwrap().unwrap();
        let repair_one = repair::New { rule: "exit_loop", instance_id: &base::id::InstanceId::named(&id), status: repair::Status::Running, before: "b", action: "a", after: "", created_at: began };
        let repair_one = repair::insert(&mut tx, &repair_one).await.unwrap().unwrap();
        tx.commit().await.unwrap();
        site.wait(Duration::from_secs(60));
        let last = app.clock.now().as_millisecond().to_string();
        site.wait(Duration::from_secs(60));
        let mut tx = app.db.begin().await.unwrap();
        assert!(job_run::end(&mut tx, run, "h", job_run::Status::Success, "", 1, app.clock.now()).await.unwrap());
        assert!(repair::end(&mut tx, repair_one, repair::Status::Success, "a", "well", 1, app.clock.now()).await.unwrap());
        tx.commit().await.unwrap();
        let mut stream = events(site, Some(&last)).await;
        let (_, data) = until(&mut stream, "guardian_repair").await;
        assert_eq!(serde_json::from_str::<Value>(&data).unwrap()["id"], id);
        let (_, data) = until(&mut stream, "job").await;
        assert_eq!(serde_json::from_str::<Value>(&data).unwrap()["id"], "log_scan");
        // Whoever hears nothing can come back all the same.
        let hello = events(site, None).await.next().await.unwrap().unwrap();
        assert!(String::from_utf8_lossy(&hello).contains("\nid: "), "{hello:?}");
    }

    async fn alerts_end_with_what_they_are_about(site: Site) {
        let ids = site.instances("al", 2).await;
        let app = &site.app;
        let raise = async |rule: Rule, subject: &str| assert!(alert::set_state(app, rule, subject, Some("x")).await.unwrap());
        let open = async || {
            let mut all: Vec<String> = store::alert::all_open(&app.db).await.unwrap().into_iter().map(|a| a.subject).collect();
            all.sort();
            all
        };
        let other = format!("repair:{}:exit_loop", ids[1]);
        for subject in [format!("instance:{}", ids[0]), format!("repair:{}:exit_loop", ids[0]), other.clone()] {
            raise(Rule::InstancesUnhealthy, &subject).await;
        }
        site.admin.delete(&format!("/assistant-instances/{}", ids[0])).token(&site.root).ok().await;
        assert_eq!(open().await, std::slice::from_ref(&other));
        // A task that somebody retries is looked after.
        let body = json!({"type": "restart_instance", "payload": {"instance_id": ids[1]}});
        let task = site.admin.post("/tasks", body).token(&site.root).ok().await["id"].as_str().unwrap().to_owned();
        site.admin.post(&format!("/tasks/{task}/cancel"), json!({})).token(&site.root).ok().await;
        raise(Rule::TaskDead, &format!("task:{task}")).await;
        site.admin.post(&format!("/tasks/{task}/retry"), json!({})).token(&site.root).ok().await;
        assert_eq!(open().await, [other]);
        // What nobody ended in a year is forgotten, so that it can be told again.
        let year = jiff::SignedDuration::from_hours(365 * 24);
        store::alert::forget(&app.db, app.clock.now() - year).await.unwrap();
        assert_eq!(open().await.len(), 1);
        store::alert::forget(&app.db, app.clock.now() + jiff::SignedDuration::from_secs(1)).await.unwrap();
        assert_eq!(open().await.len(), 0);
    }
}

/// What one process changes, another one's listeners hear.
#[tokio::test(flavor = "multi_thread")]
async fn another_process_is_heard_too() {
    let Some(database) = Database::postgres("alerts::another_process_is_heard_too").await else { return };
    let site = Site::start(database).await;
    let mut stream = events(&site, None).await;
    let other = store::Db::open(&site.database_url).await.unwrap();
    let mut tx = other.begin().await.unwrap();
    tx.notify(store::notice::Notice::new(store::notice::Topic::Metric, "srv-9")).await.unwrap();
    tx.commit().await.unwrap();
    let (_, data) = until(&mut stream, "metric").await;
    assert_eq!(serde_json::from_str::<Value>(&data).unwrap()["id"], "srv-9");
}
