//! Every answer about usage, compared with a plain sum over what the test remembers.

use std::collections::BTreeMap;

use jiff::civil::Date;
use jiff::{Timestamp, ToSpan};
use serde_json::{Value, json};
use store::request_log::NewRequest;
use store::request_log::RequestType;

use super::{Bound, World, rest_of};

/// Billionths of a dollar per unit of a quota.
const NANO: i64 = 2_000;

/// What a row costs exactly, in billionths of a dollar.
fn nano(row: &NewRequest) -> i64 {
    row.quota * NANO + rest_of(row)
}

#[derive(Clone, Copy, Default)]
pub struct Sum {
    requests: i64,
    prompt: i64,
    completion: i64,
    /// The exact cost in billionths of a dollar.
    nano: i64,
    /// Known input, read from a cache, written into it, thinking.
    parts: [i64; 4],
}

impl Sum {
    pub fn over<'a>(rows: impl IntoIterator<Item = &'a NewRequest>) -> Sum {
        let mut sum = Sum::default();
        for row in rows {
            match row.kind {
                RequestType::SUCCESS => {
                    sum.requests += 1;
                    sum.prompt += row.prompt_tokens;
                    sum.completion += row.completion_tokens;
                    sum.nano += nano(row);
                    let detail = &row.detail;
                    let parts = [
                        detail.known_input_tokens,
                        detail.cache_read_tokens,
                        detail.cache_write_tokens,
                        detail.reasoning_tokens,
                    ];
                    sum.parts.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part.unwrap_or(0));
                }
                RequestType::REFUND => sum.nano -= nano(row),
                _ => {}
            }
        }
        sum
    }

    fn counts(self) -> bool {
        self.requests > 0 || self.quota() != 0
    }

    /// Units, rounded once.
    fn quota(self) -> i64 {
        (self.nano + NANO / 2).div_euclid(NANO)
    }

    fn tokens(self) -> i64 {
        self.prompt + self.completion
    }

    fn usd(self) -> f64 {
        (self.quota() * 2) as f64 / 1e6
    }

    pub fn shown(self) -> Value {
        let [known, read, written, thought] = self.parts;
        json!({"requests": self.requests, "prompt_tokens": self.prompt, "completion_tokens": self.completion,
            "total_tokens": self.tokens(), "cost_usd": self.usd(), "known_input_tokens": known,
            "cache_read_tokens": read, "cache_write_tokens": written, "reasoning_tokens": thought})
    }
}

/// Of an answer the fields that are sums.
pub fn sums(of: &Value) -> Value {
    let fields = [
        "requests",
        "prompt_tokens",
        "completion_tokens",
        "total_tokens",
        "cost_usd",
        "known_input_tokens",
        "cache_read_tokens",
        "cache_write_tokens",
        "reasoning_tokens",
    ];
    Value::Object(fields.iter().map(|f| ((*f).to_owned(), of[*f].clone())).collect())
}

impl World<'_> {
    /// Whose a row is: whoever has the instance now, unless it was somebody else's at the time.
    fn owner(&self, row: &NewRequest) -> Option<usize> {
        let now = self.bindings.iter().find(|b| b.instance == row.token_name && b.end.is_none())?;
        let others = self.bindings.iter().filter(|b| b.instance == row.token_name && b.user != now.user);
        let since = others.filter_map(|b| b.end).max();
        (since.is_none_or(|since| row.created_at >= since)).then_some(now.user)
    }

    /// Whose a row is to everybody else: whoever held the instance when it was made; before its first binding the first
    /// holder, between two bindings nobody.
    pub fn holder(&self, row: &NewRequest) -> Option<&Bound> {
        let of: Vec<&Bound> = self.bindings.iter().filter(|bound| bound.instance == row.token_name).collect();
        let latest = of.iter().rfind(|bound| bound.start <= row.created_at).or(of.first())?;
        latest.end.is_none_or(|end| row.created_at < end).then_some(latest)
    }

    /// Of the holder's e-mail and department at the time; `None` for nobody.
    fn held(&self, row: &NewRequest) -> Option<(&str, &str)> {
        let person = &self.people[self.holder(row)?.user];
        Some((person.email.as_str(), person.department(row.created_at)))
    }

    fn held_by(&self, user: usize) -> impl Iterator<Item = &NewRequest> {
        self.rows.iter().filter(move |row| self.holder(row).is_some_and(|bound| bound.user == user))
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

    pub async fn check_person(&self, user: usize) {
        let (token, rows) = (self.token(user).await, self.of(user));
        let get = |path: String| self.site.employee.get(&path).token(&token).ok();
        let today = self.zone().date(self.now());
        let monday = self.zone().date(self.zone().week(self.now()));
        let windows = [("today", today), ("week", monday), ("month", today.first_of_month()), ("all_time", Date::MIN)];
        let compare = |answer: &Value, rows: &[&NewRequest], what: &str| {
            for (window, first) in windows {
                let expected = Sum::over(rows.iter().filter(|r| self.day(r) >= first).copied()).shown();
                assert_eq!(sums(&answer[window]), expected, "{window} of {what}, user {user}");
            }
        };
        let summary = get("/me/usage/summary".into()).await;
        compare(&summary, &rows, "everything");
        let former: Vec<&NewRequest> = self.held_by(user).filter(|row| self.owner(row) != Some(user)).collect();
        compare(&summary["former"], &former, "what was given back");
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
        let former = former.into_iter().filter(|r| self.day(r) >= first);
        assert_eq!(sums(&month["former"]), Sum::over(former).shown());
        for group in month["by_model"].as_array().unwrap() {
            let of_model = recent.iter().filter(|r| group["model"] == r.model.as_str()).copied();
            assert_eq!(sums(group), Sum::over(of_model).shown());
        }
        assert_eq!(month["by_instance"].as_array().unwrap().len(), held.len());
        self.check_log(&get, &rows).await;
        self.check_spent(user, &get).await;
    }

    async fn check_log<F: Future<Output = Value>>(&self, get: &impl Fn(String) -> F, rows: &[&NewRequest]) {
        let mut expected: Vec<Value> = rows
            .iter()
            .filter(|r| r.created_at >= self.kept_since)
            .map(|r| {
                json!([
                    self.zone().show(r.created_at),
                    r.token_name,
                    r.quota as f64 * 2.0 / 1e6,
                    r.duration_ms,
                    r.kind == RequestType::SUCCESS
                ])
            })
            .collect();
        for (status, succeeded) in [("success", true), ("error", false)] {
            let answer = get(format!("/me/usage/logs?status={status}&size=100")).await;
            let of_status = expected.iter().filter(|w| w[4] == succeeded).count();
            assert_eq!(answer["total"].as_u64(), Some(of_status as u64), "{status}");
            let logs = answer["logs"].as_array().unwrap();
            assert_eq!(logs.len(), of_status.min(100));
            assert!(logs.iter().all(|log| log["status"] == status));
        }
        let mut listed = vec![];
        for page in 1.. {
            let answer = get(format!("/me/usage/logs?page={page}&size=7")).await;
            assert_eq!((answer["total"].as_u64(), answer["page"].as_i64()), (Some(expected.len() as u64), Some(page)));
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
        expected.sort_by_key(text);
        listed.sort_by_key(text);
        assert_eq!(listed, expected);
    }

    /// Today's tokens, on whatever instance was theirs at the time.
    async fn check_spent<F: Future<Output = Value>>(&self, user: usize, get: &impl Fn(String) -> F) {
        let midnight = self.zone().midnight(self.now());
        let theirs = |row: &&NewRequest| {
            let at = row.created_at;
            let had = |b: &Bound| b.start <= at && b.end.is_none_or(|end| at < end);
            at >= midnight && self.bindings.iter().any(|b| b.user == user && b.instance == row.token_name && had(b))
        };
        let expected = Sum::over(self.rows.iter().filter(theirs)).tokens();
        assert_eq!(get("/me".into()).await["used_today"].as_i64(), Some(expected), "today's tokens of user {user}");
    }

    pub async fn check_admin(&self) {
        let root = self.root().await;
        let get = |path: String| self.site.admin.get(&path).token(&root).ok();
        let today = self.zone().date(self.now());
        for days in [1, 30] {
            let first = today.saturating_sub(jiff::Span::new().days(days - 1));
            let recent: Vec<&NewRequest> = self.rows.iter().filter(|r| self.day(r) >= first).collect();
            self.check_stats(&root, &recent, &format!("days={days}"), false).await;
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
        let (first, last) = (today.saturating_sub(20.days()), today.saturating_sub(3.days()));
        let between: Vec<&NewRequest> = self.rows.iter().filter(|r| (first..=last).contains(&self.day(r))).collect();
        self.check_stats(&root, &between, &format!("from={first}&to={last}"), true).await;
        store::usage::copy_totals(&self.site.app.db).await.unwrap();
        let listed = get("/users".into()).await;
        for (i, person) in self.people.iter().enumerate() {
            let answer = get(format!("/usage/user/{}", person.email)).await;
            let since = |first: Date| Sum::over(self.held_by(i).filter(|r| self.day(r) >= first)).tokens();
            assert_eq!(answer, json!({"today": since(today), "month": since(today.first_of_month())}));
            let user = listed["list"].as_array().unwrap().iter().find(|user| user["email"] == person.email.as_str());
            let all = Sum::over(self.held_by(i));
            let total = user.map(|user| json!([user["total_tokens"], user["total_requests"]])).unwrap();
            assert_eq!(total, json!([all.tokens(), all.requests]), "GET /users, {}", person.email);
        }
        let sales = get("/usage/dept/Sales".into()).await;
        let rows =
            self.rows.iter().filter(|r| self.day(r) >= today && self.held(r).is_some_and(|held| held.1 == "Sales"));
        let active = self.people.iter().filter(|p| !p.has_left && p.department(Timestamp::MAX) == "Sales").count();
        assert_eq!((sums(&sales["today"]), sales["users"].as_u64()), (Sum::over(rows).shown(), Some(active as u64)));
        self.check_request_logs(&root).await;
    }

    /// Every grouping of these rows, and every two of them.
    async fn check_stats(&self, root: &str, rows: &[&NewRequest], days: &str, in_pairs: bool) {
        let get = |path: String| self.site.admin.get(&path).token(root).ok();
        let email = |r: &NewRequest| self.held(r).map(|held| held.0.to_owned());
        let dept = |r: &NewRequest| self.held(r).map(|held| held.1.to_owned());
        type Key<'k> = &'k dyn Fn(&NewRequest) -> Option<String>;
        let groupings: [(&str, Key<'_>); 7] = [
            ("model", &|r| Some(r.model.clone())),
            ("provider", &|r| Some(r.provider.clone())),
            ("instance", &|r| Some(r.token_name.clone())),
            ("key", &|r| Some(r.token_name.clone())),
            ("date", &|r| Some(self.day(r).to_string())),
            ("user", &email),
            ("department", &dept),
        ];
        type Group = (Option<String>, Option<Option<String>>);
        for (name, key) in groupings {
            for (also, second) in groupings.iter().map(|(name, key)| (*name, Some(*key))).chain([("", None)]) {
                if also == name || (second.is_some() && !in_pairs) {
                    continue;
                }
                let mut groups: BTreeMap<Group, Vec<&NewRequest>> = BTreeMap::new();
                rows.iter().for_each(|r| groups.entry((key(r), second.map(|second| second(r)))).or_default().push(r));
                let mut expected: Vec<Value> = groups
                    .into_iter()
                    .map(|(group, rows)| (group, Sum::over(rows)))
                    .filter(|(_, sum)| sum.counts())
                    .map(|((key, second), sum)| {
                        let unassigned = key.is_none() || second.as_ref().is_some_and(Option::is_none);
                        let second = second.map(Option::unwrap_or_default);
                        json!([key.unwrap_or_default(), second, unassigned, sum.requests, sum.tokens(), sum.usd()])
                    })
                    .collect();
                let by = if also.is_empty() { name.to_owned() } else { format!("{name},{also}") };
                let mut listed: Vec<Value> = vec![];
                for page in 1.. {
                    let answer = get(format!("/llm-stats?group_by={by}&{days}&page={page}&page_size=100")).await;
                    assert_eq!(answer["total"].as_u64(), Some(expected.len() as u64), "by {by}, {days}");
                    let stats = answer["stats"].as_array().unwrap();
                    let costs: Vec<f64> = stats.iter().map(|s| s["cost_usd"].as_f64().unwrap()).collect();
                    assert!(by == "date" || costs.is_sorted_by(|a, b| a >= b), "the most expensive first: {costs:?}");
                    for s in stats {
                        let (named, former) = (s.get(name).is_some_and(Value::is_string), &s["former_employee"]);
                        assert!(named || name == "key", "the field {name} of {s}");
                        let person = self.people.iter().find(|person| s["user"] == person.email.as_str());
                        assert_eq!(former.as_bool(), person.map(|person| person.has_left), "{s}");
                        listed.push(json!([
                            s["key"],
                            s["second_key"],
                            s["unassigned"],
                            s["calls"],
                            s["tokens"],
                            s["cost_usd"]
                        ]));
                    }
                    if stats.len() < 100 {
                        break;
                    }
                }
                let total = |rows: &[Value]| rows.iter().map(|row| row[3].as_i64().unwrap()).sum::<i64>();
                let all = Sum::over(rows.iter().copied()).requests;
                expected.sort_by_key(Value::to_string);
                listed.sort_by_key(Value::to_string);
                assert_eq!(listed, expected, "by {by}, {days}");
                assert_eq!(total(&listed), all, "nothing is counted twice or not at all, by {by}");
            }
        }
    }

    async fn check_request_logs(&self, root: &str) {
        let get = |path: String| self.site.admin.get(&path).token(root).ok();
        let kept: Vec<&NewRequest> = self.rows.iter().filter(|r| r.created_at >= self.kept_since).collect();
        let today = self.zone().date(self.now());
        let from = today.saturating_sub(jiff::Span::new().days(9));
        let email = |r: &NewRequest| self.held(r).map(|held| held.0.to_owned()).unwrap_or_default();
        type Keep<'k> = Box<dyn Fn(&NewRequest) -> bool + 'k>;
        let cases: Vec<(String, Keep<'_>)> = vec![
            (String::new(), Box::new(|_| true)),
            ("instance=i1".into(), Box::new(|r| r.token_name == "i1")),
            ("instance=Assistant%20i0".into(), Box::new(|r| r.token_name == "i0")),
            ("model=gpt-4o&status=success".into(), Box::new(|r| r.model == "gpt-4o" && r.kind == RequestType::SUCCESS)),
            ("status=error".into(), Box::new(|r| r.kind != RequestType::SUCCESS)),
            (format!("start={from}&end={today}"), Box::new(|r| (from..=today).contains(&self.day(r)))),
            ("q=USER1%40".into(), Box::new(|r| email(r) == "user1@example.com")),
            ("q=said+NO".into(), Box::new(|r| r.kind == RequestType::ERROR)),
            ("q=strange".into(), Box::new(|r| r.token_name == "stranger")),
            ("q=admin+tok".into(), Box::new(|r| r.token_name == "admin-token")),
        ];
        for (query, keep) in cases {
            let expected: Vec<&&NewRequest> = kept.iter().filter(|r| keep(r)).collect();
            let answer = get(format!("/llm-request-logs?limit=200&{query}")).await;
            assert_eq!(answer["total"].as_u64(), Some(expected.len() as u64), "{query}");
            let mut listed: Vec<Value> = vec![];
            for item in answer["list"].as_array().unwrap() {
                listed.push(json!([
                    item["created_at"],
                    item["instance_name"],
                    item["user_email"],
                    item["former_employee"],
                    item["tokens_in"],
                    item["cost"],
                    item["cost_exact"]
                ]));
            }
            let name = |r: &NewRequest| match r.token_name.as_str() {
                "admin-token" => "admin token".to_owned(),
                "stranger" => "stranger".to_owned(),
                id => format!("Assistant {id}"),
            };
            let show = |r: &&&NewRequest| {
                let usd = (r.quota * 2) as f64 / 1e6;
                let exact = format!("{}.{:09}", nano(r) / 1_000_000_000, nano(r) % 1_000_000_000);
                let former = self.holder(r).is_some_and(|bound| self.people[bound.user].has_left);
                json!([self.zone().show(r.created_at), name(r), email(r), former, r.prompt_tokens, usd, exact])
            };
            if expected.len() <= 200 {
                let mut expected: Vec<Value> = expected.iter().map(show).collect();
                expected.sort_by_key(Value::to_string);
                listed.sort_by_key(Value::to_string);
                assert_eq!(listed, expected, "{query}");
            }
        }
    }
}
