//! Pure values that every other crate uses: errors, ids, time, secrets, paging. No I/O.

pub mod cell;
pub mod clock;
pub mod csv_cell;
pub mod day;
pub mod email;
pub mod error;
pub mod file_path;
pub mod heartbeat;
pub mod hidden;
pub mod id;
pub mod money;
pub mod page;
pub mod password;
pub mod port;
pub mod price;
pub mod quota;
pub mod schedule;
pub mod secret;
pub mod text;
pub mod totp;
pub mod units;

pub use clock::Clock;
pub use day::Zone;
pub use email::Email;
pub use error::{Error, Kind, Result};
pub use file_path::FilePath;
pub use heartbeat::Heartbeats;
pub use page::{Listing, Page, Sort};
pub use port::GatewayPort;
pub use quota::Quota;
pub use schedule::When;
pub use secret::Secret;
pub use text::{Name, NonEmpty, Text};
pub use units::PerUsd;
