//! What tidepool knows of the OpenClaw assistant: its configuration file, its unit, its logs and the lines in them that
//! mean trouble, its WebSocket frames, and the two scripts that ask a server about all its instances (`sweep`) and
//! about all gateways that it has (`discover`). No I/O, so that
//! everything here can be tested with any input.

pub mod config;
pub mod discover;
pub mod document;
pub mod frame;
pub mod layout;
pub mod lock;
pub mod log;
pub mod pairing;
pub mod program;
pub mod rule;
pub mod shell;
pub mod sweep;
pub mod unit;
pub mod version;

pub use document::Document;
pub use layout::Layout;
pub use version::Version;
