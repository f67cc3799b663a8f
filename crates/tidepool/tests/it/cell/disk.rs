//! What a home takes of the disk is counted, whatever its owner hides, and has a limit.

use base::id::InstanceId;
use fleet::assistant::{Assistant, cell as on_server};
use jiff::SignedDuration;
use serde_json::json;

use crate::kit::hosts::Ground;
use crate::kit::simulated::Simulated;

/// What a home takes is counted by the look at the server: above its limit there is an alert, which ends when it takes less.
#[tokio::test(flavor = "multi_thread")]
async fn a_home_that_takes_more_than_its_limit_raises_an_alert() {
    let ground = Simulated::new().await;
    ground.provisioned("a").await;
    let site = &ground.site;
    fleet::health::check(&site.app).await.unwrap();
    let shown = site.admin.get("/instances/a").token(&site.root).ok().await;
    assert_eq!(shown["cell"], "confined");
    assert!(shown["home_bytes"].as_i64().unwrap() > 200 << 20, "{shown}");
    let alerts =
        async || site.admin.get("/alerts?rule=disk_over_limit&open=true").token(&site.root).ok().await["total"].clone();
    assert_eq!(alerts().await, 0);
    let limit = async |mib: i64| {
        site.admin.put("/instances/a/cell/limits", json!({"disk_mib": mib})).token(&site.root).ok().await;
        let working = ground.work();
        ground.done(&ground.latest("confine_instance").await).await;
        working.stop().await;
        // It is not counted again at every look.
        fleet::health::check(&site.app).await.unwrap();
        let after_a_look = alerts().await;
        site.app.clock.advance(SignedDuration::from_mins(31));
        fleet::health::check(&site.app).await.unwrap();
        (after_a_look, alerts().await)
    };
    assert_eq!(limit(100).await, (json!(0), json!(1)));
    assert_eq!(limit(9000).await, (json!(1), json!(0)));
    site.check().await;
}

/// A home that could not be counted for two hours is no home below its limit.
#[tokio::test(flavor = "multi_thread")]
async fn a_home_that_cannot_be_counted_raises_an_alert() {
    let ground = Simulated::new().await;
    ground.provisioned("a").await;
    let site = &ground.site;
    let alerts = async || {
        fleet::health::check(&site.app).await.unwrap();
        site.admin.get("/alerts?rule=disk_over_limit&open=true").token(&site.root).ok().await["total"].clone()
    };
    assert_eq!(alerts().await, 0);
    ground.machine.count_no_homes(true);
    let mut seen = vec![];
    for _ in 0..6 {
        site.app.clock.advance(SignedDuration::from_mins(31));
        seen.push(alerts().await);
    }
    assert_eq!(seen, [0, 0, 0, 1, 1, 1]);
    ground.machine.count_no_homes(false);
    site.app.clock.advance(SignedDuration::from_mins(31));
    assert_eq!(alerts().await, 0);
    site.check().await;
}

/// What a home takes is counted whatever its owner hides.
#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_hides_nothing_from_the_count() {
    let name = "cell::disk::a_tenant_hides_nothing_from_the_count";
    let Some(mut ground) = Ground::new(name).await else { return };
    let id = ground.provisioned(json!({})).await;
    let user = ground.show(&id).await["runs_as"].as_str().unwrap().to_owned();
    // What is not on the disk yet takes nothing of it: without `sync` that is some seconds later.
    let hide = r#"runuser -u "$1" -- sh -c 'cd "$0" && mkdir hidden && head -c 60000000 /dev/zero >hidden/big && sync hidden/big && chmod 000 hidden' "$2""#;
    ground.sh(hide, &[&user, &ground.home(&id).await]).await;
    // A count that a busy machine did not come to the end of says nothing.
    let counted = async |least: i64| {
        ground.site.app.clock.advance(SignedDuration::from_mins(31));
        testkit::until_ok("it is counted", async || {
            fleet::health::check(&ground.site.app).await.unwrap();
            let bytes = ground.show(&id).await["home_bytes"].as_i64().unwrap_or(0);
            if bytes > least { Ok(bytes) } else { Err(bytes) }
        })
        .await
    };
    let home = counted(60_000_000).await;
    // What it writes to its own /tmp lies on the server's disk too.
    let assistant = Assistant::open(&ground.site.app, &InstanceId::named(&id)).await.unwrap();
    let script = "head -c 30000000 /dev/zero >/var/tmp/big; sync /var/tmp/big; chmod 000 /var/tmp/big";
    on_server::run(&assistant, remote::host::Command::script("test", &[script])).await.unwrap();
    counted(home + 29_000_000).await;
    ground.end().await;
}
