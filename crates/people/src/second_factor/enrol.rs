//! Enrolment of a second factor: a new secret is shown, and takes effect when its first code is confirmed.

use base::id::{AdminId, UserId};
use base::{Error, Kind, Result, Secret, totp};
use jiff::SignedDuration;
use queue::audit::{By, Level};
use store::admin_user::{self, AdminUser};
use store::notice::{Notice, Topic};
use store::second_factor::{self, SecondFactor};
use store::user::{self, Status, User};
use store::{Tx, ended_token};

use super::{
    Account, Enrolled, Enrolment, admin, admit, employee, expiry, finish, normalised, record, refused,
    replace_recovery_codes,
};
use crate::App;
use crate::session::{self, Opened};
use crate::token::{self, StepClaims};

/// How long a shown secret may wait for its first code.
const PENDING: SignedDuration = SignedDuration::from_mins(30);

pub(super) async fn propose(app: &App, tx: &mut Tx, account: &Account) -> Result<Enrolment> {
    let secret = totp::fresh()?;
    let side = account.side.as_str();
    second_factor::propose(tx, &app.sealer, side, &account.id, &secret, app.clock.now()).await?;
    let uri = totp::uri(account.issuer(), &account.email, &secret);
    Ok(Enrolment { secret, uri })
}

/// Fails if there is a second factor: somebody who knows only the password must not replace it with their own.
pub(super) fn refuse_to_replace(factor: Option<&SecondFactor>) -> Result<()> {
    match factor {
        Some(factor) if factor.secret.is_some() => {
            Err(Error::conflict("there is a second factor already: show its code"))
        }
        _ => Ok(()),
    }
}

pub(super) async fn confirm_employee_with(
    app: &App,
    by: &By,
    id: &UserId,
    step: Option<&StepClaims>,
    code: &Secret,
) -> Result<Enrolled<User>> {
    let account = employee(app, id).await?;
    admit(app, by, &account).await?;
    let mut tx = app.db.begin().await?;
    let mut user = user::lock(&mut tx, id).await?.ok_or(Kind::Unauthorized)?;
    let confirmed = confirm(app, &mut tx, by, &Account::from(&user), step, code).await?;
    let Some(recovery_codes) = confirmed else {
        drop(tx);
        return Err(wrong_first_code(app, by, &account, step).await?);
    };
    let now = app.clock.now();
    user.tokens_from = token::end_all(user.tokens_from, now);
    user::update(&mut tx, &user, now).await?;
    tx.notify(Notice::new(Topic::User, &user.id)).await?;
    finish(app, tx, &account).await?;
    Ok(Enrolled { opened: session::open_employee(app, user, now)?, recovery_codes })
}

pub(super) async fn confirm_admin_with(
    app: &App,
    by: &By,
    id: &AdminId,
    step: Option<&StepClaims>,
    code: &Secret,
) -> Result<Enrolled<AdminUser>> {
    let account = admin(app, id).await?;
    admit(app, by, &account).await?;
    let mut tx = app.db.begin().await?;
    let mut admin = admin_user::lock_by_email(&mut tx, &account.email).await?.ok_or(Kind::Unauthorized)?;
    let confirmed = confirm(app, &mut tx, by, &Account::from(&admin), step, code).await?;
    let Some(recovery_codes) = confirmed else {
        drop(tx);
        return Err(wrong_first_code(app, by, &account, step).await?);
    };
    let now = app.clock.now();
    admin.tokens_from = token::end_all(admin.tokens_from, now);
    admin_user::update(&mut tx, &admin).await?;
    finish(app, tx, &account).await?;
    let opened = match step {
        Some(claims) => {
            let how = format!("{}, second factor set up", claims.how);
            session::open_admin(app, by, admin, now, &how).await?
        }
        None => Opened { token: session::admin_token(app, &admin, now)?, account: admin },
    };
    Ok(Enrolled { opened, recovery_codes })
}

/// Enables the pending secret if `code` is one of its codes; `None` if it is not. The caller has locked the account.
async fn confirm(
    app: &App,
    tx: &mut Tx,
    by: &By,
    account: &Account,
    step: Option<&StepClaims>,
    code: &Secret,
) -> Result<Option<Vec<Secret>>> {
    if account.status != Status::Active {
        return Err(Kind::Unauthorized.into());
    }
    let now = app.clock.now();
    let factor = second_factor::lock(tx, &account.id).await?;
    if let Some(claims) = step {
        let ended = ended_token::is_ended(&mut *tx, &claims.jti).await?;
        session::check(claims.iat, account.status, account.tokens_from, ended)?;
        refuse_to_replace(factor.as_ref())?;
    }
    let factor = factor.filter(|f| f.pending_at.is_some_and(|at| at + PENDING > now));
    let pending = factor.map(|f| f.pending(&app.sealer)).transpose()?.flatten();
    let pending =
        pending.ok_or_else(|| Error::conflict("nothing is being set up, or it took too long: begin again"))?;
    let Some(step_of_code) = totp::matching_step(&pending, &normalised(code), now, 0) else { return Ok(None) };
    second_factor::enable(tx, &app.sealer, &account.id, &pending, step_of_code, now).await?;
    let codes = replace_recovery_codes(tx, account).await?;
    if let Some(claims) = step {
        ended_token::end(&mut *tx, &claims.jti, expiry(claims)).await?;
    }
    record(app, tx, by, account, Level::Info, "second factor set up").await?;
    Ok(Some(codes))
}

async fn wrong_first_code(app: &App, by: &By, account: &Account, step: Option<&StepClaims>) -> Result<Error> {
    match step {
        Some(_) => {
            refused(app, by, account, "login refused: wrong first code of a second factor").await?;
            Ok(Kind::WrongCode.into())
        }
        None => Ok(Error::field("code", "is not what the app shows for this secret")),
    }
}
