//! All communication with systems outside of the platform.

pub mod address;
pub mod assistant;
pub mod bot;
pub mod host;
pub mod http;
pub mod jwks;
pub mod llm;
pub mod memory;
pub mod provider;
pub mod sso;
pub mod webhook;
