//! The sockets that this process has open: how many of whom, and the word that ends them all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base::id::UserId;
use base::{Error, Kind, Result};
use tokio::sync::watch;

use super::End;

/// A person has a few tabs and devices; every socket is a connection to a server, and may hold a frame of 25 MB.
pub const MOST_OF_A_USER: usize = 16;

pub struct Sockets {
    open: Arc<Mutex<HashMap<String, usize>>>,
    stop: watch::Sender<bool>,
}

impl Default for Sockets {
    fn default() -> Sockets {
        Sockets { open: Arc::default(), stop: watch::channel(false).0 }
    }
}

/// One socket's place: given back when it is dropped.
pub struct Place {
    open: Arc<Mutex<HashMap<String, usize>>>,
    user: String,
}

impl Sockets {
    /// Refuses one more socket of a user who has enough.
    pub fn check(&self, user: &UserId) -> Result<()> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        match open.get(user.as_str()) {
            Some(count) if *count >= MOST_OF_A_USER => Err(too_many()),
            _ => Ok(()),
        }
    }

    pub fn enter(&self, user: &UserId) -> Result<Place> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let count = open.entry(user.as_str().to_owned()).or_default();
        if *count >= MOST_OF_A_USER {
            return Err(too_many());
        }
        *count += 1;
        metrics::gauge!("tidepool_sockets").increment(1.0);
        Ok(Place { open: self.open.clone(), user: user.as_str().to_owned() })
    }

    /// How many are open.
    pub fn count(&self) -> usize {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).values().sum()
    }

    /// Tells all of them to end: the process stops.
    pub fn close(&self) {
        self.stop.send_replace(true);
    }

    pub(super) async fn closing(&self) -> End {
        let mut stop = self.stop.subscribe();
        // The sender lives as long as we do.
        stop.wait_for(|stop| *stop).await.ok();
        End::new(End::RESTART, "the platform is restarting")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&self.user) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.user);
            }
        }
        metrics::gauge!("tidepool_sockets").decrement(1.0);
    }
}

fn too_many() -> Error {
    Error::new(Kind::TooManyRequests, format!("at most {MOST_OF_A_USER} connections of one person at a time"))
        .retry_after(Duration::from_secs(5))
}
