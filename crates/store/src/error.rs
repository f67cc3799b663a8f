//! Errors of the database, and what the client sees of them.

use base::Kind;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("not found")]
    NotFound,
    /// A unique key is already in use.
    #[error("already exists")]
    Taken,
    #[error("the database cannot be reached: {0}")]
    Unreachable(sqlx::Error),
    #[error("the database gave way to another transaction: {0}")]
    Contended(sqlx::Error),
    /// A statement was ended because it exceeded its timeout.
    #[error("a statement took too long and was ended: {0}")]
    TooSlow(sqlx::Error),
    #[error("database: {0}")]
    Sql(sqlx::Error),
    #[error("column {0}: {1}")]
    Column(String, String),
    #[error("database_url: must begin with sqlite: or postgres://, for example sqlite:data/tidepool.db")]
    Url,
    #[error(
        "the database has schema version {found}, this binary knows {known}: start the newer binary, or restore a backup"
    )]
    Newer { found: i64, known: i64 },
    #[error("a stored secret cannot be opened: {0}")]
    Sealed(&'static str),
    #[error(
        "{0} is not the key that this database was made with: give every process the same keys (or, to change them on purpose, use `tidepool db rekey`)"
    )]
    OtherKey(&'static str),
    #[error(
        "TIDEPOOL_TIMEZONE is {ours} here, and {theirs} in processes that are running: give every process the same zone (or, to change it on purpose, stop all of them first)"
    )]
    OtherZone { ours: String, theirs: String },
    #[error("{0}")]
    Refused(String),
    #[error("{0}: {1}")]
    File(String, std::io::Error),
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Whether the database refused the values themselves, so that no retry of the same statement can succeed.
    pub fn is_about_values(&self) -> bool {
        match self {
            Error::Taken => true,
            Error::Sql(sqlx::Error::Database(e)) => e.code().is_some_and(|code| match code.parse::<u32>() {
                // SQLite: too big, a constraint, a type that does not fit.
                Ok(code) if code < 10_000 => matches!(code & 0xff, 18..=20),
                // PostgreSQL: data exceptions, integrity constraints, and program limits (a text too long for an
                // index).
                _ => ["22", "23", "54"].iter().any(|class| code.starts_with(class)),
            }),
            _ => false,
        }
    }
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Error {
        match error {
            sqlx::Error::RowNotFound => Error::NotFound,
            sqlx::Error::Database(e) if e.is_unique_violation() => Error::Taken,
            // PostgreSQL: deadlock, serialization failure, or idle in a transaction for too long. The transaction was
            // rolled back.
            sqlx::Error::Database(e) if e.code().is_some_and(|c| matches!(&*c, "40P01" | "40001" | "25P03")) => {
                Error::Contended(sqlx::Error::Database(e))
            }
            // PostgreSQL: query_canceled. SQLite: SQLITE_INTERRUPT.
            sqlx::Error::Database(e) if e.code().is_some_and(|c| matches!(&*c, "57014" | "9")) => {
                Error::TooSlow(sqlx::Error::Database(e))
            }
            // PostgreSQL: shutting down, starting up, out of connections. MySQL: out of connections, shutting down.
            sqlx::Error::Database(e)
                if e.code()
                    .is_some_and(|c| matches!(&*c, "57P01" | "57P02" | "57P03" | "53300" | "08004" | "08S01")) =>
            {
                Error::Unreachable(sqlx::Error::Database(e))
            }
            e @ (sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed | sqlx::Error::Tls(_)) => {
                Error::Unreachable(e)
            }
            other => Error::Sql(other),
        }
    }
}

impl From<Error> for base::Error {
    fn from(error: Error) -> base::Error {
        match &error {
            Error::NotFound => Kind::NotFound.into(),
            Error::Taken => Kind::Conflict.into(),
            Error::Unreachable(_) => base::Error::from(Kind::Unavailable).with_operator(error),
            Error::Contended(_) => {
                let again = std::time::Duration::from_secs(1);
                base::Error::from(Kind::Unavailable).with_operator(error).retry_after(again)
            }
            Error::TooSlow(_) => {
                let text =
                    "The query took too long and was stopped. Ask for less, for example for fewer days, and try again.";
                base::Error::new(Kind::Unavailable, text).with_operator(error)
            }
            _ => base::Error::internal(error),
        }
    }
}
