//! A process as the sweep sees it.

/// A gateway, or a process that has an instance's port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    pub pid: u32,
    /// Its name, at most 15 bytes.
    pub name: String,
    /// The service it belongs to, with `.service`.
    pub service: Option<String>,
    /// The configuration that it was started with, if its environment shows it.
    pub config_path: Option<String>,
}

impl Process {
    /// Whether its name is that of an OpenClaw gateway. The kernel cuts the name to 15 bytes.
    pub fn is_gateway(&self) -> bool {
        self.name == "openclaw-gatewa"
    }
}

/// The service of a control group: `/system.slice/system-oc.slice/oc@i1.service`.
pub(super) fn service_of(cgroup: &str) -> Option<String> {
    cgroup.trim().rsplit('/').find(|part| part.ends_with(".service") && part.len() <= 255).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_is_the_innermost() {
        assert_eq!(service_of("/system.slice/system-oc.slice/oc@i1.service").as_deref(), Some("oc@i1.service"));
        assert_eq!(service_of("/system.slice/a.service/b.service/x").as_deref(), Some("b.service"));
        assert_eq!(service_of("/"), None);
        assert_eq!(service_of("/user.slice/session-1.scope"), None);
    }
}
