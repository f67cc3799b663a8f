//! guardian_process_check: every gateway process on a server belongs to the service of an instance registered there.

use std::collections::HashSet;
use std::sync::Arc;

use base::{Result, When};
use openclaw::sweep::{Answer, Process, Service};
use serde_json::json;
use store::instance::{Instance, Runner};

use super::{Dimension, Finding, brief};
use crate::sweep::{self, Looked, Post, Since};
use crate::{App, tenant};

pub(super) const DIMENSION: Dimension = Dimension {
    name: "guardian_process_check",
    label: "Processes",
    when: When::hourly(20),
    check: |app| Box::pin(check(app)),
};

/// What belongs to the registered instances of a server.
struct Registered {
    services: HashSet<Service>,
    containers: HashSet<String>,
    /// The processes that nothing starts, and that have the port of their instance.
    processes: HashSet<u32>,
}

impl Registered {
    fn of(post: &Post, looked: &Looked) -> Registered {
        let all = || {
            let all = post.instances.iter().enumerate();
            all.map(|(number, member)| (&member.instance, looked.of(number)))
        };
        let service_of = |(instance, answer): (&Instance, Option<&Answer>)| {
            tenant::runner(instance).ok()?.service(answer.and_then(|answer| answer.home_uid))
        };
        let observed = all().filter(|(instance, _)| instance.runner == Runner::Process);
        Registered {
            services: all().filter_map(service_of).collect(),
            containers: all().filter_map(|(_, answer)| answer?.unit.container.clone()).collect(),
            processes: observed.filter_map(|(_, answer)| answer?.unit.main_pid).collect(),
        }
    }

    fn has(&self, process: &Process) -> bool {
        process.service.as_ref().is_some_and(|service| self.services.contains(service))
            || process.container.as_ref().is_some_and(|id| self.containers.contains(id))
            || self.processes.contains(&process.pid)
    }
}

async fn check(app: Arc<App>) -> Result<Vec<Finding>> {
    let posts = sweep::fleet(&app).await?;
    let found = sweep::everywhere(&app, posts, |app, post| async move {
        let id = post.server.id.clone();
        let looked = match sweep::look(&app, &post, &brief(), Since::End).await {
            Ok(looked) => looked,
            Err(error) => return vec![Finding::new(&id, format!("the server cannot be reached: {}", error.client))],
        };
        let stray: Vec<&Process> = {
            let registered = Registered::of(&post, &looked);
            looked.sweep.server.gateways.iter().filter(|process| !registered.has(process)).collect()
        };
        stray
            .into_iter()
            .map(|process| {
                let service = process.service_name();
                let mut finding = Finding::new(
                    &id,
                    format!("gateway process {} of {service} is no registered instance's", process.pid),
                );
                let service = process.service.as_ref().map(Service::to_string);
                finding.extra = json!({"pid": process.pid, "service": service, "config_path": process.config_path});
                finding
            })
            .collect()
    })
    .await;
    Ok(found.concat())
}
