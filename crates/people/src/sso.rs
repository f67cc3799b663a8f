//! Single sign-on: finds or creates our account for an identity of a provider.
//!
//! Accounts are matched by the provider's id, then by verified e-mail. The first match by e-mail ties the account to
//! the identity.

use base::id::{AdminId, UserId};
use base::{Email, Error, Kind, Result};
use queue::audit::{self, Action, AuditEvent, By};
use queue::throttle::SSO_ADDRESS;
use remote::sso::{Claims, Identity};
use store::admin_user::{self, AdminUser, NewAdmin, Role, SSO_ONLY};
use store::user::{self, NewUser, Status, User};

use crate::login::{self, Outcome};
use crate::second_factor::FirstFactor;
use crate::{App, Newcomers};

/// Counts a sign-in redirect against the caller's address.
pub async fn admit(app: &App, by: &By) -> Result<()> {
    SSO_ADDRESS.hit(app, &by.ip).await
}

/// Login with a token that an identity proxy signed (POST /auth/verify).
pub async fn proxied(app: &App, by: &By, token: &str) -> Result<Outcome<User>> {
    let proxy = app.proxy.as_ref().ok_or(Kind::SsoNotConfigured)?;
    SSO_ADDRESS.hit(app, &by.ip).await?;
    let claims: Claims = proxy.keys.verify(token, &proxy.issuer, proxy.audience.as_deref()).await?;
    if claims.sub.is_empty() {
        return Err(Error::from(Kind::Unauthorized).with_operator("the proxy's token has no subject"));
    }
    // The proxy's token proves the e-mail address, unless it says that the address is not verified.
    employee(app, claims.identity(&proxy.issuer, true)).await
}

pub async fn employee(app: &App, identity: Identity) -> Result<Outcome<User>> {
    let begun = app.clock.now();
    let account = match user::find_by_idp(&app.db, &identity.id).await? {
        Some(account) => account,
        None => first_employee_login(app, &identity).await?,
    };
    if account.status != Status::Active {
        return Err(Kind::AccountRevoked.into());
    }
    login::continue_employee(app, account, begun, FirstFactor::Sso).await
}

async fn first_employee_login(app: &App, identity: &Identity) -> Result<User> {
    let email = verified(identity)?;
    let mut tx = app.db.begin().await?;
    // Lock the row: the whole row is written back, and must not undo a revocation.
    let account = match user::lock_by_email(&mut tx, email.as_str()).await? {
        Some(mut known) => {
            refuse_other_identity(known.idp_id.as_deref())?;
            known.idp_id = Some(identity.id.clone());
            user::update(&mut tx, &known, app.clock.now()).await?;
            known
        }
        None => {
            welcome(&app.employee.newcomers, identity, email)?;
            let id = UserId::fresh();
            let new = NewUser {
                id: &id,
                email,
                name: &name(identity, email),
                department: "",
                quota_daily: 0,
                password_hash: None,
                idp_id: Some(&identity.id),
                created_at: app.clock.now(),
            };
            crate::user::insert(&mut tx, new).await?;
            let event = AuditEvent::info(Action::UserCreate, email.as_str(), "employee created at first SSO login");
            audit::record(app, &mut tx, &By::system(), event).await?;
            user::find(&mut tx, &id).await?.ok_or(Kind::NotFound)?
        }
    };
    tx.commit().await?;
    Ok(account)
}

/// `identity` is the result of the sign-in at the provider. An invalid token is recorded in the audit log. Other
/// failures there are not, because no identity was shown yet.
pub async fn admin(app: &App, by: &By, identity: Result<Identity>) -> Result<Outcome<AdminUser>> {
    let identity = match identity {
        Err(error) if error.kind == Kind::Unauthorized => {
            refused(app, &by.named(login::UNKNOWN), login::UNKNOWN, &error).await?;
            return Err(error);
        }
        other => other?,
    };
    let shown = identity.email.as_ref().map_or(identity.id.as_str(), Email::as_str);
    let begun = app.clock.now();
    let account = match admin_user::find_by_idp(&app.db, &identity.id).await? {
        Some(account) => Ok(account),
        None => first_admin_login(app, &identity).await,
    };
    let mut operator = login::UNKNOWN.to_owned();
    let account = account.and_then(|account| {
        operator.clone_from(&account.email);
        match account.status {
            Status::Active => Ok(account),
            Status::Revoked => Err(Kind::AccountRevoked.into()),
        }
    });
    if let Err(error) = &account {
        refused(app, &by.named(operator), shown, error).await?;
    }
    login::continue_admin(app, by, account?, begun, FirstFactor::Sso).await
}

async fn refused(app: &App, by: &By, shown: &str, error: &Error) -> Result<()> {
    let detail = format!("SSO refused: {}", error.client);
    audit::record_alone(app, by, AuditEvent::warn(Action::Login, shown, &detail)).await
}

async fn first_admin_login(app: &App, identity: &Identity) -> Result<AdminUser> {
    let email = verified(identity)?;
    let mut tx = app.db.begin().await?;
    let account = match admin_user::lock_by_email(&mut tx, email.as_str()).await? {
        Some(mut known) => {
            refuse_other_identity(known.idp_id.as_deref())?;
            known.idp_id = Some(identity.id.clone());
            admin_user::update(&mut tx, &known).await?;
            known
        }
        None => {
            let newcomers = &app.admin.newcomers;
            // Otherwise everybody with an account at the provider would become an administrator.
            if newcomers.domains.is_empty() && newcomers.claim.is_none() {
                return Err(Error::new(Kind::NoAccess, NOBODY).with_operator("neither domains nor a claim are set"));
            }
            welcome(newcomers, identity, email)?;
            let id = AdminId::fresh();
            let new = NewAdmin {
                id: &id,
                email,
                name: &name(identity, email),
                role: Role::Admin,
                password_hash: SSO_ONLY,
                idp_id: Some(&identity.id),
                created_at: app.clock.now(),
            };
            admin_user::insert(&mut tx, new).await?;
            let event =
                AuditEvent::info(Action::UserCreate, email.as_str(), "administrator created at first SSO login");
            audit::record(app, &mut tx, &By::system(), event).await?;
            admin_user::find(&mut tx, &id).await?.ok_or(Kind::NotFound)?
        }
    };
    tx.commit().await?;
    Ok(account)
}

fn verified(identity: &Identity) -> Result<&Email> {
    let email = identity.email.as_ref();
    let email = email.ok_or_else(|| Error::new(Kind::NoAccess, "the identity provider gave no e-mail address"))?;
    if !identity.email_verified {
        return Err(Error::new(Kind::NoAccess, "the identity provider has not verified this e-mail address"));
    }
    Ok(email)
}

/// Fails if the account is tied to another identity: if the provider gave the address to somebody else, that person
/// must not inherit the account.
fn refuse_other_identity(tied: Option<&str>) -> Result<()> {
    match tied {
        None => Ok(()),
        Some(_) => Err(Error::new(Kind::NoAccess, "this account belongs to another identity; ask an administrator")),
    }
}

const NOBODY: &str = "there is no account for this e-mail address; ask an administrator";

fn welcome(newcomers: &Newcomers, identity: &Identity, email: &Email) -> Result<()> {
    if !newcomers.welcome {
        return Err(Error::new(Kind::NoAccess, NOBODY));
    }
    if let Some((claim, value)) = &newcomers.claim
        && !identity.has(claim, value)
    {
        return Err(Error::new(Kind::NoAccess, NOBODY).with_operator(format_args!("the claim {claim} is not {value}")));
    }
    let domain = email.domain();
    if !newcomers.domains.is_empty() && !newcomers.domains.contains(&domain) {
        return Err(Error::new(Kind::NoAccess, "accounts are not made for this e-mail domain"));
    }
    Ok(())
}

/// The person's name at the provider, cut to the width of the column; otherwise the part before the `@`.
fn name(identity: &Identity, email: &Email) -> String {
    let given = identity.name.as_deref().map(str::trim).filter(|n| !n.is_empty());
    let name = given.unwrap_or_else(|| email.as_str().split('@').next().unwrap_or_default());
    name.chars().filter(|c| !c.is_control()).take(100).collect()
}
