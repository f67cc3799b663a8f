//! Imports employees from a file: creates accounts, changes them, and gives people an assistant of their profession.
//!
//! A dry run takes the same steps as the import, line by line, and rolls each line back instead of committing it. So the
//! two cannot differ, unless somebody changes the records in between.

mod file;
mod profession;
mod refusal;

use std::collections::{HashMap, HashSet};

use base::id::{EntryId, InstanceId, ProfessionId};
use base::{Error, Kind, Result, Secret};
use queue::audit::By;
use queue::permission::Permission;
use store::binding::{self, Holder};
use store::{Tx, pool};

pub use self::file::{MOST_BYTES, MOST_LINES};
use self::file::{Person, Row};
use self::profession::Professions;
pub use self::refusal::{Reason, Refusal};
use crate::user::{New, Patch, Status};
use crate::{App, claim, user};

/// The result of an import, or what the result would be.
#[derive(Debug, PartialEq, Eq)]
pub struct Report {
    pub lines: Vec<Line>,
    /// The columns of the file that are not used.
    pub ignored_columns: Vec<String>,
}

/// What a line does.
#[derive(Debug, PartialEq, Eq)]
pub struct Line {
    pub line: u64,
    /// As the file writes it.
    pub email: String,
    pub effect: Result<Effect, Refusal>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Effect {
    pub action: Action,
    /// The fields that get a value, or another one.
    pub changes: Vec<Change>,
    /// The profession that the line names.
    pub profession: Option<Assignment>,
    /// The line has a password, which is not used, because the account exists.
    pub password_ignored: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Create,
    Update,
    Unchanged,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    Name,
    Department,
    QuotaDaily,
    Password,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Change {
    pub field: Field,
    /// `None` for a new account, and for a password.
    pub old: Option<String>,
    /// `None` for a password.
    pub new: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Assignment {
    pub profession: String,
    /// The instance that the person gets; `None` if they hold one of this profession already.
    pub instance: Option<InstanceId>,
}

/// After this many lines in a row at which the server failed, the others are not tried: each may wait for a database
/// that does not answer.
const FAILURES_IN_A_ROW: usize = 3;

/// Imports a file, each line in a transaction of its own. A line that is refused does not keep the others from being
/// done. A dry run changes nothing.
pub async fn run(app: &App, by: &By, text: &Secret, dry_run: bool) -> Result<Report> {
    let file = file::read(text)?;
    let mut import = Import {
        app,
        by,
        dry_run,
        professions: Professions::load(app).await?,
        given: HashMap::new(),
        empty: HashSet::new(),
    };
    let mut lines = vec![];
    let mut failures = 0;
    for Row { line, email, person } in file.rows {
        let effect = match person {
            Err(refusal) => Err(refusal),
            Ok(_) if failures >= FAILURES_IN_A_ROW => {
                Err(Refusal::new(Reason::NotTried, "not tried, because the server failed at the lines before"))
            }
            Ok(person) => {
                let effect = import.line(&person).await;
                let failed = effect.as_ref().is_err_and(|r| matches!(r.reason, Reason::Failed | Reason::Uncertain));
                failures = if failed { failures + 1 } else { 0 };
                effect
            }
        };
        lines.push(Line { line, email, effect });
    }
    Ok(Report { lines, ignored_columns: file.ignored_columns })
}

struct Import<'a> {
    app: &'a App,
    by: &'a By,
    dry_run: bool,
    professions: Professions,
    /// The pool entries that earlier lines gave away. In a dry run they are idle again.
    given: HashMap<ProfessionId, Vec<EntryId>>,
    /// The professions of which no instance was ready when a line needed one. Each look takes time on PostgreSQL, which
    /// waits for entries that are locked.
    empty: HashSet<ProfessionId>,
}

impl Import<'_> {
    async fn line(&mut self, person: &Person) -> Result<Effect, Refusal> {
        let password_hash = self.password_hash(person).await?;
        let mut tx = self.app.db.begin().await?;
        let (effect, given) = match self.apply(&mut tx, person, password_hash).await {
            Ok(done) => done,
            Err(refusal) => {
                // Otherwise the rows are locked until the connection is back in its pool, and the next line skips them.
                tx.rollback().await?;
                return Err(refusal);
            }
        };
        match self.dry_run {
            true => tx.rollback().await?,
            false => tx.commit().await.map_err(|error| {
                tracing::error!(%error, "a line of an import may not have been stored");
                let message =
                    "the server failed while it stored this line; preview the file again to see whether it did";
                Refusal::new(Reason::Uncertain, message)
            })?,
        }
        if let Some(entry) = given {
            self.given.entry(entry.profession_id).or_default().push(entry.id);
        }
        Ok(effect)
    }

    /// What is stored of the password of a new account. Hashing takes long, so it is done outside of the transaction, and
    /// only for what is stored.
    async fn password_hash(&self, person: &Person) -> Result<Option<String>, Refusal> {
        let Some(password) = &person.password else { return Ok(None) };
        if self.dry_run || store::user::find_by_email(&self.app.db, person.email.as_str()).await?.is_some() {
            // No password has this hash.
            return Ok(Some(String::new()));
        }
        Ok(Some(self.app.hasher.hash(password.clone()).await?))
    }

    /// Does what the line says. The caller commits it, or rolls it back.
    async fn apply(
        &mut self,
        tx: &mut Tx,
        person: &Person,
        password_hash: Option<String>,
    ) -> Result<(Effect, Option<pool::Entry>), Refusal> {
        let existing = store::user::lock_by_email(tx, person.email.as_str()).await?;
        let (mut effect, id) = match existing {
            Some(user) if user.status == Status::Revoked => {
                let message = "the account is revoked; restore it first, or take it out of the file";
                return Err(Refusal::new(Reason::Revoked, message));
            }
            Some(user) => {
                let id = user.id.clone();
                (self.update(tx, user, person).await?, id)
            }
            None => self.create(tx, person, password_hash).await?,
        };
        let Some(cell) = &person.profession else { return Ok((effect, None)) };
        let holder = binding::lock_holder(tx, &id).await?.ok_or(Error::from(Kind::NotFound))?;
        let given = self.assign(tx, &holder, cell).await?;
        let instance = given.1.as_ref().map(|entry| entry.instance_id.clone());
        if instance.is_some() && effect.action == Action::Unchanged {
            effect.action = Action::Update;
        }
        effect.profession = Some(Assignment { profession: given.0, instance });
        Ok((effect, given.1))
    }

    async fn create(
        &self,
        tx: &mut Tx,
        person: &Person,
        password_hash: Option<String>,
    ) -> Result<(Effect, base::id::UserId), Refusal> {
        let new = New {
            email: person.email.clone(),
            name: person.name.clone().unwrap_or_default(),
            department: person.department.clone().unwrap_or_default(),
            quota_daily: person.quota_daily.unwrap_or_default(),
            password: None,
        };
        let id = user::create_in(self.app, tx, self.by, &new, password_hash.as_deref()).await?;
        let value = |field, new: String| Change { field, old: None, new: Some(new) };
        let mut changes = vec![];
        changes.extend(person.name.clone().map(|name| value(Field::Name, name)));
        changes.extend(person.department.clone().map(|department| value(Field::Department, department)));
        changes.push(value(Field::QuotaDaily, new.quota_daily.to_string()));
        changes.extend(password_hash.map(|_| Change { field: Field::Password, old: None, new: None }));
        Ok((Effect { action: Action::Create, changes, profession: None, password_ignored: false }, id))
    }

    async fn update(&self, tx: &mut Tx, user: user::User, person: &Person) -> Result<Effect, Refusal> {
        let mut changes = vec![];
        let mut differs = |field, old: &str, new: Option<String>| {
            if let Some(new) = new.filter(|new| new != old) {
                changes.push(Change { field, old: Some(old.to_owned()), new: Some(new) });
            }
        };
        differs(Field::Name, &user.name, person.name.clone());
        differs(Field::Department, &user.department, person.department.clone());
        let quota = person.quota_daily.map(|quota| quota.to_string());
        differs(Field::QuotaDaily, &user.quota_daily.to_string(), quota);
        let action = if changes.is_empty() { Action::Unchanged } else { Action::Update };
        if action == Action::Update {
            let patch = Patch {
                name: person.name.clone(),
                department: person.department.clone(),
                quota_daily: person.quota_daily,
                ..Patch::default()
            };
            user::update_in(self.app, tx, self.by, user, patch, None).await?;
        }
        Ok(Effect { action, changes, profession: None, password_ignored: person.password.is_some() })
    }

    /// Gives the person an entry of the profession's pool, unless they hold one. Returns the profession's name, and what
    /// was given.
    async fn assign(
        &mut self,
        tx: &mut Tx,
        holder: &Holder,
        cell: &str,
    ) -> Result<(String, Option<pool::Entry>), Refusal> {
        self.by.require(Permission::ManagePools)?;
        let profession = self.professions.named(cell)?;
        if pool::held_by(tx, &profession.id, &holder.id()).await? {
            return Ok((profession.name.clone(), None));
        }
        let but = self.given.get(&profession.id).map(Vec::as_slice).unwrap_or_default();
        let entry = match self.empty.contains(&profession.id) {
            true => None,
            false => match claim::give(self.app, tx, self.by, holder, profession, but).await {
                // A health check found something just now.
                Err(error) if error.kind == Kind::NoIdleInstance => None,
                given => given?,
            },
        };
        let Some(entry) = entry else {
            self.empty.insert(profession.id.clone());
            let problem =
                format!("no assistant of {} is ready; add one to its pool, or leave the cell empty", profession.name);
            return Err(Refusal::field(Reason::PoolEmpty, "profession", problem));
        };
        Ok((profession.name.clone(), Some(entry)))
    }
}

#[cfg(test)]
mod tests {
    use base::Clock;
    use queue::permission::{Rights, Role};
    use store::profession::Profession;
    use testkit::Database;

    use super::*;

    async fn app() -> (App, Database) {
        let database = Database::sqlite();
        let clock = Clock::manual("2026-11-15T12:00:00Z".parse().unwrap());
        let engine = queue::App::for_tests(database.migrated().await, clock).unwrap();
        let app = App::for_tests(llm::App::for_tests(engine).unwrap()).unwrap();
        let mut tx = app.db.begin().await.unwrap();
        let sales = Profession {
            id: ProfessionId::fresh(),
            name: "Sales".into(),
            code: "sales".into(),
            icon: String::new(),
            tagline: String::new(),
            description: String::new(),
            role_pack_id: None,
            sort_order: 0,
            is_official: false,
            is_active: true,
            created_at: app.clock.now(),
        };
        store::profession::insert(&mut tx, &sales).await.unwrap();
        tx.commit().await.unwrap();
        (app, database)
    }

    async fn import(app: &App, by: &By, text: &str, dry_run: bool) -> Vec<Result<Action, Reason>> {
        let report = run(app, by, &Secret::new(text), dry_run).await.unwrap();
        report.lines.into_iter().map(|line| line.effect.map(|e| e.action).map_err(|r| r.reason)).collect()
    }

    async fn count(app: &App) -> i64 {
        let filter = user::UserFilter::default();
        let sort = base::Sort { column: "email", descending: false };
        store::user::list(&app.db, filter, sort, base::Page::ALL).await.unwrap().total
    }

    #[tokio::test]
    async fn a_line_that_is_refused_changes_nothing_and_stops_no_other() {
        let (app, _database) = app().await;
        let text = "email,profession\na@b.test,sales\nno address,\nb@b.test,cook\nc@b.test,\n";
        let expected = [Err(Reason::PoolEmpty), Err(Reason::Email), Err(Reason::ProfessionUnknown), Ok(Action::Create)];
        assert_eq!(import(&app, &By::system(), text, true).await, expected);
        assert_eq!(count(&app).await, 0, "a dry run changes nothing");
        assert_eq!(import(&app, &By::system(), text, false).await, expected);
        assert_eq!(count(&app).await, 1, "no account without the assistant that its line promises");
    }

    #[tokio::test]
    async fn a_profession_needs_the_permission_for_pools() {
        let (app, _database) = app().await;
        let by = By { rights: Rights::Of(Role::Operator), ..By::system() };
        let text = "email,profession\na@b.test,sales\nb@b.test,\n";
        assert_eq!(import(&app, &by, text, true).await, [Err(Reason::NoAccess), Ok(Action::Create)]);
    }

    #[tokio::test]
    async fn the_server_may_fail_at_a_line_and_goes_on_unless_it_fails_at_every_line() {
        let (app, _database) = app().await;
        app.db.run("ALTER TABLE pool_entry RENAME TO gone", vec![]).await.unwrap();
        let file = |professions: &[&str]| {
            let line = |(i, profession): (usize, &&str)| format!("p{i}@b.test,{profession}\n");
            format!("email,profession\n{}", professions.iter().enumerate().map(line).collect::<String>())
        };
        let text = file(&["sales", "sales", "", "sales", "sales", ""]);
        let failed = Err(Reason::Failed);
        let made = Ok(Action::Create);
        assert_eq!(import(&app, &By::system(), &text, false).await, [failed, failed, made, failed, failed, made]);
        assert_eq!(count(&app).await, 2, "nothing of a failed line is left");
        let text = file(&["sales", "sales", "sales", "", "sales"]);
        let not_tried = Err(Reason::NotTried);
        assert_eq!(import(&app, &By::system(), &text, false).await, [failed, failed, failed, not_tried, not_tried]);
    }

    #[tokio::test]
    async fn the_password_of_an_existing_account_stays() {
        let (app, _database) = app().await;
        let hash = async || store::user::find_by_email(&app.db, "a@b.test").await.unwrap().unwrap().password_hash;
        let text = "email,password\na@b.test,first password\n";
        assert_eq!(import(&app, &By::system(), text, false).await, [Ok(Action::Create)]);
        let first = hash().await;
        assert!(first.as_ref().is_some_and(|hash| hash.starts_with("$argon2id$")));
        let report = run(&app, &By::system(), &Secret::new(text.replace("first", "other")), false).await.unwrap();
        let effect = report.lines[0].effect.as_ref().unwrap();
        assert_eq!((effect.action, effect.password_ignored), (Action::Unchanged, true));
        assert_eq!(hash().await, first);
    }
}
