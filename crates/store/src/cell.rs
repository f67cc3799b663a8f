//! Cells: how assistants are confined, which exceptions they have, and how much of their server they may use.

use base::cell::{Limits, Openings};
use base::id::{InstanceId, ProfessionId, ServerId};
use jiff::Timestamp;

use crate::db::Record as _;
use crate::{Conn, Db, Result, Tx, args, record, word};

word! {
    /// The last observed state of an instance's confinement.
    pub enum State {
        /// It was not checked yet.
        Unknown = "unknown",
        /// Its unit is not ours: it has no cell.
        Foreign = "foreign",
        /// Its unit is ours and has no cell.
        Unconfined = "unconfined",
        Confined = "confined",
        /// Its unit has a cell, but differs from what we wrote, or drop-in files change it.
        Altered = "altered",
    }
}

record! {
    #[derive(Clone, Debug)]
    pub struct Cell {
        pub instance_id: InstanceId,
        pub state: State,
        /// In tenths: 0 is the safest, 100 the least safe.
        pub score: Option<i64>,
        pub left_out: String,
        pub not_enforced: String,
        openings: String,
        openings_written: String,
        /// The SHA-256 of the unit as we last wrote it; empty if unknown.
        pub unit_hash: String,
        pub home_bytes: Option<i64>,
        pub measured_at: Option<Timestamp>,
    }
}

impl Cell {
    /// The cell of an instance that was not checked yet.
    pub fn unknown(id: &InstanceId) -> Cell {
        Cell {
            instance_id: id.clone(),
            state: State::Unknown,
            score: None,
            left_out: String::new(),
            not_enforced: String::new(),
            openings: String::new(),
            openings_written: String::new(),
            unit_hash: String::new(),
            home_bytes: None,
            measured_at: None,
        }
    }

    /// The requested exceptions.
    pub fn openings(&self) -> Openings {
        Openings::parse(&self.openings)
    }

    /// The exceptions in the unit that we last wrote.
    pub fn openings_written(&self) -> Openings {
        Openings::parse(&self.openings_written)
    }

    /// Both together: every exception that applies now, or will once the unit is written.
    pub fn openings_at_most(&self) -> Openings {
        Openings::of(self.openings().iter().chain(self.openings_written().iter()))
    }
}

pub async fn find(conn: impl Into<Conn<'_>>, id: &InstanceId) -> Result<Cell> {
    let sql = format!("SELECT {} FROM cell WHERE instance_id = ?", Cell::COLUMNS);
    Ok(conn.into().first(&sql, args![id.as_str()]).await?.unwrap_or_else(|| Cell::unknown(id)))
}

/// The cells of a server's instances; instances that were not checked yet have none.
pub async fn of_server(conn: impl Into<Conn<'_>>, server: &ServerId) -> Result<Vec<Cell>> {
    let sql = format!(
        "SELECT {} FROM cell WHERE instance_id IN (SELECT id FROM instance WHERE server_id = ? AND deleted_at IS NULL)",
        Cell::COLUMNS
    );
    conn.into().all(&sql, args![server]).await
}

/// The cells of all instances that are not deleted.
pub async fn all_live(db: &Db) -> Result<Vec<Cell>> {
    let sql = format!(
        "SELECT {} FROM cell WHERE instance_id IN (SELECT id FROM instance WHERE deleted_at IS NULL)",
        Cell::COLUMNS
    );
    db.all(&sql, args![]).await
}

/// Records the observed state.
pub async fn set_state(conn: impl Into<Conn<'_>>, id: &InstanceId, state: State) -> Result<()> {
    let sql = "INSERT INTO cell (instance_id, state) VALUES (?, ?) ON CONFLICT (instance_id) DO UPDATE SET state = excluded.state";
    conn.into().run(sql, args![id.as_str(), state]).await.map(drop)
}

/// The cell in a unit that was just written.
#[derive(Clone, Debug)]
pub struct Written {
    pub state: State,
    pub score: Option<i64>,
    pub left_out: Vec<String>,
    pub not_enforced: Vec<String>,
    pub openings: Openings,
}

pub async fn set_written(conn: impl Into<Conn<'_>>, id: &InstanceId, written: &Written) -> Result<()> {
    let sql = "INSERT INTO cell (instance_id, state, score, left_out, not_enforced, openings_written) VALUES (?, ?, ?, ?, ?, ?) \
        ON CONFLICT (instance_id) DO UPDATE SET state = excluded.state, score = excluded.score, left_out = excluded.left_out, \
        not_enforced = excluded.not_enforced, openings_written = excluded.openings_written";
    let Written { state, score, left_out, not_enforced, openings } = written;
    let (left_out, not_enforced) = (left_out.join(","), not_enforced.join(","));
    conn.into()
        .run(sql, args![id.as_str(), *state, *score, left_out, not_enforced, openings.to_string()])
        .await
        .map(drop)
}

/// Forgets the cell of an instance that is moved to where it has none. What was asked for it stays.
pub async fn forget(tx: &mut Tx, id: &InstanceId) -> Result<()> {
    let sql = "UPDATE cell SET state = 'unknown', unit_hash = '' WHERE instance_id = ?";
    tx.run(sql, args![id]).await.map(drop)
}

/// Records the hash of the unit that was just written.
pub async fn set_unit_hash(conn: impl Into<Conn<'_>>, id: &InstanceId, hash: &str) -> Result<()> {
    let sql = "INSERT INTO cell (instance_id, unit_hash) VALUES (?, ?) \
        ON CONFLICT (instance_id) DO UPDATE SET unit_hash = excluded.unit_hash";
    conn.into().run(sql, args![id.as_str(), hash]).await.map(drop)
}

pub async fn set_openings(tx: &mut Tx, id: &InstanceId, openings: &Openings) -> Result<()> {
    let sql = "INSERT INTO cell (instance_id, openings) VALUES (?, ?) \
        ON CONFLICT (instance_id) DO UPDATE SET openings = excluded.openings";
    tx.run(sql, args![id.as_str(), openings.to_string()]).await.map(drop)
}

/// Records how much of the server's disk a home uses.
pub async fn set_home_bytes(conn: impl Into<Conn<'_>>, id: &InstanceId, bytes: i64, at: Timestamp) -> Result<()> {
    let sql = "INSERT INTO cell (instance_id, home_bytes, measured_at) VALUES (?, ?, ?) \
        ON CONFLICT (instance_id) DO UPDATE SET home_bytes = excluded.home_bytes, measured_at = excluded.measured_at";
    conn.into().run(sql, args![id.as_str(), bytes, at]).await.map(drop)
}

/// What limits are set for.
#[derive(Clone, Copy, Debug)]
pub enum Subject<'a> {
    Server(&'a ServerId),
    Profession(&'a ProfessionId),
    Instance(&'a InstanceId),
}

impl<'a> Subject<'a> {
    fn words(self) -> (&'static str, &'a str) {
        match self {
            Subject::Server(id) => ("server", id.as_str()),
            Subject::Profession(id) => ("profession", id.as_str()),
            Subject::Instance(id) => ("instance", id.as_str()),
        }
    }
}

record! {
    struct Limit { memory_mib: Option<i64>, cpu_percent: Option<i64>, tasks: Option<i64>, disk_mib: Option<i64> }
}

impl From<Limit> for Limits {
    fn from(row: Limit) -> Limits {
        Limits { memory_mib: row.memory_mib, cpu_percent: row.cpu_percent, tasks: row.tasks, disk_mib: row.disk_mib }
    }
}

/// The limits set for the subject itself, without fallbacks.
pub async fn limits(conn: impl Into<Conn<'_>>, subject: Subject<'_>) -> Result<Limits> {
    let sql = format!("SELECT {} FROM cell_limit WHERE subject = ? AND subject_id = ?", Limit::COLUMNS);
    let (kind, id) = subject.words();
    let found: Option<Limit> = conn.into().first(&sql, args![kind, id]).await?;
    Ok(found.map(Limits::from).unwrap_or_default())
}

pub async fn set_limits(tx: &mut Tx, subject: Subject<'_>, limits: &Limits) -> Result<()> {
    let sql = "INSERT INTO cell_limit (subject, subject_id, memory_mib, cpu_percent, tasks, disk_mib) VALUES (?, ?, ?, ?, ?, ?) \
        ON CONFLICT (subject, subject_id) DO UPDATE SET memory_mib = excluded.memory_mib, cpu_percent = excluded.cpu_percent, \
        tasks = excluded.tasks, disk_mib = excluded.disk_mib";
    let (kind, id) = subject.words();
    tx.run(sql, args![kind, id, limits.memory_mib, limits.cpu_percent, limits.tasks, limits.disk_mib]).await.map(drop)
}

record! { struct Found { id: InstanceId } }

/// The confined instances that the limits of a subject may apply to.
pub async fn confined_of(conn: impl Into<Conn<'_>>, subject: Subject<'_>) -> Result<Vec<InstanceId>> {
    let (_, id) = subject.words();
    let whose = match subject {
        Subject::Instance(_) => "i.id = ?",
        Subject::Server(_) => "i.server_id = ?",
        Subject::Profession(_) => {
            "i.id IN (SELECT instance_id FROM pool_entry WHERE profession_id = ? AND deleted_at IS NULL)"
        }
    };
    let sql = format!(
        "SELECT i.id FROM instance i JOIN cell c ON c.instance_id = i.id AND c.state = 'confined' \
         WHERE i.deleted_at IS NULL AND {whose} ORDER BY i.id"
    );
    let found: Vec<Found> = conn.into().all(&sql, args![id]).await?;
    Ok(found.into_iter().map(|found| found.id).collect())
}
