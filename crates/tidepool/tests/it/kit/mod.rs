//! What the tests stand on: a running site, calls that check the envelope, and honest skips.

mod answering;
pub mod assistant;
mod call;
pub mod conversation;
pub mod existing;
pub mod hosts;
mod older;
mod process;
mod reserved;
pub mod simulated;
mod site;
pub mod talk;

pub use answering::answering;
pub use call::{Call, Origin, Reply};
pub use older::database_before;
pub use process::{Process, run};
pub use reserved::free_port;
pub use site::{Gateway, Options, ROOT, Site};
pub use testkit::{Database, skip, used_secret};

/// The password of everybody whom a test makes.
pub const PASSWORD: &str = "a-password-for-tests";

/// Runs each case on SQLite and on a real PostgreSQL, and looks at all tables afterwards.
#[macro_export]
macro_rules! on_both {
    ($($(#[$meta:meta])* async fn $name:ident($site:ident: Site) $body:block)*) => {$(
        $(#[$meta])*
        mod $name {
            use super::*;

            async fn case($site: &Site) $body

            #[tokio::test(flavor = "multi_thread")]
            async fn sqlite() {
                let site = Site::start($crate::kit::Database::sqlite()).await;
                case(&site).await;
                site.check().await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn postgres() {
                if let Some(database) = $crate::kit::Database::postgres(module_path!()).await {
                    let site = Site::start(database).await;
                    case(&site).await;
                    site.check().await;
                }
            }
        }
    )*};
}
