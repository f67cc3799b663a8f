//! Answers of a foreign gateway that we saw, until its log has them. A log that is late, or says nothing, must not give
//! quotas away.

use base::Result;
use base::id::UserId;
use http::HeaderMap;
use jiff::Timestamp;
use store::unlogged_request::{self, UnloggedRequest};

use crate::App;

/// A request that was answered.
#[derive(Clone, Debug)]
pub struct Answered {
    /// The gateway's own id of it: see `request_id`.
    pub request_id: String,
    pub token_name: String,
    pub user_id: Option<UserId>,
    pub prompt_tokens: i64,
    pub completion_tokens: i64,
    /// The answer gave no counts, and these are ours.
    pub estimated: bool,
    pub began_at: Timestamp,
}

/// The id of a request in the gateway's log, as far as its answer says it.
pub fn request_id(app: &App, headers: &HeaderMap) -> String {
    let header = app.upstream.gateway.kind().request_id_header;
    let value = header.and_then(|name| headers.get(name)).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().chars().take(200).collect()
}

/// Counts an answer until the log has it. The embedded gateway counts by itself.
pub async fn count(app: &App, answered: Answered) -> Result<()> {
    if app.upstream.embedded {
        return Ok(());
    }
    let new = UnloggedRequest {
        id: base::id::fresh(),
        request_id: answered.request_id,
        token_name: answered.token_name,
        user_id: answered.user_id,
        prompt_tokens: answered.prompt_tokens.max(0),
        completion_tokens: answered.completion_tokens.max(0),
        estimated: answered.estimated,
        began_at: answered.began_at,
        answered_at: app.clock.now(),
    };
    let mut tx = app.db.begin().await?;
    unlogged_request::add(&mut tx, &new).await?;
    Ok(tx.commit().await?)
}
