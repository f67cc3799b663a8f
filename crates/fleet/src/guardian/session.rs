//! guardian_session: an instance lists its sessions, and none of them is stuck. A session is stuck if it is marked as
//! running, has no active run, and was last updated more than half an hour ago. It is ended; its messages are kept.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base::{Error, Result, When};
use jiff::SignedDuration;
use openclaw::frame::{Request, Scope, Session};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Dimension, Finding, brief, each_instance};
use crate::App;
use crate::repair::{self, Done};
use crate::rpc::Rpc;
use crate::sweep::{Looked, Member};

pub(super) const DIMENSION: Dimension = Dimension {
    name: "guardian_session",
    label: "Sessions",
    when: When::minutes(5),
    check: |app| Box::pin(check(app)),
};

/// The rule's name in the repair ledger.
pub const STUCK_SESSION: &str = "stuck_session";
const STUCK: SignedDuration = SignedDuration::from_mins(30);
const YOUNG: Duration = Duration::from_secs(90);

async fn check(app: Arc<App>) -> Result<Vec<Finding>> {
    let open = &repair::open_alerts(&app).await?;
    each_instance(&app, brief(), |app, looked, member, answer| async move {
        // An instance that is down or starting is left to the health check.
        if !answer.is_live() || answer.running_for(&looked.sweep.server).is_none_or(|age| age < YOUNG) {
            return vec![];
        }
        match look(&app, &looked, &member, open).await {
            Ok(found) => found,
            Err(error) => {
                vec![Finding::new(&member.instance.id, format!("its sessions cannot be read: {}", error.client))]
            }
        }
    })
    .await
}

#[derive(Deserialize)]
struct List {
    sessions: Vec<Session>,
}

async fn look(app: &App, looked: &Looked, member: &Member, open: &HashSet<String>) -> Result<Vec<Finding>> {
    let instance = &member.instance;
    let mut rpc = Rpc::open(app, &looked.host, instance, Scope::CHAT).await?;
    let stuck = stuck(app, &mut rpc).await?;
    let mut found: Vec<Finding> = vec![];
    for session in &stuck {
        let mut finding = Finding::new(&instance.id, format!("session {} is said to run, and does not", session.key));
        finding.extra = json!({"session": session.key, "updated_at": session.updated_at});
        found.push(finding);
    }
    if stuck.is_empty() {
        repair::over(app, open, &instance.id, STUCK_SESSION).await?;
        return Ok(found);
    }
    let keys: Vec<&str> = stuck.iter().map(|session| session.key.as_str()).collect();
    let before = format!("said to run, and do not: {}", keys.join(", "));
    if repair::allows(app, &instance.id, STUCK_SESSION, &before).await? {
        let began = Instant::now();
        let ended = end(app, &mut rpc, &stuck).await;
        for finding in &mut found {
            if ended.is_over(&finding.extra["session"]) {
                finding.repaired = "ended it".into();
            }
        }
        let left = found.iter().filter(|finding| finding.repaired.is_empty()).count();
        let after = match (left, ended.trouble.as_str()) {
            (0, _) => "none is left".to_owned(),
            (left, "") => format!("{left} of {} are left", found.len()),
            (left, why) => format!("{left} of {} are left: {why}", found.len()),
        };
        let done = Done {
            instance: &instance.id,
            rule: STUCK_SESSION,
            before: &before,
            action: "end the sessions; what was said in them stays",
            after: if left == 0 { Ok(&after) } else { Err(&after) },
            took: began.elapsed(),
        };
        repair::note(app, &done).await?;
    }
    Ok(found)
}

/// The result of ending sessions.
struct Ended {
    over: Vec<String>,
    trouble: String,
}

impl Ended {
    fn is_over(&self, key: &Value) -> bool {
        key.as_str().is_some_and(|key| self.over.iter().any(|over| over == key))
    }
}

/// Ends each session; a failure does not affect the others. A session counts as ended if it is no longer listed as
/// stuck.
async fn end(app: &App, rpc: &mut Rpc, stuck: &[Session]) -> Ended {
    let (mut asked, mut trouble) = (vec![], String::new());
    for session in stuck {
        match rpc.require(|id| Request::chat_abort(id, &session.key, None)).await {
            Ok(()) => asked.push(session.key.clone()),
            Err(silence) => trouble = Error::from(silence).client.into_owned(),
        }
    }
    match self::stuck(app, rpc).await {
        Ok(left) => asked.retain(|key| left.iter().all(|still| still.key != *key)),
        Err(error) => {
            asked.clear();
            trouble = error.client.into_owned();
        }
    }
    Ended { over: asked, trouble }
}

async fn stuck(app: &App, rpc: &mut Rpc) -> Result<Vec<Session>> {
    let list: List = rpc.call(|id| Request::sessions_list(id, None)).await?;
    let before = (app.clock.now() - STUCK).as_millisecond();
    let is_stuck = |session: &Session| {
        session.status.as_deref() == Some("running")
            // A session that does not report this may have an active run.
            && session.has_active_run == Some(false)
            && session.updated_at.is_some_and(|at| at < before)
    };
    Ok(list.sessions.into_iter().filter(is_stuck).collect())
}
