//! Identity as an argument: a handler that takes one of these cannot forget to check it.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use base::{Error, Kind};
use domain::audit::By;
use domain::session;
use store::admin_user::Role;

use super::caller::by;
use crate::error::ApiError;
use crate::state::Shared;
use crate::trace::Who;

/// A logged-in employee.
pub struct Employee(pub session::Employee);

/// A logged-in administrator of either role.
pub struct Admin {
    pub account: session::Admin,
    /// For the audit log.
    pub by: By,
}

/// A logged-in administrator who may manage the others.
pub struct SuperAdmin(pub Admin);

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
        let by = By { is_super: account.role == Role::SuperAdmin, ..by(parts, api, &account.email) };
        Ok(Admin { account, by })
    }
}

impl FromRequestParts<Shared> for SuperAdmin {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Shared) -> Result<SuperAdmin, ApiError> {
        let admin = Admin::from_request_parts(parts, api).await?;
        match admin.account.role {
            Role::SuperAdmin => Ok(SuperAdmin(admin)),
            Role::Admin => Err(Error::from(Kind::NoAccess).with_operator("needs super_admin").into()),
        }
    }
}

pub fn bearer(headers: &HeaderMap) -> Result<&str, ApiError> {
    let header = headers.get(header::AUTHORIZATION).and_then(|v| v.to_str().ok());
    let token = header.and_then(|h| h.split_once(' ')).filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    match token {
        Some((_, token)) => Ok(token.trim()),
        None => Err(Error::from(Kind::Unauthorized).with_operator("no bearer token").into()),
    }
}
