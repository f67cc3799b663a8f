//! Time limits for the connections to a server.

use std::time::Duration;

/// The time limits of one server's connections. All code uses the default; tests set single values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Looking up the server's name.
    pub resolve: Duration,
    /// Connecting to the server's port.
    pub reach: Duration,
    /// For the key exchange and for the login: a busy server needs long to create a session.
    pub greet: Duration,
    /// After this much silence a keep-alive message is sent.
    pub keep_alive: Duration,
    /// After more unanswered keep-alive messages than this the connection is given up.
    pub unanswered: usize,
    /// The connection is given up if nothing is received, or our bytes are not acknowledged, for this long.
    pub stuck: Duration,
    /// Opening a channel is one round trip. A connection on which it takes longer is dead.
    pub open: Duration,
    /// The server itself enforces a command's time limit. If we do not hear of its end this much later, the connection
    /// is dead.
    pub slack: Duration,
    /// After a failure there is no new attempt for this long.
    pub hold: Duration,
    /// The server counts refused logins too, and may lock us out. So each refusal in a row doubles `hold`, up to this.
    /// (The first may only mean that the server is still booting.)
    pub longest_hold: Duration,
    /// How long a caller waits for a server that was down a moment ago. Connecting takes about a third of it.
    pub patience: Duration,
    /// How long a caller waits until a server has room for its request.
    pub queue: Duration,
    /// The same for a person in front of a screen: room is made only when another person leaves, who may stay for
    /// hours.
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
