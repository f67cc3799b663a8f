//! What was used and what it cost: sums of the LLM gateway's request log, and nothing else.
//!
//! The log says what was used by which instance; the bindings say whose instance it is. An instance's use is its
//! user's since the end of the last binding to anybody else.

mod feed;
mod retention;
mod spent;

pub use feed::{AsOf, Feed, Local};
pub use retention::forget_old;
pub use spent::spent;
pub(crate) use spent::spent_in;
