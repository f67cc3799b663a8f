//! Which model answered instead of the one that was asked for, and at which provider, by sub key. After a failure the next
//! requests go there at once: its provider has the conversation in its cache, and a provider that is down is not waited for each
//! time. After a while the model that was asked for is tried again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use base::Clock;

/// How long a choice holds.
const TIME: Duration = Duration::from_secs(60);
/// Choices that are kept; beyond that the oldest go.
const MOST: usize = 10_000;

/// A sub key, the model that it asked for, and the protocol in which it did.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct StickyKey {
    pub key: Arc<str>,
    pub model: Arc<str>,
    pub protocol: &'static str,
}

/// A model, and the provider at which it answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub model: Arc<str>,
    pub provider: Arc<str>,
}

struct Choice<T> {
    chosen: T,
    at: Instant,
}

pub struct Sticky {
    clock: Clock,
    choices: Mutex<HashMap<StickyKey, Choice<Place>>>,
    /// How many there are; without any, no request takes the lock.
    count: AtomicUsize,
}

impl Sticky {
    pub fn new(clock: Clock) -> Sticky {
        Sticky { clock, choices: Mutex::default(), count: AtomicUsize::new(0) }
    }

    fn choices(&self) -> MutexGuard<'_, HashMap<StickyKey, Choice<Place>>> {
        self.choices.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who answered last for this model, if that is to be asked first.
    pub fn find(&self, sticky_key: &StickyKey) -> Option<Place> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let choices = self.choices();
        let choice = choices.get(sticky_key)?;
        (self.clock.since(choice.at) < TIME).then(|| choice.chosen.clone())
    }

    /// Keeps who answered. A choice that still holds is not prolonged: the model that was asked for gets its chance at its
    /// first provider.
    pub fn keep(&self, sticky_key: &StickyKey, place: &Place) {
        let now = self.clock.instant();
        let mut choices = self.choices();
        if choices.len() >= MOST {
            choices.retain(|_, choice| self.clock.since(choice.at) < TIME);
        }
        if choices.len() >= MOST {
            choices.clear();
        }
        let kept = choices.entry(sticky_key.clone()).or_insert_with(|| Choice { chosen: place.clone(), at: now });
        if kept.chosen != *place || self.clock.since(kept.at) >= TIME {
            *kept = Choice { chosen: place.clone(), at: now };
        }
        self.count.store(choices.len(), Ordering::Release);
    }

    /// Forgets a choice: the model that was asked for answered at its first provider.
    pub fn forget(&self, sticky_key: &StickyKey) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut choices = self.choices();
        choices.remove(sticky_key);
        self.count.store(choices.len(), Ordering::Release);
    }
}

/// How long a sub key stays with a provider's key that it does not ask: caches are forgotten by then.
const PINNED: Duration = Duration::from_secs(300);

/// A sub key and a model.
type Pin = (Arc<str>, Arc<str>);

/// Which key of a provider answers a sub key for a model, where it is not the first one: the provider's cache belongs to its key,
/// or to the account of that.
pub struct Pins {
    clock: Clock,
    /// The chosen keys.
    pins: Mutex<HashMap<Pin, Choice<Arc<str>>>>,
    count: AtomicUsize,
}

impl Pins {
    pub fn new(clock: Clock) -> Pins {
        Pins { clock, pins: Mutex::default(), count: AtomicUsize::new(0) }
    }

    fn pins(&self) -> MutexGuard<'_, HashMap<Pin, Choice<Arc<str>>>> {
        self.pins.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The id of the provider's key, if one is to be asked before the first.
    pub fn find(&self, of: &Arc<str>, model: &Arc<str>) -> Option<Arc<str>> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let pins = self.pins();
        let pin = pins.get(&(of.clone(), model.clone()))?;
        (self.clock.since(pin.at) < PINNED).then(|| pin.chosen.clone())
    }

    /// Keeps the key that answered; `None` if it was the first.
    pub fn keep(&self, of: &Arc<str>, model: &Arc<str>, key: Option<&Arc<str>>) {
        if key.is_none() && self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut pins = self.pins();
        if pins.len() >= MOST {
            pins.retain(|_, pin| self.clock.since(pin.at) < PINNED);
        }
        if pins.len() >= MOST {
            pins.clear();
        }
        let pin = (of.clone(), model.clone());
        match key {
            Some(key) => drop(pins.insert(pin, Choice { chosen: key.clone(), at: self.clock.instant() })),
            None => drop(pins.remove(&pin)),
        }
        self.count.store(pins.len(), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_holds_for_a_minute_and_for_one_key_and_model() {
        let clock = Clock::manual("2026-11-15T12:00:00Z".parse().unwrap());
        let sticky = Sticky::new(clock.clone());
        let gpt = Place { model: "gpt-4o".into(), provider: "openai".into() };
        let sticky_key = |key: &str, model: &str| StickyKey { key: key.into(), model: model.into(), protocol: "chat" };
        let opus = sticky_key("ada", "claude-opus-4-6");
        assert_eq!(sticky.find(&opus), None);
        sticky.keep(&opus, &gpt);
        assert_eq!(sticky.find(&opus), Some(gpt.clone()));
        for other in [
            sticky_key("bob", "claude-opus-4-6"),
            sticky_key("ada", "gpt-4o"),
            StickyKey { protocol: "messages", ..opus.clone() },
        ] {
            assert_eq!(sticky.find(&other), None);
        }
        clock.advance(jiff::SignedDuration::from_secs(59));
        sticky.keep(&opus, &gpt);
        assert_eq!(sticky.find(&opus), Some(gpt.clone()));
        clock.advance(jiff::SignedDuration::from_secs(1));
        assert_eq!(sticky.find(&opus), None, "it was not prolonged");
        sticky.keep(&opus, &gpt);
        let elsewhere = Place { provider: "azure".into(), ..gpt.clone() };
        sticky.keep(&opus, &elsewhere);
        assert_eq!(sticky.find(&opus), Some(elsewhere), "another provider of the same model is another choice");
        sticky.forget(&opus);
        assert_eq!(sticky.find(&opus), None);
        for n in 0..MOST + 10 {
            sticky.keep(&sticky_key(&format!("key-{n}"), "claude-opus-4-6"), &gpt);
        }
        assert!(sticky.choices().len() <= MOST);
    }

    #[test]
    fn a_pin_holds_while_it_is_used() {
        let clock = Clock::manual("2026-11-15T12:00:00Z".parse().unwrap());
        let pins = Pins::new(clock.clone());
        let [ada, bob, gpt, second]: [Arc<str>; 4] = ["ada", "bob", "gpt-4o", "key-2"].map(Into::into);
        assert_eq!(pins.find(&ada, &gpt), None);
        pins.keep(&ada, &gpt, Some(&second));
        for _ in 0..3 {
            clock.advance(jiff::SignedDuration::from_secs(299));
            assert_eq!(pins.find(&ada, &gpt), Some(second.clone()));
            pins.keep(&ada, &gpt, Some(&second));
        }
        assert_eq!(pins.find(&bob, &gpt), None);
        clock.advance(jiff::SignedDuration::from_secs(300));
        assert_eq!(pins.find(&ada, &gpt), None);
        pins.keep(&ada, &gpt, Some(&second));
        pins.keep(&ada, &gpt, None);
        assert_eq!(pins.find(&ada, &gpt), None, "the first answered again");
    }
}
