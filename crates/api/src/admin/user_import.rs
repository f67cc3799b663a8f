//! The import of employees from a CSV file, and its dry run.

use base::Secret;
use people::user_import::{self, Assignment, Change, Effect, Line};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::envelope::Data;
use crate::extract::{Admin, Answer, Body, State};
use crate::state::Shared;
use crate::words::{ImportField, ImportReason};

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default().routes(routes!(import))
}

#[derive(Deserialize, ToSchema)]
pub struct ImportFile {
    /// The text of the file: at most 512 KiB and 2,000 lines after the first.
    #[schema(value_type = String, max_length = 524_288, example = "email,name,department,quota,profession\nada@example.com,Ada Lovelace,Research,100000,data-analyst\n")]
    csv: Secret,
    /// true: nothing is changed, and the answer says what an import would do.
    dry_run: bool,
}

#[derive(Serialize, ToSchema)]
pub struct ImportResult {
    dry_run: bool,
    summary: ImportSummary,
    /// The columns of the file that are not used.
    ignored_columns: Vec<String>,
    /// In the order of the file. Empty lines are left out.
    lines: Vec<ImportLine>,
}

/// How many lines do what. Each line is counted once by `create`, `update`, `unchanged` or `refuse`.
#[derive(Default, Serialize, ToSchema)]
pub struct ImportSummary {
    create: usize,
    update: usize,
    unchanged: usize,
    refuse: usize,
    /// Lines that give an instance of a profession.
    assign: usize,
}

#[derive(Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImportAction {
    Create,
    Update,
    Unchanged,
    Refuse,
}

#[derive(Serialize, ToSchema)]
pub struct ImportLine {
    /// The number of the line in the file; the first line, which names the columns, is 1.
    #[schema(example = 2)]
    line: u64,
    /// As the file writes it.
    #[schema(example = "ada@example.com")]
    email: String,
    /// What the line does, or did. A refused line changes nothing.
    action: ImportAction,
    /// The fields that get a value, or another one.
    changes: Vec<ImportChange>,
    /// The profession that the line names.
    profession: Option<ImportAssignment>,
    /// The line has a password, which is not used, because the account exists.
    password_ignored: bool,
    /// Why the line is refused.
    refusal: Option<ImportRefusal>,
}

#[derive(Serialize, ToSchema)]
pub struct ImportChange {
    field: ImportField,
    /// null for a new account, and for a password.
    old: Option<String>,
    /// null for a password.
    new: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct ImportAssignment {
    #[schema(example = "Data analyst")]
    name: String,
    /// The instance that the person gets; null if they hold one of this profession already.
    instance_id: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct ImportRefusal {
    reason: ImportReason,
    #[schema(
        example = "quota: must be a whole number of tokens a day; 0 means no limit, and an empty cell changes nothing"
    )]
    message: String,
}

fn item(line: Line) -> ImportLine {
    let Line { line, email, effect } = line;
    match effect {
        Ok(Effect { action, changes, profession, password_ignored }) => ImportLine {
            line,
            email,
            action: match action {
                user_import::Action::Create => ImportAction::Create,
                user_import::Action::Update => ImportAction::Update,
                user_import::Action::Unchanged => ImportAction::Unchanged,
            },
            changes: changes
                .into_iter()
                .map(|Change { field, old, new }| ImportChange { field: field.into(), old, new })
                .collect(),
            profession: profession.map(|Assignment { profession, instance }| ImportAssignment {
                name: profession,
                instance_id: instance.map(Into::into),
            }),
            password_ignored,
            refusal: None,
        },
        Err(refusal) => ImportLine {
            line,
            email,
            action: ImportAction::Refuse,
            changes: vec![],
            profession: None,
            password_ignored: false,
            refusal: Some(ImportRefusal { reason: refusal.reason.into(), message: refusal.message }),
        },
    }
}

fn summarise(lines: &[ImportLine]) -> ImportSummary {
    let mut summary = ImportSummary::default();
    for line in lines {
        match line.action {
            ImportAction::Create => summary.create += 1,
            ImportAction::Update => summary.update += 1,
            ImportAction::Unchanged => summary.unchanged += 1,
            ImportAction::Refuse => summary.refuse += 1,
        }
        if line.profession.as_ref().is_some_and(|profession| profession.instance_id.is_some()) {
            summary.assign += 1;
        }
    }
    summary
}

/// Imports employees from a CSV file, or says what an import would do (beyond the spec).
///
/// The first line names the columns, in any order: `email`, which must be there, `name`, `department`, `quota` (or `quota_daily`),
/// `profession` and `password`; case, spaces, `-` and `_` make no difference, and other columns are not used. Cells are separated by
/// commas, semicolons or tabs, and may be quoted. White space around a cell is not part of it.
///
/// A line whose address has no account creates one, as POST /users does. Otherwise it changes name, department and quota; an empty
/// cell leaves a field as it is, and the password of an existing account is never changed. An account that is revoked is refused.
///
/// `quota` is in tokens per day, and 0 means no limit, which is also what an empty cell means for a new account.
///
/// `profession` is the code or the name of a profession. The person gets a ready instance of its pool, as if they had claimed it,
/// unless they hold one of this profession already. What they hold of other professions stays theirs. If no instance is ready the
/// whole line is refused. It needs `pools.manage` as well.
///
/// Each line is a transaction of its own: it is done whole or not at all, and a refused line stops no other. A file may be imported
/// again: lines that are done are `unchanged`. A dry run takes the same steps and rolls them back, so its answer is that of the import.
#[utoipa::path(post, path = "/users/import", tag = "users", request_body = ImportFile, responses((status = 200, body = ImportResult)))]
async fn import(who: Admin, api: State, Body(body): Body<ImportFile>) -> Answer<ImportResult> {
    let report = user_import::run(&api.app, &who.by, &body.csv, body.dry_run).await?;
    let lines: Vec<ImportLine> = report.lines.into_iter().map(item).collect();
    Ok(Data(ImportResult {
        dry_run: body.dry_run,
        summary: summarise(&lines),
        ignored_columns: report.ignored_columns,
        lines,
    }))
}
