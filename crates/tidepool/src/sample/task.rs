//! The demo's servers do not exist, so what touches a server is only told there: the same types of tasks, with the same names and
//! steps, and nothing behind them.

use std::time::Duration;

use base::Result;
use base::id::{InstallId, InstanceId};
use domain::alert::DeliverAlert;
use domain::install::{self, Place, Wish};
use domain::key::ApplyKey;
use domain::repair::RepairInstance;
use domain::task::{
    ApplyMarketplaceItem, BootstrapProfessionInstance, CleanInstance, ClearWebhook, Context, InitInstance, Payload,
    PrepareServer, ProvisionInstance, RestartInstance, RetireInstance, Run, SyncKeyToInstance, SyncModelsToInstance,
    TaskType, UpgradeInstance, WriteConfig,
};
use serde::{Deserialize, Serialize};
use store::Tx;

/// How long a step of a real one takes, more or less.
const STEP: Duration = Duration::from_millis(700);

/// As `domain::task::TYPES`, without servers.
pub const TYPES: &[TaskType] = &[
    TaskType::run_by::<Told<InitInstance>>(),
    TaskType::run_by::<Told<BootstrapProfessionInstance>>(),
    TaskType::run_by::<Installed>(),
    TaskType::run_by::<Told<SyncModelsToInstance>>().also_named("sync_models"),
    TaskType::run_by::<Told<SyncKeyToInstance>>(),
    TaskType::run_by::<Told<ProvisionInstance>>(),
    TaskType::run_by::<Told<RetireInstance>>(),
    TaskType::run_by::<Told<CleanInstance>>(),
    TaskType::run_by::<Told<PrepareServer>>(),
    TaskType::run_by::<Told<RestartInstance>>(),
    TaskType::run_by::<Told<WriteConfig>>(),
    TaskType::run_by::<Told<UpgradeInstance>>(),
    TaskType::run_by::<Told<RepairInstance>>(),
    TaskType::run_by::<ApplyKey>(),
    TaskType::run_by::<DeliverAlert>(),
    TaskType::run_by::<ClearWebhook>(),
];

#[derive(Serialize, Deserialize)]
#[serde(transparent)]
struct Told<P>(P);

impl<P: Payload> Payload for Told<P> {
    const TYPE: &'static str = P::TYPE;

    async fn instance(&self, tx: &mut Tx) -> Result<Option<InstanceId>> {
        self.0.instance(tx).await
    }
}

impl<P: Payload> Run for Told<P> {
    async fn run(self, context: Context) -> Result<String> {
        let steps: &[&str] = match P::TYPE {
            "prepare_server" => &["Node installed", "OpenClaw installed"],
            "sync_models_to_instance" | "sync_key_to_instance" | "write_config" => {
                &["configuration written", "taken over without a restart"]
            }
            "retire_instance" => &["stopped", "unit removed", "what was there is kept for 7 days"],
            _ => &["configuration written", "BOOTSTRAP.md written", "stopped", "alive", "ready"],
        };
        tell(&context, steps).await
    }
}

#[derive(Serialize, Deserialize)]
#[serde(transparent)]
struct Installed(ApplyMarketplaceItem);

impl Payload for Installed {
    const TYPE: &'static str = ApplyMarketplaceItem::TYPE;

    async fn instance(&self, tx: &mut Tx) -> Result<Option<InstanceId>> {
        self.0.instance(tx).await
    }
}

impl Run for Installed {
    async fn run(self, context: Context) -> Result<String> {
        let (app, id) = (&context.app, InstallId::named(&self.0.install_id));
        let mut tx = app.db.begin().await?;
        let wish = install::started(app, &mut tx, &id).await?;
        tx.commit().await?;
        let (steps, places): (&[&str], Vec<Place>) = match wish {
            Wish::Nothing => return Ok("it is as it should be".into()),
            Wish::Install { files, .. } => (&["files written", "ready"], files.iter().map(Place::of).collect()),
            Wish::Remove { .. } => (&["files removed", "ready"], vec![]),
        };
        let told = tell(&context, steps).await?;
        let mut tx = app.db.begin().await?;
        install::finished(app, &mut tx, &id, &places).await?;
        tx.commit().await?;
        Ok(told)
    }
}

async fn tell(context: &Context, steps: &[&str]) -> Result<String> {
    for step in steps {
        tokio::time::sleep(STEP).await;
        context.log(&format!("{step} (simulated)")).await?;
    }
    Ok("simulated: the demo has no servers".into())
}
