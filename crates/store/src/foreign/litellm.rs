//! LiteLLM's table "LiteLLM_SpendLogs", in PostgreSQL. Rows have no numeric id. They are ordered by the start of the
//! request, but become visible, in batches, after its end. Money is a float of dollars, and costs are finer than our units:
//! a row has its rounded units and the rest, and sums are rounded once.

use super::{Clockwork, LogKind, Result, Server, Statements, Tables, refused, said};

pub const KIND: LogKind =
    LogKind { name: "litellm", servers: &[Server::Postgres], statements, said: said::litellm, tables: &[LOGS, TOKENS] };

const LOGS: &str = "LiteLLM_SpendLogs";
const TOKENS: &str = "LiteLLM_VerificationToken";

/// A row's cost in dollars.
const USD: &str = "CAST(COALESCE(s.spend, 0) AS NUMERIC)";
/// The same in units, 500,000 per dollar, and in billionths of a dollar what the rounded units leave out.
const QUOTA: &str = "CAST(ROUND(CAST(COALESCE(s.spend, 0) AS NUMERIC) * 500000) AS BIGINT)";
const REST: &str = "CAST(ROUND(CAST(COALESCE(s.spend, 0) AS NUMERIC) * 1000000000) \
     - ROUND(CAST(COALESCE(s.spend, 0) AS NUMERIC) * 500000) * 2000 AS BIGINT)";

/// What `said::litellm` reads: the parts of the usage that have no column, and the tries. The rest of the metadata is long.
const SAID: &str = "CAST(jsonb_build_object('more', s.metadata->'additional_usage_values', 'usage', s.metadata->'usage_object', \
     'retries', s.metadata->'attempted_retries') AS TEXT)";

fn statements(_: Server, tables: &Tables) -> Result<Statements> {
    if !tables.has(LOGS, "request_id") {
        return Err(refused(&KIND, "has a table \"LiteLLM_SpendLogs\", this database has none"));
    }
    let sql = Sql { tables };
    let rows = sql.rows();
    let token = |condition: &str| tables.exists(TOKENS).then(|| sql.token(condition));
    Ok(Statements {
        newest: format!("{rows} ORDER BY s.\"startTime\" DESC, s.request_id DESC LIMIT 1"),
        // The database compares and sorts both columns by the same rules, so that positions are consistent.
        after: format!(
            "{rows} WHERE (s.\"startTime\", s.request_id) > \
             (TIMESTAMP '1970-01-01' + CAST(? AS BIGINT) * INTERVAL '1 millisecond', CAST(? AS TEXT)) \
             ORDER BY s.\"startTime\", s.request_id LIMIT ?"
        ),
        by_id: None,
        sums: sql.sums(),
        token_by_id: token("t.token = ?"),
        token_by_name: token("t.key_alias = ?"),
        time: Clockwork::Milliseconds,
    })
}

struct Sql<'a> {
    tables: &'a Tables,
}

impl Sql<'_> {
    /// The key's alias when the request was made; if the row has none, its current alias.
    fn token_name(&self) -> &'static str {
        if self.tables.has(TOKENS, "key_alias") {
            "COALESCE(NULLIF(s.metadata->>'user_api_key_alias', ''), t.key_alias, '')"
        } else {
            "COALESCE(s.metadata->>'user_api_key_alias', '')"
        }
    }

    fn from(&self) -> &'static str {
        if self.tables.has(TOKENS, "key_alias") {
            "FROM \"LiteLLM_SpendLogs\" s LEFT JOIN \"LiteLLM_VerificationToken\" t ON t.token = s.api_key"
        } else {
            "FROM \"LiteLLM_SpendLogs\" s"
        }
    }

    /// Rows older than the column have no status and count as successes.
    fn is_failure(&self) -> &'static str {
        if self.tables.has(LOGS, "status") { "COALESCE(s.status, '') = 'failure'" } else { "FALSE" }
    }

    fn rows(&self) -> String {
        let int = |expression: &str| format!("CAST({expression} AS BIGINT)");
        let ms = |time: &str| int(&format!("ROUND(EXTRACT(EPOCH FROM {time}) * 1000)"));
        let took = "ROUND(EXTRACT(EPOCH FROM s.\"endTime\" - s.\"startTime\") * 1000)";
        let took = match self.tables.has(LOGS, "request_duration_ms") {
            true => format!("COALESCE(s.request_duration_ms, {took})"),
            false => took.to_owned(),
        };
        let failure = self.is_failure();
        let columns = [
            int("0"),
            ms("s.\"startTime\""),
            "s.request_id".to_owned(),
            self.token_name().to_owned(),
            "COALESCE(NULLIF(s.model_group, ''), s.model, '')".to_owned(),
            int("0"),
            "COALESCE(s.custom_llm_provider, '')".to_owned(),
            int(&format!("CASE WHEN {failure} THEN 5 ELSE 2 END")),
            // There is no column for streams. A stream's first token comes before its end. LiteLLM takes the time of the end
            // twice, so that an answer in one piece may look like a stream of some milliseconds.
            int("CASE WHEN s.\"completionStartTime\" < s.\"endTime\" THEN 1 ELSE 0 END"),
            int("COALESCE(s.prompt_tokens, 0)"),
            int("COALESCE(s.completion_tokens, 0)"),
            QUOTA.to_owned(),
            int(&took),
            format!(
                "CASE WHEN {failure} THEN \
                 COALESCE(SUBSTR(s.metadata->'error_information'->>'error_message', 1, 1000), '') ELSE '' END"
            ),
            ms("s.\"endTime\""),
            REST.to_owned(),
            SAID.to_owned(),
            "COALESCE(s.call_type, '')".to_owned(),
            // Only streams have a first byte of their own.
            format!(
                "CASE WHEN s.\"completionStartTime\" < s.\"endTime\" THEN {} END",
                int("ROUND(EXTRACT(EPOCH FROM s.\"completionStartTime\" - s.\"startTime\") * 1000)")
            ),
        ];
        format!("SELECT {} {}", columns.join(", "), self.from())
    }

    /// Selects by the end of the request, which is when it was logged. Only the start has an index, so a request that
    /// took longer than a day is not counted.
    fn sums(&self) -> String {
        let at = |ms: &str| format!("TIMESTAMP '1970-01-01' + CAST({ms} AS BIGINT) * INTERVAL '1 millisecond'");
        format!(
            "SELECT {name}, COUNT(*), CAST(SUM(COALESCE(s.prompt_tokens, 0)) AS BIGINT), \
             CAST(SUM(COALESCE(s.completion_tokens, 0)) AS BIGINT), CAST(ROUND(SUM({USD}) * 500000) AS BIGINT) {from} \
             WHERE NOT ({failure}) AND s.\"endTime\" >= {begin} AND s.\"endTime\" < {end} \
             AND s.\"startTime\" >= {begin} - INTERVAL '1 day' AND s.\"startTime\" < {end} GROUP BY 1",
            name = self.token_name(),
            from = self.from(),
            failure = self.is_failure(),
            begin = at("{from}"),
            end = at("{to}"),
        )
    }

    fn token(&self, condition: &str) -> String {
        let units = |usd: &str| format!("CAST(ROUND(CAST({usd} AS NUMERIC) * 500000) AS BIGINT)");
        // `spend` is reset with each budget period; `total_spend` is not, but only newer releases have it.
        let spent = if self.tables.has(TOKENS, "total_spend") {
            "GREATEST(COALESCE(t.spend, 0), COALESCE(t.total_spend, 0))"
        } else {
            "COALESCE(t.spend, 0)"
        };
        format!(
            "SELECT COALESCE(t.key_alias, ''), {used}, {remain}, CAST(NULL AS BIGINT) \
             FROM \"LiteLLM_VerificationToken\" t WHERE {condition} LIMIT 100",
            used = units(spent),
            remain = units("t.max_budget - COALESCE(t.spend, 0)"),
        )
    }
}
