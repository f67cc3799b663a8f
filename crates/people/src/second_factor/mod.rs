//! The second factor of both sides: codes of an authenticator app (`base::totp`), and recovery codes in case the app is
//! lost.
//!
//! If an account has a second factor, or must have one, its login gets a step token instead of a session. With it the
//! user shows a code or enrols a factor, and only then gets a session. A user who is signed in must prove the password,
//! and a code if a factor is enabled, before any change of the factor.

mod enrol;
mod login;
mod own;

use base::id::{AdminId, UserId};
use base::password::sha256_hex;
use base::{Kind, Result, Secret, secret, totp};
use jiff::{SignedDuration, Timestamp};
use queue::audit::{self, Action, AuditEvent, By, Level};
use queue::throttle::{LOGIN_ADDRESS, SECOND_FACTOR, SECOND_FACTOR_HOUR};
use store::Tx;
use store::admin_user::{self, AdminUser};
use store::notice::{Notice, Topic};
use store::second_factor::{self, SecondFactor};
use store::user::{self, Status, User};

use crate::App;
use crate::caller::address_name;
use crate::session::Opened;
use crate::token::{self, Audience, StepClaims};
pub(crate) use login::challenge;
pub use login::{begin_in_login, confirm_admin_in_login, confirm_employee_in_login, verify_admin, verify_employee};
pub use own::{begin, confirm_admin, confirm_employee, disable, new_recovery_codes};

/// How many recovery codes an account gets.
pub const RECOVERY_CODES: usize = 10;
/// The name of employees among the roles that must have a second factor.
const EMPLOYEE: &str = "employee";

/// Who must have a second factor, and whether it is asked for after single sign-on too.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Roles of administrators, and `employee`.
    pub required: Vec<String>,
    /// Off by default: the identity provider is responsible for its own second factor.
    pub after_sso: bool,
}

/// How the first factor was shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstFactor {
    Password,
    Sso,
}

impl FirstFactor {
    pub fn as_str(self) -> &'static str {
        match self {
            FirstFactor::Password => "password",
            FirstFactor::Sso => "SSO",
        }
    }
}

/// The response to a login that needs a second factor.
#[derive(Debug)]
pub struct Challenge {
    /// The step token.
    pub token: Secret,
    /// The account has no second factor yet and must set one up.
    pub enrolment: bool,
    pub expires_in: SignedDuration,
}

/// The secret for an authenticator app.
pub struct Enrolment {
    pub secret: Secret,
    /// For the QR code.
    pub uri: Secret,
}

/// A second factor that was just confirmed. The recovery codes are shown only this once.
pub struct Enrolled<T> {
    pub opened: Opened<T>,
    pub recovery_codes: Vec<Secret>,
}

/// The state of the second factor, as the account's owner sees it.
pub struct State {
    /// False if the account signs in only through an identity provider, which asks for its own.
    pub available: bool,
    pub enabled: bool,
    pub required: bool,
    pub recovery_codes_left: i64,
}

/// An account of either side, with what the second factor needs.
pub struct Account {
    side: Audience,
    id: String,
    email: String,
    role: &'static str,
    password_hash: Option<String>,
    status: Status,
    tokens_from: i64,
}

impl From<&User> for Account {
    fn from(user: &User) -> Account {
        Account {
            side: Audience::Employee,
            id: user.id.to_string(),
            email: user.email.clone(),
            role: EMPLOYEE,
            password_hash: user.password_hash.clone(),
            status: user.status,
            tokens_from: user.tokens_from,
        }
    }
}

impl From<&AdminUser> for Account {
    fn from(admin: &AdminUser) -> Account {
        Account {
            side: Audience::Admin,
            id: admin.id.to_string(),
            email: admin.email.clone(),
            role: admin.role.as_str(),
            password_hash: admin.has_password().then(|| admin.password_hash.clone()),
            status: admin.status,
            tokens_from: admin.tokens_from,
        }
    }
}

impl Account {
    /// Whether we ask for a second factor. If the account signs in only through an identity provider, the provider
    /// does, unless the policy says otherwise.
    fn is_asked(&self, policy: &Policy) -> bool {
        self.password_hash.is_some() || policy.after_sso
    }

    fn must_have(&self, policy: &Policy) -> bool {
        self.is_asked(policy) && policy.required.iter().any(|role| role == self.role)
    }

    /// In the audit log the operator of an employee's own action is the system.
    fn by(&self, by: &By) -> By {
        match self.side {
            Audience::Employee => by.employee(&self.email),
            Audience::Admin => by.named(&self.email),
        }
    }

    fn issuer(&self) -> &'static str {
        match self.side {
            Audience::Employee => "tidepool",
            Audience::Admin => "tidepool console",
        }
    }
}

/// What the user showed as the second factor.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Used {
    App,
    RecoveryCode,
}

impl Used {
    fn as_str(self) -> &'static str {
        match self {
            Used::App => "second factor",
            Used::RecoveryCode => "recovery code",
        }
    }
}

pub async fn employee(app: &App, id: &UserId) -> Result<Account> {
    Ok(Account::from(&user::find(&app.db, id).await?.ok_or(Kind::Unauthorized)?))
}

pub async fn admin(app: &App, id: &AdminId) -> Result<Account> {
    Ok(Account::from(&admin_user::find(&app.db, id).await?.ok_or(Kind::Unauthorized)?))
}

pub async fn state(app: &App, account: &Account) -> Result<State> {
    let stored = second_factor::state(&app.db, &account.id).await?;
    let enabled = stored.enabled > 0;
    let recovery_codes_left = if enabled { stored.recovery_codes_left } else { 0 };
    Ok(State {
        available: account.is_asked(&app.mfa),
        enabled,
        required: account.must_have(&app.mfa),
        recovery_codes_left,
    })
}

/// Removes the second factor of an account and ends its tokens. Returns the e-mail and whether there was a factor.
pub async fn reset(app: &App, by: &By, side: Audience, email: &str) -> Result<(String, bool)> {
    let now = app.clock.now();
    let mut tx = app.db.begin().await?;
    let account = match side {
        Audience::Employee => {
            let mut user = user::lock_by_email(&mut tx, email).await?.ok_or(Kind::NotFound)?;
            user.tokens_from = token::end_all(user.tokens_from, now);
            user::update(&mut tx, &user, now).await?;
            tx.notify(Notice::new(Topic::User, &user.id)).await?;
            Account::from(&user)
        }
        Audience::Admin => {
            let mut admin = admin_user::lock_by_email(&mut tx, email).await?.ok_or(Kind::NotFound)?;
            admin.tokens_from = token::end_all(admin.tokens_from, now);
            admin_user::update(&mut tx, &admin).await?;
            Account::from(&admin)
        }
    };
    let had = second_factor::remove(&mut tx, &account.id).await?;
    let detail = if had { "second factor reset" } else { "second factor reset: there was none" };
    audit::record(app, &mut tx, by, AuditEvent::warn(Action::SecondFactor, &account.email, detail)).await?;
    tx.commit().await?;
    Ok((account.email, had))
}

/// Consumes the code that is shown; `None` if it is not valid.
async fn take(
    app: &App,
    tx: &mut Tx,
    account: &Account,
    by: &By,
    factor: &SecondFactor,
    given: &Secret,
) -> Result<Option<Used>> {
    let now = app.clock.now();
    let given = normalised(given);
    if given.len() == 6 && given.bytes().all(|b| b.is_ascii_digit()) {
        let Some(secret) = factor.secret(&app.sealer)? else { return Ok(None) };
        let Some(step) = totp::matching_step(&secret, &given, now, factor.last_step) else { return Ok(None) };
        let taken = second_factor::take_step(tx, &account.id, step).await?;
        return Ok(taken.then_some(Used::App));
    }
    if !second_factor::take_recovery_code(tx, &account.id, &recovery_hash(&account.id, &given), now).await? {
        return Ok(None);
    }
    let left = second_factor::state(&mut *tx, &account.id).await?.recovery_codes_left;
    record(app, tx, by, account, Level::Warn, &format!("recovery code used, {left} left")).await?;
    Ok(Some(Used::RecoveryCode))
}

/// Commits the transaction and clears the count of wrong codes.
async fn finish(app: &App, tx: Tx, account: &Account) -> Result<()> {
    tx.commit().await?;
    SECOND_FACTOR.clear(app, &account.id).await
}

/// Counts an attempt before its code is checked, so that parallel attempts gain nothing.
async fn admit(app: &App, by: &By, account: &Account) -> Result<()> {
    LOGIN_ADDRESS.check(app, &address_name(account.side, by)).await?;
    SECOND_FACTOR_HOUR.check(app, &account.id).await?;
    SECOND_FACTOR.hit(app, &account.id).await
}

/// Counts and audits a wrong code: this caller knows the password.
async fn refused(app: &App, by: &By, account: &Account, detail: &str) -> Result<()> {
    let action = match account.side {
        Audience::Admin => Action::Login,
        Audience::Employee => Action::SecondFactor,
    };
    audit::record_alone(app, &account.by(by), AuditEvent::warn(action, &account.email, detail)).await?;
    // The limits refuse from the next attempt on. This one gets the error for a wrong code.
    for (limit, name) in [(SECOND_FACTOR_HOUR, account.id.clone()), (LOGIN_ADDRESS, address_name(account.side, by))] {
        match limit.hit(app, &name).await {
            Err(error) if error.kind != Kind::TooManyRequests => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

async fn record(app: &App, tx: &mut Tx, by: &By, account: &Account, level: Level, detail: &str) -> Result<()> {
    let event = AuditEvent { action: Action::SecondFactor, level, target: &account.email, detail };
    audit::record(app, tx, &account.by(by), event).await
}

async fn replace_recovery_codes(tx: &mut Tx, account: &Account) -> Result<Vec<Secret>> {
    let mut codes = vec![];
    for _ in 0..RECOVERY_CODES {
        codes.push(secret::random_readable::<16>(4)?);
    }
    let hashes: Vec<String> = codes.iter().map(|code| recovery_hash(&account.id, &normalised(code))).collect();
    second_factor::replace_recovery_codes(tx, &account.id, &hashes).await?;
    Ok(codes)
}

/// A code has 80 random bits, so a slow hash would add nothing. The hash includes the account, so that equal codes of
/// two accounts do not look equal.
fn recovery_hash(account: &str, code: &str) -> String {
    sha256_hex(&format!("tidepool recovery code\0{account}\0{code}"))
}

/// Accepts a code as people type it: with spaces or dashes, in either case.
fn normalised(code: &Secret) -> String {
    code.expose().chars().filter(|c| !c.is_whitespace() && *c != '-').flat_map(char::to_lowercase).take(64).collect()
}

fn tokens(app: &App, side: Audience) -> &token::TokenKey {
    match side {
        Audience::Employee => &app.employee.tokens,
        Audience::Admin => &app.admin.tokens,
    }
}

fn expiry(claims: &StepClaims) -> Timestamp {
    Timestamp::from_second(claims.exp).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_read_as_people_type_them() {
        for (typed, read) in
            [("123 456", "123456"), (" 123-456\n", "123456"), ("ABCD-efgh-0234-5678", "abcdefgh02345678")]
        {
            assert_eq!(normalised(&Secret::new(typed)), read);
        }
    }

    #[test]
    fn a_recovery_code_belongs_to_one_account() {
        assert_ne!(recovery_hash("a", "code"), recovery_hash("b", "code"));
        assert_eq!(recovery_hash("a", "code").len(), 64);
    }
}
