//! Text searches in tables that grow without limit. Neither database has an index that finds every substring; even
//! trigrams miss a name of two Chinese characters. So a search reads the newest rows, about as many as take a second,
//! and returns how far back it got; the next search continues from there.

use base::Listing;
use jiff::Timestamp;

use crate::db::{Number, Value};
use crate::{Conn, Db, Result};

/// The kind of rows that a search reads.
#[derive(Clone, Copy, Debug)]
pub enum Depth {
    Log,
    Messages,
}

impl Depth {
    /// How many rows are read; more for a user who continues a search further back and is ready to wait.
    fn rows(self, db: &Db, before: Option<Timestamp>) -> i64 {
        let limits = db.limits;
        let rows = match self {
            Depth::Log => limits.log_rows,
            Depth::Messages => limits.message_rows,
        };
        if before.is_some() { rows * 5 / 2 } else { rows }
    }
}

/// One page of the results of a search.
#[derive(Clone, Debug)]
pub struct Found<T> {
    pub list: Vec<T>,
    /// The number of results in the searched rows.
    pub total: i64,
    /// Only rows since then were searched; `None` if there are no older ones.
    pub searched_since: Option<Timestamp>,
}

impl<T> Found<T> {
    /// A list that was read without a search.
    pub fn all(listing: Listing<T>) -> Found<T> {
        Found { list: listing.list, total: listing.total, searched_since: None }
    }
}

/// The part of a table that a search reads.
#[derive(Clone, Debug)]
pub struct Range {
    pub since: Option<Timestamp>,
    /// A subquery that replaces the table, under the table's name.
    pub(crate) from: String,
    pub(crate) args: Vec<Value>,
}

impl Range {
    /// The newest rows that are older than `before` and match the clause `narrowed`. An index must provide them in the
    /// order of created_at and id.
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
        // The limit keeps the database from merging the subquery into the query, where it might scan the whole table in
        // another order.
        let from =
            format!("(SELECT * FROM {table}{clause} ORDER BY created_at DESC, id DESC LIMIT {}) AS {table}", i64::MAX);
        Ok(Range { since, from, args })
    }
}
