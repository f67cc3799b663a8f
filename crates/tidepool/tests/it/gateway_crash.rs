//! The gateway killed in the middle of a thousand requests, five times: the log, the quotas and the answers agree afterwards.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base::id::UserId;
use serde_json::json;
use store::request_log::{self, RequestType};

use crate::kit::{Database, Process, Site};

const REQUESTS: usize = 1000;
const KILLS: usize = 5;
/// So many requests are answered before the first kill, and more before each later one.
const FIRST_KILL: usize = 100;
const AT_ONCE: usize = 16;
const EMBEDDING: &str = "text-embedding-3-small";

/// A request that was answered to its end.
struct Answered {
    id: String,
    prompt: i64,
    completion: i64,
}

async fn ask(http: &reqwest::Client, gateway: &str, key: &str, n: usize) -> Option<Answered> {
    let words = 1 + n % 7;
    let text = vec!["word"; words].join(" ");
    let stream = n.is_multiple_of(2);
    let messages = json!([{"role": "user", "content": text}]);
    // Every protocol in its turn; each with a text by which the end of its stream is known.
    let (path, body, end) = match n / 2 % 4 {
        0 => {
            ("chat/completions", json!({"model": "gpt-4o", "stream": stream, "messages": messages}), "data: [DONE]\n\n")
        }
        1 => (
            "messages",
            json!({"model": "claude-opus-4-6", "stream": stream, "messages": messages}),
            "data: {\"type\":\"message_stop\"}\n\n",
        ),
        2 => ("responses", json!({"model": "gpt-4o", "stream": stream, "input": text}), "}\n\n"),
        _ => ("embeddings", json!({"model": EMBEDDING, "input": text}), ""),
    };
    // Vectors are not streamed, and cost nothing beside their text.
    let is_embedding = path == "embeddings";
    let stream = stream && !is_embedding;
    let sent = http.post(format!("http://{gateway}/v1/{path}")).bearer_auth(key).json(&body).send().await;
    let answer = sent.ok()?;
    assert_eq!(answer.status().as_u16(), 200);
    let id = answer.headers()["x-request-id"].to_str().unwrap().to_owned();
    let text = answer.text().await.ok()?;
    let completed = path != "responses" || text.contains("event: response.completed");
    let whole = if stream { text.ends_with(end) && completed } else { text.contains("_tokens") };
    let prompt = words as i64;
    whole.then_some(Answered { id, prompt, completion: if is_embedding { 0 } else { prompt } })
}

/// Sends a thousand requests and kills the server when so many of them are answered.
async fn round(server: &mut Process, key: &str, kill_at: usize) -> (usize, Vec<Answered>) {
    let (begun, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..AT_ONCE {
        let (begun, ended) = (begun.clone(), ended.clone());
        let (gateway, key) = (server.gateway.clone(), key.to_owned());
        clients.spawn(async move {
            let http = reqwest::Client::new();
            let mut answered = vec![];
            loop {
                let n = begun.fetch_add(1, Ordering::SeqCst);
                if n >= REQUESTS {
                    return answered;
                }
                answered.extend(ask(&http, &gateway, &key, n).await);
                ended.fetch_add(1, Ordering::SeqCst);
            }
        });
    }
    testkit::until_ok("so many requests are answered", async || {
        let answered = ended.load(Ordering::SeqCst);
        if answered < kill_at { Err(answered) } else { Ok(()) }
    })
    .await;
    server.kill();
    let answered: Vec<Answered> = clients.join_all().await.into_iter().flatten().collect();
    (begun.load(Ordering::SeqCst).min(REQUESTS), answered)
}

async fn start(folder: &Path, site: &Site) -> Process {
    let environment = [
        ("TIDEPOOL_DATABASE_URL", site.database_url.expose()),
        ("TIDEPOOL_MASTER_KEY", site.master.expose()),
        ("TIDEPOOL_TIMEZONE", "Europe/Berlin"),
        ("TIDEPOOL_ROLES", "admin,gateway"),
        ("TIDEPOOL_PROVIDER_ECHO", "true"),
        ("TIDEPOOL_BOOTSTRAP_ADMIN_PASSWORD", crate::kit::PASSWORD),
        ("TIDEPOOL_LOG", "warn"),
    ];
    let mut server = Process::serve(folder, &environment);
    server.ready().await;
    server
}

async fn survive(database: Database) {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::start(database).await;
    let (user, _) = site.quick_employee("ada@example.com").await;
    site.admin.patch(&format!("/users/{user}"), json!({"quota_daily": 1_000_000})).token(&site.root).ok().await;
    let embedding = json!({"id": EMBEDDING, "from_table": EMBEDDING});
    site.admin.post("/models", embedding).token(&site.root).ok().await;
    let instance = site.instances("one", 1).await.remove(0);
    let assign = json!({"instance_id": instance});
    site.admin.post(&format!("/users/{user}/assign-instance"), assign).token(&site.root).ok().await;
    let key = site.key(&instance, Some(&instance), Some(100_000_000)).await;

    let (mut begun, mut answered) = (0, vec![]);
    for n in 0..KILLS {
        let mut server = start(folder.path(), &site).await;
        let (some, whole) = round(&mut server, &key, FIRST_KILL + 65 * n).await;
        assert!(whole.len() < REQUESTS, "it was not killed in the middle");
        begun += some;
        answered.extend(whole);
    }
    // The last one ends politely: everything that any of them wrote is loaded then.
    let server = start(folder.path(), &site).await;
    server.terminate();
    let (status, text) = server.end();
    assert!(status.success(), "{text}");

    let all = base::Page { offset: 0, limit: 100_000 };
    let rows = request_log::list(&site.app.db, &Default::default(), all).await.unwrap();
    let mut by_id = HashMap::new();
    for row in &rows {
        assert!(by_id.insert(row.request_id.as_str(), row).is_none(), "{} is there twice", row.request_id);
        assert_eq!((row.token_name.as_str(), row.provider.as_str()), (instance.as_str(), "echo"));
    }
    assert!(rows.len() <= begun, "{} rows of {begun} requests", rows.len());
    for Answered { id, prompt, completion } in &answered {
        let row = by_id.get(id.as_str()).unwrap_or_else(|| panic!("{id} was answered and is not in the log"));
        assert_eq!(
            (row.r#type, row.prompt_tokens, row.completion_tokens),
            (RequestType::SUCCESS, *prompt, *completion),
            "{row:?}"
        );
    }
    let ids: HashSet<&str> = answered.iter().map(|a| a.id.as_str()).collect();
    let unanswered = rows.iter().filter(|row| !ids.contains(row.request_id.as_str())).count();
    assert!(unanswered <= KILLS * AT_ONCE, "{unanswered} rows of requests that nobody got an answer to");
    assert!(answered.len() > KILLS * FIRST_KILL, "hardly anything was answered: {}", answered.len());

    let counted = rows.iter().filter(|row| row.r#type == RequestType::SUCCESS);
    let tokens: i64 = counted.clone().map(|row| row.prompt_tokens + row.completion_tokens).sum();
    // The exact cost is rounded once, not in each row.
    let (units, rest) = counted.fold((0, 0), |(units, rest), row| (units + row.quota, rest + row.quota_rest));
    let quota = units + (rest + 1_000i64).div_euclid(2_000);
    let user = UserId::named(user);
    let midnight = site.app.zone.midnight(site.app.clock.now());
    assert_eq!(
        llm::usage::spent(&site.app, &user, midnight).await.unwrap(),
        tokens,
        "the quota knows what the log does"
    );
    let record = store::gateway_key::named(&site.app.db, &instance).await.unwrap().unwrap();
    assert_eq!(record.logged_quota, quota);
    for table in ["quota_grant", "log_segment"] {
        assert_eq!(store::table::count(&site.app.db, table).await.unwrap(), 0, "something is left in {table}");
    }
    assert_eq!(std::fs::read_dir(folder.path().join("data/gateway")).unwrap().count(), 0, "something is left in files");
    site.check().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite() {
    survive(Database::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres() {
    if let Some(database) = Database::postgres("gateway_crash::postgres").await {
        survive(database).await;
    }
}
