//! `tidepool check`: tests every part that the configuration names and prints a table. It changes nothing: what the
//! first start would create is only named.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use ::llm::provider;
use base::{Clock, Error, Kind, Page, Result, Sort};
use fleet::embed::Origins;
use fleet::host;
use futures_util::{StreamExt as _, stream};
use remote::host::{Host, probe};
use remote::jwks::Jwks;
use remote::llm::{self, Settings};
use remote::sso::{self, Provider};
use store::foreign::{ForeignLog, LogKind};
use store::seal::Sealer;
use store::server::{self, Server};
use store::{Db, Dialect, admin_user, key_check, migrate};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::config::{Config, Role};
use crate::fault::{self, operator};
use crate::keys::Keys;
use crate::restore;

/// How many servers are contacted at the same time.
const AT_ONCE: usize = 32;
/// The time limit for one server: logging in takes at most 30 s, the request to the LLM gateway 15 s.
const SERVER_LIMIT: Duration = Duration::from_secs(60);
/// The time limit for a connection to a listener on this machine.
const LISTENER_LIMIT: Duration = Duration::from_secs(2);

enum State {
    Good,
    Warning,
    Bad,
}

struct Row {
    part: &'static str,
    state: State,
    detail: String,
}

/// The table as it grows.
#[derive(Default)]
struct Table(Vec<Row>);

impl Table {
    fn good(&mut self, part: &'static str, detail: impl Into<String>) {
        self.0.push(Row { part, state: State::Good, detail: detail.into() });
    }

    fn warn(&mut self, part: &'static str, detail: impl Into<String>) {
        self.0.push(Row { part, state: State::Warning, detail: detail.into() });
    }

    fn bad(&mut self, part: &'static str, detail: impl Into<String>) {
        self.0.push(Row { part, state: State::Bad, detail: detail.into() });
    }

    fn print(&self) -> ExitCode {
        let width = self.0.iter().map(|r| r.part.len()).max().unwrap_or(0);
        for Row { part, state, detail } in &self.0 {
            let word = match state {
                State::Good => "ok  ",
                State::Warning => "warn",
                State::Bad => "FAIL",
            };
            println!("{part:width$}  {word}  {detail}");
        }
        let failed = self.0.iter().any(|r| matches!(r.state, State::Bad));
        if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }
}

pub async fn run(config: &Config) -> Result<ExitCode> {
    let mut table = Table::default();
    table.good("configuration", format!("zone {}", config.zone.name()));
    match config.data_dir.is_dir() {
        true => table.good("data folder", config.data_dir.display().to_string()),
        false => table.warn("data folder", format!("{} is not there yet", config.data_dir.display())),
    }
    database(config, &mut table).await?;
    for (role, part, of) in
        [(Role::Employee, "employee side", &config.employee), (Role::Admin, "admin side", &config.admin)]
    {
        if config.runs(role) {
            table.good(part, format!("{} as {}", of.listen, of.public_url.join("/")));
            if !of.public_url.is_https() && !of.listen.ip().is_loopback() {
                table.warn(part, "reached without TLS: put a proxy with https in front and set the public URL");
            }
        }
    }
    if config.runs(Role::Employee) {
        windows(config, &mut table).await?;
    }
    llm_gateway(config, &mut table).await?;
    provider("employee SSO", config.employee.oidc.as_ref(), &mut table).await?;
    let newcomers = &config.employee.newcomers;
    if config.employee.oidc.is_some() && newcomers.welcome && newcomers.domains.is_empty() {
        let message = "accounts are made for every e-mail domain: set TIDEPOOL_EMPLOYEE_OIDC_DOMAINS";
        table.warn("employee SSO", message);
    }
    provider("admin SSO", config.admin.oidc.as_ref(), &mut table).await?;
    let newcomers = &config.admin.newcomers;
    if config.admin.oidc.is_some() && newcomers.welcome && newcomers.domains.is_empty() && newcomers.claim.is_none() {
        let message = "no administrator is made: set TIDEPOOL_ADMIN_OIDC_DOMAINS or TIDEPOOL_ADMIN_OIDC_CLAIM";
        table.warn("admin SSO", message);
    }
    if let Some(proxy) = &config.proxy {
        let part = "identity proxy";
        match Jwks::new(proxy.jwks_url.clone(), remote::http::client()?).reachable().await {
            Ok(keys) => table.good(part, format!("{keys} keys")),
            Err(error) => table.bad(part, fault::shown(&error)),
        }
        if proxy.audience.is_none() {
            table.warn(part, "its tokens are taken for any audience: set TIDEPOOL_VERIFY_AUDIENCE");
        }
    }
    Ok(table.print())
}

/// Checks the embedded windows. If each instance has its own origin, an unused label is resolved and requested, which
/// tests the wildcards of DNS, of the certificate and of the proxy.
async fn windows(config: &Config, table: &mut Table) -> Result<()> {
    let (part, embed) = ("windows", &config.embed);
    if let Some(problem) = embed.problem {
        table.bad(part, problem);
        return Ok(());
    }
    if !embed.enabled {
        table.good(part, "switched off");
        return Ok(());
    }
    let (listen, host) = (embed.listen, embed.url.host());
    if embed.origins == Origins::Shared {
        let message = format!(
            "{listen} as {}: all instances share this origin and its storage; with wildcard DNS and TLS set \
             TIDEPOOL_EMBED_URL=https://*.… (docs/proxy.md)",
            embed.url.origin()
        );
        table.warn(part, message);
        return Ok(());
    }
    let url = embed.url.join("/").replacen("://", "://tidepool-check.", 1);
    let all = embed.url.origin().replacen("://", "://*.", 1);
    // Browsers always resolve names below localhost, whether this machine does or not.
    if host == "localhost" || host.ends_with(".localhost") {
        table.good(part, format!("{listen} as {all}"));
        return Ok(());
    }
    if let Err(error) = tokio::net::lookup_host((format!("tidepool-check.{host}"), 443)).await {
        table.warn(part, format!("{all}: names below {host} are not known to DNS here ({error})"));
        return Ok(());
    }
    let ours = format!("frame-ancestors {}", config.employee.public_url.origin());
    match remote::http::client()?.get(url).send().await {
        Ok(answer)
            if answer.headers().get_all("content-security-policy").iter().any(|policy| policy == ours.as_str()) =>
        {
            table.good(part, format!("{listen} as {all}, which leads here"));
        }
        Ok(answer) => {
            let message = format!(
                "{all} leads somewhere else (status {}), or tidepool does not run yet",
                answer.status().as_u16()
            );
            table.warn(part, message);
        }
        Err(error) => table.warn(part, fault::shown(&remote::http::failed(&all, &error))),
    }
    Ok(())
}

async fn database(config: &Config, table: &mut Table) -> Result<()> {
    if config.sqlite_file().is_some_and(|file| restore::is_broken_off(&file)) {
        table.warn("database", "a restore was broken off: the next start finishes it");
        return Ok(());
    }
    if let Some(file) = config.sqlite_file().filter(|f| !f.is_file()) {
        table.warn("database", format!("{} is not there yet: the first start makes it", file.display()));
        return Ok(());
    }
    let kind = if config.sqlite_file().is_some() { "SQLite" } else { "PostgreSQL" };
    let looked = async {
        let db = Db::open(&config.database_url).await?;
        let version = migrate::version(&db).await?;
        Ok::<_, store::Error>((db, version))
    };
    let (db, version) = match looked.await {
        Ok(found) => found,
        Err(error) => {
            table.bad("database", error.to_string());
            return Ok(());
        }
    };
    let known = migrate::known();
    match version {
        Some(version) if version == known => table.good("database", format!("{kind}, schema version {version}")),
        Some(version) if version > known => {
            let message =
                format!("{kind}, schema version {version} of a newer release, which this one ({known}) can work with");
            table.good("database", message);
        }
        Some(version) => {
            table.warn("database", format!("{kind}, schema version {version}; the next start brings it to {known}"));
        }
        None => {
            table.warn("database", format!("{kind}, empty: the first start makes the tables"));
            return Ok(());
        }
    }
    clock(&db, table).await?;
    if let Some(days) = store::usage::zone_of_days(&db).await?.filter(|days| days != config.zone.name()) {
        let message = format!(
            "days are of {days}: with {} they are rebuilt at the next start, once no process has another zone",
            config.zone.name()
        );
        table.warn("zone", message);
    }
    match Keys::existing(config)? {
        Some(keys) => {
            let mut fit = true;
            for key in keys.checked() {
                if !key_check::is(&db, key).await? {
                    fit = false;
                    let error = keys.explained(store::Error::OtherKey(key.setting));
                    table.bad("keys", fault::shown(&error));
                }
            }
            if fit {
                table.good("keys", "the ones this database was made with");
                let sealer = Sealer::new(&keys.master.key).map_err(operator)?;
                let is_current = version.is_some_and(|version| version >= known);
                servers(config, &db, &sealer, is_current, table).await?;
            }
        }
        None => table.bad("keys", "the database is there, and some of its keys are not"),
    }
    match admin_user::any(&db).await? {
        true => table.good("administrators", "there is one"),
        false => table.warn("administrators", "none yet: the first start makes one"),
    }
    Ok(())
}

/// Compares this machine's clock with the database's, which decides about leases.
async fn clock(db: &Db, table: &mut Table) -> Result<()> {
    if db.dialect() == Dialect::Sqlite {
        return Ok(());
    }
    let skew = store::clock::skew(db, &Clock::default()).await?;
    match store::clock::excess(skew) {
        None => table.good("clock", format!("{:.1} s from the database's", skew.as_secs_f64().abs())),
        Some(off) => table.warn("clock", format!("{off}: keep both by NTP")),
    }
    Ok(())
}

/// Logs in to every active server and requests the LLM gateway from there, concurrently; no host key is pinned and
/// nothing is stored.
async fn servers(config: &Config, db: &Db, sealer: &Sealer, is_current: bool, table: &mut Table) -> Result<()> {
    let part = "servers";
    if !is_current {
        table.warn(part, "looked at once the schema is brought up to date");
        return Ok(());
    }
    let (sort, page) = (Sort { column: "name", descending: false }, Page::ALL);
    let all = server::list(db, None, Some(server::Status::Active), sort, page).await.map_err(operator)?.list;
    if all.is_empty() {
        table.warn(part, "none yet: add one in the administration console");
        return Ok(());
    }
    let gateway = &config.gateway;
    // Before tidepool is started no server can reach the embedded gateway, which says nothing about the servers.
    let is_stopped = gateway.foreign.is_none() && config.runs(Role::Gateway) && !listens(gateway.local_address()).await;
    let url = Some(gateway.public_url.as_str()).filter(|_| !is_stopped);
    let tries = all.iter().map(|server| try_server(sealer, server, url));
    let results: Vec<Result<Contact>> = stream::iter(tries).buffered(AT_ONCE).collect().await;
    let mut reached = 0;
    for (server, result) in all.iter().zip(&results) {
        let name = format!("{} ({})", server.name, server.host);
        reached += usize::from(result.is_ok());
        match result {
            Err(error) => table.bad(part, format!("{name}: {}", fault::shown(error))),
            Ok(Contact { gateway: None }) => table.good(part, format!("{name}: it answers")),
            Ok(Contact { gateway: Some(Ok(answer)) }) => {
                table.good(part, format!("{name}: it answers, and from there the LLM gateway {answer}"));
            }
            Ok(Contact { gateway: Some(Err(error)) }) => {
                let problem = format!("{name}: the LLM gateway cannot be reached from there: {}", fault::shown(error));
                table.bad(part, problem);
            }
        }
    }
    if reached > 0 {
        table.good(part, format!("{reached} of {} answer", all.len()));
    }
    if is_stopped {
        let message = format!(
            "the LLM gateway was not tried from the servers: nothing listens on {} before tidepool is started",
            gateway.listen
        );
        table.warn(part, message);
    }
    Ok(())
}

/// What is known of a server that answers.
struct Contact {
    /// The answer of the LLM gateway to a request from the server, if it was tried.
    gateway: Option<Result<String>>,
}

async fn try_server(sealer: &Sealer, server: &Server, gateway_url: Option<&str>) -> Result<Contact> {
    let host = Host::new(host::target(sealer, server)?);
    let contact = async {
        host.contact().await?;
        let gateway = match gateway_url {
            Some(url) => Some(probe::reach_gateway(&host, url).await.map_err(Error::from)),
            None => None,
        };
        Ok(Contact { gateway })
    };
    let tried = timeout(SERVER_LIMIT, async {
        let contact = contact.await;
        host.close().await;
        contact
    });
    tried.await.unwrap_or_else(|_| Err(Error::new(Kind::TimedOut, "the server does not answer in time")))
}

/// Whether a program listens on an address of this machine.
async fn listens(address: SocketAddr) -> bool {
    matches!(timeout(LISTENER_LIMIT, TcpStream::connect(address)).await, Ok(Ok(_)))
}

/// Checks the providers of the embedded gateway.
fn providers(settings: &provider::Settings, table: &mut Table) {
    let part = "LLM providers";
    let all = settings.fixed();
    let with_key = all.iter().filter(|of| of.enabled && (!of.keys.is_empty() || !of.preset.needs_key));
    let named: Vec<String> = with_key
        .map(|of| {
            let spoken: Vec<&str> = of.protocols.iter().map(|protocol| protocol.as_str()).collect();
            format!("{} ({})", of.name, spoken.join(", "))
        })
        .collect();
    match (named.is_empty(), settings.echo) {
        (false, false) => table.good(part, named.join(", ")),
        (_, true) => {
            let message =
                format!("{} echo: models without a provider's key are answered by repeating", named.join(", "));
            table.warn(part, message.trim_start());
        }
        (true, false) => table.warn(part, "none has a key: set TIDEPOOL_PROVIDER_…_KEY"),
    }
}

/// Checks the LLM gateway and, for a foreign one, the database with its log.
async fn llm_gateway(config: &Config, table: &mut Table) -> Result<()> {
    let (part, gateway) = ("LLM gateway", &config.gateway);
    let Some(foreign) = &gateway.foreign else {
        table.good(part, format!("embedded, on {}, as {}", gateway.listen, gateway.public_url));
        if config.runs(Role::Gateway) {
            providers(&gateway.providers, table);
        }
        return Ok(());
    };
    let Some(kind) = llm::Kind::find(&gateway.kind) else { return Ok(()) };
    let settings = Settings { url: gateway.url.clone(), admin_token: foreign.admin_token.clone() };
    let adapter = (kind.open)(&settings)?;
    let health = adapter.health().await;
    let version = health.version.as_deref().unwrap_or("of unknown version");
    match health.ok {
        true => table.good(part, format!("{} {version} at {}, {} ms", kind.name, gateway.url, health.latency_ms)),
        false => table.bad(part, format!("{} at {}: {}", kind.name, gateway.url, health.detail)),
    }
    if let Some(per_usd) = health.per_usd.filter(|p| *p != base::PerUsd::USUAL) {
        let message = format!("it counts {} units to the dollar: its rows are scaled to 500000", per_usd.get());
        table.warn(part, message);
    }
    match adapter.keys().await {
        Ok(keys) => table.good("gateway keys", format!("the management token works; {} keys", keys.len())),
        Err(error) => table.bad("gateway keys", fault::shown(&error)),
    }
    let part = "gateway log";
    let log = match LogKind::find(kind.name) {
        Some(kind) => ForeignLog::open(kind, &foreign.log_url).await,
        None => return Ok(()),
    };
    match log {
        Ok(log) => match log.newest().await {
            Ok(Some(_)) => table.good(part, "readable"),
            Ok(None) => table.warn(part, "readable, and empty: is it the database that holds the log?"),
            Err(error) => table.bad(part, error.to_string()),
        },
        Err(error) => table.bad(part, error.to_string()),
    }
    Ok(())
}

async fn provider(part: &'static str, config: Option<&sso::Config>, table: &mut Table) -> Result<()> {
    let Some(config) = config else {
        table.good(part, "not configured");
        return Ok(());
    };
    match Provider::new(config.clone())?.reachable().await {
        Ok(()) => table.good(part, "the provider answers"),
        Err(error) => table.bad(part, fault::shown(&error)),
    }
    Ok(())
}
