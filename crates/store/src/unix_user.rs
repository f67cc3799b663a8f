//! The Unix users that the platform created on servers: one for each holder of an instance, with its own uid.

use base::id::{InstanceId, ServerId};
use jiff::Timestamp;

use crate::db::Record as _;
use crate::{Conn, Result, Tx, args, record};

/// Above the uids that distributions use for people and services (below 65536), and below those for containers (from
/// 100000 on).
pub const FIRST: i64 = 70_000;
pub const LAST: i64 = 99_999;

record! {
    #[derive(Clone, Debug)]
    pub struct UnixUser {
        pub server_id: ServerId,
        pub uid: i64,
        pub name: String,
        pub instance_id: InstanceId,
        pub created_at: Timestamp,
        pub removed_at: Option<Timestamp>,
    }
}

/// A uid that may be assigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    pub uid: i64,
    /// An earlier user had it, and was removed since.
    pub used_before: bool,
}

record! { struct Highest { uid: Option<i64> } }

/// The next uid of a server that was never used; once all were used, the one whose user was removed first. The caller
/// has locked the server's row.
pub async fn next(tx: &mut Tx, server: &ServerId) -> Result<Option<Next>> {
    let sql = "SELECT MAX(uid) AS uid FROM unix_user WHERE server_id = ?";
    let highest: Highest = Conn::from(&mut *tx).one(sql, args![server.as_str()]).await?;
    match highest.uid {
        None => Ok(Some(Next { uid: FIRST, used_before: false })),
        Some(highest) if highest < LAST => Ok(Some(Next { uid: highest + 1, used_before: false })),
        Some(_) => {
            let sql = "SELECT uid FROM unix_user WHERE server_id = ? AND removed_at IS NOT NULL ORDER BY removed_at, uid LIMIT 1";
            let oldest: Option<Highest> = tx.first(sql, args![server.as_str()]).await?;
            Ok(oldest.and_then(|oldest| oldest.uid).map(|uid| Next { uid, used_before: true }))
        }
    }
}

/// Assigns a uid to an instance.
pub async fn give(tx: &mut Tx, user: &UnixUser) -> Result<()> {
    let sql = "INSERT INTO unix_user (server_id, uid, name, instance_id, created_at) VALUES (?, ?, ?, ?, ?) \
        ON CONFLICT (server_id, uid) DO UPDATE SET name = excluded.name, instance_id = excluded.instance_id, \
        created_at = excluded.created_at, removed_at = NULL";
    let args = args![&user.server_id, user.uid, &user.name, &user.instance_id, user.created_at];
    tx.run(sql, args).await.map(drop)
}

/// The users of an instance that were not removed, oldest first.
pub async fn of_instance(conn: impl Into<Conn<'_>>, instance: &InstanceId) -> Result<Vec<UnixUser>> {
    let sql = format!(
        "SELECT {} FROM unix_user WHERE instance_id = ? AND removed_at IS NULL ORDER BY created_at, uid",
        UnixUser::COLUMNS
    );
    conn.into().all(&sql, args![instance.as_str()]).await
}

/// The users on a server that were not removed.
pub async fn of_server(conn: impl Into<Conn<'_>>, server: &ServerId) -> Result<Vec<UnixUser>> {
    let sql = format!("SELECT {} FROM unix_user WHERE server_id = ? AND removed_at IS NULL", UnixUser::COLUMNS);
    conn.into().all(&sql, args![server]).await
}

/// Records that a user was removed from its server. Its uid is not used again while others are free.
pub async fn removed(conn: impl Into<Conn<'_>>, server: &ServerId, uid: i64, at: Timestamp) -> Result<()> {
    let sql = "UPDATE unix_user SET removed_at = ? WHERE server_id = ? AND uid = ?";
    conn.into().run(sql, args![at, server, uid]).await.map(drop)
}
