//! Bodies of requests: small where anybody may send one, and bounded all together.

use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::kit::{Database, Site};

/// Begins a request with a body of this length, and sends so much of it.
async fn begin(url: &str, path: &str, token: Option<&str>, length: usize, sent: usize) -> TcpStream {
    let address = url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let bearer = token.map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default();
    let head = format!(
        "POST /api/v1{path} HTTP/1.1\r\nhost: {address}\r\n{bearer}content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // Whoever refuses it may not read on.
    stream.write_all(&vec![b' '; sent]).await.ok();
    stream
}

async fn status(mut stream: TcpStream) -> String {
    let mut answer = vec![0; 64];
    let read = tokio::time::timeout(testkit::LIMIT, stream.read(&mut answer)).await.expect("no answer").unwrap_or(0);
    String::from_utf8_lossy(&answer[..read]).split(' ').nth(1).unwrap_or_default().to_owned()
}

/// 1,500 logins whose bodies never ended took 2 GiB.
#[tokio::test(flavor = "multi_thread")]
async fn what_anybody_may_send_is_small() {
    let site = Site::start(Database::sqlite()).await;
    for origin in [&site.employee, &site.admin] {
        let large = json!({"email": "a@example.com", "password": "x".repeat(20_000)});
        assert_eq!(origin.post("/auth/login", large).send().await.status, 413);
        assert_eq!(status(begin(&origin.url, "/auth/login", None, 1 << 20, 32 << 10).await).await, "413");
    }
    assert_eq!(status(begin(&site.employee.url, "/auth/verify", None, 1 << 20, 32 << 10).await).await, "413");
    // A webhook shows its secret before anybody reads what it brings.
    let address = site.employee.url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!("POST /hooks/bot/none HTTP/1.1\r\nhost: {address}\r\ncontent-length: 1000000\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(status(stream).await, "401");
}

/// A body that says that it is too large is refused before a byte of it has come. It was read up to the limit first, and whoever sent
/// none of it waited for half a minute.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_declared_too_large_is_refused_at_once() {
    let site = Site::start(Database::sqlite()).await;
    let root = Some(site.root.as_str());
    let url = &site.admin.url;
    assert_eq!(status(begin(url, "/auth/login", None, 1 << 20, 0).await).await, "413");
    assert_eq!(status(begin(url, "/users", root, (1 << 20) + 1, 0).await).await, "413");
    assert_eq!(status(begin(url, "/marketplace-items", root, 1 << 30, 0).await).await, "413");
    // Whoever sends all of it without waiting gets the answer, too.
    let large = json!({"email": "x".repeat(8 << 20)});
    assert_eq!(site.admin.post("/users", large).token(&site.root).send().await.status, 413);
    // As large as it may be: read, and refused for what it says.
    let sent = (1 << 20) - 2;
    let fits = site.admin.call(reqwest::Method::POST, "/users").token(&site.root);
    assert_eq!(fits.body("application/json", format!("\"{}\"", "x".repeat(sent))).send().await.status, 400);
}

/// Large bodies that never end take a part of the memory that is named, and no more; who sends little is served meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn all_bodies_together_are_bounded() {
    let site = Site::start(Database::sqlite()).await;
    let token = site.root.clone();
    let mut open = vec![];
    let mut refused = 0;
    // 16 MiB each, where 128 MiB are for all.
    for _ in 0..12 {
        let stream = begin(&site.admin.url, "/marketplace-items", Some(&token), 16 << 20, (16 << 20) - 1).await;
        open.push(stream);
    }
    for stream in &mut open {
        let mut answer = [0; 16];
        let read = tokio::time::timeout(Duration::from_secs(2), stream.read(&mut answer)).await;
        refused += usize::from(read.is_ok_and(|read| read.is_ok_and(|n| answer[..n].starts_with(b"HTTP/1.1 503"))));
    }
    assert!((4..12).contains(&refused), "{refused} of 12 were refused");
    site.user("ada@example.com").await;
    drop(open);
    let item = json!({"type": "skill", "name": "Large", "description": "d", "icon": "x", "version": "1.0", "files": [
        {"path": "SKILL.md", "scope": "workspace", "content": "x".repeat(200_000)}]});
    let made = testkit::until_ok("there is room again", async || {
        let reply = site.admin.post("/marketplace-items", item.clone()).token(&token).send().await;
        if reply.status == 503 { Err(reply.text) } else { Ok(reply) }
    });
    made.await.ok();
}
