//! The product's integration tests, in one binary: the real server on real sockets, on SQLite and on
//! PostgreSQL, and the real binary as a process.

#![allow(clippy::unwrap_used)]

/// As in the binary: some tests look at how much memory what it does takes.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod accounts;
mod admins;
mod adopt;
mod alerts;
mod audit;
mod bodies;
mod broken_off;
mod cell;
mod chat;
mod chat_bindings;
mod claims;
mod cli;
mod clock;
mod coverage;
mod crash_day;
mod database;
mod day;
mod envelope;
mod failover;
mod fleet;
mod gateway;
mod gateway_crash;
mod guardian;
mod handlers;
mod health;
mod host_trust;
mod hostile;
mod hosts;
mod installs;
mod isolation;
mod key_flags;
mod key_quotas;
mod key_validity;
mod keys;
mod kit;
mod login_limits;
mod marketplace;
mod messages;
mod model;
mod model_records;
mod neighbour;
mod openapi;
mod openclaw;
mod providers;
mod queue;
mod queue_crash;
mod queue_priority;
mod reads;
mod real;
mod reconcile;
mod repairs;
mod replicas;
mod request_details;
mod retention;
mod roles;
mod second_factor;
mod sso;
mod storm;
mod talk;
mod upstreams;
mod usage;
mod user_import;
mod zones;
