//! Leases: the right of one process to do something alone. A lease that is not renewed expires, and then another
//! process may take it.
//!
//! The database's clock decides when a lease begins and expires, because the clocks of machines differ.

use base::Clock;
use jiff::{SignedDuration, Timestamp};

use crate::{Db, Dialect, Result, args};

/// The clock for leases.
#[derive(Clone, Copy, Debug)]
pub enum Now {
    Database,
    /// The time of a test's clock, whose days pass in seconds.
    Given(Timestamp),
}

impl Now {
    pub fn of(clock: &Clock) -> Now {
        if clock.is_system() { Now::Database } else { Now::Given(clock.now()) }
    }

    pub(crate) fn sql(self, dialect: Dialect) -> String {
        match self {
            Now::Database => dialect.now_ms().to_owned(),
            Now::Given(at) => at.as_millisecond().to_string(),
        }
    }
}

/// The length of a lease, from the moment it is written.
#[derive(Clone, Copy, Debug)]
pub struct Term {
    pub from: Now,
    pub length: SignedDuration,
}

impl Term {
    pub fn of(clock: &Clock, length: SignedDuration) -> Term {
        Term { from: Now::of(clock), length }
    }

    /// A lease that ends at this time.
    pub fn until(at: Timestamp) -> Term {
        Term { from: Now::Given(at), length: SignedDuration::ZERO }
    }

    /// The end of the lease as SQL.
    pub(crate) fn end(self, dialect: Dialect) -> String {
        format!("{} + {}", self.from.sql(dialect), self.length.as_millis())
    }
}

/// Takes or renews a lease. True if `holder` has it now. A lease that would last four times its length was written by a
/// clock that was ahead, and is ignored.
pub async fn hold(db: &Db, name: &str, holder: &str, term: Term) -> Result<bool> {
    let (now, end) = (term.from.sql(db.dialect()), term.end(db.dialect()));
    let longest = 4 * term.length.as_millis();
    let sql = format!(
        "INSERT INTO lease (name, holder, until) VALUES (?, ?, {end}) ON CONFLICT (name) DO UPDATE \
         SET holder = excluded.holder, until = excluded.until \
         WHERE lease.holder = excluded.holder OR lease.until < {now} OR lease.until > {now} + {longest}"
    );
    Ok(db.run(&sql, args![name, holder]).await? == 1)
}

/// Releases a lease, so that the next process need not wait until it expires.
pub async fn release(db: &Db, name: &str, holder: &str) -> Result<()> {
    db.run("DELETE FROM lease WHERE name = ? AND holder = ?", args![name, holder]).await.map(drop)
}
