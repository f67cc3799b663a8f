//! Where an adopted instance was before it was moved into a cell: what is there stays as it was, for the way back.

use base::NonEmpty;
use base::id::{InstanceId, ServerId, TaskId, UserId};
use jiff::Timestamp;

use crate::db::Record as _;
use crate::instance::{Isolation, Runner};
use crate::{Conn, Result, Tx, args, record, word};

word! {
    /// How far a move, or the way back, has come. Each is recorded before what follows it, so that the next attempt knows
    /// what was begun.
    pub enum MoveState {
        /// What was adopted is being stopped. The record still says that it is there.
        Stopping = "stopping",
        /// The record says that it is in its cell.
        Moved = "moved",
        /// The record says that it is where it was, and it is to be started there.
        Back = "back",
        /// It runs where it was. A task that failed so is not done a second time.
        Ended = "ended",
    }
}

record! {
    #[derive(Clone, Debug)]
    pub struct MovedFrom {
        pub instance_id: InstanceId,
        /// The task that moved it: its copy of the state is named after it.
        pub task_id: TaskId,
        pub state: MoveState,
        /// Whose it was. Nobody else gets what is there.
        pub user_id: Option<UserId>,
        pub runner: Runner,
        pub home: String,
        pub unit: Option<NonEmpty>,
        /// Whether its unit starts with the server.
        pub is_enabled: bool,
        pub isolation: Isolation,
        pub runs_as: String,
        pub version: String,
        pub config_hash: String,
        pub own_llm: bool,
        pub moved_at: Timestamp,
    }
}

pub async fn find(conn: impl Into<Conn<'_>>, id: &InstanceId) -> Result<Option<MovedFrom>> {
    let sql = format!("SELECT {} FROM moved_from WHERE instance_id = ?", MovedFrom::COLUMNS);
    conn.into().first(&sql, args![id]).await
}

/// The places on a server that nobody uses while their instances live in cells, with the instance of each.
pub async fn of_server(conn: impl Into<Conn<'_>>, server: &ServerId) -> Result<Vec<MovedFrom>> {
    let sql = "SELECT m.* FROM moved_from m JOIN instance i ON i.id = m.instance_id AND i.deleted_at IS NULL \
        WHERE i.server_id = ? AND m.state = 'moved' ORDER BY m.instance_id";
    conn.into().all(sql, args![server]).await
}

/// Records a move that begins. It takes the place of an earlier one that ended.
pub async fn begin(tx: &mut Tx, moved: &MovedFrom) -> Result<()> {
    let sql = "DELETE FROM moved_from WHERE instance_id = ? AND state = 'ended'";
    tx.run(sql, args![&moved.instance_id]).await?;
    let sql = "INSERT INTO moved_from (instance_id, task_id, state, user_id, runner, home, unit, is_enabled, isolation, runs_as, \
        version, config_hash, own_llm, moved_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let args = args![
        &moved.instance_id,
        &moved.task_id,
        moved.state,
        moved.user_id.as_ref().map(UserId::as_str),
        moved.runner,
        &moved.home,
        &moved.unit,
        moved.is_enabled,
        moved.isolation,
        &moved.runs_as,
        &moved.version,
        &moved.config_hash,
        moved.own_llm,
        moved.moved_at
    ];
    tx.run(sql, args).await.map(drop)
}

pub async fn set_state(conn: impl Into<Conn<'_>>, id: &InstanceId, state: MoveState) -> Result<()> {
    conn.into().run("UPDATE moved_from SET state = ? WHERE instance_id = ?", args![state, id]).await.map(drop)
}
