//! Copies all rows from SQLite to an empty PostgreSQL database and checks that the counts are equal.

use crate::db::{Record, Row, Value};
use crate::link::LONGEST;
use crate::table::{self, COUNTED, TABLES};
use crate::{Db, Dialect, Error, Result, args, migrate};

/// Rows per `INSERT`. PostgreSQL allows at most 65,535 values in one statement.
const BATCH: usize = 500;

struct Column {
    name: String,
    kind: String,
}

impl Record for Column {
    const COLUMNS: &'static str = "name, type";
    fn from_row(row: &Row) -> Result<Column> {
        Ok(Column { name: row.get("name")?, kind: row.get("type")? })
    }
}

/// Copies all tables; returns how many rows each has.
pub async fn run(from: &Db, to: &Db) -> Result<Vec<(&'static str, i64)>> {
    if from.dialect() != Dialect::Sqlite || to.dialect() != Dialect::Postgres {
        return Err(Error::Refused("copy moves a SQLite database to PostgreSQL".into()));
    }
    migrate::run(from).await?;
    migrate::run(to).await?;
    let mut source = from.begin().await?;
    let mut target = to.begin().await?;
    // The target's transaction is idle while the source is read and counted. That blocks nobody: the target was empty.
    target.may_idle(LONGEST).await?;
    target.may_take(LONGEST).await?;
    for table in TABLES {
        if table::count(&mut target, table).await? > 0 {
            return Err(Error::Refused(format!("the target is not empty: {table} has rows")));
        }
    }
    let mut copied = vec![];
    for table in TABLES {
        let columns: Vec<Column> = source.all(&format!("PRAGMA table_info({table})"), args![]).await?;
        let names = columns.iter().map(|c| c.name.as_str()).collect::<Vec<_>>().join(", ");
        let marks = format!("({})", vec!["?"; columns.len()].join(", "));
        let mut after = i64::MIN;
        loop {
            // Every table of ours has SQLite's rowid, and pages by rowid are stable within the transaction.
            let sql =
                format!("SELECT rowid AS copy_rowid, {names} FROM {table} WHERE rowid > ? ORDER BY rowid LIMIT ?");
            let rows = source.rows(&sql, args![after, BATCH as i64]).await?;
            let Some(last) = rows.last() else { break };
            after = last.get("copy_rowid")?;
            let mut values: Vec<Value> = Vec::with_capacity(rows.len() * columns.len());
            for row in &rows {
                for column in &columns {
                    values.push(read(row, column)?);
                }
            }
            let all_marks = vec![marks.as_str(); rows.len()].join(", ");
            target.run(&format!("INSERT INTO {table} ({names}) VALUES {all_marks}"), values).await?;
        }
        let (here, there) = (table::count(&mut source, table).await?, table::count(&mut target, table).await?);
        if here != there {
            return Err(Error::Refused(format!("{table}: {here} rows in the source, {there} in the copy")));
        }
        copied.push((*table, there));
    }
    for table in COUNTED {
        let sql = format!(
            "SELECT setval(pg_get_serial_sequence('{table}', 'id'), (SELECT COALESCE(MAX(id), 0) + 1 FROM {table}), false)"
        );
        target.run(&sql, args![]).await?;
    }
    target.commit().await?;
    Ok(copied)
}

fn read(row: &Row, column: &Column) -> Result<Value> {
    Ok(match column.kind.as_str() {
        "INTEGER" => Value::Int(row.get(&column.name)?),
        "REAL" => Value::Real(row.get(&column.name)?),
        _ => Value::Text(row.get(&column.name)?),
    })
}
