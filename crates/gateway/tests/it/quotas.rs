//! Spend cannot leak: one request may cross a limit, no more, however many run at once and wherever.

use std::sync::Arc;
use std::time::Duration;

use base::id::UserId;
use jiff::SignedDuration;
use llm::quota::Subject;
use testkit::{until, until_ok};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::kit::{Act, Client, Options, Provider, Reply, Site, answer, ask};
use crate::on_both;

/// Asks so often at the same moment.
fn begin_storm(clients: &[Client], times: usize) -> JoinSet<Reply> {
    let mut asking = JoinSet::new();
    for i in 0..times {
        let client = clients[i % clients.len()].clone();
        asking.spawn(async move { client.chat(&ask("gpt-4o", "hello")).await });
    }
    asking
}

async fn storm(clients: &[Client], times: usize) -> Vec<Reply> {
    begin_storm(clients, times).join_all().await
}

fn answered(replies: &[Reply]) -> usize {
    for reply in replies {
        if reply.status != 200 {
            reply.refused(429, "insufficient_quota");
        }
    }
    replies.iter().filter(|reply| reply.status == 200).count()
}

/// Longer than a key is kept, a refusal is remembered or a refill is put off.
const LATER: SignedDuration = SignedDuration::from_secs(2);

on_both! {
    async fn two_hundred_at_once_against_a_nearly_spent_quota(database: Database) {
        let gate = Arc::new(Semaphore::new(0));
        let openai = Provider::start(Act::Gated(gate.clone(), Box::new(answer("ok", 10, 40)))).await;
        let site = Site::start(database, Options::with(None, Some(&openai), None)).await;
        let (user, _, key) = site.employee("ada", 10_000).await;
        let client = site.client(&key);
        openai.then([answer("much", 9_000, 990)]);
        assert_eq!(client.chat(&ask("gpt-4o", "hello")).await.status, 200);
        assert_eq!(used(&site, &user).await, 9_990);
        let storming = begin_storm(std::slice::from_ref(&client), 200);
        // All others are refused while the one is under way.
        site.rows_until(1 + 199).await;
        gate.add_permits(1000);
        let replies = storming.join_all().await;
        assert_eq!(answered(&replies), 1, "one may cross the limit, no more");
        assert_eq!(openai.count(), 2);
        let refused = replies.iter().find(|reply| reply.status == 429).unwrap();
        let message = refused.refused(429, "insufficient_quota");
        let what = "the rest of the daily quota is reserved: limit 10000 tokens, used 9990, ";
        assert!(message.starts_with(what) && message.contains(" reserved for requests under way, resets at"), "{message}");
        assert_eq!(refused.header("retry-after").as_deref(), Some("5"), "until the other is answered");
        // What the one left over of its estimate lies beyond the limit.
        assert_eq!(answered(&storm(std::slice::from_ref(&client), 20).await), 0);
        // The same when what it left over went back, and when the refusal is no longer remembered.
        site.app.quotas.hand_back(&site.app, false).await.unwrap();
        site.app.clock.advance(LATER);
        assert_eq!(answered(&storm(std::slice::from_ref(&client), 20).await), 0);
        let refused = client.chat(&ask("gpt-4o", "hello")).await;
        let message = refused.refused(429, "insufficient_quota");
        assert!(message.starts_with("daily quota used up: limit 10000 tokens, used ") && message.contains("resets at"), "{message}");
        let wait: i64 = refused.header("retry-after").unwrap().parse().unwrap();
        assert_eq!(wait, 11 * 3600 - LATER.as_secs(), "until Berlin's next midnight");
        assert_eq!(site.rows().await.len(), 1 + 200 + 40 + 1, "every refusal has its row");
        site
    }

    async fn a_quota_is_used_to_its_end_and_not_beyond(database: Database) {
        let openai = Provider::start(answer("ok", 60, 40)).await;
        let site = Site::start(database, Options::with(None, Some(&openai), None)).await;
        let (user, _, key) = site.employee("bob", 5_000).await;
        let client = site.client(&key);
        for _ in 0..20 {
            let replies = storm(std::slice::from_ref(&client), 10).await;
            if answered(&replies) == 0 && used(&site, &user).await >= 5_000 {
                break;
            }
        }
        // Refusals while much was reserved are no end: alone, a request gets through as long as anything is left.
        while client.chat(&ask("gpt-4o", "hello")).await.status == 200 {}
        site.app.clock.advance(LATER);
        while client.chat(&ask("gpt-4o", "hello")).await.status == 200 {}
        let used = used(&site, &user).await;
        assert_eq!(used, 5_000, "fifty requests of a hundred tokens, no more and no less");
        site
    }

    async fn two_processes_share_one_quota(database: Database) {
        let gate = Arc::new(Semaphore::new(0));
        let openai = Provider::start(Act::Gated(gate.clone(), Box::new(answer("ok", 60, 40)))).await;
        let options = || Options::with(None, Some(&openai), None);
        let site = Site::start(database, options()).await;
        let other = site.another(options()).await;
        let (user, _, key) = site.employee("eve", 10_000).await;
        openai.then([answer("much", 9_000, 900)]);
        assert_eq!(site.client(&key).chat(&ask("gpt-4o", "hello")).await.status, 200);
        let clients = [site.client(&key), other.client(&key)];
        let storming = begin_storm(&clients, 100);
        until_ok("all but one are refused while it is under way", async || {
            // What another process appended is loaded by that process.
            other.rows().await;
            let rows = site.rows().await.len();
            if rows >= 100 { Ok(()) } else { Err(rows) }
        }).await;
        gate.add_permits(1000);
        let replies = storming.join_all().await;
        assert_eq!(answered(&replies), 1, "one of both");
        other.rows().await;
        assert_eq!(used(&site, &user).await, 10_000);
        let other = other.stop().await;
        assert_eq!(storm(&clients[..1], 5).await.iter().filter(|r| r.status == 200).count(), 0);
        drop(other);
        site
    }

    async fn what_one_process_has_too_much_of_reaches_the_other(database: Database) {
        let openai = Provider::start(answer("ok", 60, 40)).await;
        let options = || Options::with(None, Some(&openai), None);
        let site = Site::start(database, options()).await;
        let other = site.another(options()).await;
        let (user, _, key) = site.employee("kim", 6_000).await;
        let subject = Subject::user(&site.app, &user, 6_000).unwrap().name();
        // Its estimate crosses the limit; almost nothing of it is used.
        assert_eq!(site.client(&key).chat(&ask("gpt-4o", &"x ".repeat(4000))).await.status, 200);
        until_ok("what is left over goes back, and what was used is in the log", async || {
            match site.granted(&subject).await {
                0 => Ok(()),
                granted => Err(granted),
            }
        }).await;
        assert_eq!(other.client(&key).chat(&ask("gpt-4o", "hello")).await.status, 200);
        other.stop().await;
        site
    }

    async fn a_key_has_a_quota_of_its_own(database: Database) {
        let openai = Provider::start(answer("ok", 600, 400)).await;
        let site = Site::start(database, Options::with(None, Some(&openai), None)).await;
        // A thousand tokens of gpt-4o are 1,250 units.
        let client = site.client(&site.key("named", None, Some(3_000)).await);
        let mut status = vec![];
        for _ in 0..5 {
            status.push(client.chat(&ask("gpt-4o", "hello")).await.status);
        }
        assert_eq!(status, [200, 200, 200, 429, 429], "1,250, 2,500, 3,750");
        let reply = client.chat(&ask("gpt-4o", "hello")).await;
        let message = reply.refused(429, "insufficient_quota");
        assert_eq!(message, "the key's quota is used up: limit 3000 units, used 3750");
        assert_eq!(reply.header("retry-after"), None, "it does not come back by itself");
        site.rows().await;
        let key = store::gateway_key::named(&site.app.db, "named").await.unwrap().unwrap();
        assert_eq!(key.logged_quota, 3_750);
        site.change("named", false, |key| key.quota = Some(4_000)).await;
        site.app.clock.advance(LATER);
        assert_eq!(client.chat(&ask("gpt-4o", "hello")).await.status, 200, "raised");
        site.change("named", false, |key| key.quota = Some(100)).await;
        site.app.clock.advance(LATER);
        client.chat(&ask("gpt-4o", "hello")).await.refused(429, "insufficient_quota");
        site
    }

    async fn what_fails_costs_nothing(database: Database) {
        let openai = Provider::start(Act::Json(500, vec![], "{}".into())).await;
        let site = Site::start(database, Options::with(None, Some(&openai), None)).await;
        let (user, _, key) = site.employee("zoe", 4_500).await;
        let client = site.client(&key);
        for _ in 0..10 {
            // Each reserves more than half of the limit.
            client.chat(&ask("gpt-4o", "hello")).await.refused(502, "provider_error");
        }
        assert_eq!(used(&site, &user).await, 0);
        openai.then([answer("ok", 100, 100)]);
        assert_eq!(client.chat(&ask("gpt-4o", "hello")).await.status, 200);
        assert_eq!(used(&site, &user).await, 200);
        site
    }

    async fn midnight_begins_a_new_day(database: Database) {
        let openai = Provider::start(answer("ok", 600, 400)).await;
        let site = Site::start(database, Options::with(None, Some(&openai), None)).await;
        let (user, _, key) = site.employee("mia", 1_000).await;
        let client = site.client(&key);
        assert_eq!(client.chat(&ask("gpt-4o", "hello")).await.status, 200);
        let reply = client.chat(&ask("gpt-4o", "hello")).await;
        let message = reply.refused(429, "insufficient_quota");
        assert!(message.ends_with("used 1000, resets at 2026-11-16T00:00:00.000+01:00"), "{message}");
        assert_eq!(reply.header("retry-after").as_deref(), Some("39600"), "eleven hours");
        site.rows().await;
        site.app.clock.advance(SignedDuration::from_hours(11));
        assert_eq!(client.chat(&ask("gpt-4o", "hello")).await.status, 200, "the next day");
        assert_eq!(used(&site, &user).await, 1_000, "of the new day alone");
        site
    }

    async fn whoever_leaves_in_the_middle_leaves_no_grant_behind(database: Database) {
        let site = Site::start(database, Options::echo()).await;
        let (user, _, _) = site.employee("tom", 1_000_000_000).await;
        let subject = Subject::user(&site.app, &user, 1_000_000_000).unwrap();
        let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
        let before = tasks();
        for i in 0..60u64 {
            let (app, subject) = (site.app.clone(), subject.clone());
            // Each more than all before left over, so that the database is asked every time.
            let estimate = 200_000 * (i as i64 + 1);
            let reserving = tokio::spawn(async move { app.quotas.reserve(&app, &subject, estimate).await.map(drop) });
            // A pause of another length each time, so that it is broken off in another place each time.
            tokio::time::sleep(Duration::from_micros(i * 60)).await;
            reserving.abort();
        }
        until("whatever was begun for those who left has ended", async || tasks() <= before).await;
        site.app.quotas.hand_back(&site.app, true).await.unwrap();
        assert_eq!(site.granted(&subject.name()).await, 0);
        site
    }

    async fn whoever_leaves_while_others_are_told_takes_nothing_along(database: Database) {
        let openai = Provider::start(answer("much", 40_000, 10_000)).await;
        let site = Site::start(database, Options::with(None, Some(&openai), None)).await;
        let (user, _, key) = site.employee("eli", 100_000).await;
        let client = site.client(&key);
        openai.then([answer("ok", 10, 10)]);
        assert_eq!(client.chat(&ask("gpt-4o", "hello")).await.status, 200);
        site.rows().await;
        // It uses more than was granted, and nobody can write that down while its client waits.
        let mut tx = site.app.db.begin().await.unwrap();
        tx.run("UPDATE quota_grant SET granted = granted", vec![]).await.unwrap();
        let left = client.post_only(&ask("gpt-4o", "hello")).await;
        openai.asked(2).await;
        until_ok("the second request is written down", async || match site.lines() {
            2 => Ok(()),
            lines => Err(lines),
        }).await;
        // The database is asked right after that, and the gateway sees right after its client's leave that it left. Nothing
        // shows either from outside; in whatever order they happen, the sums below must be the same.
        tokio::time::sleep(Duration::from_millis(100)).await;
        drop(left);
        tokio::time::sleep(Duration::from_millis(100)).await;
        tx.commit().await.unwrap();
        assert_eq!(used(&site, &user).await, 50_020);
        site.app.quotas.hand_back(&site.app, true).await.unwrap();
        let subject = Subject::user(&site.app, &user, 100_000).unwrap();
        assert_eq!(site.granted(&subject.name()).await, 0, "the log has all of it");
        site
    }

    async fn what_is_left_over_beyond_the_limit_lets_nobody_in(database: Database) {
        let openai = Provider::start(answer("ok", 600, 400)).await;
        let site = Site::start(database, Options::with(None, Some(&openai), None)).await;
        let (_, _, key) = site.employee("ida", 1_000).await;
        let client = site.client(&key);
        let mut question = ask("gpt-4o", "hello");
        question["max_tokens"] = serde_json::json!(50_000);
        assert_eq!(client.chat(&question).await.status, 200, "it crosses the limit by far");
        question["max_tokens"] = serde_json::json!(1);
        client.chat(&question).await.refused(429, "insufficient_quota");
        assert_eq!(openai.count(), 1);
        site
    }

    async fn a_lower_limit_cuts_what_is_granted_ahead(database: Database) {
        let site = Site::start(database, Options::echo()).await;
        let (user, _, _) = site.employee("lea", 1_000_000).await;
        let app = Arc::clone(&site.app);
        let reserve = async |limit: i64, estimate: i64| {
            let subject = Subject::user(&app, &user, limit).unwrap();
            app.quotas.reserve(&app, &subject, estimate).await
        };
        let held = reserve(1_000_000, 1_000).await.unwrap();
        drop(reserve(1_000_000, 1_000).await.unwrap());
        // A block lies ready; the limit is now below what is held.
        assert!(reserve(500, 100).await.is_err());
        drop(reserve(2_000, 500).await.unwrap());
        held.settle(1_999);
        let last = reserve(2_000, 500).await.unwrap();
        assert!(reserve(2_000, 1).await.is_err(), "it has crossed the limit");
        last.settle(0);
        drop(reserve(2_000, 1).await.unwrap());
        // Nothing of it was ever logged.
        app.quotas.hand_back(&app, true).await.unwrap();
        let name = Subject::user(&app, &user, 1).unwrap().name();
        assert_eq!(site.granted(&name).await, 1_999);
        site
    }
}

/// What the log says a user used today.
async fn used(site: &Site, user: &UserId) -> i64 {
    site.rows().await;
    let midnight = site.app.zone.midnight(site.app.clock.now());
    llm::usage::spent(&site.app, user, midnight).await.unwrap()
}
