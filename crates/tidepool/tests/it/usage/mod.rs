//! Usage is exact: whatever is asked, the answer is what a plain sum over all rows of the log says.

mod checks;
mod holders;
mod older;

use base::id::UserId;
use base::{Page, Zone};
use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use store::request_log::{self, ExactRequest, NewRequest};

use crate::kit::{Database, Options, Site};
use crate::on_both;
use checks::{Sum, sums};

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
    /// Every department, and since when; the first counts before too.
    departments: Vec<(Timestamp, &'static str)>,
    has_left: bool,
}

impl Person {
    /// The department at a time.
    fn department(&self, at: Timestamp) -> &'static str {
        self.departments.iter().rfind(|(since, _)| *since <= at).unwrap_or(&self.departments[0]).1
    }
}

/// A binding as the test remembers it.
struct Bound {
    instance: String,
    user: usize,
    start: Timestamp,
    end: Option<Timestamp>,
}

/// The exact cost of a made-up row less its units, in billionths of a dollar. It follows from the row's id, so that all that
/// is remembered of a row is the row.
fn rest_of(row: &NewRequest) -> i64 {
    let number: i64 = row.request_id[1..].parse().unwrap();
    // Some gateways round up, some to the nearest unit. Nothing costs less than nothing.
    (number % 3_000 - 1_999).max(-2_000 * row.quota)
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

impl<'a> World<'a> {
    async fn new(site: &'a Site, seed: u64) -> World<'a> {
        let mut people = vec![];
        for (i, department) in ["Research", "Sales", "Sales"].into_iter().enumerate() {
            let email = format!("user{i}@example.com");
            let (id, _) = site.quick_employee(&email).await;
            site.admin.patch(&format!("/users/{id}"), json!({"department": department})).token(&site.root).ok().await;
            // Within one moment the last department counts.
            let departments = vec![(site.app.clock.now(), department)];
            people.push(Person { id, email, departments, has_left: false });
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
        people::session::open_employee(&self.site.app, user, self.site.app.clock.now())
            .unwrap()
            .token
            .expose()
            .to_owned()
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
        // Often so little that what is beyond whole units decides.
        let quota = match self.random.below(40_000) as i64 {
            n if n % 4 == 0 => n % 3,
            n => n,
        };
        let prompt_tokens = self.random.below(5_000) as i64;
        let detail = self.made_up_detail(prompt_tokens);
        NewRequest {
            request_id: format!("r{}", self.random.below(u64::MAX)),
            token_name: token.to_owned(),
            model: ["gpt-4o", "claude-opus-4-6"][self.random.below(2) as usize].to_owned(),
            provider: ["ch-1", "ch-2"][self.random.below(2) as usize].to_owned(),
            kind: store::request_log::RequestType::new(kind),
            is_stream: self.random.below(2) == 0,
            prompt_tokens,
            completion_tokens: self.random.below(2_000) as i64,
            quota,
            duration_ms: self.random.below(9_000) as i64,
            error_message: if kind == 5 { "upstream said no".into() } else { String::new() },
            estimated: false,
            detail,
            created_at: Timestamp::from_millisecond(at).unwrap(),
        }
    }

    /// Some gateways and providers tell all of it, some a part, some nothing.
    fn made_up_detail(&mut self, prompt_tokens: i64) -> request_log::Detail {
        let mut some = |of: i64| (self.random.below(3) > 0).then(|| self.random.below(of as u64 + 1) as i64);
        let (read, write) = (some(prompt_tokens), some(prompt_tokens / 4));
        request_log::Detail {
            known_input_tokens: read.map(|_| prompt_tokens),
            cache_read_tokens: read,
            cache_write_tokens: write,
            reasoning_tokens: some(500),
            ..request_log::Detail::default()
        }
    }

    /// Rows become visible, in some order and in some batches.
    async fn write(&mut self, mut rows: Vec<NewRequest>) {
        self.random.shuffle(&mut rows);
        let size = 1 + self.random.below(7) as usize;
        let exact = |row: &NewRequest| ExactRequest { request: row.clone(), quota_rest: rest_of(row) };
        for batch in rows.chunks(size) {
            let batch: Vec<ExactRequest> = batch.iter().map(exact).collect();
            let mut tx = self.site.app.db.begin().await.unwrap();
            request_log::add_exact(&mut tx, self.zone(), &batch).await.unwrap();
            tx.commit().await.unwrap();
        }
        self.rows.extend(rows.into_iter().filter(|r| !r.token_name.is_empty()));
    }

    async fn act(&mut self) {
        match self.random.below(11) {
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
            7 | 8 => self.move_person().await,
            9 => self.leave_or_come_back().await,
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
        if self.people[user].has_left {
            return;
        }
        self.site.admin.patch(&path, json!({"user_id": self.people[user].id})).token(&root).ok().await;
        self.bindings.push(Bound { instance, user, start: now, end: None });
    }

    /// Somebody comes to another department.
    async fn move_person(&mut self) {
        let (root, now) = (self.root().await, self.now());
        let department = ["Research", "Sales", "", "Support"][self.random.below(4) as usize];
        let place = self.random.below(3) as usize;
        let person = &mut self.people[place];
        let path = format!("/users/{}", person.id);
        self.site.admin.patch(&path, json!({"department": department})).token(&root).ok().await;
        match person.departments.last_mut() {
            Some(last) if last.0 == now => last.1 = department,
            Some(last) if last.1 == department => {}
            _ => person.departments.push((now, department)),
        }
    }

    /// Somebody leaves, with or without what they hold, or is back.
    async fn leave_or_come_back(&mut self) {
        let root = self.root().await;
        let place = self.random.below(3) as usize;
        let person = &mut self.people[place];
        person.has_left = !person.has_left;
        let status = if person.has_left { "revoked" } else { "active" };
        self.site.admin.patch(&format!("/users/{}", person.id), json!({"status": status})).token(&root).ok().await;
        // What was given out within this second counts no more.
        self.site.app.clock.advance(SignedDuration::from_secs(2));
    }

    /// The log is kept for 20 days here; the sums stay.
    async fn forget_old_rows(&mut self) {
        let before = self.zone().midnight(self.now() - SignedDuration::from_hours(20 * 24));
        self.kept_since = self.kept_since.max(before);
        store::usage::keep_rows_since(&self.site.app.db, self.kept_since).await.unwrap();
        while request_log::delete_before(&self.site.app.db, before, 7).await.unwrap() > 0 {}
    }
}

/// With this and a seed all rows are the same every time, down to their days.
const NOW: &str = "2026-11-03T11:23:45.678Z";

async fn many_things_happen(database: Database, zone: &'static str, seed: u64) {
    let now = Some(NOW.parse().unwrap());
    let site = Site::with(database, Options { zone: Some(zone), now, ..Options::default() }).await;
    let mut world = World::new(&site, seed).await;
    for round in 0..8 {
        for _ in 0..6 {
            world.act().await;
        }
        eprintln!("zone {zone}, seed {seed}, round {round}: {} rows", world.rows.len());
        for user in 0..3 {
            if !world.people[user].has_left {
                world.check_person(user).await;
            }
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

/// One case for each zone: some are 30 or 45 minutes off, and all but two have a day of odd length in the six weeks before `NOW`.
macro_rules! every_answer_is_a_plain_sum {
    ($($name:ident: $database:expr, $zone:literal, $seed:literal;)*) => {
        mod every_answer_is_a_plain_sum {
            use super::*;
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $name() {
                    if let Some(database) = $database {
                        many_things_happen(database, $zone, $seed).await;
                    }
                }
            )*
        }
    };
}

every_answer_is_a_plain_sum! {
    sqlite_berlin: Some(Database::sqlite()), "Europe/Berlin", 1;
    sqlite_kathmandu: Some(Database::sqlite()), "Asia/Kathmandu", 2;
    sqlite_st_johns: Some(Database::sqlite()), "America/St_Johns", 3;
    sqlite_lord_howe: Some(Database::sqlite()), "Australia/Lord_Howe", 4;
    sqlite_chatham: Some(Database::sqlite()), "Pacific/Chatham", 5;
    sqlite_utc: Some(Database::sqlite()), "UTC", 6;
    postgres_berlin: Database::postgres(module_path!()).await, "Europe/Berlin", 100;
    postgres_kathmandu: Database::postgres(module_path!()).await, "Asia/Kathmandu", 101;
    postgres_st_johns: Database::postgres(module_path!()).await, "America/St_Johns", 102;
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
        for bad in ["/llm-stats?days=0", "/llm-stats?group_by=colour", "/llm-stats?group_by=user,user", "/llm-stats?group_by=user,model,date",
            "/llm-stats?from=2026-11-02&to=2026-11-01", "/llm-stats?from=2025-01-01&to=2026-11-01", "/llm-stats?from=yesterday",
            "/llm-stats/export?group_by=", "/llm-logs?start=yesterday", "/llm-request-logs?status=odd"] {
            site.admin.get(bad).token(&site.root).refused("4000").await;
        }
        site.admin.get("/usage/user/nobody@example.com").token(&site.root).refused("4040").await;
        assert_eq!(site.admin.get("/usage/user/ADA@example.com").token(&site.root).ok().await, json!({"today": 0, "month": 0}));
        let none = request_log::list(&site.app.db, &request_log::Asked::default(), Page::ALL).await.unwrap();
        assert!(none.is_empty());
    }
}

/// Of one-api and new-api, whose times are whole seconds, a request that was made behind a binding has a time before it.
mod in_the_second_of_a_binding {
    use super::*;

    /// A row of a log, so long before now.
    fn row(site: &Site, id: &str, tokens: i64, at: Timestamp) -> NewRequest {
        NewRequest {
            request_id: id.into(),
            token_name: "a0".into(),
            model: "gpt-4o".into(),
            provider: "ch-1".into(),
            kind: store::request_log::RequestType::SUCCESS,
            is_stream: false,
            prompt_tokens: tokens,
            completion_tokens: 0,
            quota: tokens,
            duration_ms: 1,
            error_message: String::new(),
            estimated: false,
            detail: Default::default(),
            created_at: at.min(site.app.clock.now()),
        }
    }

    async fn write(site: &Site, rows: &[NewRequest]) {
        let mut tx = site.app.db.begin().await.unwrap();
        request_log::add(&mut tx, &site.app.zone, rows).await.unwrap();
        tx.commit().await.unwrap();
    }

    async fn assign(site: &Site, user: Option<&str>) {
        site.admin.patch("/instances/a0/assign", json!({"user_id": user})).token(&site.root).ok().await;
    }

    /// What a user sees of it: today's tokens, the summary's, and how many requests are listed.
    async fn seen(site: &Site, token: &str) -> [i64; 3] {
        let me = site.employee.get("/me").token(token).ok().await;
        let summary = site.employee.get("/me/usage/summary").token(token).ok().await;
        let logs = site.employee.get("/me/usage/logs").token(token).ok().await;
        [&me["used_today"], &summary["today"]["total_tokens"], &logs["total"]].map(|n| n.as_i64().unwrap())
    }

    /// What the administrators' statistics say by user.
    async fn by_user(site: &Site, email: &str) -> i64 {
        let stats = site.admin.get("/llm-stats?days=1&group_by=user").token(&site.root).ok().await;
        let stats = stats["stats"].as_array().unwrap().clone();
        stats.iter().find(|stat| stat["user"] == email).map_or(0, |stat| stat["tokens"].as_i64().unwrap())
    }

    async fn counts_once(database: Database) {
        let now = Some(NOW.parse().unwrap());
        let site = Site::with(database, Options { now, ..Options::default() }).await;
        site.instances("a", 1).await;
        let (ada, ada_token) = site.quick_employee("ada@example.com").await;
        let (bob, bob_token) = site.quick_employee("bob@example.com").await;
        let second: Timestamp = "2026-11-03T11:23:45Z".parse().unwrap();
        let ms = |ms| site.app.clock.advance(SignedDuration::from_millis(ms));
        // Bound at 45.678; asked at 45.7, which the log calls 45.
        assign(&site, Some(&ada)).await;
        write(&site, &[row(&site, "whole", 1_000, second)]).await;
        assert_eq!(seen(&site, &ada_token).await[0], 1_000, "it is hers, and counts");
        // One with milliseconds is known to be from before the binding.
        write(&site, &[row(&site, "before", 7, second + SignedDuration::from_millis(677))]).await;
        write(&site, &[row(&site, "after", 20, second + SignedDuration::from_millis(678))]).await;
        assert_eq!(seen(&site, &ada_token).await[0], 1_020);
        // It goes to somebody else within the same second: the row belongs to the last who got it in that second, and only to them.
        ms(100);
        assign(&site, None).await;
        assert_eq!(seen(&site, &ada_token).await[0], 1_020, "still hers while nobody else has it");
        ms(100);
        assign(&site, Some(&bob)).await;
        assert_eq!(seen(&site, &ada_token).await[0], 20, "what is known to be hers stays hers");
        assert_eq!(seen(&site, &bob_token).await, [1_000, 1_000, 1], "whoever has it last in that second");
        assert_eq!(by_user(&site, "bob@example.com").await, 1_000);
        let found = site.admin.get("/llm-request-logs?q=bob@").token(&site.root).ok().await;
        assert_eq!(found["total"], 1, "{found}");
        assert_eq!(found["list"][0]["user_email"], "bob@example.com");
        // In another second, whoever has it ends the second of whoever had it.
        ms(10_000);
        assign(&site, None).await;
        ms(5_000);
        let last: Timestamp = "2026-11-03T11:23:55Z".parse().unwrap();
        write(&site, &[row(&site, "last", 300, last)]).await;
        assign(&site, Some(&ada)).await;
        assert_eq!(seen(&site, &bob_token).await[0], 1_300, "of the second in which he gave it back");
        assert_eq!(seen(&site, &ada_token).await, [20, 0, 0], "and not of the next holder");
        site.check().await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_request_counts_once_and_at_its_holder_sqlite() {
        counts_once(Database::sqlite()).await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_request_counts_once_and_at_its_holder_postgres() {
        if let Some(database) = Database::postgres(module_path!()).await {
            counts_once(database).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_is_in_the_names_of_very_many_instances_is_looked_for() {
    let site = Site::start(Database::sqlite()).await;
    site.instances("a", 1).await;
    let (user, _) = site.quick_employee("ada@example.com").await;
    site.admin.patch("/instances/a0/assign", json!({"user_id": user})).token(&site.root).ok().await;
    // More than a statement takes values.
    let columns = "server_id, gateway_port, gateway_url, gateway_token, model, health_status, notes, config_json, created_at, updated_at";
    let sql = format!(
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 33000) \
         INSERT INTO instance (id, id_key, name, {columns}) SELECT 'many' || x, 'many' || x, 'Many ' || x, {columns} FROM instance, n"
    );
    site.app.db.run(&sql, vec![]).await.unwrap();
    let row = |id: &str, token: &str| NewRequest {
        request_id: id.into(),
        token_name: token.into(),
        model: "gpt-4o".into(),
        provider: "ch-1".into(),
        kind: store::request_log::RequestType::SUCCESS,
        is_stream: false,
        prompt_tokens: 1,
        completion_tokens: 1,
        quota: 1,
        duration_ms: 1,
        error_message: String::new(),
        estimated: false,
        detail: Default::default(),
        created_at: site.app.clock.now(),
    };
    let mut tx = site.app.db.begin().await.unwrap();
    let rows = [row("r1", "many7"), row("r2", "a0"), row("r3", "admin-token"), row("r4", "somebodys")];
    request_log::add(&mut tx, &site.app.zone, &rows).await.unwrap();
    tx.commit().await.unwrap();
    for (text, found) in
        [("MANY", 1), ("any%207", 1), ("ada@", 1), ("assistant", 1), ("admin%20token", 1), ("n", 3), ("zzz", 0)]
    {
        let answer = site.admin.get(&format!("/llm-request-logs?q={text}")).token(&site.root).ok().await;
        assert_eq!(answer["total"], found, "{text}: {answer}");
    }
}
