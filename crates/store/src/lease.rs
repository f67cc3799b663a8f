//! Leases: who may do what only one process does. A lease that is not renewed is anybody's once it has run out.
//!
//! Whether it has is decided by the database's clock, also when it was taken: those of the machines differ.

use base::Clock;
use jiff::{SignedDuration, Timestamp};

use crate::{Db, Dialect, Result, args};

/// The time by which leases run.
#[derive(Clone, Copy, Debug)]
pub enum Now {
    Database,
    /// That of a clock that a test moves: its days pass in seconds.
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

/// How long a lease lasts, from the moment on when it is written.
#[derive(Clone, Copy, Debug)]
pub struct Term {
    pub from: Now,
    pub length: SignedDuration,
}

impl Term {
    pub fn of(clock: &Clock, length: SignedDuration) -> Term {
        Term { from: Now::of(clock), length }
    }

    /// A lease that ends at this moment.
    pub fn until(at: Timestamp) -> Term {
        Term { from: Now::Given(at), length: SignedDuration::ZERO }
    }

    /// When it ends.
    pub(crate) fn end(self, dialect: Dialect) -> String {
        format!("{} + {}", self.from.sql(dialect), self.length.as_millis())
    }
}

/// Takes or renews a lease. True while `holder` has it. One that has four times as long to go as it may was written by a clock that
/// was ahead, and binds nobody.
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

/// Gives a lease back, so that the next need not wait until it has run out.
pub async fn release(db: &Db, name: &str, holder: &str) -> Result<()> {
    db.run("DELETE FROM lease WHERE name = ? AND holder = ?", args![name, holder]).await.map(drop)
}
