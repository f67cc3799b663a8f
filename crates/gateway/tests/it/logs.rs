//! The request log: what a dead process leaves behind, full disks, torn lines, databases that come late.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gateway::log::Record;
use jiff::SignedDuration;
use serde_json::json;
use testkit::{until, until_ok};

use crate::kit::{Act, Database, NOON, Options, Provider, Site, answer, ask, stream_of};
use crate::on_both;

/// How long a log that could not be written waits before it tries again.
const RETRY: SignedDuration = SignedDuration::from_millis(100);

fn record(n: i64, holds: &[(&str, i64)]) -> Record<'static> {
    Record {
        id: format!("left-{n}").into(),
        token: "assistant-01".into(),
        model: "gpt-4o".into(),
        provider: "openai".into(),
        kind: if n % 4 == 3 { 5 } else { 2 },
        stream: false,
        prompt_tokens: n,
        completion_tokens: 7,
        quota: 12,
        rest: -700,
        duration_ms: 340,
        at_ms: NOON.parse::<jiff::Timestamp>().unwrap().as_millisecond(),
        estimated: false,
        error: "".into(),
        cache_read: (n % 2 == 0).then_some(n / 2),
        cache_write: None,
        reasoning: Some(3),
        protocol: "chat".into(),
        asked_model: "gpt-4o".into(),
        key_hint: "".into(),
        retries: Some(1),
        first_byte_ms: Some(120),
        answer: None,
        holds: holds.iter().map(|(subject, used)| ((*subject).to_owned().into(), *used)).collect(),
    }
}

fn lines(numbers: std::ops::Range<i64>) -> Vec<u8> {
    let (mut all, mut line) = (vec![], vec![]);
    for n in numbers {
        record(n, &[]).encode(&mut line).unwrap();
        all.extend_from_slice(&line);
    }
    all
}

/// The folder of a process that is gone.
fn dead_folder(root: &Path, name: &str, segments: &[(u64, Vec<u8>)]) -> PathBuf {
    let folder = root.join(name);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("lock"), "").unwrap();
    for (number, bytes) in segments {
        fs::write(folder.join(format!("{number:08}.log")), bytes).unwrap();
    }
    folder
}

/// Loads nothing by itself.
fn only_when_asked() -> gateway::log::Timing {
    gateway::log::Timing { load: Duration::from_secs(3600), ..Options::default().log }
}

on_both! {
    async fn what_was_answered_is_seen_by_whoever_asks_next(database: Database) {
        let site = Site::start(database, Options { log: only_when_asked(), ..Options::echo() }).await;
        let client = site.free().await;
        for n in 1..20 {
            assert_eq!(client.chat(&ask("gpt-4o", "hello")).await.status, 200);
            assert_eq!(site.rows().await.len(), n);
        }
        site
    }

    async fn a_dead_process_leaves_its_log_to_the_next(database: Database) {
        let site = Site::start(database, Options { log: only_when_asked(), ..Options::echo() }).await;
        let (user, instance, key) = site.employee("ada", 10_000).await;
        let client = site.client(&key);
        for _ in 0..5 {
            assert_eq!(client.chat(&ask("gpt-4o", "hello there")).await.status, 200);
        }
        // Loaded to here; the rest dies with the process, and so does a block of quota.
        assert_eq!(site.rows().await.len(), 5);
        for _ in 0..7 {
            assert_eq!(client.chat(&ask("gpt-4o", "hello there")).await.status, 200);
        }
        let site = site.die().await.another(Options::echo()).await;
        let rows = site.rows_until(12).await;
        assert_eq!(rows.len(), 12);
        assert!(rows.iter().all(|row| row.token_name == instance));
        let midnight = site.app.zone.midnight(site.app.clock.now());
        assert_eq!(llm::usage::spent(&site.app, &user, midnight).await.unwrap(), 12 * 4);
        until_ok("its grants are forgotten", async || {
            let sql = "SELECT CAST(COALESCE(SUM(granted), 0) AS BIGINT) AS n FROM quota_grant";
            match site.app.db.first::<store::row::Number>(sql, vec![]).await.unwrap().unwrap().n {
                0 => Ok(()),
                granted => Err(granted),
            }
        }).await;
        until("its folder is gone", async || fs::read_dir(&site.root).unwrap().count() == 1).await;
        site
    }

    async fn torn_and_damaged_lines_spoil_nothing_but_themselves(database: Database) {
        let site = Site::start(database, Options { log: gateway::log::Timing { inherit: Duration::from_millis(100), ..only_when_asked() }, ..Options::echo() }).await;
        let mut first = lines(0..3);
        first.extend_from_slice(b"rubbish in the middle\n\n\x00\xff\n");
        first.extend(lines(3..5));
        let mut second = lines(5..7);
        let torn = second.len() - 20;
        second.truncate(torn);
        let folder = dead_folder(&site.root, "somebody", &[(1, first), (2, second), (3, vec![]), (7, lines(7..1200))]);
        fs::write(folder.join("00000009.log"), vec![b'x'; 600_000]).unwrap();
        site.log.inherit().await.unwrap();
        assert!(!folder.exists(), "loaded and removed");
        let rows = site.rows().await;
        let mut ids: Vec<i64> = rows.iter().map(|row| row.request_id.strip_prefix("left-").unwrap().parse().unwrap()).collect();
        ids.sort_unstable();
        let expected: Vec<i64> = (0..1200).filter(|n| *n != 6).collect();
        assert_eq!(ids, expected, "all but the torn one");
        site
    }

    async fn what_is_loaded_is_not_loaded_again(database: Database) {
        let site = Site::start(database, Options::echo()).await;
        let bytes = lines(0..10);
        let known = lines(0..4).len() as i64;
        let mut tx = site.app.db.begin().await.unwrap();
        store::log_segment::set(&mut tx, "somebody/1", "somebody", known, site.app.clock.now()).await.unwrap();
        store::quota_grant::add(&mut tx, "user:u:1", "somebody", 500, site.app.clock.now()).await.unwrap();
        tx.commit().await.unwrap();
        dead_folder(&site.root, "somebody", &[(1, bytes)]);
        site.log.inherit().await.unwrap();
        assert_eq!(site.rows().await.len(), 6, "the first four were in already");
        site
    }

    async fn a_line_takes_its_use_off_what_was_granted(database: Database) {
        let site = Site::start(database, Options { log: only_when_asked(), ..Options::echo() }).await;
        let (user, _, key) = site.employee("eve", 1_000_000).await;
        let client = site.client(&key);
        assert_eq!(client.chat(&ask("gpt-4o", "one two three")).await.status, 200);
        let subject = llm::quota::Subject::user(&site.app, &user, 1_000_000).unwrap().name();
        let granted = async || {
            let mut tx = site.app.db.begin().await.unwrap();
            let granted = store::quota_grant::granted(&mut tx, &subject).await.unwrap();
            tx.commit().await.unwrap();
            granted
        };
        let before = granted().await;
        site.rows().await;
        assert_eq!(granted().await, before - 6, "in the transaction of its row");
        site
    }

    async fn a_load_that_is_broken_off_anywhere_loads_nothing_twice(database: Database) {
        let timing = gateway::log::Timing { rotate_bytes: 3000, ..only_when_asked() };
        let site = Site::start(database, Options { log: timing, ..Options::echo() }).await;
        let mut appended = 0;
        for i in 0..150u64 {
            for _ in 0..3 {
                site.log.append(&record(appended, &[("user:u:1", 1)])).unwrap();
                appended += 1;
            }
            let log = site.log.clone();
            let loading = tokio::spawn(async move { log.load().await.map(drop) });
            // A pause of another length each time, so that it is broken off in another place each time.
            tokio::time::sleep(Duration::from_micros(i * 40)).await;
            loading.abort();
            loading.await.ok();
            if i % 3 == 0 {
                // At once, while what was broken off may still be on its way.
                site.log.load().await.unwrap();
            }
        }
        let rows = site.rows().await;
        let mut ids: Vec<&str> = rows.iter().map(|row| row.request_id.as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!((rows.len(), ids.len()), (appended as usize, appended as usize), "each once");
        site
    }

    async fn segments_give_way_to_the_next_and_go_when_they_are_loaded(database: Database) {
        let timing = gateway::log::Timing { rotate_bytes: 2000, ..only_when_asked() };
        let site = Site::start(database, Options { log: timing, ..Options::echo() }).await;
        let client = site.free().await;
        let folder = site.root.join(site.log.replica());
        let names = || {
            let mut names: Vec<String> = fs::read_dir(&folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        };
        for round in 1..=3 {
            for _ in 0..20 {
                assert_eq!(client.chat(&ask("gpt-4o", "hello")).await.status, 200);
            }
            // Twenty requests are more than two thousand bytes: each load begins the next segment, and removes the one it has loaded.
            assert_eq!(site.rows().await.len(), 20 * round);
            assert_eq!(names(), [format!("{:08}.log", round + 1), "lock".to_owned()]);
        }
        site
    }

    async fn two_processes_in_one_folder_load_each_their_own(database: Database) {
        let site = Site::start(database, Options::echo()).await;
        let other = site.another(Options::echo()).await;
        let key = site.key("free", None, None).await;
        let clients = [site.client(&key), other.client(&key)];
        for n in 0..40 {
            assert_eq!(clients[n % 2].chat(&ask("gpt-4o", "hello")).await.status, 200);
        }
        assert_eq!(site.rows_until(40).await.len(), 40);
        assert_eq!(fs::read_dir(&site.root).unwrap().count(), 2, "both live");
        other.stop().await;
        assert_eq!(site.rows().await.len(), 40);
        site
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_the_database_refuses_is_put_aside() {
    let Some(database) = Database::postgres("logs::a_line_that_the_database_refuses_is_put_aside").await else {
        return;
    };
    let site = Site::start(database, Options::echo()).await;
    let (mut bytes, mut line) = (lines(0..5), vec![]);
    // No index of PostgreSQL's takes a text like this.
    let model: String = (0..300).map(|_| base::id::fresh()).collect();
    Record { model: model.into(), ..record(5, &[]) }.encode(&mut line).unwrap();
    bytes.extend_from_slice(&line);
    bytes.extend(lines(6..10));
    dead_folder(&site.root, "somebody", &[(1, bytes)]);
    site.log.inherit().await.unwrap();
    assert_eq!(site.rows().await.len(), 9, "all but that one");
    let aside = site.root.join("rejected.txt");
    assert!(fs::read_to_string(&aside).unwrap().contains("left-5"));
    fs::remove_file(aside).unwrap();
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_before_the_first_byte_and_recovers_by_itself() {
    let openai = Provider::start(answer("ok", 1, 1)).await;
    let mut options = Options::with(None, Some(&openai), None);
    // Every load begins the next file.
    options.log = gateway::log::Timing { rotate_bytes: 1, ..only_when_asked() };
    let site = Site::start(Database::sqlite(), options).await;
    let client = site.free().await;
    let folder = site.root.join(site.log.replica());
    // The next two files are on a device that is always full.
    for number in [2, 3] {
        symlink("/dev/full", folder.join(format!("{number:08}.log"))).unwrap();
    }
    assert_eq!(client.chat(&ask("gpt-4o", "x")).await.status, 200);
    assert_eq!(site.rows().await.len(), 1);
    let message = client.chat(&ask("gpt-4o", "x")).await.refused(503, "unavailable");
    assert!(message.contains("request log cannot be written"), "{message}");
    assert_eq!(openai.count(), 2, "it was answered, and could not be written down");
    client.chat(&ask("gpt-4o", "x")).await.refused(503, "unavailable");
    assert_eq!(openai.count(), 2, "not asked while nothing can be written");
    // The first try after a while ends in the third file, the second in the fourth.
    site.app.clock.advance(RETRY);
    client.chat(&ask("gpt-4o", "x")).await.refused(503, "unavailable");
    assert_eq!(openai.count(), 2);
    site.app.clock.advance(RETRY);
    assert_eq!(client.chat(&ask("gpt-4o", "x")).await.status, 200, "the fourth file is on a disk");
    assert_eq!(site.rows().await.len(), 2);
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_cannot_be_written_down_does_not_end_as_if_it_was() {
    let openai = Provider::start(Act::Stream(stream_of(&["one", "two"], Some((1, 1))), Duration::ZERO)).await;
    let mut options = Options::with(None, Some(&openai), None);
    options.log = gateway::log::Timing { rotate_bytes: 1, ..only_when_asked() };
    let site = Site::start(Database::sqlite(), options).await;
    let client = site.free().await;
    symlink("/dev/full", site.root.join(site.log.replica()).join("00000002.log")).unwrap();
    let mut question = ask("gpt-4o", "x");
    question["stream"] = json!(true);
    assert!(client.chat(&question).await.text().ends_with("data: [DONE]\n\n"));
    site.rows().await;
    let text = client.chat(&question).await.text();
    assert!(text.contains("request log cannot be written") && !text.contains("[DONE]"), "{text}");
    site.app.clock.advance(RETRY);
    assert!(client.chat(&question).await.text().ends_with("data: [DONE]\n\n"));
    assert_eq!(site.rows().await.len(), 2);
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_new_asks_nobody() {
    let site = Site::start(Database::sqlite(), Options { log: only_when_asked(), ..Options::echo() }).await;
    assert_eq!(site.free().await.chat(&ask("gpt-4o", "x")).await.status, 200);
    site.rows().await;
    site.app.db.close().await;
    assert!(!site.app.feed.pull().await.stale, "everything that was appended is loaded");
    drop(site.die().await);
}
