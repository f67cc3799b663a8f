//! Who may ask: keys that there are not, keys that are switched off, keys while the database is away.

use base::id::UserId;
use jiff::SignedDuration;
use queue::audit::By;
use store::gateway_key::Status;

use crate::kit::{Client, Database, Options, Site, ask};
use crate::on_both;

async fn status(client: &Client) -> u16 {
    client.chat(&ask("gpt-4o", "hello")).await.status
}

/// Waits until a key is answered so, while the clock stands still.
async fn becomes(client: &Client, expected: u16) {
    testkit::until_ok(&format!("the key is answered {expected}"), async || match status(client).await {
        status if status == expected => Ok(()),
        status => Err(status),
    })
    .await;
}

/// From this age on a key is read again in the background, and from that on before it counts.
const SOFT: SignedDuration = SignedDuration::from_secs(1);
const HARD: SignedDuration = SignedDuration::from_secs(2);

#[test]
fn the_ages_are_those_of_the_product() {
    let timing = gateway::keys::Timing::default();
    assert_eq!((timing.soft, timing.hard), (SOFT.unsigned_abs(), HARD.unsigned_abs()));
}

on_both! {
    async fn a_key_that_there_is_not_is_refused_and_leaves_no_row(database: Database) {
        let site = Site::start(database, Options::echo()).await;
        let client = site.free().await;
        for key in ["", "sk-nothing", "x y", &"k".repeat(5000)] {
            let reply = site.client(key).chat(&ask("gpt-4o", "x")).await;
            reply.refused(401, "invalid_api_key");
        }
        site.client("sk-nothing").get("/v1/models").await.refused(401, "invalid_api_key");
        site.client("sk-nothing").get("/live").await.refused(401, "invalid_api_key");
        assert_eq!(status(&client).await, 200);
        assert_eq!(site.rows().await.len(), 1);
        site
    }

    async fn what_changes_takes_hold_at_once_when_it_is_told_and_soon_when_not(database: Database) {
        let site = Site::start(database, Options::echo()).await;
        // In the product one task listens for every process.
        let db = site.app.db.clone();
        tokio::spawn(async move { db.relay_notices().await });
        site.app.db.notices_relayed().await;
        let client = site.free().await;
        assert_eq!(status(&client).await, 200);
        site.change("free", true, |key| key.status = Status::Disabled).await;
        // No time passes on the gateway's clock: the notice alone does it.
        becomes(&client, 401).await;
        let message = client.chat(&ask("gpt-4o", "x")).await.refused(401, "invalid_api_key");
        assert!(message.contains("administrator"), "{message}");
        // Without a notice it is what was read last, for a second.
        site.change("free", false, |key| key.status = Status::Active).await;
        assert_eq!(status(&client).await, 401);
        // The next who asks gets that answer for the last time, and lets the key be read in the background.
        site.app.clock.advance(SOFT);
        assert_eq!(status(&client).await, 401);
        becomes(&client, 200).await;
        site.change("free", false, |key| key.user_revoked = true).await;
        assert_eq!(status(&client).await, 200);
        site.app.clock.advance(SOFT);
        becomes(&client, 401).await;
        // Nobody asked for two seconds: the very first who does is refused.
        site.change("free", false, |key| key.user_revoked = false).await;
        site.app.clock.advance(HARD);
        assert_eq!(status(&client).await, 200);
        site.change("free", false, |key| key.user_revoked = true).await;
        site.app.clock.advance(HARD);
        assert_eq!(status(&client).await, 401);
        site.change("free", false, |key| (key.user_revoked, key.quota_spent) = (false, true)).await;
        site.app.clock.advance(HARD);
        client.chat(&ask("gpt-4o", "x")).await.refused(429, "insufficient_quota");
        site
    }

    async fn a_new_key_is_known_soon_after_it_was_refused(database: Database) {
        let site = Site::start(database, Options::echo()).await;
        let (_, instance, key) = site.employee("ada", 0).await;
        let client = site.client(&key);
        assert_eq!(status(&client).await, 200);
        // The same text as a key of another record, which there is not yet.
        let early = site.client("sk-test-made-later");
        assert_eq!(status(&early).await, 401);
        let mut tx = site.app.db.begin().await.unwrap();
        let record = store::gateway_key::named(&mut tx, &instance).await.unwrap().unwrap();
        let secret = base::Secret::new("sk-test-made-later");
        let sealed = site.app.sealer.seal(store::gateway_key::place(&record.id), &secret).unwrap();
        store::gateway_key::set_secret(&mut tx, &record.id, &sealed, &site.app.sealer.hash(&secret), record.updated_at).await.unwrap();
        tx.commit().await.unwrap();
        site.app.clock.advance(HARD);
        assert_eq!(status(&early).await, 200, "rotated, and the new key is not known");
        assert_eq!(status(&client).await, 401, "rotated, and the old key is");
        site
    }

    async fn a_revoked_users_instance_is_refused(database: Database) {
        let site = Site::start(database, Options::echo()).await;
        let (user, _, key) = site.employee("bob", 0).await;
        let client = site.client(&key);
        assert_eq!(status(&client).await, 200);
        revoke(&site, &user).await;
        site.app.clock.advance(HARD);
        let message = client.chat(&ask("gpt-4o", "x")).await.refused(401, "invalid_api_key");
        assert!(message.contains("revoked"), "{message}");
        site
    }
}

async fn revoke(site: &Site, user: &UserId) {
    people::user::delete(&site.app, &By::system(), user).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_database_is_away_known_keys_go_on_and_nothing_is_lost() {
    let site = Site::start(Database::sqlite(), Options::echo()).await;
    let client = site.free().await;
    let limited = site.client(&site.key("limited", None, Some(1_000_000)).await);
    assert_eq!((status(&client).await, site.rows().await.len()), (200, 1));
    assert_eq!(client.get("/v1/models").await.status, 200);
    assert_eq!(limited.get("/v1/models").await.status, 200);
    site.app.db.close().await;
    site.app.clock.advance(SignedDuration::from_secs(59));
    assert_eq!(status(&client).await, 200, "known less than a minute ago");
    // Nobody knows what is left of a quota: nothing is spent.
    assert_eq!(status(&limited).await, 503);
    site.client("sk-unknown").chat(&ask("gpt-4o", "x")).await.refused(503, "unavailable");
    let as_of = site.app.feed.pull().await;
    assert!(as_of.stale, "the last known numbers, and they say so");
    site.app.clock.advance(SignedDuration::from_secs(1));
    assert_eq!(status(&client).await, 503, "known too long ago");
    let corpse = site.die().await;
    let site = corpse.another(Options::echo()).await;
    let rows = site.rows_until(3).await;
    assert_eq!(rows.len(), 3, "the one that was refused for its quota too: {rows:?}");
    testkit::until("the dead one's folder is gone", async || std::fs::read_dir(&site.root).unwrap().count() == 1).await;
    site.end().await;
}
