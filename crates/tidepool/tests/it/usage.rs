//! Usage is exact: whatever is asked, the answer is what a plain sum over all rows of the log says.

use std::collections::BTreeMap;

use base::id::UserId;
use base::{Page, Zone};
use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use store::request_log::{self, NewRequest};

use crate::kit::{Database, Options, Site};
use crate::on_both;

/// Numbers that look random and are the same every time.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n.max(1)
    }

    fn shuffle<T>(&mut self, all: &mut [T]) {
        for i in (1..all.len()).rev() {
            all.swap(i, self.below(i as u64 + 1) as usize);
        }
    }
}

struct Person {
    id: String,
    email: String,
    department: &'static str,
}

/// A binding as the test remembers it.
struct Bound {
    instance: String,
    user: usize,
    start: Timestamp,
    end: Option<Timestamp>,
}

/// The site, and what the test knows about it.
struct World<'a> {
    site: &'a Site,
    random: Random,
    people: Vec<Person>,
    instances: Vec<String>,
    bindings: Vec<Bound>,
    /// Every row that was ever visible.
    rows: Vec<NewRequest>,
    /// Rows that become visible later.
    late: Vec<NewRequest>,
    kept_since: Timestamp,
}

#[derive(Clone, Copy, Default)]
struct Sum {
    requests: i64,
    prompt: i64,
    completion: i64,
    quota: i64,
}

impl Sum {
    fn over<'a>(rows: impl IntoIterator<Item = &'a NewRequest>) -> Sum {
        let mut sum = Sum::default();
        for row in rows {
            match row.kind {
                2 => {
                    sum.requests += 1;
                    sum.prompt += row.prompt_tokens;
                    sum.completion += row.completion_tokens;
                    sum.quota += row.quota;
                }
                6 => sum.quota -= row.quota,
                _ => {}
            }
        }
        sum
    }

    fn counts(self) -> bool {
        self.requests > 0 || self.quota != 0
    }

    fn tokens(self) -> i64 {
        self.prompt + self.completion
    }

    fn usd(self) -> f64 {
        (self.quota * 2) as f64 / 1e6
    }

    fn shown(self) -> Value {
        json!({"requests": self.requests, "prompt_tokens": self.prompt, "completion_tokens": self.completion,
            "total_tokens": self.tokens(), "cost_usd": self.usd()})
    }
}

/// Of an answer the fields that are sums.
fn sums(of: &Value) -> Value {
    let fields = ["requests", "prompt_tokens", "completion_tokens", "total_tokens", "cost_usd"];
    Value::Object(fields.iter().map(|f| ((*f).to_owned(), of[*f].clone())).collect())
}

impl<'a> World<'a> {
    async fn new(site: &'a Site, seed: u64) -> World<'a> {
        let mut people = vec![];
        for (i, department) in ["Research", "Sales", "Sales"].into_iter().enumerate() {
            let email = format!("user{i}@example.com");
            let (id, _) = site.quick_employee(&email).await;
            site.admin.patch(&format!("/users/{id}"), json!({"department": department})).token(&site.root).ok().await;
            people.push(Person { id, email, department });
        }
        let instances = site.instances("i", 4).await;
        let random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let kept_since = Timestamp::UNIX_EPOCH;
        World { site, random, people, instances, bindings: vec![], rows: vec![], late: vec![], kept_since }
    }

    fn zone(&self) -> &Zone {
        &self.site.app.zone
    }

    fn now(&self) -> Timestamp {
        self.site.app.clock.now()
    }

    async fn token(&self, person: usize) -> String {
        let id = UserId::named(&self.people[person].id);
        let user = store::user::find(&self.site.app.db, &id).await.unwrap().unwrap();
        domain::login::open_employee(&self.site.app, user).unwrap().token.expose().to_owned()
    }

    async fn root(&self) -> String {
        self.site.admin_login("root@example.com").await
    }

    fn made_up(&mut self) -> NewRequest {
        let now = self.now().as_millisecond();
        // Today, or within six weeks; often at the very edge of a quarter of an hour; sometimes a clock runs ahead.
        let back = match self.random.below(6) {
            0 => self.random.below(3_600_000) as i64,
            1 => -(self.random.below(600_000) as i64),
            2 => self.random.below(86_400_000) as i64,
            _ => self.random.below(42 * 86_400_000) as i64,
        };
        let mut at = now - back;
        if self.random.below(3) == 0 {
            at = at / 900_000 * 900_000 - self.random.below(2) as i64;
        }
        if let Some(bound) = self.bindings.last().filter(|_| self.random.below(4) == 0) {
            at = bound.start.as_millisecond() + self.random.below(5) as i64 - 2;
        }
        let tokens = ["i0", "i0", "i1", "i1", "i2", "i3", "stranger", "admin-token", ""];
        let token = tokens[self.random.below(tokens.len() as u64) as usize];
        let kind = [2, 2, 2, 2, 2, 5, 6, 1][self.random.below(8) as usize];
        let quota = self.random.below(40_000) as i64;
        NewRequest {
            request_id: format!("r{}", self.random.below(u64::MAX)),
            token_name: token.to_owned(),
            model: ["gpt-4o", "claude-opus-4-6"][self.random.below(2) as usize].to_owned(),
            provider: ["ch-1", "ch-2"][self.random.below(2) as usize].to_owned(),
            kind,
            is_stream: self.random.below(2) == 0,
            prompt_tokens: self.random.below(5_000) as i64,
            completion_tokens: self.random.below(2_000) as i64,
            quota,
            duration_ms: self.random.below(9_000) as i64,
            error_message: if kind == 5 { "upstream said no".into() } else { String::new() },
            estimated: false,
            created_at: Timestamp::from_millisecond(at).unwrap(),
        }
    }

    /// Rows become visible, in some order and in some batches.
    async fn write(&mut self, mut rows: Vec<NewRequest>) {
        self.random.shuffle(&mut rows);
        let size = 1 + self.random.below(7) as usize;
        for batch in rows.chunks(size) {
            let mut tx = self.site.app.db.begin().await.unwrap();
            request_log::add(&mut tx, self.zone(), batch).await.unwrap();
            tx.commit().await.unwrap();
        }
        self.rows.extend(rows.into_iter().filter(|r| !r.token_name.is_empty()));
    }

    async fn act(&mut self) {
        match self.random.below(8) {
            0 | 1 => {
                let rows: Vec<_> = (0..5 + self.random.below(30)).map(|_| self.made_up()).collect();
                self.write(rows).await;
            }
            2 => {
                let rows: Vec<_> = (0..self.random.below(6)).map(|_| self.made_up()).collect();
                self.late.extend(rows);
            }
            3 => {
                let late = std::mem::take(&mut self.late);
                self.write(late).await;
            }
            4 | 5 => self.rebind().await,
            6 => {
                let minutes = [1, 7, 40, 600, 3_000][self.random.below(5) as usize];
                self.site.app.clock.advance(SignedDuration::from_mins(minutes));
            }
            _ => self.forget_old_rows().await,
        }
    }

    async fn rebind(&mut self) {
        let root = self.root().await;
        let instance = self.instances[self.random.below(4) as usize].clone();
        let now = self.now();
        let path = format!("/instances/{instance}/assign");
        if let Some(bound) = self.bindings.iter_mut().find(|b| b.instance == instance && b.end.is_none()) {
            self.site.admin.patch(&path, json!({"user_id": null})).token(&root).ok().await;
            bound.end = Some(now);
            if self.random.below(2) == 0 {
                return;
            }
        }
        let user = self.random.below(3) as usize;
        self.site.admin.patch(&path, json!({"user_id": self.people[user].id})).token(&root).ok().await;
        self.bindings.push(Bound { instance, user, start: now, end: None });
    }

    /// The log is kept for 20 days here; the sums stay.
    async fn forget_old_rows(&mut self) {
        let before = self.zone().midnight(self.now() - SignedDuration::from_hours(20 * 24));
        self.kept_since = self.kept_since.max(before);
        store::usage::keep_rows_since(&self.site.app.db, self.kept_since).await.unwrap();
        while request_log::delete_before(&self.site.app.db, before, 7).await.unwrap() > 0 {}
    }

    /// Whose a row is: whoever has the instance now, unless it was somebody else's at the time.
    fn owner(&self, row: &NewRequest) -> Option<usize> {
        let now = self.bindings.iter().find(|b| b.instance == row.token_name && b.end.is_none())?;
        let others = self.bindings.iter().filter(|b| b.instance == row.token_name && b.user != now.user);
        let since = others.filter_map(|b| b.end).max();
        (since.is_none_or(|since| row.created_at >= since)).then_some(now.user)
    }

    fn of(&self, user: usize) -> Vec<&NewRequest> {
        self.rows.iter().filter(|row| self.owner(row) == Some(user)).collect()
    }

    fn day(&self, row: &NewRequest) -> Date {
        self.zone().date(row.created_at)
    }

    fn by_day(&self, rows: &[&NewRequest], first: Date) -> Vec<Value> {
        let mut days: BTreeMap<Date, Vec<&NewRequest>> = BTreeMap::new();
        rows.iter().filter(|r| self.day(r) >= first).for_each(|r| days.entry(self.day(r)).or_default().push(r));
        let shown = |(date, rows): (Date, Vec<&NewRequest>)| {
            let sum = Sum::over(rows);
            let mut shown = sum.shown();
            shown["date"] = json!(date.to_string());
            sum.counts().then_some(shown)
        };
        days.into_iter().rev().filter_map(shown).collect()
    }

    async fn check_person(&self, user: usize) {
        let (token, rows) = (self.token(user).await, self.of(user));
        let get = |path: String| self.site.employee.get(&path).token(&token).ok();
        let today = self.zone().date(self.now());
        let monday = self.zone().date(self.zone().week(self.now()));
        let windows = [("today", today), ("week", monday), ("month", today.first_of_month()), ("all_time", Date::MIN)];
        let compare = |answer: &Value, rows: &[&NewRequest], what: &str| {
            for (window, first) in windows {
                let wanted = Sum::over(rows.iter().filter(|r| self.day(r) >= first).copied()).shown();
                assert_eq!(sums(&answer[window]), wanted, "{window} of {what}, user {user}");
            }
        };
        compare(&get("/me/usage/summary".into()).await, &rows, "everything");
        let held: Vec<&String> =
            self.bindings.iter().filter(|b| b.user == user && b.end.is_none()).map(|b| &b.instance).collect();
        for instance in &held {
            let own: Vec<_> = rows.iter().filter(|r| r.token_name == **instance).copied().collect();
            compare(&get(format!("/me/usage/summary?instance_id={instance}")).await, &own, instance);
        }
        for days in [1, 7, 30, 366] {
            let first = today.saturating_sub(jiff::Span::new().days(days - 1));
            let answer = get(format!("/me/usage/daily?days={days}")).await;
            let mut listed: Vec<Value> = answer["daily"].as_array().unwrap().clone();
            listed.iter_mut().for_each(|d| {
                let date = d["date"].clone();
                *d = sums(d);
                d["date"] = date;
            });
            assert_eq!(listed, self.by_day(&rows, first), "{days} days of user {user}");
            let filled = get(format!("/me/usage/daily?days={days}&fill=true")).await;
            let future = listed.iter().filter(|d| d["date"].as_str().unwrap() > today.to_string().as_str()).count();
            assert_eq!(filled["daily"].as_array().unwrap().len() as i64, days + future as i64, "every day");
        }
        let month = get("/me/usage".into()).await;
        let first = today.saturating_sub(jiff::Span::new().days(29));
        let recent: Vec<_> = rows.iter().filter(|r| self.day(r) >= first).copied().collect();
        assert_eq!(sums(&month["total"]), Sum::over(recent.iter().copied()).shown());
        for group in month["by_model"].as_array().unwrap() {
            let of_model = recent.iter().filter(|r| group["model"] == r.model.as_str()).copied();
            assert_eq!(sums(group), Sum::over(of_model).shown());
        }
        assert_eq!(month["by_instance"].as_array().unwrap().len(), held.len());
        self.check_log(&get, &rows).await;
        self.check_spent(user, &get).await;
    }

    async fn check_log<F: Future<Output = Value>>(&self, get: &impl Fn(String) -> F, rows: &[&NewRequest]) {
        let mut wanted: Vec<Value> = rows
            .iter()
            .filter(|r| r.created_at >= self.kept_since)
            .map(|r| {
                json!([
                    self.zone().show(r.created_at),
                    r.token_name,
                    r.quota as f64 * 2.0 / 1e6,
                    r.duration_ms,
                    r.kind == 2
                ])
            })
            .collect();
        for (status, succeeded) in [("success", true), ("error", false)] {
            let answer = get(format!("/me/usage/logs?status={status}&size=100")).await;
            let of_status = wanted.iter().filter(|w| w[4] == succeeded).count();
            assert_eq!(answer["total"].as_u64(), Some(of_status as u64), "{status}");
            let logs = answer["logs"].as_array().unwrap();
            assert_eq!(logs.len(), of_status.min(100));
            assert!(logs.iter().all(|log| log["status"] == status));
        }
        let mut listed = vec![];
        for page in 1.. {
            let answer = get(format!("/me/usage/logs?page={page}&size=7")).await;
            assert_eq!((answer["total"].as_u64(), answer["page"].as_i64()), (Some(wanted.len() as u64), Some(page)));
            let logs = answer["logs"].as_array().unwrap().clone();
            let times: Vec<&str> = logs.iter().map(|l| l["time"].as_str().unwrap()).collect();
            assert!(times.iter().map(|t| t.parse::<Timestamp>().unwrap()).is_sorted_by(|a, b| a >= b), "newest first");
            if logs.is_empty() {
                break;
            }
            listed.extend(logs.iter().map(|l| {
                json!([l["time"], l["instance_id"], l["cost_usd"], l["latency_ms"], l["status"] == "success"])
            }));
        }
        let text = |v: &Value| v.to_string();
        wanted.sort_by_key(text);
        listed.sort_by_key(text);
        assert_eq!(listed, wanted);
    }

    /// Today's tokens, on whatever instance was theirs at the time.
    async fn check_spent<F: Future<Output = Value>>(&self, user: usize, get: &impl Fn(String) -> F) {
        let midnight = self.zone().midnight(self.now());
        let theirs = |row: &&NewRequest| {
            let at = row.created_at;
            let had = |b: &Bound| b.start <= at && b.end.is_none_or(|end| at < end);
            at >= midnight && self.bindings.iter().any(|b| b.user == user && b.instance == row.token_name && had(b))
        };
        let wanted = Sum::over(self.rows.iter().filter(theirs)).tokens();
        assert_eq!(get("/me".into()).await["used_today"].as_i64(), Some(wanted), "today's tokens of user {user}");
    }

    async fn check_admin(&self) {
        let root = self.root().await;
        let get = |path: String| self.site.admin.get(&path).token(&root).ok();
        let today = self.zone().date(self.now());
        for days in [1, 30] {
            let first = today.saturating_sub(jiff::Span::new().days(days - 1));
            let recent: Vec<&NewRequest> = self.rows.iter().filter(|r| self.day(r) >= first).collect();
            let email = |r: &NewRequest| self.owner(r).map(|u| self.people[u].email.clone()).unwrap_or_default();
            let dept = |r: &NewRequest| self.owner(r).map(|u| self.people[u].department.to_owned()).unwrap_or_default();
            type Key<'k> = &'k dyn Fn(&NewRequest) -> String;
            let groupings: [(&str, Key<'_>); 6] = [
                ("model", &|r| r.model.clone()),
                ("provider", &|r| r.provider.clone()),
                ("instance", &|r| r.token_name.clone()),
                ("date", &|r| self.day(r).to_string()),
                ("user", &email),
                ("department", &dept),
            ];
            for (name, key) in groupings {
                let mut groups: BTreeMap<String, Vec<&NewRequest>> = BTreeMap::new();
                recent.iter().for_each(|r| groups.entry(key(r)).or_default().push(r));
                let mut wanted: Vec<Value> = groups
                    .into_iter()
                    .map(|(key, rows)| (key, Sum::over(rows)))
                    .filter(|(_, sum)| sum.counts())
                    .map(|(key, sum)| json!([key, sum.requests, sum.tokens(), sum.usd()]))
                    .collect();
                let answer = get(format!("/llm-stats?group_by={name}&days={days}")).await;
                let stats = answer["stats"].as_array().unwrap();
                let mut listed: Vec<Value> =
                    stats.iter().map(|s| json!([s["key"], s["calls"], s["tokens"], s["cost_usd"]])).collect();
                wanted.sort_by_key(Value::to_string);
                listed.sort_by_key(Value::to_string);
                assert_eq!(listed, wanted, "by {name}, {days} days");
                assert!(stats.iter().all(|s| s.get(name).is_some_and(Value::is_string)), "the field {name}");
            }
            let answer = get(format!("/usage-daily?days={days}&page_size=200")).await;
            let listed = answer["list"].as_array().unwrap();
            for day in listed {
                let of = recent.iter().filter(|r| r.token_name == day["instance_id"].as_str().unwrap());
                let of = of.filter(|r| self.day(r).to_string() == day["date"].as_str().unwrap()).copied();
                assert_eq!(sums(day), Sum::over(of).shown());
            }
            let all: i64 = listed.iter().map(|d| d["requests"].as_i64().unwrap()).sum();
            if answer["total"].as_i64().unwrap() <= 200 {
                assert_eq!(all, Sum::over(recent.iter().copied()).requests);
            }
        }
        for (i, person) in self.people.iter().enumerate() {
            let answer = get(format!("/usage/user/{}", person.email)).await;
            let since = |first: Date| Sum::over(self.of(i).into_iter().filter(|r| self.day(r) >= first)).tokens();
            assert_eq!(answer, json!({"today": since(today), "month": since(today.first_of_month())}));
        }
        let sales = get("/usage/dept/Sales".into()).await;
        let rows: Vec<_> = [1, 2].into_iter().flat_map(|u| self.of(u)).filter(|r| self.day(r) >= today).collect();
        assert_eq!((sums(&sales["today"]), sales["users"].as_i64()), (Sum::over(rows).shown(), Some(2)));
        self.check_request_logs(&root).await;
    }

    async fn check_request_logs(&self, root: &str) {
        let get = |path: String| self.site.admin.get(&path).token(root).ok();
        let kept: Vec<&NewRequest> = self.rows.iter().filter(|r| r.created_at >= self.kept_since).collect();
        let today = self.zone().date(self.now());
        let from = today.saturating_sub(jiff::Span::new().days(9));
        let email = |r: &NewRequest| self.owner(r).map(|u| self.people[u].email.clone()).unwrap_or_default();
        type Keep<'k> = Box<dyn Fn(&NewRequest) -> bool + 'k>;
        let cases: Vec<(String, Keep<'_>)> = vec![
            (String::new(), Box::new(|_| true)),
            ("instance=i1".into(), Box::new(|r| r.token_name == "i1")),
            ("instance=Assistant%20i0".into(), Box::new(|r| r.token_name == "i0")),
            ("model=gpt-4o&status=success".into(), Box::new(|r| r.model == "gpt-4o" && r.kind == 2)),
            ("status=error".into(), Box::new(|r| r.kind != 2)),
            (format!("start={from}&end={today}"), Box::new(|r| (from..=today).contains(&self.day(r)))),
            ("q=USER1%40".into(), Box::new(|r| email(r) == "user1@example.com")),
            ("q=said+NO".into(), Box::new(|r| r.kind == 5)),
            ("q=strange".into(), Box::new(|r| r.token_name == "stranger")),
            ("q=admin+tok".into(), Box::new(|r| r.token_name == "admin-token")),
        ];
        for (query, keep) in cases {
            let wanted: Vec<&&NewRequest> = kept.iter().filter(|r| keep(r)).collect();
            let answer = get(format!("/llm-request-logs?limit=200&{query}")).await;
            assert_eq!(answer["total"].as_u64(), Some(wanted.len() as u64), "{query}");
            let mut listed: Vec<Value> = vec![];
            for item in answer["list"].as_array().unwrap() {
                listed.push(json!([
                    item["created_at"],
                    item["instance_name"],
                    item["user_email"],
                    item["tokens_in"],
                    item["cost"]
                ]));
            }
            let name = |r: &NewRequest| match r.token_name.as_str() {
                "admin-token" => "admin token".to_owned(),
                "stranger" => "stranger".to_owned(),
                id => format!("Assistant {id}"),
            };
            let show = |r: &&&NewRequest| {
                let usd = (r.quota * 2) as f64 / 1e6;
                json!([self.zone().show(r.created_at), name(r), email(r), r.prompt_tokens, usd])
            };
            if wanted.len() <= 200 {
                let mut wanted: Vec<Value> = wanted.iter().map(show).collect();
                wanted.sort_by_key(Value::to_string);
                listed.sort_by_key(Value::to_string);
                assert_eq!(listed, wanted, "{query}");
            }
        }
    }
}

async fn many_things_happen(database: Database, zone: &'static str, seed: u64) {
    let site = Site::with(database, Options { zone: Some(zone), ..Options::default() }).await;
    let mut world = World::new(&site, seed).await;
    for round in 0..8 {
        for _ in 0..6 {
            world.act().await;
        }
        eprintln!("zone {zone}, seed {seed}, round {round}: {} rows", world.rows.len());
        for user in 0..3 {
            world.check_person(user).await;
        }
        world.check_admin().await;
    }
    // Another zone makes the same days out of the same rows that it would have made from the beginning.
    let before: Vec<_> = days_of(&site).await;
    store::usage::make_days(&site.app.db, world.zone()).await.unwrap();
    assert!(days_of(&site).await == before, "made anew, the days are the same");
    store::usage::make_days(&site.app.db, &Zone::named("Pacific/Honolulu").unwrap()).await.unwrap();
    assert!(days_of(&site).await != before, "days of another zone");
    site.check().await;
}

async fn days_of(site: &Site) -> Vec<String> {
    let days = store::usage::daily(&site.app.db, Date::MIN, None).await.unwrap();
    days.iter().map(|d| format!("{d:?}")).collect()
}

/// Zones with 30 and 45 minutes, and with odd days within the last six weeks.
const ZONES: &[&str] =
    &["Europe/Berlin", "Asia/Kathmandu", "America/St_Johns", "Australia/Lord_Howe", "Pacific/Chatham", "UTC"];

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_is_a_plain_sum_sqlite() {
    for (i, zone) in ZONES.iter().enumerate() {
        many_things_happen(Database::sqlite(), zone, i as u64 + 1).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_is_a_plain_sum_postgres() {
    for (i, zone) in ZONES.iter().take(3).enumerate() {
        let Some(database) = Database::postgres("usage::every_answer").await else { return };
        many_things_happen(database, zone, i as u64 + 100).await;
    }
}

on_both! {
    async fn without_requests_everything_is_zero_and_others_are_not_found(site: Site) {
        site.instances("a", 2).await;
        let (user, token) = site.quick_employee("ada@example.com").await;
        let summary = site.employee.get("/me/usage/summary").token(&token).ok().await;
        assert_eq!(sums(&summary["all_time"]), Sum::default().shown());
        assert_eq!(summary["stale"], false);
        assert!(summary["as_of"].is_string());
        site.employee.get("/me/usage/summary?instance_id=a0").token(&token).refused("4040").await;
        site.admin.patch("/instances/a0/assign", json!({"user_id": user})).token(&site.root).ok().await;
        site.employee.get("/me/usage/summary?instance_id=a0").token(&token).ok().await;
        site.employee.get("/me/usage/logs?instance_id=a1").token(&token).refused("4040").await;
        for bad in ["days=0", "days=367", "days=x", "fill=perhaps"] {
            site.employee.get(&format!("/me/usage/daily?{bad}")).token(&token).refused("4000").await;
        }
        for bad in ["/llm-stats?days=0", "/llm-stats?group_by=colour", "/llm-logs?start=yesterday", "/llm-request-logs?status=odd"] {
            site.admin.get(bad).token(&site.root).refused("4000").await;
        }
        site.admin.get("/usage/user/nobody@example.com").token(&site.root).refused("4040").await;
        assert_eq!(site.admin.get("/usage/user/ADA@example.com").token(&site.root).ok().await, json!({"today": 0, "month": 0}));
        let none = request_log::list(&site.app.db, &request_log::Asked::default(), Page::ALL).await.unwrap();
        assert!(none.is_empty());
    }
}
