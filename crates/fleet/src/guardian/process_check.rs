//! guardian_process_check: every gateway process on a server belongs to the service of an instance registered there.

use std::collections::HashSet;
use std::sync::Arc;

use base::{Result, When};
use serde_json::json;

use super::{Dimension, Finding, brief};
use crate::sweep::{self, Since};
use crate::{App, tenant};

pub(super) const DIMENSION: Dimension = Dimension {
    name: "guardian_process_check",
    label: "Processes",
    when: When::hourly(20),
    check: |app| Box::pin(check(app)),
};

async fn check(app: Arc<App>) -> Result<Vec<Finding>> {
    let posts = sweep::fleet(&app).await?;
    let found = sweep::everywhere(&app, posts, |app, post| async move {
        let id = post.server.id.clone();
        let looked = match sweep::look(&app, &post, &brief(), Since::End).await {
            Ok(looked) => looked,
            Err(error) => return vec![Finding::new(&id, format!("the server cannot be reached: {}", error.client))],
        };
        let units = post.instances.iter().filter_map(|member| tenant::unit(&member.instance).ok());
        let services: HashSet<String> = units.map(|unit| unit.service()).collect();
        let stray =
            looked.sweep.server.gateways.iter().filter(|p| p.service.as_ref().is_none_or(|s| !services.contains(s)));
        stray
            .map(|process| {
                let service = process.service.as_deref().unwrap_or("no service");
                let mut finding = Finding::new(
                    &id,
                    format!("gateway process {} of {service} is no registered instance's", process.pid),
                );
                finding.extra =
                    json!({"pid": process.pid, "service": process.service, "config_path": process.config_path});
                finding
            })
            .collect()
    })
    .await;
    Ok(found.concat())
}
