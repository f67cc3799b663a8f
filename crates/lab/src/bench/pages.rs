//! Two pages with 10,000 instances over HTTP, compared with the bare SQL of the same page.

use std::time::{Duration, Instant};

use base::{Error, Page, Result, Sort};
use people::admin_user::Role;
use people::{claim, session};
use queue::audit::By;
use tidepool::config::Values;
use tidepool::serve::Running;

use super::site::Site;
use super::{millis, percentile, report};

const INSTANCES: usize = 10_000;
const REPEATS: usize = 300;

pub async fn run(values: &Values) -> Result<()> {
    let mut values = values.clone();
    for name in ["employee_listen", "admin_listen"] {
        values.set(name, super::start::free_address()?);
    }
    values.set("roles", "employee,admin");
    let site = Site::open(&values).await?;
    site.instances(INSTANCES).await?;
    let mut employees = site.employees(1).await?;
    let employee = employees.remove(0);
    claim::instance(site.app(), &employee, None).await?;
    let account = people::user::find(site.app(), &employee.id).await?;
    let employee_token = session::open_employee(site.app(), account, jiff::Timestamp::now())?.token;
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
    let db = running.app.db.clone();
    let http = remote::http::client()?;
    let health = format!("http://{admin_url}/healthz");
    let floor = timed(async || get(&http, &health, admin_token.expose()).await).await?;
    report("GET /healthz, the floor of any answer", format!("p50 {}", millis(percentile(&floor, 0.5))), "");
    let sort = Sort { column: "created_at", descending: false };
    for page in [1i64, 100, 200] {
        let bare = timed(async || {
            let place = Page { offset: (page - 1) * 50, limit: 50 };
            store::instance::list(&db, Default::default(), sort, place).await.map(drop).map_err(Error::from)
        })
        .await?;
        let url = format!("http://{admin_url}/api/v1/instances?page={page}&page_size=50");
        let served = timed(async || get(&http, &url, admin_token.expose()).await).await?;
        compared(&format!("GET /instances?page={page} of {INSTANCES}, {kind}"), &served, &bare);
    }
    let bare = timed(async || store::binding::held(&db, &employee.id).await.map(drop).map_err(Error::from)).await?;
    let url = format!("http://{employee_url}/api/v1/me/instances");
    let served = timed(async || get(&http, &url, employee_token.expose()).await).await?;
    compared(&format!("GET /me/instances of {INSTANCES}, {kind}"), &served, &bare);
    running.stop().await;
    Ok(())
}

pub(super) async fn get(http: &reqwest::Client, url: &str, token: &str) -> Result<()> {
    let answer = http.get(url).bearer_auth(token).send().await.map_err(Error::internal)?;
    if !answer.status().is_success() {
        return Err(Error::internal(answer.status()));
    }
    answer.bytes().await.map(drop).map_err(Error::internal)
}

/// The times of many repetitions, sorted; the first few are a warm-up and do not count.
pub(super) async fn timed(work: impl AsyncFn() -> Result<()>) -> Result<Vec<Duration>> {
    for _ in 0..20 {
        work().await?;
    }
    let mut times = Vec::with_capacity(REPEATS);
    for _ in 0..REPEATS {
        let began = Instant::now();
        work().await?;
        times.push(began.elapsed());
    }
    times.sort();
    Ok(times)
}

fn compared(what: &str, served: &[Duration], bare: &[Duration]) {
    let (served_p50, bare_p50) = (percentile(served, 0.5), percentile(bare, 0.5));
    let ratio = served_p50.as_secs_f64() / bare_p50.as_secs_f64();
    report(
        what,
        format!("p50 {}, p99 {}", millis(served_p50), millis(percentile(served, 0.99))),
        format!("{ratio:.2} × its SQL alone ({}), goal 2 ×", millis(bare_p50)),
    );
}
