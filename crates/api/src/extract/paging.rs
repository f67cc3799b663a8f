//! Paging in either manner: `page` with a size, or `limit` with `offset`.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use base::page::Asked;
use base::{Error, Page, Result};
use serde::Deserialize;
use utoipa::IntoParams;

use super::query;
use crate::error::ApiError;

/// Both manners are taken everywhere. A size over 200 counts as 200.
#[derive(Clone, Copy, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Paging {
    /// The page, counted from 1.
    #[param(minimum = 1)]
    pub page: Option<i64>,
    /// Rows on a page, at most 200.
    #[param(minimum = 1)]
    pub page_size: Option<i64>,
    /// Another name of `page_size`.
    #[param(minimum = 1, rename = "pageSize")]
    #[serde(rename = "pageSize")]
    pub page_size_camel: Option<i64>,
    /// Another name of `page_size`.
    #[param(minimum = 1)]
    pub size: Option<i64>,
    /// Rows to answer, at most 200; in place of a page.
    #[param(minimum = 1)]
    pub limit: Option<i64>,
    /// Rows to skip; counts when `page` is not given.
    #[param(minimum = 0)]
    pub offset: Option<i64>,
}

impl Paging {
    fn asked(self) -> Asked {
        Asked {
            page: self.page,
            size: self.page_size.or(self.page_size_camel).or(self.size),
            limit: self.limit,
            offset: self.offset,
        }
    }

    pub fn page(self, default_size: i64) -> Result<Page, Error> {
        Page::asked(self.asked(), default_size)
    }

    /// Everything, unless paging is asked for.
    pub fn page_or_all(self, default_size: i64) -> Result<Page, Error> {
        if self.asked().nothing() { Ok(Page::ALL) } else { self.page(default_size) }
    }
}

impl<S: Sync> FromRequestParts<S> for Paging {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Paging, ApiError> {
        query::read(parts.uri.query().unwrap_or_default())
    }
}
