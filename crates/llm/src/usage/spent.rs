//! The tokens that a user spent, on every instance while they held it.

use base::id::UserId;
use base::{Result, Zone};
use jiff::Timestamp;
use store::usage::of_token;
use store::{Conn, binding, unlogged_request};

use crate::App;

/// Prompt and completion tokens of successful requests since `since`, instances released meanwhile included.
pub async fn spent(app: &App, user: &UserId, since: Timestamp) -> Result<i64> {
    spent_in(&app.db, &app.zone, user, since).await
}

/// The same, and beside it what was answered and the log of a foreign gateway does not have yet. It counts against the
/// daily quota, and in no number of usage.
pub async fn spent_and_unlogged(app: &App, user: &UserId, since: Timestamp) -> Result<(i64, i64)> {
    // In this order: a row that comes in between counts twice, and not never.
    let unlogged = unlogged_request::tokens_of(&app.db, user, since).await?;
    Ok((spent(app, user, since).await?, unlogged))
}

/// Like `spent`, on a connection that the caller already has: a caller that holds the write connection must not wait
/// for a read connection.
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
