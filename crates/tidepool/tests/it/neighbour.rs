//! A neighbour on the port of an assistant on a real host, from its stop to its next start.

use serde_json::json;

use crate::kit::hosts::Ground;
use crate::kit::talk::{Client, Closed, ticket};

/// Listens in the assistant's place as another user, and writes down what is heard.
const LISTEN: &str = r#"
import socket, sys, threading
out = open(sys.argv[2], "ab", buffering=0)
def take(c):
    while data := c.recv(65536): out.write(data)
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("127.0.0.1", int(sys.argv[1])))
s.listen(64)
while True: threading.Thread(target=take, args=(s.accept()[0],), daemon=True).start()
"#;

/// Talks to an instance before, while and after a neighbour has its port.
pub async fn takes_the_port_of(ground: &Ground, id: &str) {
    let site = &ground.site;
    let (user, token) = site.quick_employee("ada@example.com").await;
    site.admin.patch(&format!("/instances/{id}/assign"), json!({"user_id": user})).token(&site.root).ok().await;
    let enter =
        async || Client::open(&site.employee, id, &ticket(&site.employee, &token, id).await, &[]).await.unwrap();
    enter().await.event("relay.hello").await;

    let port = ground.show(id).await["gateway_port"].to_string();
    let (unit, heard) = (format!("neighbour-{id}"), format!("/tmp/heard-{id}"));
    let script = r#"
        systemctl stop "openclaw-$1"; install -o nobody -m 644 /dev/null "$3"
        systemd-run -q --unit="$2" --uid=nobody python3 -c "$5" "$4" "$3""#;
    ground.sh(script, &[id, &unit, &heard, &port, LISTEN]).await;
    ground.listens(&port).await;
    let closed = enter().await.closed().await;
    assert_eq!(closed, Closed(1011, "another program answers on the instance's port".into()));
    assert_eq!(ground.sh("cat -- \"$1\"", &[&heard]).await, "", "nothing was sent");
    let repairs = site.admin.get("/repairs").token(&site.root).ok().await;
    let row = repairs["list"].as_array().unwrap().iter().find(|one| one["rule"] == "foreign_listener").unwrap();
    assert!(row["before"].as_str().unwrap().contains("user nobody ("), "{row}");

    ground.sh("systemctl stop \"$1\"; rm -f -- \"$2\"; systemctl start \"openclaw-$3\"", &[&unit, &heard, id]).await;
    ground.run("restart_instance", json!({"instance_id": id})).await;
    enter().await.event("relay.hello").await;
    let checked = crate::health::check(ground).await;
    assert_eq!(checked["list"][0]["health_status"], "healthy", "{checked}");
    let alerts = site.admin.get("/alerts?open=true").token(&site.root).ok().await;
    let about = |alert: &serde_json::Value| alert["subject"] == format!("repair:{id}:foreign_listener").as_str();
    assert!(!alerts["list"].as_array().unwrap().iter().any(about), "{alerts}");
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_real_host_hears_nothing() {
    let Some(mut ground) = Ground::new("neighbour::on_a_real_host_hears_nothing").await else { return };
    let id = ground.provisioned(json!({})).await;
    takes_the_port_of(&ground, &id).await;
    ground.end().await;
}
