//! A key at a provider: how it is sent, until when it is spared, and what requests with it met. Everything that requests
//! change is a number of its own, so that no request waits for another.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU8, Ordering};

use base::{Error, Result, Secret};
use http::header::HeaderValue;
use jiff::Timestamp;
use llm::provider::{Failure, scrub};

pub struct Key {
    /// Empty for a provider without a key.
    pub id: Arc<str>,
    /// What may be shown.
    pub hint: Arc<str>,
    /// As a bearer, and alone.
    pub headers: Option<(HeaderValue, HeaderValue)>,
    /// Until when it is asked after the others only, in milliseconds; 0 while it is not.
    refused_until: AtomicI64,
    succeeded: AtomicI64,
    failed: AtomicI64,
    success_at: AtomicI64,
    failure_at: AtomicI64,
    failure: AtomicU8,
}

/// What was counted since the last look.
pub struct Tally {
    pub succeeded: i64,
    pub failed: i64,
    pub success_at: Option<Timestamp>,
    pub failure: Option<(Timestamp, Failure)>,
}

impl Key {
    pub fn new(id: &str, hint: &str, secret: &Secret) -> Result<Key> {
        let headers = Some((header("Bearer ", secret.expose())?, header("", secret.expose())?));
        Ok(Key { id: id.into(), hint: hint.into(), headers, ..Key::none() })
    }

    /// That of a provider which needs none.
    pub fn none() -> Key {
        Key {
            id: "".into(),
            hint: "".into(),
            headers: None,
            refused_until: AtomicI64::new(0),
            succeeded: AtomicI64::new(0),
            failed: AtomicI64::new(0),
            success_at: AtomicI64::new(0),
            failure_at: AtomicI64::new(0),
            failure: AtomicU8::new(0),
        }
    }

    /// A text of the provider without what it quotes of the key.
    pub fn taken_out_of(&self, text: &str) -> String {
        match self.headers.as_ref().and_then(|(_, alone)| alone.to_str().ok()) {
            Some(secret) => scrub::without(text, secret),
            None => text.to_owned(),
        }
    }

    /// Whether the others are asked first.
    pub fn is_spared(&self, now: Timestamp) -> bool {
        self.refused_until.load(Ordering::Acquire) > now.as_millisecond()
    }

    /// Has the others asked first until a time.
    pub fn spare(&self, until: Timestamp) {
        self.refused_until.store(until.as_millisecond(), Ordering::Release);
    }

    /// Returns whether it was spared.
    pub fn is_asked_again(&self) -> bool {
        self.refused_until.load(Ordering::Acquire) != 0 && self.refused_until.swap(0, Ordering::AcqRel) != 0
    }

    pub fn has_succeeded(&self, at: Timestamp) {
        self.succeeded.fetch_add(1, Ordering::Relaxed);
        self.success_at.store(at.as_millisecond(), Ordering::Relaxed);
    }

    pub fn has_failed(&self, failure: Failure, at: Timestamp) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        self.failure.store(code(failure), Ordering::Relaxed);
        self.failure_at.store(at.as_millisecond(), Ordering::Relaxed);
    }

    /// What was counted since the last call; `None` if nothing was.
    pub fn take(&self) -> Option<Tally> {
        let (succeeded, failed) = (self.succeeded.swap(0, Ordering::Relaxed), self.failed.swap(0, Ordering::Relaxed));
        if succeeded == 0 && failed == 0 {
            return None;
        }
        let at = |ms: &AtomicI64| Timestamp::from_millisecond(ms.load(Ordering::Relaxed)).ok();
        let failure = Failure::ALL.get(usize::from(self.failure.load(Ordering::Relaxed))).copied();
        Some(Tally {
            succeeded,
            failed,
            success_at: at(&self.success_at).filter(|_| succeeded > 0),
            failure: at(&self.failure_at).zip(failure).filter(|_| failed > 0),
        })
    }

    /// Counts again what could not be written.
    pub fn put_back(&self, tally: &Tally) {
        self.succeeded.fetch_add(tally.succeeded, Ordering::Relaxed);
        self.failed.fetch_add(tally.failed, Ordering::Relaxed);
    }
}

/// A key's value as a header, which no log shows.
fn header(prefix: &str, value: &str) -> Result<HeaderValue> {
    let mut header = HeaderValue::from_str(&format!("{prefix}{value}"))
        .map_err(|_| Error::field("key", "has characters that no header takes"))?;
    header.set_sensitive(true);
    Ok(header)
}

/// The place of a failure in the list of all.
fn code(failure: Failure) -> u8 {
    Failure::ALL
        .iter()
        .position(|known| *known == failure)
        .and_then(|place| u8::try_from(place).ok())
        .unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_counted_once_and_put_back_if_need_be() {
        let at: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        let key = Key::none();
        assert!(key.take().is_none());
        key.has_succeeded(at);
        key.has_failed(Failure::Late, at);
        key.has_failed(Failure::Spent, at);
        let tally = key.take().unwrap();
        assert_eq!((tally.succeeded, tally.failed, tally.failure), (1, 2, Some((at, Failure::Spent))));
        assert!(key.take().is_none());
        key.put_back(&tally);
        assert_eq!(key.take().unwrap().failed, 2);
    }

    #[test]
    fn a_key_is_spared_until_a_time_or_until_it_is_asked_again() {
        let at: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        let key = Key::none();
        assert!(!key.is_spared(at) && !key.is_asked_again());
        key.spare(at + jiff::SignedDuration::from_secs(60));
        assert!(key.is_spared(at));
        assert!(!key.is_spared(at + jiff::SignedDuration::from_secs(60)));
        assert!(key.is_asked_again() && !key.is_spared(at));
    }
}
