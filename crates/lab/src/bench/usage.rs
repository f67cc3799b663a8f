//! Usage with 10 thousand, 1 million and 10 million rows of the log, which should be equally fast; compared with the
//! naive sum. Instances go from hand to hand and people from department to department, so that sums are cut where they do.

use std::time::{Duration, Instant};

use base::id::InstanceId;
use base::{Clock, Kind, Result};
use jiff::{SignedDuration, Timestamp};
use people::admin_user::Role;
use people::session::Employee;
use people::{claim, session};
use queue::audit::By;
use store::request_log::{self, Detail, NewRequest};
use store::{binding, user, user_department};
use tidepool::config::Values;
use tidepool::serve::Running;

use super::pages::{get, timed};
use super::site::Site;
use super::{millis, percentile, report};

const INSTANCES: usize = 100;
const DAYS: i64 = 90;
const PEOPLE: usize = 25;
/// How many people had each instance one after the other, each for 20 days and then nobody for two.
const HOLDERS: usize = 4;
const HELD_DAYS: i64 = 20;
const TURN_DAYS: i64 = 22;
const DEPARTMENTS: [&str; 3] = ["Research", "Sales", "Support"];
/// How long people stay in a department.
const MEMBER_DAYS: i64 = 25;
/// Rows per transaction while the log is filled.
const BATCH: usize = 20_000;
const SEARCHES: usize = 5;
const MODELS: [&str; 3] = ["claude-sonnet-4-6", "gpt-4o", "gemini-2.5-flash"];

/// How many rows there are at each measurement.
fn sizes(largest: Option<u64>) -> Vec<u64> {
    [10_000, 1_000_000, 10_000_000].into_iter().filter(|size| largest.is_none_or(|most| *size <= most)).collect()
}

pub async fn run(values: &Values, largest: Option<u64>) -> Result<()> {
    let mut values = values.clone();
    for name in ["employee_listen", "admin_listen"] {
        values.set(name, super::start::free_address()?);
    }
    values.set("roles", "employee,admin");
    let site = Site::open(&values).await?;
    site.instances(INSTANCES).await?;
    let people = site.employees(PEOPLE).await?;
    let employee = &people[0];
    let claimed = claim::instance(site.app(), employee, None).await?;
    past(site.app(), &people, &claimed.held.instance.id).await?;
    let account = people::user::find(site.app(), &employee.id).await?;
    let token = session::open_employee(site.app(), account, jiff::Timestamp::now())?.token;
    let new = people::admin_user::New {
        email: "bench@example.com".parse()?,
        name: "Bench".into(),
        role: Role::SuperAdmin,
        password: None,
    };
    let admin = people::admin_user::create(site.app(), &By::system(), new).await?;
    let admin_token = session::admin_token(site.app(), &admin, jiff::Timestamp::now())?;
    let kind = site.kind();
    let (employee_url, admin_url) = (site.config.employee.listen, site.config.admin.listen);
    let Site { opened, config, folder: _kept } = site;
    let running = Running::start(&config, opened).await?;
    let app = running.app.clone();
    let http = remote::http::client()?;
    let (mut rows, mut first) = (0, vec![]);
    for size in sizes(largest) {
        let began = Instant::now();
        let added = size - rows;
        while rows < size {
            let count = BATCH.min((size - rows) as usize);
            let batch: Vec<NewRequest> = (0..count).map(|i| row(rows + i as u64)).collect();
            let mut tx = app.db.begin().await?;
            request_log::add(&mut tx, &app.zone, &batch).await?;
            tx.commit().await?;
            rows += count as u64;
        }
        let speed = added as f64 / began.elapsed().as_secs_f64();
        report(&format!("rows written with their sums, {kind}"), format!("{speed:.0}/s"), format!("up to {size} rows"));
        let api = format!("http://{employee_url}/api/v1");
        let paths = [
            ("summary", format!("{api}/me/usage/summary")),
            ("daily, 30 days", format!("{api}/me/usage/daily?days=30")),
            ("first page of the log", format!("{api}/me/usage/logs?instance_id={}", claimed.held.instance.id)),
        ];
        for (place, (name, url)) in paths.iter().enumerate() {
            let times = timed(async || get(&http, url, token.expose()).await).await?;
            let p50 = percentile(&times, 0.5);
            if first.len() <= place {
                first.push(p50);
            }
            let grown = p50.as_secs_f64() / first[place].as_secs_f64();
            report(
                &format!("{name} of {size} rows, {kind}"),
                format!("p50 {}, p99 {}", millis(p50), millis(percentile(&times, 0.99))),
                format!("{grown:.2} × that of 10 k rows; goal p99 10 ms, 1.5 ×"),
            );
        }
        let url = format!("http://{admin_url}/api/v1/llm-stats?days=30");
        let times = timed(async || get(&http, &url, admin_token.expose()).await).await?;
        let naive = naively(&app).await?;
        let p50 = percentile(&times, 0.5);
        report(
            &format!("/llm-stats, 30 days of {size} rows, {kind}"),
            format!("p50 {}, p99 {}", millis(p50), millis(percentile(&times, 0.99))),
            format!("naive {}: {:.0} ×, goal 100 × at 10 M", millis(naive), naive.as_secs_f64() / p50.as_secs_f64()),
        );
        for by in ["user,model", "department,model", "key,date"] {
            let url = format!("http://{admin_url}/api/v1/llm-stats?group_by={by}&days=30");
            let times = timed(async || get(&http, &url, admin_token.expose()).await).await?;
            report(
                &format!("/llm-stats by {by}, 30 days of {size} rows, {kind}"),
                format!("p50 {}, p99 {}", millis(percentile(&times, 0.5)), millis(percentile(&times, 0.99))),
                "no goal of its own",
            );
        }
        let url = format!("http://{admin_url}/api/v1/llm-request-logs?q=nowhere");
        let mut slowest = Duration::ZERO;
        for _ in 0..SEARCHES {
            let began = Instant::now();
            get(&http, &url, admin_token.expose()).await?;
            slowest = slowest.max(began.elapsed());
        }
        report(
            &format!("a text that is nowhere, searched in {size} rows, {kind}"),
            format!("{} at most of {SEARCHES}", millis(slowest)),
            "goal 1 s",
        );
    }
    running.stop().await;
    Ok(())
}

/// Gives the instances former holders, the claimed one excepted: its holder's numbers are of all its time. All people,
/// the holder included, change departments.
async fn past(app: &fleet::App, people: &[Employee], claimed: &InstanceId) -> Result<()> {
    let begin = app.clock.now() - SignedDuration::from_hours(24 * DAYS);
    let mut tx = app.db.begin().await?;
    for instance in 0..INSTANCES {
        let id = InstanceId::named(format!("bench-0-{instance}"));
        if id == *claimed {
            continue;
        }
        for turn in 0..HOLDERS {
            let holder = &people[(instance + turn * 7) % PEOPLE].id;
            // In the middle of a quarter of an hour, each instance in another one.
            let minutes = turn as i64 * TURN_DAYS * 1_440 + instance as i64 * 17 + 7;
            let from = begin + SignedDuration::from_mins(minutes);
            binding::insert(&mut tx, holder, &id, binding::Origin::Assigned, None, from).await?;
            binding::end(&mut tx, &id, from + SignedDuration::from_hours(24 * HELD_DAYS)).await?;
        }
    }
    for (place, person) in people.iter().enumerate() {
        user_department::set_begin(&mut tx, &person.id, begin).await?;
        for (change, days) in (MEMBER_DAYS..DAYS).step_by(MEMBER_DAYS as usize).enumerate() {
            let mut account = user::lock(&mut tx, &person.id).await?.ok_or(Kind::NotFound)?;
            account.department = DEPARTMENTS[(place + change) % DEPARTMENTS.len()].to_owned();
            let at = begin + SignedDuration::from_mins(days * 1_440 + place as i64 * 43);
            user::update(&mut tx, &account, at).await?;
        }
    }
    tx.commit().await?;
    Ok(())
}

/// The fastest of three plain sums over the log.
async fn naively(app: &fleet::App) -> Result<Duration> {
    let since = app.zone.start(llm::usage::first_day(app, 30));
    let db = app.db.without_limit();
    let mut best = Duration::MAX;
    for _ in 0..3 {
        let began = Instant::now();
        request_log::sum_again(&db, since).await?;
        best = best.min(began.elapsed());
    }
    Ok(best)
}

/// The nth row: spread over instances, models and the last days, in an order that helps no index.
fn row(n: u64) -> NewRequest {
    let mixed = n.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
    let instance = mixed % INSTANCES as u64;
    let back = SignedDuration::from_millis((mixed / 7 % (DAYS as u64 * 86_400_000)) as i64);
    let now = Clock::default().now();
    let model = MODELS[(mixed / 3 % 3) as usize];
    let (prompt, completion, duration_ms) = ((mixed % 4_000) as i64, (mixed % 900) as i64, (mixed % 30_000) as i64);
    let cached = prompt * (mixed % 90) as i64 / 100;
    NewRequest {
        request_id: format!("bench-{n:016x}"),
        token_name: format!("bench-0-{instance}"),
        model: model.to_owned(),
        provider: "bench".to_owned(),
        kind: if mixed.is_multiple_of(50) {
            request_log::RequestType::ERROR
        } else {
            request_log::RequestType::SUCCESS
        },
        is_stream: mixed.is_multiple_of(2),
        prompt_tokens: prompt,
        completion_tokens: completion,
        quota: (mixed % 20_000) as i64,
        duration_ms,
        error_message: String::new(),
        estimated: false,
        detail: Detail {
            known_input_tokens: Some(prompt),
            cache_read_tokens: Some(cached),
            cache_write_tokens: mixed.is_multiple_of(3).then_some((prompt - cached) / 2),
            reasoning_tokens: Some(completion / 4),
            protocol: "chat".to_owned(),
            asked_model: model.to_owned(),
            key_hint: "…b3nc".to_owned(),
            retries: Some(0),
            first_byte_ms: Some(duration_ms / 5),
        },
        created_at: Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now) - back,
    }
}
