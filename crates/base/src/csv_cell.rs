//! One cell of a CSV export, so that a spreadsheet shows it and never runs it.

use std::borrow::Cow;

/// Prefixes what a spreadsheet would take for a formula with an apostrophe.
pub fn formula_safe(cell: &str) -> Cow<'_, str> {
    // A tab or line break in front is skipped by some spreadsheets, which then see the formula behind it.
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
