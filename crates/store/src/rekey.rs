//! Seals every stored secret with another master key, in one transaction.

use base::Secret;

use crate::db::{Lock, Record, Row};
use crate::key_check::{self, Key};
use crate::link::LONGEST;
use crate::seal::{Place, Sealer};
use crate::table::{SEALED, Sealed};
use crate::{Db, Result, args};

struct Value {
    id: String,
    value: Option<String>,
}

impl Record for Value {
    const COLUMNS: &'static str = "id, value";
    fn from_row(row: &Row) -> Result<Value> {
        Ok(Value { id: row.get("id")?, value: row.get("value")? })
    }
}

/// Whether the database uses this master key. Waits for a running `run` first: a commit whose response was lost may
/// still be in progress.
pub async fn is_under(db: &Db, setting: &'static str, key: &Secret) -> Result<bool> {
    let mut tx = db.begin().await?;
    tx.may_take(LONGEST).await?;
    tx.lock(Lock::Rekey).await?;
    key_check::is(&mut tx, Key { setting, key }).await
}

/// Moves the database from the `old` master key to the `new` one; returns how many secrets it sealed.
pub async fn run(db: &Db, setting: &'static str, old: &Secret, new: &Secret) -> Result<u64> {
    let (from, to) = (Sealer::new(old)?, Sealer::new(new)?);
    let mut moved = 0;
    let mut tx = db.begin().await?;
    tx.may_take(LONGEST).await?;
    tx.lock(Lock::Rekey).await?;
    for Sealed { table, id, column, hash } in SEALED {
        let lock = tx.dialect().for_update();
        let rows: Vec<Value> =
            tx.all(&format!("SELECT {id} AS id, {column} AS value FROM {table}{lock}"), args![]).await?;
        for row in rows {
            let Some(sealed) = row.value else { continue };
            let place = Place { table, column, id: &row.id };
            let secret = from.open(place, &sealed)?;
            let sealed = to.seal(place, &secret)?;
            match hash {
                Some(hash) => {
                    let sql = format!("UPDATE {table} SET {column} = ?, {hash} = ? WHERE {id} = ?");
                    tx.run(&sql, args![sealed, to.hash(&secret), row.id]).await?
                }
                None => {
                    let sql = format!("UPDATE {table} SET {column} = ? WHERE {id} = ?");
                    tx.run(&sql, args![sealed, row.id]).await?
                }
            };
            moved += 1;
        }
    }
    key_check::replace(&mut tx, Key { setting, key: new }).await?;
    tx.commit().await?;
    Ok(moved)
}
