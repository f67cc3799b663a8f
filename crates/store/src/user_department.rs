//! The departments that users belonged to, and since when. `user` records each change in the transaction that makes it.

use std::collections::HashMap;

use base::id::UserId;
use jiff::{SignedDuration, Timestamp};

use crate::{Conn, Db, Result, Tx, args, record};

record! {
    /// A department that a user belonged to from `since` on, until the next one. The first one counts for all the time
    /// before it too.
    #[derive(Clone, Debug)]
    pub struct Membership {
        pub user_id: UserId,
        pub since: Timestamp,
        pub department: String,
    }
}

/// Records the department of a user, if it is another than the last one. A changed one is recorded before the account is
/// written: what a replica of an older release wrote there is recorded first.
pub(crate) async fn record(tx: &mut Tx, user: &UserId, department: &str, at: Timestamp) -> Result<()> {
    let has_missed = tx.run(&missed("u.id = ?"), args![at, at, user]).await? > 0;
    let sql = format!(
        "SELECT {} FROM user_department WHERE user_id = ? ORDER BY since DESC LIMIT 1",
        <Membership as crate::db::Record>::COLUMNS
    );
    let last: Option<Membership> = tx.first(&sql, args![user]).await?;
    let since = match last {
        Some(last) if last.department == department => return Ok(()),
        // A clock that was set back must put the change neither before the last one nor in its place. Within one
        // millisecond the last department counts; only what an older release wrote stays before it.
        Some(last) if at.as_millisecond() < last.since.as_millisecond() + i64::from(has_missed) => {
            last.since + SignedDuration::from_millis(1)
        }
        _ => at,
    };
    let sql = "INSERT INTO user_department (user_id, since, department) VALUES (?, ?, ?) \
        ON CONFLICT (user_id, since) DO UPDATE SET department = excluded.department";
    tx.run(sql, args![user, since, department]).await.map(drop)
}

/// Changes since when the first department of a user is recorded, for sample data that covers some weeks.
pub async fn set_begin(tx: &mut Tx, user: &UserId, at: Timestamp) -> Result<()> {
    let sql = "UPDATE user_department SET since = ? WHERE user_id = ? \
        AND since = (SELECT MIN(f.since) FROM user_department f WHERE f.user_id = ?)";
    tx.run(sql, args![at, user, user]).await.map(drop)
}

/// Records what a replica of an older release has changed during an upgrade, and what an older release has created.
/// Returns how many users that were.
pub async fn record_missed(db: &Db, at: Timestamp) -> Result<u64> {
    db.run(&missed("1 = 1"), args![at, at]).await
}

/// The statement that records the departments of users `u` of whom another one is recorded, or none. Its first two
/// arguments are the time.
fn missed(users: &str) -> String {
    format!(
        "INSERT INTO user_department (user_id, since, department) \
         SELECT u.id, CASE WHEN l.user_id IS NULL THEN u.created_at WHEN l.since >= CAST(? AS BIGINT) THEN l.since + 1 \
             ELSE CAST(? AS BIGINT) END, u.department FROM users u \
         LEFT JOIN user_department l ON l.user_id = u.id \
             AND l.since = (SELECT MAX(m.since) FROM user_department m WHERE m.user_id = u.id) \
         WHERE {users} AND (l.user_id IS NULL OR l.department <> u.department) \
         ON CONFLICT (user_id, since) DO UPDATE SET department = excluded.department"
    )
}

/// The departments of users, each user's in order of time.
pub type Memberships = HashMap<UserId, Vec<Membership>>;

/// The departments of all users, now and before.
pub async fn all(db: &Db) -> Result<Memberships> {
    let sql = "SELECT u.id AS user_id, COALESCE(d.since, u.created_at) AS since, COALESCE(d.department, u.department) AS department \
        FROM users u LEFT JOIN user_department d ON d.user_id = u.id ORDER BY u.id, since";
    let mut all = Memberships::new();
    for one in db.all::<Membership>(sql, args![]).await? {
        all.entry(one.user_id.clone()).or_default().push(one);
    }
    Ok(all)
}

record! { struct First { since: Option<Timestamp> } }

/// Since when departments are recorded. Older requests count to the department of that time.
pub async fn recorded_since(db: &Db) -> Result<Option<Timestamp>> {
    let first: First = Conn::from(db).one("SELECT MIN(since) AS since FROM user_department", args![]).await?;
    Ok(first.since)
}
