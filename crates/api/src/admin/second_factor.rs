//! The own second factor of an administrator, and the note of a password that somebody else set.

use people::{password_reset, second_factor};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::auth::LoggedIn;
use crate::envelope::Data;
use crate::extract::{Admin, Answer, Body, State};
use crate::second_factor::{Enrolment, FirstCode, Proof, RecoveryCodes};
use crate::state::Shared;

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(begin))
        .routes(routes!(confirm))
        .routes(routes!(recovery_codes))
        .routes(routes!(disable))
        .routes(routes!(acknowledge))
}

/// A second factor that was just set up, and the token that goes on.
#[derive(Serialize, ToSchema)]
pub struct Enrolled {
    #[serde(flatten)]
    opened: LoggedIn,
    #[serde(flatten)]
    codes: RecoveryCodes,
}

impl Enrolled {
    pub fn new(enrolled: second_factor::Enrolled<people::admin_user::AdminUser>) -> Enrolled {
        Enrolled { opened: LoggedIn::new(enrolled.opened), codes: enrolled.recovery_codes.into() }
    }
}

/// Begins to set up a second factor, or another one in the place of the one that is on.
///
/// Asks for the password and, when one is on, for a code of it. The answer's secret counts when POST /auth/me/mfa/confirm has seen its
/// first code, within 30 minutes; until then everything stays as it is. 409 for accounts that sign in through SSO only, unless
/// TIDEPOOL_MFA_AFTER_SSO is on.
#[utoipa::path(post, path = "/auth/me/mfa", tag = "second-factor", request_body = Proof, responses(
    (status = 200, body = Enrolment),
    (status = 429, description = "too many wrong passwords or codes"),
))]
async fn begin(who: Admin, api: State, Body(body): Body<Proof>) -> Answer<Enrolment> {
    let account = second_factor::admin(&api.app, &who.account.id).await?;
    let begun = second_factor::begin(&api.app, &who.by, &account, body.password, body.code).await?;
    Ok(Data(begun.into()))
}

/// Confirms the new second factor by its first code: from now on it is asked for.
///
/// Every token of the account ends, this request's too; the answer carries a new one, and ten recovery codes that are shown this
/// once. 409 when nothing is being set up.
#[utoipa::path(post, path = "/auth/me/mfa/confirm", tag = "second-factor", request_body = FirstCode, responses(
    (status = 200, body = Enrolled),
    (status = 429, description = "too many wrong codes"),
))]
async fn confirm(who: Admin, api: State, Body(body): Body<FirstCode>) -> Answer<Enrolled> {
    let enrolled = second_factor::confirm_admin(&api.app, &who.by, &who.account.id, &body.code).await?;
    Ok(Data(Enrolled::new(enrolled)))
}

/// Makes ten new recovery codes; all older ones end.
#[utoipa::path(post, path = "/auth/me/mfa/recovery-codes", tag = "second-factor", request_body = Proof, responses(
    (status = 200, body = RecoveryCodes),
    (status = 429, description = "too many wrong passwords or codes"),
))]
async fn recovery_codes(who: Admin, api: State, Body(body): Body<Proof>) -> Answer<RecoveryCodes> {
    let account = second_factor::admin(&api.app, &who.account.id).await?;
    let codes = second_factor::new_recovery_codes(&api.app, &who.by, &account, body.password, body.code).await?;
    Ok(Data(codes.into()))
}

/// Switches the second factor off.
///
/// Asks for the password and a code. 409 when the account must have one.
#[utoipa::path(post, path = "/auth/me/mfa/disable", tag = "second-factor", request_body = Proof, responses(
    (status = 200, description = "it is off"),
    (status = 429, description = "too many wrong passwords or codes"),
))]
async fn disable(who: Admin, api: State, Body(body): Body<Proof>) -> Answer<()> {
    let account = second_factor::admin(&api.app, &who.account.id).await?;
    second_factor::disable(&api.app, &who.by, &account, body.password, body.code).await?;
    Ok(Data(()))
}

/// The owner has seen that somebody else set the password: `password_reset` is null from now on.
#[utoipa::path(post, path = "/auth/me/password-reset/acknowledge", tag = "second-factor", responses((status = 200, description = "noted")))]
async fn acknowledge(who: Admin, api: State) -> Answer<()> {
    let by = who.by;
    password_reset::acknowledge(&api.app, &by, who.account.id.as_str(), &who.account.email).await?;
    Ok(Data(()))
}
