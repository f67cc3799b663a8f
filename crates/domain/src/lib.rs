//! What the product can do. Two ways lead in: people (`api`) and time (`clock`).

pub mod admin_user;
pub mod app;
pub mod audit;
pub mod bootstrap;
pub mod hashing;
pub mod login;
pub mod session;
pub mod sso;
pub mod throttle;
pub mod token;
pub mod user;

pub use app::App;
