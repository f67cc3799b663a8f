//! An instance's configuration on its server: read, edited as a document, checked by OpenClaw itself, written if nobody else wrote meanwhile,
//! and read again once OpenClaw had it in its hands. A file that cannot be read is never overwritten.

use std::time::Duration;

use base::{Error, Kind, Result};
use jiff::Timestamp;
use openclaw::Version;
use openclaw::config::{self, Validation};
use openclaw::document::{Change, Document, MAX_BYTES, describe};
use openclaw::program;
use queue::audit::{self, Action, AuditEvent};
use remote::host::Command;
use remote::host::file::{self, Expect, Hash, Write};
use store::instance::{self, Runner};

use super::desired::Desired;
use super::{Assistant, cell, install, pending};
use crate::App;
use crate::progress::Progress;

/// How often an edit is made anew because somebody else wrote meanwhile.
const TRIES: usize = 4;
/// OpenClaw's commands take some seconds each.
const VALIDATE: Duration = Duration::from_secs(45);
/// The longest summary of a change, in characters.
const LONGEST_SUMMARY: usize = 2000;

/// What is to be done to a document. Made anew on whatever is there, so it must be the same the second time.
pub type Editing<'a> = &'a (dyn Fn(&mut Document) -> Result<()> + Send + Sync);

pub struct Found {
    pub document: Document,
    hash: Hash,
}

/// The configuration as it is; `None` where there is no file.
pub async fn read(assistant: &Assistant) -> Result<Option<Found>> {
    let Some(home) = assistant.home_if_any() else { return Ok(None) };
    let Some(bytes) = home.read(&assistant.place.config_path(), MAX_BYTES).await? else { return Ok(None) };
    Ok(Some(Found { document: Document::from_bytes(&bytes)?, hash: Hash::of(&bytes) }))
}

/// The configuration on the server as it may be shown, and how it differs from what it should be.
pub struct Look {
    pub version: Version,
    /// Secrets are masked.
    pub masked: serde_json::Value,
    pub hash: String,
    /// Whether it is what we wrote last, to the byte.
    pub untouched: bool,
    /// What writing it would change now.
    pub drift: Vec<Change>,
}

pub async fn look(app: &App, assistant: &Assistant) -> Result<Look> {
    let version = install::of_instance(app, assistant).await?;
    let found = read(assistant).await?.ok_or_else(|| Error::conflict("there is no configuration on the server"))?;
    let drift = Desired::known(app, assistant, &version).await?.changes(&found.document)?;
    let hash = found.document.hash();
    let untouched = hash == assistant.instance.config_hash;
    Ok(Look { version, masked: found.document.masked(), hash, untouched, drift })
}

/// An older version that a write of ours kept beside the configuration.
pub struct Kept {
    /// By which it is asked for.
    pub version: String,
    pub replaced_at: Timestamp,
    pub bytes: u64,
}

/// The versions that are kept, newest first.
pub async fn versions(assistant: &Assistant) -> Result<Vec<Kept>> {
    let kept = assistant.home()?.kept(&assistant.place.config_path()).await?;
    let one = |kept: file::Kept| {
        let replaced_at = kept.stamp.parse().ok()?;
        Some(Kept { version: kept.stamp, replaced_at, bytes: kept.size })
    };
    Ok(kept.into_iter().filter_map(one).collect())
}

/// One of them, secrets masked, and what putting it back would change.
pub struct Past {
    pub kept: Kept,
    pub masked: serde_json::Value,
    pub changes: Vec<Change>,
}

pub async fn version(assistant: &Assistant, version: &str) -> Result<Past> {
    let gone = || Error::new(Kind::NotFound, "no such version is kept");
    let kept = versions(assistant).await?.into_iter().find(|kept| kept.version == version).ok_or_else(gone)?;
    // A write may have taken it away meanwhile.
    let bytes = assistant.home()?.read_kept(&assistant.place.config_path(), &kept.version, MAX_BYTES).await?;
    let bytes = bytes.ok_or_else(gone)?;
    let past = Document::from_bytes(&bytes)?;
    let changes = match read(assistant).await? {
        Some(found) => found.document.diff(&past),
        None => Document::empty().diff(&past),
    };
    Ok(Past { kept, masked: past.masked(), changes })
}

/// What an edit came to.
pub struct Edited {
    /// What changed, for a log or an audit entry: secrets are masked.
    pub summary: String,
    /// Whether the file was written, by this worker or by one that went away before it could say so.
    pub written: bool,
}

/// Edits the configuration. What would not be valid is not written, nor is anything of an instance that is only observed.
pub async fn edit(app: &App, assistant: &Assistant, version: &Version, change: Editing<'_>) -> Result<Edited> {
    if !assistant.instance.is_managed() {
        return Err(remote::host::Error::OnlyObserved.into());
    }
    for _ in 0..TRIES {
        let found = read(assistant).await?;
        let (before, expect) = match found {
            Some(found) => (found.document, Expect::Unchanged(found.hash)),
            None => (Document::empty(), Expect::Absent),
        };
        let mut after = before.clone();
        let changes = config::edit(&mut after, version, change)?;
        if changes.is_empty() && expect != Expect::Absent {
            let summary = pending::of(app, assistant).await?.unrecorded;
            if summary.is_empty() {
                return Ok(Edited { summary: "the configuration is as it should be".into(), written: false });
            }
            instance::set_config_hash(&app.db, &assistant.id(), &before.hash()).await?;
            return Ok(Edited { summary, written: true });
        }
        refuse_doubtful(&before, &after)?;
        // What OpenClaw had in its hands last and nobody touched since was valid.
        let was_valid = before.hash() == assistant.instance.config_hash;
        if !(was_valid && config::is_routine(&changes)) {
            require_valid(assistant, version, &after).await?;
        }
        let summary = format!("configuration: {}", describe(&changes, LONGEST_SUMMARY));
        let recorded = pending::of(app, assistant).await?;
        let summary = pending::writing(app, assistant, &recorded, &before.hash(), &changes, &summary).await?;
        let (path, text) = (assistant.place.config_path(), after.text().as_bytes().to_vec());
        match assistant.home()?.write(Write::new(path, text, expect)).await {
            Ok(_) => {
                instance::set_config_hash(&app.db, &assistant.id(), &after.hash()).await?;
                return Ok(Edited { summary, written: true });
            }
            Err(error) => {
                if error.is_undone() {
                    pending::not_written(app, assistant, &recorded).await?;
                }
                if !matches!(error, remote::host::Error::ChangedMeanwhile { .. }) {
                    return Err(error.into());
                }
            }
        }
    }
    Err(Error::conflict("somebody else keeps changing the configuration"))
}

/// Refuses what OpenClaw would take for a damaged file, and replace by an older one.
pub fn refuse_doubtful(before: &Document, after: &Document) -> Result<()> {
    let Some(doubt) = config::doubt(before, after) else { return Ok(()) };
    let why = format!("OpenClaw would take the new configuration for damaged: {doubt:?}");
    Err(Error::conflict("the configuration would lose too much at once").with_operator(why))
}

/// Edits the configuration as a step of a task: what changed stands in its log and in the audit log.
pub async fn change(
    progress: &impl Progress,
    assistant: &Assistant,
    version: &Version,
    change: Editing<'_>,
) -> Result<Edited> {
    let edited = edit(progress.app(), assistant, version, change).await?;
    progress.log(&edited.summary).await?;
    if edited.written {
        record(progress, assistant, &edited.summary).await?;
    }
    Ok(edited)
}

/// Records in the audit log what was written.
pub async fn record(progress: &impl Progress, assistant: &Assistant, summary: &str) -> Result<()> {
    let by = progress.by();
    let mut tx = progress.app().db.begin().await?;
    let event = AuditEvent::info(Action::InstanceUpdate, &assistant.instance.id, summary);
    audit::record(progress.app(), &mut tx, &by, event).await?;
    store::reconcile::set_recorded(&mut tx, &assistant.id()).await?;
    Ok(tx.commit().await?)
}

/// What a task before this one wrote, and did not record in the audit log.
pub async fn unrecorded(app: &App, assistant: &Assistant) -> Result<Option<String>> {
    Ok(Some(pending::of(app, assistant).await?.unrecorded).filter(|summary| !summary.is_empty()))
}

/// Whether the edit is still there after OpenClaw had the file: it may have put an older one in its place.
pub async fn confirm(app: &App, assistant: &Assistant, version: &Version, change: Editing<'_>) -> Result<()> {
    let found = read(assistant).await?.ok_or_else(|| Error::conflict("the configuration is gone"))?;
    let mut again = found.document.clone();
    let lost = config::edit(&mut again, version, change)?;
    if !lost.is_empty() {
        let summary = describe(&lost, LONGEST_SUMMARY);
        return Err(Error::conflict("OpenClaw put an older configuration in the place of ours").with_operator(summary));
    }
    // It adds what it keeps about the file: that is not drift.
    Ok(instance::set_config_hash(&app.db, &assistant.id(), &found.document.hash()).await?)
}

/// Has OpenClaw itself look at a configuration, aside, so that nothing of the instance is touched. `None` where its program is not ours.
pub async fn validate(assistant: &Assistant, version: &Version, document: &Document) -> Result<Option<Validation>> {
    let script = Command::script("validate-config", &[program::VALIDATE]);
    // A container has a program of its own.
    let program = match assistant.instance.runner {
        Runner::Container => program::NAME.to_owned(),
        _ => install::program(version),
    };
    let output = cell::run(assistant, script.arg(program).stdin(document.text()).limit(VALIDATE)).await?;
    match output.status {
        0 => Validation::parse(&output.text())
            .map(Some)
            .map_err(|error| error.with_operator(format_args!("it printed: {}", output.complaint()))),
        3 => Ok(None),
        _ => Err(output.ok("openclaw config validate").map_or_else(Error::from, |_| Error::from(Kind::Internal))),
    }
}

pub async fn require_valid(assistant: &Assistant, version: &Version, document: &Document) -> Result<()> {
    let Some(validation) = validate(assistant, version, document).await? else { return Ok(()) };
    if validation.valid {
        return Ok(());
    }
    let issue = |issue: &config::Issue| format!("{}: {}", issue.path, issue.message);
    let issues: Vec<String> = validation.issues.iter().take(10).map(issue).collect();
    let summary: String = issues.join("; ").chars().filter(|c| !c.is_control()).take(600).collect();
    Err(Error::conflict(format!("OpenClaw refuses the configuration: {summary}")))
}
