//! Professions. The stock of their pool is counted when they are read.

use std::sync::LazyLock;

use base::id::{ItemId, ProfessionId, UserId};
use base::{Listing, Page, Sort};
use jiff::Timestamp;

use crate::conditions::Conditions;
use crate::db::{Number, Record as _};
use crate::ready::READY;
use crate::{Conn, Db, Result, Tx, args, record};

record! {
    #[derive(Clone, Debug)]
    pub struct Profession {
        pub id: ProfessionId,
        pub name: String,
        pub code: String,
        pub icon: String,
        pub tagline: String,
        pub description: String,
        pub role_pack_id: Option<ItemId>,
        pub sort_order: i64,
        pub is_official: bool,
        pub is_active: bool,
        pub created_at: Timestamp,
    }
}

/// Fails with `Taken` when the code is in use.
pub async fn insert(tx: &mut Tx, profession: &Profession) -> Result<()> {
    let sql = "INSERT INTO profession (id, name, code, code_key, icon, tagline, description, role_pack_id, sort_order, \
        is_official, is_active, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let args = args![
        &profession.id,
        &profession.name,
        &profession.code,
        profession.code.to_lowercase(),
        &profession.icon,
        &profession.tagline,
        &profession.description,
        profession.role_pack_id.as_deref(),
        profession.sort_order,
        profession.is_official,
        profession.is_active,
        profession.created_at
    ];
    tx.run(sql, args).await.map(drop)
}

pub async fn find(conn: impl Into<Conn<'_>>, id: &ProfessionId) -> Result<Option<Profession>> {
    let sql = format!("SELECT {} FROM profession WHERE id = ?", Profession::COLUMNS);
    conn.into().first(&sql, args![id.as_str()]).await
}

pub async fn lock(tx: &mut Tx, id: &ProfessionId) -> Result<Option<Profession>> {
    let sql = format!("SELECT {} FROM profession WHERE id = ?{}", Profession::COLUMNS, tx.dialect().for_update());
    tx.first(&sql, args![id.as_str()]).await
}

/// All of them, those that are not offered included.
pub async fn all(db: &Db) -> Result<Vec<Profession>> {
    db.all(&format!("SELECT {} FROM profession ORDER BY sort_order, created_at, id", Profession::COLUMNS), args![])
        .await
}

/// Writes back everything that may change; the code may not.
pub async fn update(tx: &mut Tx, profession: &Profession) -> Result<()> {
    let sql = "UPDATE profession SET name = ?, icon = ?, tagline = ?, description = ?, role_pack_id = ?, sort_order = ?, \
        is_official = ?, is_active = ? WHERE id = ?";
    let args = args![
        &profession.name,
        &profession.icon,
        &profession.tagline,
        &profession.description,
        profession.role_pack_id.as_deref(),
        profession.sort_order,
        profession.is_official,
        profession.is_active,
        &profession.id
    ];
    tx.run(sql, args).await.map(drop)
}

/// A profession and the stock of its pool.
#[derive(Clone, Debug)]
pub struct Stocked {
    pub profession: Profession,
    /// Idle entries whose instance may be offered.
    pub idle: i64,
    /// Those of `idle` that a claim can get now.
    pub ready: i64,
    pub allocated: i64,
    pub total: i64,
    /// The user who asks has an entry of its pool.
    pub claimed: bool,
}

impl crate::db::Record for Stocked {
    const COLUMNS: &'static str = "p.*";
    fn from_row(row: &crate::db::Row) -> Result<Stocked> {
        Ok(Stocked {
            profession: Profession::from_row(row)?,
            idle: row.get("stock_idle")?,
            ready: row.get("stock_ready")?,
            allocated: row.get("stock_allocated")?,
            total: row.get("stock_total")?,
            claimed: row.get("claimed")?,
        })
    }
}

static STOCKED: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT p.*, \
         (SELECT COUNT(*) FROM pool_entry e JOIN instance i ON i.id = e.instance_id WHERE e.profession_id = p.id \
             AND e.deleted_at IS NULL AND e.status = 'idle' AND i.isolation IN ('none', 'own')) AS stock_idle, \
         (SELECT COUNT(*) FROM pool_entry e JOIN instance i ON i.id = e.instance_id WHERE e.profession_id = p.id \
             AND e.deleted_at IS NULL AND e.status = 'idle' AND {}) AS stock_ready, \
         (SELECT COUNT(*) FROM pool_entry e WHERE e.profession_id = p.id AND e.deleted_at IS NULL \
             AND e.status = 'allocated') AS stock_allocated, \
         (SELECT COUNT(*) FROM pool_entry e WHERE e.profession_id = p.id AND e.deleted_at IS NULL) AS stock_total, \
         (SELECT COUNT(*) FROM pool_entry e WHERE e.profession_id = p.id AND e.deleted_at IS NULL \
             AND e.allocated_user_id = ?) AS claimed \
         FROM profession p",
        *READY
    )
});

/// The columns a list may be sorted by.
pub const SORTABLE: &[&str] = &["sort_order", "name", "code", "created_at"];

/// Smaller sort_order first, then the older, unless sorted otherwise.
pub async fn list(
    db: &Db,
    q: Option<&str>,
    is_active: Option<bool>,
    asking: Option<&UserId>,
    sort: Option<Sort>,
    page: Page,
) -> Result<Listing<Stocked>> {
    let conditions =
        Conditions::of(db.dialect()).when("p.is_active = ?", is_active).search(&["p.name", "p.code", "p.tagline"], q);
    let (clause, values) = conditions.clause();
    let order = match sort {
        Some(sort) => format!("p.{} {}", sort.column, sort.direction()),
        None => "p.sort_order".into(),
    };
    let sql = format!("{}{clause} ORDER BY {order}, p.created_at, p.id LIMIT ? OFFSET ?", *STOCKED);
    let mut args = args![asking.map_or("", UserId::as_str)];
    args.extend(values);
    args.extend(args![page.limit, page.offset]);
    let list = db.all(&sql, args).await?;
    let (sql, args) = conditions.count("profession p");
    let total: Number = Conn::from(db).one(&sql, args).await?;
    Ok(Listing { list, total: total.n })
}

pub async fn show(conn: impl Into<Conn<'_>>, id: &ProfessionId) -> Result<Option<Stocked>> {
    conn.into().first(&format!("{} WHERE p.id = ?", *STOCKED), args!["", id.as_str()]).await
}
