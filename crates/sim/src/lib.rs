//! Simulations of the systems outside the platform, on real sockets, for the tests, the demo and the bench.

pub mod assistant;
pub mod bot;
pub mod host;
pub mod llm;
