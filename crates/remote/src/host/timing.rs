//! How long everything between us and a server may take.

use std::time::Duration;

/// The time limits of one server's connections. Everybody uses the default; tests set single values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Looking up the server's name.
    pub resolve: Duration,
    /// Connecting to the server's port.
    pub reach: Duration,
    /// Key exchange and login each: a busy server takes its time to make a session.
    pub greet: Duration,
    /// A connection that was silent for this long is asked whether it lives.
    pub keep_alive: Duration,
    /// After more questions than this without an answer the connection is given up.
    pub unanswered: usize,
    /// When not even our own bytes get through.
    pub stuck: Duration,
    /// Opening a channel is one round trip. A connection where that takes longer is dead.
    pub open: Duration,
    /// The server ends a command by itself; if we have not heard of that this much later, the connection is dead.
    pub slack: Duration,
    /// After a failure nobody tries again for this long.
    pub hold: Duration,
    /// A refused login is counted by the server too, and may lock us out: each in a row doubles `hold`, up to this. (The first
    /// may only mean that the server is still booting.)
    pub longest_hold: Duration,
    /// How long a caller waits for a server that was down a moment ago. A connection takes a third of it.
    pub patience: Duration,
    /// How long a caller waits for its turn on a server.
    pub queue: Duration,
    /// The same for somebody who waits before a screen: a place is given back when another one leaves, who may stay for hours.
    pub short_queue: Duration,
}

impl Default for Timing {
    fn default() -> Timing {
        Timing {
            resolve: Duration::from_secs(5),
            reach: Duration::from_secs(5),
            greet: Duration::from_secs(10),
            keep_alive: Duration::from_secs(5),
            unanswered: 2,
            stuck: Duration::from_secs(20),
            open: Duration::from_secs(5),
            slack: Duration::from_secs(3),
            hold: Duration::from_millis(500),
            longest_hold: Duration::from_secs(10),
            patience: Duration::from_millis(1500),
            queue: Duration::from_secs(60),
            short_queue: Duration::from_secs(5),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_down_costs_its_callers_little() {
        let timing = Timing::default();
        assert!(timing.hold + timing.patience <= Duration::from_secs(2));
        assert!(timing.reach + timing.greet * 2 <= Duration::from_secs(25));
        assert!(timing.short_queue <= Duration::from_secs(5));
    }

    #[test]
    fn an_idle_connection_is_asked_before_it_counts_as_stuck() {
        let timing = Timing::default();
        let given_up = timing.keep_alive * (timing.unanswered as u32 + 1);
        assert!(timing.keep_alive * 2 < timing.stuck && given_up < timing.stuck, "{timing:?}");
        assert!(given_up <= Duration::from_secs(15), "{timing:?}");
    }
}
