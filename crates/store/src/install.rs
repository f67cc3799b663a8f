//! Which marketplace item is on which instance, and the state of its installation.

use base::id::{InstallId, InstanceId, ItemId, TaskId, UserId};
use base::{Listing, Page};
use jiff::Timestamp;

use crate::conditions::Conditions;
use crate::db::{Number, Record, Row};
use crate::{Conn, Db, Result, Tx, args, record, task, word};

word! {
    pub enum State {
        Pending = "pending",
        Installing = "installing",
        Installed = "installed",
        Failed = "failed",
        Removing = "removing",
    }
}

record! {
    #[derive(Clone, Debug)]
    pub struct Install {
        pub id: InstallId,
        pub item_id: ItemId,
        pub item_version: String,
        pub item_revision: i64,
        pub instance_id: InstanceId,
        pub user_id: UserId,
        pub task_id: TaskId,
        pub state: State,
        pub error: String,
        /// A JSON array.
        pub files: String,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
        /// When writing its files to the instance was first begun.
        pub touched_at: Option<Timestamp>,
        pub installed_at: Option<Timestamp>,
        pub removed_at: Option<Timestamp>,
    }
}

/// Fails with `Taken` if the item is on the instance already.
pub async fn insert(tx: &mut Tx, install: &Install) -> Result<()> {
    let sql = "INSERT INTO install (id, item_id, item_version, item_revision, instance_id, user_id, task_id, state, \
        files, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let args = args![
        &install.id,
        &install.item_id,
        &install.item_version,
        install.item_revision,
        &install.instance_id,
        &install.user_id,
        &install.task_id,
        install.state,
        &install.files,
        install.created_at,
        install.updated_at
    ];
    tx.run(sql, args).await.map(drop)
}

/// The record, locked until the transaction ends.
pub async fn lock(tx: &mut Tx, id: &InstallId) -> Result<Option<Install>> {
    let sql = format!("SELECT {} FROM install WHERE id = ?{}", Install::COLUMNS, tx.dialect().for_update());
    tx.first(&sql, args![id.as_str()]).await
}

/// The live record of an item on an instance, locked until the transaction ends.
pub async fn lock_live(tx: &mut Tx, item: &ItemId, instance: &InstanceId) -> Result<Option<Install>> {
    let sql = format!(
        "SELECT {} FROM install WHERE item_id = ? AND instance_id = ? AND removed_at IS NULL{}",
        Install::COLUMNS,
        tx.dialect().for_update()
    );
    tx.first(&sql, args![item.as_str(), instance.as_str()]).await
}

/// All live records of an instance, with the names of their items.
pub async fn live_on(tx: &mut Tx, instance: &InstanceId) -> Result<Vec<Named>> {
    let sql = "SELECT n.item_id AS item_id, m.name AS item_name, n.files AS files FROM install n \
        JOIN marketplace_item m ON m.id = n.item_id WHERE n.instance_id = ? AND n.removed_at IS NULL ORDER BY n.id";
    tx.all(sql, args![instance.as_str()]).await
}

record! {
    #[derive(Clone, Debug)]
    pub struct Named {
        pub item_id: ItemId,
        pub item_name: String,
        pub files: String,
    }
}

pub async fn find(conn: impl Into<Conn<'_>>, id: &InstallId) -> Result<Option<Install>> {
    conn.into().first(&format!("SELECT {} FROM install WHERE id = ?", Install::COLUMNS), args![id.as_str()]).await
}

/// Writes back everything that may change.
pub async fn update(tx: &mut Tx, install: &Install) -> Result<()> {
    let sql = "UPDATE install SET item_version = ?, item_revision = ?, user_id = ?, task_id = ?, state = ?, error = ?, \
        files = ?, updated_at = ?, touched_at = ?, installed_at = ?, removed_at = ? WHERE id = ?";
    let args = args![
        &install.item_version,
        install.item_revision,
        &install.user_id,
        &install.task_id,
        install.state,
        &install.error,
        &install.files,
        install.updated_at,
        install.touched_at,
        install.installed_at,
        install.removed_at,
        &install.id
    ];
    tx.run(sql, args).await.map(drop)
}

/// Ends every live record of an instance whose files are gone.
pub async fn remove_all(tx: &mut Tx, instance: &InstanceId, at: Timestamp) -> Result<u64> {
    let sql = "UPDATE install SET removed_at = ?, updated_at = ? WHERE instance_id = ? AND removed_at IS NULL";
    tx.run(sql, args![at, at, instance.as_str()]).await
}

/// An install with the details of its item, instance and task that a list shows.
#[derive(Clone, Debug)]
pub struct Shown {
    pub install: Install,
    pub item_kind: crate::marketplace::Kind,
    pub item_name: String,
    pub item_icon: String,
    pub finding_count: i64,
    /// The version that an install would bring now; `None` if the item is no longer offered.
    pub offered: Option<(String, i64)>,
    pub instance_name: String,
    pub task_status: task::Status,
}

impl Record for Shown {
    const COLUMNS: &'static str = "n.*, m.kind AS item_kind, m.name AS item_name, m.icon AS item_icon, m.finding_count AS finding_count, \
        m.version AS offered_version, m.revision AS offered_revision, \
        CASE WHEN m.is_active = 1 AND m.deleted_at IS NULL THEN CAST(1 AS BIGINT) ELSE CAST(0 AS BIGINT) END AS is_offered, \
        i.name AS instance_name, COALESCE(t.status, 'done') AS task_status";
    fn from_row(row: &Row) -> Result<Shown> {
        let offered = match row.get::<bool>("is_offered")? {
            true => Some((row.get("offered_version")?, row.get("offered_revision")?)),
            false => None,
        };
        Ok(Shown {
            install: Install::from_row(row)?,
            item_kind: row.get("item_kind")?,
            item_name: row.get("item_name")?,
            item_icon: row.get("item_icon")?,
            finding_count: row.get("finding_count")?,
            offered,
            instance_name: row.get("instance_name")?,
            task_status: row.get("task_status")?,
        })
    }
}

const SHOWN: &str = "install n JOIN marketplace_item m ON m.id = n.item_id JOIN instance i ON i.id = n.instance_id \
    LEFT JOIN task t ON t.id = n.task_id JOIN binding b ON b.instance_id = n.instance_id AND b.ended_at IS NULL";

/// The installs on a user's instances, newest first.
pub async fn list(db: &Db, user: &UserId, instance: Option<&str>, page: Page) -> Result<Listing<Shown>> {
    let conditions = Conditions::of(db.dialect())
        .must("n.removed_at IS NULL")
        .when("b.user_id = ?", Some(user.as_str()))
        .when("n.instance_id = ?", instance);
    let sort = base::Sort { column: "created_at", descending: true };
    let (sql, args) = conditions.page(&format!("SELECT {} FROM {SHOWN}", Shown::COLUMNS), sort, "n.id", page);
    let list = db.all(&sql, args).await?;
    let (sql, args) = conditions.count(SHOWN);
    let total: Number = Conn::from(db).one(&sql, args).await?;
    Ok(Listing { list, total: total.n })
}
