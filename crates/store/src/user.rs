//! Employees: the service users of the spec.

use base::id::UserId;
use base::{Email, Listing, Page, Sort};
use jiff::Timestamp;

use crate::conditions::Conditions;
use crate::db::{Record as _, Value};
use crate::{Conn, Db, Result, Tx, args, record, user_department, word};

word! {
    /// Whether the account may log in.
    pub enum Status {
        Active = "active",
        Revoked = "revoked",
    }
}

record! {
    #[derive(Clone, Debug)]
    pub struct User {
        pub id: UserId,
        pub email: String,
        pub name: String,
        pub department: String,
        pub status: Status,
        pub quota_daily: i64,
        pub password_hash: Option<String>,
        pub idp_id: Option<String>,
        pub tokens_from: i64,
        pub created_at: Timestamp,
        pub revoked_at: Option<Timestamp>,
    }
}

pub struct NewUser<'a> {
    pub id: &'a UserId,
    pub email: &'a Email,
    pub name: &'a str,
    pub department: &'a str,
    pub quota_daily: i64,
    pub password_hash: Option<&'a str>,
    pub idp_id: Option<&'a str>,
    pub created_at: Timestamp,
}

/// Fails with `Taken` when the address or the provider's id is in use.
pub async fn insert(tx: &mut Tx, new: NewUser<'_>) -> Result<()> {
    let sql = "INSERT INTO users (id, email, email_key, name, department, status, quota_daily, password_hash, idp_id, created_at) \
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let args = args![
        new.id.as_str(),
        new.email.as_str(),
        new.email.key(),
        new.name,
        new.department,
        Status::Active,
        new.quota_daily,
        new.password_hash,
        new.idp_id,
        new.created_at
    ];
    tx.run(sql, args).await?;
    user_department::record(tx, new.id, new.department, new.created_at).await
}

pub async fn find(conn: impl Into<Conn<'_>>, id: &UserId) -> Result<Option<User>> {
    conn.into().first(&format!("SELECT {} FROM users WHERE id = ?", User::COLUMNS), args![id.as_str()]).await
}

/// The user, locked until the transaction ends.
pub async fn lock(tx: &mut Tx, id: &UserId) -> Result<Option<User>> {
    let sql = format!("SELECT {} FROM users WHERE id = ?{}", User::COLUMNS, tx.dialect().for_update());
    tx.first(&sql, args![id.as_str()]).await
}

pub async fn find_by_email(conn: impl Into<Conn<'_>>, email: &str) -> Result<Option<User>> {
    let sql = format!("SELECT {} FROM users WHERE email_key = ?", User::COLUMNS);
    conn.into().first(&sql, args![Email::key_of(email)]).await
}

/// The user, locked until the transaction ends.
pub async fn lock_by_email(tx: &mut Tx, email: &str) -> Result<Option<User>> {
    let sql = format!("SELECT {} FROM users WHERE email_key = ?{}", User::COLUMNS, tx.dialect().for_update());
    tx.first(&sql, args![Email::key_of(email)]).await
}

pub async fn find_by_idp(conn: impl Into<Conn<'_>>, idp_id: &str) -> Result<Option<User>> {
    conn.into().first(&format!("SELECT {} FROM users WHERE idp_id = ?", User::COLUMNS), args![idp_id]).await
}

/// Writes back everything that may change. A change of the department counts from `at` on.
pub async fn update(tx: &mut Tx, user: &User, at: Timestamp) -> Result<()> {
    user_department::record(tx, &user.id, &user.department, at).await?;
    let sql = "UPDATE users SET name = ?, department = ?, status = ?, quota_daily = ?, password_hash = ?, idp_id = ?, \
        tokens_from = ?, revoked_at = ? WHERE id = ?";
    let args = args![
        &user.name,
        &user.department,
        user.status,
        user.quota_daily,
        user.password_hash.as_deref(),
        user.idp_id.as_deref(),
        user.tokens_from,
        user.revoked_at,
        &user.id
    ];
    tx.run(sql, args).await.map(drop)
}

/// Replaces a stored password hash, unless it was changed in the meantime.
pub async fn upgrade_password(db: &Db, id: &UserId, old: &str, new: &str) -> Result<()> {
    let sql = "UPDATE users SET password_hash = ? WHERE id = ? AND password_hash = ?";
    db.run(sql, args![new, id, old]).await.map(drop)
}

#[derive(Default)]
pub struct UserFilter<'a> {
    pub q: Option<&'a str>,
    pub status: Option<Status>,
    pub department: Option<&'a str>,
}

/// The columns a list may be sorted by.
pub const SORTABLE: &[&str] = &["email", "name", "department", "status", "quota_daily", "created_at"];

pub async fn list(db: &Db, filter: UserFilter<'_>, sort: Sort, page: Page) -> Result<Listing<User>> {
    let conditions = Conditions::of(db.dialect())
        .when("status = ?", filter.status)
        .when("department = ?", filter.department)
        .search(&["email", "name", "department"], filter.q);
    conditions.list(db, User::COLUMNS, "users", sort, "id", page).await
}

record! {
    /// The part of an account that every request's token is checked against.
    #[derive(Clone, Debug)]
    pub struct Session {
        pub id: UserId,
        pub email: String,
        pub name: String,
        pub status: Status,
        pub tokens_from: i64,
        /// 1 if this token was ended by a logout.
        pub ended: i64,
    }
}

pub async fn session(db: &Db, id: &str, jti: &str) -> Result<Option<Session>> {
    let sql = "SELECT id, email, name, status, tokens_from, (SELECT COUNT(*) FROM ended_token WHERE jti = ?) AS ended \
        FROM users WHERE id = ?";
    db.first(sql, args![jti, id]).await
}

record! {
    /// How statistics show a user.
    #[derive(Clone, Debug)]
    pub struct Label {
        pub id: UserId,
        pub email: String,
        pub status: Status,
    }
}

impl Label {
    /// The user has left.
    pub fn is_former(&self) -> bool {
        self.status == Status::Revoked
    }
}

/// The labels of all users.
pub async fn labels(db: &Db) -> Result<Vec<Label>> {
    db.all("SELECT id, email, status FROM users", args![]).await
}

/// The labels of these users, at most as many as a statement takes values.
pub async fn labels_of(db: &Db, ids: &[UserId]) -> Result<Vec<Label>> {
    if ids.is_empty() {
        return Ok(vec![]);
    }
    let marks = vec!["?"; ids.len()].join(", ");
    let sql = format!("SELECT id, email, status FROM users WHERE id IN ({marks})");
    db.all(&sql, ids.iter().map(Value::from).collect()).await
}

/// How many active users a department has.
pub async fn count_in(db: &Db, department: &str) -> Result<i64> {
    let sql = "SELECT COUNT(*) AS n FROM users WHERE department = ? AND status = 'active'";
    let number: crate::db::Number = Conn::from(db).one(sql, args![department]).await?;
    Ok(number.n)
}
