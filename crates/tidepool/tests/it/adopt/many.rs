//! Two hundred assistants on ten servers are adopted in one go, although ten of them cannot be.

use std::sync::Arc;

use serde_json::{Value, json};
use sim::host::{Hosts, Instance, Machine};

use super::{TOKEN, wish};
use crate::kit::{Database, Options, Site, used_secret};

const SERVERS: usize = 10;
const EACH: usize = 20;

struct Server {
    machine: Arc<Machine>,
    _hosts: Hosts,
}

fn name(server: usize, number: usize) -> String {
    format!("s{server}-a{number}")
}

impl Server {
    async fn new(site: &Site, number: usize) -> Server {
        let machine = Machine::with_clock(&format!("s{number}"), site.app.clock.clone());
        for one in 0..EACH {
            let name = name(number, one);
            let instance = Instance {
                unit: format!("{name}.service"),
                home: format!("/home/{name}"),
                port: u16::try_from(19_000 + 20 * one).unwrap(),
                token: TOKEN.into(),
            };
            machine.add_as(&name, &instance);
        }
        // One of each server cannot be adopted.
        machine.write(&format!("/home/{}/.openclaw/openclaw.json", name(number, 7)), "{ gateway: ");
        let hosts = Hosts::of(machine.clone()).await.unwrap();
        let key = sim::host::login_key().unwrap();
        used_secret(&key);
        let body = json!({"id": format!("s{number}"), "name": format!("Server {number}"), "host": "127.0.0.1",
            "ssh_port": hosts.address.port(), "ssh_user": "root", "ssh_key": key});
        site.admin.post("/servers", body).token(&site.root).ok().await;
        Server { machine, _hosts: hosts }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_on_ten_servers_in_one_go() {
    used_secret(TOKEN);
    let site = Site::with(Database::sqlite(), Options::default()).await;
    let mut servers = vec![];
    for number in 0..SERVERS {
        servers.push(Server::new(&site, number).await);
    }
    let adopt = async |number: usize| -> Value {
        let list: Vec<Value> = (0..EACH).map(|one| wish(&name(number, one), json!({"keeps_llm": true}))).collect();
        let path = format!("/servers/s{number}/adopt");
        site.admin.post(&path, json!({"list": list})).token(&site.root).ok().await
    };
    let done = futures_util::future::join_all((0..SERVERS).map(adopt)).await;
    for (number, done) in done.iter().enumerate() {
        let refused: Vec<(&str, &str)> = done["list"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|one| Some((one["instance_id"].as_str()?, one["refusal"].as_str()?)))
            .collect();
        assert_eq!(refused, [(name(number, 7).as_str(), "its configuration is no JSON5 document")]);
    }
    let checked = site.admin.get("/instances/health-check").token(&site.root).ok().await;
    let healthy = checked["list"].as_array().unwrap().iter().filter(|one| one["health_status"] == "healthy").count();
    assert_eq!(healthy, SERVERS * (EACH - 1), "{checked:#}");
    for (number, server) in servers.iter().enumerate() {
        for one in 0..EACH {
            assert_eq!(server.machine.starts(&format!("{}.service", name(number, one))), 1, "nothing was restarted");
        }
    }
    site.check().await;
}
