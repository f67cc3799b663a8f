//! The gateway's integration tests, in one binary: the real listener on a real socket, providers that do as they are told on
//! others, on SQLite and on PostgreSQL.

#![allow(clippy::unwrap_used)]

mod answers;
mod billing;
mod details;
mod endpoints;
mod fallbacks;
mod keys;
mod kit;
mod logs;
mod messages;
mod prices;
mod providers;
mod quotas;
mod responses;
mod retention;
mod streams;
