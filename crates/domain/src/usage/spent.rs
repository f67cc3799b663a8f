//! What a user spent today, on whatever instance was theirs at the time.

use base::id::UserId;
use base::{Result, Zone};
use jiff::Timestamp;
use store::usage::of_token;
use store::{Db, binding};

use crate::App;

/// Prompt and completion tokens of successful requests since `since`, instances given back meanwhile included.
pub async fn spent(app: &App, user: &UserId, since: Timestamp) -> Result<i64> {
    spent_in(&app.db, &app.zone, user, since).await
}

pub(crate) async fn spent_in(db: &Db, zone: &Zone, user: &UserId, since: Timestamp) -> Result<i64> {
    let mut tokens = 0;
    for held in binding::lasting(db, user, since).await? {
        for group in of_token(db, zone, &held.instance_id, held.span(since), None).await? {
            tokens += group.sums.tokens();
        }
    }
    Ok(tokens)
}
