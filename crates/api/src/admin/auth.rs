//! How administrators log in and out.

use axum::extract::DefaultBodyLimit;
use axum::http::HeaderMap;
use axum::response::Response;
use base::Secret;
use people::admin_user::{self, AdminUser};
use people::login::{self, Outcome};
use people::session::Opened;
use people::{password_reset, second_factor, session, sso};
use queue::permission::Permission;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::second_factor::Enrolled;
use crate::browser::{self, Remembered};
use crate::envelope::Data;
use crate::error::ApiError;
use crate::extract::{Admin, Answer, Body, Caller, Query, State};
use crate::second_factor::{BeginInLogin, Enrolment, PasswordReset, SecondFactor, SecondFactorNeeded, ShowCode};
use crate::shape::{ChangePassword, Login, LoginOptions};
use crate::sso::{self as flow, Arrival, Callback};
use crate::state::Shared;

/// Of what anybody may send.
const BODY_LIMIT: usize = 16 * 1024;

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(options))
        .routes(routes!(login))
        .routes(routes!(show_code))
        .routes(routes!(begin_enrolment))
        .routes(routes!(confirm_enrolment))
        .routes(routes!(logout))
        .routes(routes!(me))
        .routes(routes!(change_password))
        .routes(routes!(sso_begin))
        .routes(routes!(sso_callback))
        // Anybody may send one.
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
}

/// What the login page may offer.
#[utoipa::path(get, path = "/auth/options", tag = "auth", security(()), responses((status = 200, body = LoginOptions)))]
async fn options(api: State) -> Data<LoginOptions> {
    Data(LoginOptions { sso: api.app.admin.sso.is_some(), version: api.version })
}

#[derive(Serialize, ToSchema)]
pub struct LoggedIn {
    /// The bearer token of every further request, good for 8 hours unless configured otherwise.
    #[schema(example = "eyJhbGciOiJIUzI1NiJ9…")]
    token: String,
    #[schema(example = "admin@example.com")]
    email: String,
    #[schema(example = "Grace Hopper")]
    name: String,
    #[schema(example = "super_admin")]
    role: &'static str,
}

impl LoggedIn {
    pub fn new(opened: Opened<AdminUser>) -> LoggedIn {
        LoggedIn {
            token: opened.token.expose().to_owned(),
            email: opened.account.email,
            name: opened.account.name,
            role: opened.account.role.as_str(),
        }
    }
}

/// A session, or what is left to show for one.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub enum LoginAnswer {
    Opened(LoggedIn),
    SecondFactor(SecondFactorNeeded),
}

impl From<Outcome<AdminUser>> for LoginAnswer {
    fn from(outcome: Outcome<AdminUser>) -> LoginAnswer {
        match outcome {
            Outcome::Opened(opened) => LoginAnswer::Opened(LoggedIn::new(opened)),
            Outcome::SecondFactor(challenge) => LoginAnswer::SecondFactor(challenge.into()),
        }
    }
}

impl LoginAnswer {
    fn arrival(&self) -> Arrival {
        match self {
            LoginAnswer::Opened(opened) => Arrival::Session(Secret::new(&opened.token)),
            LoginAnswer::SecondFactor(needed) => needed.arrival(),
        }
    }
}

/// Logs in with e-mail and password.
///
/// An account that has a second factor, or must have one, is answered without a token: `mfa_required`, and an `mfa_token` for POST
/// /auth/mfa.
///
/// Ten failures for one e-mail from one address, thirty from one address, or two hundred for one e-mail within five minutes are answered
/// 429 for the rest of that window. A browser that signed in to the account before has ten of its own: strangers do not lock it out. So
/// that it is known again, the answer sets a cookie that opens nothing. Every attempt is in the audit log.
#[utoipa::path(post, path = "/auth/login", tag = "auth", security(()), request_body = Login, responses(
    (status = 200, body = LoginAnswer),
    (status = 401, description = "wrong email or password"),
    (status = 403, description = "the account is revoked"),
    (status = 429, description = "too many failures; Retry-After says when the window ends"),
    (status = 503, description = "too many people sign in at this moment; Retry-After says when to try again"),
))]
async fn login(
    api: State,
    caller: Caller,
    headers: HeaderMap,
    Body(body): Body<Login>,
) -> Result<(Option<Remembered>, Data<LoginAnswer>), ApiError> {
    let email = body.email.as_str();
    let known = browser::mark(&api, &headers, email);
    let outcome = login::admin(&api.app, &caller.0, email, body.password, known).await?;
    // A browser that has not shown the second factor yet has not signed in.
    let mark = match &outcome {
        Outcome::Opened(_) => Some(browser::remember(&api, email)?),
        Outcome::SecondFactor(_) => None,
    };
    Ok((mark, Data(outcome.into())))
}

/// Shows the second factor of a login that POST /auth/login answered with an `mfa_token`.
///
/// A code of the app is good once, 30 seconds before and after its time; a recovery code is good once. Ten wrong codes of an account
/// within five minutes, or fifteen within an hour, are answered 429 for the rest of that window. Code 4012 says that the code is
/// wrong, 4010 that the login must begin again.
#[utoipa::path(post, path = "/auth/mfa", tag = "auth", security(()), request_body = ShowCode, responses(
    (status = 200, body = LoggedIn),
    (status = 401, description = "wrong code, or the mfa_token is not good (any more)"),
    (status = 409, description = "the account has no second factor yet and must set one up"),
    (status = 429, description = "too many wrong codes; Retry-After says when the window ends"),
))]
async fn show_code(
    api: State,
    caller: Caller,
    Body(body): Body<ShowCode>,
) -> Result<(Remembered, Data<LoggedIn>), ApiError> {
    let opened = second_factor::verify_admin(&api.app, &caller.0, &body.mfa_token, &body.code).await?;
    Ok((browser::remember(&api, &opened.account.email)?, Data(LoggedIn::new(opened))))
}

/// Begins to set up the second factor of an account that must have one and has none, in the middle of its login.
///
/// The answer's secret counts when POST /auth/mfa/enrolment/confirm has seen its first code.
#[utoipa::path(post, path = "/auth/mfa/enrolment", tag = "auth", security(()), request_body = BeginInLogin, responses(
    (status = 200, body = Enrolment),
    (status = 401, description = "the mfa_token is not good (any more)"),
    (status = 409, description = "the account has a second factor already"),
))]
async fn begin_enrolment(api: State, Body(body): Body<BeginInLogin>) -> Answer<Enrolment> {
    let begun = second_factor::begin_in_login(&api.app, api.side, &body.mfa_token).await?;
    Ok(Data(begun.into()))
}

/// Confirms the second factor by its first code, and finishes the login.
///
/// The recovery codes are shown this once.
#[utoipa::path(post, path = "/auth/mfa/enrolment/confirm", tag = "auth", security(()), request_body = ShowCode, responses(
    (status = 200, body = Enrolled),
    (status = 401, description = "wrong code, or the mfa_token is not good (any more)"),
    (status = 409, description = "nothing is being set up, or the account has a second factor already"),
    (status = 429, description = "too many wrong codes; Retry-After says when the window ends"),
))]
async fn confirm_enrolment(
    api: State,
    caller: Caller,
    Body(body): Body<ShowCode>,
) -> Result<(Remembered, Data<Enrolled>), ApiError> {
    let enrolled = second_factor::confirm_admin_in_login(&api.app, &caller.0, &body.mfa_token, &body.code).await?;
    Ok((browser::remember(&api, &enrolled.opened.account.email)?, Data(Enrolled::new(enrolled))))
}

/// Ends the token of this request.
#[utoipa::path(post, path = "/auth/logout", tag = "auth", responses((status = 200, description = "ended")))]
async fn logout(who: Admin, api: State) -> Answer<()> {
    session::end(&api.app, &who.account.token).await?;
    Ok(Data(()))
}

#[derive(Serialize, ToSchema)]
pub struct Me {
    id: String,
    #[schema(example = "admin@example.com")]
    email: String,
    #[schema(example = "Grace Hopper")]
    name: String,
    #[schema(example = "super_admin")]
    role: &'static str,
    /// What the role may do; docs/roles.md says what each is.
    #[schema(example = json!(["account.own", "fleet.read"]))]
    permissions: Vec<&'static str>,
    /// False for accounts that sign in through SSO only.
    has_password: bool,
    #[serde(flatten)]
    second_factor: SecondFactor,
    /// Set while somebody else's change of the password waits to be acknowledged.
    password_reset: Option<PasswordReset>,
}

/// The own account.
#[utoipa::path(get, path = "/auth/me", tag = "auth", responses((status = 200, body = Me)))]
async fn me(who: Admin, api: State) -> Answer<Me> {
    let account = admin_user::find(&api.app, &who.account.id).await?;
    let state = second_factor::state(&api.app, &(&account).into()).await?;
    let reset = password_reset::find(&api.app, &account.id).await?;
    Ok(Data(Me {
        permissions: Permission::all_of(account.role).map(Permission::as_str).collect(),
        has_password: account.has_password(),
        id: account.id.into(),
        email: account.email,
        name: account.name,
        role: account.role.as_str(),
        second_factor: state.into(),
        password_reset: reset.map(|reset| PasswordReset::new(api.zone(), reset)),
    }))
}

/// Changes the own password (beyond the spec).
///
/// Every token of the account ends, this request's too; the answer carries a new one.
#[utoipa::path(post, path = "/auth/password", tag = "auth", request_body = ChangePassword, responses(
    (status = 200, body = LoggedIn),
    (status = 429, description = "too many wrong passwords"),
))]
async fn change_password(who: Admin, api: State, Body(body): Body<ChangePassword>) -> Answer<LoggedIn> {
    let opened = admin_user::change_password(&api.app, &who.by, &who.account.id, body.old, body.new).await?;
    Ok(Data(LoggedIn::new(opened)))
}

/// Sends the browser to the identity provider.
#[utoipa::path(get, path = "/auth/sso", tag = "auth", security(()), responses(
    (status = 303, description = "to the identity provider"),
    (status = 404, description = "sso is not configured"),
    (status = 429, description = "too many sign-ins from one address"),
    (status = 502, description = "the identity provider answered badly"),
    (status = 504, description = "the identity provider did not answer in time"),
))]
async fn sso_begin(api: State, caller: Caller) -> Result<Response, ApiError> {
    flow::begin(&api, &caller.0).await
}

/// Where the identity provider sends the browser back to.
///
/// With `Accept: application/json` the answer is that of a login. A browser is redirected to the console,
/// with the token, or `sso_error`, behind the `#`; where a second factor is left to show (TIDEPOOL_MFA_AFTER_SSO), with `mfa_token` and `mfa_enrolment`.
#[utoipa::path(get, path = "/auth/sso/callback", tag = "auth", security(()), params(Callback), responses(
    (status = 200, body = LoginAnswer),
    (status = 303, description = "a browser: to the console"),
    (status = 401, description = "the provider's token is not good"),
    (status = 403, description = "no account, an e-mail that is not verified, or revoked"),
    (status = 404, description = "sso is not configured"),
    (status = 502, description = "the identity provider answered badly"),
    (status = 504, description = "the identity provider did not answer in time"),
))]
async fn sso_callback(
    api: State,
    caller: Caller,
    headers: HeaderMap,
    Query(callback): Query<Callback>,
) -> Result<Response, ApiError> {
    let outcome = async {
        let identity = flow::finish(&api, &headers, &callback).await;
        Ok(LoginAnswer::from(sso::admin(&api.app, &caller.0, identity).await?))
    };
    flow::answer(&api, &headers, outcome.await.map(|answer| (answer.arrival(), Data(answer))))
}
