//! Every setting: its name, its environment variable, its kind and its meaning. The file, the environment, the flags
//! and `tidepool settings` all use this one list.

use std::net::SocketAddr;

use remote::llm::KINDS;

use super::kind::Kind;

pub struct Setting {
    /// The key in the file; with dashes, the flag.
    pub name: &'static str,
    pub env: &'static str,
    pub kind: Kind,
    /// A description of the default.
    pub default: &'static str,
    pub example: &'static str,
    pub about: &'static str,
}

impl Setting {
    pub fn find(name: &str) -> Option<&'static Setting> {
        SETTINGS.iter().find(|s| s.name == name)
    }

    pub fn by_env(env: &str) -> Option<&'static Setting> {
        SETTINGS.iter().find(|s| s.env == env)
    }

    pub fn help(&self) -> String {
        format!("{} [default: {}] [env: {}]", self.about, self.default, self.env)
    }
}

/// The embedded gateway, and every kind that is reached over the network.
const GATEWAY_KINDS: &[&str] = &{
    let mut names = ["embedded"; KINDS.len() + 1];
    let mut at = 0;
    while at < KINDS.len() {
        names[at + 1] = KINDS[at].name;
        at += 1;
    }
    names
};

macro_rules! settings {
    ($($name:literal $env:literal $kind:expr, $default:literal, $example:literal, $about:literal;)*) => {
        pub const SETTINGS: &[Setting] = &[$(Setting {
            name: $name, env: $env, kind: $kind, default: $default, example: $example, about: $about,
        }),*];
    };
}

settings! {
    "data_dir" "TIDEPOOL_DATA_DIR" Kind::Text, "./data", "/var/lib/tidepool", "where the embedded database and generated keys live";
    "database_url" "TIDEPOOL_DATABASE_URL" Kind::DatabaseUrl, "tidepool.db in the data folder", "postgres://tidepool@db.internal/tidepool", "sqlite:… or postgres://…";
    "employee_listen" "TIDEPOOL_EMPLOYEE_LISTEN" Kind::Address, "127.0.0.1:8080", "0.0.0.0:8080", "where the employee API and web app listen";
    "admin_listen" "TIDEPOOL_ADMIN_LISTEN" Kind::Address, "127.0.0.1:8081", "0.0.0.0:8081", "where the administration API and console listen";
    "timezone" "TIDEPOOL_TIMEZONE" Kind::Zone, "the system's zone", "Europe/Berlin", "the IANA zone in which days begin";
    "employee_jwt_secret" "TIDEPOOL_EMPLOYEE_JWT_SECRET" Kind::TokenKey, "generated once into the data folder", "the output of `openssl rand -base64 32`", "signs employees' tokens";
    "admin_jwt_secret" "TIDEPOOL_ADMIN_JWT_SECRET" Kind::TokenKey, "generated once into the data folder", "the output of `openssl rand -base64 32`", "signs administrators' tokens";
    "master_key" "TIDEPOOL_MASTER_KEY" Kind::MasterKey, "generated once into the data folder", "the output of `openssl rand -base64 32`", "encrypts stored secrets";
    "employee_token_hours" "TIDEPOOL_EMPLOYEE_TOKEN_HOURS" Kind::Number(1, 8760), "12", "12", "how long an employee's token is good";
    "admin_token_hours" "TIDEPOOL_ADMIN_TOKEN_HOURS" Kind::Number(1, 8760), "8", "8", "how long an administrator's token is good";
    "bootstrap_admin_email" "TIDEPOOL_BOOTSTRAP_ADMIN_EMAIL" Kind::Email, "admin@tidepool.local", "admin@example.com", "the first super_admin, made when there is no administrator";
    "bootstrap_admin_password" "TIDEPOOL_BOOTSTRAP_ADMIN_PASSWORD" Kind::Password, "generated and printed once", "a password of 8 or more characters", "the first super_admin's password";
    "gateway_kind" "TIDEPOOL_GATEWAY_KIND" Kind::OneOf(GATEWAY_KINDS), "embedded", "litellm", "which LLM gateway is used";
    "gateway_listen" "TIDEPOOL_GATEWAY_LISTEN" Kind::Address, "127.0.0.1:8082", "0.0.0.0:8082", "where the embedded gateway listens";
    "gateway_url" "TIDEPOOL_GATEWAY_URL" Kind::HttpUrl, "the embedded gateway", "https://llm.example.com", "base URL of the LLM gateway";
    "gateway_public_url" "TIDEPOOL_GATEWAY_PUBLIC_URL" Kind::HttpUrl, "= gateway_url", "https://llm.example.com", "the gateway's address as assistants see it";
    "gateway_admin_token" "TIDEPOOL_GATEWAY_ADMIN_TOKEN" Kind::Secret, "none", "the gateway's management token", "manages sub keys at the gateway";
    "gateway_log_url" "TIDEPOOL_GATEWAY_LOG_URL" Kind::LogUrl, "the embedded gateway's", "mysql://reader:…@db.internal/oneapi", "the database that holds the gateway's request log";
    "gateway_body_mib" "TIDEPOOL_GATEWAY_BODY_MIB" Kind::Number(1, 64), "8", "32", "MiB that a request to the embedded gateway may have, also when it is unpacked";
    "keys_off_without_log" "TIDEPOOL_KEYS_OFF_WITHOUT_LOG" Kind::Bool, "false", "true", "switch the sub keys of users with a daily quota off while the log of a foreign gateway says nothing, since the quota cannot be counted";
    "employee_oidc_issuer" "TIDEPOOL_EMPLOYEE_OIDC_ISSUER" Kind::HttpUrl, "none: no SSO", "https://id.example.com", "OpenID Connect issuer for employees";
    "employee_oidc_client_id" "TIDEPOOL_EMPLOYEE_OIDC_CLIENT_ID" Kind::Text, "none", "tidepool", "client id at that issuer";
    "employee_oidc_client_secret" "TIDEPOOL_EMPLOYEE_OIDC_CLIENT_SECRET" Kind::Secret, "none", "the client's secret", "client secret at that issuer";
    "employee_oidc_redirect_url" "TIDEPOOL_EMPLOYEE_OIDC_REDIRECT_URL" Kind::HttpUrl, "<public_url>/api/v1/auth/sso/callback", "https://ai.example.com/api/v1/auth/sso/callback", "where the issuer sends employees back to";
    "employee_oidc_auto_create" "TIDEPOOL_EMPLOYEE_OIDC_AUTO_CREATE" Kind::Bool, "true", "false", "make an account at an employee's first SSO login";
    "employee_oidc_domains" "TIDEPOOL_EMPLOYEE_OIDC_DOMAINS" Kind::Domains, "any", "example.com,example.org", "e-mail domains for which accounts are made";
    "admin_oidc_issuer" "TIDEPOOL_ADMIN_OIDC_ISSUER" Kind::HttpUrl, "none: no SSO", "https://id.example.com", "OpenID Connect issuer for administrators";
    "admin_oidc_client_id" "TIDEPOOL_ADMIN_OIDC_CLIENT_ID" Kind::Text, "none", "tidepool-admin", "client id at that issuer";
    "admin_oidc_client_secret" "TIDEPOOL_ADMIN_OIDC_CLIENT_SECRET" Kind::Secret, "none", "the client's secret", "client secret at that issuer";
    "admin_oidc_redirect_url" "TIDEPOOL_ADMIN_OIDC_REDIRECT_URL" Kind::HttpUrl, "<admin_public_url>/api/v1/auth/sso/callback", "https://admin.example.com/api/v1/auth/sso/callback", "where the issuer sends administrators back to";
    "admin_oidc_auto_create" "TIDEPOOL_ADMIN_OIDC_AUTO_CREATE" Kind::Bool, "false", "true", "make an account at an administrator's first SSO login; needs domains or a claim";
    "admin_oidc_domains" "TIDEPOOL_ADMIN_OIDC_DOMAINS" Kind::Domains, "none", "example.com", "e-mail domains for which administrators are made";
    "admin_oidc_scopes" "TIDEPOOL_ADMIN_OIDC_SCOPES" Kind::Text, "openid email profile", "openid email profile groups", "what is asked of the issuer; some tell groups only when asked";
    "admin_oidc_claim" "TIDEPOOL_ADMIN_OIDC_CLAIM" Kind::Claim, "none", "groups=tidepool-admins", "what the issuer must say of somebody who is made an administrator";
    "mfa_required" "TIDEPOOL_MFA_REQUIRED" Kind::SomeOf(&["super_admin", "admin", "operator", "auditor", "employee"]), "none", "super_admin,admin", "roles that must have a second factor, `employee` among them";
    "mfa_after_sso" "TIDEPOOL_MFA_AFTER_SSO" Kind::Bool, "false: the identity provider is responsible", "true", "ask for the second factor after SSO too";
    "verify_issuer" "TIDEPOOL_VERIFY_ISSUER" Kind::Text, "none", "https://proxy.example.com", "issuer of the identity proxy's tokens (POST /auth/verify)";
    "verify_jwks_url" "TIDEPOOL_VERIFY_JWKS_URL" Kind::HttpUrl, "none", "https://proxy.example.com/certs", "the identity proxy's keys";
    "verify_audience" "TIDEPOOL_VERIFY_AUDIENCE" Kind::Text, "none = any, `check` warns", "tidepool", "audience that the proxy's tokens must be for";
    "bot_api_url" "TIDEPOOL_BOT_API_URL" Kind::HttpUrl, "the platform's public address", "https://bots.example.com", "base URL of the bot platform";
    "public_url" "TIDEPOOL_PUBLIC_URL" Kind::PublicUrl, "http://<employee_listen>", "https://ai.example.com", "how people reach the employee side; may carry a path";
    "admin_public_url" "TIDEPOOL_ADMIN_PUBLIC_URL" Kind::PublicUrl, "http://<admin_listen>", "https://admin.example.com", "how people reach the administration side; may carry a path";
    "embed_listen" "TIDEPOOL_EMBED_LISTEN" Kind::Address, "127.0.0.1:8083", "0.0.0.0:8083", "where the embedded chat window listens";
    "embed_url" "TIDEPOOL_EMBED_URL" Kind::WindowUrl, "http://*.localhost:<port> on loopback, else http://<embed_listen>", "https://*.window.example.com", "the embedded chat windows' address; `*` is a label of each instance, for an origin of its own; without it all share one";
    "embed_enabled" "TIDEPOOL_EMBED_ENABLED" Kind::Bool, "true", "false", "offer instances' own pages in the embedded chat window";
    "trusted_proxies" "TIDEPOOL_TRUSTED_PROXIES" Kind::Networks, "none", "127.0.0.1,10.0.0.0/8", "addresses whose X-Forwarded-For counts";
    "provider_anthropic_url" "TIDEPOOL_PROVIDER_ANTHROPIC_URL" Kind::HttpUrl, "the public address", "https://anthropic.internal", "provider of the embedded gateway";
    "provider_anthropic_key" "TIDEPOOL_PROVIDER_ANTHROPIC_KEY" Kind::Secret, "none", "the provider's API key", "key at that provider";
    "provider_openai_url" "TIDEPOOL_PROVIDER_OPENAI_URL" Kind::HttpUrl, "the public address", "https://openai.internal", "provider of the embedded gateway";
    "provider_openai_key" "TIDEPOOL_PROVIDER_OPENAI_KEY" Kind::Secret, "none", "the provider's API key", "key at that provider";
    "provider_google_url" "TIDEPOOL_PROVIDER_GOOGLE_URL" Kind::HttpUrl, "the public address", "https://google.internal", "provider of the embedded gateway";
    "provider_google_key" "TIDEPOOL_PROVIDER_GOOGLE_KEY" Kind::Secret, "none", "the provider's API key", "key at that provider";
    "provider_echo" "TIDEPOOL_PROVIDER_ECHO" Kind::Bool, "false", "true", "models whose provider has no key are answered by the gateway itself: it repeats what was said";
    "providers_file" "TIDEPOOL_PROVIDERS_FILE" Kind::Text, "none", "/etc/tidepool/providers.toml", "a file with more providers of the embedded gateway, TOML or JSON";
    "provider_allow_local" "TIDEPOOL_PROVIDER_ALLOW_LOCAL" Kind::Bool, "false", "true", "providers that are made in the console at loopback and private addresses, and over http";
    "webhook_allow_private" "TIDEPOOL_WEBHOOK_ALLOW_PRIVATE" Kind::Bool, "false", "true", "alert webhooks to loopback and private addresses";
    "metrics_token" "TIDEPOOL_METRICS_TOKEN" Kind::Secret, "none: loopback only", "a long random text", "bearer token of /metrics";
    "log" "TIDEPOOL_LOG" Kind::LogFilter, "info", "info,api=debug", "what is logged";
    "log_format" "TIDEPOOL_LOG_FORMAT" Kind::OneOf(&["pretty", "json"]), "pretty on a terminal, else json", "json", "how it is logged";
    "openclaw_version" "TIDEPOOL_OPENCLAW_VERSION" Kind::Text, "the version the suite ran with", "2026.9.6", "what provisioning installs on a server";
    "npm_registry" "TIDEPOOL_NPM_REGISTRY" Kind::HttpUrl, "npm's default", "https://npm.example.com", "where provisioning installs from";
    "npm_registry_allow_http" "TIDEPOOL_NPM_REGISTRY_ALLOW_HTTP" Kind::Bool, "false", "true", "install from a registry on the network without TLS";
    "weak_cells" "TIDEPOOL_WEAK_CELLS" Kind::Bool, "false", "true", "assistants also on servers that cannot do what a cell needs, without it";
    "npm_checksums" "TIDEPOOL_NPM_CHECKSUMS" Kind::Text, "none", "sha512-…,sha512-…", "archives of Node and npm that are taken besides those that are known, by their checksums";
    "local_server" "TIDEPOOL_LOCAL_SERVER" Kind::Bool, "false", "true", "let the machine itself be added as a server (`host` is `local`): whoever manages servers becomes root on it";
    "guardian_webchat_paid" "TIDEPOOL_GUARDIAN_WEBCHAT_PAID" Kind::Bool, "false", "true", "guardian_webchat sends a short chat with the platform's own key at every check, 288 a day, which is paid for";
    "roles" "TIDEPOOL_ROLES" Kind::SomeOf(&["employee", "admin", "gateway", "worker", "scheduler"]), "employee,admin,gateway,worker,scheduler", "employee,admin", "what this process runs; several processes share one PostgreSQL";
    "task_lease_seconds" "TIDEPOOL_TASK_LEASE_SECONDS" Kind::Number(3, 3600), "60", "60", "a task whose worker is silent this long is taken up again";
    "task_slots" "TIDEPOOL_TASK_SLOTS" Kind::Number(1, 1000), "16", "32", "tasks that this process runs at the same time";
    "socket_memory_mib" "TIDEPOOL_SOCKET_MEMORY_MIB" Kind::Number(16, 65536), "256", "1024", "MiB that unfinished answers of servers and assistants may hold together";
    "audit_retention_days" "AUDIT_RETENTION_DAYS" Kind::Number(1, 36500), "90", "365", "how long audit entries and request logs are kept";
}

/// The default address of a listener.
pub fn default_address(name: &str) -> Option<SocketAddr> {
    Setting::find(name).and_then(|s| s.default.parse().ok())
}
