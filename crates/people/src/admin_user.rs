//! Administrators: managed by super_admins, one of whom is always left.

use base::id::AdminId;
use base::{Email, Error, Kind, Listing, Page, Result, Secret, Sort, password};
use queue::audit::{self, Action, AuditEvent, By, Changes};
use queue::throttle::PASSWORD_CHANGE;
use store::admin_user::{self, NewAdmin, SSO_ONLY};
pub use store::admin_user::{AdminUser, Role};
use store::user::Status;

use crate::session::{self, Opened};
use crate::token::{self, Audience};
use crate::{App, password_reset};

pub struct New {
    pub email: Email,
    pub name: String,
    pub role: Role,
    pub password: Option<Secret>,
}

/// What a PATCH changes; `None` leaves a field as it is.
#[derive(Default)]
pub struct Patch {
    pub name: Option<String>,
    pub role: Option<Role>,
    pub status: Option<Status>,
    pub password: Option<Secret>,
    /// Unties the account from its identity. The next sign-on with its verified e-mail ties it to the new one.
    pub forget_identity: bool,
}

pub async fn list(app: &App, q: Option<&str>, sort: Sort, page: Page) -> Result<Listing<AdminUser>> {
    Ok(admin_user::list(&app.db, q, sort, page).await?)
}

pub async fn find(app: &App, id: &AdminId) -> Result<AdminUser> {
    Ok(admin_user::find(&app.db, id).await?.ok_or(Kind::NotFound)?)
}

pub async fn create(app: &App, by: &By, new: New) -> Result<AdminUser> {
    let hash = match new.password {
        Some(password) => {
            password::check("password", &password)?;
            app.hasher.hash(password).await?
        }
        None => SSO_ONLY.to_owned(),
    };
    let mut tx = app.db.begin().await?;
    let created = insert(app, &mut tx, by, &new.email, &new.name, new.role, &hash).await?;
    tx.commit().await?;
    Ok(created)
}

/// Writes the account and its audit entry, for every way to create an administrator.
pub(crate) async fn insert(
    app: &App,
    tx: &mut store::Tx,
    by: &By,
    email: &Email,
    name: &str,
    role: Role,
    password_hash: &str,
) -> Result<AdminUser> {
    let id = AdminId::fresh();
    let created_at = app.clock.now();
    let record = NewAdmin { id: &id, email, name, role, password_hash, idp_id: None, created_at };
    admin_user::insert(tx, record).await.map_err(|e| match e {
        store::Error::Taken => Error::conflict("an administrator with this e-mail exists already"),
        other => other.into(),
    })?;
    let sso = if password_hash == SSO_ONLY { ", SSO only" } else { "" };
    let detail = format!("{} created{sso}", role.as_str());
    audit::record(app, tx, by, AuditEvent::info(Action::UserCreate, email.as_str(), &detail)).await?;
    Ok(admin_user::find(tx, &id).await?.ok_or(Kind::NotFound)?)
}

pub async fn update(app: &App, by: &By, email: &str, patch: Patch) -> Result<AdminUser> {
    let password_hash = match patch.password {
        Some(password) => {
            password::check("password", &password)?;
            Some(app.hasher.hash(password).await?)
        }
        None => None,
    };
    let now = app.clock.now();
    let mut tx = app.db.begin().await?;
    let keepers = admin_user::lock_super_admins(&mut tx).await?;
    let old = admin_user::lock_by_email(&mut tx, email).await?.ok_or(Kind::NotFound)?;
    let mut admin = old.clone();
    admin.name = patch.name.unwrap_or(admin.name);
    admin.role = patch.role.unwrap_or(admin.role);
    admin.status = patch.status.unwrap_or(admin.status);
    if let Some(hash) = &password_hash {
        admin.password_hash = hash.clone();
    }
    if patch.forget_identity {
        admin.idp_id = None;
    }
    if password_hash.is_some() || admin.status != old.status || admin.idp_id != old.idp_id {
        admin.tokens_from = token::end_all(admin.tokens_from, now);
    }
    refuse_to_lose_the_last(&keepers, &admin)?;
    let changes = Changes::default()
        .field("name", &old.name, &admin.name)
        .field("role", old.role.as_str(), admin.role.as_str())
        .field("status", old.status.as_str(), admin.status.as_str())
        .hidden("password", password_hash.is_some())
        .hidden("identity", old.idp_id != admin.idp_id);
    admin_user::update(&mut tx, &admin).await?;
    match password_hash.is_some() && Email::key_of(&by.operator) != Email::key_of(&admin.email) {
        true => {
            let reset = password_reset::note(app, &mut tx, by, Audience::Admin, &admin.id).await?;
            let detail = format!("{}; {}", changes.text(), reset.warning());
            audit::record(app, &mut tx, by, AuditEvent::warn(Action::UserUpdate, &admin.email, &detail)).await?;
        }
        false => {
            audit::record(app, &mut tx, by, AuditEvent::info(Action::UserUpdate, &admin.email, &changes.text())).await?
        }
    }
    tx.commit().await?;
    Ok(admin)
}

/// Soft delete: the row stays.
pub async fn delete(app: &App, by: &By, email: &str) -> Result<AdminUser> {
    let mut tx = app.db.begin().await?;
    let keepers = admin_user::lock_super_admins(&mut tx).await?;
    let mut admin = admin_user::lock_by_email(&mut tx, email).await?.ok_or(Kind::NotFound)?;
    admin.deleted_at = Some(app.clock.now());
    refuse_to_lose_the_last(&keepers, &admin)?;
    admin_user::update(&mut tx, &admin).await?;
    let event = AuditEvent::warn(Action::UserUpdate, &admin.email, "administrator deleted");
    audit::record(app, &mut tx, by, event).await?;
    tx.commit().await?;
    Ok(admin)
}

fn refuse_to_lose_the_last(keepers: &[AdminUser], changed: &AdminUser) -> Result<()> {
    let others = keepers.iter().any(|k| k.id != changed.id);
    let was_one = keepers.iter().any(|k| k.id == changed.id);
    if was_one && !others && !changed.keeps_the_keys() {
        return Err(Error::conflict("the last active super_admin can be neither revoked, demoted nor deleted"));
    }
    Ok(())
}

/// An administrator changes their own password. All tokens end except the one that is returned.
pub async fn change_password(app: &App, by: &By, id: &AdminId, old: Secret, new: Secret) -> Result<Opened<AdminUser>> {
    password::check("new", &new)?;
    PASSWORD_CHANGE.check(app, id.as_str()).await?;
    let account = find(app, id).await?;
    if !account.has_password() {
        return Err(Error::conflict("this account has no password: it signs in through SSO"));
    }
    if app.hasher.verify(Some(account.password_hash.clone()), old, id.as_str()).await? == password::Verdict::Wrong {
        PASSWORD_CHANGE.hit(app, id.as_str()).await?;
        return Err(Error::field("old", "is not the current password"));
    }
    // Parallel attempts all pass the first check. So check again: a right password does not count after too many wrong
    // ones.
    PASSWORD_CHANGE.check(app, id.as_str()).await?;
    let hash = app.hasher.hash(new).await?;
    let begun = app.clock.now();
    let admin = set_password(app, by, &account.email, Some(&account.password_hash), hash).await?;
    PASSWORD_CHANGE.clear(app, id.as_str()).await?;
    let token = session::admin_token(app, &admin, begun)?;
    Ok(Opened { token, account: admin })
}

/// Sets a new password and ends the tokens of the account. `tidepool admin reset-password` uses it too.
pub async fn reset_password(app: &App, by: &By, email: &str, password: Secret) -> Result<AdminUser> {
    password::check("password", &password)?;
    let hash = app.hasher.hash(password).await?;
    set_password(app, by, email, None, hash).await
}

/// `verified` is the hash that the old password was compared with. If the hash has changed since, the change is
/// refused. `None` means that somebody other than the owner sets the password.
async fn set_password(app: &App, by: &By, email: &str, verified: Option<&str>, hash: String) -> Result<AdminUser> {
    let mut tx = app.db.begin().await?;
    let mut admin = admin_user::lock_by_email(&mut tx, email).await?.ok_or(Kind::NotFound)?;
    if verified.is_some_and(|v| v != admin.password_hash) || (verified.is_some() && admin.status != Status::Active) {
        return Err(Kind::Unauthorized.into());
    }
    admin.password_hash = hash;
    admin.tokens_from = token::end_all(admin.tokens_from, app.clock.now());
    admin_user::update(&mut tx, &admin).await?;
    match verified {
        Some(_) => {
            let event = AuditEvent::info(Action::UserUpdate, &admin.email, "own password changed");
            audit::record(app, &mut tx, by, event).await?;
        }
        None => {
            let reset = password_reset::note(app, &mut tx, by, Audience::Admin, &admin.id).await?;
            let detail = format!("password reset; {}", reset.warning());
            audit::record(app, &mut tx, by, AuditEvent::warn(Action::UserUpdate, &admin.email, &detail)).await?;
        }
    }
    tx.commit().await?;
    Ok(admin)
}
