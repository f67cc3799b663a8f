//! What ended long ago is deleted, but for what somebody still asks for.

use base::id::{InstanceId, TaskId};
use fleet::task::RestartInstance;
use jiff::SignedDuration;
use people::task::CleanInstance;
use queue::task;
use store::{args, task_log};

use crate::kit::Site;
use crate::on_both;

/// Makes a task that ended so, with a line in its log.
async fn ended(site: &Site, payload: &impl task::Payload, status: &str) -> TaskId {
    let mut tx = site.app.db.begin().await.unwrap();
    let id = task::enqueue(&site.app, &mut tx, payload, "test", None).await.unwrap();
    tx.run("UPDATE task SET status = ? WHERE id = ?", args![status, id.as_str()]).await.unwrap();
    task_log::write(&mut tx, &id, 1, "a line", site.app.clock.now()).await.unwrap();
    tx.commit().await.unwrap();
    id
}

async fn is_there(site: &Site, id: &TaskId) -> bool {
    let found = store::task::find(&site.app.db, id).await.unwrap().is_some();
    let lines = task_log::lines(&site.app.db, id).await.unwrap().len();
    assert_eq!(lines, usize::from(found), "the log goes with its task");
    found
}

on_both! {
    async fn tasks_that_are_done_are_kept_for_thirty_days(site: Site) {
        let ids = site.instances("a", 1).await;
        let restart = RestartInstance { instance_id: InstanceId::named(&ids[0]) };
        let clean = CleanInstance { instance_id: InstanceId::named(&ids[0]) };
        let mut old = vec![];
        // More than are deleted in one transaction.
        for _ in 0..501 {
            old.push(ended(site, &restart, "done").await);
        }
        let (first_clean, given_up) = (ended(site, &clean, "done").await, ended(site, &clean, "dead").await);
        let (last_clean, dead) = (ended(site, &clean, "done").await, ended(site, &restart, "dead").await);
        let waiting = ended(site, &restart, "failed").await;
        site.app.clock.advance(SignedDuration::from_hours(24 * 29));
        let young = ended(site, &restart, "done").await;
        let root = site.admin_login(crate::kit::ROOT).await;
        assert!(site.run_job(&root, "audit_cleanup").await.contains("0 tasks"));
        site.app.clock.advance(SignedDuration::from_hours(24 * 2));
        let root = site.admin_login(crate::kit::ROOT).await;
        assert!(site.run_job(&root, "audit_cleanup").await.ends_with("502 tasks"));
        for gone in old.iter().chain([&first_clean]) {
            assert!(!is_there(site, gone).await);
        }
        // The last cleaning says that the instance is clean, in spite of the one that was given up.
        for kept in [&last_clean, &given_up, &dead, &waiting, &young] {
            assert!(is_there(site, kept).await);
        }
        site.app.clock.advance(SignedDuration::from_hours(24 * 365));
        let root = site.admin_login(crate::kit::ROOT).await;
        site.run_job(&root, "audit_cleanup").await;
        assert!(!is_there(site, &dead).await && is_there(site, &given_up).await && is_there(site, &last_clean).await);
    }
}
