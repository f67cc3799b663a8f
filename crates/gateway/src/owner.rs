//! Whose answers may be continued. The provider keeps answers of the Responses API in an account that all sub keys share,
//! so a request may continue only an answer that its own key got. What is not known to be that is refused.
//!
//! The owner of an answer is part of its line in the log, so it survives a crash and needs no database on the way. The
//! loader writes it into the table `answer_owner`, which all processes read.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::Clock;
use jiff::{SignedDuration, Timestamp};
use store::answer_owner::AnswerOwner;
use store::{Db, answer_owner};

use crate::error::Refusal;
use crate::keys::Caller;
use crate::protocol::PREVIOUS;

/// How long an answer can be continued: as long as the provider keeps it.
pub const KEPT: SignedDuration = SignedDuration::from_hours(30 * 24);
/// Answers of this process that are known without the database; beyond that all are forgotten, and read.
const MOST_RECENT: usize = 10_000;
/// An answer of another process is in the database a moment after its end. It is looked for so often, with this pause.
const LOOKS: usize = 4;
const PAUSE: Duration = Duration::from_millis(250);
/// How often expired owners are deleted.
const CLEANING: Duration = Duration::from_secs(3600);

/// By its id: the fingerprint of an answer's owner, and the answer's tokens.
type Recent = HashMap<Arc<str>, (Arc<str>, i64)>;

pub struct Owners {
    db: Db,
    clock: Clock,
    recent: Mutex<Recent>,
}

impl Owners {
    pub fn new(db: Db, clock: Clock) -> Owners {
        Owners { db, clock, recent: Mutex::default() }
    }

    fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes an answer whose line is in the log. The first owner stays, as in the table.
    pub fn note(&self, answer: Arc<str>, owner: &Arc<str>, tokens: i64) {
        let mut recent = self.recent();
        if recent.len() >= MOST_RECENT {
            recent.clear();
        }
        recent.entry(answer).or_insert_with(|| (owner.clone(), tokens));
    }

    /// The tokens of an answer that the caller wants to continue, or a refusal if it is not the caller's.
    pub async fn tokens_of(&self, answer: &str, caller: &Caller) -> Result<i64, Refusal> {
        for look in 1..=LOOKS {
            let recent = self.recent().get(answer).cloned();
            let found = match recent {
                Some(found) => Some(found),
                None => self.read(answer).await?,
            };
            match found {
                Some((owner, tokens)) if owner == caller.fingerprint => return Ok(tokens),
                // The same words for an answer of somebody else: its id is nobody's business.
                Some(_) => break,
                None if look < LOOKS => tokio::time::sleep(PAUSE).await,
                None => {}
            }
        }
        Err(Refusal::unknown_answer().about(PREVIOUS))
    }

    async fn read(&self, answer: &str) -> Result<Option<(Arc<str>, i64)>, Refusal> {
        match answer_owner::find(&self.db, answer, self.clock.now()).await {
            Ok(found) => Ok(found.map(|found| (found.owner.into(), found.tokens))),
            Err(error) => {
                tracing::warn!(%error, "the owner of an answer could not be read");
                Err(Refusal::unavailable("the gateway's database does not answer"))
            }
        }
    }

    /// Deletes expired owners now and then. Never returns.
    pub async fn keep(&self) {
        loop {
            tokio::time::sleep(CLEANING).await;
            if let Err(error) = answer_owner::delete_expired(&self.db, self.clock.now()).await {
                tracing::warn!(%error, "the owners of old answers are not deleted yet");
            }
        }
    }
}

/// The row of an answer that was given at a time.
pub fn row(answer: &str, owner: &str, tokens: i64, at: Timestamp) -> AnswerOwner {
    let expires_at = at.checked_add(KEPT).unwrap_or(Timestamp::MAX);
    AnswerOwner { id: answer.to_owned(), owner: owner.to_owned(), tokens, expires_at }
}
