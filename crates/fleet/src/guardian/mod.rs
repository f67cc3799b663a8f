//! The guardian: dimensions, one file each, that check periodically whether database, hosts and gateway agree.
//! Findings are stored as events; a few of them are repaired at once.

mod binding;
mod bot_token;
mod gateway;
mod inst_auth;
mod inst_logs;
mod models_check;
mod port;
mod process_check;
mod session;
mod webchat;

use std::sync::Arc;

use base::{Kind, Listing, Page, Result, Sort, When};
use futures_util::future::BoxFuture;
use futures_util::{StreamExt as _, stream};
use openclaw::Document;
use openclaw::sweep::{Answer, ConfigFile, Limits};
use queue::job::Job;
use serde_json::{Value, json};
use store::guardian::{self, Check};
pub use store::guardian::{Event, EventFilter, SORTABLE, State, Status};
use store::job_run::{self, JobRun};
use store::notice::{Notice, Topic};

use crate::App;
use crate::assistant::{Assistant, config};
use crate::sweep::{self, Looked, Member, Post, Since};
pub use session::STUCK_SESSION;
pub use webchat::Webchat;

/// One line of the list of dimensions.
pub struct Dimension {
    pub name: &'static str,
    /// The name that people see.
    pub label: &'static str,
    pub when: When,
    check: fn(Arc<App>) -> BoxFuture<'static, Result<Vec<Finding>>>,
}

/// Every dimension: those of the spec in its order, then ours.
pub const DIMENSIONS: &[Dimension] = &[
    gateway::DIMENSION,
    inst_auth::DIMENSION,
    session::DIMENSION,
    webchat::DIMENSION,
    port::DIMENSION,
    inst_logs::DIMENSION,
    bot_token::DIMENSION,
    models_check::DIMENSION,
    process_check::DIMENSION,
    binding::DIMENSION,
];

/// What a dimension saw: as a rule something that is not as it should be.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The id of the instance or server, or another name of what it is about.
    pub target: String,
    /// Empty if it is as it should be, and only recorded.
    pub problem: String,
    /// The action that repaired it; empty if it was not repaired.
    pub repaired: String,
    pub extra: Value,
}

impl Finding {
    fn new(target: &str, problem: impl Into<String>) -> Finding {
        Finding { target: target.to_owned(), problem: problem.into(), repaired: String::new(), extra: json!({}) }
    }

    /// Something that is as it should be, with its evidence.
    fn passed(target: &str, extra: Value) -> Finding {
        Finding { extra, ..Finding::new(target, "") }
    }
}

/// How many findings of one run are stored.
const MOST: usize = 200;

/// Runs the dimension of this name and stores its findings; returns a summary.
pub async fn run(app: Arc<App>, name: &str) -> Result<String> {
    let dimension = DIMENSIONS.iter().find(|dimension| dimension.name == name).ok_or(Kind::NotFound)?;
    let (passed, findings): (Vec<Finding>, Vec<Finding>) =
        (dimension.check)(app.clone()).await?.into_iter().partition(|finding| finding.problem.is_empty());
    let now = app.clock.now();
    let event = |target: &str, status, problem: &str, action: &str, extra: &Value| Event {
        id: 0,
        dimension: dimension.name.to_owned(),
        target_id: target.to_owned(),
        status,
        problem: problem.chars().take(1000).collect(),
        action_taken: action.to_owned(),
        extra: extra.to_string(),
        created_at: now,
    };
    let left = findings.iter().filter(|finding| finding.repaired.is_empty()).count();
    let mut tx = app.db.begin().await?;
    if findings.is_empty() && passed.is_empty() {
        guardian::write(&mut tx, &event("all", Status::Success, "", "", &json!({}))).await?;
    }
    for finding in passed.iter().take(MOST) {
        guardian::write(&mut tx, &event(&finding.target, Status::Success, "", "", &finding.extra)).await?;
    }
    for finding in findings.iter().take(MOST) {
        let mut extra = finding.extra.clone();
        extra["repaired"] = (!finding.repaired.is_empty()).into();
        let written = event(&finding.target, Status::Failed, &finding.problem, &finding.repaired, &extra);
        guardian::write(&mut tx, &written).await?;
    }
    let status = match (findings.len(), left) {
        (0, _) => State::Healthy,
        (_, 0) => State::Warning,
        _ => State::Abnormal,
    };
    guardian::set_check(&mut tx, &Check { dimension: dimension.name.to_owned(), status, checked_at: now }).await?;
    tx.notify(Notice::new(Topic::Guardian, dimension.name)).await?;
    tx.commit().await?;
    Ok(match findings.first() {
        None => "nothing found".into(),
        Some(first) => format!("{} found, {left} left; {}: {}", findings.len(), first.target, first.problem),
    })
}

/// The state of a dimension, with the number of its events of today.
pub struct Standing {
    pub dimension: &'static Dimension,
    pub state: State,
    pub success: i64,
    pub failed: i64,
    pub checked_at: Option<jiff::Timestamp>,
}

/// Everything that GET /guardian/stats returns.
pub struct Stats {
    pub standings: Vec<Standing>,
    /// The latest run of every job that ran.
    pub runs: Vec<(&'static Job<App>, JobRun)>,
}

pub async fn stats(app: &App, jobs: &'static [Job<App>]) -> Result<Stats> {
    let counts = guardian::counts(&app.db, app.zone.midnight(app.clock.now())).await?;
    let checks = guardian::checks(&app.db).await?;
    let count = |name: &str, status: Status| {
        counts.iter().filter(|c| c.dimension == name && c.status == status).map(|c| c.n).sum()
    };
    let standing = |dimension: &'static Dimension| {
        let check = checks.iter().find(|check| check.dimension == dimension.name);
        Standing {
            dimension,
            state: check.map_or(State::Unknown, |check| check.status),
            success: count(dimension.name, Status::Success),
            failed: count(dimension.name, Status::Failed),
            checked_at: check.map(|check| check.checked_at),
        }
    };
    let mut runs = vec![];
    for job in jobs {
        if let Some(run) = job_run::latest(&app.db, job.name).await? {
            runs.push((job, run));
        }
    }
    Ok(Stats { standings: DIMENSIONS.iter().map(standing).collect(), runs })
}

pub async fn events(app: &App, filter: EventFilter<'_>, sort: Sort, page: Page) -> Result<Listing<Event>> {
    Ok(guardian::list(&app.db, filter, sort, page).await?)
}

/// How many instances of one server are checked at the same time.
const TALKS: usize = 8;

/// Checks every instance that is on its server and that no task is working on. An unreachable server that has instances
/// is one finding; its instances are skipped.
async fn each_instance<F, R>(app: &Arc<App>, limits: Limits, look: F) -> Result<Vec<Finding>>
where
    F: Fn(Arc<App>, Arc<Looked>, Member, Answer) -> R + Copy + Send + Sync,
    R: Future<Output = Vec<Finding>> + Send,
{
    let posts = sweep::fleet(app).await?;
    let limits = &limits;
    let found = sweep::everywhere(app, posts, |app, post: Post| async move {
        if post.instances.iter().all(|member| !member.is_there()) {
            return vec![];
        }
        let looked = match sweep::look(&app, &post, limits, Since::End).await {
            Ok(looked) => Arc::new(looked),
            Err(error) => {
                return vec![Finding::new(&post.server.id, format!("the server cannot be reached: {}", error.client))];
            }
        };
        let mut asks = vec![];
        for (number, member) in post.instances.iter().enumerate() {
            if let Some(answer) = looked.of(number).filter(|_| !member.busy) {
                asks.push(look(app.clone(), looked.clone(), member.clone(), answer.clone()));
            }
        }
        stream::iter(asks).buffer_unordered(TALKS).collect::<Vec<_>>().await.concat()
    })
    .await;
    Ok(found.concat())
}

/// The limits of a sweep that reads no logs.
fn brief() -> Limits {
    sweep::brief()
}

/// Reads the configuration of an instance if it differs from what we wrote last.
async fn document(app: &App, member: &Member, answer: &Answer) -> Result<Option<Document>> {
    match &answer.config {
        Some(ConfigFile::Content { sha256, .. }) if *sha256 != member.instance.config_hash => {}
        _ => return Ok(None),
    }
    read(app, member).await
}

/// The same without a comparison with what we wrote last.
async fn read(app: &App, member: &Member) -> Result<Option<Document>> {
    let assistant = Assistant::open(app, &member.instance.id).await?;
    Ok(config::read(&assistant).await?.map(|found| found.document))
}
