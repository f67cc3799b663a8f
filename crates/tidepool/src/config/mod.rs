//! The configuration: the environment overrides the file, and flags override both. Every value is checked before
//! anything starts, and every refusal is one line that names the setting.

mod embed;
mod gateway;
pub mod kind;
pub mod setting;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use api::PublicUrl;
use base::{Email, Error, Kind as ErrorKind, Result, Secret, Zone};
use clap::ArgMatches;
use clap::parser::ValueSource;
pub use embed::EmbedConfig;
use fleet::assistant::Defaults;
use fleet::guardian::Webchat;
pub use gateway::{Foreign, GatewayConfig};
use ipnet::IpNet;
use people::Newcomers;
use queue::worker::Timing;
use remote::sso;
use setting::{SETTINGS, Setting};

/// A part of the product that a process can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Employee,
    Admin,
    Gateway,
    Worker,
    Scheduler,
}

#[derive(Debug)]
pub struct Config {
    pub data_dir: PathBuf,
    pub database_url: Secret,
    pub zone: Zone,
    pub employee: SideConfig,
    pub admin: SideConfig,
    pub employee_jwt_secret: Option<Secret>,
    pub admin_jwt_secret: Option<Secret>,
    pub master_key: Option<Secret>,
    pub bootstrap_email: Option<Email>,
    pub bootstrap_password: Option<Secret>,
    pub proxy: Option<ProxyConfig>,
    pub trusted_proxies: Vec<IpNet>,
    pub webhook_allow_private: bool,
    pub metrics_token: Option<Secret>,
    pub log: String,
    pub log_format: Option<String>,
    pub roles: Vec<Role>,
    pub mfa: people::second_factor::Policy,
    pub audit_retention_days: i64,
    /// How many bytes unfinished answers of servers and assistants may hold together.
    pub socket_memory: usize,
    pub gateway: GatewayConfig,
    pub task_timing: Timing,
    pub assistants: Defaults,
    pub embed: EmbedConfig,
    pub bot_api_url: String,
    pub webchat: Webchat,
}

/// The settings that both sides have.
#[derive(Debug)]
pub struct SideConfig {
    pub listen: SocketAddr,
    pub public_url: PublicUrl,
    pub token_hours: i64,
    pub oidc: Option<sso::Config>,
    pub newcomers: Newcomers,
}

#[derive(Debug)]
pub struct ProxyConfig {
    pub issuer: String,
    pub jwks_url: String,
    pub audience: Option<String>,
}

impl Config {
    /// Reads the file, the environment and the flags of this process.
    pub fn load(matches: &ArgMatches) -> Result<Config> {
        Values::read(matches, std::env::vars_os())?.config()
    }

    /// The file of a SQLite database.
    pub fn sqlite_file(&self) -> Option<PathBuf> {
        store::db::sqlite_path(self.database_url.expose()).map(PathBuf::from)
    }

    pub fn runs(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }
}

/// Where a value came from, for the error message.
#[derive(Clone, Debug)]
enum Source {
    File(PathBuf),
    Environment,
    Flag,
}

/// The checked texts, before they are converted to their types.
#[derive(Clone)]
pub struct Values(BTreeMap<&'static str, String>);

impl Values {
    pub fn read(
        matches: &ArgMatches,
        environment: impl Iterator<Item = (std::ffi::OsString, std::ffi::OsString)>,
    ) -> Result<Values> {
        let mut values: BTreeMap<&'static str, (String, Source)> = BTreeMap::new();
        let mut named_file = matches.get_one::<String>("config").map(PathBuf::from);
        let mut from_environment = vec![];
        for (name, value) in environment {
            let Some(name) = name.to_str() else { continue };
            if name == "TIDEPOOL_CONFIG" {
                if value.is_empty() {
                    continue;
                }
                named_file = named_file.or_else(|| Some(PathBuf::from(&value)));
            } else if let Some(setting) = Setting::by_env(name) {
                let value = value.into_string().map_err(|_| refused(&format!("{name} is not UTF-8")))?;
                // Many tools set a variable to an empty value to unset it.
                if !value.is_empty() {
                    from_environment.push((setting, value));
                }
            } else if name.starts_with("TIDEPOOL_") && !name.starts_with("TIDEPOOL_TEST_") {
                return Err(unknown(name, "environment variable", SETTINGS.iter().map(|s| s.env)));
            }
        }
        if let Some(file) = file(named_file)? {
            for (setting, value) in read_file(&file)? {
                values.insert(setting.name, (value, Source::File(file.clone())));
            }
        }
        for (setting, value) in from_environment {
            values.insert(setting.name, (value, Source::Environment));
        }
        for setting in SETTINGS {
            if matches.value_source(setting.name) == Some(ValueSource::CommandLine)
                && let Some(value) = matches.get_one::<String>(setting.name)
            {
                values.insert(setting.name, (value.clone(), Source::Flag));
            }
        }
        for (name, (value, source)) in &values {
            let setting = Setting::find(name).ok_or_else(|| Error::internal("a setting that is not listed"))?;
            setting.kind.check(value).map_err(|problem| malformed(setting, value, source, &problem))?;
        }
        Ok(Values(values.into_iter().map(|(name, (value, _))| (name, value)).collect()))
    }

    pub fn set(&mut self, name: &'static str, value: impl Into<String>) {
        self.0.insert(name, value.into());
    }

    pub fn is_set(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub fn config(&self) -> Result<Config> {
        let data_dir = PathBuf::from(self.text("data_dir").unwrap_or("./data"));
        let database = data_dir.join("tidepool.db");
        let database_url = match self.text("database_url") {
            Some(url) => Secret::new(url),
            None => Secret::new(format!("sqlite:{}", database.display())),
        };
        let zone = match self.text("timezone") {
            Some(name) => Zone::named(name)?,
            None => Zone::system(),
        };
        if self.text("employee_jwt_secret").is_some()
            && self.text("employee_jwt_secret") == self.text("admin_jwt_secret")
        {
            return Err(refused("employee_jwt_secret and admin_jwt_secret must be two different keys"));
        }
        let gateway = self.gateway()?;
        let roles = self.text("roles").unwrap_or("employee,admin,gateway,worker,scheduler");
        let employee = self.side("employee", "public_url", 12, true)?;
        let admin = self.side("admin", "admin_public_url", 8, false)?;
        let embed = self.embed(&[&employee.public_url, &admin.public_url])?;
        let roles: Vec<Role> = kind::list(roles).iter().filter_map(|r| role(r)).collect();
        Ok(Config {
            admin,
            employee_jwt_secret: self.secret("employee_jwt_secret"),
            admin_jwt_secret: self.secret("admin_jwt_secret"),
            master_key: self.secret("master_key"),
            bootstrap_email: self.text("bootstrap_admin_email").map(str::parse).transpose()?,
            bootstrap_password: self.secret("bootstrap_admin_password"),
            proxy: self.proxy()?,
            trusted_proxies: self.text("trusted_proxies").and_then(kind::networks).unwrap_or_default(),
            webhook_allow_private: self.text("webhook_allow_private") == Some("true"),
            metrics_token: self.secret("metrics_token"),
            log: self.text("log").unwrap_or("info").to_owned(),
            log_format: self.text("log_format").map(str::to_owned),
            webchat: self.webchat(&employee, roles.contains(&Role::Employee)),
            roles,
            mfa: people::second_factor::Policy {
                required: self.text("mfa_required").map(kind::list).unwrap_or_default(),
                after_sso: self.text("mfa_after_sso") == Some("true"),
            },
            audit_retention_days: self.number("audit_retention_days").unwrap_or(90),
            socket_memory: self.socket_memory(),
            assistants: self.assistants(&gateway, vec![employee.public_url.origin(), embed.gateway_origin.clone()])?,
            employee,
            embed,
            bot_api_url: self.text("bot_api_url").unwrap_or(remote::bot::PUBLIC).to_owned(),
            gateway,
            task_timing: self.task_timing(),
            data_dir,
            database_url,
            zone,
        })
    }

    fn side(&self, side: &'static str, public_url: &str, token_hours: i64, auto_create: bool) -> Result<SideConfig> {
        let named = |what: &str| self.text(&format!("{side}_{what}"));
        let listen_name = format!("{side}_listen");
        let listen = match self.text(&listen_name).map(str::parse) {
            Some(address) => address.map_err(Error::internal)?,
            None => setting::default_address(&listen_name).ok_or_else(|| Error::internal("no default address"))?,
        };
        let default_url = format!("http://{listen}");
        let public_url = PublicUrl::parse(self.text(public_url).unwrap_or(&default_url))?;
        let oidc = match named("oidc_issuer") {
            Some(issuer) => Some(sso::Config {
                issuer: issuer.to_owned(),
                client_id: self.needed(&format!("{side}_oidc_client_id"), "an issuer is set")?.to_owned(),
                client_secret: Secret::new(self.needed(&format!("{side}_oidc_client_secret"), "an issuer is set")?),
                redirect_url: named("oidc_redirect_url")
                    .map_or_else(|| public_url.join("/api/v1/auth/sso/callback"), str::to_owned),
                scopes: named("oidc_scopes").unwrap_or(sso::SCOPES).to_owned(),
            }),
            None => None,
        };
        Ok(SideConfig {
            listen,
            public_url,
            token_hours: self.number(&format!("{side}_token_hours")).unwrap_or(token_hours),
            oidc,
            newcomers: Newcomers {
                welcome: named("oidc_auto_create").map_or(auto_create, |v| v == "true"),
                domains: named("oidc_domains").map(kind::list).unwrap_or_default(),
                claim: named("oidc_claim").and_then(kind::claim),
            },
        })
    }

    /// A process that serves employees asks its own listener; another one asks as people do.
    fn webchat(&self, employee: &SideConfig, is_here: bool) -> Webchat {
        let employee_url = match is_here {
            true => format!("http://{}", gateway::reached(employee.listen)),
            false => employee.public_url.join("").trim_end_matches('/').to_owned(),
        };
        Webchat { employee_url, is_paid: self.text("guardian_webchat_paid") == Some("true") }
    }

    fn socket_memory(&self) -> usize {
        let set = self.number("socket_memory_mib").and_then(|n| usize::try_from(n).ok());
        set.map_or(remote::memory::DEFAULT, |mib| mib << 20)
    }

    fn task_timing(&self) -> Timing {
        let usual = Timing::default();
        let seconds = |name| self.number(name).and_then(|n| u64::try_from(n).ok()).map(Duration::from_secs);
        let slots = self.number("task_slots").and_then(|n| usize::try_from(n).ok());
        Timing {
            lease: seconds("task_lease_seconds").unwrap_or(usual.lease),
            slots: slots.unwrap_or(usual.slots),
            ..usual
        }
    }

    /// `origins` are those of the pages that open an assistant's WebSocket.
    fn assistants(&self, gateway: &GatewayConfig, origins: Vec<String>) -> Result<Defaults> {
        let usual = Defaults::default();
        let version = match self.text("openclaw_version") {
            Some(text) => {
                let problem = |why: String| refused(&format!("TIDEPOOL_OPENCLAW_VERSION (openclaw_version): {why}"));
                text.parse().map_err(problem)?
            }
            None => usual.version,
        };
        Ok(Defaults {
            version,
            npm_registry: self.text("npm_registry").map_or(usual.npm_registry, str::to_owned),
            npm_registry_allow_http: self.text("npm_registry_allow_http") == Some("true"),
            local_server: self.text("local_server") == Some("true"),
            weak_cells: self.text("weak_cells") == Some("true"),
            npm_checksums: self.npm_checksums()?,
            gateway_url: gateway.public_url.clone(),
            origins,
            ..Defaults::default()
        })
    }

    fn npm_checksums(&self) -> Result<Vec<String>> {
        let sums = self.text("npm_checksums").unwrap_or_default().split(',').map(str::trim);
        let sums: Vec<String> = sums.filter(|sum| !sum.is_empty()).map(str::to_owned).collect();
        for sum in &sums {
            let problem = |e: Error| refused(&format!("TIDEPOOL_NPM_CHECKSUMS (npm_checksums): {}", e.client));
            fleet::assistant::install::hex_sum(sum).map_err(problem)?;
        }
        Ok(sums)
    }

    fn proxy(&self) -> Result<Option<ProxyConfig>> {
        let (issuer, jwks_url) = (self.text("verify_issuer"), self.text("verify_jwks_url"));
        if issuer.is_none() && jwks_url.is_none() {
            return Ok(None);
        }
        Ok(Some(ProxyConfig {
            issuer: self.needed("verify_issuer", "verify_jwks_url is set")?.to_owned(),
            jwks_url: self.needed("verify_jwks_url", "verify_issuer is set")?.to_owned(),
            audience: self.text("verify_audience").map(str::to_owned),
        }))
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    fn secret(&self, name: &str) -> Option<Secret> {
        self.text(name).map(Secret::new)
    }

    fn number(&self, name: &str) -> Option<i64> {
        self.text(name).and_then(|n| n.parse().ok())
    }

    fn needed(&self, name: &str, because: &str) -> Result<&str> {
        let setting = Setting::find(name);
        let (env, example) = setting.map_or((name, ""), |s| (s.env, s.example));
        self.text(name).ok_or_else(|| refused(&format!("{env} ({name}) is missing: {because}; for example {example}")))
    }
}

fn role(name: &str) -> Option<Role> {
    Some(match name {
        "employee" => Role::Employee,
        "admin" => Role::Admin,
        "gateway" => Role::Gateway,
        "worker" => Role::Worker,
        "scheduler" => Role::Scheduler,
        _ => return None,
    })
}

/// The configured file, or the default one if it exists.
fn file(named: Option<PathBuf>) -> Result<Option<PathBuf>> {
    match named {
        Some(file) if file.is_file() => Ok(Some(file)),
        Some(file) => Err(refused(&format!("the configuration file {} does not exist", file.display()))),
        None => Ok(Some(PathBuf::from("tidepool.toml")).filter(|f| f.is_file())),
    }
}

fn read_file(file: &Path) -> Result<Vec<(&'static Setting, String)>> {
    let shown = file.display();
    let text = std::fs::read_to_string(file).map_err(|e| refused(&format!("{shown}: {e}")))?;
    let table: toml::Table = text.parse().map_err(|e: toml::de::Error| {
        let line = e.span().map_or(0, |span| text[..span.start].matches('\n').count() + 1);
        refused(&format!("{shown}, line {line}: {}", e.message()))
    })?;
    let mut flat = vec![];
    flatten("", &table, &mut flat)?;
    let find = |(name, value): (String, String)| match Setting::find(&name) {
        Some(setting) => Ok((setting, value)),
        None => Err(unknown(&name, &format!("setting in {shown}"), SETTINGS.iter().map(|s| s.name))),
    };
    flat.into_iter().map(find).collect()
}

/// `[employee] oidc.issuer = "…"` is `employee_oidc_issuer`; a list is its parts with commas between.
fn flatten(prefix: &str, table: &toml::Table, out: &mut Vec<(String, String)>) -> Result<()> {
    for (key, value) in table {
        let name = if prefix.is_empty() { key.clone() } else { format!("{prefix}_{key}") };
        let text = |value: &toml::Value| match value {
            toml::Value::String(text) => Some(text.clone()),
            toml::Value::Integer(n) => Some(n.to_string()),
            toml::Value::Boolean(b) => Some(b.to_string()),
            _ => None,
        };
        let odd = || refused(&format!("{name}: must be a text, a number, true, false or a list of texts"));
        match value {
            toml::Value::Table(inner) => flatten(&name, inner, out)?,
            toml::Value::Array(parts) => {
                let parts: Option<Vec<String>> = parts.iter().map(text).collect();
                out.push((name.clone(), parts.ok_or_else(odd)?.join(",")));
            }
            other => out.push((name.clone(), text(other).ok_or_else(odd)?)),
        }
    }
    Ok(())
}

fn malformed(setting: &Setting, value: &str, source: &Source, problem: &str) -> Error {
    let name = match source {
        Source::File(file) => format!("{} in {}", setting.name, file.display()),
        Source::Environment => setting.env.to_owned(),
        Source::Flag => format!("--{}", setting.name.replace('_', "-")),
    };
    let shown = if setting.kind.is_secret() { String::new() } else { format!(" {value:?}") };
    refused(&format!("{name}:{shown} {problem}; for example {}", setting.example))
}

fn unknown(name: &str, what: &str, known: impl Iterator<Item = &'static str>) -> Error {
    let nearest = known.min_by_key(|k| distance(name, k)).unwrap_or_default();
    refused(&format!("{name}: unknown {what}; did you mean {nearest}?"))
}

/// The edit distance between two names.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let next = (diagonal + usize::from(x != *y)).min(row[j] + 1).min(row[j + 1] + 1);
            diagonal = std::mem::replace(&mut row[j + 1], next);
        }
    }
    row[b.len()]
}

fn refused(line: &str) -> Error {
    Error::new(ErrorKind::BadRequest, line.to_owned())
}
