//! Lines of CSV files, safe to open in a spreadsheet.

use base::csv_cell::formula_safe;
use base::{Error, Result};

/// One cell.
#[derive(Clone, Debug)]
pub enum Cell {
    /// Guarded, so that no spreadsheet takes it for a formula.
    Text(String),
    /// Written as it is: a number may be below zero.
    Number(String),
}

impl Cell {
    pub fn text(text: impl Into<String>) -> Cell {
        Cell::Text(text.into())
    }

    pub fn number(number: impl ToString) -> Cell {
        Cell::Number(number.to_string())
    }
}

pub fn lines(rows: impl IntoIterator<Item = Vec<Cell>>) -> Result<Vec<u8>> {
    let mut out = csv::Writer::from_writer(vec![]);
    for row in rows {
        let cells = row.into_iter().map(|cell| match cell {
            Cell::Text(text) => formula_safe(&text).into_owned(),
            Cell::Number(number) => number,
        });
        out.write_record(cells).map_err(Error::internal)?;
    }
    out.into_inner().map_err(|e| Error::internal(e.error()))
}
