//! What the product can do. Two ways lead in: people (`api`) and time (`clock`).

pub mod admin_user;
pub mod app;
pub mod assistant;
pub mod audit;
pub mod binding;
pub mod bootstrap;
pub mod chat;
pub mod chat_binding;
pub mod claim;
pub mod container;
pub mod hashing;
pub mod host;
pub mod install;
pub mod instance;
pub mod key;
pub mod llm;
pub mod login;
pub mod marketplace;
pub mod model;
pub mod pool;
pub mod profession;
pub mod quota;
pub mod server;
pub mod session;
pub mod sso;
pub mod task;
pub mod throttle;
pub mod token;
pub mod usage;
pub mod user;

pub use app::App;
