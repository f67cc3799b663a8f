//! guardian_session: an instance tells its sessions, and none of them is stuck: said to be running, without a run, for half an hour.
//! Such a one is ended, which keeps what was said in it.

use std::sync::Arc;
use std::time::Duration;

use base::{Error, Result, When};
use jiff::SignedDuration;
use openclaw::frame::{Request, Scope, Session};
use serde::Deserialize;
use serde_json::json;

use super::{Dimension, Finding, brief, each_instance};
use crate::App;
use crate::health::rpc::Rpc;
use crate::health::sweep::{Looked, Member};

pub(super) const DIMENSION: Dimension = Dimension {
    name: "guardian_session",
    label: "Sessions",
    when: When::minutes(5),
    check: |app| Box::pin(check(app)),
};

const STUCK: SignedDuration = SignedDuration::from_mins(30);
const YOUNG: Duration = Duration::from_secs(90);

async fn check(app: Arc<App>) -> Result<Vec<Finding>> {
    each_instance(&app, brief(), |app, looked, member, answer| async move {
        // One that is down or starting is the health check's.
        if !answer.is_live() || answer.running_for(&looked.sweep.server).is_none_or(|age| age < YOUNG) {
            return vec![];
        }
        match look(&app, &looked, &member).await {
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

async fn look(app: &App, looked: &Looked, member: &Member) -> Result<Vec<Finding>> {
    let instance = &member.instance;
    let port = u16::try_from(instance.gateway_port).map_err(Error::internal)?;
    let token = instance.token(&app.sealer)?;
    let mut rpc = Rpc::open(&looked.host, port, &token, Scope::CHAT).await?;
    let stuck = stuck(app, &mut rpc).await?;
    let mut found = vec![];
    for session in &stuck {
        rpc.call(|id| Request::chat_abort(id, &session.key, None)).await?;
        let mut finding = Finding::new(&instance.id, format!("session {} is said to run, and does not", session.key));
        finding.extra = json!({"session": session.key, "updated_at": session.updated_at});
        found.push(finding);
    }
    if !stuck.is_empty() {
        let left = self::stuck(app, &mut rpc).await?;
        for (finding, session) in found.iter_mut().zip(&stuck) {
            if left.iter().all(|still| still.key != session.key) {
                finding.repaired = "ended it".into();
            }
        }
    }
    Ok(found)
}

async fn stuck(app: &App, rpc: &mut Rpc) -> Result<Vec<Session>> {
    let answer = rpc.call(|id| Request::sessions_list(id, None)).await?;
    let list = List::deserialize(&answer)
        .map_err(|e| Error::new(base::Kind::Gateway, "its answer makes no sense").with_operator(e))?;
    let before = (app.clock.now() - STUCK).as_millisecond();
    let is_stuck = |session: &Session| {
        session.status.as_deref() == Some("running")
            && session.has_active_run != Some(true)
            && session.updated_at.is_some_and(|at| at < before)
    };
    Ok(list.sessions.into_iter().filter(is_stuck).collect())
}
