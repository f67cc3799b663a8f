//! Sums of every token over all time. They are updated as rows are added, so that no query has to sum up the history.

use std::collections::BTreeMap;

use super::{BATCH, COLUMNS, Keyed, Sums, TOTALS};
use crate::db::Value;
use crate::{Conn, Db, Result, Tx, args};

/// Adds to the totals, in the order of the tokens.
pub(super) async fn add(tx: &mut Tx, tokens: &BTreeMap<&str, Sums>) -> Result<()> {
    let tokens: Vec<(&&str, &Sums)> = tokens.iter().collect();
    let add = COLUMNS.map(|column| format!("{column} = usage_total.{column} + excluded.{column}")).join(", ");
    let (columns, each) = (COLUMNS.join(", "), 1 + COLUMNS.len());
    for batch in tokens.chunks(BATCH) {
        let marks = vec![format!("({})", vec!["?"; each].join(", ")); batch.len()].join(", ");
        let sql = format!(
            "INSERT INTO usage_total (token_name, {columns}) VALUES {marks} ON CONFLICT (token_name) DO UPDATE SET {add}"
        );
        let mut args: Vec<Value> = Vec::with_capacity(batch.len() * each);
        for (token, sums) in batch {
            args.push(Value::from(**token));
            args.extend(sums.values());
        }
        tx.run(&sql, args).await?;
    }
    Ok(())
}

/// The totals of every token.
pub async fn totals(db: &Db) -> Result<Vec<Keyed>> {
    db.all(&format!("SELECT token_name AS key, {} FROM usage_total", COLUMNS.join(", ")), args![]).await
}

/// The total of a token by its days. Quotas use this, because the stored total is too small while a replica of an older
/// release writes rows.
pub async fn of_all_time(conn: impl Into<Conn<'_>>, token: &str) -> Result<Sums> {
    let sql = format!("SELECT '' AS key, {TOTALS} FROM usage_daily WHERE token_name = ?");
    let keyed: Keyed = conn.into().one(&sql, args![token]).await?;
    Ok(keyed.sums)
}

/// Instances per statement.
const INSTANCES: i64 = 500;

/// Copies the totals to the instances; returns how many changed. Rows are locked in the order of their ids, as
/// everywhere: in another order this could deadlock with a health check.
pub async fn copy_totals(db: &Db) -> Result<u64> {
    let lock = db.dialect().for_update_of("i");
    let sql = format!(
        "WITH due AS (SELECT i.id AS id FROM instance i LEFT JOIN usage_total t ON t.token_name = i.id \
        WHERE i.total_requests <> COALESCE(t.requests, 0) \
        OR i.total_tokens <> COALESCE(t.prompt_tokens + t.completion_tokens, 0) ORDER BY i.id LIMIT {INSTANCES}{lock}) \
        UPDATE instance SET \
        total_requests = COALESCE((SELECT t.requests FROM usage_total t WHERE t.token_name = instance.id), 0), \
        total_tokens = COALESCE((SELECT t.prompt_tokens + t.completion_tokens FROM usage_total t \
            WHERE t.token_name = instance.id), 0) \
        WHERE id IN (SELECT due.id FROM due)"
    );
    let mut copied = 0;
    loop {
        let some = db.run(&sql, args![]).await?;
        copied += some;
        if some < INSTANCES as u64 {
            return Ok(copied);
        }
    }
}

/// Tokens compared per query.
const COMPARED: i64 = 200;

crate::record! { struct Token { key: String, differs: bool } }

/// Compares the totals with the sums of days and corrects them; returns how many were wrong. They are wrong if a
/// replica of an older release, which does not update them, wrote rows during an upgrade.
pub async fn recount(db: &Db) -> Result<u64> {
    let same = COLUMNS.map(|column| format!("t.{column} = d.{column}")).join(" AND ");
    let sql = format!(
        "SELECT d.token_name AS key, CAST(CASE WHEN {same} THEN 0 ELSE 1 END AS BIGINT) AS differs FROM (SELECT token_name, {TOTALS} FROM usage_daily WHERE token_name > ? \
         GROUP BY token_name ORDER BY token_name LIMIT {COMPARED}) d LEFT JOIN usage_total t ON t.token_name = d.token_name \
         ORDER BY d.token_name"
    );
    let (mut after, mut wrong) = (String::new(), 0);
    loop {
        let tokens: Vec<Token> = db.all(&sql, args![&after]).await?;
        for token in tokens.iter().filter(|token| token.differs) {
            correct(db, &token.key).await?;
            wrong += 1;
        }
        match tokens.last() {
            Some(last) => after.clone_from(&last.key),
            None => return Ok(wrong),
        }
    }
}

async fn correct(db: &Db, token: &str) -> Result<()> {
    let mut tx = db.begin().await?;
    // The lock keeps others from adding to the days or the total meanwhile.
    tx.lock(crate::db::Lock::UsageDays).await?;
    tx.run("DELETE FROM usage_total WHERE token_name = ?", args![token]).await?;
    let sql = format!(
        "INSERT INTO usage_total (token_name, {}) SELECT token_name, {TOTALS} FROM usage_daily WHERE token_name = ? \
         GROUP BY token_name",
        COLUMNS.join(", ")
    );
    tx.run(&sql, args![token]).await?;
    tx.commit().await
}
