//! Rules that need servers, instances and people together, on a SQLite database of their own. Nothing here reaches a server.

use base::id::{InstanceId, NewInstanceId, ServerId, UserId};
use base::{Clock, Kind};
use openclaw::rule::{RULES, Rule};
use people::session::{self, Employee};
use people::{claim, holder, user};
use queue::audit::By;
use store::instance::Isolation;
use testkit::Database;

use crate::repair::{self, BUDGET, Begun, HANDLERS};
use crate::{App, instance, server};

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
        store::instance::set_isolation(&self.app.db, &id, isolation, "assistant-1").await.unwrap();
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

    async fn tasks(&self, name: &str) -> usize {
        let all = store::task::TaskFilter { q: None, status: None, types: Some(name), instance_id: None };
        let sort = base::Sort { column: "created_at", descending: false };
        store::task::list(&self.app.db, all, sort, base::Page::ALL).await.unwrap().list.len()
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
