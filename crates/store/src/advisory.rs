//! PostgreSQL's advisory locks, held to the end of a transaction. SQLite's one writer is such a lock already.

use crate::{Dialect, Result, Tx, args};

/// What several processes must not do at once. The numbers are PostgreSQL advisory locks.
#[derive(Clone, Copy, Debug)]
#[repr(i64)]
pub enum Lock {
    Migrate = 0x7469_6465_0001,
    Bootstrap = 0x7469_6465_0002,
    Rekey = 0x7469_6465_0003,
    UsageDays = 0x7469_6465_0004,
    UsageReader = 0x7469_6465_0005,
    AlertRules = 0x7469_6465_0006,
    Replicas = 0x7469_6465_0007,
}

impl Tx {
    /// Waits until no other transaction holds `lock`, and holds it to the end of this one.
    /// SQLite's one writer is such a lock already.
    pub async fn lock(&mut self, lock: Lock) -> Result<()> {
        if self.dialect() == Dialect::Postgres {
            self.run("SELECT pg_advisory_xact_lock(?)", args![lock as i64]).await?;
        }
        Ok(())
    }

    /// Holds `lock` together with others who hold it so, and against whoever holds it alone.
    pub async fn lock_shared(&mut self, lock: Lock) -> Result<()> {
        if self.dialect() == Dialect::Postgres {
            self.run("SELECT pg_advisory_xact_lock_shared(?)", args![lock as i64]).await?;
        }
        Ok(())
    }

    /// The same for a thing that has a name: what two processes must not decide about at once.
    pub async fn lock_name(&mut self, name: &str) -> Result<()> {
        if self.dialect() == Dialect::Postgres {
            self.run("SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", args![name]).await?;
        }
        Ok(())
    }
}
