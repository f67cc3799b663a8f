//! What a user spent today, on whatever instance was theirs at the time.

use base::Result;
use base::id::UserId;
use jiff::Timestamp;
use store::binding;
use store::usage::{Span, of_token};

use crate::App;

/// Prompt and completion tokens of successful requests since `since`, instances given back meanwhile included.
pub async fn spent(app: &App, user: &UserId, since: Timestamp) -> Result<i64> {
    let mut tokens = 0;
    for held in binding::lasting(&app.db, user, since).await? {
        let span = Span { from: Some(held.created_at.max(since)), to: held.ended_at };
        for group in of_token(&app.db, &app.zone, &held.instance_id, span, None).await? {
            tokens += group.sums.tokens();
        }
    }
    Ok(tokens)
}
