//! Administrators.

use base::id::AdminId;
use base::{Email, Listing, Page, Sort};
use jiff::Timestamp;

use crate::conditions::Conditions;
use crate::db::{Number, Record as _};
use crate::user::Status;
use crate::{Conn, Db, Result, Tx, args, record, word};

word! {
    pub enum Role {
        SuperAdmin = "super_admin",
        Admin = "admin",
        /// Looks after servers and the fleet.
        Operator = "operator",
        /// Reads, and changes nothing.
        Auditor = "auditor",
    }
}

/// Stored in the place of a password hash: this account logs in through the identity provider only.
pub const SSO_ONLY: &str = "SSO_ONLY";

record! {
    #[derive(Clone, Debug)]
    pub struct AdminUser {
        pub id: AdminId,
        pub email: String,
        pub name: String,
        pub role: Role,
        pub status: Status,
        pub password_hash: String,
        pub idp_id: Option<String>,
        pub tokens_from: i64,
        pub last_login_at: Option<Timestamp>,
        pub created_at: Timestamp,
        pub deleted_at: Option<Timestamp>,
    }
}

impl AdminUser {
    pub fn has_password(&self) -> bool {
        self.password_hash != SSO_ONLY
    }

    /// Whether this is an active super_admin. At least one of them must always remain.
    pub fn keeps_the_keys(&self) -> bool {
        self.role == Role::SuperAdmin && self.status == Status::Active && self.deleted_at.is_none()
    }
}

pub struct NewAdmin<'a> {
    pub id: &'a AdminId,
    pub email: &'a Email,
    pub name: &'a str,
    pub role: Role,
    pub password_hash: &'a str,
    pub idp_id: Option<&'a str>,
    pub created_at: Timestamp,
}

/// Fails with `Taken` when the address is in use, by a deleted account too.
pub async fn insert(tx: &mut Tx, new: NewAdmin<'_>) -> Result<()> {
    let sql = "INSERT INTO admin_users (id, email, email_key, name, role, status, password_hash, idp_id, created_at) \
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let args = args![
        new.id.as_str(),
        new.email.as_str(),
        new.email.key(),
        new.name,
        new.role,
        Status::Active,
        new.password_hash,
        new.idp_id,
        new.created_at
    ];
    tx.run(sql, args).await.map(drop)
}

/// Whether there is any account, deleted ones included.
pub async fn any(conn: impl Into<Conn<'_>>) -> Result<bool> {
    let number: Number = conn.into().one("SELECT COUNT(*) AS n FROM admin_users", args![]).await?;
    Ok(number.n > 0)
}

pub async fn find(conn: impl Into<Conn<'_>>, id: &AdminId) -> Result<Option<AdminUser>> {
    let sql = format!("SELECT {} FROM admin_users WHERE id = ? AND deleted_at IS NULL", AdminUser::COLUMNS);
    conn.into().first(&sql, args![id.as_str()]).await
}

pub async fn find_by_email(conn: impl Into<Conn<'_>>, email: &str) -> Result<Option<AdminUser>> {
    let sql = format!("SELECT {} FROM admin_users WHERE email_key = ? AND deleted_at IS NULL", AdminUser::COLUMNS);
    conn.into().first(&sql, args![Email::key_of(email)]).await
}

/// The account, locked until the transaction ends.
pub async fn lock_by_email(tx: &mut Tx, email: &str) -> Result<Option<AdminUser>> {
    let lock = tx.dialect().for_update();
    let sql =
        format!("SELECT {} FROM admin_users WHERE email_key = ? AND deleted_at IS NULL{lock}", AdminUser::COLUMNS);
    tx.first(&sql, args![Email::key_of(email)]).await
}

pub async fn find_by_idp(conn: impl Into<Conn<'_>>, idp_id: &str) -> Result<Option<AdminUser>> {
    let sql = format!("SELECT {} FROM admin_users WHERE idp_id = ? AND deleted_at IS NULL", AdminUser::COLUMNS);
    conn.into().first(&sql, args![idp_id]).await
}

/// Locks every active super_admin until the transaction ends. Otherwise two concurrent changes could each rely on the
/// account that the other one removes.
pub async fn lock_super_admins(tx: &mut Tx) -> Result<Vec<AdminUser>> {
    let sql = format!(
        "SELECT {} FROM admin_users WHERE role = ? AND status = ? AND deleted_at IS NULL ORDER BY id{}",
        AdminUser::COLUMNS,
        tx.dialect().for_update()
    );
    tx.all(&sql, args![Role::SuperAdmin, Status::Active]).await
}

/// Writes back everything that may change.
pub async fn update(tx: &mut Tx, admin: &AdminUser) -> Result<()> {
    let sql = "UPDATE admin_users SET name = ?, role = ?, status = ?, password_hash = ?, idp_id = ?, tokens_from = ?, \
        last_login_at = ?, deleted_at = ? WHERE id = ?";
    let args = args![
        &admin.name,
        admin.role,
        admin.status,
        &admin.password_hash,
        admin.idp_id.as_deref(),
        admin.tokens_from,
        admin.last_login_at,
        admin.deleted_at,
        &admin.id
    ];
    tx.run(sql, args).await.map(drop)
}

/// Replaces a stored password hash, unless it was changed in the meantime.
pub async fn upgrade_password(db: &Db, id: &AdminId, old: &str, new: &str) -> Result<()> {
    let sql = "UPDATE admin_users SET password_hash = ? WHERE id = ? AND password_hash = ?";
    db.run(sql, args![new, id, old]).await.map(drop)
}

pub async fn logged_in(tx: &mut Tx, id: &AdminId, at: Timestamp) -> Result<()> {
    tx.run("UPDATE admin_users SET last_login_at = ? WHERE id = ?", args![at, id]).await.map(drop)
}

/// The columns a list may be sorted by.
pub const SORTABLE: &[&str] = &["email", "name", "role", "status", "last_login_at", "created_at"];

pub async fn list(db: &Db, q: Option<&str>, sort: Sort, page: Page) -> Result<Listing<AdminUser>> {
    let conditions = Conditions::of(db.dialect()).must("deleted_at IS NULL").search(&["email", "name"], q);
    conditions.list(db, AdminUser::COLUMNS, "admin_users", sort, "id", page).await
}

record! {
    /// The part of an account that every request's token is checked against.
    #[derive(Clone, Debug)]
    pub struct Session {
        pub id: AdminId,
        pub email: String,
        pub name: String,
        pub role: Role,
        pub status: Status,
        pub tokens_from: i64,
        /// 1 if this token was ended by a logout.
        pub ended: i64,
    }
}

pub async fn session(db: &Db, id: &str, jti: &str) -> Result<Option<Session>> {
    let sql = "SELECT id, email, name, role, status, tokens_from, \
        (SELECT COUNT(*) FROM ended_token WHERE jti = ?) AS ended \
        FROM admin_users WHERE id = ? AND deleted_at IS NULL";
    db.first(sql, args![jti, id]).await
}
