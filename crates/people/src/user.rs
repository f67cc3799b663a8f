//! Employees: administrators create, change and revoke them; employees change their own password.

use std::collections::HashMap;

use base::id::UserId;
use base::money::{Estimate, Price};
use base::{Email, Error, Kind, Listing, Page, Result, Secret, Sort, password};
use jiff::civil::Date;
use llm::key;
use queue::audit::{self, Action, AuditEvent, By, Changes};
use queue::throttle::PASSWORD_CHANGE;
use store::binding::{self, HolderPeriod};
use store::notice::{Notice, Topic};
use store::usage::{Sums, of_token};
use store::user::{self, NewUser};
pub use store::user::{Status, User, UserFilter};

use crate::session::{self, Opened};
use crate::token::{self, Audience};
use crate::{App, password_reset};

pub struct New {
    pub email: Email,
    pub name: String,
    pub department: String,
    pub quota_daily: i64,
    pub password: Option<Secret>,
}

/// What a PATCH changes; `None` leaves a field as it is.
#[derive(Default)]
pub struct Patch {
    pub name: Option<String>,
    pub department: Option<String>,
    pub status: Option<Status>,
    pub quota_daily: Option<i64>,
    pub password: Option<Secret>,
    /// Unties the account from its identity. The next sign-on with its verified e-mail ties it to the new one.
    pub forget_identity: bool,
}

/// An employee with the usage of all instances while they held them, ended bindings included.
pub struct Holding {
    pub user: User,
    /// The instance that they have held for longest.
    pub first: Option<HolderPeriod>,
    pub total_tokens: i64,
    pub total_requests: i64,
    pub est_cost_usd: f64,
}

pub async fn list(app: &App, filter: UserFilter<'_>, sort: Sort, page: Page) -> Result<Listing<Holding>> {
    let found = user::list(&app.db, filter, sort, page).await?;
    let ids: Vec<UserId> = found.list.iter().map(|u| u.id.clone()).collect();
    // For the whole list, read all periods: naming each user would exceed the limit of a statement.
    let among = (page != Page::ALL).then_some(ids.as_slice());
    let mut of: HashMap<UserId, Vec<HolderPeriod>> = HashMap::new();
    for period in binding::holder_periods(&app.db, among).await? {
        of.entry(period.user_id.clone()).or_default().push(period);
    }
    let mut list = vec![];
    for user in found.list {
        let holder_periods = of.remove(&user.id).unwrap_or_default();
        list.push(hold(app, user, holder_periods).await?);
    }
    Ok(Listing { list, total: found.total })
}

pub async fn holding(app: &App, id: &UserId) -> Result<Holding> {
    let user = find(app, id).await?;
    let holder_periods = binding::holder_periods(&app.db, Some(std::slice::from_ref(&user.id))).await?;
    hold(app, user, holder_periods).await
}

/// Sums the usage of instances while the user held them, released ones included.
async fn hold(app: &App, user: User, holder_periods: Vec<HolderPeriod>) -> Result<Holding> {
    let mut holding = Holding { user, first: None, total_tokens: 0, total_requests: 0, est_cost_usd: 0.0 };
    let mut estimate = Estimate::default();
    for held in holder_periods {
        let (tokens, requests) = match held.is_whole() {
            true => (held.total_tokens, held.total_requests),
            false => {
                let instance = &held.period.instance_id;
                let groups = of_token(&app.db, &app.zone, instance, held.span(), Some(Date::MAX)).await?;
                let sum = |of: fn(&Sums) -> i64| groups.iter().map(|group| of(&group.sums)).sum::<i64>();
                (sum(Sums::tokens), sum(|sums| sums.requests))
            }
        };
        holding.total_tokens += tokens;
        holding.total_requests += requests;
        estimate.add(tokens, Price::of(&held.instance_model));
        if holding.first.is_none() && held.period.ended_at.is_none() {
            holding.first = Some(held);
        }
    }
    holding.est_cost_usd = estimate.usd();
    Ok(holding)
}

pub async fn find(app: &App, id: &UserId) -> Result<User> {
    Ok(user::find(&app.db, id).await?.ok_or(Kind::NotFound)?)
}

pub async fn find_by_email(app: &App, email: &str) -> Result<UserId> {
    let user = user::find_by_email(&app.db, email).await?.ok_or(Kind::NotFound)?;
    Ok(user.id)
}

pub async fn create(app: &App, by: &By, mut new: New) -> Result<User> {
    let password_hash = hash(app, new.password.take()).await?;
    let mut tx = app.db.begin().await?;
    let id = create_in(app, &mut tx, by, &new, password_hash.as_deref()).await?;
    tx.commit().await?;
    find(app, &id).await
}

/// What is stored of a password that an administrator sets.
async fn hash(app: &App, password: Option<Secret>) -> Result<Option<String>> {
    let Some(password) = password else { return Ok(None) };
    password::check("password", &password)?;
    app.hasher.hash(password).await.map(Some)
}

/// Creates an account with its audit entry. `new.password` is not looked at: its hash was made before the transaction.
pub(crate) async fn create_in(
    app: &App,
    tx: &mut store::Tx,
    by: &By,
    new: &New,
    password_hash: Option<&str>,
) -> Result<UserId> {
    let id = UserId::fresh();
    let record = NewUser {
        id: &id,
        email: &new.email,
        name: &new.name,
        department: &new.department,
        quota_daily: new.quota_daily,
        password_hash,
        idp_id: None,
        created_at: app.clock.now(),
    };
    insert(tx, record).await?;
    let how = if password_hash.is_some() { "employee created" } else { "employee created, SSO only" };
    audit::record(app, tx, by, AuditEvent::info(Action::UserCreate, new.email.as_str(), how)).await?;
    Ok(id)
}

pub(crate) async fn insert(tx: &mut store::Tx, new: NewUser<'_>) -> Result<()> {
    user::insert(tx, new).await.map_err(|e| match e {
        store::Error::Taken => Error::conflict("an account with this e-mail exists already"),
        other => other.into(),
    })
}

pub async fn update(app: &App, by: &By, id: &UserId, mut patch: Patch) -> Result<User> {
    let password_hash = hash(app, patch.password.take()).await?;
    let mut tx = app.db.begin().await?;
    let old = user::lock(&mut tx, id).await?.ok_or(Kind::NotFound)?;
    let user = update_in(app, &mut tx, by, old, patch, password_hash).await?;
    tx.commit().await?;
    Ok(user)
}

/// Changes a locked account, with its audit entry. `patch.password` is not looked at: its hash was made before the
/// transaction.
pub(crate) async fn update_in(
    app: &App,
    tx: &mut store::Tx,
    by: &By,
    old: User,
    patch: Patch,
    password_hash: Option<String>,
) -> Result<User> {
    let now = app.clock.now();
    let mut user = old.clone();
    user.name = patch.name.unwrap_or(user.name);
    user.department = patch.department.unwrap_or(user.department);
    user.quota_daily = patch.quota_daily.unwrap_or(user.quota_daily);
    if let Some(status) = patch.status {
        set_status(&mut user, status, now);
    }
    if let Some(hash) = &password_hash {
        user.password_hash = Some(hash.clone());
        user.tokens_from = token::end_all(user.tokens_from, now);
    }
    if patch.forget_identity && user.idp_id.take().is_some() {
        user.tokens_from = token::end_all(user.tokens_from, now);
    }
    let changes = Changes::default()
        .field("name", &old.name, &user.name)
        .field("department", &old.department, &user.department)
        .field("status", old.status.as_str(), user.status.as_str())
        .field("quota_daily", &old.quota_daily.to_string(), &user.quota_daily.to_string())
        .hidden("password", password_hash.is_some())
        .hidden("identity", old.idp_id != user.idp_id);
    user::update(tx, &user, now).await?;
    follow(app, tx, &old, &user).await?;
    match password_hash.is_some() {
        true => {
            let reset = password_reset::note(app, tx, by, Audience::Employee, &user.id).await?;
            let detail = format!("{}; {}", changes.text(), reset.warning());
            audit::record(app, tx, by, AuditEvent::warn(Action::UserUpdate, &user.email, &detail)).await?;
        }
        false => audit::record(app, tx, by, AuditEvent::info(Action::UserUpdate, &user.email, &changes.text())).await?,
    }
    Ok(user)
}

/// Soft delete: the account stays listed, as revoked.
pub async fn delete(app: &App, by: &By, id: &UserId) -> Result<()> {
    let mut tx = app.db.begin().await?;
    let old = user::lock(&mut tx, id).await?.ok_or(Kind::NotFound)?;
    let mut user = old.clone();
    let now = app.clock.now();
    set_status(&mut user, Status::Revoked, now);
    user::update(&mut tx, &user, now).await?;
    follow(app, &mut tx, &old, &user).await?;
    let event = AuditEvent::warn(Action::UserUpdate, &user.email, "employee deleted (revoked)");
    audit::record(app, &mut tx, by, event).await?;
    tx.commit().await?;
    Ok(())
}

/// Applies what follows from a changed account: the keys of its instances are switched on or off, and gateways are
/// notified of a new quota.
async fn follow(app: &App, tx: &mut store::Tx, old: &User, new: &User) -> Result<()> {
    let id = new.id.clone();
    if old.status != new.status || old.tokens_from != new.tokens_from {
        tx.notify(Notice::new(Topic::User, id.as_str())).await?;
    }
    if old.status != new.status {
        key::follow_user(app, tx, &id, new.status == Status::Revoked).await?;
    }
    if old.quota_daily != new.quota_daily || old.status != new.status {
        tx.notify(Notice::new(Topic::Key, id.as_str())).await?;
    }
    Ok(())
}

/// The only place that changes an account's status. Tokens of a revoked account stay invalid when it is active again.
fn set_status(user: &mut User, status: Status, now: jiff::Timestamp) {
    match status {
        Status::Revoked if user.status != Status::Revoked || user.revoked_at.is_none() => {
            user.revoked_at = Some(now);
            user.tokens_from = token::end_all(user.tokens_from, now);
        }
        Status::Revoked => {}
        Status::Active => user.revoked_at = None,
    }
    user.status = status;
}

/// An employee changes their own password. All tokens end except the one that is returned.
pub async fn change_password(app: &App, id: &UserId, old: Secret, new: Secret) -> Result<Opened<User>> {
    password::check("new", &new)?;
    PASSWORD_CHANGE.check(app, id.as_str()).await?;
    let stored = find(app, id).await?.password_hash;
    let stored = stored.ok_or_else(|| Error::conflict("this account has no password: it signs in through SSO"))?;
    if app.hasher.verify(Some(stored.clone()), old, id.as_str()).await? == password::Verdict::Wrong {
        PASSWORD_CHANGE.hit(app, id.as_str()).await?;
        return Err(Error::field("old", "is not the current password"));
    }
    // Parallel attempts all pass the first check. So check again: a right password does not count after too many wrong
    // ones.
    PASSWORD_CHANGE.check(app, id.as_str()).await?;
    let hash = app.hasher.hash(new).await?;
    let mut tx = app.db.begin().await?;
    let mut user = user::lock(&mut tx, id).await?.ok_or(Kind::Unauthorized)?;
    // The password was changed or the account revoked since the comparison.
    if user.password_hash.as_ref() != Some(&stored) || user.status != Status::Active {
        return Err(Kind::Unauthorized.into());
    }
    let now = app.clock.now();
    user.password_hash = Some(hash);
    user.tokens_from = token::end_all(user.tokens_from, now);
    user::update(&mut tx, &user, now).await?;
    tx.notify(Notice::new(Topic::User, id.as_str())).await?;
    tx.commit().await?;
    PASSWORD_CHANGE.clear(app, id.as_str()).await?;
    session::open_employee(app, user, now)
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
        (App::for_tests(llm::App::for_tests(engine).unwrap()).unwrap(), database)
    }

    fn new(email: &str) -> New {
        New {
            email: email.parse().unwrap(),
            name: "Noor".into(),
            department: String::new(),
            quota_daily: 0,
            password: None,
        }
    }

    #[tokio::test]
    async fn an_address_belongs_to_one_account_whatever_its_case() {
        let (app, _database) = app().await;
        create(&app, &By::system(), new("noor@example.test")).await.unwrap();
        let refused = create(&app, &By::system(), new("Noor@Example.test")).await.err().unwrap();
        assert_eq!(refused.kind, Kind::Conflict);
    }

    #[tokio::test]
    async fn a_token_ends_with_its_account() {
        let (app, _database) = app().await;
        let user = create(&app, &By::system(), new("noor@example.test")).await.unwrap();
        let id = user.id.clone();
        let opened = session::open_employee(&app, user, app.clock.now()).unwrap();
        session::employee(&app, opened.token.expose()).await.expect("it is good");
        delete(&app, &By::system(), &id).await.unwrap();
        assert_eq!(session::employee(&app, opened.token.expose()).await.err().unwrap().kind, Kind::Unauthorized);
    }

    #[tokio::test]
    async fn a_token_of_one_side_is_none_of_the_other() {
        let (app, _database) = app().await;
        let user = create(&app, &By::system(), new("noor@example.test")).await.unwrap();
        let opened = session::open_employee(&app, user, app.clock.now()).unwrap();
        assert_eq!(session::admin(&app, opened.token.expose()).await.err().unwrap().kind, Kind::Unauthorized);
    }

    #[tokio::test]
    async fn an_ended_token_opens_nothing_and_another_still_does() {
        let (app, _database) = app().await;
        let user = create(&app, &By::system(), new("noor@example.test")).await.unwrap();
        let open = || session::open_employee(&app, user.clone(), app.clock.now()).unwrap().token;
        let (first, second) = (open(), open());
        let who = session::employee(&app, first.expose()).await.unwrap();
        session::end(&app, &who.token).await.unwrap();
        assert_eq!(session::employee(&app, first.expose()).await.err().unwrap().kind, Kind::Unauthorized);
        session::employee(&app, second.expose()).await.expect("a login of its own");
    }
}
