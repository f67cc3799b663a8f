//! Managed servers.

use base::id::ServerId;
use base::{Listing, NonEmpty, Page, Secret, Sort};
use jiff::Timestamp;

use crate::conditions::Conditions;
use crate::db::{Number, Record as _};
use crate::seal::{Place, Sealer};
use crate::{Conn, Db, Result, Tx, args, record, word};

word! {
    pub enum Status {
        Active = "active",
        /// It is not checked, and its instances are left alone.
        Disabled = "disabled",
    }
}

record! {
    #[derive(Clone, Debug)]
    pub struct Server {
        pub id: ServerId,
        pub name: String,
        pub host: String,
        pub ssh_port: i64,
        pub ssh_user: String,
        pub ssh_key_path: String,
        /// Sealed: see `key`.
        pub ssh_key: Option<String>,
        /// The host key that an administrator expects: see `remote::host::ExpectedKey`. `None`: the first one shown
        /// is trusted.
        pub expected_host_key: Option<NonEmpty>,
        /// The host key, pinned at the first contact and replaced only if an authority certifies the new one.
        pub host_key: Option<NonEmpty>,
        pub base_dir: String,
        pub openclaw_version: Option<NonEmpty>,
        /// Whether each package of this OpenClaw was checked against a lockfile.
        pub openclaw_pinned: bool,
        pub prepared_at: Option<Timestamp>,
        pub status: Status,
        pub notes: String,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
    }
}

impl Server {
    /// The private key for the login, if it is not in a file.
    pub fn key(&self, sealer: &Sealer) -> Result<Option<Secret>> {
        self.ssh_key.as_deref().map(|sealed| sealer.open(key_place(&self.id), sealed)).transpose()
    }
}

pub fn key_place(id: &str) -> Place<'_> {
    Place { table: "server", column: "ssh_key", id }
}

/// Fails with `Taken` when the id is in use, by a deleted server too.
pub async fn insert(tx: &mut Tx, server: &Server) -> Result<()> {
    let sql = "INSERT INTO server (id, id_key, name, host, ssh_port, ssh_user, ssh_key_path, ssh_key, expected_host_key, base_dir, status, notes, \
        created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let args = args![
        &server.id,
        server.id.to_lowercase(),
        &server.name,
        &server.host,
        server.ssh_port,
        &server.ssh_user,
        &server.ssh_key_path,
        server.ssh_key.as_ref(),
        &server.expected_host_key,
        &server.base_dir,
        server.status,
        &server.notes,
        server.created_at,
        server.updated_at
    ];
    tx.run(sql, args).await.map(drop)
}

pub async fn find(conn: impl Into<Conn<'_>>, id: &ServerId) -> Result<Option<Server>> {
    let sql = format!("SELECT {} FROM server WHERE id = ? AND deleted_at IS NULL", Server::COLUMNS);
    conn.into().first(&sql, args![id.as_str()]).await
}

/// Also finds a deleted server, for work that remains on it.
pub async fn find_even_deleted(conn: impl Into<Conn<'_>>, id: &ServerId) -> Result<Option<Server>> {
    conn.into().first(&format!("SELECT {} FROM server WHERE id = ?", Server::COLUMNS), args![id.as_str()]).await
}

/// The server, locked until the transaction ends. Ports are assigned under this lock.
pub async fn lock(tx: &mut Tx, id: &ServerId) -> Result<Option<Server>> {
    let lock = tx.dialect().for_update();
    let sql = format!("SELECT {} FROM server WHERE id = ? AND deleted_at IS NULL{lock}", Server::COLUMNS);
    tx.first(&sql, args![id.as_str()]).await
}

pub async fn update(tx: &mut Tx, server: &Server) -> Result<()> {
    let sql = "UPDATE server SET name = ?, host = ?, ssh_port = ?, ssh_user = ?, ssh_key_path = ?, ssh_key = ?, expected_host_key = ?, host_key = ?, \
        base_dir = ?, openclaw_version = ?, openclaw_pinned = ?, prepared_at = ?, status = ?, notes = ?, updated_at = ? WHERE id = ?";
    let args = args![
        &server.name,
        &server.host,
        server.ssh_port,
        &server.ssh_user,
        &server.ssh_key_path,
        server.ssh_key.as_ref(),
        &server.expected_host_key,
        &server.host_key,
        &server.base_dir,
        &server.openclaw_version,
        server.openclaw_pinned,
        server.prepared_at,
        server.status,
        &server.notes,
        server.updated_at,
        &server.id
    ];
    tx.run(sql, args).await.map(drop)
}

/// Pins a server's host key, unless one is pinned already or its address has changed; returns whether it did.
pub async fn pin(db: &Db, server: &Server, host_key: &str) -> Result<bool> {
    let sql = "UPDATE server SET host_key = ? WHERE id = ? AND host_key = '' AND host = ? AND ssh_port = ? AND expected_host_key = ?";
    let args = args![host_key, &server.id, &server.host, server.ssh_port, &server.expected_host_key];
    Ok(db.run(sql, args).await? == 1)
}

/// Records the host key that a certified server showed last; returns whether it changed.
pub async fn note_host_key(db: &Db, id: &ServerId, host_key: &str) -> Result<bool> {
    let sql = "UPDATE server SET host_key = ? WHERE id = ? AND host_key <> ?";
    Ok(db.run(sql, args![host_key, id.as_str(), host_key]).await? == 1)
}

/// Records that this OpenClaw is installed there.
pub async fn set_prepared(db: &Db, id: &ServerId, version: &str, pinned: bool, at: Timestamp) -> Result<()> {
    let sql = "UPDATE server SET openclaw_version = ?, openclaw_pinned = ?, prepared_at = ? WHERE id = ?";
    db.run(sql, args![version, pinned, at, id.as_str()]).await.map(drop)
}

pub async fn delete(tx: &mut Tx, id: &ServerId, at: Timestamp) -> Result<()> {
    tx.run("UPDATE server SET deleted_at = ? WHERE id = ?", args![at, id.as_str()]).await.map(drop)
}

/// How many servers there are.
pub async fn count(tx: &mut Tx) -> Result<usize> {
    let number: Number =
        Conn::from(tx).one("SELECT COUNT(*) AS n FROM server WHERE deleted_at IS NULL", args![]).await?;
    Ok(usize::try_from(number.n).unwrap_or_default())
}

/// How many instances of the server are not deleted.
pub async fn live_instances(conn: impl Into<Conn<'_>>, id: &ServerId) -> Result<i64> {
    let sql = "SELECT COUNT(*) AS n FROM instance WHERE server_id = ? AND deleted_at IS NULL";
    let number: Number = conn.into().one(sql, args![id.as_str()]).await?;
    Ok(number.n)
}

/// The columns a list may be sorted by.
pub const SORTABLE: &[&str] = &["id", "name", "host", "status", "created_at", "updated_at"];

pub async fn list(db: &Db, q: Option<&str>, status: Option<Status>, sort: Sort, page: Page) -> Result<Listing<Server>> {
    let conditions = Conditions::of(db.dialect())
        .must("deleted_at IS NULL")
        .when("status = ?", status)
        .search(&["id", "name", "host"], q);
    conditions.list(db, Server::COLUMNS, "server", sort, "id", page).await
}
