//! Administrators: listed for all of them, managed by super_admins.

use base::{Email, Listing, Secret, Sort, Text};
use people::admin_user::{self, AdminUser, New, Patch};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::envelope::Data;
use crate::extract::{Admin, Answer, Body, Paging, Path, Query, State};
use crate::shape::Deleted;
use crate::state::{Api, Shared};
use crate::words::{Role, Status};

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default().routes(routes!(list, create)).routes(routes!(update, delete))
}

#[derive(Serialize, ToSchema)]
pub struct AdminItem {
    id: String,
    #[schema(example = "admin@example.com")]
    email: String,
    #[schema(example = "Grace Hopper")]
    name: String,
    role: Role,
    status: Status,
    /// False for accounts that sign in through SSO only.
    has_password: bool,
    /// Whether it is tied to an identity of the identity provider.
    has_identity: bool,
    last_login_at: Option<String>,
    created_at: String,
}

fn item(api: &Api, admin: AdminUser) -> AdminItem {
    AdminItem {
        has_password: admin.has_password(),
        has_identity: admin.idp_id.is_some(),
        id: admin.id.into(),
        email: admin.email,
        name: admin.name,
        role: admin.role.into(),
        status: admin.status.into(),
        last_login_at: admin.last_login_at.map(|at| api.zone().show(at)),
        created_at: api.zone().show(admin.created_at),
    }
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct AdminUserQuery {
    /// Text in e-mail or name.
    q: Option<String>,
    /// email, name, role, status, last_login_at or created_at; a `-` in front turns it around.
    sort: Option<String>,
}

/// All administrators.
///
/// Whole, unless paging is asked for.
#[utoipa::path(get, path = "/admin-users", tag = "admin-users", params(AdminUserQuery, Paging), responses((status = 200, body = Listing<AdminItem>)))]
async fn list(_: Admin, api: State, Query(query): Query<AdminUserQuery>, paging: Paging) -> Answer<Listing<AdminItem>> {
    let default = Sort { column: "created_at", descending: false };
    let sort = Sort::asked(query.sort.as_deref(), store::admin_user::SORTABLE, default)?;
    let found = admin_user::list(&api.app, query.q.as_deref(), sort, paging.page_or_all(50)?).await?;
    Ok(Data(found.map(|admin| item(&api, admin))))
}

#[derive(Deserialize, ToSchema)]
pub struct NewAdmin {
    email: Email,
    #[serde(default)]
    name: Text<100>,
    /// `admin` when omitted.
    #[serde(default)]
    role: Option<Role>,
    /// At least 8 characters; omitted, the account signs in through SSO only.
    #[schema(value_type = Option<String>, format = Password, min_length = 8, max_length = 1024)]
    password: Option<Secret>,
}

/// Makes an administrator.
#[utoipa::path(post, path = "/admin-users", tag = "admin-users", request_body = NewAdmin, responses((status = 200, body = AdminItem)))]
async fn create(who: Admin, api: State, Body(body): Body<NewAdmin>) -> Answer<AdminItem> {
    let new = New {
        email: body.email,
        name: body.name.into(),
        role: body.role.unwrap_or(Role::Admin).into(),
        password: body.password,
    };
    let created = admin_user::create(&api.app, &who.by, new).await?;
    Ok(Data(item(&api, created)))
}

#[derive(Deserialize, ToSchema)]
pub struct AdminPatch {
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    #[schema(nullable = false)]
    name: Option<Text<100>>,
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    #[schema(nullable = false)]
    role: Option<Role>,
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    #[schema(nullable = false)]
    status: Option<Status>,
    /// A new password, which ends all tokens of the account.
    #[schema(nullable = false, value_type = Option<String>, format = Password, min_length = 8, max_length = 1024)]
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    password: Option<Secret>,
    /// Unties the account from the identity that it signs on with, and ends all its tokens: the next sign-on with its verified e-mail
    /// ties it anew. For a changed identity provider, or an e-mail that went to another person.
    #[serde(default)]
    forget_identity: bool,
}

/// Changes an administrator.
///
/// The last active super_admin can be neither revoked nor demoted (409).
#[utoipa::path(patch, path = "/admin-users/{email}", tag = "admin-users", params(("email" = String, Path)), request_body = AdminPatch, responses((status = 200, body = AdminItem)))]
async fn update(who: Admin, api: State, Path(email): Path<String>, Body(body): Body<AdminPatch>) -> Answer<AdminItem> {
    let patch = Patch {
        name: body.name.map(Into::into),
        role: body.role.map(Into::into),
        status: body.status.map(Into::into),
        password: body.password,
        forget_identity: body.forget_identity,
    };
    let updated = admin_user::update(&api.app, &who.by, &email, patch).await?;
    Ok(Data(item(&api, updated)))
}

/// Deletes an administrator (soft; the e-mail stays taken).
///
/// The last active super_admin cannot be deleted (409).
#[utoipa::path(delete, path = "/admin-users/{email}", tag = "admin-users", params(("email" = String, Path)), responses((status = 200, body = Deleted)))]
async fn delete(who: Admin, api: State, Path(email): Path<String>) -> Answer<Deleted> {
    let deleted = admin_user::delete(&api.app, &who.by, &email).await?;
    Ok(Data(Deleted { id: deleted.id.into() }))
}
