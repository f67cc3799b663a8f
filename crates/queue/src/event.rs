//! Live events: what changes, told as it does, from every process to every listener.
//!
//! An event is a hint: its kind and which one. A listener who was away says when it heard last, and is told what changed
//! since; a listener who cannot keep up is told to look at everything. So nothing is kept for anybody.

use std::sync::Arc;
use std::time::Duration;

use base::Result;
use jiff::{SignedDuration, Timestamp};
use store::change;
use store::notice::{Notice, Topic};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::App;

/// Clocks of processes differ, and a transaction takes a moment: what is told again by this is no harm.
const OVERLAP: SignedDuration = SignedDuration::from_secs(5);
/// Farther back than this, everything is to be looked at.
const LONGEST: SignedDuration = SignedDuration::from_mins(15);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What a listener that comes back gives along: the time, in milliseconds.
    pub id: i64,
    pub kind: &'static str,
    /// Which one; empty for `reset`.
    pub of: String,
}

/// Look at everything: too much has changed.
pub const RESET: &str = "reset";

/// The kinds that are told.
fn kind(topic: Topic) -> Option<&'static str> {
    Some(match topic {
        Topic::Task => "task",
        Topic::Instance => "instance",
        Topic::Guardian => "guardian",
        Topic::Metric => "metric",
        Topic::Alert => "guardian_alert",
        Topic::Repair => "guardian_repair",
        Topic::Job => "job",
        Topic::Anything => RESET,
        _ => return None,
    })
}

/// What one listener hears.
pub struct Listener {
    app: Arc<App>,
    notices: broadcast::Receiver<Notice>,
    waiting: std::vec::IntoIter<Event>,
}

/// What a listener gets next.
pub enum Next {
    Event(Event),
    /// Nothing for a while.
    Quiet,
    /// Nobody tells anything any more.
    End,
}

/// Listens from now on, and first of all to what changed since `last`.
pub async fn listen(app: &Arc<App>, last: Option<i64>) -> Result<Listener> {
    // Before the look back: nothing falls in between.
    let notices = app.db.listen();
    let now = app.clock.now();
    let mut waiting = vec![];
    if let Some(last) = last {
        let last = Timestamp::from_millisecond(last).unwrap_or(Timestamp::UNIX_EPOCH);
        let changed =
            if now.duration_since(last) > LONGEST { None } else { change::since(&app.db, last - OVERLAP).await? };
        let id = now.as_millisecond();
        match changed {
            None => waiting.push(Event { id, kind: RESET, of: String::new() }),
            Some(changed) => waiting.extend(changed.into_iter().filter_map(|notice| event(id, notice))),
        }
    }
    Ok(Listener { app: app.clone(), notices, waiting: waiting.into_iter() })
}

fn event(id: i64, notice: Notice) -> Option<Event> {
    Some(Event { id, kind: kind(notice.topic)?, of: notice.id })
}

impl Listener {
    pub async fn next(&mut self, patience: Duration) -> Next {
        if let Some(event) = self.waiting.next() {
            return Next::Event(event);
        }
        let heard = async {
            loop {
                let id = self.app.clock.now().as_millisecond();
                match self.notices.recv().await {
                    Ok(notice) => {
                        if let Some(event) = event(id.max(self.app.clock.now().as_millisecond()), notice) {
                            return Next::Event(event);
                        }
                    }
                    // Too slow: what it missed is not known one by one any more.
                    Err(RecvError::Lagged(_)) => return Next::Event(Event { id, kind: RESET, of: String::new() }),
                    Err(RecvError::Closed) => return Next::End,
                }
            }
        };
        tokio::time::timeout(patience, heard).await.unwrap_or(Next::Quiet)
    }
}
