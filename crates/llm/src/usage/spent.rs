//! What a user spent today, on whatever instance was theirs at the time.

use base::id::UserId;
use base::{Result, Zone};
use jiff::Timestamp;
use store::usage::of_token;
use store::{Conn, binding};

use crate::App;

/// Prompt and completion tokens of successful requests since `since`, instances given back meanwhile included.
pub async fn spent(app: &App, user: &UserId, since: Timestamp) -> Result<i64> {
    spent_in(&app.db, &app.zone, user, since).await
}

/// The same on a connection that the caller has already: whoever holds the writer must not wait for a reader.
pub(crate) async fn spent_in(conn: impl Into<Conn<'_>>, zone: &Zone, user: &UserId, since: Timestamp) -> Result<i64> {
    let mut conn = conn.into();
    let mut tokens = 0;
    for held in binding::lasting(conn.again(), user, since).await? {
        for group in of_token(conn.again(), zone, &held.instance_id, held.span(since), None).await? {
            tokens += group.sums.tokens();
        }
    }
    Ok(tokens)
}
