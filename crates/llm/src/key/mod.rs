//! Sub keys of the LLM gateway: one per instance, created when it is first needed, and others with a name of their own.
//!
//! Our record is the desired state. A task makes a foreign gateway agree with it; the embedded gateway reads the record
//! itself.

mod apply;
mod embedded;
mod need;
mod turn;
mod unrevoked;

use base::id::{InstanceId, KeyId, UserId};
use base::secret::random_token;
use base::{Error, Kind, Listing, Page, Result, Secret, Sort};
use queue::audit::{self, Action, AuditEvent, By};
use queue::task::{self, Priority};
use store::binding::Holder;
pub use store::gateway_key::{GatewayKey, Status};
use store::notice::{Notice, Topic};
use store::{Tx, gateway_key, instance, usage, user};

use crate::App;
use crate::task::SyncKeyToInstance;
pub use apply::{ApplyKey, Counted, agree, apart, nearest, sync};
pub use embedded::Embedded;
pub use need::{of_instance, platform};
pub use store::gateway_key::{Observed, Unrevoked};
pub use unrevoked::{alert_unrevoked, unrevoked, unrevoked_of};

/// The name of the platform's own key at the gateway, and what lists show instead of an instance for its calls.
pub const PLATFORM: &str = "admin-token";
pub const PLATFORM_MARK: &str = "admin token";

/// A key with its usage.
pub struct Spent {
    pub key: GatewayKey,
    /// What is known of it at the gateway.
    pub observed: Observed,
    /// Quota units since local midnight, and since the first of the month.
    pub today: i64,
    pub month: i64,
}

/// A new key's value. Foreign gateways split keys at `-`, so ours has none.
fn fresh_value() -> Result<Secret> {
    let random = random_token()?.expose().replace(['-', '_'], "x");
    Ok(Secret::new(format!("sk-{random}")))
}

pub async fn list(app: &App, text: Option<&str>, sort: Sort, page: Page) -> Result<Listing<Spent>> {
    let listed = gateway_key::list(&app.db, text, sort, page).await?;
    let mut list = vec![];
    for key in listed.list {
        list.push(spent(app, key).await?);
    }
    Ok(Listing { list, total: listed.total })
}

pub async fn find(app: &App, id: &KeyId) -> Result<Spent> {
    let key = gateway_key::find(&app.db, id).await?.ok_or(Kind::NotFound)?;
    spent(app, key).await
}

async fn spent(app: &App, key: GatewayKey) -> Result<Spent> {
    let today = app.zone.date(app.clock.now());
    let days = usage::daily(&app.db, today.first_of_month(), Some(&key.name)).await?;
    let sum = |since: jiff::civil::Date| {
        let since = since.to_string();
        let mut sums = usage::Sums::default();
        days.iter().filter(|day| day.date >= since).for_each(|day| sums += day.sums);
        sums.quota()
    };
    let observed = gateway_key::observed(&app.db, &key.id).await?;
    Ok(Spent { today: sum(today), month: sum(today.first_of_month()), observed, key })
}

impl Spent {
    /// Whether the key opens the gateway at present; `None` if that is not known. Our own gateway reads the record.
    pub fn is_on(&self, embedded: bool) -> Option<bool> {
        if embedded { Some(self.key.enabled()) } else { self.observed.is_on() }
    }
}

/// A key that an administrator creates.
pub struct New {
    pub instance_id: Option<InstanceId>,
    pub name: Option<String>,
    pub quota: Option<i64>,
}

/// Creates a key for an administrator: of an instance, or with a name of its own.
pub async fn create(app: &App, by: &By, new: New) -> Result<Spent> {
    let name = match (&new.instance_id, &new.name) {
        (Some(id), None) => id.as_str().to_owned(),
        (None, Some(name)) if name != PLATFORM && instance::like(&app.db, name, true).await?.is_empty() => name.clone(),
        (None, Some(_)) => return Err(Error::field("name", "is an instance's or the platform's own")),
        (Some(_), Some(_)) => return Err(Error::field("name", "an instance's key has the instance's id for a name")),
        (None, None) => return Err(Error::field("instance_id", "is missing, and so is name")),
    };
    app.upstream.gateway.kind().check_name(&name)?;
    if let Some(id) = &new.instance_id {
        instance::find(&app.db, id).await?.ok_or(Kind::NotFound)?;
    }
    if gateway_key::named(&app.db, &name).await?.is_some() {
        return Err(Error::conflict("there is a key of this name"));
    }
    let key = need::make(app, by, &name, new.instance_id.as_ref(), new.quota).await?;
    spent(app, key).await
}

/// Deletes a key, at the gateway first.
pub async fn delete(app: &App, by: &By, id: &KeyId) -> Result<()> {
    let key = gateway_key::find(&app.db, id).await?.ok_or(Kind::NotFound)?;
    // Wait until no other process replaces the key. Otherwise the replacement would stay at the gateway.
    let _turn = turn::Turn::at_foreign(app, &key.name).await?;
    let key = gateway_key::find(&app.db, id).await?.ok_or(Kind::NotFound)?;
    if !app.upstream.embedded && !key.gateway_id.is_empty() {
        app.upstream.gateway.delete_key(&key.gateway_id).await?;
    }
    let mut tx = app.db.begin().await?;
    gateway_key::lock(&mut tx, id).await?.ok_or(Kind::NotFound)?;
    gateway_key::delete(&mut tx, &key.id, app.clock.now()).await?;
    let subject = format!("key:{}", key.name);
    queue::alert::resolve_where(app, &mut tx, |alert| alert.subject == subject).await?;
    audit::record(app, &mut tx, by, AuditEvent::info(Action::KeyDelete, &key.name, "deleted")).await?;
    tx.notify(Notice::new(Topic::Key, &key.id)).await?;
    Ok(tx.commit().await?)
}

/// Makes the gateway follow our record: the embedded one is notified, a foreign one is changed by a task. Use the
/// priority `Security` only to take access away from somebody: quotas and reminders must not delay that.
pub(crate) async fn follow(app: &App, tx: &mut Tx, key: &GatewayKey, priority: Priority, source: &str) -> Result<()> {
    if !app.upstream.embedded {
        task::enqueue_at(app, tx, priority, &ApplyKey { key_id: key.id.clone() }, source).await?;
    }
    Ok(tx.notify(Notice::new(Topic::Key, &key.id)).await?)
}

/// Has a foreign gateway brought to our record of a key, because it was found to differ.
pub async fn switch(app: &App, tx: &mut Tx, mut key: GatewayKey, source: &str) -> Result<()> {
    (key.dirty, key.updated_at) = (true, app.clock.now());
    gateway_key::update(tx, &key).await?;
    follow(app, tx, &key, Priority::Security, source).await
}

/// Enqueues writing an instance's key to it, if the instance is on a server.
async fn enqueue_sync_key(app: &App, tx: &mut Tx, instance: &InstanceId, source: &str) -> Result<()> {
    let found = instance::find(&mut *tx, instance).await?;
    if found.is_some_and(|instance| instance.is_managed()) {
        let payload = SyncKeyToInstance { instance_id: instance.clone() };
        task::enqueue(app, tx, &payload, source, None).await?;
    }
    Ok(())
}

/// Switches the keys of a user's instances off or on, after the user was revoked or is active again.
pub async fn follow_user(app: &App, tx: &mut Tx, user: &UserId, revoked: bool) -> Result<()> {
    for key in gateway_key::mark_revoked(tx, user, revoked, app.clock.now()).await? {
        follow(app, tx, &key, Priority::Security, "user status").await?;
    }
    Ok(())
}

/// Sets a key's flags for the holder of its instance, when the instance gets a new holder or the key is created.
async fn follow_holder(app: &App, tx: &mut Tx, key: &GatewayKey, holder: &Holder, source: &str) -> Result<()> {
    let revoked = holder.status == user::Status::Revoked;
    if gateway_key::set_holder_flags(tx, &key.id, revoked, app.clock.now()).await? {
        follow(app, tx, key, Priority::Security, source).await?;
    }
    Ok(())
}

/// Like `follow_holder`, for an instance that was just bound, if it has a key.
pub async fn bound(app: &App, tx: &mut Tx, instance: &InstanceId, holder: &Holder) -> Result<()> {
    match gateway_key::lock_of_instance(tx, instance).await? {
        Some(key) => follow_holder(app, tx, &key, holder, "instance bound").await,
        None => Ok(()),
    }
}

/// Replaces the key of an instance that is released, so that the last holder's copy of it is useless.
pub async fn rotate(app: &App, tx: &mut Tx, instance: &InstanceId, source: &str) -> Result<()> {
    let Some(mut key) = gateway_key::lock_of_instance(tx, instance).await? else { return Ok(()) };
    let now = app.clock.now();
    // The flags of the last holder do not apply to the next.
    (key.user_revoked, key.quota_spent, key.updated_at) = (false, false, now);
    if app.upstream.embedded {
        let secret = fresh_value()?;
        let sealed = app.sealer.seal(gateway_key::place(&key.id), &secret)?;
        gateway_key::set_secret(tx, &key.id, &sealed, &app.sealer.hash(&secret), now).await?;
        enqueue_sync_key(app, tx, instance, source).await?;
    } else {
        (key.rotate, key.dirty) = (true, true);
    }
    gateway_key::update(tx, &key).await?;
    follow(app, tx, &key, Priority::Security, source).await
}

/// Disables the key of an instance that is deleted, without a replacement.
pub async fn retire(app: &App, tx: &mut Tx, instance: &InstanceId) -> Result<()> {
    let Some(mut key) = gateway_key::lock_of_instance(tx, instance).await? else { return Ok(()) };
    (key.status, key.rotate, key.dirty, key.updated_at) = (Status::Disabled, false, true, app.clock.now());
    gateway_key::update(tx, &key).await?;
    follow(app, tx, &key, Priority::Security, "instance deleted").await
}

#[cfg(test)]
mod tests {
    use base::Clock;
    use testkit::Database;

    use super::*;

    async fn app() -> (App, Database) {
        let database = Database::sqlite();
        let clock = Clock::manual("2026-11-15T12:00:00Z".parse().unwrap());
        let engine = queue::App::for_tests(database.migrated().await, clock).unwrap();
        (App::for_tests(engine).unwrap(), database)
    }

    fn named(name: &str) -> New {
        New { instance_id: None, name: Some(name.into()), quota: None }
    }

    #[tokio::test]
    async fn the_platforms_key_is_made_once_however_many_need_it() {
        let (app, _database) = app().await;
        let all = futures_util::future::join_all((0..5).map(|_| platform(&app))).await;
        let ids: std::collections::HashSet<KeyId> = all.into_iter().map(|key| key.unwrap().id).collect();
        assert_eq!(ids.len(), 1);
    }

    #[tokio::test]
    async fn two_keys_never_have_one_name() {
        let (app, _database) = app().await;
        create(&app, &By::system(), named("reports")).await.unwrap();
        let refused = create(&app, &By::system(), named("reports")).await.err().unwrap();
        assert_eq!(refused.kind, Kind::Conflict);
    }

    #[tokio::test]
    async fn nobody_makes_a_key_of_the_platforms_name() {
        let (app, _database) = app().await;
        assert_eq!(create(&app, &By::system(), named(PLATFORM)).await.err().unwrap().kind, Kind::BadRequest);
        let nothing = New { instance_id: None, name: None, quota: None };
        assert_eq!(create(&app, &By::system(), nothing).await.err().unwrap().kind, Kind::BadRequest);
    }

    #[tokio::test]
    async fn a_deleted_key_is_gone_and_its_name_is_free() {
        let (app, _database) = app().await;
        let made = create(&app, &By::system(), named("reports")).await.unwrap().key;
        let id = made.id.clone();
        delete(&app, &By::system(), &id).await.unwrap();
        assert_eq!(find(&app, &id).await.err().unwrap().kind, Kind::NotFound);
        create(&app, &By::system(), named("reports")).await.expect("its name is free");
    }

    #[test]
    fn a_value_has_no_dash_behind_its_prefix() {
        let value = fresh_value().unwrap();
        let (prefix, rest) = value.expose().split_once('-').unwrap();
        assert!(prefix == "sk" && rest.len() >= 32 && !rest.contains(['-', '_']));
    }
}
