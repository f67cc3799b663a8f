//! Whoever hangs up pays: what is counted is never below what the provider billed, whenever a client leaves.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use store::request_log::{Request, RequestType};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::kit::{Act, Biller, Client, Database, Manner, Options, Provider, Site, Wire, answer, ask};
use crate::on_both;

fn streamed(text: &str) -> Value {
    let mut question = ask("gpt-4o", text);
    question["stream"] = json!(true);
    question
}

async fn with(wire: Wire, database: Database, manner: Manner, change: fn(&mut Options)) -> (Biller, Site, Client) {
    let biller = Biller::start(manner).await;
    let mut options = Options { anthropic: Some(biller.url()), openai: Some(biller.url()), ..Options::default() };
    change(&mut options);
    let site = Site::start(database, options).await;
    let client = site.free().await.speaking(wire);
    (biller, site, client)
}

/// What the log counts. Every row must be one that counts.
fn counted(rows: &[Request]) -> i64 {
    for row in rows {
        assert_eq!(row.r#type, RequestType::SUCCESS, "{row:?}");
        assert!(row.quota > 0, "{row:?}");
    }
    rows.iter().map(|row| row.prompt_tokens + row.completion_tokens).sum()
}

/// Runs each case in each protocol that streams, on both databases.
macro_rules! on_every_wire {
    ($($name:ident)*) => {
        on_every_wire!(@ chat Wire::Chat, $($name)*);
        on_every_wire!(@ messages Wire::Messages, $($name)*);
        on_every_wire!(@ responses Wire::Responses, $($name)*);
    };
    (@ $module:ident $wire:expr, $($name:ident)*) => {
        mod $module {
            use super::*;

            on_both! {$(
                async fn $name(database: Database) {
                    crate::billing::$name($wire, database).await
                }
            )*}
        }
    };
}

on_every_wire! {
    requests_left_before_their_answer_are_counted
    streams_left_at_their_finish_reason_are_counted
    streams_left_in_the_middle_are_cancelled_and_counted
    a_provider_that_never_tells_is_counted_by_what_is_reserved
    whoever_stays_pays_for_all_that_a_provider_bills_without_telling
    a_provider_that_hangs_is_given_up_and_counted_by_what_is_reserved
    hidden_thinking_is_counted_in_the_middle_of_a_stream
    streams_left_at_any_byte_are_counted
    one_request_crosses_a_quota_and_no_more
}

// What is not about streams.
on_every_wire! {@ embeddings Wire::Embeddings,
    requests_left_before_their_answer_are_counted
    whoever_stays_pays_for_all_that_a_provider_bills_without_telling
    a_provider_that_hangs_is_given_up_and_counted_by_what_is_reserved
    one_request_crosses_a_quota_and_no_more
}

async fn requests_left_before_their_answer_are_counted(wire: Wire, database: Database) -> Site {
    let gate = Arc::new(Semaphore::new(0));
    let manner = Manner { gate: Some(gate.clone()), ..Manner::default() };
    let (biller, site, client) = with(wire, database, manner, |_| ()).await;
    for left in 1..=20 {
        let question = wire.ask(wire.model(), &"a ".repeat(100_000));
        let stream = client.post_only(&question).await;
        biller.accepted(left).await;
        drop(stream);
    }
    site.reads_on(20).await;
    gate.add_permits(20);
    let rows = site.rows_until(20).await;
    let (counted, billed) = (counted(&rows), biller.billed());
    assert!(billed > 2_000_000, "{billed}");
    assert_eq!(counted, billed, "read to its end, an answer tells what it costs");
    assert!(rows.iter().all(|row| !row.estimated && row.error_message.contains("client left")), "{rows:?}");
    site
}

async fn streams_left_at_their_finish_reason_are_counted(wire: Wire, database: Database) -> Site {
    let gate = Arc::new(Semaphore::new(0));
    let manner = Manner { thinking: 50_000, end_gate: Some(gate.clone()), ..Manner::default() };
    let (biller, site, client) = with(wire, database, manner, |_| ()).await;
    for _ in 0..10 {
        let mut stream = client.open(&wire.streamed(wire.model(), "hello")).await;
        stream.until(wire.finish_word()).await;
    }
    // The others tell their usage with the reason to end: there is nothing to read on for.
    if wire == Wire::Chat {
        site.reads_on(10).await;
    }
    gate.add_permits(10);
    let rows = site.rows_until(10).await;
    assert!(biller.billed() > 500_000);
    assert_eq!(counted(&rows), biller.billed(), "the usage comes behind the finish reason");
    assert!(rows.iter().all(|row| !row.estimated && row.is_stream), "{rows:?}");
    site
}

async fn streams_left_in_the_middle_are_cancelled_and_counted(wire: Wire, database: Database) -> Site {
    let manner = Manner { words: None, pause: Duration::from_millis(5), ..Manner::default() };
    let (biller, site, client) = with(wire, database, manner, |_| ()).await;
    for _ in 0..5 {
        let mut stream = client.open(&wire.streamed(wire.model(), &"a ".repeat(5_000))).await;
        stream.until("word ").await;
    }
    biller.left(5).await;
    let rows = site.rows_until(5).await;
    let (counted, billed) = (counted(&rows), biller.billed());
    assert!(counted >= billed, "{counted} of {billed}");
    assert!(rows.iter().all(|row| row.estimated), "{rows:?}");
    site
}

async fn a_provider_that_never_tells_is_counted_by_what_is_reserved(wire: Wire, database: Database) -> Site {
    let (gate, end_gate) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let manner = Manner {
        thinking: 3_000,
        tells: false,
        gate: Some(gate.clone()),
        end_gate: Some(end_gate.clone()),
        ..Manner::default()
    };
    let (biller, site, client) = with(wire, database, manner, |_| ()).await;
    let text = "a ".repeat(5_000);
    // Before the answer, before the first byte of a stream, and at its finish reason.
    let whole = client.post_only(&wire.ask(wire.model(), &text)).await;
    biller.accepted(1).await;
    drop(whole);
    let stream = client.post_only(&wire.streamed(wire.model(), &text)).await;
    biller.accepted(2).await;
    drop(stream);
    site.reads_on(2).await;
    gate.add_permits(3);
    let mut stream = client.open(&wire.streamed(wire.model(), &text)).await;
    stream.until(wire.finish_word()).await;
    drop(stream);
    // The first one has its row by then. The third client has left only when the gateway has noticed it.
    site.rows_until(1).await;
    // The last event of the Responses API is the one with the reason to end: there is nothing to read on for.
    if wire != Wire::Responses {
        site.reads_on(2).await;
    }
    end_gate.add_permits(2);
    let rows = site.rows_until(3).await;
    let (counted, billed) = (counted(&rows), biller.billed());
    assert!(counted >= billed, "{counted} of {billed}");
    assert!(rows.iter().all(|row| row.estimated), "{rows:?}");
    site
}

async fn whoever_stays_pays_for_all_that_a_provider_bills_without_telling(wire: Wire, database: Database) -> Site {
    let (biller, site, client) = with(wire, database, Manner { tells: false, ..Manner::default() }, |_| ()).await;
    for question in wire.questions(&"a ".repeat(5_000)) {
        assert_eq!(client.chat(&question).await.status, 200);
    }
    let rows = site.rows().await;
    let (counted, billed) = (counted(&rows), biller.billed());
    assert!(counted >= billed, "{counted} of {billed}");
    assert!(rows.iter().all(|row| row.estimated), "{rows:?}");
    site
}

async fn a_provider_that_hangs_is_given_up_and_counted_by_what_is_reserved(wire: Wire, database: Database) -> Site {
    let manner = Manner { gate: Some(Arc::new(Semaphore::new(0))), ..Manner::default() };
    let (biller, site, client) = with(wire, database, manner, |options| {
        options.timing.read_on.time = Duration::from_millis(300);
    })
    .await;
    let questions = wire.questions(&"a ".repeat(5_000));
    for (left, question) in questions.iter().enumerate() {
        let stream = client.post_only(question).await;
        biller.accepted(left + 1).await;
        drop(stream);
    }
    biller.left(questions.len()).await;
    let rows = site.rows_until(questions.len()).await;
    let (counted, billed) = (counted(&rows), biller.billed());
    assert!(counted >= billed, "{counted} of {billed}");
    assert!(rows.iter().all(|row| row.estimated), "{rows:?}");
    site
}

async fn streams_left_at_any_byte_are_counted(wire: Wire, database: Database) -> Site {
    let manner = Manner { words: Some(6), pause: Duration::from_millis(2), ..Manner::default() };
    let (biller, site, client) = with(wire, database, manner, |_| ()).await;
    let places: Vec<usize> = (0..1_500).step_by(75).collect();
    for place in &places {
        let mut stream = client.open(&wire.streamed(wire.model(), &"a ".repeat(500))).await;
        stream.read(*place).await;
    }
    let rows = site.rows_until(places.len()).await;
    testkit::until("the provider has noticed all who left", async || {
        let before = biller.billed();
        tokio::time::sleep(Duration::from_millis(100)).await;
        biller.billed() == before
    })
    .await;
    let (counted, billed) = (counted(&rows), biller.billed());
    assert!(counted >= billed, "{counted} of {billed}: {rows:?}");
    assert_eq!(rows.len(), places.len());
    site
}

/// Thinking that nobody is shown, of which the request says how much it may be.
async fn hidden_thinking_is_counted_in_the_middle_of_a_stream(wire: Wire, database: Database) -> Site {
    let manner = Manner { thinking: 8_000, words: None, pause: Duration::from_millis(5), ..Manner::default() };
    let (biller, site, client) = with(wire, database, manner, |_| ()).await;
    let mut question = wire.streamed(wire.model(), "hello");
    match wire {
        Wire::Chat => question["reasoning_effort"] = json!("medium"),
        Wire::Messages => question["thinking"] = json!({"type": "enabled", "budget_tokens": 8192}),
        Wire::Responses => question["reasoning"] = json!({"effort": "medium"}),
        Wire::Embeddings => unreachable!("nobody thinks there"),
    }
    let mut stream = client.open(&question).await;
    stream.until("word").await;
    drop(stream);
    biller.left(1).await;
    let rows = site.rows_until(1).await;
    let (counted, billed) = (counted(&rows), biller.billed());
    assert!(counted >= billed && rows[0].estimated, "{counted} of {billed}");
    site
}

async fn one_request_crosses_a_quota_and_no_more(wire: Wire, database: Database) -> Site {
    let gate = Arc::new(Semaphore::new(0));
    let (biller, site, _) =
        with(wire, database, Manner { gate: Some(gate.clone()), ..Manner::default() }, |_| ()).await;
    let (user, _, key) = site.employee("ada", 20_000).await;
    let client = site.client(&key).speaking(wire);
    let question = wire.ask(wire.model(), &"a ".repeat(60_000));
    let mut asking = JoinSet::new();
    for _ in 0..50 {
        let (client, question) = (client.clone(), question.clone());
        asking.spawn(async move { client.chat(&question).await.status });
    }
    site.rows_until(49).await;
    gate.add_permits(1);
    let statuses = asking.join_all().await;
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    assert!(statuses.iter().all(|status| [200, 429].contains(status)), "{statuses:?}");
    site.rows_until(50).await;
    site.app.clock.advance(jiff::SignedDuration::from_secs(2));
    assert_eq!(client.chat(&wire.ask(wire.model(), "hello")).await.status, 429);
    assert_eq!(biller.count(), 1, "nothing else was asked of the provider");
    let midnight = site.app.zone.midnight(site.app.clock.now());
    assert_eq!(llm::usage::spent(&site.app, &user, midnight).await.unwrap(), biller.billed());
    site
}

/// Leaves so many requests before their answers.
async fn leave(biller: &Biller, client: &Client, question: &Value, times: usize) {
    for _ in 0..times {
        let before = biller.count();
        let stream = client.post_only(question).await;
        biller.accepted(before + 1).await;
        drop(stream);
    }
}

fn closed_gate() -> Manner {
    Manner { gate: Some(Arc::new(Semaphore::new(0))), ..Manner::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quota_ends_also_for_those_who_leave() {
    let biller = Biller::start(closed_gate()).await;
    let mut options = Options { openai: Some(biller.url()), ..Options::default() };
    options.timing.read_on.time = Duration::from_millis(100);
    let site = Site::start(Database::sqlite(), options).await;
    let (_, _, key) = site.employee("ada", 50_000).await;
    let client = site.client(&key);
    let question = ask("gpt-4o", &"a ".repeat(50_000));
    leave(&biller, &client, &question, 1).await;
    biller.left(1).await;
    site.rows_until(1).await;
    site.app.clock.advance(jiff::SignedDuration::from_secs(2));
    client.chat(&ask("gpt-4o", "hello")).await.refused(429, "insufficient_quota");
    assert_eq!(biller.count(), 1);
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_are_as_many_as_agreed_and_whoever_finds_none_pays_what_was_reserved() {
    for (all, of_one_key) in [(3, 100), (100, 3)] {
        let biller = Biller::start(closed_gate()).await;
        let mut options = Options { openai: Some(biller.url()), ..Options::default() };
        (options.timing.read_on.readers, options.timing.read_on.per_key) = (all, of_one_key);
        let site = Site::start(Database::sqlite(), options).await;
        let client = site.free().await;
        leave(&biller, &client, &ask("gpt-4o", &"a ".repeat(5_000)), 8).await;
        // Five are cancelled at once; three are still read on.
        biller.left(5).await;
        let rows = site.rows_until(5).await;
        assert_eq!((rows.len(), biller.gone()), (5, 5));
        assert!(counted(&rows) * 8 >= biller.billed() * 5 && rows.iter().all(|row| row.estimated), "{rows:?}");
        if of_one_key == 3 {
            let other = site.client(&site.key("other", None, None).await);
            leave(&biller, &other, &ask("gpt-4o", "hello"), 1).await;
            site.reads_on(4).await;
            assert_eq!(site.rows().await.len(), 5, "another key has readers of its own");
        }
        // Stopping waits for nobody's answer, and leaves nothing unwritten.
        let billed = biller.billed();
        let stopped = tokio::time::timeout(testkit::LIMIT / 2, site.stop()).await.expect("it waits for answers");
        stopped.check().await;
        let rows = store::request_log::list(&stopped.app.db, &Default::default(), base::Page::ALL).await.unwrap();
        assert_eq!(rows.len(), biller.count());
        assert!(counted(&rows) >= billed, "{rows:?}");
        assert_eq!(biller.billed(), billed, "nothing was asked twice");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_does_not_end_is_read_to_a_bound() {
    let manner = Manner { words: None, word: WORDS, ..Manner::default() };
    let (biller, site, client) = with(Wire::Chat, Database::sqlite(), manner, |options| {
        options.timing.read_on.stream_bytes = 1024 * 1024;
    })
    .await;
    // Before the first byte: the gate is the provider's head, which nobody waits for.
    let gate = Arc::new(Semaphore::new(0));
    biller.change(|manner| manner.gate = Some(gate.clone()));
    leave(&biller, &client, &streamed("hello"), 1).await;
    site.reads_on(1).await;
    gate.add_permits(1);
    biller.left(1).await;
    let rows = site.rows_until(1).await;
    assert!(rows[0].estimated && rows[0].completion_tokens > 450_000, "{rows:?}");
    // And one that is no stream.
    let long = Manner { words: Some(6 * 1024), word: WORDS, gate: Some(gate.clone()), ..Manner::default() };
    biller.change(|manner| *manner = long);
    leave(&biller, &client, &ask("gpt-4o", "hello"), 1).await;
    site.reads_on(1).await;
    gate.add_permits(1);
    let rows = site.rows_until(2).await;
    assert_eq!((rows[1].estimated, rows[1].completion_tokens), (true, 4096), "what was reserved");
    site.end().await;
}

/// A kilobyte.
const WORDS: &str = match std::str::from_utf8(&[b'w'; 1024]) {
    Ok(words) => words,
    Err(_) => "",
};

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_in_buffers_for_a_slow_client_is_counted_when_it_leaves() {
    // As much as the buffers between take, while the client reads its first word.
    let manner = Manner { words: None, word: WORDS, ..Manner::default() };
    let (biller, site, client) = with(Wire::Chat, Database::sqlite(), manner, |options| {
        (options.timing.reader, options.timing.read_on.drain) = (testkit::LIMIT, testkit::LIMIT);
    })
    .await;
    let mut stream = client.open(&streamed("hello")).await;
    stream.until("www").await;
    testkit::until("the provider writes no more", async || {
        let before = biller.billed();
        tokio::time::sleep(Duration::from_millis(300)).await;
        biller.billed() == before
    })
    .await;
    let waiting = biller.billed();
    drop(stream);
    biller.left(1).await;
    let rows = site.rows_until(1).await;
    assert!(counted(&rows) >= waiting && rows[0].estimated, "{waiting}: {rows:?}");
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_provider_said_about_the_input_counts_more_than_an_estimate() {
    // Some tell their usage so far with every word.
    let message = r#"data: {"choices":[{"index":0,"delta":{"content":"abcdef"}}],"usage":{"prompt_tokens":777,"completion_tokens":1,"total_tokens":778}}"#;
    let openai = Provider::start(Act::SilentStream(vec![format!("{message}\n\n").into_bytes()])).await;
    let site = Site::start(Database::sqlite(), Options::with(None, Some(&openai), None)).await;
    let mut stream = site.free().await.open(&streamed("hello")).await;
    stream.until("abcdef").await;
    drop(stream);
    openai.left(1).await;
    let row = &site.rows_until(1).await[0];
    assert_eq!((row.prompt_tokens, row.completion_tokens, row.estimated), (777, 3 + 32, true));
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_provider_refuses_costs_nothing_and_nobody_else_is_asked_for_one_who_left() {
    let gate = Arc::new(Semaphore::new(0));
    let refused = |status| Act::Gated(gate.clone(), Box::new(Act::Json(status, vec![], "{}".into())));
    let anthropic = Provider::start(refused(500)).await;
    let openai = Provider::start(answer("ok", 1, 1)).await;
    let site = Site::start(Database::sqlite(), Options::with(Some(&anthropic), Some(&openai), None)).await;
    let client = site.free().await;
    anthropic.then([refused(500), refused(400)]);
    for asked in 1..=2 {
        let stream = client.post_only(&ask("claude-opus-4-6", "hello")).await;
        anthropic.asked(asked).await;
        drop(stream);
        // The gateway must have noticed it before the provider answers.
        site.reads_on(1).await;
        gate.add_permits(1);
        let row = site.rows_until(asked).await[asked - 1].clone();
        assert_eq!((row.r#type, row.quota, row.prompt_tokens), (RequestType::ERROR, 0, 0), "{row:?}");
    }
    assert_eq!((anthropic.count(), openai.count()), (2, 0));
    site.end().await;
}
