//! What a task did, line by line.

use base::id::TaskId;
use jiff::Timestamp;

use crate::{Conn, Db, Result, args, record};

record! {
    #[derive(Clone, Debug)]
    pub struct Line {
        pub attempt: i64,
        pub line: String,
        pub created_at: Timestamp,
    }
}

pub async fn write(conn: impl Into<Conn<'_>>, task: &TaskId, attempt: i64, line: &str, at: Timestamp) -> Result<()> {
    let sql = "INSERT INTO task_log (task_id, attempt, line, created_at) VALUES (?, ?, ?, ?)";
    conn.into().run(sql, args![task, attempt, line, at]).await.map(drop)
}

/// The lines of a task, oldest first.
pub async fn lines(db: &Db, task: &TaskId) -> Result<Vec<Line>> {
    let sql = "SELECT attempt, line, created_at FROM task_log WHERE task_id = ? ORDER BY id LIMIT 1000";
    db.all(sql, args![task]).await
}
