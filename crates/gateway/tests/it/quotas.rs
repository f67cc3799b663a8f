//! Spend cannot leak: one request may cross a limit, no more, however many run at once and wherever.

use std::sync::Arc;
use std::time::Duration;

use base::Clock;
use base::id::UserId;
use domain::quota::Subject;
use jiff::SignedDuration;
use store::quota_grant;

use crate::kit::{Act, Client, Options, Provider, Reply, Site, answer, ask};
use crate::on_both;

/// Asks so often at the same moment.
async fn storm(clients: &[Client], times: usize) -> Vec<Reply> {
    let mut asking = tokio::task::JoinSet::new();
    for i in 0..times {
        let client = clients[i % clients.len()].clone();
        asking.spawn(async move { client.chat(&ask("gpt-4o", "hello")).await });
    }
    asking.join_all().await
}

fn answered(replies: &[Reply]) -> usize {
    for reply in replies {
        if reply.status != 200 {
            reply.refused(429, "insufficient_quota");
        }
    }
    replies.iter().filter(|reply| reply.status == 200).count()
}

fn slow(act: Act) -> Act {
    Act::After(Duration::from_millis(100), Box::new(act))
}

on_both! {
    async fn two_hundred_at_once_against_a_nearly_spent_quota(database: Database) {
        let openai = Provider::start(slow(answer("ok", 10, 40))).await;
        let site = Site::start(database, Options::with(None, Some(&openai), None)).await;
        let (user, _, key) = site.employee("ada", 10_000).await;
        let client = site.client(&key);
        openai.then([answer("much", 9_000, 990)]);
        assert_eq!(client.chat(&ask("gpt-4o", "hello")).await.status, 200);
        assert_eq!(used(&site, &user).await, 9_990);
        let replies = storm(std::slice::from_ref(&client), 200).await;
        assert_eq!(answered(&replies), 1, "one may cross the limit, no more");
        assert_eq!(openai.count(), 2);
        let refused = replies.iter().find(|reply| reply.status == 429).unwrap();
        let told = refused.refused(429, "insufficient_quota");
        assert!(told.starts_with("daily quota used up: limit 10000 tokens, used ") && told.contains("resets at"), "{told}");
        let wait: i64 = refused.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=90_000).contains(&wait), "until the next midnight: {wait}");
        // What the one left over of its estimate lies beyond the limit.
        assert_eq!(answered(&storm(std::slice::from_ref(&client), 20).await), 0);
        tokio::time::sleep(Duration::from_millis(800)).await;
        assert_eq!(answered(&storm(std::slice::from_ref(&client), 20).await), 0);
        assert_eq!(site.rows().await.len(), 1 + 200 + 40, "every refusal has its row");
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
        tokio::time::sleep(Duration::from_millis(400)).await;
        while client.chat(&ask("gpt-4o", "hello")).await.status == 200 {}
        let used = used(&site, &user).await;
        assert_eq!(used, 5_000, "fifty requests of a hundred tokens, no more and no less");
        site
    }

    async fn two_processes_share_one_quota(database: Database) {
        let openai = Provider::start(slow(answer("ok", 60, 40))).await;
        let options = || Options::with(None, Some(&openai), None);
        let site = Site::start(database, options()).await;
        let other = site.another(options()).await;
        let (user, _, key) = site.employee("eve", 10_000).await;
        openai.then([answer("much", 9_000, 900)]);
        assert_eq!(site.client(&key).chat(&ask("gpt-4o", "hello")).await.status, 200);
        let clients = [site.client(&key), other.client(&key)];
        let replies = storm(&clients, 100).await;
        assert_eq!(answered(&replies), 1, "one of both");
        // What another process appended is loaded by that process.
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
        let (_, _, key) = site.employee("kim", 6_000).await;
        // Its estimate crosses the limit; almost nothing of it is used.
        assert_eq!(site.client(&key).chat(&ask("gpt-4o", &"x ".repeat(4000))).await.status, 200);
        tokio::time::sleep(Duration::from_millis(1500)).await;
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
        let told = reply.refused(429, "insufficient_quota");
        assert_eq!(told, "the key's quota is used up: limit 3000 units, used 3750");
        assert_eq!(reply.header("retry-after"), None, "it does not come back by itself");
        site.rows().await;
        let key = store::gateway_key::named(&site.app.db, "named").await.unwrap().unwrap();
        assert_eq!(key.logged_quota, 3_750);
        site.change("named", false, |key| key.quota = Some(4_000)).await;
        tokio::time::sleep(Duration::from_millis(2100)).await;
        assert_eq!(client.chat(&ask("gpt-4o", "hello")).await.status, 200, "raised");
        site.change("named", false, |key| key.quota = Some(100)).await;
        tokio::time::sleep(Duration::from_millis(2100)).await;
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
        let clock = Clock::fixed("2026-11-15T12:00:00Z".parse().unwrap());
        let mut options = Options::with(None, Some(&openai), None);
        options.clock = clock.clone();
        let site = Site::start(database, options).await;
        let (user, _, key) = site.employee("mia", 1_000).await;
        let client = site.client(&key);
        assert_eq!(client.chat(&ask("gpt-4o", "hello")).await.status, 200);
        let reply = client.chat(&ask("gpt-4o", "hello")).await;
        let told = reply.refused(429, "insufficient_quota");
        assert!(told.ends_with("used 1000, resets at 2026-11-16T00:00:00.000+01:00"), "{told}");
        assert_eq!(reply.header("retry-after").as_deref(), Some("39600"), "eleven hours");
        site.rows().await;
        clock.advance(SignedDuration::from_hours(11));
        assert_eq!(client.chat(&ask("gpt-4o", "hello")).await.status, 200, "the next day");
        assert_eq!(used(&site, &user).await, 1_000, "of the new day alone");
        site
    }

    async fn whoever_leaves_in_the_middle_leaves_no_grant_behind(database: Database) {
        let site = Site::start(database, Options::echo()).await;
        let (user, _, _) = site.employee("tom", 1_000_000_000).await;
        let subject = Subject::user(&site.app, &user, 1_000_000_000).unwrap();
        for i in 0..60u64 {
            let (app, subject) = (site.app.clone(), subject.clone());
            // Each more than all before left over, so that the database is asked every time.
            let estimate = 200_000 * (i as i64 + 1);
            let reserving = tokio::spawn(async move { app.quotas.reserve(&app, &subject, estimate).await.map(drop) });
            tokio::time::sleep(Duration::from_micros(i * 60)).await;
            reserving.abort();
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        site.app.quotas.hand_back(&site.app, true).await.unwrap();
        let mut tx = site.app.db.begin().await.unwrap();
        assert_eq!(quota_grant::granted(&mut tx, &subject.name()).await.unwrap(), 0);
        tx.commit().await.unwrap();
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
        while openai.count() < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::time::sleep(Duration::from_millis(800)).await;
        drop(left);
        tokio::time::sleep(Duration::from_millis(300)).await;
        tx.commit().await.unwrap();
        assert_eq!(used(&site, &user).await, 50_020);
        site.app.quotas.hand_back(&site.app, true).await.unwrap();
        let subject = Subject::user(&site.app, &user, 100_000).unwrap();
        let mut tx = site.app.db.begin().await.unwrap();
        assert_eq!(quota_grant::granted(&mut tx, &subject.name()).await.unwrap(), 0, "the log has all of it");
        tx.commit().await.unwrap();
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
        let mut tx = app.db.begin().await.unwrap();
        let name = Subject::user(&app, &user, 1).unwrap().name();
        assert_eq!(quota_grant::granted(&mut tx, &name).await.unwrap(), 1_999);
        tx.commit().await.unwrap();
        site
    }
}

/// What the log says a user used today.
async fn used(site: &Site, user: &UserId) -> i64 {
    site.rows().await;
    let midnight = site.app.zone.midnight(site.app.clock.now());
    domain::usage::spent(&site.app, user, midnight).await.unwrap()
}
