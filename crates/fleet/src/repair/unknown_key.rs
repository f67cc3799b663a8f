//! Rule 4: the configuration has keys that this release does not know. Those that `config validate` itself names are deleted, until
//! it is valid; never what a log line names, and never by OpenClaw's doctor, which would put an older file in its place.

use base::{Error, Result};
use openclaw::Document;
use openclaw::config::{Validation, remove_unknown};
use openclaw::rule::{Finding, Rule};

use super::{Case, Handler, Remedy, Verdict};
use crate::assistant::pending::{self, Pending};
use crate::assistant::{config, service};
use crate::reconcile::step::{self, Step};
use crate::task::Context;

pub(super) const HANDLER: Handler = Handler {
    rule: Rule::UnknownKey,
    plan: "delete the keys that OpenClaw does not know, restart where it is down",
    confirm: |case, finding| Box::pin(confirm(case, finding)),
    remedy: Remedy::Own(|context, case| Box::pin(repair(context, case))),
};

/// Keys of a channel are named only when no others are left.
const ROUNDS: usize = 10;

async fn confirm(case: &Case<'_>, _: Option<&Finding>) -> Result<Verdict> {
    let Some(document) = case.document else { return Ok(Verdict::Refuted) };
    let Some(validation) = config::validate(case.assistant, case.version, document).await? else {
        return Ok(Verdict::LeftToPeople("its OpenClaw was not installed by the platform and cannot be asked".into()));
    };
    if validation.valid {
        return Ok(Verdict::Refuted);
    }
    let removal = remove_unknown(&mut document.clone(), &validation)?;
    let keys: Vec<String> = removal.removed.iter().map(ToString::to_string).collect();
    Ok(if keys.is_empty() {
        let issues: Vec<String> =
            validation.issues.iter().take(5).map(|i| format!("{}: {}", i.path, i.message)).collect();
        Verdict::LeftToPeople(format!("the configuration is not valid: {}", issues.join("; ")))
    } else {
        Verdict::Confirmed(format!("OpenClaw does not know: {}", keys.join(", ")))
    })
}

async fn repair(context: &Context, case: &Case<'_>) -> Result<String> {
    let document = case.document.ok_or_else(|| Error::conflict("the configuration is gone"))?;
    let (mut rounds, mut removed): (Vec<Validation>, Vec<String>) = (vec![], vec![]);
    let mut trial = document.clone();
    loop {
        let validation = config::validate(case.assistant, case.version, &trial).await?;
        let validation = validation.ok_or_else(|| Error::conflict("its OpenClaw cannot be asked"))?;
        if validation.valid {
            break;
        }
        let removal = remove_unknown(&mut trial, &validation)?;
        if removal.removed.is_empty() || rounds.len() >= ROUNDS {
            return Err(Error::conflict("the configuration is not valid for another reason than unknown keys"));
        }
        removed.extend(removal.removed.iter().map(ToString::to_string));
        rounds.push(validation);
    }
    let edit = |document: &mut Document| {
        rounds.iter().try_for_each(|validation| remove_unknown(document, validation).map(drop))
    };
    let before = pending::of(case.app, case.assistant).await?.pending;
    pending::set_start_if_down(case.app, case.assistant).await?;
    // Written without the wait for a reload: one that is down has none, and the restart tells.
    config::change(context, case.assistant, case.version, &edit).await?;
    let state = service::state(case.assistant).await?;
    if !state.is_running() {
        step::serve(context, case.assistant, Step::Start).await?;
    }
    config::confirm(case.app, case.assistant, case.version, &edit).await?;
    // One that runs has never had these keys: there is nothing for it to take over.
    if !before.is_start() {
        pending::set(case.app, case.assistant, Pending::Nothing).await?;
    }
    Ok(format!("deleted {}", removed.join(", ")))
}
