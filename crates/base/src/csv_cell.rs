//! One cell of a CSV export, so that a spreadsheet shows it and never runs it.

use std::borrow::Cow;

/// Puts an apostrophe in front of a cell that a spreadsheet would read as a formula.
pub fn formula_safe(cell: &str) -> Cow<'_, str> {
    // Some spreadsheets skip a leading tab or line break and then run the formula after it.
    if cell.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']) {
        Cow::Owned(format!("'{cell}"))
    } else {
        Cow::Borrowed(cell)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_cell_begins_like_a_formula_and_none_loses_text(cell in ".*", head in "[=+@\t-]?") {
            let cell = format!("{head}{cell}");
            let safe = formula_safe(&cell);
            prop_assert!(!safe.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']));
            prop_assert!(safe.ends_with(&cell));
        }
    }
}
