//! Changes of the second factor by its owner, who is signed in. Every change needs the password, and a code if a factor
//! is enabled.

use base::id::{AdminId, UserId};
use base::password::Verdict;
use base::{Error, Result, Secret};
use queue::audit::{By, Level};
use queue::throttle::PASSWORD_CHANGE;
use store::admin_user::AdminUser;
use store::user::User;
use store::{Tx, second_factor};

use super::enrol::{confirm_admin_with, confirm_employee_with, propose, refuse_to_replace};
use super::{Account, Enrolled, Enrolment, admit, finish, record, refused, replace_recovery_codes, take};
use crate::App;

/// Shows a new secret. If a factor is enabled, a code of it is required; the new factor replaces it when it is
/// confirmed.
pub async fn begin(
    app: &App,
    by: &By,
    account: &Account,
    password: Option<Secret>,
    code: Option<Secret>,
) -> Result<Enrolment> {
    if !account.is_asked(&app.mfa) {
        return Err(Error::conflict(
            "this account signs in through SSO: the identity provider asks for the second factor",
        ));
    }
    prove_password(app, account, password).await?;
    let mut tx = match second_factor::is_enabled(&app.db, &account.id).await? {
        true => prove_code(app, by, account, code).await?,
        false => {
            let mut tx = app.db.begin().await?;
            // A factor may have been enabled since the check above, and no code of it was shown.
            refuse_to_replace(second_factor::lock(&mut tx, &account.id).await?.as_ref())?;
            tx
        }
    };
    let enrolment = propose(app, &mut tx, account).await?;
    finish(app, tx, account).await?;
    Ok(enrolment)
}

pub async fn confirm_employee(app: &App, by: &By, id: &UserId, code: &Secret) -> Result<Enrolled<User>> {
    confirm_employee_with(app, by, id, None, code).await
}

pub async fn confirm_admin(app: &App, by: &By, id: &AdminId, code: &Secret) -> Result<Enrolled<AdminUser>> {
    confirm_admin_with(app, by, id, None, code).await
}

/// Replaces all recovery codes.
pub async fn new_recovery_codes(
    app: &App,
    by: &By,
    account: &Account,
    password: Option<Secret>,
    code: Option<Secret>,
) -> Result<Vec<Secret>> {
    prove_password(app, account, password).await?;
    let mut tx = prove_code(app, by, account, code).await?;
    let codes = replace_recovery_codes(&mut tx, account).await?;
    record(app, &mut tx, by, account, Level::Info, "new recovery codes").await?;
    finish(app, tx, account).await?;
    Ok(codes)
}

/// Switches the second factor off, unless the account must have one.
pub async fn disable(
    app: &App,
    by: &By,
    account: &Account,
    password: Option<Secret>,
    code: Option<Secret>,
) -> Result<()> {
    if account.must_have(&app.mfa) {
        return Err(Error::conflict("a second factor is required for this account"));
    }
    prove_password(app, account, password).await?;
    let mut tx = prove_code(app, by, account, code).await?;
    second_factor::remove(&mut tx, &account.id).await?;
    record(app, &mut tx, by, account, Level::Warn, "second factor switched off").await?;
    finish(app, tx, account).await
}

async fn prove_password(app: &App, account: &Account, given: Option<Secret>) -> Result<()> {
    // An account without a password has nothing to prove beyond its session.
    let Some(stored) = account.password_hash.clone() else { return Ok(()) };
    let given = given.ok_or_else(|| Error::field("password", "is missing"))?;
    PASSWORD_CHANGE.check(app, &account.id).await?;
    if app.hasher.verify(Some(stored), given, &account.id).await? == Verdict::Wrong {
        PASSWORD_CHANGE.hit(app, &account.id).await?;
        return Err(Error::field("password", "is not the current password"));
    }
    // Parallel attempts all pass the first check. So check again: a right password does not count after too many wrong
    // ones.
    PASSWORD_CHANGE.check(app, &account.id).await
}

/// Consumes a code of the account, and returns the transaction of that: the caller makes the change in it.
async fn prove_code(app: &App, by: &By, account: &Account, given: Option<Secret>) -> Result<Tx> {
    let given = given.ok_or_else(|| Error::field("code", "is missing"))?;
    admit(app, by, account).await?;
    let mut tx = app.db.begin().await?;
    let factor = second_factor::lock(&mut tx, &account.id).await?.filter(|factor| factor.secret.is_some());
    let factor = factor.ok_or_else(|| Error::conflict("this account has no second factor"))?;
    if take(app, &mut tx, account, by, &factor, &given).await?.is_none() {
        drop(tx);
        refused(app, by, account, "change refused: wrong code").await?;
        return Err(Error::field("code", "is not valid, or was used before"));
    }
    Ok(tx)
}
