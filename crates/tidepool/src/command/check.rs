//! `tidepool check`: tries every part the configuration names and prints a table.

use std::process::ExitCode;

use base::Result;
use domain::App;
use domain::app::Side;
use store::{admin_user, migrate};

use crate::config::{Config, Role};
use crate::open;

enum State {
    Good,
    Warning,
    Bad,
}

struct Row {
    part: &'static str,
    state: State,
    told: String,
}

fn row(part: &'static str, outcome: Result<String, String>) -> Row {
    match outcome {
        Ok(told) => Row { part, state: State::Good, told },
        Err(told) => Row { part, state: State::Bad, told },
    }
}

fn warning(part: &'static str, told: &str) -> Row {
    Row { part, state: State::Warning, told: told.to_owned() }
}

pub async fn run(config: &Config) -> Result<ExitCode> {
    let mut rows = vec![row("configuration", Ok(format!("zone {}", config.zone.name())))];
    rows.push(row("data folder", Ok(config.data_dir.display().to_string())));
    match open::open(config).await {
        Ok(opened) => {
            let kind = if config.sqlite_file().is_some() { "SQLite" } else { "PostgreSQL" };
            rows.push(row("database", Ok(format!("{kind}, schema version {}", migrate::known()))));
            rows.push(row("keys", Ok("the ones this database was made with".into())));
            parts(config, &opened.app, &mut rows).await;
        }
        Err(error) => rows.push(row("database", Err(crate::told(&error).to_owned()))),
    }
    let width = rows.iter().map(|r| r.part.len()).max().unwrap_or(0);
    for Row { part, state, told } in &rows {
        let word = match state {
            State::Good => "ok  ",
            State::Warning => "warn",
            State::Bad => "FAIL",
        };
        println!("{part:width$}  {word}  {told}");
    }
    let failed = rows.iter().any(|r| matches!(r.state, State::Bad));
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

async fn parts(config: &Config, app: &App, rows: &mut Vec<Row>) {
    match admin_user::any(&app.db).await {
        Ok(true) => rows.push(row("administrators", Ok("there is one".into()))),
        Ok(false) => rows.push(warning("administrators", "none yet: the first start makes one")),
        Err(error) => rows.push(row("administrators", Err(error.to_string()))),
    }
    for (role, part, of) in
        [(Role::Employee, "employee side", &config.employee), (Role::Admin, "admin side", &config.admin)]
    {
        if config.runs(role) {
            rows.push(row(part, Ok(format!("{} as {}", of.listen, of.public_url.join("/")))));
            if !of.public_url.is_https() && !of.listen.ip().is_loopback() {
                rows.push(warning(part, "reached without TLS: put a proxy with https in front and set the public URL"));
            }
        }
    }
    sso("employee SSO", &app.employee, rows).await;
    sso("admin SSO", &app.admin, rows).await;
    let any_domain = app.employee.newcomers.welcome && app.employee.newcomers.domains.is_empty();
    if any_domain && app.employee.sso.is_some() {
        rows.push(warning(
            "employee SSO",
            "accounts are made for every e-mail domain: set TIDEPOOL_EMPLOYEE_OIDC_DOMAINS",
        ));
    }
    if let Some(proxy) = &app.proxy {
        let keys = proxy.keys.reachable().await;
        rows.push(row("identity proxy", keys.map(|n| format!("{n} keys")).map_err(|e| crate::told(&e).to_owned())));
        if proxy.audience.is_none() {
            rows.push(warning("identity proxy", "its tokens are taken for any audience: set TIDEPOOL_VERIFY_AUDIENCE"));
        }
    }
}

async fn sso(part: &'static str, side: &Side, rows: &mut Vec<Row>) {
    match &side.sso {
        Some(provider) => {
            let reached = provider.reachable().await;
            let told = reached.map(|()| "the provider answers".into()).map_err(|e| crate::told(&e).to_owned());
            rows.push(row(part, told));
        }
        None => rows.push(row(part, Ok("not configured".into()))),
    }
}
