//! Identity as an argument: a handler that takes one of these cannot forget to check it.

use axum::extract::{FromRequestParts, MatchedPath};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, header};
use base::{Error, Kind};
use people::session;
use queue::audit::By;
use queue::permission::{Permission, Rights};

use super::caller::by;
use crate::error::ApiError;
use crate::state::Shared;
use crate::trace::Who;

/// A logged-in employee.
pub struct Employee(pub session::Employee);

/// A logged-in administrator who may do what the operation needs, by the table of `queue::permission`.
pub struct Admin {
    pub account: session::Admin,
    /// For the audit log.
    pub by: By,
}

impl FromRequestParts<Shared> for Employee {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Shared) -> Result<Employee, ApiError> {
        let account = session::employee(&api.app, bearer(&parts.headers)?).await?;
        Who::tell(parts, account.id.as_str());
        Ok(Employee(account))
    }
}

impl FromRequestParts<Shared> for Admin {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Shared) -> Result<Admin, ApiError> {
        let account = session::admin(&api.app, bearer(&parts.headers)?).await?;
        Who::tell(parts, account.id.as_str());
        let by = By { rights: Rights::Of(account.role), ..by(parts, api, &account.email) };
        by.require(needed(parts)?)?;
        Ok(Admin { account, by })
    }
}

/// What the operation needs that a request is for. One that is not in the table is nobody's.
pub fn needed(parts: &Parts) -> Result<Permission, Error> {
    let route = parts.extensions.get::<MatchedPath>().map(MatchedPath::as_str).unwrap_or_default();
    // The public URL may put a prefix before it.
    let path = route.rsplit_once("/api/v1").map_or(route, |(_, path)| path);
    // A GET without its body is the same operation.
    let method = if parts.method == Method::HEAD { &Method::GET } else { &parts.method };
    let found = Permission::of_operation(method.as_str(), path);
    found.ok_or_else(|| Error::internal(format_args!("no permission is named for {} {path}", parts.method)))
}

pub fn bearer(headers: &HeaderMap) -> Result<&str, ApiError> {
    let header = headers.get(header::AUTHORIZATION).and_then(|v| v.to_str().ok());
    let token = header.and_then(|h| h.split_once(' ')).filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    match token {
        Some((_, token)) => Ok(token.trim()),
        None => Err(Error::from(Kind::Unauthorized).with_operator("no bearer token").into()),
    }
}
