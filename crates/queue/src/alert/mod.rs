//! Alerts: raised once when a condition begins, resolved when it ends, delivered by a task (`deliver`).

mod deliver;

use std::collections::HashSet;

use base::id::AlertId;
use base::{Error, Kind, Listing, Page, Result, Secret, Sort};
use store::alert::AlertRule;
pub use store::alert::{Alert, AlertFilter, SORTABLE};
use store::notice::{Notice, Topic};
use store::{Tx, alert as stored, word};

use crate::audit::{self, Action, AuditEvent, By, Changes};
use crate::{App, task};
pub use deliver::DeliverAlert;

word! {
    /// Every rule there is.
    pub enum Rule {
        KeyBalanceLow = "key_balance_low",
        BudgetNearLimit = "budget_near_limit",
        InstancesUnhealthy = "instances_unhealthy",
        TaskDead = "task_dead",
        GatewayDown = "gateway_down",
        InstanceNotIsolated = "instance_not_isolated",
        DiskOverLimit = "disk_over_limit",
        KeyNotRevoked = "key_not_revoked",
        GatewayLogSilent = "gateway_log_silent",
    }
}

impl Rule {
    /// The default threshold: dollars left, percent of a budget, or a number of instances.
    fn threshold(self) -> Option<f64> {
        match self {
            Rule::KeyBalanceLow => Some(5.0),
            Rule::BudgetNearLimit => Some(80.0),
            Rule::InstancesUnhealthy => Some(1.0),
            Rule::TaskDead
            | Rule::GatewayDown
            | Rule::InstanceNotIsolated
            | Rule::DiskOverLimit
            | Rule::KeyNotRevoked
            | Rule::GatewayLogSilent => None,
        }
    }

    fn check_threshold(self, given: f64) -> Result<()> {
        let refused = match self {
            _ if !given.is_finite() || given < 0.0 => "must be a number that is not negative",
            Rule::BudgetNearLimit if given > 100.0 => "is a percentage: at most 100",
            _ if self.threshold().is_none() => "cannot be set: this rule has none",
            _ => return Ok(()),
        };
        Err(Error::field("threshold", refused))
    }
}

/// A rule as it is set.
#[derive(Clone, Debug)]
pub struct Set {
    pub rule: Rule,
    pub enabled: bool,
    pub threshold: Option<f64>,
    pub channel: Option<Secret>,
    /// Returned only once, when a new channel gets its secret.
    pub signing_secret: Option<Secret>,
}

pub async fn rules(app: &App) -> Result<Vec<Set>> {
    let mut all = vec![];
    for rule in Rule::ALL {
        all.push(set_of(app, *rule, stored::rule(&app.db, rule.as_str()).await?)?);
    }
    Ok(all)
}

fn set_of(app: &App, rule: Rule, found: Option<AlertRule>) -> Result<Set> {
    let Some(found) = found else {
        return Ok(Set { rule, enabled: true, threshold: rule.threshold(), channel: None, signing_secret: None });
    };
    let channel = found.url(&app.sealer)?;
    Ok(Set {
        rule,
        enabled: found.enabled,
        threshold: found.threshold.or(rule.threshold()),
        channel,
        signing_secret: None,
    })
}

/// The threshold in effect; `None` if the rule is switched off.
pub async fn threshold(app: &App, rule: Rule) -> Result<Option<f64>> {
    let set = set_of(app, rule, stored::rule(&app.db, rule.as_str()).await?)?;
    Ok(set.enabled.then_some(set.threshold.unwrap_or(0.0)))
}

/// An administrator's change of a rule; `None` leaves a field as it is.
pub struct Patch {
    pub enabled: bool,
    pub threshold: Option<Option<f64>>,
    pub channel: Option<Option<Secret>>,
}

pub async fn set_rule(app: &App, by: &By, id: &str, patch: Patch) -> Result<Set> {
    let rule = Rule::parse(id).ok_or(Kind::NotFound)?;
    if let Some(Some(url)) = &patch.channel {
        app.webhooks.check(url)?;
    }
    let mut tx = app.db.begin().await?;
    // The whole row is written back, and it may not exist yet. Without a lock, two changes at the same time could undo
    // each other.
    tx.lock(store::db::Lock::AlertRules).await?;
    let old = stored::rule(&mut tx, id).await?;
    let was = set_of(app, rule, old.clone())?;
    let mut record = AlertRule {
        id: id.to_owned(),
        enabled: patch.enabled,
        threshold: match patch.threshold {
            Some(given) => given,
            None => old.as_ref().and_then(|old| old.threshold),
        },
        channel: old.as_ref().and_then(|old| old.channel.clone()),
        secret: old.and_then(|old| old.secret),
        updated_at: app.clock.now(),
    };
    if let Some(Some(given)) = patch.threshold {
        rule.check_threshold(given)?;
    }
    let mut signing_secret = None;
    match patch.channel {
        None => {}
        Some(None) => (record.channel, record.secret) = (None, None),
        Some(Some(url)) if was.channel.as_ref().is_some_and(|old| old.expose() == url.expose()) => {}
        Some(Some(url)) => {
            let secret = Secret::new(format!("whsec_{}", base::secret::random_token()?.expose()));
            record.channel = Some(app.sealer.seal(stored::place(id, "channel"), &url)?);
            record.secret = Some(app.sealer.seal(stored::place(id, "secret"), &secret)?);
            signing_secret = Some(secret);
        }
    }
    stored::set_rule(&mut tx, &record).await?;
    let number = |t: Option<f64>| t.map_or_else(|| "none".to_owned(), |t| t.to_string());
    let is = set_of(app, rule, Some(record))?;
    let same = was.channel.as_ref().map(Secret::expose) == is.channel.as_ref().map(Secret::expose);
    let changes = Changes::default()
        .field("enabled", &was.enabled.to_string(), &is.enabled.to_string())
        .field("threshold", &number(was.threshold), &number(is.threshold))
        .hidden("channel", !same);
    let target = format!("alert rule {id}");
    audit::record(app, &mut tx, by, AuditEvent::info(Action::ConfigChange, &target, &changes.text())).await?;
    tx.commit().await?;
    Ok(Set { signing_secret, ..is })
}

/// Raises an alert, unless it is open already or its rule is off. Returns whether it is new.
pub async fn raise(app: &App, tx: &mut Tx, rule: Rule, subject: &str, message: &str) -> Result<bool> {
    let set = set_of(app, rule, stored::rule(&mut *tx, rule.as_str()).await?)?;
    if !set.enabled {
        return Ok(false);
    }
    if rule == Rule::InstancesUnhealthy
        && let Some(least) = set.threshold.filter(|least| *least > 1.0)
        && (stored::unhealthy(tx).await? as f64) < least
    {
        return Ok(false);
    }
    let alert = Alert {
        id: AlertId::fresh(),
        rule: rule.as_str().to_owned(),
        subject: subject.to_owned(),
        message: message.chars().take(1000).collect(),
        created_at: app.clock.now(),
        acked_at: None,
        acked_by: String::new(),
        resolved_at: None,
        delivery_id: None,
    };
    if !stored::open(tx, &alert).await? {
        return Ok(false);
    }
    tell(app, tx, &alert, deliver::RAISED, set.channel.is_some()).await?;
    Ok(true)
}

/// Resolves the alert of this rule and subject, if one is open.
pub async fn resolve(app: &App, tx: &mut Tx, rule: Rule, subject: &str) -> Result<bool> {
    match stored::open_one(&mut *tx, rule.as_str(), subject).await? {
        Some(alert) => end(app, tx, &alert).await,
        None => Ok(false),
    }
}

async fn end(app: &App, tx: &mut Tx, alert: &Alert) -> Result<bool> {
    if !stored::resolve(tx, &alert.id, app.clock.now()).await? {
        return Ok(false);
    }
    let channel = stored::rule(&mut *tx, &alert.rule).await?.is_some_and(|rule| rule.enabled && rule.channel.is_some());
    tell(app, tx, alert, deliver::RESOLVED, channel).await?;
    Ok(true)
}

/// Resolves all open alerts, of any rule, whose subject `is_gone`.
pub async fn resolve_where(app: &App, tx: &mut Tx, is_gone: impl Fn(&Alert) -> bool + Send + Sync) -> Result<usize> {
    let mut ended = 0;
    let open = stored::all_open(&mut *tx).await?;
    for alert in open.iter().filter(|alert| is_gone(alert)) {
        ended += usize::from(end(app, tx, alert).await?);
    }
    Ok(ended)
}

/// Resolves the open alerts of a rule whose subject is not in `subjects`: the check ran, and the condition is gone.
pub async fn resolve_others(app: &App, rule: Rule, subjects: &HashSet<String>) -> Result<usize> {
    let mut tx = app.db.begin().await?;
    let gone = |alert: &Alert| alert.rule == rule.as_str() && !subjects.contains(&alert.subject);
    let ended = resolve_where(app, &mut tx, gone).await?;
    tx.commit().await?;
    Ok(ended)
}

/// The subjects for which an alert of this rule is open.
pub async fn open_subjects(app: &App, rule: Rule) -> Result<HashSet<String>> {
    let all = stored::all_open(&app.db).await?;
    Ok(all.into_iter().filter(|alert| alert.rule == rule.as_str()).map(|alert| alert.subject).collect())
}

/// Like `open_subjects`, but within a transaction.
pub async fn open_subjects_in(tx: &mut Tx, rule: Rule) -> Result<HashSet<String>> {
    let all = stored::all_open(tx).await?;
    Ok(all.into_iter().filter(|alert| alert.rule == rule.as_str()).map(|alert| alert.subject).collect())
}

/// Raises the alert if there is trouble, otherwise resolves it; in a transaction of its own. Returns whether anything
/// changed.
pub async fn set_state(app: &App, rule: Rule, subject: &str, trouble: Option<&str>) -> Result<bool> {
    let mut tx = app.db.begin().await?;
    let changed = match trouble {
        Some(message) => raise(app, &mut tx, rule, subject, message).await?,
        None => resolve(app, &mut tx, rule, subject).await?,
    };
    tx.commit().await?;
    Ok(changed)
}

/// The same for a condition whose extent changes: an alert that is open gets the message of now, and is not delivered
/// once more.
pub async fn set_extent(app: &App, rule: Rule, subject: &str, trouble: Option<&str>) -> Result<bool> {
    let changed = set_state(app, rule, subject, trouble).await?;
    if let Some(message) = trouble.filter(|_| !changed) {
        let mut tx = app.db.begin().await?;
        if let Some(open) = stored::open_one(&mut tx, rule.as_str(), subject).await? {
            let message: String = message.chars().take(1000).collect();
            if stored::set_message(&mut tx, &open.id, &message).await? {
                tx.notify(Notice::new(Topic::Alert, &open.id)).await?;
            }
        }
        tx.commit().await?;
    }
    Ok(changed)
}

async fn tell(app: &App, tx: &mut Tx, alert: &Alert, event: &str, channel: bool) -> Result<()> {
    if channel {
        let payload = DeliverAlert { alert_id: alert.id.clone(), event: event.to_owned() };
        let id = task::enqueue(app, tx, &payload, "alert", None).await?;
        match (event, &alert.delivery_id) {
            (deliver::RAISED, _) => stored::set_delivery(tx, &alert.id, &id).await?,
            // The delivery of `raised` may still be pending, and must come first.
            (_, Some(first)) => store::task::set_after(tx, &id, first).await?,
            (_, None) => {}
        }
    }
    Ok(tx.notify(Notice::new(Topic::Alert, &alert.id)).await?)
}

pub async fn list(app: &App, filter: AlertFilter<'_>, sort: Sort, page: Page) -> Result<Listing<Alert>> {
    Ok(stored::list(&app.db, filter, sort, page).await?)
}

/// Acknowledges an alert. A second time changes nothing.
pub async fn ack(app: &App, by: &By, id: &AlertId) -> Result<Alert> {
    let mut tx = app.db.begin().await?;
    let alert = stored::find(&mut tx, id).await?.ok_or(Kind::NotFound)?;
    if stored::ack(&mut tx, id, &by.operator, app.clock.now()).await? {
        let summary = format!("alert acknowledged: {} {}", alert.rule, alert.subject);
        audit::record(app, &mut tx, by, AuditEvent::info(Action::ConfigChange, id, &summary)).await?;
        tx.notify(Notice::new(Topic::Alert, id)).await?;
    }
    tx.commit().await?;
    Ok(stored::find(&app.db, id).await?.ok_or(Kind::NotFound)?)
}

#[cfg(test)]
mod tests {
    use base::Clock;
    use testkit::Database;

    use super::*;

    async fn app() -> (App, Database) {
        let database = Database::sqlite();
        let clock = Clock::manual("2026-11-15T12:00:00Z".parse().unwrap());
        (App::for_tests(database.migrated().await, clock).unwrap(), database)
    }

    #[tokio::test]
    async fn a_state_is_raised_once_and_again_after_its_end() {
        let (app, _database) = app().await;
        let set = async |trouble| set_state(&app, Rule::GatewayDown, "gateway", trouble).await.unwrap();
        assert!(set(Some("down")).await, "it begins");
        assert!(!set(Some("still down")).await, "it is open already");
        assert!(set(None).await, "it ends");
        assert!(!set(None).await, "it ended already");
        assert!(set(Some("down")).await, "it begins again");
    }

    #[tokio::test]
    async fn a_rule_that_is_off_raises_nothing() {
        let (app, _database) = app().await;
        let off = Patch { enabled: false, threshold: None, channel: None };
        set_rule(&app, &By::system(), Rule::GatewayDown.as_str(), off).await.unwrap();
        assert!(!set_state(&app, Rule::GatewayDown, "gateway", Some("down")).await.unwrap());
        assert_eq!(threshold(&app, Rule::GatewayDown).await.unwrap(), None);
    }

    #[tokio::test]
    async fn what_is_not_there_any_more_is_resolved() {
        let (app, _database) = app().await;
        for subject in ["a", "b"] {
            set_state(&app, Rule::BudgetNearLimit, subject, Some("80 %")).await.unwrap();
        }
        let left = HashSet::from(["b".to_owned()]);
        assert_eq!(resolve_others(&app, Rule::BudgetNearLimit, &left).await.unwrap(), 1);
        assert_eq!(open_subjects(&app, Rule::BudgetNearLimit).await.unwrap(), left);
    }

    #[test]
    fn a_threshold_is_a_number_that_its_rule_can_have() {
        assert!(Rule::BudgetNearLimit.check_threshold(100.0).is_ok());
        for (rule, given) in [
            (Rule::BudgetNearLimit, 100.5),
            (Rule::KeyBalanceLow, -1.0),
            (Rule::KeyBalanceLow, f64::NAN),
            (Rule::TaskDead, 1.0),
        ] {
            assert!(rule.check_threshold(given).is_err(), "{rule:?} {given}");
        }
    }
}
