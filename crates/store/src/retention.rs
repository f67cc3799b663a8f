//! Deletes old rows in small batches. After months without a scheduler there may be millions. One statement for all
//! would block other writers, and PostgreSQL would end it by timeout every night before it has deleted anything.

use std::time::Duration;

use crate::db::Value;
use crate::{Db, Result, args};

/// Rows per statement, and the pause between statements for other writers.
const BATCH: i64 = 1000;
const PAUSE: Duration = Duration::from_millis(10);

/// Deletes the rows that match `clause`, from a table with a column `id`; returns how many.
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
