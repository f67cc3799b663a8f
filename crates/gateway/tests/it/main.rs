//! The gateway's integration tests, in one binary: the real listener on a real socket, providers that do as they are told on
//! others, on SQLite and on PostgreSQL.

#![allow(clippy::unwrap_used)]

mod answers;
mod billing;
mod fallbacks;
mod keys;
mod kit;
mod logs;
mod quotas;
mod retention;
mod streams;
