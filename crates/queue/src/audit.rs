//! The audit log: written inside the transaction of what it records, read, exported, and cleaned.

use base::{Page, Result, Sort, Zone};
use jiff::SignedDuration;
use store::audit::{self, NewEntry};
pub use store::audit::{Action, AuditFilter, Entry, Level};
use store::search::Found;
use store::{Conn, Tx};

use crate::App;
use crate::csv_file::{self, Cell};
use crate::permission::{Permission, Rights};

/// Who did it, and from where.
#[derive(Clone, Debug, Default)]
pub struct By {
    pub operator: String,
    pub ip: String,
    pub user_agent: String,
    /// The employee for whom the system acts.
    pub on_behalf_of: String,
    pub rights: Rights,
}

/// The operator of actions that no administrator made.
pub const SYSTEM: &str = "System";

impl By {
    pub fn system() -> By {
        By { operator: SYSTEM.into(), rights: Rights::Platform, ..By::default() }
    }

    /// An employee's action on their own instance. It is recorded as the system's action, with the employee's e-mail.
    pub fn employee(&self, email: &str) -> By {
        By { operator: SYSTEM.into(), on_behalf_of: email.into(), ..self.clone() }
    }

    pub fn may(&self, permission: Permission) -> bool {
        self.rights.allow(permission)
    }

    /// Refuses what the caller may not do.
    pub fn require(&self, permission: Permission) -> Result<()> {
        self.rights.require(permission)
    }

    /// The same caller under another name. A login uses it to name the account that was tried.
    pub fn named(&self, operator: impl Into<String>) -> By {
        By { operator: operator.into(), ..self.clone() }
    }
}

/// What was done. The detail never holds a secret.
pub struct AuditEvent<'a> {
    pub action: Action,
    pub level: Level,
    pub target: &'a str,
    pub detail: &'a str,
}

impl<'a> AuditEvent<'a> {
    pub fn info(action: Action, target: &'a str, detail: &'a str) -> AuditEvent<'a> {
        AuditEvent { action, level: Level::Info, target, detail }
    }

    pub fn error(action: Action, target: &'a str, detail: &'a str) -> AuditEvent<'a> {
        AuditEvent { action, level: Level::Error, target, detail }
    }

    pub fn warn(action: Action, target: &'a str, detail: &'a str) -> AuditEvent<'a> {
        AuditEvent { level: Level::Warn, ..AuditEvent::info(action, target, detail) }
    }
}

/// Records an event together with the change itself.
pub async fn record(app: &App, tx: &mut Tx, by: &By, event: AuditEvent<'_>) -> Result<()> {
    write(app, tx, by, event).await
}

/// Records several events of one operator at once.
pub async fn record_all(app: &App, tx: &mut Tx, by: &By, events: &[AuditEvent<'_>]) -> Result<()> {
    let entries: Vec<NewEntry<'_>> = events.iter().map(|event| entry(app, by, event)).collect();
    Ok(audit::write_all(tx, &entries).await?)
}

/// Records an event that changes nothing else, such as a refused login.
pub async fn record_alone(app: &App, by: &By, event: AuditEvent<'_>) -> Result<()> {
    write(app, &app.db, by, event).await
}

async fn write(app: &App, conn: impl Into<Conn<'_>>, by: &By, event: AuditEvent<'_>) -> Result<()> {
    Ok(audit::write(conn, entry(app, by, &event)).await?)
}

fn entry<'a>(app: &App, by: &'a By, event: &AuditEvent<'a>) -> NewEntry<'a> {
    NewEntry {
        operator: &by.operator,
        action: event.action,
        level: event.level,
        target: event.target,
        detail: event.detail,
        ip: &by.ip,
        user_agent: &by.user_agent,
        created_at: app.clock.now(),
    }
}

pub async fn list(app: &App, filter: &AuditFilter, sort: Sort, page: Page) -> Result<Found<Entry>> {
    Ok(audit::list(&app.db, filter, sort, page).await?)
}

/// A batch of entries after `after`, oldest first, and where the next batch begins. An export reads the log with it.
pub async fn after(app: &App, filter: &AuditFilter, after: i64, limit: i64) -> Result<(Vec<Entry>, Option<i64>)> {
    Ok(audit::after(&app.db, filter, after, limit).await?)
}

/// `name: old → new` for every field that differs, for an entry's detail.
#[derive(Default)]
pub struct Changes(Vec<String>);

impl Changes {
    pub fn field(mut self, name: &str, old: &str, new: &str) -> Changes {
        if old != new {
            self.0.push(format!("{name}: {old} → {new}"));
        }
        self
    }

    /// Notes that a field changed without its values, which may be secret.
    pub fn hidden(mut self, name: &str, changed: bool) -> Changes {
        if changed {
            self.0.push(format!("{name} changed"));
        }
        self
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn text(&self) -> String {
        if self.0.is_empty() { "nothing changed".into() } else { self.0.join("; ") }
    }
}

pub const CSV_HEADER: &[&str] =
    &["id", "created_at", "operator", "action", "level", "target", "detail", "ip", "user_agent"];

/// Entries as CSV lines, safe to open in a spreadsheet.
pub fn csv_lines(zone: &Zone, entries: &[Entry]) -> Result<Vec<u8>> {
    let cells = |entry: &Entry| {
        [
            entry.id.to_string(),
            zone.show(entry.created_at),
            entry.operator.clone(),
            entry.action.clone(),
            entry.level.as_str().into(),
            entry.target.clone(),
            entry.detail.clone(),
            entry.ip.clone(),
            entry.user_agent.clone(),
        ]
        .map(Cell::Text)
        .to_vec()
    };
    csv_file::lines(entries.iter().map(cells))
}

/// Deletes entries that are older than the retention period. Returns how many.
pub async fn clean(app: &App) -> Result<u64> {
    let now = app.clock.now();
    let before = now - SignedDuration::from_hours(24 * app.audit_retention_days);
    Ok(audit::delete_before(&app.db, before).await?)
}
