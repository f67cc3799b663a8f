//! Paging and sorting of lists.

use serde::Serialize;

use crate::{Error, Result};

/// A part of a list: where it begins, and how many rows it has at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    pub offset: i64,
    pub limit: i64,
}

impl Page {
    /// The largest page that a client may ask for.
    pub const MAX: i64 = 200;

    /// The whole list, for endpoints that page only on request.
    pub const ALL: Page = Page { offset: 0, limit: i64::MAX };

    /// The total number of rows, if it follows from this page: the page is not full, so it is the last one.
    pub fn total_by(self, rows: usize) -> Option<i64> {
        let rows = i64::try_from(rows).ok()?;
        let is_last = rows < self.limit && (rows > 0 || self.offset == 0);
        is_last.then_some(self.offset + rows)
    }

    /// The page for a query that uses either `page` and `size`, or `limit` and `offset`.
    pub fn asked(asked: Asked, default_size: i64) -> Result<Page> {
        let positive = |field: &str, value: Option<i64>| match value {
            Some(n) if n < 1 => Err(Error::field(field, "must be 1 or more")),
            other => Ok(other),
        };
        let page = positive("page", asked.page)?;
        let size = positive("page_size", asked.size)?;
        let limit = positive("limit", asked.limit)?;
        let offset = match asked.offset {
            Some(n) if n < 0 => return Err(Error::field("offset", "must be 0 or more")),
            other => other,
        };
        let limit = size.or(limit).unwrap_or(default_size).min(Page::MAX);
        // The product must not overflow. A saturated offset is beyond the end of any list, which is correct.
        let offset = match page {
            Some(page) => (page - 1).saturating_mul(limit),
            None => offset.unwrap_or(0),
        };
        Ok(Page { offset, limit })
    }

    /// The number of this page, from 1.
    pub fn number(self) -> i64 {
        (self.offset / self.limit.max(1)).saturating_add(1)
    }
}

/// The paging parameters of a query, of both styles.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked {
    pub page: Option<i64>,
    pub size: Option<i64>,
    pub limit: Option<i64>,
    pub offset: Option<i64>,
}

impl Asked {
    pub fn nothing(self) -> bool {
        self.page.is_none() && self.size.is_none() && self.limit.is_none() && self.offset.is_none()
    }
}

/// A page of a list and how many there are in all.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct Listing<T> {
    pub list: Vec<T>,
    /// How many there are in all, whatever the page.
    pub total: i64,
}

impl<T> Listing<T> {
    pub fn map<U>(self, f: impl FnMut(T) -> U) -> Listing<U> {
        Listing { list: self.list.into_iter().map(f).collect(), total: self.total }
    }
}

/// A column to sort by and its direction. The column is one of our constants, never text of the client: it goes into
/// the SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sort {
    pub column: &'static str,
    pub descending: bool,
}

impl Sort {
    /// Reads `name` or `-name`, where the name is one of `columns`.
    pub fn asked(text: Option<&str>, columns: &[&'static str], default: Sort) -> Result<Sort> {
        let Some(text) = text else { return Ok(default) };
        let (name, descending) = match text.strip_prefix('-') {
            Some(name) => (name, true),
            None => (text, false),
        };
        let column = columns.iter().find(|c| **c == name);
        let column =
            column.ok_or_else(|| Error::field("sort", format_args!("must be one of {}", columns.join(", "))))?;
        Ok(Sort { column, descending })
    }

    pub fn direction(self) -> &'static str {
        if self.descending { "DESC" } else { "ASC" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pages_tile_the_list(total in 0i64..2000, size in 1i64..400) {
            let mut seen = vec![];
            for number in 1.. {
                let page = Page::asked(Asked { page: Some(number), size: Some(size), ..Asked::default() }, 50).unwrap();
                prop_assert!(page.limit <= Page::MAX);
                let rows: Vec<i64> = (0..total).skip(page.offset as usize).take(page.limit as usize).collect();
                prop_assert!(page.total_by(rows.len()).is_none_or(|said| said == total));
                if rows.is_empty() { break }
                seen.extend(rows);
            }
            prop_assert_eq!(seen, (0..total).collect::<Vec<_>>());
        }

        #[test]
        fn nothing_overflows_and_nothing_below_one_is_taken(page in any::<Option<i64>>(), size in any::<Option<i64>>(), limit in any::<Option<i64>>(), offset in any::<Option<i64>>()) {
            let bad = page.is_some_and(|n| n < 1) || size.is_some_and(|n| n < 1) || limit.is_some_and(|n| n < 1) || offset.is_some_and(|n| n < 0);
            match Page::asked(Asked { page, size, limit, offset }, 50) {
                Ok(page) => prop_assert!(!bad && page.offset >= 0 && (1..=Page::MAX).contains(&page.limit) && page.number() >= 1),
                Err(_) => prop_assert!(bad),
            }
        }
    }

    #[test]
    fn pages_are_counted_from_one() {
        let number = |offset, limit| Page { offset, limit }.number();
        assert_eq!((number(0, 50), number(50, 50), number(99, 50), number(100, 50)), (1, 2, 2, 3));
        assert_eq!(number(i64::MAX, 1), i64::MAX);
    }

    #[test]
    fn only_the_lists_own_columns_sort_it() {
        let default = Sort { column: "id", descending: true };
        let asked = |text| Sort::asked(text, &["id", "email"], default);
        assert_eq!(asked(None).unwrap(), default);
        assert_eq!(asked(Some("-email")).unwrap(), Sort { column: "email", descending: true });
        assert!(asked(Some("email; DROP TABLE users")).is_err());
    }
}
