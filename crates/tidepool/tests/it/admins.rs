//! Administrators: roles, the last super_admin, and the two kinds of token apart.

use serde_json::json;

use crate::kit::{Database, PASSWORD, Site};
use crate::on_both;

on_both! {
    async fn administrators_are_made_changed_and_deleted_by_super_admins(site: Site) {
        let me = site.admin.get("/auth/me").token(&site.root).ok().await;
        assert_eq!((me["email"].as_str(), me["role"].as_str()), (Some("root@example.com"), Some("super_admin")));
        let token = site.plain_admin("plain@example.com", "admin").await;
        assert_eq!(site.admin.get("/auth/me").token(&token).ok().await["role"], "admin");
        for call in [
            site.admin.post("/admin-users", json!({"email": "x@example.com"})),
            site.admin.patch("/admin-users/root@example.com", json!({"role": "admin"})),
            site.admin.delete("/admin-users/root@example.com"),
        ] {
            call.token(&token).refused("4030").await;
        }
        let list = site.admin.get("/admin-users").token(&token).ok().await;
        assert_eq!(list["total"], 2);
        assert!(!list.to_string().contains("password_hash"));

        site.admin.patch("/admin-users/PLAIN@example.com", json!({"role": "super_admin"})).token(&site.root).ok().await;
        site.admin.get("/admin-users").token(&token).ok().await;
        site.admin.post("/admin-users", json!({"email": "x@example.com"})).token(&token).ok().await;
        site.admin.post("/admin-users", json!({"email": "X@example.com"})).token(&token).refused("4090").await;
        let sso_only = json!({"email": "x@example.com", "password": ""});
        site.admin.post("/auth/login", sso_only).refused("4011").await;

        site.admin.patch("/admin-users/plain@example.com", json!({"status": "revoked"})).token(&site.root).ok().await;
        site.admin.get("/auth/me").token(&token).refused("4010").await;
        site.admin.post("/auth/login", json!({"email": "plain@example.com", "password": PASSWORD})).refused("4031").await;
        site.admin.delete("/admin-users/plain@example.com").token(&site.root).ok().await;
        site.admin.patch("/admin-users/plain@example.com", json!({"status": "active"})).token(&site.root).refused("4040").await;
        site.admin.post("/auth/login", json!({"email": "plain@example.com", "password": PASSWORD})).refused("4011").await;
        site.admin.post("/admin-users", json!({"email": "plain@example.com"})).token(&site.root).refused("4090").await;
        assert_eq!(site.admin.get("/admin-users").token(&site.root).ok().await["total"], 2);
    }

    async fn the_last_super_admin_stays(site: Site) {
        for body in [json!({"status": "revoked"}), json!({"role": "admin"})] {
            site.admin.patch("/admin-users/root@example.com", body).token(&site.root).refused("4090").await;
        }
        site.admin.delete("/admin-users/root@example.com").token(&site.root).refused("4090").await;
        site.admin.patch("/admin-users/root@example.com", json!({"name": "Still here"})).token(&site.root).ok().await;
    }

    async fn two_super_admins_cannot_remove_each_other_at_one_moment(site: Site) {
        for round in 0..5 {
            let other = format!("other{round}@example.com");
            let token = site.plain_admin(&other, "super_admin").await;
            let one = site.admin.patch(&format!("/admin-users/{other}"), json!({"status": "revoked"})).token(&site.root);
            let two = site.admin.patch("/admin-users/root@example.com", json!({"role": "admin"})).token(&token);
            tokio::join!(one.send(), two.send());
            let list = site.admin.get("/admin-users").token(&site.root).ok().await;
            let left = list["list"].as_array().unwrap().iter()
                .filter(|a| a["role"] == "super_admin" && a["status"] == "active").count();
            assert_eq!(left, 1, "{list}");
            // Whoever is left puts the first one back.
            if site.admin.get("/admin-users?q=root").token(&site.root).ok().await["list"][0]["role"] == "admin" {
                site.admin.patch("/admin-users/root@example.com", json!({"role": "super_admin"})).token(&token).ok().await;
                site.admin.delete(&format!("/admin-users/{other}")).token(&site.root).ok().await;
            }
        }
    }

    async fn an_administrator_changes_the_own_password(site: Site) {
        let body = json!({"old": PASSWORD, "new": "root-has-another-one"});
        let fresh = site.admin.post("/auth/password", body).token(&site.root).ok().await;
        site.admin.get("/auth/me").token(&site.root).refused("4010").await;
        site.admin.get("/auth/me").token(fresh["token"].as_str().unwrap()).ok().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_of_one_side_are_worth_nothing_on_the_other() {
    let site = Site::start(Database::sqlite()).await;
    let (_, employee) = site.employee("ada@example.com").await;
    site.admin.get("/auth/me").token(&employee).refused("4010").await;
    site.employee.get("/me").token(&site.root).refused("4010").await;
}
