//! Every table, and the one database handle that reads and writes them. The only crate with SQL.

pub mod admin_user;
pub mod audit;
pub mod backup;
pub mod binding;
pub mod chat_binding;
pub mod copy;
pub mod db;
pub mod dialect;
pub mod ended_token;
pub mod error;
pub mod filter;
pub mod foreign;
pub mod install;
pub mod instance;
pub mod invariant;
pub mod key_check;
pub mod lock;
pub mod marketplace;
pub mod migrate;
pub mod notice;
pub mod pool;
pub mod profession;
pub mod rekey;
pub mod row;
pub mod seal;
pub mod server;
pub mod server_metric;
pub mod table;
pub mod task;
pub mod task_log;
pub mod throttle;
pub mod user;

pub use db::{Conn, Db, Tx};
pub use dialect::Dialect;
pub use error::{Error, Result};
