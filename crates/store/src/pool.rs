//! The profession pool: instances that are prepared for a profession and that employees claim.

use base::id::{EntryId, InstanceId, ProfessionId, ServerId, UserId};
use base::{Email, Listing, Page, Sort};
use jiff::Timestamp;

use crate::conditions::Conditions;
use crate::db::{Number, Record as _, Value};
use crate::ready::{HEALTHIEST_FIRST, READY};
use crate::{Conn, Db, Result, Tx, args, record, word};

word! {
    pub enum Status {
        Idle = "idle",
        Allocated = "allocated",
        Maintenance = "maintenance",
    }
}

record! {
    #[derive(Clone, Debug)]
    pub struct Entry {
        pub id: EntryId,
        pub profession_id: ProfessionId,
        pub instance_id: InstanceId,
        pub server_id: ServerId,
        pub status: Status,
        pub allocated_user_id: Option<UserId>,
        pub allocated_at: Option<Timestamp>,
        pub created_at: Timestamp,
    }
}

/// Fails with `Taken` when the instance is pooled already.
pub async fn insert(tx: &mut Tx, entry: &Entry) -> Result<()> {
    let sql = "INSERT INTO pool_entry (id, profession_id, instance_id, server_id, status, created_at) VALUES (?, ?, ?, ?, ?, ?)";
    let args =
        args![&entry.id, &entry.profession_id, &entry.instance_id, &entry.server_id, entry.status, entry.created_at];
    tx.run(sql, args).await.map(drop)
}

pub async fn find(conn: impl Into<Conn<'_>>, id: &EntryId) -> Result<Option<Entry>> {
    let sql = format!("SELECT {} FROM pool_entry WHERE id = ? AND deleted_at IS NULL", Entry::COLUMNS);
    conn.into().first(&sql, args![id.as_str()]).await
}

/// The entry, locked until the transaction ends.
pub async fn lock(tx: &mut Tx, id: &EntryId) -> Result<Option<Entry>> {
    let lock = tx.dialect().for_update();
    let sql = format!("SELECT {} FROM pool_entry WHERE id = ? AND deleted_at IS NULL{lock}", Entry::COLUMNS);
    tx.first(&sql, args![id.as_str()]).await
}

pub async fn of_instance(conn: impl Into<Conn<'_>>, instance: &InstanceId) -> Result<Option<Entry>> {
    let sql = format!("SELECT {} FROM pool_entry WHERE instance_id = ? AND deleted_at IS NULL", Entry::COLUMNS);
    conn.into().first(&sql, args![instance.as_str()]).await
}

/// The idle entry with the healthiest instance that is ready, locked until the transaction ends. Entries in `but` are
/// passed over.
pub async fn lock_idle(tx: &mut Tx, profession: &ProfessionId, but: &[EntryId]) -> Result<Option<Entry>> {
    let lock = tx.dialect().skip_locked_of("e");
    let others = match but.len() {
        0 => String::new(),
        count => format!("AND e.id NOT IN ({}) ", vec!["?"; count].join(", ")),
    };
    let args = || {
        let mut args = args![profession.as_str()];
        args.extend(but.iter().map(Value::from));
        args
    };
    let sql = format!(
        "SELECT e.* FROM pool_entry e JOIN instance i ON i.id = e.instance_id \
         WHERE e.profession_id = ? AND e.status = 'idle' AND e.deleted_at IS NULL {others}AND {} \
         ORDER BY {HEALTHIEST_FIRST}, e.created_at, e.id LIMIT 1{lock}",
        *READY
    );
    let mut entry = tx.first(&sql, args()).await?;
    for wait in tx.dialect().second_looks() {
        if entry.is_none() {
            tokio::time::sleep(std::time::Duration::from_millis(*wait)).await;
            entry = tx.first(&sql, args()).await?;
        }
    }
    Ok(entry)
}

pub async fn held_by(tx: &mut Tx, profession: &ProfessionId, user: &UserId) -> Result<bool> {
    let sql =
        "SELECT COUNT(*) AS n FROM pool_entry WHERE profession_id = ? AND allocated_user_id = ? AND deleted_at IS NULL";
    let number: Number = Conn::from(tx).one(sql, args![profession.as_str(), user.as_str()]).await?;
    Ok(number.n > 0)
}

/// Writes back the status and the holder.
pub async fn update(tx: &mut Tx, entry: &Entry) -> Result<()> {
    let sql = "UPDATE pool_entry SET status = ?, allocated_user_id = ?, allocated_at = ? WHERE id = ?";
    let args = args![entry.status, entry.allocated_user_id.as_deref(), entry.allocated_at, &entry.id];
    tx.run(sql, args).await.map(drop)
}

pub async fn delete(tx: &mut Tx, id: &EntryId, at: Timestamp) -> Result<()> {
    tx.run("UPDATE pool_entry SET deleted_at = ? WHERE id = ?", args![at, id.as_str()]).await.map(drop)
}

/// An entry with the names of what it refers to.
#[derive(Clone, Debug)]
pub struct Listed {
    pub entry: Entry,
    pub profession_name: String,
    pub profession_icon: String,
    pub allocated_email: Option<String>,
    pub allocated_name: Option<String>,
}

impl crate::db::Record for Listed {
    const COLUMNS: &'static str = "e.*, p.name AS profession_name, p.icon AS profession_icon, \
        u.email AS allocated_email, u.name AS allocated_name";
    fn from_row(row: &crate::db::Row) -> Result<Listed> {
        Ok(Listed {
            entry: Entry::from_row(row)?,
            profession_name: row.get("profession_name")?,
            profession_icon: row.get("profession_icon")?,
            allocated_email: row.get("allocated_email")?,
            allocated_name: row.get("allocated_name")?,
        })
    }
}

const FROM: &str =
    "pool_entry e JOIN profession p ON p.id = e.profession_id LEFT JOIN users u ON u.id = e.allocated_user_id";

#[derive(Clone, Debug, Default)]
pub struct PoolFilter<'a> {
    pub q: Option<&'a str>,
    pub status: Option<Status>,
    pub profession_id: Option<&'a str>,
    pub user_email: Option<&'a str>,
    pub allocated_from: Option<Timestamp>,
    pub allocated_until: Option<Timestamp>,
}

/// The columns a list may be sorted by.
pub const SORTABLE: &[&str] = &["created_at", "allocated_at", "status", "instance_id"];

pub async fn list(db: &Db, filter: PoolFilter<'_>, sort: Sort, page: Page) -> Result<Listing<Listed>> {
    let conditions = Conditions::of(db.dialect())
        .must("e.deleted_at IS NULL")
        .when("e.status = ?", filter.status)
        .when("e.profession_id = ?", filter.profession_id)
        .when("u.email_key = ?", filter.user_email.map(Email::key_of))
        .when("e.allocated_at >= ?", filter.allocated_from)
        .when("e.allocated_at < ?", filter.allocated_until)
        .search(&["e.instance_id", "p.name", "COALESCE(u.email, '')"], filter.q);
    conditions.list(db, Listed::COLUMNS, FROM, sort, "e.id", page).await
}

pub async fn show(conn: impl Into<Conn<'_>>, id: &EntryId) -> Result<Option<Listed>> {
    let sql = format!("SELECT {} FROM {FROM} WHERE e.id = ? AND e.deleted_at IS NULL", Listed::COLUMNS);
    conn.into().first(&sql, args![id.as_str()]).await
}
