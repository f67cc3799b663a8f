//! This process among the others that serve the same database: they agree on the zone in which days begin.

use std::sync::Arc;
use std::time::Duration;

use base::Result;
use jiff::{SignedDuration, Timestamp};
use store::lease::Term;
use store::replica;
use store::usage::{self, Rebuild};

use crate::App;

/// A process that says nothing for so long is gone.
const LEASE: SignedDuration = SignedDuration::from_secs(30);
const RENEW: Duration = Duration::from_secs(10);
/// The name of its heartbeat.
const LOOP: &str = "replica";
/// After a step of the rebuild that failed.
const AGAIN: Duration = Duration::from_secs(1);

/// A place among the processes that serve.
pub struct Replica {
    name: String,
    version: &'static str,
    started_at: Timestamp,
}

/// Joins the others. Refused where one of them has another zone. Where the days are of another, they are to be rebuilt: `keep` does.
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

    /// Stays among them and rebuilds the days, for as long as it runs.
    pub async fn keep(&self, app: &Arc<App>) {
        tokio::join!(self.renew(app), rebuild(app));
    }

    async fn renew(&self, app: &App) {
        app.db.heartbeats.beat(LOOP);
        loop {
            tokio::time::sleep(RENEW).await;
            match self.agree(app).await {
                Ok(()) => app.db.heartbeats.beat(LOOP),
                // One that was frozen finds the others with another zone: without its heartbeat it is not ready.
                Err(error) => tracing::error!(%error, "this process is not among those that serve"),
            }
        }
    }

    /// One that was frozen may find its place free, and the days of another zone: it must be started with that.
    async fn agree(&self, app: &App) -> store::Result<()> {
        self.announce(app).await?;
        match usage::zone_of_days(&app.db).await? {
            Some(theirs) if theirs != app.zone.name() => {
                Err(store::Error::OtherZone { ours: app.zone.name().to_owned(), theirs })
            }
            _ => Ok(()),
        }
    }

    /// Leaves the others.
    pub async fn leave(&self, app: &App) -> Result<()> {
        Ok(replica::leave(&app.db, &self.name).await?)
    }
}

/// Rebuilds the days while everything else goes on.
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
