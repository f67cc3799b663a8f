//! Items of the marketplace and their files.

use base::id::{ItemId, ProfessionId};
use base::{FilePath, Listing, Page, Sort};
use jiff::Timestamp;

use crate::conditions::Conditions;
use crate::db::Record as _;
use crate::{Conn, Db, Result, Tx, args, record, word};

word! {
    /// The kind of an item (`type` in the API).
    pub enum Kind {
        Skill = "skill",
        RolePack = "role_pack",
        Config = "config",
    }
}

word! {
    /// The folder of an instance that a file goes to.
    pub enum Scope {
        Config = "config",
        Workspace = "workspace",
    }
}

record! {
    #[derive(Clone, Debug)]
    pub struct Item {
        pub id: ItemId,
        pub kind: Kind,
        pub name: String,
        pub description: String,
        pub icon: String,
        pub version: String,
        pub revision: i64,
        pub file_count: i64,
        pub size: i64,
        pub finding_count: i64,
        pub install_count: i64,
        pub is_active: bool,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
    }
}

/// Fails with `Taken` when the id is in use, by a deleted item too.
pub async fn insert(tx: &mut Tx, item: &Item) -> Result<()> {
    let sql = "INSERT INTO marketplace_item (id, kind, name, description, icon, version, revision, file_count, size, \
        finding_count, is_active, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let args = args![
        &item.id,
        item.kind,
        &item.name,
        &item.description,
        &item.icon,
        &item.version,
        item.revision,
        item.file_count,
        item.size,
        item.finding_count,
        item.is_active,
        item.created_at,
        item.updated_at
    ];
    tx.run(sql, args).await.map(drop)
}

pub async fn find(conn: impl Into<Conn<'_>>, id: &ItemId) -> Result<Option<Item>> {
    let sql = format!("SELECT {} FROM marketplace_item WHERE id = ? AND deleted_at IS NULL", Item::COLUMNS);
    conn.into().first(&sql, args![id.as_str()]).await
}

/// The item, even if it is deleted: some instances may still have it.
pub async fn find_even_deleted(conn: impl Into<Conn<'_>>, id: &ItemId) -> Result<Option<Item>> {
    let sql = format!("SELECT {} FROM marketplace_item WHERE id = ?", Item::COLUMNS);
    conn.into().first(&sql, args![id.as_str()]).await
}

/// The item, locked until the transaction ends.
pub async fn lock(tx: &mut Tx, id: &ItemId) -> Result<Option<Item>> {
    let lock = tx.dialect().for_update();
    let sql = format!("SELECT {} FROM marketplace_item WHERE id = ? AND deleted_at IS NULL{lock}", Item::COLUMNS);
    tx.first(&sql, args![id.as_str()]).await
}

/// Writes back everything that may change.
pub async fn update(tx: &mut Tx, item: &Item) -> Result<()> {
    let sql = "UPDATE marketplace_item SET name = ?, description = ?, icon = ?, version = ?, revision = ?, file_count = ?, \
        size = ?, finding_count = ?, is_active = ?, updated_at = ? WHERE id = ?";
    let args = args![
        &item.name,
        &item.description,
        &item.icon,
        &item.version,
        item.revision,
        item.file_count,
        item.size,
        item.finding_count,
        item.is_active,
        item.updated_at,
        &item.id
    ];
    tx.run(sql, args).await.map(drop)
}

pub async fn delete(tx: &mut Tx, id: &ItemId, at: Timestamp) -> Result<()> {
    let sql = "UPDATE marketplace_item SET deleted_at = ?, updated_at = ? WHERE id = ?";
    tx.run(sql, args![at, at, id.as_str()]).await.map(drop)
}

/// Counts one more installation.
pub async fn count_install(tx: &mut Tx, id: &ItemId) -> Result<()> {
    let sql = "UPDATE marketplace_item SET install_count = install_count + 1 WHERE id = ?";
    tx.run(sql, args![id.as_str()]).await.map(drop)
}

record! {
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct File {
        pub scope: Scope,
        pub path: String,
        pub content: String,
        pub size: i64,
        /// A JSON array.
        pub findings: String,
    }
}

pub struct NewFile<'a> {
    pub scope: Scope,
    pub path: &'a FilePath,
    pub content: &'a str,
    pub findings: &'a str,
}

/// An item's files with their whole content.
pub async fn files(conn: impl Into<Conn<'_>>, id: &ItemId) -> Result<Vec<File>> {
    let sql = format!("SELECT {} FROM marketplace_file WHERE item_id = ? ORDER BY scope, path", File::COLUMNS);
    conn.into().all(&sql, args![id.as_str()]).await
}

/// An item's files with the first `chars` characters of each.
pub async fn previews(conn: impl Into<Conn<'_>>, id: &ItemId, chars: i64) -> Result<Vec<File>> {
    let sql = "SELECT scope, path, SUBSTR(content, 1, CAST(? AS INTEGER)) AS content, size, findings FROM marketplace_file \
        WHERE item_id = ? ORDER BY scope, path";
    conn.into().all(sql, args![chars, id.as_str()]).await
}

/// Replaces all files of an item.
pub async fn replace_files(tx: &mut Tx, id: &ItemId, files: &[NewFile<'_>]) -> Result<()> {
    tx.run("DELETE FROM marketplace_file WHERE item_id = ?", args![id.as_str()]).await?;
    let sql = "INSERT INTO marketplace_file (item_id, scope, path, content, size, findings) VALUES (?, ?, ?, ?, ?, ?)";
    for file in files {
        let size = file.content.len() as i64;
        let args = args![id.as_str(), file.scope, file.path.as_str(), file.content, size, file.findings];
        tx.run(sql, args).await?;
    }
    Ok(())
}

#[derive(Clone, Debug, Default)]
pub struct ItemFilter<'a> {
    pub q: Option<&'a str>,
    pub kind: Option<Kind>,
    pub is_active: Option<bool>,
}

/// What a list may be sorted by: its columns, and `type`.
pub const SORTABLE: &[&str] = &["name", "type", "version", "install_count", "is_active", "created_at", "updated_at"];

pub async fn list(db: &Db, filter: ItemFilter<'_>, mut sort: Sort, page: Page) -> Result<Listing<Item>> {
    // `type` is a keyword in Rust, so the column is `kind`.
    if sort.column == "type" {
        sort.column = "kind";
    }
    let conditions = Conditions::of(db.dialect())
        .must("deleted_at IS NULL")
        .when("kind = ?", filter.kind)
        .when("is_active = ?", filter.is_active)
        .search(&["name", "description"], filter.q);
    conditions.list(db, Item::COLUMNS, "marketplace_item", sort, "id", page).await
}

record! {
    #[derive(Clone, Debug)]
    pub struct Profession {
        pub id: ProfessionId,
        pub name: String,
    }
}

/// The professions that use this item as their role pack, inactive ones included.
pub async fn professions_of(conn: impl Into<Conn<'_>>, id: &ItemId) -> Result<Vec<Profession>> {
    let sql = "SELECT id, name FROM profession WHERE role_pack_id = ? ORDER BY sort_order, created_at, id";
    conn.into().all(sql, args![id.as_str()]).await
}
