//! What was last found out about a foreign gateway, for every process to read.

use jiff::Timestamp;

use crate::{Conn, Result, Tx, args, record};

record! {
    #[derive(Clone, Debug)]
    pub struct GatewayState {
        /// Empty while all is well.
        pub problem: String,
        /// Since when it is so.
        pub since: Timestamp,
        pub checked_at: Timestamp,
    }
}

/// `None` if it was never looked at.
pub async fn find(conn: impl Into<Conn<'_>>, name: &str) -> Result<Option<GatewayState>> {
    let sql = "SELECT problem, since, checked_at FROM gateway_state WHERE name = ?";
    conn.into().first(sql, args![name]).await
}

/// Records what was found. `since` stays while there is a problem, and while there is none.
pub async fn set(tx: &mut Tx, name: &str, problem: &str, at: Timestamp) -> Result<()> {
    let sql = "INSERT INTO gateway_state (name, problem, since, checked_at) VALUES (?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET \
        since = CASE WHEN (gateway_state.problem = '') = (excluded.problem = '') THEN gateway_state.since ELSE excluded.since END, \
        problem = excluded.problem, checked_at = excluded.checked_at";
    tx.run(sql, args![name, problem, at, at]).await.map(drop)
}
