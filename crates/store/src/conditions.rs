//! `WHERE` clauses built from a list's filters. The clauses are constants of ours; all values are bound.

use base::{Listing, Page, Sort};

use crate::db::{Number, Record, Value};
use crate::search::Range;
use crate::{Conn, Db, Dialect, Result};

/// The sortable columns that can be NULL, of all lists.
const NULLABLE: &[&str] = &["last_login_at", "last_health_at", "allocated_at"];

pub struct Conditions {
    dialect: Dialect,
    sql: String,
    args: Vec<Value>,
    /// Whether a text is searched for. Such a list is read on a search connection.
    searches: bool,
    /// The part of the table that is searched.
    range: Option<Range>,
}

impl Conditions {
    /// Conditions that match every row.
    pub fn of(dialect: Dialect) -> Conditions {
        Conditions { dialect, sql: String::new(), args: vec![], searches: false, range: None }
    }

    /// Adds a clause without a value.
    pub fn must(mut self, clause: &'static str) -> Conditions {
        self.sql.push_str(if self.sql.is_empty() { " WHERE " } else { " AND " });
        self.sql.push_str(clause);
        self
    }

    /// Adds a clause with one `?` when there is a value for it.
    pub fn when<V: Into<Value>>(mut self, clause: &'static str, value: Option<V>) -> Conditions {
        if let Some(value) = value {
            self = self.must(clause);
            self.args.push(value.into());
        }
        self
    }

    /// Adds the second half of a clause whose parenthesis is still open.
    pub fn or<V: Into<Value>>(mut self, clause: &'static str, value: V) -> Conditions {
        self.sql.push_str(" OR ");
        self.sql.push_str(clause);
        self.args.push(value.into());
        self
    }

    /// Adds a search for `text` in any of the columns, without regard to case.
    pub fn search(mut self, columns: &[&'static str], text: Option<&str>) -> Conditions {
        let text = text.map(|t| t.trim().replace('\0', "")).filter(|t| !t.is_empty());
        if let Some(text) = text {
            let operator = self.dialect.contains();
            let any = columns.iter().map(|column| format!("{column} {operator}")).collect::<Vec<_>>().join(" OR ");
            self.sql.push_str(if self.sql.is_empty() { " WHERE (" } else { " AND (" });
            self.sql.push_str(&any);
            self.sql.push(')');
            let pattern = self.dialect.containing(&text);
            self.args.extend(std::iter::repeat_n(Value::from(pattern), columns.len()));
            self.searches = true;
        }
        self
    }

    /// Limits the search to a part of the table.
    pub fn within(mut self, range: Option<Range>) -> Conditions {
        self.range = range;
        self
    }

    /// The `SELECT` of one page.
    pub fn page(&self, select: &str, sort: Sort, tie: &str, page: Page) -> (String, Vec<Value>) {
        let sql = format!("{select}{} ORDER BY {} LIMIT ? OFFSET ?", self.sql, order(sort, tie));
        let mut args = self.args.clone();
        args.extend([page.limit.into(), page.offset.into()]);
        (sql, args)
    }

    /// The `SELECT` of the number of rows, `AS n`.
    pub fn count(&self, from: &str) -> (String, Vec<Value>) {
        (format!("SELECT COUNT(*) AS n FROM {from}{}", self.sql), self.args.clone())
    }

    /// One page of a table, and the total number of rows.
    pub async fn list<T: Record>(
        &self,
        db: &Db,
        columns: &str,
        from: &str,
        sort: Sort,
        tie: &str,
        page: Page,
    ) -> Result<Listing<T>> {
        let (from, part) = self.range.as_ref().map_or((from, vec![]), |range| (&range.from, range.args.clone()));
        let (sql, args) = self.page(&format!("SELECT {columns} FROM {from}"), sort, tie, page);
        let list: Vec<T> = self.conn(db).all(&sql, [part.clone(), args].concat()).await?;
        if let Some(total) = page.total_by(list.len()) {
            return Ok(Listing { list, total });
        }
        let (sql, args) = self.count(from);
        let total: Number = self.conn(db).one(&sql, [part, args].concat()).await?;
        Ok(Listing { list, total: total.n })
    }

    /// The connection to read such a list on.
    pub fn conn<'a>(&self, db: &'a Db) -> Conn<'a> {
        if self.searches { Conn::Search(db) } else { Conn::Db(db) }
    }

    pub fn into_clause(self) -> (String, Vec<Value>) {
        (self.sql, self.args)
    }

    pub fn clause(&self) -> (&str, Vec<Value>) {
        (&self.sql, self.args.clone())
    }
}

/// The text after `ORDER BY`: the column, then `tie`, a unique column that orders equal rows. If `tie` has a table name
/// (`i.id`), the sort column gets the same.
pub fn order(sort: Sort, tie: &str) -> String {
    let direction = sort.direction();
    let table = tie.find('.').map_or("", |dot| &tie[..=dot]);
    if tie.strip_prefix(table) == Some(sort.column) {
        return format!("{tie} {direction}");
    }
    // Only for columns that can be NULL: PostgreSQL cannot use our indexes for `DESC NULLS LAST`.
    let nulls = if NULLABLE.contains(&sort.column) { " NULLS LAST" } else { "" };
    format!("{table}{} {direction}{nulls}, {tie} {direction}", sort.column)
}
