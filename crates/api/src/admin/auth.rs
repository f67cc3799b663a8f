//! How administrators log in and out.

use axum::extract::DefaultBodyLimit;
use axum::http::HeaderMap;
use axum::response::Response;
use domain::admin_user::{self, AdminUser};
use domain::login::{self, Opened};
use domain::permission::Permission;
use domain::{session, sso};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::browser::{self, Remembered};
use crate::envelope::Data;
use crate::error::ApiError;
use crate::extract::{Admin, Answer, Body, Caller, Query, State};
use crate::shape::{ChangePassword, Login, LoginOptions};
use crate::sso::{self as flow, Callback};
use crate::state::Shared;

/// Of what anybody may send.
const BODY_LIMIT: usize = 16 * 1024;

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(options))
        .routes(routes!(login))
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
    fn new(opened: Opened<AdminUser>) -> LoggedIn {
        LoggedIn {
            token: opened.token.expose().to_owned(),
            email: opened.account.email,
            name: opened.account.name,
            role: opened.account.role.as_str(),
        }
    }
}

/// Logs in with e-mail and password.
///
/// Ten failures for one e-mail from one address, thirty from one address, or two hundred for one e-mail within five minutes are answered
/// 429 for the rest of that window. A browser that signed in to the account before has ten of its own: strangers do not lock it out. So
/// that it is known again, the answer sets a cookie that opens nothing. Every attempt is in the audit log.
#[utoipa::path(post, path = "/auth/login", tag = "auth", security(()), request_body = Login, responses(
    (status = 200, body = LoggedIn),
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
) -> Result<(Remembered, Data<LoggedIn>), ApiError> {
    let email = body.email.as_str();
    let known = browser::mark(&api, &headers, email);
    let opened = login::admin(&api.app, &caller.0, email, body.password, known).await?;
    Ok((browser::remember(&api, email)?, Data(LoggedIn::new(opened))))
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
}

/// The own account.
#[utoipa::path(get, path = "/auth/me", tag = "auth", responses((status = 200, body = Me)))]
async fn me(who: Admin, api: State) -> Answer<Me> {
    let account = admin_user::find(&api.app, &who.account.id).await?;
    let has_password = account.has_password();
    let permissions = Permission::all_of(account.role).map(Permission::as_str).collect();
    let (id, email, name, role) = (account.id, account.email, account.name, account.role.as_str());
    Ok(Data(Me { id, email, name, role, permissions, has_password }))
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
/// with the token, or `sso_error`, behind the `#`.
#[utoipa::path(get, path = "/auth/sso/callback", tag = "auth", security(()), params(Callback), responses(
    (status = 200, body = LoggedIn),
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
        let opened = sso::admin(&api.app, &caller.0, identity).await?;
        Ok((opened.token.clone(), Data(LoggedIn::new(opened))))
    };
    flow::answer(&api, &headers, outcome.await)
}
