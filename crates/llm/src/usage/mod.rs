//! Usage and cost: sums of the LLM gateway's request log, and of nothing else.
//!
//! The log says which instance used what; the bindings say who held the instance. A request counts for whoever held its
//! instance when it was made (`store::holder`). In an employee's own numbers an instance's use counts since the end of
//! the last binding to another user, and what they used before stands apart.

mod feed;
mod own;
pub mod reader;
mod retention;
mod spent;
mod stats;

pub use store::usage::Sums;

pub use feed::{AsOf, Feed, Local};
pub use own::{Day, Own, Window, Windows};
pub use retention::forget_old;
pub(crate) use spent::spent_in;
pub use spent::{spent, spent_and_unlogged};
pub use stats::{Common, Grouping, Stat, StatsQuery, TokenDay, check_days, days, departments_since, stats};

/// The longest period of a query, in days.
pub const MAX_DAYS: i64 = 366;

/// The first of the last `days` local days, today included.
pub fn first_day(app: &crate::App, days: i64) -> jiff::civil::Date {
    let back = jiff::Span::new().days(days.clamp(1, MAX_DAYS) - 1);
    app.zone.date(app.clock.now()).saturating_sub(back)
}
