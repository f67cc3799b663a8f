//! The contract that every LLM gateway keeps with the platform, and its log with the reader: one suite over all kinds,
//! on every database that each of them can use.

#![allow(clippy::unwrap_used)]

mod bench;
mod embedded;
mod keys;
mod log;
mod odd;
mod reader;
mod real;
