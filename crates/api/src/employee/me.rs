//! The employee's own account.

use people::{password_reset, second_factor, user};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::auth::LoggedIn;
use crate::envelope::Data;
use crate::extract::{Answer, Body, Employee, State};
use crate::second_factor::{PasswordReset, SecondFactor};
use crate::shape::ChangePassword;
use crate::state::{Api, Shared};
use crate::usage::Freshness;

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default().routes(routes!(show)).routes(routes!(profile)).routes(routes!(change_password))
}

#[derive(Serialize, ToSchema)]
pub struct Profile {
    id: String,
    #[schema(example = "ada@example.com")]
    email: String,
    #[schema(example = "Ada Lovelace")]
    name: String,
    #[schema(example = "Research")]
    department: String,
    #[schema(example = "active")]
    status: &'static str,
    /// Tokens per day; 0 means no limit.
    #[schema(example = 100_000)]
    quota_daily: i64,
    /// Tokens used since local midnight, on instances given back meanwhile too.
    used_today: i64,
    /// The next local midnight.
    #[schema(example = "2026-11-16T00:00:00.000+01:00")]
    quota_resets_at: String,
    instance_count: i64,
    /// False for accounts that sign in through SSO only.
    has_password: bool,
    #[serde(flatten)]
    second_factor: SecondFactor,
    /// Set while somebody else's change of the password waits to be acknowledged.
    password_reset: Option<PasswordReset>,
    created_at: String,
    /// Of `used_today`.
    #[serde(flatten)]
    fresh: Freshness,
}

async fn own(api: &Api, who: &Employee) -> Answer<Profile> {
    let user = user::find(&api.app, &who.0.id).await?;
    let zone = api.zone();
    let state = second_factor::state(&api.app, &(&user).into()).await?;
    let reset = password_reset::find(&api.app, &user.id).await?;
    let fresh = Freshness::new(api, api.app.feed.pull().await);
    let used_today = llm::usage::spent(&api.app, &who.0.id, zone.midnight(api.app.clock.now())).await?;
    Ok(Data(Profile {
        id: user.id.into(),
        email: user.email,
        name: user.name,
        department: user.department,
        status: user.status.as_str(),
        quota_daily: user.quota_daily,
        used_today,
        quota_resets_at: zone.show(zone.next_midnight(api.app.clock.now())),
        instance_count: people::claim::count(&api.app, &who.0.id).await?,
        has_password: user.password_hash.is_some(),
        second_factor: state.into(),
        password_reset: reset.map(|reset| PasswordReset::new(zone, reset)),
        created_at: zone.show(user.created_at),
        fresh,
    }))
}

/// The own account.
#[utoipa::path(get, path = "/me", tag = "me", responses((status = 200, body = Profile)))]
async fn show(who: Employee, api: State) -> Answer<Profile> {
    own(&api, &who).await
}

/// The own account; another name of GET /me.
#[utoipa::path(get, path = "/me/profile", tag = "me", responses((status = 200, body = Profile)))]
async fn profile(who: Employee, api: State) -> Answer<Profile> {
    own(&api, &who).await
}

/// Changes the own password.
///
/// Every token of the account ends, this request's too; the answer carries a new one. Ten wrong old
/// passwords within five minutes are answered 429.
#[utoipa::path(post, path = "/me/password", tag = "me", request_body = ChangePassword, responses(
    (status = 200, body = LoggedIn),
    (status = 429, description = "too many wrong passwords"),
))]
async fn change_password(who: Employee, api: State, Body(body): Body<ChangePassword>) -> Answer<LoggedIn> {
    let opened = user::change_password(&api.app, &who.0.id, body.old, body.new).await?;
    Ok(Data(LoggedIn::new(opened)))
}
