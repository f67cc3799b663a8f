//! Conversation with servers, tested against real ones: Debian hosts with systemd and sshd (`testbed/hosts.sh`), whose folder is
//! in TIDEPOOL_TEST_HOSTS. Without it every case that needs them is skipped by name.
//!
//! h1 and h3 are shared by cases that leave them as they were; h2 is crashed, cut off and rebooted by `faults`, one case at a time.

#![allow(clippy::unwrap_used)]

mod cell;
mod commands;
mod connection;
mod docker;
mod expected;
mod faults;
mod files;
mod forward;
mod homes;
mod journal;
mod kit;
mod listener;
mod local;
mod ports;
mod probe;
mod systemd;
mod users;
