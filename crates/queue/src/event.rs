//! Live events: every process sends its changes to every listener.
//!
//! An event is a hint: a kind and an id, and no data. A listener that reconnects says when it got its last event, and
//! gets what changed since from the tables. A listener that is too slow gets `reset` and must reload everything. So no
//! events are stored.

use std::sync::Arc;
use std::time::Duration;

use base::Result;
use jiff::{SignedDuration, Timestamp};
use store::change;
use store::notice::{Notice, Topic};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::App;

/// How much further back a listener's changes are read: clocks of processes differ, and a transaction takes time to
/// commit. Sending an event twice does no harm.
const OVERLAP: SignedDuration = SignedDuration::from_secs(5);
/// A listener that was away for longer gets `reset`.
const LONGEST: SignedDuration = SignedDuration::from_mins(15);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The time in milliseconds. A listener that reconnects sends the last one it got.
    pub id: i64,
    pub kind: &'static str,
    /// The id of what changed; empty for `reset`.
    pub of: String,
}

/// The kind of the event that asks a listener to reload everything.
pub const RESET: &str = "reset";

/// The kind of event for a topic; `None` for topics that are not published.
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

/// One subscription to the live events.
pub struct Listener {
    app: Arc<App>,
    notices: broadcast::Receiver<Notice>,
    waiting: std::vec::IntoIter<Event>,
}

/// What a listener gets next.
pub enum Next {
    Event(Event),
    /// No event came within the time to wait.
    Quiet,
    /// The sender is gone: no more events will come.
    End,
}

/// Subscribes to events. If `last` is given, the changes since then come first.
pub async fn listen(app: &Arc<App>, last: Option<i64>) -> Result<Listener> {
    // Subscribe before reading the changes, so that no event is lost in between.
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
                    // The listener was too slow, and the events that it missed are lost.
                    Err(RecvError::Lagged(_)) => return Next::Event(Event { id, kind: RESET, of: String::new() }),
                    Err(RecvError::Closed) => return Next::End,
                }
            }
        };
        tokio::time::timeout(patience, heard).await.unwrap_or(Next::Quiet)
    }
}
