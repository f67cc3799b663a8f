//! The first administrator of an empty installation.

use base::{Email, Error, Result, Secret};
use queue::audit::By;
use store::admin_user::{self, Role};
use store::db::Lock;

use crate::App;
use crate::admin_user::insert;

/// The address when none is configured.
pub const DEFAULT_EMAIL: &str = "admin@tidepool.local";

/// An account that was just created.
pub struct Made {
    pub email: String,
    /// The password, if it was generated. It is printed once.
    pub generated: Option<Secret>,
}

/// Creates the first super_admin if there is no administrator. Replicas that start together create only one.
pub async fn first_admin(app: &App, email: Option<Email>, password: Option<Secret>) -> Result<Option<Made>> {
    if admin_user::any(&app.db).await? {
        return Ok(None);
    }
    let email = match email {
        Some(email) => email,
        None => DEFAULT_EMAIL.parse()?,
    };
    let generated = if password.is_none() { Some(random_password()?) } else { None };
    let password = password.or_else(|| generated.clone()).ok_or_else(|| Error::internal("no password"))?;
    base::password::check("bootstrap_admin_password", &password)?;
    let hash = app.hasher.hash(password).await?;
    let mut tx = app.db.begin().await?;
    tx.lock(Lock::Bootstrap).await?;
    if admin_user::any(&mut tx).await? {
        return Ok(None);
    }
    let made = insert(app, &mut tx, &By::system(), &email, "Administrator", Role::SuperAdmin, &hash).await?;
    tx.commit().await?;
    Ok(Some(Made { email: made.email, generated }))
}

/// A password that can be read aloud.
pub fn random_password() -> Result<Secret> {
    base::secret::random_readable::<20>(5)
}
