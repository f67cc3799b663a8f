//! Every request of the LLM gateway. Only `add` writes rows; it updates the sums in the same transaction.

use base::id::InstanceId;
use base::{Page, Zone};
use jiff::Timestamp;

use crate::db::{Number, Value};
pub use crate::request::{Detail, NewRequest, RequestType};
use crate::search::{Depth, Found, Range};
use crate::{Conn, Db, Result, Tx, args, holder, record, usage};

/// Rows per `INSERT`: 23 values each, and SQLite allows 32,766 in one statement.
const BATCH: usize = 500;

record! {
    #[derive(Clone, Debug)]
    pub struct Request {
        pub id: i64,
        pub request_id: String,
        pub token_name: String,
        pub model: String,
        pub provider: String,
        pub r#type: RequestType,
        pub is_stream: bool,
        pub prompt_tokens: i64,
        pub completion_tokens: i64,
        pub quota: i64,
        /// The exact cost less that, in billionths of a dollar.
        pub quota_rest: i64,
        pub duration_ms: i64,
        pub error_message: String,
        pub estimated: bool,
        pub known_input_tokens: Option<i64>,
        pub cache_read_tokens: Option<i64>,
        pub cache_write_tokens: Option<i64>,
        pub reasoning_tokens: Option<i64>,
        pub protocol: String,
        pub asked_model: String,
        pub key_hint: String,
        pub retries: Option<i64>,
        pub first_byte_ms: Option<i64>,
        pub created_at: Timestamp,
    }
}

impl Request {
    pub fn succeeded(&self) -> bool {
        self.r#type == RequestType::SUCCESS
    }
}

const COLUMNS: &str = "id, request_id, token_name, model, provider, type, is_stream, prompt_tokens, completion_tokens, quota, \
    quota_rest, duration_ms, error_message, estimated, known_input_tokens, cache_read_tokens, cache_write_tokens, \
    reasoning_tokens, protocol, asked_model, key_hint, retries, first_byte_ms, created_at";

/// The columns of a new row.
const WRITTEN: usize = 23;

/// Writes requests and adds them to the sums, in one transaction. Rows without a token name are not requests and are
/// skipped.
pub async fn add(tx: &mut Tx, zone: &Zone, requests: &[NewRequest]) -> Result<()> {
    write(tx, zone, requests.iter().map(|request| (request, 0)).collect()).await
}

/// A request whose cost is no whole number of units.
#[derive(Clone, Debug, PartialEq)]
pub struct ExactRequest {
    /// Its quota is the cost in units, rounded.
    pub request: NewRequest,
    /// The exact cost less that, in billionths of a dollar.
    pub quota_rest: i64,
}

/// The same with exact costs.
pub async fn add_exact(tx: &mut Tx, zone: &Zone, requests: &[ExactRequest]) -> Result<()> {
    write(tx, zone, requests.iter().map(|exact| (&exact.request, exact.quota_rest)).collect()).await
}

async fn write(tx: &mut Tx, zone: &Zone, mut requests: Vec<(&NewRequest, i64)>) -> Result<()> {
    requests.retain(|(request, _)| !request.token_name.is_empty());
    for batch in requests.chunks(BATCH) {
        let marks = format!("({})", vec!["?"; WRITTEN].join(", "));
        let marks = vec![marks; batch.len()].join(", ");
        let sql = format!(
            "INSERT INTO request_log (request_id, token_name, model, provider, type, is_stream, prompt_tokens, \
             completion_tokens, quota, quota_rest, duration_ms, error_message, estimated, known_input_tokens, cache_read_tokens, \
             cache_write_tokens, reasoning_tokens, protocol, asked_model, key_hint, retries, first_byte_ms, created_at) \
             VALUES {marks}"
        );
        let mut args: Vec<Value> = Vec::with_capacity(batch.len() * WRITTEN);
        for (request, rest) in batch {
            let detail = &request.detail;
            args.extend(args![
                &request.request_id,
                &request.token_name,
                &request.model,
                &request.provider,
                request.kind,
                request.is_stream,
                request.prompt_tokens,
                request.completion_tokens,
                request.quota,
                *rest,
                request.duration_ms,
                &request.error_message,
                request.estimated,
                detail.known_input_tokens,
                detail.cache_read_tokens,
                detail.cache_write_tokens,
                detail.reasoning_tokens,
                &detail.protocol,
                &detail.asked_model,
                &detail.key_hint,
                detail.retries,
                detail.first_byte_ms,
                request.created_at
            ]);
        }
        tx.run(&sql, args).await?;
    }
    usage::add(tx, zone, &requests).await
}

/// One instance's requests since the start of a span, newest first. The end of the span is ignored.
pub async fn of_instance(
    db: &Db,
    instance: &InstanceId,
    span: usage::Span,
    succeeded: Option<bool>,
    page: Page,
) -> Result<Vec<Request>> {
    let tokens = Some(vec![instance.as_str().to_owned()]);
    list(db, &Asked { since: span.from, also: span.also, tokens, succeeded, ..Asked::default() }, page).await
}

/// The filter of a list of requests.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    pub since: Option<Timestamp>,
    /// Include rows of exactly this instant, although it is before `since`.
    pub also: Option<Timestamp>,
    /// Exclusive.
    pub until: Option<Timestamp>,
    /// Any of these token names.
    pub tokens: Option<Vec<String>>,
    pub model: Option<String>,
    pub succeeded: Option<bool>,
    pub text: Option<Text>,
}

/// A text to search for in the model, the error, the token, the instance's name and the user's e-mail.
#[derive(Clone, Debug, Default)]
pub struct Text {
    pub text: String,
    /// A token whose displayed name contains the text; that name is not in the row.
    pub also: Option<&'static str>,
}

impl Asked {
    /// Whether rows must be read to apply the filter: there is no index for models and texts.
    pub fn is_search(&self) -> bool {
        self.text.is_some() || self.model.is_some()
    }

    /// The conditions that the indexes by time and token can serve.
    fn indexed(&self) -> (Vec<String>, Vec<Value>) {
        let mut clauses: Vec<String> = vec![];
        let mut args: Vec<Value> = vec![];
        match (self.since, self.also) {
            (Some(since), Some(also)) => {
                clauses.push("(created_at >= ? OR created_at = ?)".into());
                args.extend([since.into(), also.into()]);
            }
            (Some(since), None) => {
                clauses.push("created_at >= ?".into());
                args.push(since.into());
            }
            (None, _) => {}
        }
        if let Some(until) = self.until {
            clauses.push("created_at < ?".into());
            args.push(until.into());
        }
        if let Some(tokens) = &self.tokens {
            clauses.push(among("token_name", tokens.len()));
            args.extend(tokens.iter().map(Value::from));
        }
        (clauses, args)
    }

    /// All conditions, without the indexed ones if the searched range applies them already.
    fn clause(&self, dialect: crate::Dialect, is_in_range: bool) -> (String, Vec<Value>) {
        let (mut clauses, mut args) = if is_in_range { Default::default() } else { self.indexed() };
        if let Some(model) = &self.model {
            clauses.push("model = ?".into());
            args.push(model.into());
        }
        match self.succeeded {
            Some(true) => clauses.push("type = 2".into()),
            Some(false) => clauses.push("type <> 2".into()),
            None => {}
        }
        if let Some(text) = &self.text {
            let (contains, pattern) = (dialect.contains(), dialect.containing(&text.text));
            // Subqueries, not bound ids: one letter may match the names of ten thousand instances, and no database
            // allows that many values.
            let mut any = vec![
                format!("model {contains}"),
                format!("error_message {contains}"),
                format!("token_name {contains}"),
                format!("token_name IN (SELECT i.id FROM instance i WHERE i.name {contains})"),
                holder::held_by(&format!("u.email {contains}")),
            ];
            let patterns: usize = any.iter().map(|one| one.matches('?').count()).sum();
            args.extend(std::iter::repeat_n(Value::from(&pattern), patterns));
            if let Some(token) = text.also {
                any.push("token_name = ?".into());
                args.push(token.into());
            }
            clauses.push(format!("({})", any.join(" OR ")));
        }
        (joined(&clauses), args)
    }
}

fn joined(clauses: &[String]) -> String {
    if clauses.is_empty() { String::new() } else { format!(" WHERE {}", clauses.join(" AND ")) }
}

fn among(column: &str, count: usize) -> String {
    match count {
        0 => "1 = 0".into(),
        _ => format!("{column} IN ({})", vec!["?"; count].join(", ")),
    }
}

/// One page, newest first.
pub async fn list(db: &Db, asked: &Asked, page: Page) -> Result<Vec<Request>> {
    let (clause, mut args) = asked.clause(db.dialect(), false);
    let sql = format!("SELECT {COLUMNS} FROM request_log{clause} ORDER BY created_at DESC, id DESC LIMIT ? OFFSET ?");
    args.extend(args![page.limit, page.offset]);
    db.all(&sql, args).await
}

/// One request.
pub async fn find(db: &Db, id: i64) -> Result<Option<Request>> {
    db.first(&format!("SELECT {COLUMNS} FROM request_log WHERE id = ?"), args![id]).await
}

/// The number of rows, counted up to `most`.
pub async fn count(db: &Db, asked: &Asked, most: i64) -> Result<i64> {
    let (clause, mut args) = asked.clause(db.dialect(), false);
    let sql = format!("SELECT COUNT(*) AS n FROM (SELECT 1 AS one FROM request_log{clause} LIMIT ?) AS counted");
    args.push(most.into());
    let number: Number = Conn::from(db).one(&sql, args).await?;
    Ok(number.n)
}

/// One page of a search among the newest rows, newest first. With `before` it continues an earlier search from there.
pub async fn search(db: &Db, asked: &Asked, before: Option<Timestamp>, page: Page) -> Result<Found<Request>> {
    let (clauses, args) = asked.indexed();
    let range = Range::newest(db, "request_log", (joined(&clauses), args), Depth::Log, before).await?;
    let (clause, args) = asked.clause(db.dialect(), true);
    let (from, args) = (&range.from, [range.args, args].concat());
    let sql = format!("SELECT {COLUMNS} FROM {from}{clause} ORDER BY created_at DESC, id DESC LIMIT ? OFFSET ?");
    let list: Vec<Request> =
        Conn::Search(db).all(&sql, [args.clone(), args![page.limit, page.offset]].concat()).await?;
    let total = match page.total_by(list.len()) {
        Some(total) => total,
        None => {
            let sql = format!("SELECT COUNT(*) AS n FROM {from}{clause}");
            Conn::Search(db).one::<Number>(&sql, args).await?.n
        }
    };
    Ok(Found { list, total, searched_since: range.since })
}

/// Sums by model, computed from the rows. The stored sums must agree with them.
pub async fn sum_again(db: &Db, since: Timestamp) -> Result<Vec<usage::Keyed>> {
    let totals = usage::ROW_TOTALS;
    let sql = format!("SELECT model AS key, {totals} FROM request_log WHERE created_at >= ? GROUP BY model");
    db.all(&sql, args![since]).await
}

/// Deletes requests older than `before`, at most `limit`; returns how many. It keeps rows of a quarter of an hour in
/// which a binding of their instance began or ended, or its holder came to another department: there the sums alone
/// cannot separate the two.
pub async fn delete_before(db: &Db, before: Timestamp, limit: i64) -> Result<u64> {
    let sql = "DELETE FROM request_log WHERE id IN (SELECT r.id FROM request_log r WHERE r.created_at < ? AND NOT EXISTS \
        (SELECT 1 FROM binding b WHERE b.instance_id = r.token_name \
         AND (b.ended_at / 900000 = r.created_at / 900000 OR b.created_at / 900000 = r.created_at / 900000)) AND NOT EXISTS \
        (SELECT 1 FROM binding b JOIN user_department d ON d.user_id = b.user_id WHERE b.instance_id = r.token_name \
         AND d.since / 900000 = r.created_at / 900000) ORDER BY r.created_at, r.id LIMIT ?)";
    db.run(sql, args![before, limit]).await
}
