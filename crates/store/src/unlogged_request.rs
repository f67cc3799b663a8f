//! Requests that we forwarded to a foreign gateway and saw answered, and that are not in its log yet.
//!
//! The reader of the log removes them in the transaction that writes their rows, so that each counts once. Whoever adds
//! one and whoever reads the log hold the same lock: an answer whose row was read already is not added.

use base::id::UserId;
use jiff::{SignedDuration, Timestamp};

use crate::db::{Number, Value};
use crate::{Conn, Db, Result, Tx, args, record};

record! {
    #[derive(Clone, Debug)]
    pub struct UnloggedRequest {
        pub id: String,
        /// The gateway's own id of the request, where its answer said it. Then only a row with this id is its row.
        pub request_id: String,
        pub token_name: String,
        /// Whose daily quota it counts against.
        pub user_id: Option<UserId>,
        pub prompt_tokens: i64,
        pub completion_tokens: i64,
        /// The answer gave no counts, and ours stand in.
        pub estimated: bool,
        pub began_at: Timestamp,
        pub answered_at: Timestamp,
    }
}

/// A row of the gateway's log, as far as it is needed to find its request.
#[derive(Clone, Debug)]
pub struct LoggedRow {
    /// Empty where the log has no ids.
    pub request_id: String,
    pub token_name: String,
    pub prompt_tokens: i64,
    pub completion_tokens: i64,
    pub created_at: Timestamp,
}

/// Some gateways log whole seconds, and their clock is not ours.
const BEFORE: SignedDuration = SignedDuration::from_secs(5);
/// How long after an answer without counts a row of its token is taken for its row.
const AFTER: SignedDuration = SignedDuration::from_mins(2);

impl UnloggedRequest {
    /// Whether this row is certainly its row.
    fn has_id_of(&self, row: &LoggedRow) -> bool {
        !self.request_id.is_empty() && self.request_id == row.request_id && self.token_name == row.token_name
    }

    /// Whether this row may be its row, where ids do not tell.
    fn is_like(&self, row: &LoggedRow) -> bool {
        let ids_tell = !self.request_id.is_empty() && !row.request_id.is_empty();
        let same_counts = self.prompt_tokens == row.prompt_tokens && self.completion_tokens == row.completion_tokens;
        let in_time = row.created_at >= self.began_at - BEFORE;
        let soon = row.created_at <= self.answered_at + AFTER;
        !ids_tell && self.token_name == row.token_name && in_time && (same_counts || (self.estimated && soon))
    }
}

const LOCK: &str = "unlogged requests";

/// Taken by whoever adds rows of the gateway's log, before it adds them.
pub async fn lock(tx: &mut Tx) -> Result<()> {
    tx.lock_name(LOCK).await
}

/// Adds a request that was answered, unless its row is there already. Returns whether it was added.
pub async fn add(tx: &mut Tx, new: &UnloggedRequest) -> Result<bool> {
    lock(tx).await?;
    if !new.request_id.is_empty() {
        let sql = "SELECT COUNT(*) AS n FROM request_log WHERE token_name = ? AND created_at >= ? AND request_id = ?";
        let from = new.began_at - BEFORE;
        let rows: Number = Conn::from(&mut *tx).one(sql, args![&new.token_name, from, &new.request_id]).await?;
        if rows.n > 0 {
            return Ok(false);
        }
    }
    let sql = "INSERT INTO unlogged_request (id, request_id, token_name, user_id, prompt_tokens, completion_tokens, estimated, \
        began_at, answered_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let args = args![
        &new.id,
        &new.request_id,
        &new.token_name,
        new.user_id.as_ref(),
        new.prompt_tokens,
        new.completion_tokens,
        new.estimated,
        new.began_at,
        new.answered_at
    ];
    tx.run(sql, args).await?;
    Ok(true)
}

/// Removes the requests whose rows these are. The caller holds the lock.
pub async fn settle(tx: &mut Tx, rows: &[LoggedRow]) -> Result<()> {
    let mut tokens: Vec<&str> = rows.iter().map(|row| row.token_name.as_str()).collect();
    tokens.sort_unstable();
    tokens.dedup();
    let mut open: Vec<UnloggedRequest> = vec![];
    for some in tokens.chunks(500) {
        let marks = vec!["?"; some.len()].join(", ");
        let sql = format!(
            "SELECT {} FROM unlogged_request WHERE token_name IN ({marks}) ORDER BY answered_at, id",
            <UnloggedRequest as crate::row::Record>::COLUMNS
        );
        open.extend(tx.all::<UnloggedRequest>(&sql, some.iter().map(|token| Value::from(*token)).collect()).await?);
    }
    let settled = pair(&open, rows);
    for some in settled.chunks(500) {
        let marks = vec!["?"; some.len()].join(", ");
        let ids = some.iter().map(|id| Value::from(*id)).collect();
        tx.run(&format!("DELETE FROM unlogged_request WHERE id IN ({marks})"), ids).await?;
    }
    Ok(())
}

/// The ids of the requests whose rows are among these. A row is of one request: first by their ids, then the oldest
/// request with its counts, then the oldest without counts.
fn pair<'a>(open: &'a [UnloggedRequest], rows: &[LoggedRow]) -> Vec<&'a str> {
    let mut left: Vec<&LoggedRow> = rows.iter().collect();
    let mut waiting: Vec<&UnloggedRequest> = open.iter().collect();
    let mut found = vec![];
    let certain = |request: &UnloggedRequest, row: &LoggedRow| request.has_id_of(row);
    let counted = |request: &UnloggedRequest, row: &LoggedRow| !request.estimated && request.is_like(row);
    let estimated = |request: &UnloggedRequest, row: &LoggedRow| request.is_like(row);
    for is_row_of in [&certain as &dyn Fn(&UnloggedRequest, &LoggedRow) -> bool, &counted, &estimated] {
        waiting.retain(|request| match left.iter().position(|row| is_row_of(request, row)) {
            Some(at) => {
                left.swap_remove(at);
                found.push(request.id.as_str());
                false
            }
            None => true,
        });
    }
    found
}

/// The tokens that a user spent since an instant by answers that are not in the log yet.
pub async fn tokens_of(conn: impl Into<Conn<'_>>, user: &UserId, since: Timestamp) -> Result<i64> {
    let sql = "SELECT CAST(COALESCE(SUM(prompt_tokens + completion_tokens), 0) AS BIGINT) AS n FROM unlogged_request \
        WHERE user_id = ? AND answered_at >= ?";
    let number: Number = conn.into().one(sql, args![user.as_str(), since]).await?;
    Ok(number.n)
}

/// How many requests were answered between these instants and are not in the log.
pub async fn count_between(db: &Db, after: Timestamp, until: Timestamp) -> Result<i64> {
    let sql = "SELECT COUNT(*) AS n FROM unlogged_request WHERE answered_at > ? AND answered_at <= ?";
    let number: Number = Conn::from(db).one(sql, args![after, until]).await?;
    Ok(number.n)
}

/// Deletes requests that were answered before an instant: what the gateway lost by then never comes.
pub async fn forget_before(db: &Db, before: Timestamp) -> Result<u64> {
    db.run("DELETE FROM unlogged_request WHERE answered_at < ?", args![before]).await
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: i64 = 1_800_000_000;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(NOON + second).unwrap()
    }

    fn asked(id: &str, request_id: &str, tokens: i64, estimated: bool) -> UnloggedRequest {
        UnloggedRequest {
            id: id.into(),
            request_id: request_id.into(),
            token_name: "a0".into(),
            user_id: None,
            prompt_tokens: tokens,
            completion_tokens: 1,
            estimated,
            began_at: at(0),
            answered_at: at(2),
        }
    }

    fn row(request_id: &str, tokens: i64, second: i64) -> LoggedRow {
        LoggedRow {
            request_id: request_id.into(),
            token_name: "a0".into(),
            prompt_tokens: tokens,
            completion_tokens: 1,
            created_at: at(second),
        }
    }

    #[test]
    fn an_id_tells_and_without_one_the_counts_do() {
        let (known, other) = (asked("1", "r1", 5, false), asked("2", "", 5, false));
        assert_eq!(pair(std::slice::from_ref(&known), &[row("r2", 5, 2)]), Vec::<&str>::new(), "another request");
        assert_eq!(pair(std::slice::from_ref(&known), &[row("r1", 9, 2)]), ["1"], "whatever it counts");
        assert_eq!(pair(std::slice::from_ref(&known), &[row("", 5, 2)]), ["1"], "an old log has no ids");
        let both = [other, known];
        assert_eq!(pair(&both, &[row("r1", 5, 2)]), ["1"], "the certain one first");
        assert_eq!(pair(&both, &[row("", 5, 2), row("", 5, 3)]), ["2", "1"], "one row for each");
        assert_eq!(pair(&both, &[row("", 5, -60), row("", 6, 2)]), Vec::<&str>::new(), "too early, or other counts");
    }

    #[test]
    fn an_answer_without_counts_takes_what_is_left() {
        let open = [asked("1", "", 100, true), asked("2", "", 5, false)];
        assert_eq!(pair(&open, &[row("x", 5, 2)]), ["2"], "counts come first");
        assert_eq!(pair(&open, &[row("x", 5, 2), row("y", 7, 3)]), ["2", "1"]);
        assert_eq!(pair(&open, &[row("y", 7, 300)]), Vec::<&str>::new(), "long after it");
    }
}
