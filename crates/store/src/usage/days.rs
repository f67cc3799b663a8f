//! The zone of the daily sums. When it changes, they are rebuilt from the sums by quarters of an hour, token by token,
//! while the product is in use.
//!
//! Each step is a short transaction that replaces the days of some tokens and records the last one; the next step, in
//! any process, continues there. Rows that are added meanwhile use the new zone. Where they add to the old days of a
//! token, the rebuild of that token corrects it.

use std::collections::BTreeMap;

use base::Zone;
use jiff::Timestamp;

use super::{COLUMNS, Sums, date_of, sums, upsert};
use crate::db::{Lock, Record, Row, Value};
use crate::{Conn, Db, Error, Result, Tx, args, record};

/// Quarters of an hour per step; a token is never split.
const STEP: usize = 20_000;
/// Quarters of an hour per query.
const PAGE: usize = 5_000;

/// The setting with the zone of all days.
const ZONE: &str = "usage_zone";
/// The settings with the zone of a rebuild in progress, and with the last token that it has rebuilt.
const NEXT: &str = "usage_zone_next";
const CURSOR: &str = "usage_zone_cursor";

record! { struct Setting { value: String } }

async fn setting(conn: impl Into<Conn<'_>>, name: &str) -> Result<Option<String>> {
    let found: Option<Setting> = conn.into().first("SELECT value FROM setting WHERE name = ?", args![name]).await?;
    Ok(found.map(|setting| setting.value))
}

async fn set(tx: &mut Tx, name: &str, value: &str) -> Result<()> {
    let sql = "INSERT INTO setting (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value";
    tx.run(sql, args![name, value]).await.map(drop)
}

async fn unset(tx: &mut Tx, name: &str) -> Result<()> {
    tx.run("DELETE FROM setting WHERE name = ?", args![name]).await.map(drop)
}

/// The zone of the days; during a rebuild, the new one.
pub async fn zone_of_days(db: &Db) -> Result<Option<String>> {
    match setting(db, NEXT).await? {
        Some(zone) => Ok(Some(zone)),
        None => setting(db, ZONE).await,
    }
}

/// Fails if the days are of another zone: a process that was frozen while the zone changed must not add rows.
pub(super) async fn refuse_other_zone(tx: &mut Tx, zone: &Zone) -> Result<()> {
    let sql = "SELECT value FROM setting WHERE name IN (?, ?) ORDER BY name DESC LIMIT 1";
    let found: Option<Setting> = tx.first(sql, args![ZONE, NEXT]).await?;
    match found {
        Some(days) if days.value != zone.name() => {
            Err(Error::OtherZone { ours: zone.name().into(), theirs: days.value })
        }
        _ => Ok(()),
    }
}

/// Whether the days still have to be rebuilt for the zone of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rebuild {
    Done,
    Pending,
}

/// Sets the zone of the days. This is quick for any number of days: `rebuild_some` does the work.
pub async fn begin_rebuild(db: &Db, zone: &Zone) -> Result<Rebuild> {
    let mut tx = db.begin().await?;
    tx.lock(Lock::UsageDays).await?;
    let (now, next) = (setting(&mut tx, ZONE).await?, setting(&mut tx, NEXT).await?);
    let rebuild = match (now.as_deref(), next.as_deref()) {
        (Some(now), None) if now == zone.name() => Rebuild::Done,
        (_, Some(next)) if next == zone.name() => Rebuild::Pending,
        _ => {
            set(&mut tx, NEXT, zone.name()).await?;
            unset(&mut tx, CURSOR).await?;
            Rebuild::Pending
        }
    };
    tx.commit().await?;
    db.set_days_pending(rebuild == Rebuild::Pending);
    Ok(rebuild)
}

/// Rebuilds the days of some tokens.
pub async fn rebuild_some(db: &Db, zone: &Zone) -> Result<Rebuild> {
    let mut tx = db.begin().await?;
    tx.lock(Lock::UsageDays).await?;
    if setting(&mut tx, NEXT).await?.as_deref() != Some(zone.name()) {
        // Another process has finished the rebuild.
        db.set_days_pending(false);
        return Ok(Rebuild::Done);
    }
    let mut cursor = setting(&mut tx, CURSOR).await?;
    let mut read = 0;
    while read < STEP {
        let Some(token) = token_after(&mut tx, cursor.as_deref()).await? else {
            set(&mut tx, ZONE, zone.name()).await?;
            unset(&mut tx, NEXT).await?;
            unset(&mut tx, CURSOR).await?;
            tx.commit().await?;
            db.set_days_pending(false);
            return Ok(Rebuild::Done);
        };
        read += rebuild_token(&mut tx, zone, &token).await?;
        cursor = Some(token);
    }
    if let Some(cursor) = &cursor {
        set(&mut tx, CURSOR, cursor).await?;
    }
    tx.commit().await?;
    Ok(Rebuild::Pending)
}

/// Rebuilds all days if necessary, and returns when it is done.
pub async fn make_days(db: &Db, zone: &Zone) -> Result<()> {
    let mut rebuild = begin_rebuild(db, zone).await?;
    while rebuild == Rebuild::Pending {
        rebuild = rebuild_some(db, zone).await?;
    }
    Ok(())
}

record! { struct Token { token: Option<String> } }

/// The next token by name; the first if there is no cursor.
async fn token_after(tx: &mut Tx, cursor: Option<&str>) -> Result<Option<String>> {
    let operator = if cursor.is_some() { ">" } else { ">=" };
    let sql = format!("SELECT MIN(token_name) AS token FROM usage_slot WHERE token_name {operator} ?");
    let found: Token = Conn::from(tx).one(&sql, args![cursor.unwrap_or("")]).await?;
    Ok(found.token)
}

struct Slot {
    slot: i64,
    model: String,
    provider: String,
    sums: Sums,
}

impl Record for Slot {
    const COLUMNS: &'static str = "slot, model, provider";
    fn from_row(row: &Row) -> Result<Slot> {
        let (model, provider) = (row.get("model")?, row.get("provider")?);
        Ok(Slot { slot: row.get("slot")?, model, provider, sums: sums(row)? })
    }
}

/// Replaces the days of a token; returns how many rows of quarters of an hour it has read.
async fn rebuild_token(tx: &mut Tx, zone: &Zone, token: &str) -> Result<usize> {
    tx.run("DELETE FROM usage_daily WHERE token_name = ?", args![token]).await?;
    let mut days: BTreeMap<(String, String, String), Sums> = BTreeMap::new();
    let mut after = (Timestamp::MIN.as_millisecond(), String::new(), String::new());
    let mut read = 0;
    loop {
        let sql = format!(
            "SELECT {}, {} FROM usage_slot WHERE token_name = ? AND (slot, model, provider) > (?, ?, ?) \
             ORDER BY slot, model, provider LIMIT ?",
            Slot::COLUMNS,
            COLUMNS.join(", ")
        );
        let page: Vec<Slot> = tx.all(&sql, args![token, after.0, &after.1, &after.2, PAGE]).await?;
        let Some(last) = page.last() else { break };
        (after, read) = ((last.slot, last.model.clone(), last.provider.clone()), read + page.len());
        for slot in page {
            *days.entry((date_of(zone, slot.slot), slot.model, slot.provider)).or_default() += slot.sums;
        }
    }
    let rows = days.into_iter().map(|((date, model, provider), sums)| {
        ([Value::from(date), Value::from(token), Value::from(model), Value::from(provider)], sums)
    });
    upsert(tx, "usage_daily", "date, token_name, model, provider", rows.collect()).await?;
    Ok(read)
}
