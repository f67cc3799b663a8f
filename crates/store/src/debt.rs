//! The pending action of an instance. A task records it before it writes the configuration or stops the assistant, and
//! clears it when that is finished. If the worker dies in between, the next task finishes the action.

use base::id::InstanceId;

use crate::db::Record as _;
use crate::{Conn, Result, args, record, word};

word! {
    pub enum Owed {
        Nothing = "",
        /// Its configuration was written, and the running assistant has not confirmed a reload yet.
        Reload = "reload",
        /// It must be restarted, or was stopped for a restart.
        Restart = "restart",
        /// It must be running; it may be down, or a start was requested whose result is not known.
        Start = "start",
    }
}

impl Owed {
    /// Whether it must be running and may be down.
    pub fn is_start(self) -> bool {
        matches!(self, Owed::Restart | Owed::Start)
    }
}

record! {
    #[derive(Clone, Debug)]
    pub struct Debt {
        pub owed: Owed,
        pub log_size: i64,
        pub told: String,
    }
}

impl Debt {
    pub const NONE: Debt = Debt { owed: Owed::Nothing, log_size: 0, told: String::new() };
}

pub async fn find(conn: impl Into<Conn<'_>>, instance: &InstanceId) -> Result<Debt> {
    let sql = format!("SELECT {} FROM debt WHERE instance_id = ?", Debt::COLUMNS);
    Ok(conn.into().first(&sql, args![instance.as_str()]).await?.unwrap_or(Debt::NONE))
}

pub async fn set(conn: impl Into<Conn<'_>>, instance: &InstanceId, debt: &Debt) -> Result<()> {
    let sql = "INSERT INTO debt (instance_id, owed, log_size, told) VALUES (?, ?, ?, ?) ON CONFLICT (instance_id) \
        DO UPDATE SET owed = excluded.owed, log_size = excluded.log_size, told = excluded.told";
    let args = args![instance.as_str(), debt.owed, debt.log_size, &debt.told];
    conn.into().run(sql, args).await.map(drop)
}

pub async fn set_owed(conn: impl Into<Conn<'_>>, instance: &InstanceId, owed: Owed) -> Result<()> {
    let sql = "INSERT INTO debt (instance_id, owed, log_size, told) VALUES (?, ?, 0, '') ON CONFLICT (instance_id) \
        DO UPDATE SET owed = excluded.owed";
    conn.into().run(sql, args![instance.as_str(), owed]).await.map(drop)
}

/// Clears the description of the change, because its audit entry is written.
pub async fn was_told(conn: impl Into<Conn<'_>>, instance: &InstanceId) -> Result<()> {
    conn.into().run("UPDATE debt SET told = '' WHERE instance_id = ?", args![instance.as_str()]).await.map(drop)
}
