//! A process as the sweep sees it.

/// A gateway, or whoever holds an instance's port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    pub pid: u32,
    /// What it calls itself, at most 15 bytes.
    pub name: String,
    /// The service it belongs to, with `.service`.
    pub service: Option<String>,
    /// The configuration it was started with, if its environment says so.
    pub config_path: Option<String>,
}

impl Process {
    /// Whether it calls itself an OpenClaw gateway, as every gateway does. The kernel cuts the name.
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
