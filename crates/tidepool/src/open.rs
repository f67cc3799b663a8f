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
use domain::usage::Local;
use jiff::SignedDuration;
use remote::host::Hosts;
use remote::jwks::Jwks;
use remote::sso::Provider;
use store::key_check;
use store::lock::InUse;
use store::seal::Sealer;
use store::{Db, migrate};

use crate::config::{Config, SideConfig};
use crate::keys::Keys;
use crate::llm;

/// An opened installation: its lock is held as long as this lives.
pub struct Opened {
    pub app: Arc<App>,
    pub applied: Vec<i64>,
    _in_use: Option<InUse>,
}

/// Opens the database and everything that hangs on it.
pub async fn open(config: &Config) -> Result<Opened> {
    let keys = Keys::load(config)?;
    let (db, in_use) = open_db(config).await?;
    let applied = migrate::run(&db).await.map_err(operator)?;
    store::model::fill(&db, Clock::default().now()).await.map_err(operator)?;
    key_check::agree(&db, &keys.checked()).await.map_err(|e| keys.explained(e))?;
    let sealer = Arc::new(Sealer::new(&keys.master.key).map_err(operator)?);
    let llm = llm::open(&config.gateway, &db, &sealer)?;
    let app = App {
        db,
        clock: Clock::default(),
        zone: config.zone.clone(),
        sealer,
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
        llm,
        quotas: Quotas::new(base::id::fresh()),
        feed: Arc::new(Local(Clock::default())),
        hosts: Hosts::new(),
        assistants: config.assistants.clone(),
    };
    Ok(Opened { app: Arc::new(app), applied, _in_use: in_use })
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
