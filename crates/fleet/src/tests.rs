//! Rules that need servers, instances and people together, on a SQLite database of their own. Nothing here reaches a server.

use base::id::{InstanceId, NewInstanceId, ProfessionId, ServerId, TaskId, UserId};
use base::{Clock, Kind, Page};
use openclaw::rule::{RULES, Rule};
use people::session::{self, Employee};
use people::{claim, holder, pool, user};
use queue::audit::By;
use store::instance::{Health, Isolation};
use testkit::Database;

use crate::repair::{self, BUDGET, Begun, HANDLERS};
use crate::{App, instance, profession, server};

struct Site {
    app: App,
    _database: Database,
}

impl Site {
    async fn new() -> Site {
        let clock = Clock::manual("2026-11-15T12:00:00Z".parse().unwrap());
        let database = Database::sqlite();
        let engine = queue::App::for_tests(database.migrated().await, clock).unwrap();
        let people = people::App::for_tests(llm::App::for_tests(engine).unwrap()).unwrap();
        let site = Site { app: App::for_tests(people).unwrap(), _database: database };
        let new = server::New {
            id: Some("s".into()),
            name: "s".into(),
            host: "192.0.2.1".into(),
            ssh_port: 22,
            ssh_user: "root".into(),
            ssh_key_path: String::new(),
            ssh_key: None,
            expected_host_key: None,
            base_dir: None,
            notes: String::new(),
        };
        server::create(&site.app, &By::system(), new).await.unwrap();
        site
    }

    async fn instance(&self, id: &str, isolation: Isolation) -> InstanceId {
        let new = instance::New {
            id: NewInstanceId::parse(id).unwrap(),
            name: id.into(),
            server_id: ServerId::named("s"),
            gateway_port: None,
            gateway_url: None,
            gateway_token: None,
            model: String::new(),
            config_json: String::new(),
            notes: String::new(),
            is_main: false,
            home: String::new(),
            unit: String::new(),
            container_id: String::new(),
            provision: false,
        };
        instance::create(&self.app, &By::system(), new).await.unwrap();
        let id = InstanceId::named(id);
        let mut tx = self.app.db.begin().await.unwrap();
        store::instance::set_home(&mut tx, &id, &format!("/srv/assistants/{id}")).await.unwrap();
        store::instance::set_isolation(&mut tx, &id, isolation, "assistant-1").await.unwrap();
        tx.commit().await.unwrap();
        id
    }

    async fn employee(&self, email: &str) -> Employee {
        let new = user::New {
            email: email.parse().unwrap(),
            name: email.into(),
            department: String::new(),
            quota_daily: 0,
            password: None,
        };
        let user = user::create(&self.app, &By::system(), new).await.unwrap();
        let opened = session::open_employee(&self.app, user, self.app.clock.now()).unwrap();
        session::employee(&self.app, opened.token.expose()).await.unwrap()
    }

    /// A profession with these instances in its pool.
    async fn profession(&self, instances: &[&InstanceId]) -> ProfessionId {
        let new = profession::New {
            name: "Sailor".into(),
            code: base::id::fresh(),
            icon: String::new(),
            tagline: String::new(),
            description: String::new(),
            role_pack_id: None,
            sort_order: 0,
            is_official: false,
            is_active: true,
        };
        let id = profession::create(&self.app, &By::system(), new).await.unwrap().profession.id;
        for instance in instances {
            pool::add(&self.app, &By::system(), &id, instance, None).await.unwrap();
        }
        id
    }

    async fn run(&self, sql: &str, id: &str) {
        assert_eq!(self.app.db.run(sql, store::args![id]).await.unwrap(), 1, "{sql}");
    }

    /// The task of a claim is given up.
    async fn give_up(&self, task: &TaskId) {
        self.run("UPDATE task SET status = 'dead' WHERE id = ?", task.as_str()).await;
    }

    /// Nobody gets the only instance there is, in whatever way they ask.
    async fn is_refused(&self, id: &InstanceId, message: &str) {
        let who = self.employee(&format!("{}@example.test", base::id::fresh())).await;
        assert_eq!(claim::available(&self.app, Page::ALL).await.unwrap().total, 0, "listed: {message}");
        let any = claim::instance(&self.app, &who, None).await.err().expect(message);
        assert_eq!((any.kind, any.client.as_ref()), (Kind::NoIdleInstance, "no idle instance"));
        let chosen = claim::instance(&self.app, &who, Some(id)).await.err().expect(message);
        assert_eq!((chosen.kind, chosen.client.as_ref()), (Kind::NoIdleInstance, message));
        let profession = self.profession(&[id]).await;
        let stock = profession::show(&self.app, &profession).await.unwrap();
        assert_eq!((stock.idle, stock.ready, stock.total), (1, 0, 1), "{message}");
        let pooled = claim::profession(&self.app, &who, &profession).await.err().expect(message);
        assert_eq!(pooled.kind, Kind::NoIdleInstance);
        let entry = store::pool::of_instance(&self.app.db, id).await.unwrap().unwrap();
        pool::remove(&self.app, &By::system(), &entry.id).await.unwrap();
    }

    /// The only instance there is can be claimed, by itself and from a pool.
    async fn is_given(&self, id: &InstanceId) {
        assert_eq!(claim::available(&self.app, Page::ALL).await.unwrap().total, 1);
        let profession = self.profession(&[id]).await;
        assert_eq!(profession::show(&self.app, &profession).await.unwrap().ready, 1);
        let who = self.employee(&format!("{}@example.test", base::id::fresh())).await;
        claim::profession(&self.app, &who, &profession).await.unwrap();
    }

    async fn tasks(&self, name: &str) -> usize {
        let all = store::task::TaskFilter { q: None, status: None, types: Some(name), instance_id: None };
        let sort = base::Sort { column: "created_at", descending: false };
        store::task::list(&self.app.db, all, sort, Page::ALL).await.unwrap().list.len()
    }
}

#[tokio::test]
async fn an_employee_claims_one_instance_only() {
    let site = Site::new().await;
    site.instance("a", Isolation::Own).await;
    site.instance("b", Isolation::Own).await;
    let noor = site.employee("noor@example.test").await;
    claim::instance(&site.app, &noor, None).await.unwrap();
    assert_eq!(claim::instance(&site.app, &noor, None).await.err().unwrap().kind, Kind::AlreadyHolds);
}

#[tokio::test]
async fn what_is_on_no_server_is_not_given_out() {
    let site = Site::new().await;
    let id = site.instance("a", Isolation::Own).await;
    let message = "this instance is not on its server yet; choose another";
    site.run("UPDATE instance SET home = '', isolation = 'none' WHERE id = ?", &id).await;
    site.is_refused(&id, message).await;
    site.run("UPDATE instance SET home = '/srv/assistants/1' WHERE id = ?", &id).await;
    site.is_refused(&id, message).await;
    site.run("UPDATE instance SET isolation = 'own' WHERE id = ?", &id).await;
    site.is_given(&id).await;
}

#[tokio::test]
async fn what_is_on_a_server_out_of_service_is_not_given_out() {
    let site = Site::new().await;
    let id = site.instance("a", Isolation::Own).await;
    site.run("UPDATE server SET status = 'disabled' WHERE id = ?", "s").await;
    site.is_refused(&id, "the server of this instance is not in service; choose another").await;
    site.run("UPDATE server SET status = 'active' WHERE id = ?", "s").await;
    site.is_given(&id).await;
}

#[tokio::test]
async fn what_is_known_not_to_work_is_not_given_out() {
    for health in Health::ALL {
        let site = Site::new().await;
        let id = site.instance("a", Isolation::Own).await;
        store::instance::set_health(&site.app.db, &id, *health, 0, site.app.clock.now()).await.unwrap();
        match health {
            Health::Unhealthy => site.is_refused(&id, "this instance is unhealthy; choose another").await,
            Health::KeyInvalid => site.is_refused(&id, "the key of this instance is invalid; choose another").await,
            Health::Healthy | Health::Unknown | Health::RateLimited => site.is_given(&id).await,
        }
    }
}

#[tokio::test]
async fn what_could_not_be_set_up_is_not_given_out_before_it_is_cleaned() {
    let site = Site::new().await;
    let id = site.instance("a", Isolation::Own).await;
    let noor = site.employee("noor@example.test").await;
    let message = "the last set-up or cleaning of this instance failed; choose another";
    let claimed = claim::instance(&site.app, &noor, None).await.unwrap();
    site.give_up(&claimed.task_id).await;
    claim::give_back(&site.app, &noor, &id).await.unwrap();
    site.is_refused(&id, message).await;
    let cleaned = "UPDATE task SET status = 'done' WHERE type = 'clean_instance' AND instance_id = ?";
    site.run(&cleaned.replace("'done'", "'dead'"), &id).await;
    site.is_refused(&id, message).await;
    site.run(cleaned, &id).await;
    site.is_given(&id).await;
}

#[tokio::test]
async fn an_instance_that_could_not_be_set_up_is_exchanged_for_another() {
    let site = Site::new().await;
    let first = site.instance("a", Isolation::Own).await;
    let noor = site.employee("noor@example.test").await;
    let claimed = claim::instance(&site.app, &noor, None).await.unwrap();
    let replace = async |id: &InstanceId| claim::replace(&site.app, &noor, id).await;
    assert_eq!(replace(&first).await.err().unwrap().kind, Kind::Conflict, "its set-up goes on");
    site.give_up(&claimed.task_id).await;
    assert_eq!(replace(&first).await.err().unwrap().kind, Kind::NoIdleInstance, "there is no other");
    holder::own(&site.app, &noor.id, &first).await.expect("she keeps what she has");

    let second = site.instance("b", Isolation::Own).await;
    let sam = site.employee("sam@example.test").await;
    assert_eq!(claim::replace(&site.app, &sam, &first).await.err().unwrap().kind, Kind::NotFound, "it is not his");
    let replaced = replace(&first).await.unwrap();
    assert_eq!(replaced.held.instance.id, second);
    assert_eq!(replaced.held.setup.unwrap().task_id, replaced.task_id);
    assert_eq!(claim::held(&site.app, &noor.id).await.unwrap().len(), 1);
    assert_eq!((site.tasks("clean_instance").await, site.tasks("init_instance").await), (1, 2));
    assert_eq!(replace(&first).await.err().unwrap().kind, Kind::NotFound, "it is not hers any more");
    let broken = store::invariant::broken(&site.app.db).await.unwrap();
    assert!(broken.is_empty(), "{broken:#?}");
}

#[tokio::test]
async fn an_instance_of_a_profession_is_exchanged_within_its_pool() {
    let site = Site::new().await;
    let first = site.instance("a", Isolation::Own).await;
    site.instance("plain", Isolation::Own).await;
    let sailor = site.profession(&[&first]).await;
    let noor = site.employee("noor@example.test").await;
    let claimed = claim::profession(&site.app, &noor, &sailor).await.unwrap();
    site.give_up(&claimed.task_id).await;
    let replace = async || claim::replace(&site.app, &noor, &first).await;
    assert_eq!(replace().await.err().unwrap().kind, Kind::NoIdleInstance, "none of the profession");
    let second = site.instance("b", Isolation::Own).await;
    pool::add(&site.app, &By::system(), &sailor, &second, None).await.unwrap();
    let replaced = replace().await.unwrap();
    assert_eq!((&replaced.held.instance.id, &replaced.held.profession_id), (&second, &Some(sailor.clone())));
    let stock = profession::show(&site.app, &sailor).await.unwrap();
    assert_eq!((stock.idle, stock.ready, stock.allocated), (1, 0, 1), "the failed one is idle, and not ready");
    let broken = store::invariant::broken(&site.app.db).await.unwrap();
    assert!(broken.is_empty(), "{broken:#?}");
}

#[tokio::test]
async fn an_assigned_instance_is_not_exchanged_by_its_holder() {
    let site = Site::new().await;
    let (first, _) = (site.instance("a", Isolation::Own).await, site.instance("b", Isolation::Own).await);
    let noor = site.employee("noor@example.test").await;
    // An earlier claim of hers, which was given up, does not count for the assignment.
    let claimed = claim::instance(&site.app, &noor, Some(&first)).await.unwrap();
    site.give_up(&claimed.task_id).await;
    claim::give_back(&site.app, &noor, &first).await.unwrap();
    instance::assign(&site.app, &By::system(), &first, Some(&noor.id)).await.unwrap();
    let refused = claim::replace(&site.app, &noor, &first).await.err().unwrap();
    let message = "an administrator assigned this instance; ask one for another";
    assert_eq!((refused.kind, refused.client.as_ref()), (Kind::Conflict, message));
    assert!(claim::held(&site.app, &noor.id).await.unwrap()[0].setup.is_none());
}

#[tokio::test]
async fn what_does_not_have_a_user_of_its_own_is_not_claimed() {
    let site = Site::new().await;
    let noor = site.employee("noor@example.test").await;
    for (id, isolation) in [("a", Isolation::Shared), ("b", Isolation::Adopted), ("c", Isolation::Unknown)] {
        let id = site.instance(id, isolation).await;
        for chosen in [None, Some(&id)] {
            let refused = claim::instance(&site.app, &noor, chosen).await.err().unwrap();
            assert_eq!(refused.kind, Kind::NoIdleInstance, "{isolation:?}");
        }
    }
}

#[tokio::test]
async fn somebody_elses_instance_is_not_there() {
    let site = Site::new().await;
    let id = site.instance("a", Isolation::Own).await;
    let (noor, sam) = (site.employee("noor@example.test").await, site.employee("sam@example.test").await);
    claim::instance(&site.app, &noor, Some(&id)).await.unwrap();
    holder::own(&site.app, &noor.id, &id).await.expect("it is hers");
    assert_eq!(holder::own(&site.app, &sam.id, &id).await.err().unwrap().kind, Kind::NotFound);
    assert_eq!(claim::give_back(&site.app, &sam, &id).await.err().unwrap().kind, Kind::NotFound);
}

#[tokio::test]
async fn what_is_given_back_is_cleaned_and_has_another_token() {
    let site = Site::new().await;
    let id = site.instance("a", Isolation::Own).await;
    let noor = site.employee("noor@example.test").await;
    let token = async || {
        let found = store::instance::find(&site.app.db, &id).await.unwrap().unwrap();
        found.token(&site.app.sealer).unwrap().expose().to_owned()
    };
    claim::instance(&site.app, &noor, Some(&id)).await.unwrap();
    let before = token().await;
    claim::give_back(&site.app, &noor, &id).await.unwrap();
    assert_ne!(token().await, before);
    assert_eq!(site.tasks("clean_instance").await, 1);
}

#[tokio::test]
async fn an_assigned_instance_is_not_given_back_by_its_holder() {
    let site = Site::new().await;
    let id = site.instance("a", Isolation::Own).await;
    let noor = site.employee("noor@example.test").await;
    instance::assign(&site.app, &By::system(), &id, Some(&UserId::named(noor.id.as_str()))).await.unwrap();
    assert_eq!(claim::give_back(&site.app, &noor, &id).await.err().unwrap().kind, Kind::Conflict);
}

#[tokio::test]
async fn a_repair_has_a_budget_of_an_hour() {
    let site = Site::new().await;
    let id = site.instance("a", Isolation::Own).await;
    let begin = async || {
        let mut tx = site.app.db.begin().await.unwrap();
        let begun = repair::begin(&site.app, &mut tx, &id, "no_api_key", "no key", "write it").await.unwrap();
        tx.commit().await.unwrap();
        begun
    };
    for done in 0..BUDGET {
        assert_eq!(begin().await, Begun::Yes);
        if done == 0 {
            assert_eq!(begin().await, Begun::Running, "one of an instance at a time");
        }
        let sql = "UPDATE repair SET status = 'failed' WHERE status = 'running'";
        site.app.db.run(sql, vec![]).await.unwrap();
        site.app.clock.advance(jiff::SignedDuration::from_mins(10));
    }
    assert_eq!(begin().await, Begun::Spent);
    site.app.clock.advance(jiff::SignedDuration::from_mins(41));
    assert_eq!(begin().await, Begun::Yes, "the first is over an hour ago");
}

#[test]
fn every_rule_has_a_handler() {
    let found: Vec<Rule> = RULES.iter().map(|(rule, _)| *rule).collect();
    let handled: Vec<Rule> = HANDLERS.iter().map(|handler| handler.rule).collect();
    assert_eq!(handled, found);
}
