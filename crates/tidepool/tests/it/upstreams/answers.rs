//! What an employee is answered says whose failure it is, and a key that the gateway lost is made again at once.

use std::time::Duration;

use sim::with;

use super::{Kind, World, here};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_only_reserved_is_not_called_used() {
    let world = World::start(Kind::OneApi, here!("answers"), false).await.unwrap();
    world.site.instances("a", 1).await;
    let (user, token) = world.employee("a0", 1_844).await;
    world.ask(&token, "a0", "one two three").ok().await;
    // Another request is under way, for which thousands are reserved.
    let app = &world.site.app;
    let subject = llm::quota::Subject::user(app, &base::id::UserId::named(&user), 1_844).unwrap();
    let under_way = app.quotas.reserve(app, &subject, 4_100).await.unwrap();
    let refusal = world.ask(&token, "a0", "one two three").refused("4291").await;
    assert!(refusal.contains("limit 1844 tokens, used 6,") && refusal.contains("4100 reserved"), "{refusal}");
    drop(under_way);
    tokio::time::sleep(Duration::from_millis(400)).await;
    app.quotas.hand_back(app, true).await.unwrap();
    world.ask(&token, "a0", "one two three").ok().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_the_gateway_lost_is_made_again_at_the_first_refusal() {
    for stream in [false, true] {
        let world = World::start(Kind::OneApi, here!("answers"), false).await.unwrap();
        world.site.instances("a", 1).await;
        let (_, token) = world.employee("a0", 0).await;
        world.ask(&token, "a0", "one").ok().await;
        let first = world.key("a0").await.key(&world.site.app.sealer).unwrap();
        world.gateway.tables.run("DELETE FROM tokens WHERE name = ?", with!["a0"]).await.unwrap();
        if stream {
            let answer = world.ask_stream(&token, "a0", "two three").await;
            assert!(answer.contains("[DONE]"), "{answer}");
        } else {
            assert_eq!(world.ask(&token, "a0", "two three").ok().await["content"], "two three");
        }
        let second = world.key("a0").await.key(&world.site.app.sealer).unwrap();
        assert_ne!(first.expose(), second.expose());
        world.ask(&token, "a0", "four").ok().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_says_whose_failure_it_is() {
    for kind in [Kind::OneApi, Kind::NewApi] {
        let world = World::start(kind, here!("answers"), false).await.unwrap();
        let site = &world.site;
        site.instances("a", 1).await;
        let (_, token) = world.employee("a0", 0).await;
        world.ask(&token, "a0", "one").ok().await;
        let key = world.key("a0").await;
        // The provider refuses the gateway's own key, and the gateway passes its 401 on.
        world.gateway.switches.set(|s| &s.upstream_unauthorized, true);
        let refusal = world.ask(&token, "a0", "two").refused("5020").await;
        assert!(refusal.contains("the model provider refuses the LLM gateway's key"), "{refusal}");
        assert_eq!(world.key("a0").await.gateway_id, key.gateway_id, "the sub key is not to blame");
        world.gateway.switches.set(|s| &s.upstream_unauthorized, false);
        // The account that all keys spend from is empty.
        world.gateway.tables.run("UPDATE users SET quota = 0", vec![]).await.unwrap();
        let refusal = world.ask(&token, "a0", "three").refused("5020").await;
        assert!(refusal.contains("account") && refusal.contains("not yours"), "{refusal}");
        world.gateway.tables.run("UPDATE users SET quota = 1000000", vec![]).await.unwrap();
        // Somebody switched the key off at the gateway: our record says on, so it is put right.
        world.gateway.tables.run("UPDATE tokens SET status = 2", vec![]).await.unwrap();
        world.ask(&token, "a0", "four").ok().await;
        // The key's own quota is the key's.
        world
            .gateway
            .tables
            .run("UPDATE tokens SET unlimited_quota = ?, remain_quota = 1", with![false])
            .await
            .unwrap();
        let refusal = world.ask(&token, "a0", "five").refused("4291").await;
        assert!(refusal.contains("quota of this assistant's key"), "{refusal}");
    }
}
