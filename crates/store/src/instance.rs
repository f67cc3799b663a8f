//! Assistant instances.

use base::id::{InstanceId, ServerId, UserId};
use base::{GatewayPort, Listing, NonEmpty, Page, Secret, Sort};
use jiff::Timestamp;

use crate::conditions::{Conditions, order};
use crate::db::{Number, Record as _};
use crate::seal::{Place, Sealer};
use crate::{Conn, Db, Result, Tx, args, cell, record, word};

word! {
    pub enum Health {
        Healthy = "healthy",
        Unhealthy = "unhealthy",
        KeyInvalid = "key_invalid",
        Unknown = "unknown",
        RateLimited = "rate_limited",
    }
}

word! {
    /// How an instance is isolated from others on its server.
    pub enum Isolation {
        /// It is not on its server.
        None = "none",
        /// It was not checked yet.
        Unknown = "unknown",
        /// The platform created its Unix user and its home, for it alone.
        Own = "own",
        /// The platform did not create its Unix user or its home.
        Adopted = "adopted",
        /// It runs as root or as the login user, or shares its home.
        Shared = "shared",
        /// Its cell has an exception that lets it become root.
        Opened = "opened",
    }
}

word! {
    /// What starts an instance on its server.
    pub enum Runner {
        /// A unit of the system.
        Unit = "unit",
        /// A unit of its user's own systemd.
        UserUnit = "user_unit",
        /// A container, which Docker starts.
        Container = "container",
        /// Nothing: somebody started the process. It is only observed.
        Process = "process",
        /// It answers at an address of its own, and nothing is known of it on its server.
        Address = "address",
    }
}

impl Isolation {
    /// Whether employees may claim it and pools may contain it. Only a super administrator may assign the others.
    pub fn is_offered(self) -> bool {
        matches!(self, Isolation::None | Isolation::Own)
    }

    /// Whether it must leave its pool: a check found that it is not isolated.
    pub fn is_withdrawn(self) -> bool {
        matches!(self, Isolation::Adopted | Isolation::Shared | Isolation::Opened)
    }

    /// Whether it may be cleaned after its holder has left. The platform does not clean what it did not create. An
    /// instance that was not checked yet is checked by the cleaning task.
    pub fn may_be_cleaned(self) -> bool {
        !matches!(self, Isolation::Adopted | Isolation::Shared)
    }
}

record! {
    #[derive(Clone, Debug)]
    pub struct Instance {
        pub id: InstanceId,
        pub container_id: String,
        pub server_id: ServerId,
        pub assigned_user_id: Option<UserId>,
        pub pooled: bool,
        pub name: String,
        pub gateway_port: GatewayPort,
        pub gateway_url: String,
        /// Sealed: see `token`.
        pub gateway_token: String,
        pub model: String,
        pub health_status: Health,
        pub health_fail_count: i64,
        pub total_requests: i64,
        pub total_tokens: i64,
        pub last_health_at: Option<Timestamp>,
        pub notes: String,
        pub config_json: String,
        pub is_main: bool,
        /// `None` before it is on its server, and for the main instance, whose home is the login user's.
        pub home: Option<NonEmpty>,
        /// `None` if the unit has the name that we derive from the id.
        pub unit: Option<NonEmpty>,
        pub runner: Runner,
        pub isolation: Isolation,
        /// The Unix user as last observed; empty if never.
        pub runs_as: String,
        /// The OpenClaw release that it runs, if known.
        pub openclaw_version: Option<NonEmpty>,
        /// The hash of the configuration that we last wrote; empty if none.
        pub config_hash: String,
        pub traces_of: Option<UserId>,
        /// An adopted instance that keeps the model provider of its own: the platform gives it no key and no models, and its use
        /// is not counted.
        pub own_llm: bool,
        /// Whether its own page may be shown in the embedded window.
        pub embed_enabled: bool,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
    }
}

impl Instance {
    pub fn token(&self, sealer: &Sealer) -> Result<Secret> {
        sealer.open(token_place(&self.id), &self.gateway_token)
    }

    /// Whether it was ever installed on its server.
    pub fn is_on_server(&self) -> bool {
        self.is_main || self.home.is_some()
    }

    /// Whether the platform may write its configuration, and start and stop it.
    pub fn is_managed(&self) -> bool {
        let is_started = matches!(self.runner, Runner::Unit | Runner::UserUnit | Runner::Container);
        self.is_on_server() && is_started
    }

    /// Whether a new token reaches it. What was adopted as it is keeps the token that it has.
    pub fn takes_token(&self) -> bool {
        !self.is_there() || self.is_managed() && !self.is_as_it_was()
    }

    /// Whether it was adopted as it is: the platform never wrote its configuration.
    pub fn is_as_it_was(&self) -> bool {
        self.own_llm && self.config_hash.is_empty()
    }

    /// Whether it is on its server, or answers at an address of its own.
    pub fn is_there(&self) -> bool {
        self.is_on_server() || self.runner == Runner::Address
    }

    /// Whether the platform adopted what runs it: a super administrator named its unit, or declared it the login user's
    /// own, or it is somebody else's container.
    pub fn is_adopted(&self) -> bool {
        self.is_main || self.unit.is_some() || self.runner == Runner::Container
    }
}

pub fn token_place(id: &str) -> Place<'_> {
    Place { table: "instance", column: "gateway_token", id }
}

/// Fails with `Taken` when the id is in use, by a deleted instance too.
pub async fn insert(tx: &mut Tx, instance: &Instance) -> Result<()> {
    let sql = "INSERT INTO instance (id, id_key, container_id, server_id, name, gateway_port, gateway_url, gateway_token, \
        model, health_status, notes, config_json, is_main, home, unit, runner, isolation, created_at, updated_at) \
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let args = args![
        &instance.id,
        instance.id.key(),
        &instance.container_id,
        &instance.server_id,
        &instance.name,
        instance.gateway_port,
        &instance.gateway_url,
        &instance.gateway_token,
        &instance.model,
        instance.health_status,
        &instance.notes,
        &instance.config_json,
        instance.is_main,
        &instance.home,
        &instance.unit,
        instance.runner,
        instance.isolation,
        instance.created_at,
        instance.updated_at
    ];
    tx.run(sql, args).await.map(drop)
}

pub async fn find(conn: impl Into<Conn<'_>>, id: &InstanceId) -> Result<Option<Instance>> {
    let sql = format!("SELECT {} FROM instance WHERE id = ? AND deleted_at IS NULL", Instance::COLUMNS);
    conn.into().first(&sql, args![id.as_str()]).await
}

/// Also finds a deleted instance, for work that remains on its server.
pub async fn find_even_deleted(conn: impl Into<Conn<'_>>, id: &InstanceId) -> Result<Option<Instance>> {
    conn.into().first(&format!("SELECT {} FROM instance WHERE id = ?", Instance::COLUMNS), args![id.as_str()]).await
}

/// Every instance that is not deleted.
pub async fn all_live(db: &Db) -> Result<Vec<Instance>> {
    let sql = format!("SELECT {} FROM instance WHERE deleted_at IS NULL ORDER BY id", Instance::COLUMNS);
    db.all(&sql, args![]).await
}

/// The instance, locked until the transaction ends.
pub async fn lock(tx: &mut Tx, id: &InstanceId) -> Result<Option<Instance>> {
    let lock = tx.dialect().for_update();
    let sql = format!("SELECT {} FROM instance WHERE id = ? AND deleted_at IS NULL{lock}", Instance::COLUMNS);
    tx.first(&sql, args![id.as_str()]).await
}

/// The ports of a server's instances, except one of them.
pub async fn ports(tx: &mut Tx, server: &ServerId, but: Option<&InstanceId>) -> Result<Vec<GatewayPort>> {
    record! { struct Used { gateway_port: GatewayPort } }
    let sql = "SELECT gateway_port FROM instance WHERE server_id = ? AND deleted_at IS NULL AND id <> ?";
    let used: Vec<Used> = tx.all(sql, args![server, but.map_or("", InstanceId::as_str)]).await?;
    Ok(used.into_iter().map(|used| used.gateway_port).collect())
}

record! {
    /// Another instance of the same server: its home and its Unix user. One in a container has none of them there.
    #[derive(Clone, Debug)]
    pub struct Neighbour { pub id: InstanceId, pub home: Option<NonEmpty>, pub runs_as: String }
}

impl From<&Instance> for Neighbour {
    fn from(instance: &Instance) -> Neighbour {
        Neighbour { id: instance.id.clone(), home: instance.home.clone(), runs_as: instance.runs_as.clone() }
    }
}

/// Idle instances in pools that must not be offered.
pub async fn pooled_but_shared(db: &Db) -> Result<Vec<InstanceId>> {
    record! { struct Found { id: InstanceId } }
    let sql = "SELECT i.id FROM instance i JOIN pool_entry e ON e.instance_id = i.id AND e.deleted_at IS NULL \
        WHERE i.deleted_at IS NULL AND e.status = 'idle' AND i.isolation IN ('adopted', 'shared', 'opened') ORDER BY i.id";
    let found: Vec<Found> = db.all(sql, args![]).await?;
    Ok(found.into_iter().map(|found| found.id).collect())
}

/// The other instances of a server that are not deleted.
pub async fn neighbours(conn: impl Into<Conn<'_>>, server: &ServerId, but: &InstanceId) -> Result<Vec<Neighbour>> {
    let sql = "SELECT id, home, runs_as FROM instance WHERE server_id = ? AND deleted_at IS NULL AND id <> ? \
        AND container_id = ''";
    conn.into().all(sql, args![server.as_str(), but.as_str()]).await
}

record! {
    struct Home { home: String }
}

/// The homes on a server, also of deleted instances: their files may still be there.
pub async fn homes(tx: &mut Tx, server: &ServerId) -> Result<Vec<String>> {
    let homes: Vec<Home> = tx.all("SELECT home FROM instance WHERE server_id = ?", args![server.as_str()]).await?;
    Ok(homes.into_iter().map(|h| h.home).collect())
}

record! {
    /// An instance that has, or may still have, files in its home.
    #[derive(Clone, Debug)]
    pub struct Housed { pub id: InstanceId, pub home: String }
}

/// The instances of a server with a home of their own, including deleted ones that are not retired yet.
pub async fn housed(tx: &mut Tx, server: &ServerId) -> Result<Vec<Housed>> {
    let sql = "SELECT i.id, i.home FROM instance i WHERE i.server_id = ? AND i.home <> '' AND i.is_main = 0 AND i.container_id = '' AND (i.deleted_at IS NULL \
        OR EXISTS (SELECT 1 FROM task t WHERE t.instance_id = i.id AND t.type = 'retire_instance' AND t.status <> 'done')) ORDER BY i.id";
    tx.all(sql, args![server.as_str()]).await
}

pub async fn set_home(tx: &mut Tx, id: &InstanceId, home: &str) -> Result<()> {
    tx.run("UPDATE instance SET home = ? WHERE id = ?", args![home, id.as_str()]).await.map(drop)
}

/// Records where it is, what runs it there, and whose its model provider is.
pub async fn set_place(tx: &mut Tx, instance: &Instance) -> Result<()> {
    let sql =
        "UPDATE instance SET home = ?, unit = ?, runner = ?, container_id = ?, isolation = ?, own_llm = ? WHERE id = ?";
    let args = args![
        &instance.home,
        &instance.unit,
        instance.runner,
        &instance.container_id,
        instance.isolation,
        instance.own_llm,
        &instance.id
    ];
    tx.run(sql, args).await.map(drop)
}

/// Records its Unix user and its isolation.
pub async fn set_isolation(
    conn: impl Into<Conn<'_>>,
    id: &InstanceId,
    isolation: Isolation,
    runs_as: &str,
) -> Result<()> {
    let sql = "UPDATE instance SET isolation = ?, runs_as = ? WHERE id = ?";
    conn.into().run(sql, args![isolation, runs_as, id.as_str()]).await.map(drop)
}

/// Records what was adopted: its release, the hash of its configuration if that is to be ours, and as whom it runs.
pub async fn set_adopted(
    tx: &mut Tx,
    id: &InstanceId,
    version: &str,
    config_hash: &str,
    own_llm: bool,
    runs_as: &str,
) -> Result<()> {
    let sql = "UPDATE instance SET openclaw_version = ?, config_hash = ?, own_llm = ?, runs_as = ? WHERE id = ?";
    tx.run(sql, args![version, config_hash, own_llm, runs_as, id.as_str()]).await.map(drop)
}

pub async fn set_own_llm(db: &Db, id: &InstanceId, own_llm: bool) -> Result<()> {
    db.run("UPDATE instance SET own_llm = ? WHERE id = ?", args![own_llm, id.as_str()]).await.map(drop)
}

pub async fn set_version(db: &Db, id: &InstanceId, version: &str) -> Result<()> {
    db.run("UPDATE instance SET openclaw_version = ? WHERE id = ?", args![version, id.as_str()]).await.map(drop)
}

pub async fn set_config_hash(db: &Db, id: &InstanceId, hash: &str) -> Result<()> {
    db.run("UPDATE instance SET config_hash = ? WHERE id = ?", args![hash, id.as_str()]).await.map(drop)
}

/// Writes back the fields that administrators may change.
pub async fn update(tx: &mut Tx, instance: &Instance) -> Result<()> {
    let sql = "UPDATE instance SET name = ?, gateway_port = ?, gateway_url = ?, gateway_token = ?, model = ?, notes = ?, \
        config_json = ?, embed_enabled = ?, updated_at = ? WHERE id = ?";
    let args = args![
        &instance.name,
        instance.gateway_port,
        &instance.gateway_url,
        &instance.gateway_token,
        &instance.model,
        &instance.notes,
        &instance.config_json,
        instance.embed_enabled,
        instance.updated_at,
        &instance.id
    ];
    tx.run(sql, args).await.map(drop)
}

/// Sets the holder. The caller changes the binding in the same transaction.
pub async fn set_holder(tx: &mut Tx, id: &InstanceId, user: Option<&UserId>) -> Result<()> {
    let sql = "UPDATE instance SET assigned_user_id = ? WHERE id = ?";
    tx.run(sql, args![user.map(UserId::as_str), id.as_str()]).await.map(drop)
}

pub async fn set_pooled(tx: &mut Tx, id: &InstanceId, pooled: bool) -> Result<()> {
    tx.run("UPDATE instance SET pooled = ? WHERE id = ?", args![pooled, id.as_str()]).await.map(drop)
}

pub async fn set_traces(tx: &mut Tx, id: &InstanceId, of: Option<&UserId>) -> Result<()> {
    tx.run("UPDATE instance SET traces_of = ? WHERE id = ?", args![of.map(UserId::as_str), id.as_str()]).await.map(drop)
}

pub async fn set_token(tx: &mut Tx, id: &InstanceId, sealed: &str) -> Result<()> {
    tx.run("UPDATE instance SET gateway_token = ? WHERE id = ?", args![sealed, id.as_str()]).await.map(drop)
}

pub async fn set_health(
    conn: impl Into<Conn<'_>>,
    id: &InstanceId,
    status: Health,
    fail_count: i64,
    at: Timestamp,
) -> Result<()> {
    let sql = "UPDATE instance SET health_status = ?, health_fail_count = ?, last_health_at = ? WHERE id = ?";
    conn.into().run(sql, args![status, fail_count, at, id.as_str()]).await.map(drop)
}

pub async fn delete(tx: &mut Tx, id: &InstanceId, at: Timestamp) -> Result<()> {
    tx.run("UPDATE instance SET deleted_at = ? WHERE id = ?", args![at, id.as_str()]).await.map(drop)
}

/// An instance as lists show it, with the names of what it refers to.
#[derive(Clone, Debug)]
pub struct Listed {
    pub instance: Instance,
    pub server_name: String,
    pub assigned_email: Option<String>,
    /// `None` if it was not checked yet.
    pub cell: Option<cell::State>,
    pub home_bytes: Option<i64>,
    /// The end of its last hold, which may be over.
    pub held_until: Option<Timestamp>,
}

impl crate::db::Record for Listed {
    const COLUMNS: &'static str = "i.*, s.name AS server_name, u.email AS assigned_email, c.state AS cell_state, \
        c.home_bytes AS home_bytes, r.held_until AS held_until";
    fn from_row(row: &crate::db::Row) -> Result<Listed> {
        Ok(Listed {
            instance: Instance::from_row(row)?,
            server_name: row.get("server_name")?,
            assigned_email: row.get("assigned_email")?,
            cell: row.get("cell_state")?,
            home_bytes: row.get("home_bytes")?,
            held_until: row.get("held_until")?,
        })
    }
}

const LISTED_FROM: &str = "instance i JOIN server s ON s.id = i.server_id LEFT JOIN users u ON u.id = i.assigned_user_id \
     LEFT JOIN cell c ON c.instance_id = i.id LEFT JOIN reconcile r ON r.instance_id = i.id";

#[derive(Clone, Debug, Default)]
pub struct InstanceFilter<'a> {
    pub q: Option<&'a str>,
    pub server_id: Option<&'a str>,
    pub health_status: Option<Health>,
    pub assigned: Option<bool>,
    pub pooled: Option<bool>,
    /// Whether employees may claim it and pools may contain it.
    pub offered: Option<bool>,
}

/// The columns a list may be sorted by.
pub const SORTABLE: &[&str] = &[
    "id",
    "name",
    "server_id",
    "health_status",
    "model",
    "gateway_port",
    "total_tokens",
    "created_at",
    "last_health_at",
];

pub async fn list(db: &Db, filter: InstanceFilter<'_>, sort: Sort, page: Page) -> Result<Listing<Listed>> {
    let conditions = Conditions::of(db.dialect())
        .must("i.deleted_at IS NULL")
        .when("i.server_id = ?", filter.server_id)
        .when("i.health_status = ?", filter.health_status)
        .when("i.pooled = ?", filter.pooled);
    let conditions = match filter.assigned {
        Some(true) => conditions.must("i.assigned_user_id IS NOT NULL"),
        Some(false) => conditions.must("i.assigned_user_id IS NULL"),
        None => conditions,
    };
    let conditions = match filter.offered {
        Some(true) => conditions.must("i.isolation IN ('none', 'own')"),
        Some(false) => conditions.must("i.isolation NOT IN ('none', 'own')"),
        None => conditions,
    };
    let conditions = conditions.search(&["i.id", "i.name", "i.model", "s.name", "COALESCE(u.email, '')"], filter.q);
    // The joined tables matter only for a search in their columns. Otherwise the page is selected first and joined
    // afterwards, so that the database reads only the joined rows that it shows.
    let searched = filter.q.is_some();
    let (sql, args) = match searched {
        true => conditions.page(&format!("SELECT {} FROM {LISTED_FROM}", Listed::COLUMNS), sort, "i.id", page),
        false => {
            let (cut, args) = conditions.page("SELECT i.* FROM instance i", sort, "i.id", page);
            let from = LISTED_FROM.replacen("instance i", &format!("({cut}) i"), 1);
            (format!("SELECT {} FROM {from} ORDER BY {}", Listed::COLUMNS, order(sort, "i.id")), args)
        }
    };
    let list = db.all(&sql, args).await?;
    let (sql, args) = conditions.count(if searched { LISTED_FROM } else { "instance i" });
    let total: Number = Conn::from(db).one(&sql, args).await?;
    Ok(Listing { list, total: total.n })
}

pub async fn show(db: &Db, id: &InstanceId) -> Result<Option<Listed>> {
    let sql = format!("SELECT {} FROM {LISTED_FROM} WHERE i.id = ? AND i.deleted_at IS NULL", Listed::COLUMNS);
    db.first(&sql, args![id.as_str()]).await
}

record! {
    /// The id and name of an instance, which may be deleted.
    #[derive(Clone, Debug)]
    pub struct Named { pub id: InstanceId, pub name: String }
}

/// The names of the instances with these token names, deleted ones included.
pub async fn names(db: &Db, ids: &[String]) -> Result<Vec<Named>> {
    if ids.is_empty() {
        return Ok(vec![]);
    }
    let marks = vec!["?"; ids.len()].join(", ");
    db.all(&format!("SELECT id, name FROM instance WHERE id IN ({marks})"), ids.iter().map(Into::into).collect()).await
}

/// Instances whose id or name contains a text, or (`exactly`) equals it; deleted ones included.
pub async fn like(db: &Db, text: &str, exactly: bool) -> Result<Vec<Named>> {
    if exactly {
        let sql = "SELECT id, name FROM instance WHERE id_key = ? OR name = ?";
        return db.all(sql, args![text.to_lowercase(), text]).await;
    }
    let (contains, pattern) = (db.dialect().contains(), db.dialect().containing(text));
    let sql = format!("SELECT id, name FROM instance WHERE id {contains} OR name {contains}");
    db.all(&sql, args![&pattern, &pattern]).await
}
