//! Puts the parts together that the configuration names.

use std::fs::{OpenOptions, Permissions};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::{Clock, Error, Kind, Result};
use domain::App;
use domain::app::{IdentityProxy, Newcomers, Side};
use domain::hashing::Hasher;
use domain::quota::Quotas;
use domain::token::{Audience, TokenKey};
use domain::usage::{Feed, Local};
use gateway::log::Log;
use jiff::SignedDuration;
use remote::jwks::Jwks;
use remote::sso::Provider;
use store::key_check;
use store::lock::InUse;
use store::seal::Sealer;
use store::{Db, migrate};

use crate::config::{Config, SideConfig};
use crate::keys::Keys;

/// An opened installation: its lock is held as long as this lives.
pub struct Opened {
    pub app: Arc<App>,
    pub applied: Vec<i64>,
    /// Where the embedded gateway writes its requests down, when this process is it.
    pub log: Option<Arc<Log>>,
    _in_use: Option<InUse>,
}

/// Opens the database and everything that hangs on it, for a command that does its work and ends.
pub async fn open(config: &Config) -> Result<Opened> {
    open_as(config, false).await
}

/// The same for a process that serves what its roles name.
pub async fn open_to_serve(config: &Config) -> Result<Opened> {
    open_as(config, config.runs_gateway()).await
}

async fn open_as(config: &Config, is_gateway: bool) -> Result<Opened> {
    let keys = Keys::load(config)?;
    let (db, in_use) = open_db(config).await?;
    let applied = migrate::run(&db).await.map_err(operator)?;
    store::model::fill(&db, Clock::default().now()).await.map_err(operator)?;
    key_check::agree(&db, &keys.checked()).await.map_err(|e| keys.explained(e))?;
    let clock = Clock::default();
    let log = match is_gateway {
        true => {
            let (root, timing) = (config.data_dir.join("gateway"), gateway::log::Timing::default());
            let log = Log::open(&root, db.clone(), clock.clone(), config.zone.clone(), timing);
            Some(log.map_err(|e| file_error(&root, e))?)
        }
        false => None,
    };
    // What was granted of quotas is told from others' by the name under which its use is logged.
    let replica = log.as_ref().map_or_else(base::id::fresh, |log| log.replica().to_owned());
    let feed: Arc<dyn Feed> = match &log {
        Some(log) => log.clone(),
        None => Arc::new(Local(clock.clone())),
    };
    let app = App {
        db,
        clock,
        zone: config.zone.clone(),
        sealer: Arc::new(Sealer::new(&keys.master.key).map_err(operator)?),
        hasher: Hasher::default(),
        employee: side(config, &config.employee, Audience::Employee, &keys.employee_jwt.key)?,
        admin: side(config, &config.admin, Audience::Admin, &keys.admin_jwt.key)?,
        proxy: match &config.proxy {
            Some(proxy) => Some(IdentityProxy {
                issuer: proxy.issuer.clone(),
                audience: proxy.audience.clone(),
                keys: Jwks::new(proxy.jwks_url.clone(), remote::http::client()?),
            }),
            None => None,
        },
        audit_retention_days: config.audit_retention_days,
        token_name_limit: config.token_name_limit,
        quotas: Quotas::new(replica),
        feed,
    };
    Ok(Opened { app: Arc::new(app), applied, log, _in_use: in_use })
}

/// Opens nothing but the database, and marks it as being in use.
pub async fn open_db(config: &Config) -> Result<(Db, Option<InUse>)> {
    let in_use = match config.sqlite_file() {
        Some(file) => Some(store::lock::share(&file).map_err(operator)?),
        None => None,
    };
    if let Some(file) = config.sqlite_file() {
        make_private(&file)?;
    }
    let db = Db::open(&config.database_url).await.map_err(operator)?;
    let in_use = match in_use {
        Some(file) => Some(file),
        None => store::lock::share_postgres(&db).await.map_err(operator)?,
    };
    Ok((db, in_use))
}

/// A file for its owner alone, made when it is missing. SQLite gives its side files the same mode.
pub fn make_private(file: &Path) -> Result<()> {
    let open = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(file);
    let private = open.and_then(|f| f.set_permissions(Permissions::from_mode(0o600)));
    private.map_err(|e| file_error(file, e))
}

/// A name for what is about to be replaced: never one that is taken.
pub fn aside(file: &Path) -> PathBuf {
    let now = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
    let named = |n: usize| {
        let number = if n == 0 { String::new() } else { format!("-{n}") };
        PathBuf::from(format!("{}.before-{now}{number}", file.display()))
    };
    (0..).map(named).find(|path| !path.exists()).unwrap_or_else(|| named(0))
}

pub fn file_error(file: &Path, error: std::io::Error) -> Error {
    Error::internal(format_args!("{}: {error}", file.display()))
}

/// A store's error as the operator at the command line reads it.
pub fn operator(error: store::Error) -> Error {
    Error::from(Kind::Internal).with_operator(error)
}

fn side(config: &Config, of: &SideConfig, audience: Audience, key: &base::Secret) -> Result<Side> {
    let lifetime = SignedDuration::from_hours(of.token_hours);
    Ok(Side {
        tokens: TokenKey::new(key, audience, lifetime),
        sso: of.oidc.clone().map(Provider::new).transpose()?,
        newcomers: Newcomers {
            welcome: of.auto_create,
            domains: if audience == Audience::Employee { config.employee_domains.clone() } else { vec![] },
        },
    })
}
