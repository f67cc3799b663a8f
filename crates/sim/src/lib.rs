//! Parts of the outside world, simulated on real sockets: for tests, the demo, and measuring.

pub mod assistant;
pub mod bot;
pub mod host;
pub mod llm;
