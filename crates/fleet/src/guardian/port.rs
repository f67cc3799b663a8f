//! guardian_port: an instance listens on the port that is stored for it, and no other process does.

use std::sync::Arc;
use std::time::Duration;

use base::{Result, When};
use openclaw::unit::Active;
use serde_json::json;
use store::instance::Runner;

use super::{Dimension, Finding, brief, document, each_instance};
use crate::{App, tenant};

pub(super) const DIMENSION: Dimension =
    Dimension { name: "guardian_port", label: "Ports", when: When::hourly(5), check: |app| Box::pin(check(app)) };

const YOUNG: Duration = Duration::from_secs(90);

async fn check(app: Arc<App>) -> Result<Vec<Finding>> {
    each_instance(&app, brief(), |app, looked, member, answer| async move {
        let (id, port) = (&member.instance.id, member.instance.gateway_port.get());
        let mut found = vec![];
        // A container has a port of its own inside.
        if member.instance.runner != Runner::Container
            && let Ok(Some(document)) = document(&app, &member, &answer).await
            && let Some(configured) = document.get(["gateway", "port"]).and_then(|port| port.as_i64())
            && configured != port
        {
            let mut finding = Finding::new(id, format!("its configuration says port {configured}, stored is {port}"));
            finding.extra = json!({"stored": port, "configured": configured});
            found.push(finding);
        }
        let settled = answer.running_for(&looked.sweep.server).is_some_and(|age| age >= YOUNG);
        if answer.unit.active != Active::Active || !settled || !answer.complete {
            return found;
        }
        let Ok(runner) = tenant::runner(&member.instance) else { return found };
        if answer.listeners.is_empty() {
            found.push(Finding::new(id, format!("nobody listens on its port {port}")));
        } else if let Some(other) = answer.strangers(&runner).next() {
            let service = other.service_name();
            found.push(Finding::new(id, format!("its port {port} is held by process {} of {service}", other.pid)));
        }
        found
    })
    .await
}
