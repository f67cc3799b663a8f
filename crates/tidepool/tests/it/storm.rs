//! Everybody does everything at once: no call fails for a reason of ours, and the books balance afterwards.

use base::secret::random_bytes;
use serde_json::json;

use crate::kit::{Call, Site};
use crate::on_both;

const CLIENTS: usize = 16;
const CALLS: usize = 40;

/// One random call of an administrator or an employee.
fn any_call(site: &Site, tokens: &[(String, String)], professions: &[String], entries: &[String]) -> Call {
    let dice = random_bytes::<4>().unwrap().map(usize::from);
    let instance = format!("a{}", dice[1] % 12);
    let (user, token) = &tokens[dice[2] % tokens.len()];
    let profession = &professions[dice[3] % professions.len()];
    let entry = &entries[dice[3] % entries.len()];
    let (admin, employee, root) = (&site.admin, &site.employee, &site.root);
    match dice[0] % 13 {
        0 => employee.post("/me/instances/claim", json!({})).token(token),
        1 => employee.post("/me/instances/claim", json!({"instance_id": instance})).token(token),
        2 => employee.delete(&format!("/me/instances/{instance}/claim")).token(token),
        3 | 4 => employee.post(&format!("/me/professions/{profession}/claim"), json!({})).token(token),
        5 => admin.patch(&format!("/instances/{instance}/assign"), json!({"user_id": user})).token(root),
        6 => admin.patch(&format!("/instances/{instance}/assign"), json!({"user_id": null})).token(root),
        7 => {
            let body = json!({"profession_id": profession, "instance_id": instance});
            admin.post("/profession-pool", body).token(root)
        }
        8 => admin.patch(&format!("/profession-pool/{entry}"), json!({"status": "idle"})).token(root),
        9 => {
            let body = json!({"gateway_port": 20_000 + dice[2] * 10, "notes": "storm"});
            admin.patch(&format!("/assistant-instances/{instance}"), body).token(root)
        }
        11 => employee.post(&format!("/me/instances/{instance}/replace"), json!({})).token(token),
        10 => {
            let id = format!("new-{}", base::id::fresh());
            admin.post("/assistant-instances", json!({"id": id, "name": "New", "server_id": "srv-a"})).token(root)
        }
        _ if dice[2] % 8 == 0 => admin.delete(&format!("/assistant-instances/{instance}")).token(root),
        _ => admin.patch(&format!("/users/{user}"), json!({"quota_daily": dice[2]})).token(root),
    }
}

on_both! {
    async fn everybody_at_once(site: Site) {
        let ids = site.ready_instances("a", 12).await;
        let mut tokens = vec![];
        for i in 0..6 {
            tokens.push(site.quick_employee(&format!("user{i}@example.com")).await);
        }
        let (first, mut entries) = site.profession("p", &ids[..3]).await;
        let (second, more) = site.profession("q", &ids[3..6]).await;
        entries.extend(more);
        let professions = [first, second];
        let mut clients = vec![];
        for _ in 0..CLIENTS {
            let calls: Vec<Call> = (0..CALLS).map(|_| any_call(site, &tokens, &professions, &entries)).collect();
            clients.push(tokio::spawn(async move {
                for call in calls {
                    let reply = call.send().await;
                    assert!(reply.status.as_u16() < 500, "{reply:?}");
                }
            }));
        }
        for client in clients {
            client.await.unwrap();
        }
    }
}
