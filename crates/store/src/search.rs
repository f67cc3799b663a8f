//! Text searches of tables that grow without end. No index of either database finds any text within another, a name of two
//! Chinese characters included. So a search reads the newest rows, as many as are read within a second, and says how far back
//! it came; the next search goes on from there.

use base::Listing;
use jiff::Timestamp;

use crate::db::{Number, Value};
use crate::{Conn, Db, Result};

/// What a search looks through.
#[derive(Clone, Copy, Debug)]
pub enum Depth {
    Log,
    Messages,
}

impl Depth {
    /// How many rows; more when somebody asks to search further back, and is ready to wait.
    fn rows(self, db: &Db, before: Option<Timestamp>) -> i64 {
        let limits = db.limits;
        let rows = match self {
            Depth::Log => limits.log_rows,
            Depth::Messages => limits.message_rows,
        };
        if before.is_some() { rows * 5 / 2 } else { rows }
    }
}

/// One page of what a search found.
#[derive(Clone, Debug)]
pub struct Found<T> {
    pub list: Vec<T>,
    /// How many there are in what was looked through.
    pub total: i64,
    /// Only rows since then were looked through; `None` when there are no older ones.
    pub searched_since: Option<Timestamp>,
}

impl<T> Found<T> {
    /// A list that was not searched but read.
    pub fn all(listing: Listing<T>) -> Found<T> {
        Found { list: listing.list, total: listing.total, searched_since: None }
    }
}

/// The part of a table that a search looks through.
#[derive(Clone, Debug)]
pub struct Range {
    pub since: Option<Timestamp>,
    /// In the place of the table, under its name.
    pub(crate) from: String,
    pub(crate) args: Vec<Value>,
}

impl Range {
    /// The newest rows, older than `before`, of what a `WHERE` leaves of a table. An index must serve it in the order of
    /// created_at and id.
    pub async fn newest(
        db: &Db,
        table: &'static str,
        narrowed: (String, Vec<Value>),
        depth: Depth,
        before: Option<Timestamp>,
    ) -> Result<Range> {
        let (mut clause, mut args) = narrowed;
        let mut also = |comparison: &str, at: Option<Timestamp>| {
            if let Some(at) = at {
                clause.push_str(if clause.is_empty() { " WHERE " } else { " AND " });
                clause.push_str(comparison);
                args.push(at.into());
            }
            (clause.clone(), args.clone())
        };
        let (looked, args) = also("created_at < ?", before);
        let rows = depth.rows(db, before);
        let sql = format!(
            "SELECT created_at AS n FROM {table}{looked} ORDER BY created_at DESC, id DESC LIMIT 1 OFFSET {rows}"
        );
        let oldest: Option<Number> = Conn::Search(db).first(&sql, args).await?;
        let since = oldest.and_then(|oldest| Timestamp::from_millisecond(oldest.n).ok());
        let (clause, args) = also("created_at >= ?", since);
        // With a limit it stays a step of its own. Otherwise a database may walk through the whole table in another order.
        let from =
            format!("(SELECT * FROM {table}{clause} ORDER BY created_at DESC, id DESC LIMIT {}) AS {table}", i64::MAX);
        Ok(Range { since, from, args })
    }
}
