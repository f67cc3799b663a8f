//! `WHERE` clauses that grow with what a list is asked for. The clauses are ours, the values are bound.

use base::{Page, Sort};

use crate::db::Value;

/// The columns of all sortable lists that can be NULL.
const NULLABLE: &[&str] = &["last_login_at", "i.last_health_at", "e.allocated_at"];

#[derive(Default)]
pub struct Filter {
    sql: String,
    args: Vec<Value>,
}

impl Filter {
    /// Adds a clause without a value.
    pub fn must(mut self, clause: &'static str) -> Filter {
        self.sql.push_str(if self.sql.is_empty() { " WHERE " } else { " AND " });
        self.sql.push_str(clause);
        self
    }

    /// Adds a clause with one `?` when there is a value for it.
    pub fn when<V: Into<Value>>(mut self, clause: &'static str, value: Option<V>) -> Filter {
        if let Some(value) = value {
            self = self.must(clause);
            self.args.push(value.into());
        }
        self
    }

    /// Adds a search for `text` in any of the clause's columns, each compared with one `?`.
    pub fn search(mut self, clause: &'static str, text: Option<&str>) -> Filter {
        if let Some(text) = text.filter(|t| !t.trim().is_empty()) {
            self = self.must(clause);
            let pattern = contains(text);
            self.args.extend(std::iter::repeat_n(Value::from(pattern), clause.matches('?').count()));
        }
        self
    }

    /// The `SELECT` of one page.
    pub fn page(&self, select: &str, sort: Sort, tie: &str, page: Page) -> (String, Vec<Value>) {
        let sql = format!("{select}{} ORDER BY {} LIMIT ? OFFSET ?", self.sql, order(sort, tie));
        let mut args = self.args.clone();
        args.extend([page.limit.into(), page.offset.into()]);
        (sql, args)
    }

    /// The `SELECT` of how many there are, `AS n`.
    pub fn count(&self, from: &str) -> (String, Vec<Value>) {
        (format!("SELECT COUNT(*) AS n FROM {from}{}", self.sql), self.args.clone())
    }

    pub fn clause(&self) -> (&str, Vec<Value>) {
        (&self.sql, self.args.clone())
    }
}

/// What stands behind `ORDER BY`: the column, and one that tells equal rows apart.
pub fn order(sort: Sort, tie: &str) -> String {
    let direction = sort.direction();
    if sort.column == tie {
        return format!("{tie} {direction}");
    }
    // Said only where there can be NULLs: PostgreSQL's indexes do not serve `DESC NULLS LAST`.
    let nulls = if NULLABLE.contains(&sort.column) { " NULLS LAST" } else { "" };
    format!("{} {direction}{nulls}, {tie} {direction}", sort.column)
}

/// A pattern for `LOWER(column) LIKE ? ESCAPE '\'`, in which nothing of the text is a wild card.
pub fn contains(text: &str) -> String {
    let mut pattern = String::from("%");
    for c in text.trim().chars().flat_map(char::to_lowercase).filter(|c| *c != '\0') {
        if matches!(c, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern.push('%');
    pattern
}
