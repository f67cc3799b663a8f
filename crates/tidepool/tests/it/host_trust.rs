//! By what a server is known: the key of the first contact, an expected key, or an authority; as the API takes, shows and audits it.
//! The servers are simulated, with real SSH; `host::expected` of crate `remote` has real ones.

use serde_json::{Value, json};
use sim::host::{Hosts, Machine};

use crate::kit::Site;
use crate::on_both;

/// Its public key, with the comment that makes no difference.
const OTHER: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPdU2gFyX0RrEgly4iUaJbkaPzYZUaHYuzbzkf85LRze other";

struct Ground<'a> {
    site: &'a Site,
    hosts: Hosts,
    key: String,
}

impl<'a> Ground<'a> {
    async fn new(site: &'a Site) -> Ground<'a> {
        let hosts = Hosts::of(Machine::new("h")).await.unwrap();
        let key = sim::host::login_key().unwrap();
        testkit::trace::used_secret(&key);
        Ground { site, hosts, key }
    }

    fn body(&self, id: &str, expected: Option<&str>) -> Value {
        let port = self.hosts.address.port();
        json!({"id": id, "name": id, "host": "127.0.0.1", "ssh_port": port, "ssh_key": self.key, "expected_host_key": expected})
    }

    async fn add(&self, id: &str, expected: Option<&str>) -> Value {
        self.site.admin.post("/servers", self.body(id, expected)).token(&self.site.root).ok().await
    }

    async fn change(&self, id: &str, change: Value) -> Value {
        self.site.admin.patch(&format!("/servers/{id}"), change).token(&self.site.root).ok().await
    }

    /// The step of the host key, tried again.
    async fn test(&self, id: &str) -> (bool, String) {
        let path = format!("/servers/{id}/test");
        let tested = self.site.admin.post(&path, json!({})).token(&self.site.root).ok().await;
        let step = tested["steps"].as_array().unwrap().iter().find(|step| step["step"] == "host_key").unwrap().clone();
        (step["ok"].as_bool().unwrap(), step["detail"].as_str().unwrap().to_owned())
    }

    async fn shown(&self, id: &str) -> Value {
        self.site.admin.get(&format!("/servers/{id}/detail")).token(&self.site.root).ok().await
    }

    /// What the audit log says of a server, the latest first.
    async fn audit(&self, id: &str) -> Vec<String> {
        let path = format!("/audit-logs?action=server.action&q={id}");
        let found = self.site.admin.get(&path).token(&self.site.root).ok().await;
        let list = found["list"].as_array().unwrap().iter();
        list.map(|entry| entry["detail"].as_str().unwrap().to_owned()).collect()
    }
}

on_both! {
    async fn a_server_is_known_by_what_was_expected_or_by_its_first_key(site: Site) {
        let ground = Ground::new(site).await;
        let own = ground.hosts.host_key.clone();

        let new = ground.add("first", None).await;
        assert_eq!((&new["host_key_trust"], &new["host_key"]), (&json!("first_use"), &json!("")));
        let (ok, message) = ground.test("first").await;
        assert!(ok && message.contains("compared with nothing"), "{message}");
        let seen = ground.shown("first").await;
        assert_eq!((&seen["host_key_trust"], &seen["host_key"]), (&json!("first_use"), &json!(own)));
        let print = seen["host_key_fingerprint"].as_str().unwrap().to_owned();
        assert!(print.starts_with("SHA256:"), "{print}");
        assert!(ground.audit("first").await.iter().any(|entry| entry.contains("was compared with nothing")));

        // Somebody compares it afterwards: it is the same.
        let compared = ground.change("first", json!({"expected_host_key": print})).await;
        assert_eq!((&compared["host_key_trust"], &compared["host_key"]), (&json!("compared"), &json!(own)));
        assert!(ground.audit("first").await[0].contains("expected_host_key"));

        for (id, expected) in [("key", own.clone()), ("print", print.clone())] {
            let new = ground.add(id, Some(&expected)).await;
            assert_eq!((&new["host_key_trust"], &new["expected_fingerprint"]), (&json!("compared"), &json!(print)));
            let (ok, message) = ground.test(id).await;
            assert!(ok && message.contains("as expected"), "{message}");
            assert!(ground.audit(id).await.iter().any(|entry| entry.contains("is the expected one")));
            assert_eq!(ground.shown(id).await["host_key"], json!(own));
        }

        let new = ground.add("certified", Some(&ground.hosts.authority)).await;
        assert_eq!((&new["host_key_trust"], &new["host_key"]), (&json!("certified"), &json!("")));
        let by = new["expected_fingerprint"].as_str().unwrap();
        let (ok, message) = ground.test("certified").await;
        assert!(ok && message.contains(&format!("certified by {by}")), "{message}");
        assert_eq!(ground.shown("certified").await["host_key"], json!(own), "what it showed");
        assert!(ground.audit("certified").await.iter().any(|entry| entry.contains(&format!("certified by {by}"))));
        let found = site.admin.get("/servers").token(&site.root).ok().await;
        assert_eq!(found["total"], 4);
    }

    async fn a_server_that_shows_something_else_is_refused_until_somebody_says_otherwise(site: Site) {
        let ground = Ground::new(site).await;
        let authority = format!("@cert-authority 127.0.0.1 {OTHER}");
        for (id, expected) in [("key", OTHER), ("authority", &authority)] {
            ground.add(id, Some(expected)).await;
            let (ok, message) = ground.test(id).await;
            assert!(!ok && message.contains("expected"), "{message}");
            assert_eq!(ground.shown(id).await["host_key"], "", "nothing is taken");
            site.admin.get(&format!("/servers/{id}/containers")).token(&site.root).refused("4090").await;
            let errors = site.admin.get("/audit-logs?action=server.action&level=ERROR").token(&site.root).ok().await;
            assert!(errors["list"].to_string().contains("is refused"), "{errors}");
            // To forget what was seen does not forget what is expected.
            ground.change(id, json!({"forget_host_key": true})).await;
            assert!(!ground.test(id).await.0);
            // Nor does another address.
            ground.change(id, json!({"ssh_port": 1})).await;
            ground.change(id, json!({"ssh_port": ground.hosts.address.port()})).await;
            assert!(!ground.test(id).await.0);
        }
        // One that was reached by its first key, and turns out to be another.
        ground.add("late", None).await;
        assert!(ground.test("late").await.0);
        let changed = ground.change("late", json!({"expected_host_key": OTHER})).await;
        assert_eq!((&changed["host_key"], &changed["host_key_trust"]), (&json!(""), &json!("compared")));
        assert!(!ground.test("late").await.0);
        let changed = ground.change("late", json!({"expected_host_key": null})).await;
        assert_eq!(changed["host_key_trust"], "first_use");
        assert!(ground.test("late").await.0);
        // A form says nothing by an empty text; what is not given stays.
        ground.change("key", json!({"expected_host_key": ground.hosts.host_key})).await;
        assert!(ground.test("key").await.0);
        assert_eq!(ground.change("key", json!({"notes": "x"})).await["host_key_trust"], "compared");
        let empty = ground.change("key", json!({"expected_host_key": " "})).await;
        assert_eq!((&empty["host_key_trust"], &empty["host_key"]), (&json!("first_use"), &json!(ground.hosts.host_key)));
    }

    async fn what_cannot_be_expected_is_refused(site: Site) {
        let ground = Ground::new(site).await;
        let elsewhere = format!("@cert-authority *.example.com {OTHER}");
        for bad in ["rubbish", "SHA256:short", "ssh-ed25519 AAAA", "@revoked * ssh-ed25519 AAAA", &elsewhere, &format!("{OTHER}\n{OTHER}")] {
            let message = site.admin.post("/servers", ground.body("bad", Some(bad))).token(&site.root).refused("4000").await;
            assert!(message.contains("expected_host_key"), "{bad}: {message}");
        }
        let local = json!({"name": "Here", "host": "local", "expected_host_key": OTHER});
        site.admin.post("/servers", local).token(&site.root).refused("4000").await;
        let here = json!({"id": "here", "name": "Here", "host": "local"});
        let here = site.admin.post("/servers", here).token(&site.root).ok().await;
        assert_eq!(here["host_key_trust"], "local");
        // An authority for some hosts does not follow the server to another.
        ground.add("moved", Some(&ground.hosts.authority)).await;
        site.admin.patch("/servers/moved", json!({"host": "elsewhere.example"})).token(&site.root).refused("4000").await;
        site.admin.patch("/servers/moved", json!({"host": "local"})).token(&site.root).refused("4000").await;
        ground.change("moved", json!({"host": "local", "expected_host_key": null})).await;
    }
}

on_both! {
    /// A first contact is under way while an administrator gives the server another address.
    async fn the_key_of_another_address_is_not_pinned(site: Site) {
        let id = base::id::ServerId::named("s");
        site.admin.post("/servers", json!({"id": "s", "name": "s", "host": "192.0.2.1"})).token(&site.root).ok().await;
        let old = store::server::find(&site.app.db, &id).await.unwrap().unwrap();
        site.admin.patch("/servers/s", json!({"host": "192.0.2.2"})).token(&site.root).ok().await;
        assert!(!store::server::pin(&site.app.db, &old, "a key").await.unwrap());
        let new = store::server::find(&site.app.db, &id).await.unwrap().unwrap();
        assert_eq!((new.host.as_str(), new.host_key.as_deref()), ("192.0.2.2", None));
        assert!(store::server::pin(&site.app.db, &new, "a key").await.unwrap());
    }
}
