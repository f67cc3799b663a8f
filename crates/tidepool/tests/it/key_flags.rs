//! The flags of an instance's key are those of whoever has the instance, whatever happens to user and instance at the same moment.

use base::id::{InstanceId, UserId};
use serde_json::json;
use store::{binding, gateway_key, instance, user};

use crate::kit::Site;
use crate::on_both;

/// Makes `a0`, gives it to a new employee and makes its key; answers the employee's id.
async fn held(site: &Site) -> String {
    site.instances("a", 1).await;
    let (user, _) = site.quick_employee("ada@example.com").await;
    site.admin.patch("/instances/a0/assign", json!({"user_id": user})).token(&site.root).ok().await;
    site.admin.post("/keys", json!({"instance_id": "a0"})).token(&site.root).ok().await;
    user
}

async fn is_revoked(site: &Site) -> bool {
    gateway_key::named(&site.app.db, "a0").await.unwrap().unwrap().user_revoked
}

on_both! {
    async fn a_revocation_that_waits_for_a_release_leaves_the_next_holders_key_alone(site: Site) {
        let user = held(site).await;
        let a0 = InstanceId::named("a0");
        // Takes the instance away as a release before this version did: without the user's row.
        let mut tx = site.begin_patient().await;
        gateway_key::lock_of_instance(&mut tx, &a0).await.unwrap().unwrap();
        binding::end(&mut tx, &a0, site.app.clock.now()).await.unwrap();
        instance::set_holder(&mut tx, &a0, None).await.unwrap();
        let path = format!("/users/{user}");
        let revoking = tokio::spawn(site.admin.patch(&path, json!({"status": "revoked"})).token(&site.root).send());
        site.until_blocked().await;
        tx.commit().await.unwrap();
        assert_eq!(revoking.await.unwrap().json()["data"]["status"], "revoked");
        assert!(!is_revoked(site).await, "nobody has the instance any more");
    }

    async fn a_release_waits_for_a_change_of_its_holder(site: Site) {
        let user = held(site).await;
        let mut tx = site.begin_patient().await;
        let mut account = user::lock(&mut tx, &UserId::named(&user)).await.unwrap().unwrap();
        let released = site.admin.patch("/instances/a0/assign", json!({"user_id": null})).token(&site.root);
        let releasing = tokio::spawn(released.send());
        site.until_blocked().await;
        account.status = user::Status::Revoked;
        user::update(&mut tx, &account, site.app.clock.now()).await.unwrap();
        gateway_key::mark_revoked(&mut tx, &UserId::named(&user), true, site.app.clock.now()).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(releasing.await.unwrap().status, 200);
        assert!(!is_revoked(site).await, "the revoked one has it no more");
    }

    async fn a_key_that_is_made_beside_a_revocation_is_off(site: Site) {
        let user = held(site).await;
        let key = gateway_key::named(&site.app.db, "a0").await.unwrap().unwrap();
        site.admin.delete(&format!("/keys/{}", key.id)).token(&site.root).ok().await;
        let mut tx = site.begin_patient().await;
        let mut account = user::lock(&mut tx, &UserId::named(&user)).await.unwrap().unwrap();
        let making = tokio::spawn(site.admin.post("/keys", json!({"instance_id": "a0"})).token(&site.root).send());
        site.until_blocked().await;
        account.status = user::Status::Revoked;
        user::update(&mut tx, &account, site.app.clock.now()).await.unwrap();
        gateway_key::mark_revoked(&mut tx, &UserId::named(&user), true, site.app.clock.now()).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(making.await.unwrap().json()["data"]["user_revoked"], true);
    }

    async fn a_day_that_is_spent_is_not_the_next_holders(site: Site) {
        let user = held(site).await;
        site.admin.patch(&format!("/users/{user}"), json!({"quota_daily": 10})).token(&site.root).ok().await;
        site.wait(std::time::Duration::from_secs(1));
        crate::reads::add(site, "r1", 11).await;
        let (other, _) = site.quick_employee("bob@example.com").await;
        let a0 = InstanceId::named("a0");
        // The instance changes hands after the days were compared, and before the key is switched.
        let mut tx = site.begin_patient().await;
        gateway_key::lock_of_instance(&mut tx, &a0).await.unwrap().unwrap();
        let app = site.app.clone();
        let looking = tokio::spawn(async move { llm::watch::look(&app).await });
        site.until_blocked().await;
        let now = site.app.clock.now();
        binding::end(&mut tx, &a0, now).await.unwrap();
        binding::insert(&mut tx, &UserId::named(&other), &a0, binding::Origin::Assigned, None, now).await.unwrap();
        instance::set_holder(&mut tx, &a0, Some(&UserId::named(&other))).await.unwrap();
        tx.commit().await.unwrap();
        looking.await.unwrap().unwrap();
        let key = gateway_key::named(&site.app.db, "a0").await.unwrap().unwrap();
        assert!(!key.quota_spent, "the next holder has spent nothing");
    }

    async fn a_new_holder_sets_the_keys_flags(site: Site) {
        held(site).await;
        site.admin.patch("/instances/a0/assign", json!({"user_id": null})).token(&site.root).ok().await;
        // As a version before this one may have left it.
        site.app.db.run("UPDATE gateway_key SET user_revoked = 1, quota_spent = 1", vec![]).await.unwrap();
        let (other, _) = site.quick_employee("bob@example.com").await;
        site.admin.patch("/instances/a0/assign", json!({"user_id": other})).token(&site.root).ok().await;
        let key = gateway_key::named(&site.app.db, "a0").await.unwrap().unwrap();
        assert!(key.enabled() && key.dirty, "and a foreign gateway hears of it");
    }

    async fn an_instance_that_was_deleted_meanwhile_gets_no_key(site: Site) {
        site.instances("a", 1).await;
        site.admin.delete("/assistant-instances/a0").token(&site.root).ok().await;
        let refused = llm::key::of_instance(&site.app, &InstanceId::named("a0")).await.unwrap_err();
        assert_eq!(refused.kind, base::Kind::NotFound);
        assert!(gateway_key::named(&site.app.db, "a0").await.unwrap().is_none());
    }

    async fn users_and_instances_that_change_at_once_never_disagree(site: Site) {
        let user = held(site).await;
        let (other, _) = site.quick_employee("bob@example.com").await;
        for _ in 0..12 {
            let mut all = vec![];
            for status in ["revoked", "active"] {
                all.push(site.admin.patch(&format!("/users/{user}"), json!({"status": status})).token(&site.root));
            }
            for holder in [json!(null), json!(user), json!(null), json!(other)] {
                all.push(site.admin.patch("/instances/a0/assign", json!({"user_id": holder})).token(&site.root));
            }
            let answers = futures_util::future::join_all(all.into_iter().map(|call| tokio::spawn(call.send()))).await;
            for answer in answers {
                let status = answer.unwrap().status;
                assert!(status == 200 || status == 409, "{status}");
            }
            site.check().await;
        }
    }
}
