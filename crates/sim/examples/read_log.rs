//! How fast a foreign log is read into ours: `cargo run --release -p sim --example read_log [rows]`. Both databases are
//! SQLite files in a temporary folder.

#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use base::{Clock, Secret, Zone};
use llm::usage::Feed as _;
use llm::usage::reader::Reader;
use remote::llm::{Kind, Settings};
use sim::llm::one_api::{self, Options};
use store::foreign::{LogKind, Position};
use store::{Db, usage_source};

#[tokio::main]
async fn main() {
    let rows: i64 = std::env::args().nth(1).map_or(500_000, |n| n.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| Secret::new(format!("sqlite:{}", folder.path().join(name).display()));
    let gateway = one_api::start(Options::new(file("one-api.db"))).await.unwrap();
    // A month of a hundred assistants and three models.
    let sql = format!(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows}) \
         INSERT INTO logs (user_id, created_at, type, content, username, token_name, model_name, quota, prompt_tokens, \
         completion_tokens, channel_id, request_id, elapsed_time, is_stream) \
         SELECT 1, {from} + i * 2592000 / {rows}, 2, '倍率：0.07 × 1.00 × 4.00', 'root', 'inst-' || (i * 7 % 100), \
         'model-' || (i % 3), i % 1000, i % 900, i % 300, i % 4 + 1, '20261115001712523596895070' || i, i % 9000, i % 2 \
         FROM n",
        from = jiff::Timestamp::now().as_second() - 2_592_000,
    );
    gateway.log.run(&sql, vec![]).await.unwrap();
    let db = Db::open(&file("ours.db")).await.unwrap();
    store::migrate::run(&db).await.unwrap();
    let settings = Settings { url: gateway.url.clone(), admin_token: gateway.admin_token.clone() };
    let adapter = (Kind::find("one-api").unwrap().open)(&settings).unwrap();
    let (kind, zone) = (LogKind::find("one-api").unwrap(), Zone::named("UTC").unwrap());
    let reader = Reader::new(db.clone(), Clock::default(), zone, adapter, kind, gateway.log_url.clone());
    let began = Instant::now();
    loop {
        reader.pull().await;
        assert!(reader.trouble().is_none(), "{:?}", reader.trouble());
        let at = usage_source::look(&db, "one-api").await.unwrap().unwrap().position;
        if at == Position::Id(rows) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let took = began.elapsed();
    println!("{rows} rows in {:.2} s: {:.0} rows/s", took.as_secs_f64(), rows as f64 / took.as_secs_f64());
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    print!("{}", status.lines().find(|line| line.starts_with("VmHWM")).map_or(String::new(), |l| format!("{l}\n")));
    gateway.stop().await;
}
