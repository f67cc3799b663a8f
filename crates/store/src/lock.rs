//! The lock on a whole database. Every process that serves takes it in shared mode; work that must be alone takes it
//! exclusively. For SQLite it is a file beside the database, for PostgreSQL an advisory lock of a separate connection.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use sqlx::postgres::PgConnection;

use crate::{Db, Error, Result};

/// The lock, held until this value is dropped.
#[derive(Debug)]
#[expect(dead_code, reason = "dropping what is inside gives the lock back")]
pub struct InUse(Held);

#[derive(Debug)]
#[expect(dead_code, reason = "dropping it gives the lock back")]
enum Held {
    File(File),
    Connection(Box<PgConnection>),
}

/// The key of the advisory lock.
const IN_USE: i64 = 0x7469_6465_0010;
/// How long to retry: PostgreSQL releases the lock of an ended process only after a moment.
const LEAVING: Duration = Duration::from_secs(3);

/// Takes the lock of a PostgreSQL database in shared mode. The lock ends with its connection, so a server that runs on
/// while PostgreSQL restarts loses it.
pub async fn share_postgres(db: &Db) -> Result<Option<InUse>> {
    hold(db, "SELECT pg_try_advisory_lock_shared($1)", "the database is being re-keyed").await
}

/// Takes the lock of a PostgreSQL database exclusively.
pub async fn alone_postgres(db: &Db) -> Result<Option<InUse>> {
    hold(db, "SELECT pg_try_advisory_lock($1)", "the database is in use: stop every server first").await
}

async fn hold(db: &Db, sql: &'static str, refusal: &str) -> Result<Option<InUse>> {
    let Some(pool) = db.postgres() else { return Ok(None) };
    let mut connection = pool.acquire().await?.detach();
    let asked = Instant::now();
    let limit = db.limits.statement;
    loop {
        let asks = sqlx::query_scalar::<_, bool>(sql).bind(IN_USE).fetch_one(&mut connection);
        if tokio::time::timeout(limit, asks).await.map_err(|_| crate::link::silent(limit))?? {
            break;
        }
        if asked.elapsed() > LEAVING {
            return Err(Error::Refused(refusal.to_owned()));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(Some(InUse(Held::Connection(Box::new(connection)))))
}

/// Takes the lock of a SQLite database in shared mode.
pub fn share(database: &Path) -> Result<InUse> {
    let file = open(database)?;
    match file.try_lock_shared() {
        Ok(()) => Ok(InUse(Held::File(file))),
        Err(TryLockError::WouldBlock) => Err(Error::Refused(format!("{} is being restored", database.display()))),
        Err(TryLockError::Error(e)) => Err(Error::File(database.display().to_string(), e)),
    }
}

/// Takes the lock of a SQLite database exclusively.
pub fn alone(database: &Path) -> Result<InUse> {
    let file = open(database)?;
    match file.try_lock() {
        Ok(()) => Ok(InUse(Held::File(file))),
        Err(TryLockError::WouldBlock) => {
            Err(Error::Refused(format!("{} is in use: stop the server first", database.display())))
        }
        Err(TryLockError::Error(e)) => Err(Error::File(database.display().to_string(), e)),
    }
}

fn open(database: &Path) -> Result<File> {
    let path = database.with_extension("lock");
    let file = OpenOptions::new().create(true).truncate(false).read(true).write(true).mode(0o600).open(&path);
    file.map_err(|e| Error::File(path.display().to_string(), e))
}
