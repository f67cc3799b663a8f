//! What people ask for: the employee API and the administration API, over HTTP.
//!
//! `employee/` and `admin/` hold the endpoints, one file per noun; everything else here serves both.

pub mod admin;
mod browser;
pub mod config_json;
pub mod docs;
pub mod embed;
mod embed_origin;
pub mod employee;
pub mod envelope;
pub mod error;
pub mod event_stream;
pub mod extract;
pub mod fallback;
pub mod headers;
pub mod health;
pub mod hooks;
pub mod marketplace;
pub mod openapi;
pub mod public_url;
mod request_parts;
mod second_factor;
pub mod server;
pub mod shape;
pub mod socket;
pub mod sso;
pub mod state;
pub mod trace;
pub mod usage;
pub mod web;
pub mod words;

pub use public_url::PublicUrl;
pub use state::{Api, Assets};
