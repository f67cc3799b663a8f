//! The adapter against the real LiteLLM with its database (`make test-real`): what the simulated one is measured by.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use base::Secret;
use sim::llm::tables::Tables;
use sim::llm::{Running, one_api};
use store::foreign::{ForeignLog, LogKind};
use testkit::{trace, until_ok_within};
use tokio::process::{Child, Command};

use crate::bench::{Bench, Server, database, open, setup};
use crate::{keys, log, odd};

/// It starts in 15 s, and in more on a busy machine.
const START: Duration = Duration::from_secs(150);

/// A LiteLLM that runs, and the provider behind it.
pub struct LiteLlm {
    /// It is killed when this is dropped.
    _process: Child,
    provider: Running,
    _folder: tempfile::TempDir,
}

/// The models and prices of the simulated one.
fn config(provider: &str, key: &str, master: &str) -> String {
    let model = |name: &str, input: &str, output: &str| {
        format!(
            "  - model_name: {name}\n    litellm_params: {{model: openai/{name}, api_base: {provider}/v1, api_key: {key}, \
             input_cost_per_token: {input}, output_cost_per_token: {output}}}\n"
        )
    };
    let models = [
        model("gpt-4o-mini", "0.00000015", "0.0000006"),
        model("gpt-4o", "0.0000025", "0.00001"),
        model("echo", "0.0000025", "0.00001"),
    ];
    format!("model_list:\n{}general_settings:\n  master_key: {master}\n", models.concat())
}

/// The migrations that LiteLLM brings, in their order.
fn migrations(folder: &Path) -> Vec<PathBuf> {
    let versions = std::fs::read_dir(folder.join("venv/lib")).unwrap();
    let python = versions.map(|entry| entry.unwrap().path()).find(|path| path.join("site-packages").exists()).unwrap();
    let all = std::fs::read_dir(python.join("site-packages/litellm_proxy_extras/migrations")).unwrap();
    let mut files: Vec<PathBuf> = all.map(|entry| entry.unwrap().path().join("migration.sql")).collect();
    files.retain(|file| file.exists());
    files.sort();
    files
}

/// Applies them with psql: they hold functions, and indexes that are made beside other work.
async fn migrate(folder: &Path, url: &Secret) {
    let installed =
        std::fs::read_dir("/usr/lib/postgresql").unwrap().map(|entry| entry.unwrap().path().join("bin/psql"));
    let psql = installed.into_iter().find(|psql| psql.exists()).unwrap();
    let mut command = Command::new(psql);
    command.args(["--quiet", "--no-psqlrc", "--set", "ON_ERROR_STOP=1", "--dbname", url.expose()]);
    for file in migrations(folder) {
        command.arg("--file").arg(file);
    }
    let done = command.output().await.unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// Starts it on a database of its own; `None`, a counted skip, where it is not installed.
async fn start(case: &str) -> Option<Bench> {
    let Ok(folder) = std::env::var("TIDEPOOL_TEST_LITELLM") else {
        trace::skip(case, "no LiteLLM: TIDEPOOL_TEST_LITELLM is not set");
        return None;
    };
    let folder = PathBuf::from(folder);
    let (url, _) = database(Server::Postgres, case).await?;
    let tables = Tables::open(&url).await.unwrap();
    migrate(&folder, &url).await;
    let own = tempfile::tempdir().unwrap();
    let provider_database = Secret::new(format!("sqlite:{}", own.path().join("provider.db").display()));
    let provider = one_api::start(one_api::Options::new(provider_database)).await.unwrap();
    let key = open("one-api", &provider.url, &provider.admin_token);
    let key = key.create_key(&crate::bench::new_key("litellm", None)).await.unwrap().key.unwrap();
    let master = Secret::new(format!("sk-{}", base::id::fresh().replace('-', "")));
    for secret in [provider.admin_token.expose(), key.expose(), master.expose()] {
        trace::used_secret(secret);
    }
    let file = own.path().join("litellm.yaml");
    std::fs::write(&file, config(&provider.url, key.expose(), master.expose())).unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let logged = std::fs::File::create(own.path().join("litellm.log")).unwrap();
    let venv = folder.join("venv/bin");
    let path = format!("{}:{}", venv.display(), std::env::var("PATH").unwrap_or_default());
    let process = Command::new(venv.join("litellm"))
        .args(["--config", file.to_str().unwrap(), "--host", "127.0.0.1", "--port", &port.to_string()])
        .current_dir(own.path())
        .env_clear()
        .env("PATH", path)
        .env("HOME", own.path())
        .env("DATABASE_URL", url.expose())
        .env("PRISMA_QUERY_ENGINE_BINARY", folder.join("engine.sh"))
        .env("PRISMA_OFFLINE_MODE", "true")
        .env("DISABLE_SCHEMA_UPDATE", "true")
        .env("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        .env("LITELLM_SALT_KEY", master.expose())
        // Spend is written every ten seconds as a rule.
        .env("PROXY_BATCH_WRITE_AT", "1")
        .stdin(Stdio::null())
        .stdout(logged.try_clone().unwrap())
        .stderr(logged)
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let address = format!("http://127.0.0.1:{port}");
    let gateway = open("litellm", &address, &master);
    until_ok_within(START, "LiteLLM is ready", async || {
        let health = gateway.health().await;
        if health.ok { Ok(()) } else { Err(health.detail) }
    })
    .await;
    let log = ForeignLog::open(LogKind::find("litellm").unwrap(), &url).await.unwrap();
    let twin = open("litellm", &address, &master);
    let real = LiteLlm { _process: process, provider, _folder: own };
    let running = Running::elsewhere(address, master, url.clone(), tables);
    Some(Bench::real(setup("litellm", Server::Postgres), (gateway, twin), (running, log), real, url))
}

impl LiteLlm {
    /// What the last case left is gone, but for what LiteLLM remembers of keys.
    pub async fn clear(&self, tables: &Tables) {
        for table in ["VerificationToken", "DeletedVerificationToken", "SpendLogs", "DailyUserSpend"] {
            tables.run(&format!("DELETE FROM \"LiteLLM_{table}\""), vec![]).await.unwrap();
        }
        // Whoever was switched off by a case is on again.
        self.provider.switches.set(|s| &s.upstream_down, false);
    }

    /// The provider behind it refuses connections.
    pub fn provider(&self) -> &Running {
        &self.provider
    }
}

macro_rules! cases {
    ($bench:ident: $($module:ident::$name:ident)*) => {$(
        eprintln!(concat!(stringify!($module), "::", stringify!($name)));
        $bench.clear().await;
        $module::$name::case(&$bench).await;
    )*};
}

#[tokio::test(flavor = "multi_thread")]
async fn litellm_does_what_the_contract_says() {
    let Some(bench) = start("real::litellm_does_what_the_contract_says").await else { return };
    cases! { bench:
        keys::a_key_is_made_once_and_read_again
        keys::many_at_once_make_one
        keys::a_disabled_key_does_nothing_and_loses_nothing
        keys::a_deleted_key_is_gone_and_its_name_is_free
        keys::a_key_and_its_account_are_charged
        keys::a_spent_key_says_so
        keys::any_name_is_found_as_it_was_given
        keys::of_several_the_oldest_enabled_stays
        keys::every_key_is_listed_once
        odd::it_is_well_and_names_its_models
        odd::a_wrong_management_token_is_an_error_not_an_empty_list
        odd::a_gateway_that_is_not_there_says_nothing_of_keys
        log::every_request_is_a_row
        log::failures_are_rows_where_the_gateway_writes_them
    }
}
