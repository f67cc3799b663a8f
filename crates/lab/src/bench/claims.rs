//! Claims per second when many employees claim an instance at the same moment.

use std::time::Instant;

use base::{Error, Kind, Result};
use tidepool::config::Values;
use tokio::task::JoinSet;

use super::report;
use super::site::Site;

const INSTANCES: usize = 1000;
/// Twice as many as there are instances: half of the claims are refused.
const EMPLOYEES: usize = 2000;
const AT_ONCE: usize = 32;

pub async fn run(values: &Values) -> Result<()> {
    let site = Site::open(values).await?;
    site.instances(INSTANCES).await?;
    let employees = site.employees(EMPLOYEES).await?;
    let floor = floor(&site).await?;
    let began = Instant::now();
    let mut claims = JoinSet::new();
    let (mut won, mut lost) = (0, 0);
    let mut waiting = employees.into_iter();
    loop {
        while claims.len() < AT_ONCE
            && let Some(employee) = waiting.next()
        {
            let app = site.opened.app.clone();
            claims.spawn(async move { people::claim::instance(&app, &employee, None).await.map(drop) });
        }
        let Some(ended) = claims.join_next().await else { break };
        match ended.map_err(Error::internal)? {
            Ok(()) => won += 1,
            Err(error) if error.kind == Kind::NoIdleInstance => lost += 1,
            Err(error) => return Err(error),
        }
    }
    let rate = EMPLOYEES as f64 / began.elapsed().as_secs_f64();
    if won != INSTANCES {
        return Err(Error::internal(format_args!("{won} claims won {INSTANCES} instances")));
    }
    report(
        &format!("claims, {AT_ONCE} at once, {}", site.kind()),
        format!("{rate:.0}/s ({won} won, {lost} refused)"),
        format!("{:.2} of {floor:.0}/s, transactions that write one row", rate / floor),
    );
    Ok(())
}

/// How many of the smallest transactions the database does per second, one after the other.
async fn floor(site: &Site) -> Result<f64> {
    const TRANSACTIONS: usize = 1000;
    let began = Instant::now();
    for i in 0..TRANSACTIONS {
        let mut tx = site.app().db.begin().await?;
        store::ended_token::end(&mut tx, &format!("bench-{i}"), jiff::Timestamp::MAX).await?;
        tx.commit().await?;
    }
    Ok(TRANSACTIONS as f64 / began.elapsed().as_secs_f64())
}
