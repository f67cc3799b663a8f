//! PostgreSQL's advisory locks, held to the end of a transaction. SQLite needs none, because it has one writer.

use crate::{Dialect, Result, Tx, args};

/// Work that only one process may do at a time. The numbers are the keys of the advisory locks.
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
    ModelNames = 0x7469_6465_0008,
}

impl Tx {
    /// Takes `lock` exclusively until the end of this transaction. Waits while another transaction holds it.
    pub async fn lock(&mut self, lock: Lock) -> Result<()> {
        if self.dialect() == Dialect::Postgres {
            self.run("SELECT pg_advisory_xact_lock(?)", args![lock as i64]).await?;
        }
        Ok(())
    }

    /// Takes `lock` in shared mode: other transactions may share it, but none may hold it exclusively.
    pub async fn lock_shared(&mut self, lock: Lock) -> Result<()> {
        if self.dialect() == Dialect::Postgres {
            self.run("SELECT pg_advisory_xact_lock_shared(?)", args![lock as i64]).await?;
        }
        Ok(())
    }

    /// Takes an exclusive lock on a name, so that two processes cannot decide about the same thing at once.
    pub async fn lock_name(&mut self, name: &str) -> Result<()> {
        if self.dialect() == Dialect::Postgres {
            self.run("SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", args![name]).await?;
        }
        Ok(())
    }
}
