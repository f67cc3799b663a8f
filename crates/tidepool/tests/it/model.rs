//! Random sequences of calls by administrators and employees, against a model small enough to be right.

use base::id::InstanceId;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::json;
use store::binding;

use crate::kit::{Database, Site};

const USERS: usize = 3;
const INSTANCES: usize = 5;
const PROFESSIONS: usize = 2;

#[derive(Clone, Debug)]
enum Op {
    Claim(usize, Option<usize>),
    GiveBack(usize, usize),
    ClaimProfession(usize, usize),
    /// The task of a claim is given up.
    GiveUp(usize),
    Replace(usize, usize),
    Assign(usize, Option<usize>),
    PoolAdd(usize, usize),
    PoolSet(usize, &'static str),
    PoolRemove(usize),
    DeleteInstance(usize),
    SetUser(usize, &'static str),
    SetProfession(usize, bool),
}

fn op() -> impl Strategy<Value = Op> {
    let (user, instance, profession) = (0..USERS, 0..INSTANCES, 0..PROFESSIONS);
    prop_oneof![
        4 => (user.clone(), proptest::option::of(instance.clone())).prop_map(|(u, i)| Op::Claim(u, i)),
        3 => (user.clone(), instance.clone()).prop_map(|(u, i)| Op::GiveBack(u, i)),
        4 => (user.clone(), profession.clone()).prop_map(|(u, p)| Op::ClaimProfession(u, p)),
        2 => instance.clone().prop_map(Op::GiveUp),
        3 => (user.clone(), instance.clone()).prop_map(|(u, i)| Op::Replace(u, i)),
        3 => (instance.clone(), proptest::option::of(user.clone())).prop_map(|(i, u)| Op::Assign(i, u)),
        4 => (profession.clone(), instance.clone()).prop_map(|(p, i)| Op::PoolAdd(p, i)),
        3 => (instance.clone(), prop_oneof![Just("idle"), Just("maintenance")]).prop_map(|(i, s)| Op::PoolSet(i, s)),
        1 => instance.clone().prop_map(Op::PoolRemove),
        1 => instance.prop_map(Op::DeleteInstance),
        1 => (user, prop_oneof![Just("active"), Just("revoked")]).prop_map(|(u, s)| Op::SetUser(u, s)),
        1 => (profession, any::<bool>()).prop_map(|(p, a)| Op::SetProfession(p, a)),
    ]
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum How {
    Assigned,
    Claimed,
    Profession(usize),
}

#[derive(Clone, Debug, Default)]
struct Instance {
    deleted: bool,
    holder: Option<(usize, How)>,
    /// Profession, whether it is in maintenance, and when it came into the pool.
    entry: Option<(usize, bool, usize)>,
    /// The set-up of a claim was given up. Nothing is cleaned here, so it stays so.
    given_up: bool,
}

/// What the platform should do, without any of how.
struct Model {
    instances: Vec<Instance>,
    active: [bool; USERS],
    listed: [bool; PROFESSIONS],
    clock: usize,
}

impl Model {
    fn new() -> Model {
        Model {
            instances: vec![Instance::default(); INSTANCES],
            active: [true; USERS],
            listed: [true; PROFESSIONS],
            clock: 0,
        }
    }

    fn idle(&self, i: usize) -> bool {
        let instance = &self.instances[i];
        !instance.deleted && instance.holder.is_none() && instance.entry.is_none()
    }

    /// The instance that a claim gets, of a profession or of none.
    fn ready(&self, profession: Option<usize>) -> Option<usize> {
        let ready = (0..INSTANCES).filter(|i| !self.instances[*i].given_up);
        let Some(p) = profession else { return ready.into_iter().find(|i| self.idle(*i)) };
        let free = |i: &usize| {
            let instance = &self.instances[*i];
            instance.holder.is_none() && matches!(instance.entry, Some((of, false, _)) if of == p)
        };
        ready.filter(free).min_by_key(|i| self.instances[*i].entry.unwrap().2)
    }

    /// The code that the call must answer, after doing what it does.
    fn apply(&mut self, op: &Op) -> &'static str {
        match *op {
            Op::Claim(u, _) | Op::GiveBack(u, _) | Op::ClaimProfession(u, _) | Op::Replace(u, _) if !self.active[u] => {
                "4010"
            }
            Op::Claim(u, _) if self.instances.iter().any(|i| i.holder.is_some_and(|(h, _)| h == u)) => "4091",
            Op::Claim(u, expected_one) => {
                let found = match expected_one {
                    Some(i) => Some(i).filter(|i| self.idle(*i) && !self.instances[*i].given_up),
                    None => self.ready(None),
                };
                let Some(i) = found else { return "4092" };
                self.instances[i].holder = Some((u, How::Claimed));
                "0000"
            }
            Op::GiveBack(u, i) => match self.instances[i].holder {
                Some((holder, How::Assigned)) if holder == u => "4090",
                Some((holder, _)) if holder == u => {
                    self.instances[i].holder = None;
                    "0000"
                }
                _ => "4040",
            },
            Op::ClaimProfession(_, p) if !self.listed[p] => "4040",
            Op::ClaimProfession(u, p) => {
                if self.instances.iter().any(|i| i.holder == Some((u, How::Profession(p)))) {
                    return "4091";
                }
                let Some(i) = self.ready(Some(p)) else { return "4092" };
                self.instances[i].holder = Some((u, How::Profession(p)));
                "0000"
            }
            Op::GiveUp(i) => match self.instances[i].holder {
                Some((_, How::Claimed | How::Profession(_))) if !self.instances[i].given_up => {
                    self.instances[i].given_up = true;
                    "0000"
                }
                _ => "nothing to give up",
            },
            Op::Replace(u, i) => match self.instances[i].holder {
                Some((holder, How::Assigned)) if holder == u => "4090",
                Some((holder, _)) if holder == u && !self.instances[i].given_up => "4090",
                Some((holder, how)) if holder == u => {
                    let next = match how {
                        How::Profession(p) => Some(p).filter(|p| self.listed[*p]).and_then(|p| self.ready(Some(p))),
                        _ => self.ready(None),
                    };
                    let Some(next) = next else { return "4092" };
                    self.instances[i].holder = None;
                    self.instances[next].holder = Some((u, how));
                    "0000"
                }
                _ => "4040",
            },
            Op::Assign(i, _) if self.instances[i].deleted => "4040",
            Op::Assign(i, _) if self.instances[i].entry.is_some() => "4090",
            Op::Assign(i, to) => match (self.instances[i].holder, to) {
                (Some((holder, _)), Some(u)) if holder != u => "4090",
                (Some(_), Some(_)) => "0000",
                (None, Some(u)) if !self.active[u] => "4090",
                (_, to) => {
                    self.instances[i].holder = to.map(|u| (u, How::Assigned));
                    "0000"
                }
            },
            Op::PoolAdd(_, i) if self.instances[i].deleted => "4000",
            Op::PoolAdd(p, i) => {
                if !self.idle(i) {
                    return "4090";
                }
                self.clock += 1;
                self.instances[i].entry = Some((p, false, self.clock));
                "0000"
            }
            Op::PoolSet(i, to) => {
                let instance = &mut self.instances[i];
                let Some((_, maintenance, _)) = instance.entry.as_mut() else { return "4040" };
                match (instance.holder.is_some(), *maintenance, to) {
                    (true, _, "idle") => instance.holder = None,
                    (false, false, "maintenance") => *maintenance = true,
                    (false, true, "idle") => *maintenance = false,
                    _ => return "4090",
                }
                "0000"
            }
            Op::PoolRemove(i) => match (&self.instances[i].entry, &self.instances[i].holder) {
                (None, _) => "4040",
                (Some(_), Some(_)) => "4090",
                (Some(_), None) => {
                    self.instances[i].entry = None;
                    "0000"
                }
            },
            Op::DeleteInstance(i) => {
                let instance = &mut self.instances[i];
                match (instance.deleted, &instance.entry, &instance.holder) {
                    (true, _, _) => "4040",
                    (_, Some(_), Some(_)) => "4090",
                    _ => {
                        *instance = Instance { deleted: true, ..Instance::default() };
                        "0000"
                    }
                }
            }
            Op::SetUser(u, status) => {
                self.active[u] = status == "active";
                "0000"
            }
            Op::SetProfession(p, listed) => {
                self.listed[p] = listed;
                "0000"
            }
        }
    }
}

/// The same calls over HTTP.
struct Real<'a> {
    site: &'a Site,
    users: Vec<String>,
    instances: Vec<String>,
    professions: Vec<String>,
    /// The last entry of each instance, which may be gone.
    entries: Vec<String>,
}

impl Real<'_> {
    /// A token of now: revoking ends the older ones for good.
    async fn token(&self, user: usize) -> String {
        let id = base::id::UserId::named(self.users[user].as_str());
        let user = people::user::find(&self.site.app, &id).await.unwrap();
        people::session::open_employee(&self.site.app, user, self.site.app.clock.now())
            .unwrap()
            .token
            .expose()
            .to_owned()
    }

    /// The task that sets an instance up for whoever has claimed it, while it waits.
    async fn setup(&self, i: usize) -> Option<String> {
        let id = InstanceId::named(&self.instances[i]);
        let mut tx = self.site.app.db.begin().await.unwrap();
        let setup = binding::held_one(&mut tx, &id).await.unwrap()?.setup?;
        (setup.status == store::task::Status::Pending).then(|| setup.task_id.to_string())
    }

    async fn apply(&mut self, op: &Op) -> String {
        let (admin, employee, root) = (&self.site.admin, &self.site.employee, &self.site.root);
        let call = match op {
            Op::Claim(u, i) => {
                let body = json!({"instance_id": i.map(|i| self.instances[i].clone())});
                employee.post("/me/instances/claim", body).token(&self.token(*u).await)
            }
            Op::GiveBack(u, i) => {
                let path = format!("/me/instances/{}/claim", self.instances[*i]);
                employee.delete(&path).token(&self.token(*u).await)
            }
            Op::ClaimProfession(u, p) => {
                let path = format!("/me/professions/{}/claim", self.professions[*p]);
                employee.post(&path, json!({})).token(&self.token(*u).await)
            }
            Op::GiveUp(i) => match self.setup(*i).await {
                Some(task) => admin.post(&format!("/tasks/{task}/cancel"), json!({})).token(root),
                None => return "nothing to give up".into(),
            },
            Op::Replace(u, i) => {
                let path = format!("/me/instances/{}/replace", self.instances[*i]);
                employee.post(&path, json!({})).token(&self.token(*u).await)
            }
            Op::Assign(i, u) => {
                let body = json!({"user_id": u.map(|u| self.users[u].clone())});
                admin.patch(&format!("/instances/{}/assign", self.instances[*i]), body).token(root)
            }
            Op::PoolAdd(p, i) => {
                let body = json!({"profession_id": self.professions[*p], "instance_id": self.instances[*i]});
                admin.post("/profession-pool", body).token(root)
            }
            Op::PoolSet(i, status) => {
                admin.patch(&format!("/profession-pool/{}", self.entries[*i]), json!({"status": status})).token(root)
            }
            Op::PoolRemove(i) => admin.delete(&format!("/profession-pool/{}", self.entries[*i])).token(root),
            Op::DeleteInstance(i) => admin.delete(&format!("/assistant-instances/{}", self.instances[*i])).token(root),
            Op::SetUser(u, status) => {
                admin.patch(&format!("/users/{}", self.users[*u]), json!({"status": status})).token(root)
            }
            Op::SetProfession(p, listed) => {
                let body = json!({"is_active": i32::from(*listed)});
                admin.patch(&format!("/professions/{}", self.professions[*p]), body).token(root)
            }
        };
        let body = call.send().await.json();
        if let (Op::PoolAdd(_, i), Some(entry)) = (op, body["data"]["id"].as_str()) {
            self.entries[*i] = entry.to_owned();
        }
        body["code"].as_str().unwrap().to_owned()
    }

    /// What the platform shows equals what the model holds.
    async fn compare(&self, model: &Model) {
        for u in (0..USERS).filter(|u| model.active[*u]) {
            let data = self.site.employee.get("/me/instances").token(&self.token(u).await).ok().await;
            let mut shown: Vec<&str> =
                data["instances"].as_array().unwrap().iter().map(|i| i["id"].as_str().unwrap()).collect();
            shown.sort_unstable();
            let held = (0..INSTANCES).filter(|i| model.instances[*i].holder.is_some_and(|(h, _)| h == u));
            assert_eq!(shown, held.map(|i| self.instances[i].as_str()).collect::<Vec<_>>());
        }
        let pool = self.site.admin.get("/profession-pool").token(&self.site.root).ok().await;
        let mut shown: Vec<(String, String)> = pool["list"]
            .as_array()
            .unwrap()
            .iter()
            .map(|e| (e["instance_id"].as_str().unwrap().to_owned(), e["status"].as_str().unwrap().to_owned()))
            .collect();
        shown.sort();
        let expected: Vec<(String, String)> = model
            .instances
            .iter()
            .enumerate()
            .filter_map(|(i, instance)| {
                let (_, maintenance, _) = instance.entry?;
                let status = match (instance.holder.is_some(), maintenance) {
                    (true, _) => "allocated",
                    (false, true) => "maintenance",
                    (false, false) => "idle",
                };
                Some((self.instances[i].clone(), status.to_owned()))
            })
            .collect();
        assert_eq!(shown, expected);
    }
}

async fn play(database: Database, ops: &[Op]) {
    let site = Site::start(database).await;
    let instances = site.ready_instances("i", INSTANCES).await;
    let mut users = vec![];
    for u in 0..USERS {
        users.push(site.quick_employee(&format!("user{u}@example.com")).await.0);
    }
    let mut professions = vec![];
    for p in 0..PROFESSIONS {
        professions.push(site.profession(&format!("p{p}"), &[]).await.0);
    }
    let entries = vec!["none".to_owned(); INSTANCES];
    let mut real = Real { site: &site, users, instances, professions, entries };
    let mut model = Model::new();
    for (step, op) in ops.iter().enumerate() {
        let expected = model.apply(op);
        let answered = real.apply(op).await;
        assert_eq!(answered, expected, "step {step}, {op:?} of {ops:?}");
    }
    real.compare(&model).await;
    site.check().await;
}

fn many(cases: u32, database: impl Fn() -> Option<Database>) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut runner = TestRunner::new(ProptestConfig {
        cases,
        max_shrink_iters: 50,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    runner
        .run(&proptest::collection::vec(op(), 20..80), |ops| {
            if let Some(database) = database() {
                runtime.block_on(play(database, &ops));
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn random_calls_do_what_the_model_says_sqlite() {
    many(24, || Some(Database::sqlite()));
}

#[test]
fn random_calls_do_what_the_model_says_postgres() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    if runtime.block_on(Database::postgres("model::postgres")).is_some() {
        many(8, || runtime.block_on(Database::postgres("model::postgres")));
    }
}
