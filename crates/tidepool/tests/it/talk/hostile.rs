//! Browsers that mean no good, or read nothing: limited, told, and never a leak.

use std::time::Duration;

use futures_util::SinkExt as _;
use serde_json::json;
use testkit::until_ok;
use tokio::io::AsyncWriteExt as _;
use tokio_tungstenite::tungstenite::Message;

use crate::kit::Database;
use crate::kit::talk::{Client, Talk, words};

/// A frame as it is on the wire, with a mask of zeros.
fn raw(first: u8, claimed: usize, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    match claimed {
        0..126 => bytes.push(0x80 | claimed as u8),
        126..65536 => {
            bytes.push(0x80 | 126);
            bytes.extend((claimed as u16).to_be_bytes());
        }
        _ => {
            bytes.push(0x80 | 127);
            bytes.extend((claimed as u64).to_be_bytes());
        }
    }
    bytes.extend([0; 4]);
    bytes.extend(payload);
    bytes
}

async fn write(client: &mut Client, bytes: &[u8]) {
    client.socket.get_mut().write_all(bytes).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_frame_ends_the_socket_with_a_reason() {
    let talk = Talk::start(Database::sqlite()).await;
    for bad in [
        "",
        "{",
        "[]",
        "null",
        "\"text\"",
        "{\"type\":\"req\"}",
        "[\"req\",\"1\",\"chat.send\"]",
        "{\"type\":\"event\",\"id\":\"1\",\"method\":\"chat.send\"}",
        "{\"type\":\"req\",\"id\":\"1\",\"method\":\"chat.send\",\"method\":\"config.set\"}",
    ] {
        let mut client = talk.connect().await;
        client.say(bad).await;
        assert_eq!(client.closed().await.0, 1008, "{bad}");
    }
    let mut client = talk.connect().await;
    client.socket.send(Message::binary(vec![1, 2, 3])).await.unwrap();
    assert_eq!(client.closed().await.0, 1003);
    let mut client = talk.connect().await;
    write(&mut client, &raw(0x81, 4, b"\xff\xfe\xfd\xfc")).await;
    assert_eq!(client.closed().await.0, 1007, "no UTF-8");
    // Longer than allowed: refused by its head, without waiting for the rest.
    let mut client = talk.connect().await;
    write(&mut client, &raw(0x81, 26_214_401, b"{")).await;
    assert_eq!(client.closed().await.0, 1009);
    // In fragments of an allowed length each.
    let mut client = talk.connect().await;
    let piece = vec![b' '; 13_107_201];
    write(&mut client, &raw(0x01, piece.len(), &piece)).await;
    write(&mut client, &raw(0x80, piece.len(), &piece)).await;
    assert_eq!(client.closed().await.0, 1009);
    let mut client = talk.connect().await;
    write(&mut client, &raw(0x83, 1, b"x")).await;
    assert_eq!(client.closed().await.0, 1002, "an opcode that does not exist");
    // The assistant heard nothing of all this, and goes on.
    assert_eq!(talk.assistant.runs().await, 0);
    let mut client = talk.connect().await;
    client.send("run-1", "hello").await;
    client.chat("run-1", "final").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_reads_nothing_holds_nobody_up() {
    let talk =
        Talk::with(Database::sqlite(), Default::default(), |options| options.pace = Duration::from_millis(1)).await;
    let mut slow = talk.connect().await;
    // Asks for much and takes none of it.
    let long = "x".repeat(200_000);
    slow.send("long", &long).await;
    slow.chat("long", "final").await;
    for _ in 0..2000 {
        let asked = slow.ask("chat.history", json!({"sessionKey": "agent:main:main"}));
        // Whether a line is full shows only by that nothing more goes into it for a while.
        if tokio::time::timeout(Duration::from_millis(300), asked).await.is_err() {
            // It is not heard any more until it reads: what was asked for waits at its end of the line.
            break;
        }
    }
    // It has read nothing yet when the other has its whole answer.
    let mut other = talk.connect().await;
    other.send("run-1", "count 20").await;
    let whole = other.chat("run-1", "final").await;
    assert!(words(&whole).ends_with("word20 "));
}

/// Open files and sockets, but for the database's: its pool opens connections as they are needed, and keeps them.
fn descriptors() -> usize {
    let open =
        std::fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    open.filter(|link| !link.to_string_lossy().contains("/test.db")).count()
}

fn tasks() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_opens_are_limited_and_leave_nothing_behind() {
    let talk = Talk::start(Database::sqlite()).await;
    let path = "/me/instances/a0/ws-ticket";
    // As everything is when nobody is there.
    drop(talk.connect().await);
    settled(&talk).await;
    let (files, alive) = (descriptors(), tasks());

    let mut open = vec![];
    for _ in 0..16 {
        open.push(talk.connect().await);
    }
    let message = talk.site.employee.post(path, json!({})).token(&talk.token).send().await;
    assert!(!message.header("retry-after").is_empty());
    message.refused("4290");
    // Tickets from before do not help.
    open.truncate(14);
    settled_at(&talk, 14).await;
    let (one, two, three) = (talk.ticket().await, talk.ticket().await, talk.ticket().await);
    let enter = |ticket: String| {
        let employee = talk.site.employee.clone();
        async move { Client::open(&employee, "a0", &ticket, &[]).await }
    };
    open.push(enter(one).await.unwrap());
    open.push(enter(two).await.unwrap());
    assert_eq!(enter(three).await.err(), Some(429));
    // Somebody else is not touched by it.
    let (_, bob) = talk.site.quick_employee("bob@example.com").await;
    talk.site.employee.post(path, json!({})).token(&bob).refused("4040").await;
    open.clear();
    settled(&talk).await;

    // Again and again, left in every way there is.
    let mut refused = 0;
    for i in 0..2000 {
        let answer = talk.site.employee.post(path, json!({})).token(&talk.token).send().await;
        if answer.status == 429 {
            refused += 1;
            if refused > 20 {
                // The minute is over.
                talk.site.wait(Duration::from_secs(61));
                refused = 0;
            }
            continue;
        }
        if i >= 400 {
            break;
        }
        let ticket = answer.ok()["ticket"].as_str().unwrap().to_owned();
        let Ok(mut client) = Client::open(&talk.site.employee, "a0", &ticket, &[]).await else { continue };
        match i % 5 {
            0 => drop(client),
            1 => client.socket.close(None).await.unwrap(),
            2 => write(&mut client, &raw(0x81, 20_000_000, b"{\"half")).await,
            3 => client.say("rubbish").await,
            _ => {
                client
                    .ask("chat.send", json!({"sessionKey": "s", "message": "count 3", "idempotencyKey": i.to_string()}))
                    .await;
            }
        }
    }
    settled(&talk).await;
    // What a pool of connections keeps open is not ours to count.
    until_ok("no more descriptors and tasks are there than before", async || {
        let (more_files, more_tasks) = (descriptors().saturating_sub(files), tasks().saturating_sub(alive));
        if more_files <= 4 && more_tasks <= 4 { Ok(()) } else { Err((more_files, more_tasks)) }
    })
    .await;
}

async fn settled(talk: &Talk) {
    settled_at(talk, 0).await;
}

async fn settled_at(talk: &Talk, open: usize) {
    until_ok("sockets, and connections of the assistant's, are closed", async || {
        let (ours, theirs) = (talk.site.app.sockets.count(), talk.assistant.connections());
        if ours <= open && theirs <= open { Ok(()) } else { Err((ours, theirs)) }
    })
    .await;
}
