//! Assembles the parts that the configuration names.

use std::fs::{OpenOptions, Permissions};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::{Clock, Result};
use fleet::App;
use fleet::bot::Bots;
use fleet::embed::Embed;
use fleet::relay::Sockets;
use gateway::log::{Log, Timing};
use jiff::SignedDuration;
use llm::quota::Quotas;
use llm::usage::{Feed, Local};
use people::hashing::Hasher;
use people::token::{Audience, TokenKey};
use people::{IdentityProxy, Side};
use queue::replica::{self, Replica};
use remote::bot::Platform;
use remote::host::Hosts;
use remote::jwks::Jwks;
use remote::sso::Provider;
use remote::webhook::Webhooks;
use store::lock::InUse;
use store::seal::Sealer;
use store::{Db, key_check, migrate};

use crate::config::{Config, Role, SideConfig};
use crate::fault::{file_error, operator};
use crate::keys::{Keys, make_private_folder};
use crate::{llm_gateway, restore};

/// An opened installation. It holds the lock on the database as long as it exists.
pub struct Opened {
    pub app: Arc<App>,
    pub applied: Vec<i64>,
    /// The embedded gateway's log, and the folder whose name identifies the quota grants of this process.
    pub log: Option<Arc<Log>>,
    /// The registration of a serving process among the replicas.
    pub replica: Option<Replica>,
    _in_use: Option<InUse>,
}

/// Opens the database and everything that depends on it, for a command that ends soon.
pub async fn open(config: &Config) -> Result<Opened> {
    open_with(config, None).await
}

/// The same for a process that serves. If it reserves quotas it gets its own folder: the folder's name identifies its
/// grants, and the embedded gateway writes its log there.
pub async fn serving(config: &Config) -> Result<Opened> {
    let reserves = match config.gateway.foreign {
        None => config.runs(Role::Gateway),
        Some(_) => config.runs(Role::Employee),
    };
    let folder = config.data_dir.join("gateway");
    let mut opened = open_with(config, reserves.then_some(folder)).await?;
    // Only a serving process registers: a command in an operator's shell may have another time zone than the server.
    opened.replica = Some(replica::join(&opened.app, env!("CARGO_PKG_VERSION")).await.map_err(operator)?);
    Ok(opened)
}

async fn open_with(config: &Config, log_folder: Option<PathBuf>) -> Result<Opened> {
    make_private_folder(&config.data_dir)?;
    remote::memory::set_limit(config.socket_memory);
    let (db, in_use) = open_db(config).await?;
    let keys = Keys::of(config, &db).await?;
    let applied = migrate::run(&db).await.map_err(operator)?;
    store::model::fill(&db, Clock::default().now()).await.map_err(operator)?;
    llm::model::table::bring(&db, Clock::default().now()).await.map_err(operator)?;
    key_check::agree(&db, &keys.checked()).await.map_err(|e| keys.explained(e))?;
    let sealer = Arc::new(Sealer::new(&keys.master.key).map_err(operator)?);
    let log = match log_folder {
        Some(folder) => {
            let log = Log::open(&folder, db.clone(), Clock::default(), config.zone.clone(), Timing::default());
            Some(log.map_err(|e| file_error(&folder, e))?)
        }
        None => None,
    };
    let upstream = llm_gateway::open(&config.gateway, &db, &sealer)?;
    let feed: Arc<dyn Feed> = match (&config.gateway.foreign, &log) {
        (Some(foreign), _) => llm_gateway::reader(foreign, &upstream, &db, &config.zone)?,
        (None, Some(log)) => log.clone(),
        (None, None) => Arc::new(Local(Clock::default())),
    };
    // This name identifies the quota grants of this process.
    let replica = log.as_ref().map_or_else(base::id::fresh, |log| log.replica().to_owned());
    let engine = queue::App {
        db,
        clock: Clock::default(),
        zone: config.zone.clone(),
        sealer,
        audit_retention_days: config.audit_retention_days,
        webhooks: Webhooks { allow_private: config.webhook_allow_private },
    };
    let llm = llm::App {
        engine: Arc::new(engine),
        upstream,
        quotas: match config.gateway.foreign {
            None => Quotas::new(replica),
            Some(_) => Quotas::new(replica).asking_always(),
        },
        feed,
        providers: config.gateway.providers.clone(),
    };
    let people = people::App {
        llm: Arc::new(llm),
        hasher: Hasher::default(),
        employee: side(&config.employee, Audience::Employee, &keys.employee_jwt.key)?,
        admin: side(&config.admin, Audience::Admin, &keys.admin_jwt.key)?,
        proxy: match &config.proxy {
            Some(proxy) => Some(IdentityProxy {
                issuer: proxy.issuer.clone(),
                audience: proxy.audience.clone(),
                keys: Jwks::new(proxy.jwks_url.clone(), remote::http::client()?),
            }),
            None => None,
        },
        mfa: config.mfa.clone(),
    };
    let app = App {
        people: Arc::new(people),
        hosts: Hosts::new(),
        assistants: config.assistants.clone(),
        cells: Default::default(),
        sockets: Sockets::default(),
        embed: Embed {
            enabled: config.embed.enabled,
            url: config.embed.url.join(""),
            origins: config.embed.origins,
            gateway_origin: config.embed.gateway_origin.clone(),
            framed_by: config.employee.public_url.origin(),
        },
        bots: Bots {
            platform: Platform::new(&config.bot_api_url)?,
            webhooks: Some(&config.employee.public_url).filter(|url| url.is_https()).map(|url| url.join("")),
        },
        webchat: config.webchat.clone(),
    };
    Ok(Opened { app: Arc::new(app), applied, log, replica: None, _in_use: in_use })
}

/// Opens only the database, and marks it as being in use.
pub async fn open_db(config: &Config) -> Result<(Db, Option<InUse>)> {
    let in_use = match config.sqlite_file() {
        Some(file) => {
            restore::finish_broken_off(&file).await?;
            Some(store::lock::share(&file).map_err(operator)?)
        }
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

/// Makes a file private to its owner, and creates it if it is missing. SQLite gives its other files the same mode.
pub fn make_private(file: &Path) -> Result<()> {
    let open = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(file);
    let private = open.and_then(|f| f.set_permissions(Permissions::from_mode(0o600)));
    private.map_err(|e| file_error(file, e))
}

/// An unused name for a file that is about to be replaced.
pub fn aside(file: &Path) -> PathBuf {
    let now = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
    let named = |n: usize| {
        let number = if n == 0 { String::new() } else { format!("-{n}") };
        PathBuf::from(format!("{}.before-{now}{number}", file.display()))
    };
    (0..).map(named).find(|path| !path.exists()).unwrap_or_else(|| named(0))
}

fn side(of: &SideConfig, audience: Audience, key: &base::Secret) -> Result<Side> {
    let lifetime = SignedDuration::from_hours(of.token_hours);
    Ok(Side {
        tokens: TokenKey::new(key, audience, lifetime),
        sso: of.oidc.clone().map(Provider::new).transpose()?,
        newcomers: of.newcomers.clone(),
    })
}
