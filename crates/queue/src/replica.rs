//! This process as one of the replicas that serve the same database. All of them must use the same time zone for days.

use std::sync::Arc;
use std::time::Duration;

use base::Result;
use jiff::{SignedDuration, Timestamp};
use store::lease::Term;
use store::replica;
use store::usage::{self, Rebuild};

use crate::App;

/// A replica that does not renew for this long is considered gone.
const LEASE: SignedDuration = SignedDuration::from_secs(30);
const RENEW: Duration = Duration::from_secs(10);
/// The name of the heartbeat.
const LOOP: &str = "replica";
/// The wait after a step of the rebuild failed.
const AGAIN: Duration = Duration::from_secs(1);

/// This process as a registered replica.
pub struct Replica {
    name: String,
    version: &'static str,
    started_at: Timestamp,
}

/// Registers this process. Fails if another replica uses a different time zone. If the daily sums are of a different
/// zone, marks them for a rebuild, which `keep` does.
pub async fn join(app: &App, version: &'static str) -> store::Result<Replica> {
    let replica = Replica { name: base::id::fresh(), version, started_at: app.clock.now() };
    replica.announce(app).await?;
    usage::begin_rebuild(&app.db, &app.zone).await?;
    Ok(replica)
}

impl Replica {
    async fn announce(&self, app: &App) -> store::Result<()> {
        let Replica { name, version, started_at } = self;
        let row = replica::Replica { name, zone: app.zone.name(), version, started_at: *started_at };
        replica::join(&app.db, &row, Term::of(&app.clock, LEASE)).await
    }

    /// Renews the lease and rebuilds the daily sums; runs until it is dropped.
    pub async fn keep(&self, app: &Arc<App>) {
        tokio::join!(self.renew(app), rebuild(app));
    }

    async fn renew(&self, app: &App) {
        app.db.heartbeats.beat(LOOP);
        loop {
            tokio::time::sleep(RENEW).await;
            match self.agree(app).await {
                Ok(()) => app.db.heartbeats.beat(LOOP),
                // This happens when the process was frozen and other replicas started with a different zone meanwhile.
                // Without its heartbeat it reports not ready.
                Err(error) => tracing::error!(%error, "this process is not among those that serve"),
            }
        }
    }

    /// Renews the lease and checks the zone of the daily sums. If the process was frozen, other replicas may have
    /// rebuilt the sums for a different zone: then it must be restarted with that zone.
    async fn agree(&self, app: &App) -> store::Result<()> {
        self.announce(app).await?;
        match usage::zone_of_days(&app.db).await? {
            Some(theirs) if theirs != app.zone.name() => {
                Err(store::Error::OtherZone { ours: app.zone.name().to_owned(), theirs })
            }
            _ => Ok(()),
        }
    }

    /// Unregisters this process.
    pub async fn leave(&self, app: &App) -> Result<()> {
        Ok(replica::leave(&app.db, &self.name).await?)
    }
}

/// Rebuilds the daily sums in the background.
async fn rebuild(app: &App) {
    if !app.db.days_pending() {
        return;
    }
    let began = std::time::Instant::now();
    tracing::info!(
        zone = app.zone.name(),
        "the days are rebuilt for another zone; quarters of an hour answer meanwhile"
    );
    loop {
        match usage::rebuild_some(&app.db, &app.zone).await {
            Ok(Rebuild::Pending) => {}
            Ok(Rebuild::Done) => break,
            Err(error) => {
                tracing::warn!(%error, "days could not be rebuilt; it is tried again");
                tokio::time::sleep(AGAIN).await;
            }
        }
    }
    tracing::info!(zone = app.zone.name(), seconds = began.elapsed().as_secs(), "the days are rebuilt");
}
