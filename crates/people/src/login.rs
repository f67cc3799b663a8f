//! Login with a password, on both sides. A wrong e-mail and a wrong password take the same time and get the same
//! response.

use base::password::Verdict;
use base::{Email, Error, Kind, Result, Secret};
use jiff::Timestamp;
use queue::audit::{self, Action, AuditEvent, By};
use queue::throttle::{LOGIN_ADDRESS, LOGIN_BROWSER, LOGIN_EMAIL, LOGIN_NOTE, LOGIN_PAIR};
use store::admin_user::{self, AdminUser};
use store::seal::Place;
use store::user::{self, Status, User};

use crate::App;
use crate::caller::{address_name, network};
use crate::second_factor::{self, Challenge, FirstFactor};
use crate::session::{Opened, open_admin, open_employee};
use crate::token::Audience;

/// The operator of a login that names no account.
pub(crate) const UNKNOWN: &str = "unknown";

/// The result of a login: a session, or a challenge for the second factor.
pub enum Outcome<T> {
    Opened(Opened<T>),
    SecondFactor(Challenge),
}

/// `browser` is the mark that the browser kept from an earlier sign-in, if any.
pub async fn employee(
    app: &App,
    by: &By,
    email: &str,
    password: Secret,
    browser: Option<&str>,
) -> Result<Outcome<User>> {
    let attempt = Attempt::new(app, Audience::Employee, by, email, browser);
    attempt.check(app).await?;
    let begun = app.clock.now();
    let account = match &attempt.email {
        Some(email) => user::find_by_email(&app.db, email.as_str()).await?,
        None => None,
    };
    let stored = account.as_ref().and_then(|a| a.password_hash.clone());
    let verdict = app.hasher.verify(stored.clone(), password.clone(), &network(&by.ip)).await?;
    let Some(account) = account.filter(|_| verdict != Verdict::Wrong) else {
        return Err(attempt.failed(app).await?);
    };
    attempt.succeeded(app).await?;
    if let (Verdict::RightButOutdated, Some(old)) = (verdict, stored) {
        let new = app.hasher.hash(password).await?;
        user::upgrade_password(&app.db, &account.id, &old, &new).await?;
    }
    if account.status != Status::Active {
        return Err(Kind::AccountRevoked.into());
    }
    continue_employee(app, account, begun, FirstFactor::Password).await
}

/// `browser` is as in `employee`.
pub async fn admin(
    app: &App,
    by: &By,
    email: &str,
    password: Secret,
    browser: Option<&str>,
) -> Result<Outcome<AdminUser>> {
    let attempt = Attempt::new(app, Audience::Admin, by, email, browser);
    let outcome = match attempt.check(app).await {
        Ok(()) => admin_checked(app, by, &attempt, password).await,
        Err(refusal) => Err(refusal),
    };
    // Record refusals in the audit log. The attempted name is cut to the width of the column.
    if let Err(error) = &outcome
        && match error.kind {
            Kind::WrongLogin | Kind::AccountRevoked => true,
            // Repeated attempts must not fill the log.
            Kind::TooManyRequests => LOGIN_NOTE.hit(app, &attempt.address_name).await.is_ok(),
            _ => false,
        }
    {
        let detail = format!("refused: {}", error.client);
        // Name an operator only if the account exists: anybody can type "System".
        let known = admin_user::find_by_email(&app.db, email).await.ok().flatten();
        let operator = known.map_or_else(|| UNKNOWN.to_owned(), |admin| admin.email);
        audit::record_alone(app, &by.named(operator), AuditEvent::warn(Action::Login, email, &detail)).await?;
    }
    outcome
}

async fn admin_checked(app: &App, by: &By, attempt: &Attempt, password: Secret) -> Result<Outcome<AdminUser>> {
    let begun = app.clock.now();
    let account = match &attempt.email {
        Some(email) => admin_user::find_by_email(&app.db, email.as_str()).await?,
        None => None,
    };
    let stored = account.as_ref().filter(|a| a.has_password()).map(|a| a.password_hash.clone());
    let verdict = app.hasher.verify(stored.clone(), password.clone(), &network(&by.ip)).await?;
    let Some(account) = account.filter(|_| verdict != Verdict::Wrong) else {
        return Err(attempt.failed(app).await?);
    };
    attempt.succeeded(app).await?;
    if let (Verdict::RightButOutdated, Some(old)) = (verdict, stored) {
        let new = app.hasher.hash(password).await?;
        admin_user::upgrade_password(&app.db, &account.id, &old, &new).await?;
    }
    if account.status != Status::Active {
        return Err(Kind::AccountRevoked.into());
    }
    continue_admin(app, by, account, begun, FirstFactor::Password).await
}

/// Continues after the first factor: opens the session, or asks for the second factor if the account has or needs one.
pub(crate) async fn continue_employee(
    app: &App,
    account: User,
    begun: Timestamp,
    first: FirstFactor,
) -> Result<Outcome<User>> {
    Ok(match second_factor::challenge(app, &(&account).into(), first, begun).await? {
        Some(challenge) => Outcome::SecondFactor(challenge),
        None => Outcome::Opened(open_employee(app, account, begun)?),
    })
}

pub(crate) async fn continue_admin(
    app: &App,
    by: &By,
    account: AdminUser,
    begun: Timestamp,
    first: FirstFactor,
) -> Result<Outcome<AdminUser>> {
    Ok(match second_factor::challenge(app, &(&account).into(), first, begun).await? {
        Some(challenge) => Outcome::SecondFactor(challenge),
        None => Outcome::Opened(open_admin(app, by, account, begun, first.as_str()).await?),
    })
}

/// One attempt, and the names of its counters.
struct Attempt {
    email: Option<Email>,
    pair_name: String,
    email_name: String,
    address_name: String,
    /// The browser, if it signed in to this account before.
    browser_name: Option<String>,
}

impl Attempt {
    fn new(app: &App, audience: Audience, by: &By, email: &str, browser: Option<&str>) -> Attempt {
        let email = email.parse::<Email>().ok();
        let (side, network) = (audience.as_str(), network(&by.ip));
        let key = email.as_ref().map(|e| format!("{side}:{}", e.key())).unwrap_or_default();
        let known = browser.zip(email.as_ref()).and_then(|(sealed, email)| known_browser(app, audience, email, sealed));
        Attempt {
            pair_name: format!("{key}:{network}"),
            browser_name: known.map(|browser| format!("{key}:{browser}")),
            // An invalid e-mail counts against the caller's address alone.
            email_name: key,
            address_name: address_name(audience, by),
            email,
        }
    }

    async fn check(&self, app: &App) -> Result<()> {
        if let Some(browser) = &self.browser_name {
            return LOGIN_BROWSER.check(app, browser).await;
        }
        if self.email.is_some() {
            LOGIN_PAIR.check(app, &self.pair_name).await?;
            LOGIN_EMAIL.check(app, &self.email_name).await?;
        }
        LOGIN_ADDRESS.check(app, &self.address_name).await
    }

    /// Counts the failure. Parallel attempts all pass `check`; the count here refuses those over the limit.
    async fn failed(&self, app: &App) -> Result<Error> {
        let address = LOGIN_ADDRESS.hit(app, &self.address_name).await;
        if let Some(browser) = &self.browser_name {
            LOGIN_BROWSER.hit(app, browser).await?;
            return Ok(Kind::WrongLogin.into());
        }
        if self.email.is_some() {
            let email = LOGIN_EMAIL.hit(app, &self.email_name).await;
            LOGIN_PAIR.hit(app, &self.pair_name).await?;
            email?;
        }
        address?;
        Ok(Kind::WrongLogin.into())
    }

    async fn succeeded(&self, app: &App) -> Result<()> {
        self.check(app).await?;
        LOGIN_PAIR.clear(app, &self.pair_name).await?;
        match &self.browser_name {
            Some(browser) => LOGIN_BROWSER.clear(app, browser).await,
            None => Ok(()),
        }
    }
}

/// The mark by which a browser is recognised as one that signed in to this account before.
pub fn browser_mark(app: &App, audience: Audience, email: &str) -> Result<Secret> {
    let key = Email::key_of(email);
    let place = browser_place(audience, &key);
    Ok(Secret::new(app.sealer.seal(place, &base::secret::random_token()?)?))
}

fn known_browser(app: &App, audience: Audience, email: &Email, sealed: &str) -> Option<String> {
    let opened = app.sealer.open(browser_place(audience, &email.key()), sealed).ok()?;
    Some(opened.expose().to_owned())
}

fn browser_place(audience: Audience, email_key: &str) -> Place<'_> {
    Place { table: "browser", column: audience.as_str(), id: email_key }
}
