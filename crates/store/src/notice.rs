//! Notices that a record changed, sent to all processes over PostgreSQL's LISTEN and NOTIFY; with SQLite, within its
//! one process. A notice may be lost, so every listener that acts on notices also polls from time to time.

use std::time::Duration;

use sqlx::postgres::{PgConnection, PgListener, PgPool};
use sqlx::{Acquire as _, Connection as _};
use tokio::sync::broadcast;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use crate::{Db, args, link};

pub(crate) const CHANNEL: &str = "tidepool";
/// The first word of a process's probe to itself; other processes ignore it.
const PROBE: &str = "probe";
/// The name of the relay loop's heartbeat.
const LOOP: &str = "notices";

/// The kind of record that changed, and its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub topic: Topic,
    pub id: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    Task,
    Instance,
    /// A sub key of the LLM gateway, or its permissions.
    Key,
    /// A provider of the embedded gateway, one of its keys, or what cools down.
    Provider,
    /// A run of a job began or ended.
    Job,
    /// A guardian event.
    Guardian,
    /// A server was measured.
    Metric,
    Alert,
    Repair,
    /// An employee's account or logins: some logins may have ended.
    User,
    /// Notices may have been lost, so anything may have changed. A process sends this only to itself.
    Anything,
}

impl Topic {
    const ALL: &[Topic] = &[
        Topic::Task,
        Topic::Instance,
        Topic::Key,
        Topic::Provider,
        Topic::Job,
        Topic::Guardian,
        Topic::Metric,
        Topic::Alert,
        Topic::Repair,
        Topic::User,
    ];

    fn as_str(self) -> &'static str {
        match self {
            Topic::Task => "task",
            Topic::Instance => "instance",
            Topic::Key => "key",
            Topic::Provider => "provider",
            Topic::Job => "job",
            Topic::Guardian => "guardian",
            Topic::Metric => "metric",
            Topic::Alert => "alert",
            Topic::Repair => "repair",
            Topic::User => "user",
            Topic::Anything => "anything",
        }
    }
}

impl Notice {
    pub fn new(topic: Topic, id: impl Into<String>) -> Notice {
        Notice { topic, id: id.into() }
    }

    pub(crate) fn to_text(&self) -> String {
        format!("{} {}", self.topic.as_str(), self.id)
    }

    fn from_text(text: &str) -> Option<Notice> {
        let (topic, id) = text.split_once(' ')?;
        let topic = Topic::ALL.iter().find(|t| t.as_str() == topic)?;
        Some(Notice::new(*topic, id))
    }
}

/// The state of the probe.
enum Probe {
    None,
    /// It is being sent. It may wait for a connection of the pool; that is no fault of the listener's connection.
    Leaving(JoinHandle<bool>),
    /// It was sent, and must arrive by this time.
    Sent(Instant),
}

impl Probe {
    /// Waits for the next change of the probe's state; true if it is overdue. Dropping this future loses nothing.
    async fn next(&mut self, limit: Duration) -> bool {
        match self {
            Probe::None => std::future::pending().await,
            Probe::Leaving(sending) => {
                let sent = sending.await.unwrap_or(false);
                *self = if sent { Probe::Sent(Instant::now() + limit) } else { Probe::None };
                false
            }
            Probe::Sent(until) => {
                tokio::time::sleep_until(*until).await;
                true
            }
        }
    }
}

impl Db {
    /// Receives all notices from now on.
    pub fn listen(&self) -> broadcast::Receiver<Notice> {
        self.notices.subscribe()
    }

    /// Relays the notices of other processes to our listeners; never returns. With SQLite there are no other processes.
    pub async fn relay_notices(&self) {
        let Some(pool) = self.postgres() else { return std::future::pending().await };
        self.heartbeats.beat(LOOP);
        loop {
            match self.listen_on(pool).await {
                Ok(listener) => {
                    // Notices that were sent before the connection was made are lost.
                    self.notices.send(Notice::new(Topic::Anything, "")).ok();
                    self.relaying.send_replace(true);
                    let error = self.relay_from(listener).await;
                    self.relaying.send_replace(false);
                    tracing::warn!(%error, "notices are not heard for a moment");
                }
                Err(error) => tracing::warn!(%error, "cannot listen for notices"),
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    async fn listen_on(&self, pool: &PgPool) -> sqlx::Result<PgListener> {
        let limit = self.limits.statement;
        let mut listener = PgListener::connect_with(pool).await?;
        // We reconnect ourselves, with a timeout.
        listener.eager_reconnect(false);
        match timeout(limit, listener.listen(CHANNEL)).await {
            Ok(listens) => listens.map(|()| listener),
            Err(_) => {
                self.discard(listener).await;
                Err(link::silent(limit))
            }
        }
    }

    /// Relays what this listener receives until it fails. A dead connection is as silent as a quiet one. So a probe is
    /// sent to ourselves from time to time, over another connection, and must arrive.
    async fn relay_from(&self, mut listener: PgListener) -> sqlx::Error {
        let text = format!("{PROBE} {}", base::id::fresh());
        let mut probes = tokio::time::interval(self.limits.probe_every);
        probes.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut probe = Probe::None;
        loop {
            tokio::select! {
                heard = listener.try_recv() => match heard {
                    Ok(Some(heard)) if heard.payload() == text => {
                        probe = Probe::None;
                        self.heartbeats.beat(LOOP);
                    }
                    Ok(Some(heard)) => {
                        if let Some(notice) = Notice::from_text(heard.payload()) {
                            self.notices.send(notice).ok();
                        }
                    }
                    Ok(None) => return sqlx::Error::Io(std::io::ErrorKind::UnexpectedEof.into()),
                    Err(error) => return error,
                },
                _ = probes.tick(), if matches!(probe, Probe::None) => probe = Probe::Leaving(self.send_probe(&text)),
                is_overdue = probe.next(self.limits.probe) => {
                    if is_overdue {
                        self.discard(listener).await;
                        return link::silent(self.limits.probe);
                    }
                }
            }
        }
    }

    /// Sends the probe in a task of its own, while listening continues. Returns whether it was sent.
    fn send_probe(&self, text: &str) -> JoinHandle<bool> {
        let (db, text) = (self.clone(), text.to_owned());
        tokio::spawn(async move {
            let sent = db.run("SELECT pg_notify(?, ?)", args![CHANNEL, text]).await;
            sent.inspect_err(|error| tracing::warn!(%error, "the probe of the notices could not be sent")).is_ok()
        })
    }

    /// Closes a listener that does not respond. If it were dropped as it is, it would send UNLISTEN over its dead
    /// connection, wait for the response without a timeout, and keep its place in the pool. So its connection is
    /// replaced first.
    async fn discard(&self, mut listener: PgListener) {
        let Some(pool) = self.postgres() else { return };
        let options = pool.connect_options();
        loop {
            let connect = async {
                let mut fresh = PgConnection::connect_with(&options).await?;
                // The pool receives it when the listener is dropped, so it needs the settings of the pool.
                sqlx::raw_sql(link::PATIENCE).execute(&mut fresh).await?;
                Ok::<_, sqlx::Error>(fresh)
            };
            if let Ok(Ok(fresh)) = timeout(self.limits.statement, connect).await
                && let Ok(dead) = (&mut listener).acquire().await
            {
                *dead = fresh;
                return;
            }
            if pool.is_closed() {
                return;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// Returns once `relay_notices` is connected: from then on this process receives every notice of the others. With
    /// SQLite it returns at once.
    pub async fn notices_relayed(&self) {
        if self.postgres().is_some() {
            // The sender lives in this handle, so the wait cannot fail.
            self.relaying.subscribe().wait_for(|relaying| *relaying).await.ok();
        }
    }
}
