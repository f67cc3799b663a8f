//! Passwords that somebody other than the owner set. That person can sign in as the owner, so the owner sees who set it
//! and when until they acknowledge it, and the audit log has a warning.

use base::Result;
use queue::audit::{self, Action, AuditEvent, By};
pub use store::password_reset::PasswordReset;
use store::{Tx, password_reset, second_factor};

use crate::App;
use crate::token::Audience;

/// A reset that was recorded.
pub(crate) struct Noted {
    has_second_factor: bool,
}

impl Noted {
    /// The warning in the audit entry.
    pub(crate) fn warning(&self) -> &'static str {
        match self.has_second_factor {
            true => "the second factor stays",
            false => "no second factor: whoever knows this password can sign in as this person",
        }
    }
}

/// Records that `by` set the password of an account.
pub(crate) async fn note(app: &App, tx: &mut Tx, by: &By, side: Audience, account: &str) -> Result<Noted> {
    password_reset::note(tx, side.as_str(), account, &by.operator, app.clock.now()).await?;
    Ok(Noted { has_second_factor: second_factor::is_enabled(&mut *tx, account).await? })
}

/// The reset that the account's owner has not acknowledged yet.
pub async fn find(app: &App, account: &str) -> Result<Option<PasswordReset>> {
    Ok(password_reset::find(&app.db, account).await?)
}

/// Acknowledges a reset. It is audited with the caller's address, because the person who set the password could
/// acknowledge it too.
pub async fn acknowledge(app: &App, by: &By, account: &str, email: &str) -> Result<()> {
    let mut tx = app.db.begin().await?;
    if let Some(reset) = password_reset::acknowledge(&mut tx, account).await? {
        let detail = format!("password reset by {} acknowledged", reset.reset_by);
        audit::record(app, &mut tx, by, AuditEvent::info(Action::UserUpdate, email, &detail)).await?;
    }
    Ok(tx.commit().await?)
}
