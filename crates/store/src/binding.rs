//! Bindings: which user has which instance, now and in the past.

use base::id::{BindingId, InstanceId, ProfessionId, TaskId, UserId};
use jiff::Timestamp;

use crate::db::{Number, Record, Row, Value};
use crate::instance::Instance;
use crate::pool::{self, Entry};
use crate::usage::{Span, second_of};
use crate::user::{self, User};
use crate::{Conn, Db, Error, Result, Tx, args, instance, record, task, word};

word! {
    /// How a binding came about.
    pub enum Origin {
        Assigned = "assigned",
        Claimed = "claimed",
        Profession = "profession",
    }
}

record! {
    #[derive(Clone, Debug)]
    pub struct Binding {
        pub id: BindingId,
        pub user_id: UserId,
        pub instance_id: InstanceId,
        pub origin: Origin,
        pub profession_id: Option<ProfessionId>,
        pub created_at: Timestamp,
        pub ended_at: Option<Timestamp>,
    }
}

/// A user whose row this transaction holds. Only `lock_holder` and `lock_with_holder` make one, so nobody gives or takes an instance
/// beside a change of the user's account: the flags of the instance's key follow both.
#[derive(Debug)]
pub struct Holder(User);

impl std::ops::Deref for Holder {
    type Target = User;
    fn deref(&self) -> &User {
        &self.0
    }
}

impl Holder {
    pub fn id(&self) -> UserId {
        self.0.id.clone()
    }
}

/// The user, locked until the transaction ends.
pub async fn lock_holder(tx: &mut Tx, id: &UserId) -> Result<Option<Holder>> {
    Ok(user::lock(tx, id).await?.map(Holder))
}

/// An instance, its holder and its pool entry, all locked until the transaction ends.
#[derive(Debug)]
pub struct LockedInstance {
    pub holder: Option<Holder>,
    pub entry: Option<Entry>,
    pub instance: Instance,
}

/// How many attempts to lock an instance are made while its holder keeps changing.
const MOST_CHANGES: usize = 5;

/// Locks an instance together with its holder and its pool entry, in the order that all code uses: user, entry,
/// instance. The holder is certain only once the instance's row is locked, so it is read before and compared
/// afterwards. Fails with `Taken` if it changed on every attempt.
pub async fn lock_with_holder(tx: &mut Tx, id: &InstanceId) -> Result<Option<LockedInstance>> {
    for _ in 0..MOST_CHANGES {
        tx.run("SAVEPOINT hands", args![]).await?;
        let Some(seen) = instance::find(&mut *tx, id).await? else { return Ok(None) };
        let holder = match &seen.assigned_user_id {
            Some(user) => lock_holder(tx, user).await?,
            None => None,
        };
        let entry = match pool::of_instance(&mut *tx, id).await? {
            Some(entry) => pool::lock(tx, &entry.id).await?,
            None => None,
        };
        let Some(instance) = instance::lock(tx, id).await? else { return Ok(None) };
        if instance.assigned_user_id == seen.assigned_user_id && instance.pooled == entry.is_some() {
            return Ok(Some(LockedInstance { holder, entry, instance }));
        }
        // Release the locks first: locking the new user while the instance is locked could deadlock.
        tx.run("ROLLBACK TO SAVEPOINT hands", args![]).await?;
    }
    Err(Error::Taken)
}

/// Fails with `Taken` when the instance is bound already.
pub async fn insert(
    tx: &mut Tx,
    user: &UserId,
    instance: &InstanceId,
    origin: Origin,
    profession: Option<&ProfessionId>,
    at: Timestamp,
) -> Result<()> {
    let sql =
        "INSERT INTO binding (id, user_id, instance_id, origin, profession_id, created_at) VALUES (?, ?, ?, ?, ?, ?)";
    let id = base::id::fresh();
    let args = args![id, user.as_str(), instance.as_str(), origin, profession.map(ProfessionId::as_str), at];
    tx.run(sql, args).await.map(drop)
}

/// Changes when the live binding of an instance began, for sample data that covers some weeks.
pub async fn set_begin(tx: &mut Tx, instance: &InstanceId, at: Timestamp) -> Result<()> {
    let sql = "UPDATE binding SET created_at = ? WHERE instance_id = ? AND ended_at IS NULL";
    tx.run(sql, args![at, instance.as_str()]).await.map(drop)
}

/// Ends the live binding of an instance; it stays as history.
pub async fn end(tx: &mut Tx, instance: &InstanceId, at: Timestamp) -> Result<()> {
    let sql = "UPDATE binding SET ended_at = ?, profession_id = NULL WHERE instance_id = ? AND ended_at IS NULL";
    tx.run(sql, args![at, instance.as_str()]).await.map(drop)
}

pub async fn live(conn: impl Into<Conn<'_>>, instance: &InstanceId) -> Result<Option<Binding>> {
    let sql = format!("SELECT {} FROM binding WHERE instance_id = ? AND ended_at IS NULL", Binding::COLUMNS);
    conn.into().first(&sql, args![instance.as_str()]).await
}

/// The instance's bindings, newest first, at most 100.
pub async fn history(db: &Db, instance: &InstanceId) -> Result<Vec<Binding>> {
    let sql = format!(
        "SELECT {} FROM binding WHERE instance_id = ? ORDER BY created_at DESC, id DESC LIMIT 100",
        Binding::COLUMNS
    );
    db.all(&sql, args![instance.as_str()]).await
}

pub async fn count_of(conn: impl Into<Conn<'_>>, user: &UserId) -> Result<i64> {
    let sql = "SELECT COUNT(*) AS n FROM binding WHERE user_id = ? AND ended_at IS NULL";
    let number: Number = conn.into().one(sql, args![user.as_str()]).await?;
    Ok(number.n)
}

/// An instance as its holder sees it.
#[derive(Clone, Debug)]
pub struct Held {
    pub instance: Instance,
    pub origin: Origin,
    pub profession_id: Option<ProfessionId>,
    pub profession_name: Option<String>,
    /// The task that sets it up after its claim; `None` if it was assigned.
    pub setup: Option<Setup>,
}

/// The task that sets an instance up after its claim.
#[derive(Clone, Debug)]
pub struct Setup {
    pub task_id: TaskId,
    pub status: task::Status,
}

impl Record for Held {
    const COLUMNS: &'static str = "i.*, b.origin AS origin, b.profession_id AS profession_id, p.name AS profession_name, \
        t.id AS setup_task_id, t.status AS setup_status";
    fn from_row(row: &Row) -> Result<Held> {
        Ok(Held {
            instance: Instance::from_row(row)?,
            origin: row.get("origin")?,
            profession_id: row.get("profession_id")?,
            profession_name: row.get("profession_name")?,
            setup: match row.get::<Option<TaskId>>("setup_task_id")? {
                Some(task_id) => Some(Setup { task_id, status: row.get("setup_status")? }),
                None => None,
            },
        })
    }
}

const HELD_FROM: &str = "binding b JOIN instance i ON i.id = b.instance_id LEFT JOIN profession p ON p.id = b.profession_id \
    LEFT JOIN task t ON b.origin <> 'assigned' AND t.id = (SELECT MAX(x.id) FROM task x WHERE x.instance_id = b.instance_id \
        AND x.user_id = b.user_id AND x.type IN ('init_instance', 'bootstrap_profession_instance'))";

/// A user's instances, the first bound first.
pub async fn held(db: &Db, user: &UserId) -> Result<Vec<Held>> {
    let sql = format!(
        "SELECT {} FROM {HELD_FROM} \
         WHERE b.user_id = ? AND b.ended_at IS NULL AND i.deleted_at IS NULL ORDER BY b.created_at, b.id",
        Held::COLUMNS
    );
    db.all(&sql, args![user.as_str()]).await
}

/// One instance as its holder sees it; `None` if it has no holder.
pub async fn held_one(tx: &mut Tx, instance: &InstanceId) -> Result<Option<Held>> {
    let sql = format!("SELECT {} FROM {HELD_FROM} WHERE b.instance_id = ? AND b.ended_at IS NULL", Held::COLUMNS);
    tx.first(&sql, args![instance.as_str()]).await
}

/// The period of a binding, with the details that a list of users shows.
#[derive(Clone, Debug)]
pub struct HolderPeriod {
    pub user_id: UserId,
    pub instance_name: String,
    pub instance_model: String,
    /// The instance's usage of all time, of all its holders.
    pub total_tokens: i64,
    pub total_requests: i64,
    /// This is the instance's first binding, so usage from before it also counts for this user.
    pub is_first: bool,
    pub period: BindingPeriod,
}

impl Record for HolderPeriod {
    const COLUMNS: &'static str = "b.*";
    fn from_row(row: &Row) -> Result<HolderPeriod> {
        Ok(HolderPeriod {
            user_id: row.get("user_id")?,
            instance_name: row.get("instance_name")?,
            instance_model: row.get("instance_model")?,
            total_tokens: row.get("total_tokens")?,
            total_requests: row.get("total_requests")?,
            is_first: row.get("is_first")?,
            period: BindingPeriod::from_row(row)?,
        })
    }
}

impl HolderPeriod {
    /// The span of the request log that counts for the user.
    pub fn span(&self) -> Span {
        let span = self.period.span(Timestamp::UNIX_EPOCH);
        if self.is_first { Span { from: None, also: None, ..span } } else { span }
    }

    /// Whether all usage of the instance belongs to this user.
    pub fn is_whole(&self) -> bool {
        self.is_first && self.period.ended_at.is_none()
    }
}

/// The binding periods of these users (`None`: of all users), ended ones included, oldest first.
pub async fn holder_periods(db: &Db, users: Option<&[UserId]>) -> Result<Vec<HolderPeriod>> {
    let (among, args) = match users {
        Some([]) => return Ok(vec![]),
        Some(users) => {
            let marks = vec!["?"; users.len()].join(", ");
            (format!(" WHERE b.user_id IN ({marks})"), users.iter().map(Value::from).collect())
        }
        None => (String::new(), vec![]),
    };
    let sql = format!(
        "SELECT b.user_id AS user_id, i.name AS instance_name, i.model AS instance_model, i.total_tokens AS total_tokens, \
         i.total_requests AS total_requests, {STAY}, \
         CAST(CASE WHEN EXISTS (SELECT 1 FROM binding o WHERE o.instance_id = b.instance_id \
             AND (o.created_at < b.created_at OR (o.created_at = b.created_at AND o.id < b.id))) THEN 0 ELSE 1 END AS BIGINT) AS is_first \
         FROM binding b JOIN instance i ON i.id = b.instance_id{among} ORDER BY b.created_at, b.id"
    );
    db.all(&sql, args).await
}

record! {
    /// A live binding, and since when the instance's usage counts for its user in their own numbers: since the end of the
    /// last binding to another user, or (`None`) since the beginning. Everybody else's numbers follow `holder`.
    #[derive(Clone, Debug)]
    pub struct UsagePeriod {
        pub instance_id: InstanceId,
        pub instance_name: String,
        pub since: Option<Timestamp>,
        /// When the live binding began.
        pub began: Timestamp,
    }
}

impl UsagePeriod {
    /// The span of the request log that counts. Some gateways log whole seconds: a row of the second in which the
    /// binding began seems to be older than it. If two bindings began within one second, the row belongs to the later
    /// one.
    pub fn span(&self) -> Span {
        let second = second_of(self.began);
        Span { from: self.since, also: self.since.filter(|since| second < *since).map(|_| second), ..Span::default() }
    }
}

/// The usage periods of a user's live bindings, oldest first.
pub async fn usage_periods(db: &Db, user: &UserId) -> Result<Vec<UsagePeriod>> {
    let sql = "SELECT b.instance_id AS instance_id, i.name AS instance_name, \
         (SELECT MAX(o.ended_at) FROM binding o WHERE o.instance_id = b.instance_id AND o.user_id <> b.user_id) AS since, \
         b.created_at AS began FROM binding b JOIN instance i ON i.id = b.instance_id \
         WHERE b.ended_at IS NULL AND i.deleted_at IS NULL AND b.user_id = ? ORDER BY b.created_at, b.id";
    db.all(sql, args![user]).await
}

record! {
    /// The period of a binding, ended or not, in which requests counted for its user.
    #[derive(Clone, Debug)]
    pub struct BindingPeriod {
        pub instance_id: InstanceId,
        pub created_at: Timestamp,
        pub ended_at: Option<Timestamp>,
        /// Another binding of the instance began within the second in which this one ended.
        pub followed: bool,
    }
}

/// The columns of a `BindingPeriod`, from a binding `b`.
const STAY: &str = "b.instance_id AS instance_id, b.created_at AS created_at, b.ended_at AS ended_at, \
    CAST(CASE WHEN EXISTS (SELECT 1 FROM binding n WHERE n.instance_id = b.instance_id AND n.id <> b.id \
    AND n.created_at >= b.ended_at AND n.created_at / 1000 = b.ended_at / 1000) THEN 1 ELSE 0 END AS BIGINT) AS followed";

impl BindingPeriod {
    /// The part of the period from an instant on. Some gateways log whole seconds. Rows of the second in which the
    /// binding began belong to it; rows of the second in which it ended do too, unless another binding began in that
    /// second. So each row belongs to one binding.
    pub fn span(&self, from: Timestamp) -> Span {
        let began = second_of(self.created_at);
        Span {
            from: Some(self.created_at.max(from)),
            to: self.ended_at,
            also: (from <= began && began < self.created_at).then_some(began),
            except: self.ended_at.filter(|_| self.followed).map(second_of),
        }
    }
}

/// A user's binding periods that had not ended by `since`.
pub async fn lasting(conn: impl Into<Conn<'_>>, user: &UserId, since: Timestamp) -> Result<Vec<BindingPeriod>> {
    let sql = format!(
        "SELECT {STAY} FROM binding b WHERE b.user_id = ? AND (b.ended_at IS NULL OR b.ended_at > ?) \
         ORDER BY b.created_at, b.id"
    );
    conn.into().all(&sql, args![user.as_str(), since]).await
}
