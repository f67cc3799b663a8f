//! Backups of a SQLite database: made while it is in use, and inspected before one is restored.

use std::path::Path;

use crate::db::{Conn, Number, Record, Row};
use crate::{Db, Error, Result, args, migrate, table};

/// Writes a consistent copy to `file`, which must not exist yet.
pub async fn make(db: &Db, file: &Path) -> Result<()> {
    if db.file().is_none() {
        return Err(Error::Refused("this database is PostgreSQL: back it up with pg_dump".into()));
    }
    let name = file.to_str().ok_or_else(|| Error::Refused("the path is not UTF-8".into()))?;
    db.run("VACUUM INTO ?", args![name]).await.map(drop)
}

struct Integrity(String);

impl Record for Integrity {
    const COLUMNS: &'static str = "integrity_check";
    fn from_row(row: &Row) -> Result<Integrity> {
        Ok(Integrity(row.get("integrity_check")?))
    }
}

/// The schema version of a copy, and the number of rows of each table.
#[derive(Debug)]
pub struct Contents {
    pub version: i64,
    pub rows: Vec<(&'static str, i64)>,
}

/// Opens a copy and checks that it is intact and of a version that this binary can serve.
pub async fn inspect(file: &Path) -> Result<(Db, Contents)> {
    if !file.is_file() {
        return Err(Error::Refused(format!("{} is not a file", file.display())));
    }
    let db = Db::look_into(file).await;
    let db = db.map_err(|e| Error::Refused(format!("{} cannot be opened: {e}", file.display())))?;
    let not_ours = |e: Error| match e {
        newer @ Error::Newer { .. } => newer,
        other => Error::Refused(format!("{} is not a whole tidepool database: {other}", file.display())),
    };
    let verdict: Integrity = Conn::from(&db).one("PRAGMA integrity_check", args![]).await.map_err(not_ours)?;
    if verdict.0 != "ok" {
        return Err(Error::Refused(format!("{} is damaged: {}", file.display(), verdict.0)));
    }
    let version = migrate::version(&db).await.map_err(not_ours)?;
    let version = version.ok_or_else(|| Error::Refused(format!("{} has no tidepool schema", file.display())))?;
    let mut rows = vec![];
    for table in table::TABLES {
        // A copy of an older version may lack the newest tables.
        let exists = "SELECT COUNT(*) AS n FROM sqlite_master WHERE type = 'table' AND name = ?";
        let exists: Number = Conn::from(&db).one(exists, args![*table]).await?;
        if exists.n == 1 {
            rows.push((*table, table::count(&db, table).await?));
        }
    }
    Ok((db, Contents { version, rows }))
}
