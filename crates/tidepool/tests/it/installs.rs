//! Items on instances: asked for, brought about, removed; one item is on an instance at most once.

use base::id::{InstallId, TaskId};
use fleet::install::{self, Place, Wish};
use fleet::registry::TYPES;
use queue::audit::By;
use serde_json::{Value, json};
use store::task::Status;

use crate::kit::Site;
use crate::kit::simulated::Simulated;
use crate::marketplace::{file, item, make, skill, text};
use crate::on_both;

/// An employee with the assigned instance `<prefix>0`; answers the employee's id and token.
async fn holder(site: &Site, email: &str, prefix: &str) -> (String, String) {
    let (user, token) = site.quick_employee(email).await;
    let instance = site.instances(prefix, 1).await.remove(0);
    let path = format!("/instances/{instance}/assign");
    site.admin.patch(&path, json!({"user_id": user})).token(&site.root).ok().await;
    (user, token)
}

async fn ask(site: &Site, token: &str, item: &str, instance: &str) -> Value {
    let path = format!("/marketplace/items/{item}/install");
    site.employee.post(&path, json!({"instance_id": instance})).token(token).ok().await
}

async fn refused_ask(site: &Site, token: &str, item: &str, instance: &str, code: &str) -> String {
    let path = format!("/marketplace/items/{item}/install");
    site.employee.post(&path, json!({"instance_id": instance})).token(token).refused(code).await
}

async fn installs(site: &Site, token: &str) -> Vec<Value> {
    let found = site.employee.get("/me/installs").token(token).ok().await;
    let list = found["list"].as_array().unwrap().clone();
    assert_eq!(found["total"], list.len());
    list
}

/// What the task does, up to the host.
async fn start(site: &Site, id: &str) -> Wish {
    let mut tx = site.app.db.begin().await.unwrap();
    let wish = install::started(&site.app, &mut tx, &InstallId::named(id)).await.unwrap();
    tx.commit().await.unwrap();
    wish
}

/// What the task says when the host is as it shall be.
async fn finish(site: &Site, id: &str, places: &[Place]) {
    let mut tx = site.app.db.begin().await.unwrap();
    install::finished(&site.app, &mut tx, &InstallId::named(id), places).await.unwrap();
    tx.commit().await.unwrap();
}

/// Brings an install about, as the task does.
async fn bring_about(site: &Site, id: &str) {
    match start(site, id).await {
        Wish::Install { files, .. } => finish(site, id, &files.iter().map(Place::of).collect::<Vec<_>>()).await,
        Wish::Remove { .. } => finish(site, id, &[]).await,
        Wish::Nothing => {}
    }
}

async fn fail(site: &Site, id: &str, given_up: bool) {
    let mut tx = site.app.db.begin().await.unwrap();
    install::failed(&site.app, &mut tx, &InstallId::named(id), "the server could not be reached", given_up)
        .await
        .unwrap();
    tx.commit().await.unwrap();
}

async fn task(site: &Site, id: &str) -> store::task::Task {
    store::task::find(&site.app.db, &TaskId::named(id)).await.unwrap().unwrap()
}

async fn tasks(site: &Site) -> Vec<store::task::Task> {
    let expected = store::task::TaskFilter { types: Some("apply_marketplace_item"), ..Default::default() };
    let sort = base::Sort { column: "created_at", descending: false };
    store::task::list(&site.app.db, expected, sort, base::Page::ALL).await.unwrap().list
}

/// A worker takes the task.
async fn take(site: &Site, id: &str) {
    let now = site.app.clock.now();
    let task = task(site, id).await;
    let mut tx = site.app.db.begin().await.unwrap();
    store::task::begin(&mut tx, &task, "worker", now, store::lease::Term::until(now)).await.unwrap();
    tx.commit().await.unwrap();
}

on_both! {
    async fn an_item_is_asked_for_brought_about_and_counted_once(site: Site) {
        let (user, token) = holder(site, "ada@example.com", "a").await;
        let (_, stranger) = site.quick_employee("eve@example.com").await;
        let id = item(site, "hello").await;
        let asked = ask(site, &token, &id, "a0").await;
        assert_eq!(text(&asked, "state"), "pending");
        let install_id = text(&asked, "install_id");
        let queued = task(site, text(&asked, "task_id")).await;
        assert_eq!(queued.payload, json!({"install_id": install_id}).to_string());
        assert_eq!((queued.instance_id.as_deref(), queued.user_id.as_deref(), queued.status), (Some("a0"), Some(user.as_str()), Status::Pending));

        let listed = &installs(site, &token).await[0];
        assert_eq!((text(listed, "state"), text(listed, "item_name"), text(listed, "item_icon"), text(listed, "item_version")), ("pending", "hello", "👋", "1.0.0"));
        assert_eq!((text(listed, "instance_id"), listed["finding_count"].as_i64(), listed["error"].is_null(), listed["update_available"].as_bool()), ("a0", Some(0), true, Some(false)));
        assert_eq!(installs(site, &stranger).await.len(), 0, "somebody else's are not there");
        assert_eq!(site.employee.get("/me/installs?instance_id=other").token(&token).ok().await["total"], 0);
        assert_eq!(ask(site, &token, &id, "a0").await, asked, "asking again changes nothing");

        assert!(matches!(start(site, install_id).await, Wish::Install { files, stale, .. } if files.len() == 1 && stale.is_empty()));
        assert_eq!(text(&installs(site, &token).await[0], "state"), "installing");
        assert_eq!(text(&ask(site, &token, &id, "a0").await, "state"), "installing");
        fail(site, install_id, false).await;
        let listed = &installs(site, &token).await[0];
        assert_eq!((text(listed, "state"), text(listed, "error")), ("installing", "the server could not be reached"), "it is tried again");
        bring_about(site, install_id).await;
        let listed = &installs(site, &token).await[0];
        assert_eq!((text(listed, "state"), listed["error"].is_null(), listed["installed_at"].is_string()), ("installed", true, true));
        let count = async || site.employee.get(&format!("/marketplace/items/{id}")).token(&token).ok().await["install_count"].as_i64();
        assert_eq!(count().await, Some(1));
        assert!(matches!(start(site, install_id).await, Wish::Nothing), "the task that runs twice finds nothing to do");
        let again = ask(site, &token, &id, "a0").await;
        assert_eq!((text(&again, "state"), &again["task_id"]), ("installed", &asked["task_id"]));

        // A newer version, with another file.
        let patch = json!({"version": "2.0.0", "files": [file("skills/hello/NEW.md", "new")]});
        site.admin.patch(&format!("/marketplace-items/{id}"), patch).token(&site.root).ok().await;
        assert_eq!(installs(site, &token).await[0]["update_available"], true);
        let newer = ask(site, &token, &id, "a0").await;
        assert_eq!((text(&newer, "install_id"), text(&newer, "state")), (install_id, "pending"));
        assert_ne!(newer["task_id"], asked["task_id"]);
        match start(site, install_id).await {
            Wish::Install { item, files, stale } => {
                assert_eq!((item.version.as_str(), files[0].path.as_str(), stale[0].path.as_str()), ("2.0.0", "skills/hello/NEW.md", "skills/hello/SKILL.md"));
            }
            other => panic!("{other:?}"),
        }
        bring_about(site, install_id).await;
        let listed = &installs(site, &token).await[0];
        assert_eq!((text(listed, "state"), text(listed, "item_version"), listed["update_available"].as_bool()), ("installed", "2.0.0", Some(false)));
        assert_eq!(count().await, Some(1), "an update is no other install");
        // The same version with other contents counts as changed, the same contents do not.
        let same = json!({"files": [file("skills/hello/NEW.md", "new")]});
        site.admin.patch(&format!("/marketplace-items/{id}"), same).token(&site.root).ok().await;
        assert_eq!(text(&ask(site, &token, &id, "a0").await, "state"), "installed");
        let mended = json!({"files": [file("skills/hello/NEW.md", "mended")]});
        site.admin.patch(&format!("/marketplace-items/{id}"), mended).token(&site.root).ok().await;
        assert_eq!(text(&ask(site, &token, &id, "a0").await, "state"), "pending");

        let message = site.admin.get("/audit-logs?action=instance.update&q=ada@example.com").token(&site.root).ok().await;
        assert_eq!((message["total"].as_i64(), text(&message["list"][0], "operator"), text(&message["list"][0], "detail")), (Some(4), "System", "marketplace: hello 2.0.0 asked for by ada@example.com"));
    }

    async fn only_what_is_offered_goes_onto_ones_own_instances(site: Site) {
        let (_, token) = holder(site, "ada@example.com", "a").await;
        holder(site, "bob@example.com", "b").await;
        site.instances("idle", 1).await;
        let id = item(site, "hello").await;
        for instance in ["b0", "idle0", "none", "A0"] {
            refused_ask(site, &token, &id, instance, "4040").await;
        }
        refused_ask(site, &token, "none", "a0", "4040").await;
        for body in [json!({}), json!({"instance_id": ""}), json!({"instance_id": 7}), json!(null)] {
            site.employee.post(&format!("/marketplace/items/{id}/install"), body).token(&token).refused("4000").await;
        }
        site.admin.patch(&format!("/marketplace-items/{id}"), json!({"is_active": false})).token(&site.root).ok().await;
        refused_ask(site, &token, &id, "a0", "4040").await;
        assert_eq!(tasks(site).await.len(), 0);

        // Two items that would put the same file there.
        let one = make(site, skill("One", json!([file("SOUL.md", "1")]))).await;
        let two = make(site, skill("Two", json!([file("SOUL.md", "2")]))).await;
        ask(site, &token, text(&one, "id"), "a0").await;
        let message = refused_ask(site, &token, text(&two, "id"), "a0", "4090").await;
        assert_eq!(message, "SOUL.md is a file of One, which is on the instance: remove that first");
    }

    async fn twenty_requests_at_one_moment_make_one_record_and_one_task(site: Site) {
        let (_, token) = holder(site, "ada@example.com", "a").await;
        let id = item(site, "hello").await;
        let asked = futures_util::future::join_all((0..20).map(|_| ask(site, &token, &id, "a0"))).await;
        assert!(asked.iter().all(|a| *a == asked[0]), "{asked:?}");
        assert_eq!((installs(site, &token).await.len(), tasks(site).await.len()), (1, 1));
        // Asked for and taken back, all at once: what is left is one record, or none.
        let path = format!("/me/installs/{}", text(&asked[0], "install_id"));
        let both = (0..20).map(|i| {
            let (token, id, path) = (&token, &id, &path);
            async move {
                match i % 2 {
                    0 => drop(ask(site, token, id, "a0").await),
                    _ => drop(site.employee.delete(path).token(token).send().await),
                }
            }
        });
        futures_util::future::join_all(both).await;
        let left = installs(site, &token).await;
        let pending = tasks(site).await.into_iter().filter(|t| t.status == Status::Pending).count();
        assert!(left.len() <= 1 && pending == left.len(), "{left:?}, {pending} tasks");
    }

    async fn what_is_not_wanted_any_more_goes_by_its_state(site: Site) {
        let (_, token) = holder(site, "ada@example.com", "a").await;
        let (_, stranger) = holder(site, "eve@example.com", "e").await;
        let id = item(site, "hello").await;
        let remove = async |install: &str| site.employee.delete(&format!("/me/installs/{install}")).token(&token).send().await;

        // Pending: at once, and its task with it.
        let asked = ask(site, &token, &id, "a0").await;
        let first = text(&asked, "install_id").to_owned();
        site.employee.delete(&format!("/me/installs/{first}")).token(&stranger).refused("4040").await;
        assert_eq!(remove(&first).await.ok(), json!({"id": first, "removed": true, "task_id": null}));
        assert_eq!(task(site, text(&asked, "task_id")).await.status, Status::Dead);
        assert_eq!(installs(site, &token).await.len(), 0);
        remove(&first).await.refused("4040");
        assert!(matches!(start(site, &first).await, Wish::Nothing), "a task that comes too late does nothing");

        // Pending, but a worker has just taken the task.
        let asked = ask(site, &token, &id, "a0").await;
        let second = text(&asked, "install_id").to_owned();
        assert_ne!(first, second, "a record that ended stays ended");
        take(site, text(&asked, "task_id")).await;
        remove(&second).await.refused("4090");
        // Installing.
        start(site, &second).await;
        assert!(remove(&second).await.refused("4090").contains("being installed"));
        // Failed: at once.
        fail(site, &second, true).await;
        let listed = &installs(site, &token).await[0];
        assert_eq!((text(listed, "state"), text(listed, "error")), ("failed", "the server could not be reached"));
        let mut tx = site.app.db.begin().await.unwrap();
        let held = store::task::Held { id: base::id::TaskId::named(text(&asked, "task_id")), worker: "worker".into(), attempt: 1, priority: store::task::Priority::People };
        assert!(store::task::give_back(&mut tx, &held, site.app.clock.now()).await.unwrap());
        tx.commit().await.unwrap();
        assert_eq!(remove(&second).await.ok()["removed"], true);

        // Failed, and asked for again.
        let asked = ask(site, &token, &id, "a0").await;
        let third = text(&asked, "install_id").to_owned();
        start(site, &third).await;
        fail(site, &third, true).await;
        let again = ask(site, &token, &id, "a0").await;
        assert_eq!((text(&again, "install_id"), text(&again, "state"), again["task_id"] == asked["task_id"]), (third.as_str(), "pending", false));
        assert!(installs(site, &token).await[0]["error"].is_null());

        // Installed: a task takes it off.
        bring_about(site, &third).await;
        let gone = remove(&third).await.ok();
        assert_eq!((gone["removed"].as_bool(), text(&installs(site, &token).await[0], "state")), (Some(false), "removing"));
        assert_eq!(task(site, text(&gone, "task_id")).await.status, Status::Pending);
        assert!(remove(&third).await.refused("4090").contains("being removed"));
        refused_ask(site, &token, &id, "a0", "4090").await;
        match start(site, &third).await {
            Wish::Remove { places } => assert_eq!(places, [Place { scope: "workspace".into(), path: "skills/hello/SKILL.md".into() }]),
            other => panic!("{other:?}"),
        }
        // The removal is given up: it is still there.
        fail(site, &third, true).await;
        let listed = &installs(site, &token).await[0];
        assert_eq!((text(listed, "state"), listed["error"].is_string()), ("installed", true));
        remove(&third).await.ok();
        bring_about(site, &third).await;
        assert_eq!(installs(site, &token).await.len(), 0);
        let item = site.employee.get(&format!("/marketplace/items/{id}")).token(&token).ok().await;
        assert_eq!(item["install_count"], 1, "one became installed");

        // An update that is not wanted any more: the older version is still on the instance.
        let fourth = text(&ask(site, &token, &id, "a0").await, "install_id").to_owned();
        bring_about(site, &fourth).await;
        site.admin.patch(&format!("/marketplace-items/{id}"), json!({"version": "2"})).token(&site.root).ok().await;
        let update = ask(site, &token, &id, "a0").await;
        let gone = remove(&fourth).await.ok();
        assert_eq!((gone["removed"].as_bool(), task(site, text(&update, "task_id")).await.status), (Some(false), Status::Dead));
        assert_eq!(text(&installs(site, &token).await[0], "state"), "removing");
    }

    async fn a_dead_task_shows_as_a_failure(site: Site) {
        let (_, token) = holder(site, "ada@example.com", "a").await;
        let id = item(site, "hello").await;
        let asked = ask(site, &token, &id, "a0").await;
        let cancel = queue::task_admin::cancel(&site.app, TYPES, &By::system().named(crate::kit::PASSWORD), &TaskId::named(text(&asked, "task_id"))).await.unwrap();
        assert_eq!(cancel.status, Status::Dead);
        let listed = &installs(site, &token).await[0];
        assert_eq!(text(listed, "state"), "failed");
        assert!(text(listed, "error").contains("an administrator can see why"), "what the operator reads is not for everybody: {listed}");
        let again = ask(site, &token, &id, "a0").await;
        assert_eq!((&again["install_id"], text(&again, "state")), (&asked["install_id"], "pending"));
        assert_eq!(tasks(site).await.iter().filter(|t| t.status == Status::Pending).count(), 1);
    }

    async fn a_role_pack_goes_onto_instances_of_its_profession(site: Site) {
        let pack = make(site, json!({"type": "role_pack", "name": "Analyst", "files": [file("SOUL.md", "You are an analyst.")]})).await;
        let pack = text(&pack, "id").to_owned();
        let other = make(site, json!({"type": "role_pack", "name": "Other", "files": [file("AGENTS.md", "x")]})).await;
        let hello = item(site, "hello").await;
        let new = |role_pack_id: &str, code: &str| {
            let body = json!({"name": format!("Profession {code}"), "code": code, "icon": "📊", "tagline": "counts", "role_pack_id": role_pack_id});
            site.admin.post("/professions", body).token(&site.root)
        };
        for (wrong, message) in [("none", "role_pack_id: there is no such marketplace item"), (hello.as_str(), "role_pack_id: is no item of type role_pack")] {
            assert_eq!(new(wrong, "x").refused("4000").await, message);
        }
        let made = new(&pack, "analyst").ok().await;
        let profession = format!("/professions/{}", text(&made, "id"));
        site.admin.patch(&profession, json!({"role_pack_id": hello})).token(&site.root).refused("4000").await;
        site.admin.patch(&profession, json!({"role_pack_id": pack, "tagline": "counts well"})).token(&site.root).ok().await;

        let (_, token) = holder(site, "ada@example.com", "a").await;
        let pooled = site.ready_instances("p", 1).await.remove(0);
        let entry = json!({"profession_id": made["id"], "instance_id": pooled});
        site.admin.post("/profession-pool", entry).token(&site.root).ok().await;
        let claim = format!("/me{profession}/claim");
        site.employee.post(&claim, json!({})).token(&token).ok().await;

        let message = refused_ask(site, &token, &pack, "a0", "4090").await;
        assert_eq!(message, "a role pack goes onto instances of its own profession only");
        refused_ask(site, &token, text(&other, "id"), "p0", "4090").await;
        assert_eq!(text(&ask(site, &token, &pack, "p0").await, "state"), "pending");
        assert_eq!(text(&ask(site, &token, &hello, "p0").await, "state"), "pending");
        let detail = site.employee.get(&format!("/marketplace/items/{pack}")).token(&token).ok().await;
        assert_eq!(detail["professions"], json!([{"id": made["id"], "name": "Profession analyst"}]));

        // While a profession uses it, it stays.
        let path = format!("/marketplace-items/{pack}");
        assert_eq!(site.admin.delete(&path).token(&site.root).refused("4090").await, "it is the role pack of Profession analyst");
        // Given back: what was on the instance goes with the rest of the traces.
        site.employee.delete("/me/instances/p0/claim").token(&token).ok().await;
        assert_eq!(installs(site, &token).await.len(), 0);
        let (_, next) = site.quick_employee("bob@example.com").await;
        site.employee.post(&claim, json!({})).token(&next).ok().await;
        assert_eq!(installs(site, &next).await.len(), 0, "whoever comes next begins with nothing");
        assert_eq!(text(&ask(site, &next, &pack, "p0").await, "state"), "pending");

        site.admin.patch(&profession, json!({"role_pack_id": null})).token(&site.root).ok().await;
        site.admin.delete(&path).token(&site.root).ok().await;
        assert_eq!(text(&installs(site, &next).await[0], "item_name"), "Analyst", "what is installed stays, also of a deleted item");
        new(&pack, "late").refused("4000").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_failed_half_way_is_taken_off_the_instance() {
    let ground = Simulated::new().await;
    ground.provisioned("a").await;
    let site = &ground.site;
    let (user, token) = site.quick_employee("ada@example.com").await;
    site.admin.patch("/instances/a/assign", json!({"user_id": user})).token(&site.root).ok().await;
    ground.settle().await;
    let id = item(site, "tides").await;
    // Its files are written; then the assistant does not come up.
    ground.machine.refuse("start-unit", "it does not");
    let asked = ask(site, &token, &id, "a").await;
    let queued = TaskId::named(text(&asked, "task_id"));
    let working = ground.work();
    assert_eq!(ground.over(&queued).await.status, Status::Dead);
    ground.machine.go_on();
    let skill = "/srv/assistants/1/.openclaw/workspace/skills/tides/SKILL.md";
    assert_eq!(
        (text(&installs(site, &token).await[0], "state"), ground.machine.read(skill).is_some()),
        ("failed", true)
    );

    let path = format!("/me/installs/{}", text(&asked, "install_id"));
    let gone = site.employee.delete(&path).token(&token).ok().await;
    assert_eq!(gone["removed"], false, "a task takes it off");
    ground.done(&TaskId::named(text(&gone, "task_id"))).await;
    assert_eq!((installs(site, &token).await.len(), ground.machine.read(skill)), (0, None));
    working.stop().await;
    site.check().await;
}
