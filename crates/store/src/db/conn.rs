//! The connection that a statement runs on: binds its arguments and reads its rows on either database.

use std::sync::atomic::Ordering;

use sqlx::{AssertSqlSafe, SqlSafeStr as _, SqlStr};

use super::{Db, On, Pool, Tx};
use crate::link::Link;
use crate::read;
use crate::row::{MapRow as _, Record, Row, Value};
use crate::{Dialect, Error, Result};

/// The connection that a statement runs on: any of the pool, one of the few for searches, or that of a transaction.
pub enum Conn<'a> {
    Db(&'a Db),
    Search(&'a Db),
    Tx(&'a mut Tx),
}

impl<'a> From<&'a Db> for Conn<'a> {
    fn from(db: &'a Db) -> Conn<'a> {
        Conn::Db(db)
    }
}

impl<'a> From<&'a mut Tx> for Conn<'a> {
    fn from(tx: &'a mut Tx) -> Conn<'a> {
        Conn::Tx(tx)
    }
}

/// Binds the arguments and reads with `$call` on the connection of `$conn`.
macro_rules! read {
    ($conn:expr, $sql:expr, $args:expr, $call:ident) => {{
        let sql = prepare($conn.dialect(), $sql);
        let is_search = matches!($conn, Conn::Search(_));
        match $conn {
            Conn::Db(db) | Conn::Search(db) => match &db.pool {
                Pool::Sqlite { read, search, .. } => {
                    let limit = if is_search { db.limits.search } else { db.limits.read };
                    let pool = if is_search { search } else { read };
                    let mut reader = read::sqlite(pool, (!db.may_take_long).then_some(limit)).await?;
                    bound!(sql, $args).$call(&mut *reader).await?.map_row()
                }
                Pool::Postgres { pool, search } => {
                    let mut link = match is_search {
                        true => Link::for_search(search, pool, db.limits).await?,
                        false if db.may_take_long => Link::without_limit(pool, db.limits).await?,
                        false => Link::take(pool, db.limits).await?,
                    };
                    limited!(link, bound!(sql, $args), $call).map_row()
                }
            },
            Conn::Tx(tx) => match &mut tx.on {
                On::Sqlite(t) => bound!(sql, $args).$call(&mut **t).await?.map_row(),
                On::Postgres(link) => limited!(link, bound!(sql, $args), $call).map_row(),
            },
        }
    }};
}

/// The result of a query on this link, or an error if the link does not respond within its limit.
macro_rules! limited {
    ($link:expr, $query:expr, $call:ident) => {{
        let answer = tokio::time::timeout($link.limit, $query.$call($link.live()?)).await;
        $link.heard(answer)?
    }};
}

macro_rules! bound {
    ($sql:expr, $args:expr) => {{
        let mut query = sqlx::query($sql);
        for arg in $args {
            query = match arg {
                Value::Int(v) => query.bind(v),
                Value::Real(v) => query.bind(v),
                Value::Text(v) => query.bind(v),
            };
        }
        query
    }};
}

impl Conn<'_> {
    /// Reborrows the connection for one statement, so that the caller can run another one after it.
    pub fn again(&mut self) -> Conn<'_> {
        match self {
            Conn::Db(db) => Conn::Db(db),
            Conn::Search(db) => Conn::Search(db),
            Conn::Tx(tx) => Conn::Tx(tx),
        }
    }

    /// Whether the daily sums are still those of another zone.
    pub(crate) fn days_pending(&self) -> bool {
        match self {
            Conn::Db(db) | Conn::Search(db) => db.days_pending(),
            Conn::Tx(tx) => tx.days_pending.load(Ordering::Relaxed),
        }
    }

    pub fn dialect(&self) -> Dialect {
        match self {
            Conn::Db(db) | Conn::Search(db) => db.dialect(),
            Conn::Tx(tx) => tx.dialect(),
        }
    }

    pub async fn all<T: Record>(self, sql: &str, args: Vec<Value>) -> Result<Vec<T>> {
        self.rows(sql, args).await?.iter().map(T::from_row).collect()
    }

    pub(super) async fn rows(self, sql: &str, args: Vec<Value>) -> Result<Vec<Row>> {
        Ok(read!(self, sql, args, fetch_all))
    }

    pub async fn first<T: Record>(self, sql: &str, args: Vec<Value>) -> Result<Option<T>> {
        let row: Option<Row> = read!(self, sql, args, fetch_optional);
        row.as_ref().map(T::from_row).transpose()
    }

    /// The only row of a query that always has one, such as a `COUNT`.
    pub async fn one<T: Record>(self, sql: &str, args: Vec<Value>) -> Result<T> {
        self.first(sql, args).await?.ok_or(Error::NotFound)
    }

    /// Runs a statement and returns how many rows it changed.
    pub async fn run(self, sql: &str, args: Vec<Value>) -> Result<u64> {
        let sql = prepare(self.dialect(), sql);
        Ok(match self {
            Conn::Db(db) | Conn::Search(db) => match &db.pool {
                Pool::Sqlite { write, .. } => bound!(sql, args).execute(write).await?.rows_affected(),
                Pool::Postgres { pool, .. } => {
                    let mut link = Link::take(pool, db.limits).await?;
                    limited!(link, bound!(sql, args), execute).rows_affected()
                }
            },
            Conn::Tx(tx) => match &mut tx.on {
                On::Sqlite(t) => bound!(sql, args).execute(&mut **t).await?.rows_affected(),
                On::Postgres(link) => limited!(link, bound!(sql, args), execute).rows_affected(),
            },
        })
    }
}

fn prepare(dialect: Dialect, sql: &str) -> SqlStr {
    AssertSqlSafe(dialect.placeholders(sql)).into_sql_str()
}
