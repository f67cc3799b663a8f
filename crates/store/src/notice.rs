//! "X changed": hints from one process to all, over PostgreSQL's LISTEN and NOTIFY, or within the one
//! process that SQLite has. A hint may be lost; whoever acts on them also looks by itself from time to time.

use std::time::Duration;

use sqlx::postgres::PgListener;
use tokio::sync::broadcast;

use crate::Db;

pub(crate) const CHANNEL: &str = "tidepool";

/// What changed, and which one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub topic: Topic,
    pub id: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    Task,
    Instance,
    /// A sub key of the LLM gateway, or what it may do.
    Key,
    /// A run of a job began or ended.
    Job,
    /// A guardian event.
    Guardian,
    /// A server was measured.
    Metric,
    Alert,
    Repair,
    /// An employee's account or logins: some of them may have ended.
    User,
    /// Notices may have been lost: anything may have changed. Told by a process to itself only.
    Anything,
}

impl Topic {
    const ALL: &[Topic] = &[
        Topic::Task,
        Topic::Instance,
        Topic::Key,
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

impl Db {
    /// Hears what is told from now on.
    pub fn listen(&self) -> broadcast::Receiver<Notice> {
        self.notices.subscribe()
    }

    /// Passes on what other processes tell, for as long as it runs. SQLite has no other process to hear.
    pub async fn relay_notices(&self) {
        let Some(pool) = self.postgres() else { return std::future::pending().await };
        loop {
            let listener = async {
                let mut listener = PgListener::connect_with(pool).await?;
                listener.listen(CHANNEL).await?;
                Ok::<_, sqlx::Error>(listener)
            };
            match listener.await {
                Ok(listener) => {
                    // What was told before nobody here has heard.
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

    /// Passes on what this listener hears until it fails.
    async fn relay_from(&self, mut listener: PgListener) -> sqlx::Error {
        loop {
            match listener.try_recv().await {
                Ok(Some(told)) => {
                    if let Some(notice) = Notice::from_text(told.payload()) {
                        self.notices.send(notice).ok();
                    }
                }
                // The connection was lost, and there is another.
                Ok(None) => {
                    self.notices.send(Notice::new(Topic::Anything, "")).ok();
                }
                Err(error) => return error,
            }
        }
    }

    /// Returns once `relay_notices` is connected: every notice that another process sends from now on is heard here. With SQLite
    /// there is nothing to wait for.
    pub async fn notices_relayed(&self) {
        if self.postgres().is_some() {
            // The sender lives in this handle, so the wait cannot fail.
            self.relaying.subscribe().wait_for(|relaying| *relaying).await.ok();
        }
    }
}
