//! What is owed to an instance on its server: noted before a task writes or stops something there, taken off when that came to its end.

use base::id::InstanceId;

use crate::db::Record as _;
use crate::{Conn, Result, args, record, word};

word! {
    pub enum Owed {
        Nothing = "",
        /// Its configuration was written: the running gateway takes it over by itself, or was not seen to.
        Reload = "reload",
        /// It was stopped, or must be, and is to be started again.
        Restart = "restart",
        /// It was told to start; whether it came up is not known.
        Start = "start",
    }
}

impl Owed {
    /// Whether it is to run, and may be down.
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

/// What was changed stands in the audit log.
pub async fn was_told(conn: impl Into<Conn<'_>>, instance: &InstanceId) -> Result<()> {
    conn.into().run("UPDATE debt SET told = '' WHERE instance_id = ?", args![instance.as_str()]).await.map(drop)
}
