//! What the tests of every crate share: waiting until something is true, named skips, and what a failed test leaves for
//! its reader. A dev-dependency only.

#![allow(clippy::unwrap_used)]

#[cfg(feature = "database")]
mod database;
mod evidence;
pub mod panics;
mod proxy;
pub mod trace;
mod wait;

#[cfg(feature = "database")]
pub use database::Database;
pub use evidence::keep_database;
pub use proxy::Proxy;
pub use trace::{publish, skip, used_secret};
pub use wait::{LIMIT, until, until_ok, until_ok_within, until_within};
