//! The scan: what is new in the logs of all instances, and how their ports and configurations are, held against the rules.
//!
//! How far a log was read is written together with what was found in it, and only if nobody else has read on since: no line
//! counts twice, and none is passed over.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use base::Result;
use base::id::InstanceId;
use jiff::Timestamp;
use openclaw::log::Line;
use openclaw::rule::{Confidence, Evidence, Expected, Finding, RULES, Rule};
use openclaw::sweep::{Answer, ConfigFile, Limits};
use queue::audit::{self, Action, AuditEvent, By};
use store::instance::{self, Health, Instance};
use store::notice::{Notice, Topic};
use store::{Tx, chat_binding, instance_health, repair};

use super::{Begun, Case, HANDLERS, Handler, Remedy, Verdict, begin, open, tell};
use crate::assistant::config;
use crate::sweep::{self, Looked, Member, Post, Since};
use crate::{App, tenant};

/// The journal is read this far back at least, and at most.
const WINDOW: Duration = Duration::from_secs(300);
const LONGEST: i64 = 3600;
/// What a log may have grown by since the last scan without anything being passed over.
const LOG: u64 = 512 * 1024;

/// Something that would be repaired, or told.
#[derive(Clone, Debug)]
pub struct Planned {
    pub instance_id: InstanceId,
    pub rule: Rule,
    pub before: String,
    pub plan: String,
}

/// What a scan came to.
#[derive(Clone, Debug, Default)]
pub struct Scanned {
    pub instances: usize,
    pub away: Vec<String>,
    pub begun: Vec<String>,
    pub alerted: Vec<String>,
}

/// Scans the whole fleet and begins what is to be repaired.
pub async fn scan(app: &Arc<App>) -> Result<Scanned> {
    repair::abandon(&app.db, app.clock.now()).await?;
    let open = &super::open_alerts(app).await?;
    let posts = sweep::fleet(app).await?;
    let scanned = sweep::everywhere(app, posts, |app, post| async move { scan_server(&app, &post, open).await }).await;
    let mut all = Scanned::default();
    for part in scanned {
        all.instances += part.instances;
        all.away.extend(part.away);
        all.begun.extend(part.begun);
        all.alerted.extend(part.alerted);
    }
    Ok(all)
}

/// What a scan would do.
#[derive(Clone, Debug, Default)]
pub struct Preview {
    pub planned: Vec<Planned>,
    /// What could not be looked at, and why: servers and instances.
    pub unseen: Vec<String>,
}

/// What a scan would do now; nothing is changed, and no log counts as read.
pub async fn preview(app: &Arc<App>, only: Option<InstanceId>) -> Result<Preview> {
    let mut posts = sweep::fleet(app).await?;
    if let Some(only) = only {
        for post in &mut posts {
            post.instances.retain(|member| member.instance.id == only);
        }
        posts.retain(|post| !post.instances.is_empty());
    }
    let parts = sweep::everywhere(app, posts, |app, post| async move {
        let mut seen = Preview::default();
        if post.instances.is_empty() {
            return seen;
        }
        let looked = match sweep::look(&app, &post, &limits(&app, &post), Since::Scan).await {
            Ok(looked) => looked,
            Err(error) => {
                seen.unseen.push(format!("{}: {}", post.server.name, error.client));
                return seen;
            }
        };
        for (number, member) in post.instances.iter().enumerate() {
            let id = &member.instance.id;
            let Some(look) = examine(&app, &looked, number, member, &HashSet::new()).await else {
                let why = if member.busy { "a task is at work on it" } else { "the server said nothing about it" };
                if member.instance.is_managed() {
                    seen.unseen.push(format!("{id}: {why}"));
                }
                continue;
            };
            seen.unseen.extend(look.unsure.iter().map(|why| format!("{id}: {why}")));
            if !look.complete {
                seen.unseen.push(format!("{id}: the server's answer about it was cut off"));
            }
            for found in look.found {
                let (before, plan) = match found.verdict {
                    Verdict::Confirmed(seen) => (seen, found.handler.plan.to_owned()),
                    Verdict::LeftToPeople(why) => (why, "tell somebody".to_owned()),
                    Verdict::Refuted => continue,
                };
                seen.planned.push(Planned { instance_id: id.clone(), rule: found.handler.rule, before, plan });
            }
        }
        seen
    })
    .await;
    let mut all = Preview::default();
    for part in parts {
        all.planned.extend(part.planned);
        all.unseen.extend(part.unseen);
    }
    Ok(all)
}

fn limits(app: &App, post: &Post) -> Limits {
    let now = app.clock.now().as_millisecond();
    let oldest =
        post.instances.iter().filter_map(|m| m.known.as_ref()).map(|k| k.journal_at).filter(|at| *at > 0).min();
    let since = oldest.map_or(0, |at| ((now - at) / 1000 + 30).clamp(0, LONGEST));
    let journal = WINDOW.max(Duration::from_secs(since.unsigned_abs()));
    Limits { log_bytes: LOG, journal, ..Limits::default() }
}

async fn scan_server(app: &App, post: &Post, open: &HashSet<String>) -> Scanned {
    let mut scanned = Scanned { instances: post.instances.len(), ..Scanned::default() };
    if post.instances.is_empty() {
        return scanned;
    }
    let looked = match sweep::look(app, post, &limits(app, post), Since::Scan).await {
        Ok(looked) => looked,
        Err(error) => {
            scanned.away.push(format!("{}: {}", post.server.name, error.client));
            return scanned;
        }
    };
    for (number, member) in post.instances.iter().enumerate() {
        let Some(look) = examine(app, &looked, number, member, open).await else { continue };
        if let Err(error) = act(app, member, look, &mut scanned).await {
            tracing::warn!(instance = %member.instance.id, %error, "what a scan found could not be written down; it is read again");
        }
    }
    scanned
}

/// A finding with what the second look said.
struct Found {
    handler: &'static Handler,
    verdict: Verdict,
}

struct Look {
    found: Vec<Found>,
    /// Rules that somebody was told of, and whose case is over.
    over: Vec<Rule>,
    /// Second looks that failed, and why: what they were about is to be read again.
    unsure: Vec<String>,
    /// Whether the server's answer came to its end.
    complete: bool,
    /// Where the next look begins.
    inode: i64,
    offset: i64,
    journal_at: i64,
    live: bool,
}

/// Everything that is found about one instance; `None` where it was not looked at. `open` are the subjects of open alerts.
async fn examine(app: &App, looked: &Looked, number: usize, member: &Member, open: &HashSet<String>) -> Option<Look> {
    // Nothing is repaired of what is only observed.
    if member.busy || !member.instance.is_managed() {
        return None;
    }
    let answer = looked.of(number)?;
    let server = &looked.sweep.server;
    let now = server.time.and_then(|s| Timestamp::from_second(s).ok()).unwrap_or_else(|| app.clock.now());
    let journal_at = member.known.as_ref().map_or(0, |known| known.journal_at);
    let mut lines: Vec<Line> = answer.log.iter().flat_map(|tail| tail.lines.iter().cloned()).collect();
    lines.extend(answer.journal.iter().cloned());
    let document = document(app, member, answer).await;
    let bot = chat_binding::of_instance(&app.db, &member.instance.id).await.unwrap_or_default();
    let expected = Expected {
        runner: tenant::runner(&member.instance).ok()?,
        bind: tenant::bind(&member.instance),
        bot: bot.iter().any(|binding| binding.is_active && binding.platform == "telegram"),
    };
    let evidence = Evidence {
        now,
        lines: &lines,
        document: document.as_ref(),
        state: Some((server, answer)),
        expected: &expected,
    };
    let (mut found, mut unsure) = (vec![], vec![]);
    for (rule, detect) in RULES {
        let Some(finding) = detect(&evidence) else { continue };
        // The journal's last minutes are read anew each time: what was found there before is not news.
        let old = |finding: &Finding| {
            finding.confidence != Confidence::Logged
                && finding.time.is_some_and(|time| time.as_millisecond() <= journal_at)
        };
        let Some(handler) = HANDLERS.iter().find(|handler| handler.rule == *rule && !old(&finding)) else { continue };
        match confirm(app, member, handler, Some(&finding)).await {
            Ok(verdict) => found.push(Found { handler, verdict }),
            Err(error) => {
                tracing::warn!(instance = %member.instance.id, rule = rule.as_str(), %error, "the second look failed");
                unsure.push(format!("{}: the second look failed: {}", rule.as_str(), error.client));
            }
        }
    }
    let over = if answer.complete { over(app, member, &found, open).await } else { vec![] };
    let mark = answer.log.as_ref().map_or_else(|| member.mark(), |tail| tail.mark);
    Some(Look {
        found,
        over,
        unsure,
        complete: answer.complete,
        inode: mark.inode as i64,
        offset: i64::try_from(mark.offset).unwrap_or(0),
        // The journal comes last: of an answer that was cut off it may be missing.
        journal_at: if answer.complete { now.as_millisecond() } else { journal_at },
        live: answer.is_live(),
    })
}

/// The configuration, read only where it is not what we wrote last: that has none of the rules' cases.
async fn document(app: &App, member: &Member, answer: &Answer) -> Option<openclaw::Document> {
    match &answer.config {
        Some(ConfigFile::Content { sha256, .. }) if *sha256 != member.instance.config_hash => {}
        _ => return None,
    }
    let assistant = crate::assistant::Assistant::open(app, &member.instance.id).await.ok()?;
    Some(config::read(&assistant).await.ok()??.document)
}

/// What somebody was told of and a look says now is not so any more. Out of memory ends with the process that was.
async fn over(app: &App, member: &Member, found: &[Found], open: &HashSet<String>) -> Vec<Rule> {
    let mut over = vec![];
    for handler in HANDLERS {
        let rule = handler.rule;
        let is_open = open.contains(&super::subject(&member.instance.id, rule.as_str()));
        let seen = found.iter().any(|found| found.handler.rule == rule && !matches!(found.verdict, Verdict::Refuted));
        if !is_open || seen || rule == Rule::OutOfMemory {
            continue;
        }
        match confirm(app, member, handler, None).await {
            Ok(Verdict::Refuted) => over.push(rule),
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(instance = %member.instance.id, rule = rule.as_str(), %error, "whether it is over is not known");
            }
        }
    }
    over
}

async fn confirm(app: &App, member: &Member, handler: &Handler, finding: Option<&Finding>) -> Result<Verdict> {
    let (assistant, version) = open(app, &member.instance.id).await?;
    let document = config::read(&assistant).await?.map(|found| found.document);
    let case = Case { app, assistant: &assistant, version: &version, document: document.as_ref() };
    (handler.confirm)(&case, finding).await
}

/// Writes down what was found, begins repairs, and says how far was read: all of it, or nothing.
async fn act(app: &App, member: &Member, look: Look, scanned: &mut Scanned) -> Result<()> {
    let id = member.instance.id.clone();
    let mut tx = app.db.begin().await?;
    let Some(instance) = instance::lock(&mut tx, &id).await? else { return Ok(()) };
    let known = instance_health::find(&mut tx, &id).await?;
    let at = known.as_ref().map_or((0, 0), |known| (known.log_inode, known.log_offset));
    let mark = member.mark();
    if at != (mark.inode as i64, i64::try_from(mark.offset).unwrap_or(0)) {
        // Another scan was here in between.
        return Ok(());
    }
    // What is to be repaired first: while it cannot be begun, everything that was read is to be read again.
    let mut again = !look.unsure.is_empty();
    for found in &look.found {
        let rule = found.handler.rule;
        match &found.verdict {
            _ if matches!(found.handler.remedy, Remedy::LeftToPeople) => {}
            Verdict::Refuted => {}
            Verdict::LeftToPeople(why) => {
                tell(app, &mut tx, &instance.id, rule.as_str(), why, why).await?;
                scanned.alerted.push(format!("{} {}", instance.id, rule.as_str()));
            }
            Verdict::Confirmed(seen) => {
                match begin(app, &mut tx, &instance.id, rule.as_str(), seen, found.handler.plan).await? {
                    Begun::Yes => scanned.begun.push(format!("{} {}", instance.id, rule.as_str())),
                    Begun::Spent => scanned.alerted.push(format!("{} {}", instance.id, rule.as_str())),
                    Begun::Running | Begun::Held => again = true,
                }
            }
        }
    }
    for rule in &look.over {
        super::resolve(app, &mut tx, &instance.id, rule.as_str()).await?;
    }
    if !again {
        set_state(app, &mut tx, &instance, &look, scanned).await?;
        instance_health::set_mark(&mut tx, &instance.id, look.inode, look.offset, look.journal_at).await?;
    }
    Ok(tx.commit().await?)
}

/// The rules that only change what an instance's state is said to be.
async fn set_state(app: &App, tx: &mut Tx, instance: &Instance, look: &Look, scanned: &mut Scanned) -> Result<()> {
    let mut status = instance.health_status;
    let mut limited = false;
    for found in &look.found {
        let rule = found.handler.rule;
        let (Verdict::Confirmed(seen) | Verdict::LeftToPeople(seen)) = &found.verdict else { continue };
        let why = match rule {
            Rule::OutOfMemory => {
                // From when it is known: the process that systemd starts in its place at once has the same memory.
                instance_health::set_memory_out(&mut *tx, &instance.id, Some(app.clock.now())).await?;
                status = Health::Unhealthy;
                "it ran out of memory: give it more, or find out why"
            }
            Rule::RateLimited => {
                limited = true;
                if status != Health::Unhealthy {
                    status = Health::RateLimited;
                }
                "the model provider's rate limit was reached"
            }
            _ => continue,
        };
        tell(app, tx, &instance.id, rule.as_str(), seen, why).await?;
        scanned.alerted.push(format!("{} {}", instance.id, rule.as_str()));
    }
    if look.complete && !limited && status == Health::RateLimited {
        status = if look.live { Health::Healthy } else { Health::Unknown };
        super::resolve(app, tx, &instance.id, Rule::RateLimited.as_str()).await?;
        let summary = format!("{} → {}: the rate limit is over", Health::RateLimited.as_str(), status.as_str());
        audit::record(app, tx, &By::system(), AuditEvent::info(Action::InstanceHealth, &instance.id, &summary)).await?;
    }
    if status != instance.health_status {
        instance::set_health(&mut *tx, &instance.id, status, instance.health_fail_count, app.clock.now()).await?;
        tx.notify(Notice::new(Topic::Instance, &instance.id)).await?;
    }
    Ok(())
}
