//! A process as the sweep sees it, and the service that it belongs to.

use std::fmt;

/// A gateway, or a process that has an instance's port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    pub pid: u32,
    /// Its name, which the kernel cuts to 15 bytes: `openclaw-gatewa`.
    pub name: String,
    pub service: Option<Service>,
    /// The container that it runs in.
    pub container: Option<String>,
    /// The configuration that it was started with, if its environment shows it.
    pub config_path: Option<String>,
}

/// A unit that processes belong to. Units of users have names that others have too.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Service {
    /// With `.service`.
    pub name: String,
    /// The number of the user whose own systemd runs it; `None` for a unit of the system.
    pub user: Option<u32>,
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        self.user.map_or(Ok(()), |user| write!(f, " of user {user}"))
    }
}

impl Process {
    /// Its service in words.
    pub fn service_name(&self) -> String {
        self.service.as_ref().map_or_else(|| "no service".to_owned(), Service::to_string)
    }
}

/// The service of a control group: `/system.slice/system-oc.slice/oc@i1.service`. It is the outermost one: whoever runs
/// as a service, or as a user with a systemd of its own, may name the groups inside of it as it likes.
pub(super) fn service_of(cgroup: &str) -> Option<Service> {
    let is_service = |part: &&str| part.ends_with(".service") && part.len() <= 255;
    let parts: Vec<&str> = cgroup.trim().split('/').collect();
    // A server that is itself a container may see the groups around it.
    let first = parts.iter().position(|part| matches!(*part, "system.slice" | "user.slice")).unwrap_or(0);
    let at = first + parts[first..].iter().position(is_service)?;
    let manager = parts[at].strip_prefix("user@").and_then(|part| part.strip_suffix(".service"));
    let user = manager.filter(|_| parts[first] == "user.slice").and_then(|uid| uid.parse().ok());
    let own = user.and_then(|_: u32| parts[at + 1..].iter().find(|part| is_service(part)));
    match own {
        Some(name) => Some(Service { name: (*name).to_owned(), user }),
        None => Some(Service { name: parts[at].to_owned(), user: None }),
    }
}

/// The container of a control group: `/system.slice/docker-<id>.scope`, or `/docker/<id>`.
pub(super) fn container_of(cgroup: &str) -> Option<String> {
    let is_id = |id: &&str| id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let parts = cgroup.trim().split('/').map(|part| part.strip_prefix("docker-").unwrap_or(part));
    parts.map(|part| part.trim_end_matches(".scope")).find(is_id).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_is_the_outermost_with_the_user_whose_it_is() {
        let service = |cgroup: &str| service_of(cgroup).map(|service| (service.name, service.user));
        let named = |name: &str, user: Option<u32>| Some((name.to_owned(), user));
        assert_eq!(service("/system.slice/system-oc.slice/oc@i1.service"), named("oc@i1.service", None));
        assert_eq!(service("/oc.service"), named("oc.service", None));
        assert_eq!(service("/system.slice/a.service/b.service/x"), named("a.service", None));
        assert_eq!(service("/system.slice/a.service/user.slice/user@7.service/b.service"), named("a.service", None));
        let own = "/user.slice/user-1001.slice/user@1001.service";
        assert_eq!(service(&format!("{own}/app.slice/oc.service")), named("oc.service", Some(1001)));
        assert_eq!(service(&format!("{own}/system.slice/oc@i1.service")), named("oc@i1.service", Some(1001)));
        assert_eq!(service(&format!("{own}/init.scope")), named("user@1001.service", None));
        let nested = "/machine.slice/systemd-nspawn@m.service/payload/system.slice/oc.service";
        assert_eq!(service(nested), named("oc.service", None));
        assert_eq!(service("/system.slice/user@1001.service/oc.service"), named("user@1001.service", None));
        assert_eq!(service("/"), None);
        let id = "0123456789abcdef".repeat(4);
        for cgroup in [format!("/system.slice/docker-{id}.scope"), format!("/docker/{id}"), format!("/docker/{id}/x")] {
            assert_eq!(container_of(&cgroup).as_deref(), Some(id.as_str()), "{cgroup}");
        }
        assert_eq!(container_of("/system.slice/docker.service"), None);
        assert_eq!(service("/user.slice/session-1.scope"), None);
    }
}
