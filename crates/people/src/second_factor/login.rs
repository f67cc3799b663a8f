//! The second half of a login: verify the code, or enrol a second factor where it is required and missing.

use base::id::{AdminId, UserId};
use base::{Error, Kind, Result, Secret};
use jiff::Timestamp;
use queue::audit::By;
use store::admin_user::{self, AdminUser};
use store::user::{self, User};
use store::{ended_token, second_factor};

use super::enrol::{confirm_admin_with, confirm_employee_with, propose, refuse_to_replace};
use super::{
    Account, Challenge, Enrolled, Enrolment, FirstFactor, Used, admin, admit, employee, expiry, finish, refused, take,
    tokens,
};
use crate::App;
use crate::session::{self, Opened};
use crate::token::{Audience, Bearer, STEP_LIFETIME, StepClaims};

/// The challenge after the first factor; `None` if the first factor is enough. `begun` is as in
/// `session::open_employee`.
pub(crate) async fn challenge(
    app: &App,
    account: &Account,
    first: FirstFactor,
    begun: Timestamp,
) -> Result<Option<Challenge>> {
    if first == FirstFactor::Sso && !app.mfa.after_sso {
        return Ok(None);
    }
    let enabled = second_factor::is_enabled(&app.db, &account.id).await?;
    if !enabled && !account.must_have(&app.mfa) {
        return Ok(None);
    }
    let bearer = Bearer { id: &account.id, email: &account.email, role: None, tokens_from: account.tokens_from };
    let token = tokens(app, account.side).issue_step(bearer, first.as_str(), begun)?;
    Ok(Some(Challenge { token, enrolment: !enabled, expires_in: STEP_LIFETIME }))
}

/// Opens the session of an employee who shows a code.
pub async fn verify_employee(app: &App, by: &By, token: &str, code: &Secret) -> Result<Opened<User>> {
    let claims = app.employee.tokens.read_step(token, app.clock.now())?;
    let user = user::find(&app.db, &UserId::named(&claims.sub)).await?.ok_or(Kind::Unauthorized)?;
    verify(app, by, &Account::from(&user), &claims, code).await?;
    session::open_employee(app, user, begun(&claims))
}

/// Like `verify_employee` for an administrator, with an audit entry.
pub async fn verify_admin(app: &App, by: &By, token: &str, code: &Secret) -> Result<Opened<AdminUser>> {
    let claims = app.admin.tokens.read_step(token, app.clock.now())?;
    let admin = admin_user::find(&app.db, &AdminId::named(&claims.sub)).await?.ok_or(Kind::Unauthorized)?;
    let used = verify(app, by, &Account::from(&admin), &claims, code).await?;
    let how = format!("{} and {}", claims.how, used.as_str());
    session::open_admin(app, by, admin, begun(&claims), &how).await
}

async fn verify(app: &App, by: &By, account: &Account, claims: &StepClaims, code: &Secret) -> Result<Used> {
    check_step(app, account, claims).await?;
    admit(app, by, account).await?;
    let mut tx = app.db.begin().await?;
    let factor = second_factor::lock(&mut tx, &account.id).await?.filter(|factor| factor.secret.is_some());
    let factor = factor.ok_or_else(|| Error::conflict("there is no second factor yet: set one up first"))?;
    let Some(used) = take(app, &mut tx, account, by, &factor, code).await? else {
        drop(tx);
        refused(app, by, account, "login refused: wrong code").await?;
        return Err(Kind::WrongCode.into());
    };
    // A step token opens only one session.
    ended_token::end(&mut tx, &claims.jti, expiry(claims)).await?;
    finish(app, tx, account).await?;
    Ok(used)
}

/// Shows a new secret to a user who has passed the first factor and must enrol the second.
pub async fn begin_in_login(app: &App, side: Audience, token: &str) -> Result<Enrolment> {
    let claims = tokens(app, side).read_step(token, app.clock.now())?;
    let account = match side {
        Audience::Employee => employee(app, &UserId::named(&claims.sub)).await?,
        Audience::Admin => admin(app, &AdminId::named(&claims.sub)).await?,
    };
    check_step(app, &account, &claims).await?;
    let mut tx = app.db.begin().await?;
    refuse_to_replace(second_factor::lock(&mut tx, &account.id).await?.as_ref())?;
    let enrolment = propose(app, &mut tx, &account).await?;
    tx.commit().await?;
    Ok(enrolment)
}

pub async fn confirm_employee_in_login(app: &App, by: &By, token: &str, code: &Secret) -> Result<Enrolled<User>> {
    let claims = app.employee.tokens.read_step(token, app.clock.now())?;
    confirm_employee_with(app, by, &UserId::named(&claims.sub), Some(&claims), code).await
}

pub async fn confirm_admin_in_login(app: &App, by: &By, token: &str, code: &Secret) -> Result<Enrolled<AdminUser>> {
    let claims = app.admin.tokens.read_step(token, app.clock.now())?;
    confirm_admin_with(app, by, &AdminId::named(&claims.sub), Some(&claims), code).await
}

async fn check_step(app: &App, account: &Account, claims: &StepClaims) -> Result<()> {
    let ended = ended_token::is_ended(&app.db, &claims.jti).await?;
    session::check(claims.iat, account.status, account.tokens_from, ended)
}

fn begun(claims: &StepClaims) -> Timestamp {
    Timestamp::from_second(claims.iat).unwrap_or(Timestamp::MIN)
}
