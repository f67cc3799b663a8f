//! What the tests stand on: a gateway, providers that do as they are told, and honest skips.

mod biller;
mod client;
mod provider;
mod proxy;
mod site;
mod wire;

pub use biller::{Biller, Manner};
pub use client::{Client, Reply, ask, event};
pub use provider::{Act, Provider, answer, stream_of};
pub use proxy::Proxy;
pub use site::{NOON, Options, PROVIDER_KEY, Site};
pub use testkit::Database;
pub use wire::Wire;

/// Runs each case on SQLite and on a real PostgreSQL. The case gives its site back; the gateway is stopped, and the log, the
/// sums and the quotas must agree.
#[macro_export]
macro_rules! on_both {
    ($($(#[$meta:meta])* async fn $name:ident($database:ident: Database) $body:block)*) => {$(
        $(#[$meta])*
        mod $name {
            use super::*;

            async fn case($database: $crate::kit::Database) -> $crate::kit::Site $body

            #[tokio::test(flavor = "multi_thread")]
            async fn sqlite() {
                case($crate::kit::Database::sqlite()).await.end().await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn postgres() {
                if let Some(database) = $crate::kit::Database::postgres(module_path!()).await {
                    case(database).await.end().await;
                }
            }
        }
    )*};
}
