//! Deletes old rows in small steps. A first cleaning, or one after months without a scheduler, may find millions: one statement for
//! them all would hold everybody up, and PostgreSQL would end it every night before it has done anything.

use std::time::Duration;

use crate::db::Value;
use crate::{Db, Result, args};

/// Rows that one statement deletes, and the pause in which others get their turn.
const BATCH: i64 = 1000;
const PAUSE: Duration = Duration::from_millis(10);

/// Deletes the rows of a table with an `id` for which `clause` holds; answers how many that were.
pub(crate) async fn delete(db: &Db, table: &'static str, clause: &'static str, values: Vec<Value>) -> Result<u64> {
    let sql = format!("DELETE FROM {table} WHERE id IN (SELECT id FROM {table} WHERE {clause} LIMIT ?)");
    let mut gone = 0;
    loop {
        let some = db.run(&sql, [values.clone(), args![BATCH]].concat()).await?;
        gone += some;
        if some < BATCH as u64 {
            return Ok(gone);
        }
        tokio::time::sleep(PAUSE).await;
    }
}
