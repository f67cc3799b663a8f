//! Whether a user holds an instance.

use base::id::{InstanceId, UserId};
use base::{Kind, Result};
use store::instance::{self, Isolation};

use crate::App;

/// An instance that the user holds. Another user's instance is `NotFound`.
pub async fn own(app: &App, user: &UserId, id: &InstanceId) -> Result<instance::Instance> {
    held_by(user, instance::find(&app.db, id).await?)
}

/// The instance, if the user holds it; otherwise `NotFound`.
pub fn held_by(user: &UserId, found: Option<instance::Instance>) -> Result<instance::Instance> {
    Ok(found.filter(|i| i.assigned_user_id.as_deref() == Some(user.as_str())).ok_or(Kind::NotFound)?)
}

/// Why an instance is not offered to everybody.
pub fn refusal(isolation: Isolation, user: &str) -> String {
    match isolation {
        Isolation::Shared if user.is_empty() => "it does not have a user and a home of its own".into(),
        Isolation::Shared => format!("it runs as {user}: it does not have a user and a home of its own"),
        Isolation::Adopted if user.is_empty() => {
            "the platform did not make what it runs in, and does not clean it".into()
        }
        Isolation::Adopted => format!("it runs as {user}, and the platform did not make that user or its home"),
        Isolation::Opened => "its cell is open for what makes it root on the server".into(),
        Isolation::Unknown => "nobody has looked yet as whom it runs; the next health check does".into(),
        Isolation::Own | Isolation::None => String::new(),
    }
}
