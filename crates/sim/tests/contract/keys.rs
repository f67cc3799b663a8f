//! Sub keys: made once, found exactly, switched off and on, deleted, and charged.

use base::{Kind as Fault, Secret};
use futures_util::future::join_all;
use remote::llm::{KeyState, KeyStatus};

use crate::bench::{Bench, fault, new_key};
use crate::{on_every_gateway, on_every_kind};

on_every_kind! {
    async fn a_key_is_made_once_and_read_again(bench: Bench) {
        let gateway = &bench.gateway;
        let made = bench.create("inst-0001", Some(1_000_000)).await;
        assert_eq!((made.name.as_str(), made.status), ("inst-0001", KeyStatus::Enabled));
        assert_eq!((made.quota, made.remain_quota, made.used_quota), (Some(1_000_000), Some(1_000_000), 0));
        assert!(made.key.as_ref().unwrap().expose().starts_with("sk-"));
        assert_eq!(gateway.check_key(made.key.as_ref().unwrap()).await, KeyState::Valid);

        // Another process asks for the same, after a crash say: it is the same, value and all.
        let again = bench.twin.create_key(&new_key("inst-0001", Some(5))).await.unwrap();
        assert_eq!(again.gateway_id, made.gateway_id);
        assert_eq!(again.key, made.key);
        assert_eq!(again.quota, Some(1_000_000), "what is there stays as it is");

        let read = gateway.read_key(&made.gateway_id).await.unwrap().unwrap();
        assert_eq!((read.gateway_id, read.name, read.quota), (made.gateway_id.clone(), made.name, made.quota));
        assert!(gateway.read_key("987654321").await.unwrap().is_none());
        assert!(gateway.read_key("no number").await.unwrap().is_none());
        assert!(gateway.find_key("inst-000").await.unwrap().is_none(), "a beginning is not the name");
        assert_eq!(gateway.find_key("inst-0001").await.unwrap().unwrap().gateway_id, made.gateway_id);

        let unlimited = bench.create("inst-0002", None).await;
        assert_eq!((unlimited.quota, unlimited.remain_quota), (None, None));
        assert!(unlimited.enabled());
        let names: Vec<_> = gateway.keys().await.unwrap().into_iter().map(|k| k.name).collect();
        assert_eq!(names, ["inst-0001", "inst-0002"]);
    }

    async fn many_at_once_make_one(bench: Bench) {
        let new = new_key("inst-race", None);
        // Each process queues its own callers; the two do not know of each other.
        let made = join_all((0..6).map(|i| {
            let gateway = if i % 2 == 0 { &bench.gateway } else { &bench.twin };
            gateway.create_key(&new)
        }))
        .await;
        let made: Vec<_> = made.into_iter().map(Result::unwrap).collect();
        assert!(made.iter().all(|key| key.gateway_id == made[0].gateway_id), "{made:#?}");
        assert!(made.iter().all(|key| key.key == made[0].key && key.key.is_some()));
        assert_eq!(bench.gateway.keys().await.unwrap().len(), 1);
        assert_eq!(bench.gateway.check_key(made[0].key.as_ref().unwrap()).await, KeyState::Valid);
    }

    async fn a_disabled_key_does_nothing_and_loses_nothing(bench: Bench) {
        let gateway = &bench.gateway;
        let key = bench.create("inst-off", Some(700_000)).await;
        let secret = key.key.as_ref().unwrap();
        bench.say(&key, "one two three").await;
        bench.written().await;
        let before = gateway.read_key(&key.gateway_id).await.unwrap().unwrap();
        gateway.set_enabled(&key.gateway_id, false).await.unwrap();
        gateway.set_enabled(&key.gateway_id, false).await.unwrap();
        let off = gateway.read_key(&key.gateway_id).await.unwrap().unwrap();
        assert_eq!(off.status, KeyStatus::Disabled);
        assert_eq!((&off.name, off.quota, off.remain_quota), (&before.name, before.quota, before.remain_quota));
        assert_eq!(gateway.check_key(secret).await, KeyState::Invalid);
        let (status, body) = bench.refused(secret).await;
        assert_eq!(status, 401, "{body}");
        // An adopted key stays as it is: whoever switched it off had a reason.
        assert_eq!(bench.create("inst-off", None).await.status, KeyStatus::Disabled);

        gateway.set_enabled(&key.gateway_id, true).await.unwrap();
        assert!(gateway.read_key(&key.gateway_id).await.unwrap().unwrap().enabled());
        assert_eq!(gateway.check_key(secret).await, KeyState::Valid);
        bench.say(&key, "hello again").await;
        // A change that is not of the status alone would set what it does not name to nothing.
        if !bench.is("embedded") {
            let puts: Vec<_> = bench.sim().switches.calls().into_iter().filter(|c| c.starts_with("PUT")).collect();
            assert!(puts.iter().all(|call| call.ends_with("?status_only=true")), "{puts:?}");
        }
        assert_eq!(fault(gateway.set_enabled("987654321", true).await).0, Fault::NotFound);
    }

    async fn a_deleted_key_is_gone_and_its_name_is_free(bench: Bench) {
        let gateway = &bench.gateway;
        let key = bench.create("inst-gone", None).await;
        gateway.delete_key(&key.gateway_id).await.unwrap();
        assert!(gateway.read_key(&key.gateway_id).await.unwrap().is_none());
        assert!(gateway.find_key("inst-gone").await.unwrap().is_none());
        assert_eq!(gateway.check_key(key.key.as_ref().unwrap()).await, KeyState::Invalid);
        assert_eq!(bench.refused(key.key.as_ref().unwrap()).await.0, 401);
        // Not there is what was asked for.
        for id in [key.gateway_id.as_str(), "987654321", "no number", ""] {
            gateway.delete_key(id).await.unwrap();
        }
        let mut again_one = new_key("inst-gone", None);
        again_one.value = Some(Secret::new("sk-test-another-value-than-before"));
        let again_one = gateway.create_key(&again_one).await.unwrap();
        assert_ne!(again_one.gateway_id, key.gateway_id);
        assert_ne!(again_one.key, key.key, "a key that was deleted does not come back");
    }

    async fn a_key_and_its_account_are_charged(bench: Bench) {
        let gateway = &bench.gateway;
        let key = bench.create("inst-spend", Some(1_000_000)).await;
        let before = gateway.balance().await.unwrap();
        for _ in 0..3 {
            bench.say(&key, "one two three four five").await;
        }
        bench.written().await;
        // (5 + 5 × 4) × 0.075 is 1.875 of a unit, which is 2; dollars are not rounded.
        let each: f64 = match bench.setup.kind {
            "litellm" => (5.0 * 0.15e-6 + 5.0 * 0.6e-6) * 500_000.0,
            // Ten tokens at 0.075 of a unit: the exact cost is summed, and rounded once.
            "embedded" => 0.75,
            _ => 2.0,
        };
        let spent = (3.0 * each).round() as i64;
        let after = gateway.read_key(&key.gateway_id).await.unwrap().unwrap();
        assert_eq!((after.used_quota, after.remain_quota), (spent, Some(1_000_000 - spent)));
        assert_eq!(after.quota, Some(1_000_000));
        let balance = gateway.balance().await.unwrap();
        assert_eq!(balance.used - before.used, spent);
        assert_eq!(balance.remain, before.remain.map(|remain| remain - spent));
    }

    async fn a_spent_key_says_so(bench: Bench) {
        let key = bench.create("inst-poor", Some(4)).await;
        for _ in 0..2 {
            // A little less than two units each, rounded to two; of our own gateway, which sums exact costs, 2.1.
            let many = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen";
            let text = if bench.is("embedded") { many } else { "one two three four five" };
            bench.say(&key, text).await;
            bench.written().await;
        }
        if bench.is("litellm") {
            let almost = bench.gateway.read_key(&key.gateway_id).await.unwrap().unwrap();
            assert_eq!((almost.used_quota, almost.status), (4, KeyStatus::Enabled), "not to the last bit");
            bench.say(&key, "one two").await;
            bench.written().await;
        }
        let spent = bench.gateway.read_key(&key.gateway_id).await.unwrap().unwrap();
        assert_eq!(spent.status, KeyStatus::Exhausted, "{spent:?}");
        let state = bench.gateway.check_key(key.key.as_ref().unwrap()).await;
        // These two do not tell a spent key from an unknown one.
        assert_eq!(state, if bench.family() { KeyState::Invalid } else { KeyState::Exhausted });
    }

    async fn any_name_is_found_as_it_was_given(bench: Bench) {
        let mut names = vec!["a%%b", "a%", "a_b", "axb", "a\\b", "ab", "O'B\"; DROP TABLE tokens;--", "名字", "#?&=+ /"];
        // A mask over every key costs a call of which there are twenty.
        if bench.family() && bench.setup.server == crate::bench::Server::Mariadb {
            names = vec!["inst", "INST", "ínst", "a\\b", "ab", "a_b", "axb"];
        }
        let mut ids = std::collections::HashSet::new();
        for name in &names {
            let key = bench.gateway.create_key(&new_key(name, None)).await.unwrap();
            assert_eq!(key.name, *name);
            assert!(ids.insert(key.gateway_id.clone()), "{name} is another's");
        }
        for name in &names {
            let found = bench.gateway.find_key(name).await.unwrap().unwrap();
            assert_eq!(found.name, *name);
            let again = bench.twin.create_key(&new_key(name, None)).await.unwrap();
            assert_eq!(again.gateway_id, found.gateway_id, "{name}");
        }
        assert_eq!(bench.gateway.keys().await.unwrap().len(), names.len());
        for bad in ["", " x", "a\nb", &"x".repeat(bench.gateway.kind().name_limit + 1)] {
            assert_eq!(fault(bench.gateway.create_key(&new_key(bad, None)).await).0, Fault::BadRequest);
        }
    }
}

on_every_gateway! {
    async fn of_several_the_oldest_enabled_stays(bench: Bench) {
        bench.smuggle("inst-twice", false).await;
        let oldest = bench.smuggle("inst-twice", true).await;
        // litellm's times are milliseconds.
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        bench.smuggle("inst-twice", true).await;
        let other = bench.smuggle("inst-twice-more", true).await;
        assert_eq!(bench.gateway.find_key("inst-twice").await.unwrap().unwrap().gateway_id, oldest);
        assert_eq!(bench.gateway.keys().await.unwrap().len(), 4, "looking deletes nothing");
        let kept = bench.gateway.create_key(&new_key("inst-twice", None)).await.unwrap();
        assert_eq!(kept.gateway_id, oldest);
        // litellm has forgotten what it was; we were not the ones who made it.
        assert_eq!(kept.key.is_some(), bench.family());
        let left: Vec<_> = bench.gateway.keys().await.unwrap().into_iter().map(|k| k.gateway_id).collect();
        assert!(left.len() == 2 && left.contains(&oldest) && left.contains(&other), "{left:?}");
    }

    async fn every_key_is_listed_once(bench: Bench) {
        // More than two pages of ten, or of a hundred.
        let count = if bench.is("one-api") { 23 } else { 203 };
        for i in 0..count {
            bench.smuggle(&format!("inst-{i:03}"), true).await;
        }
        let keys = bench.gateway.keys().await.unwrap();
        let mut names: Vec<_> = keys.iter().map(|k| k.name.clone()).collect();
        names.sort();
        assert_eq!(names, (0..count).map(|i| format!("inst-{i:03}")).collect::<Vec<_>>());
        assert!(bench.gateway.find_key("inst-000").await.unwrap().is_some());
        assert!(bench.gateway.find_key("inst-999").await.unwrap().is_none());
    }
}
