//! Employees, as administrators see and manage them.

use base::id::{InstanceId, UserId};
use base::{Email, Listing, Quota, Secret, Sort, Text};
use people::user::{self, Holding, New, Patch};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::envelope::Data;
use crate::extract::{Admin, Answer, Body, Paging, Path, Query, State};
use crate::state::{Api, Shared};
use crate::words::Status;

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(list, create))
        .routes(routes!(show, update, delete))
        .routes(routes!(assign_instance))
}

#[derive(Serialize, ToSchema)]
pub struct UserItem {
    id: String,
    #[schema(example = "ada@example.com")]
    email: String,
    #[schema(example = "Ada Lovelace")]
    name: String,
    #[schema(example = "Research")]
    department: String,
    status: Status,
    /// Tokens per day; 0 means no limit.
    #[schema(example = 100_000)]
    quota_daily: i64,
    /// The first bound instance.
    instance_id: Option<String>,
    instance_name: Option<String>,
    instance_model: Option<String>,
    /// What was asked of instances while they were this person's, given-back ones included.
    total_tokens: i64,
    total_requests: i64,
    /// An estimate: tokens of each instance by its model's price.
    est_cost_usd: f64,
    /// False for accounts that sign in through SSO only.
    has_password: bool,
    /// Whether it is tied to an identity of the identity provider.
    has_identity: bool,
    created_at: String,
    revoked_at: Option<String>,
}

fn item(api: &Api, Holding { user, first, total_tokens, total_requests, est_cost_usd }: Holding) -> UserItem {
    let (instance_id, instance_name, instance_model) = match first {
        Some(first) => (Some(first.period.instance_id), Some(first.instance_name), Some(first.instance_model)),
        None => (None, None, None),
    };
    UserItem {
        id: user.id.into(),
        email: user.email,
        name: user.name,
        department: user.department,
        status: user.status.into(),
        quota_daily: user.quota_daily,
        instance_id: instance_id.map(Into::into),
        instance_name,
        instance_model,
        total_tokens,
        total_requests,
        est_cost_usd,
        has_password: user.password_hash.is_some(),
        has_identity: user.idp_id.is_some(),
        created_at: api.zone().show(user.created_at),
        revoked_at: user.revoked_at.map(|at| api.zone().show(at)),
    }
}

/// A sub key that still opens the LLM gateway, although the revocation is in our records.
#[derive(Serialize, ToSchema)]
pub struct PendingKey {
    #[schema(example = "assistant-01")]
    name: String,
    /// Why the gateway has not followed; empty while it is only under way.
    problem: String,
}

/// An employee after a change.
#[derive(Serialize, ToSchema)]
pub struct ChangedUser {
    #[serde(flatten)]
    user: UserItem,
    /// With a gateway of another's, the sub keys of a revoked person that still open it. Each is tried again until it is
    /// off; meanwhile GET /keys shows it, and the alert `key_not_revoked` is raised. Empty when the revocation holds.
    pending_keys: Vec<PendingKey>,
}

#[derive(Serialize, ToSchema)]
pub struct DeletedUser {
    id: String,
    /// As of PATCH /users/{id}.
    pending_keys: Vec<PendingKey>,
}

async fn pending_keys(api: &Api, user: &UserId) -> base::Result<Vec<PendingKey>> {
    let keys = llm::key::unrevoked_of(&api.app, user).await?;
    Ok(keys.into_iter().map(|key| PendingKey { name: key.name, problem: key.problem }).collect())
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct UserQuery {
    /// Text in e-mail, name or department.
    q: Option<String>,
    status: Option<Status>,
    department: Option<String>,
    /// email, name, department, status, quota_daily or created_at; a `-` in front turns it around.
    sort: Option<String>,
}

/// All employees, revoked ones included.
///
/// Whole, unless paging is asked for.
#[utoipa::path(get, path = "/users", tag = "users", params(UserQuery, Paging), responses((status = 200, body = Listing<UserItem>)))]
async fn list(_: Admin, api: State, Query(query): Query<UserQuery>, paging: Paging) -> Answer<Listing<UserItem>> {
    let default = Sort { column: "created_at", descending: false };
    let sort = Sort::asked(query.sort.as_deref(), store::user::SORTABLE, default)?;
    let filter = user::UserFilter {
        q: query.q.as_deref(),
        status: query.status.map(Into::into),
        department: query.department.as_deref(),
    };
    let found = user::list(&api.app, filter, sort, paging.page_or_all(50)?).await?;
    Ok(Data(found.map(|user| item(&api, user))))
}

/// One employee (beyond the spec).
#[utoipa::path(get, path = "/users/{id}", tag = "users", params(("id" = String, Path)), responses((status = 200, body = UserItem)))]
async fn show(_: Admin, api: State, Path(id): Path<UserId>) -> Answer<UserItem> {
    let user = user::holding(&api.app, &id).await?;
    Ok(Data(item(&api, user)))
}

#[derive(Deserialize, ToSchema)]
pub struct NewUser {
    email: Email,
    #[serde(default)]
    name: Text<100>,
    #[serde(default)]
    department: Text<100>,
    /// Tokens per day; 0, the default, means no limit.
    #[serde(default)]
    quota_daily: Quota,
    /// At least 8 characters; omitted, the account signs in through SSO only.
    #[schema(value_type = Option<String>, format = Password, min_length = 8, max_length = 1024)]
    password: Option<Secret>,
}

/// Makes an employee.
#[utoipa::path(post, path = "/users", tag = "users", request_body = NewUser, responses((status = 200, body = UserItem)))]
async fn create(who: Admin, api: State, Body(body): Body<NewUser>) -> Answer<UserItem> {
    let new = New {
        email: body.email,
        name: body.name.into(),
        department: body.department.into(),
        quota_daily: body.quota_daily.get(),
        password: body.password,
    };
    let created = user::create(&api.app, &who.by, new).await?;
    Ok(Data(item(&api, user::holding(&api.app, &created.id).await?)))
}

#[derive(Deserialize, ToSchema)]
pub struct UserPatch {
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    #[schema(nullable = false)]
    name: Option<Text<100>>,
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    #[schema(nullable = false)]
    department: Option<Text<100>>,
    /// `revoked` ends the account's tokens at once; `active` undoes it.
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    #[schema(nullable = false)]
    status: Option<Status>,
    /// Tokens per day; 0 means no limit.
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    #[schema(nullable = false)]
    quota_daily: Option<Quota>,
    /// A new password, which ends all tokens of the account.
    #[schema(nullable = false, value_type = Option<String>, format = Password, min_length = 8, max_length = 1024)]
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    password: Option<Secret>,
    /// Unties the account from the identity that it signs on with, and ends all its tokens: the next sign-on with its verified e-mail
    /// ties it anew. For a changed identity provider, or an e-mail that went to another person.
    #[serde(default)]
    forget_identity: bool,
}

/// Changes an employee.
///
/// Revoking switches the sub keys of the person's instances off. With a gateway of another's this answers when it has
/// followed, or after two seconds; `pending_keys` names what still opens it.
#[utoipa::path(patch, path = "/users/{id}", tag = "users", params(("id" = String, Path)), request_body = UserPatch, responses((status = 200, body = ChangedUser)))]
async fn update(who: Admin, api: State, Path(id): Path<UserId>, Body(body): Body<UserPatch>) -> Answer<ChangedUser> {
    let revokes = matches!(body.status, Some(Status::Revoked));
    let patch = Patch {
        name: body.name.map(Into::into),
        department: body.department.map(Into::into),
        status: body.status.map(Into::into),
        quota_daily: body.quota_daily.map(Quota::get),
        password: body.password,
        forget_identity: body.forget_identity,
    };
    user::update(&api.app, &who.by, &id, patch).await?;
    let pending_keys = if revokes { pending_keys(&api, &id).await? } else { vec![] };
    Ok(Data(ChangedUser { user: item(&api, user::holding(&api.app, &id).await?), pending_keys }))
}

/// Deletes an employee: soft, the account stays listed as revoked.
///
/// `pending_keys` names sub keys that still open a gateway of another's, as of PATCH /users/{id}.
#[utoipa::path(delete, path = "/users/{id}", tag = "users", params(("id" = String, Path)), responses((status = 200, body = DeletedUser)))]
async fn delete(who: Admin, api: State, Path(id): Path<String>) -> Answer<DeletedUser> {
    let user = UserId::named(id.clone());
    user::delete(&api.app, &who.by, &user).await?;
    Ok(Data(DeletedUser { id, pending_keys: pending_keys(&api, &user).await? }))
}

#[derive(Deserialize, ToSchema)]
pub struct AssignInstance {
    instance_id: Text<100>,
}

/// Gives an instance to the employee. Repeating it is harmless.
///
/// Refused (409) when somebody else has the instance, or a profession's pool.
#[utoipa::path(post, path = "/users/{id}/assign-instance", tag = "users", params(("id" = String, Path)), request_body = AssignInstance, responses((status = 200, body = UserItem)))]
async fn assign_instance(
    who: Admin,
    api: State,
    Path(id): Path<UserId>,
    Body(body): Body<AssignInstance>,
) -> Answer<UserItem> {
    let instance = InstanceId::named(body.instance_id.as_str());
    fleet::instance::assign(&api.app, &who.by, &instance, Some(&id)).await?;
    Ok(Data(item(&api, user::holding(&api.app, &id).await?)))
}
