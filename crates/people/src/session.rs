//! Bearer tokens of accounts. Every request checks its token against the database, so that revoking, deleting and
//! resetting take effect at once on every replica.

use base::id::{AdminId, UserId};
use base::{Error, Kind, Result, Secret};
use jiff::Timestamp;
use queue::audit::{self, Action, AuditEvent, By};
use store::admin_user::{self, AdminUser, Role};
use store::ended_token;
use store::notice::{Notice, Topic};
use store::user::{self, Status, User};

use crate::App;
use crate::token::{Bearer, Claims};

/// The token that a request came with.
#[derive(Clone, Debug)]
pub struct Token {
    pub jti: String,
    /// The second in which it was issued.
    pub issued_at: i64,
    pub expires_at: Timestamp,
}

#[derive(Clone, Debug)]
pub struct Employee {
    pub id: UserId,
    pub email: String,
    pub name: String,
    pub token: Token,
}

#[derive(Clone, Debug)]
pub struct Admin {
    pub id: AdminId,
    pub email: String,
    pub name: String,
    pub role: Role,
    pub token: Token,
}

pub async fn employee(app: &App, token: &str) -> Result<Employee> {
    let claims = app.employee.tokens.read(token, app.clock.now())?;
    let account = user::session(&app.db, &claims.sub, &claims.jti).await?.ok_or_else(|| refused("no such account"))?;
    check(claims.iat, account.status, account.tokens_from, account.ended)?;
    Ok(Employee { id: account.id, email: account.email, name: account.name, token: bearer(&claims) })
}

pub async fn admin(app: &App, token: &str) -> Result<Admin> {
    let claims = app.admin.tokens.read(token, app.clock.now())?;
    let account =
        admin_user::session(&app.db, &claims.sub, &claims.jti).await?.ok_or_else(|| refused("no such account"))?;
    check(claims.iat, account.status, account.tokens_from, account.ended)?;
    Ok(Admin {
        id: account.id,
        email: account.email,
        name: account.name,
        // The account's current role, not the one in the token.
        role: account.role,
        token: bearer(&claims),
    })
}

/// A session that was opened.
pub struct Opened<T> {
    pub token: Secret,
    pub account: T,
}

/// A token for an account that has authenticated. Its issue time is `begun`, a moment before the account was read: if
/// the account's tokens were ended since then, for example while the password was compared, this token has ended too.
pub fn open_employee(app: &App, account: User, begun: Timestamp) -> Result<Opened<User>> {
    let bearer = Bearer { id: &account.id, email: &account.email, role: None, tokens_from: account.tokens_from };
    let token = app.employee.tokens.issue(bearer, begun)?;
    Ok(Opened { token, account })
}

/// A token for an administrator, and its audit entry. `begun` is as in `open_employee`.
pub async fn open_admin(
    app: &App,
    by: &By,
    account: AdminUser,
    begun: Timestamp,
    how: &str,
) -> Result<Opened<AdminUser>> {
    let token = admin_token(app, &account, begun)?;
    let mut tx = app.db.begin().await?;
    admin_user::logged_in(&mut tx, &account.id, app.clock.now()).await?;
    let event = AuditEvent::info(Action::Login, &account.email, how);
    audit::record(app, &mut tx, &by.named(&account.email), event).await?;
    tx.commit().await?;
    Ok(Opened { token, account })
}

pub fn admin_token(app: &App, account: &AdminUser, begun: Timestamp) -> Result<Secret> {
    let bearer = Bearer {
        id: &account.id,
        email: &account.email,
        role: Some(account.role.as_str()),
        tokens_from: account.tokens_from,
    };
    app.admin.tokens.issue(bearer, begun)
}

/// Checks that a token is still valid, for what outlives its request, such as a socket.
pub async fn still(app: &App, user: &UserId, token: &Token) -> Result<()> {
    if token.expires_at <= app.clock.now() {
        return Err(refused("expired"));
    }
    let account = user::session(&app.db, user.as_str(), &token.jti).await?.ok_or_else(|| refused("no such account"))?;
    check(token.issued_at, account.status, account.tokens_from, account.ended)
}

/// Ends an employee's token before it expires, and with it the sockets opened by it.
pub async fn end_employee(app: &App, who: &Employee) -> Result<()> {
    let mut tx = app.db.begin().await?;
    ended_token::end(&mut tx, &who.token.jti, who.token.expires_at).await?;
    ended_token::forget_expired(&mut tx, app.clock.now()).await?;
    tx.notify(Notice::new(Topic::User, who.id.as_str())).await?;
    Ok(tx.commit().await?)
}

/// Ends one token before it expires.
pub async fn end(app: &App, token: &Token) -> Result<()> {
    ended_token::end(&app.db, &token.jti, token.expires_at).await?;
    // Ended tokens that have expired need not be stored any more.
    ended_token::forget_expired(&app.db, app.clock.now()).await?;
    Ok(())
}

pub(crate) fn check(issued_at: i64, status: Status, tokens_from: i64, ended: i64) -> Result<()> {
    if status != Status::Active {
        return Err(refused("account revoked"));
    }
    if issued_at < tokens_from {
        return Err(refused("issued before the account's tokens were ended"));
    }
    if ended > 0 {
        return Err(refused("logged out"));
    }
    Ok(())
}

fn bearer(claims: &Claims) -> Token {
    Token {
        jti: claims.jti.clone(),
        issued_at: claims.iat,
        expires_at: Timestamp::from_second(claims.exp).unwrap_or(Timestamp::MAX),
    }
}

fn refused(why: &str) -> Error {
    Error::from(Kind::Unauthorized).with_operator(why)
}
