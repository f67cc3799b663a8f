//! The product's integration tests, in one binary: the real server on real sockets, on SQLite and on
//! PostgreSQL, and the real binary as a process.

#![allow(clippy::unwrap_used)]

mod accounts;
mod admins;
mod audit;
mod cli;
mod coverage;
mod database;
mod envelope;
mod kit;
mod login_limits;
mod marketplace;
mod openapi;
mod sso;
