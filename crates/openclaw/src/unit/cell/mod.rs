//! The cell: the directives of an assistant's unit that isolate it from everything else on its server, and limit what
//! it uses.
//!
//! Each line is tried on the server before it is written (`remote::host::cell`); a directive that the server does not
//! support is left out by name. Two directives must never be added: `MemoryDenyWriteExecute` (V8 writes machine code)
//! and `ProcSubset=pid` (Node reads /proc/meminfo). `RestrictSUIDSGID` is impossible: it refuses openat2, with which
//! OpenClaw takes its locks. Set-uid programs gain nothing anyway (`NoNewPrivileges`).

use std::net::IpAddr;

use base::cell::{Effective, Opening, Openings};
use base::{GatewayPort, Result};

mod text;

pub use text::{Confinement, differ_by_limits, left_out_of, of_text, openings_of, with_ports};

use super::text::{path, percent};

/// The input for a cell.
#[derive(Clone, Debug)]
pub struct Cell {
    pub home: String,
    pub port: GatewayPort,
    /// The ports of the server's other instances.
    pub others: Vec<i64>,
    pub limits: Effective,
    pub openings: Openings,
    /// The name servers that the server uses: one of them may have the address of the cloud's metadata service.
    pub resolvers: Vec<IpAddr>,
    /// The keys of directives that the server does not support.
    pub left_out: Vec<String>,
}

/// A line of the cell. `systemd-run -p` accepts the same line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Directive {
    pub name: &'static str,
    pub value: String,
}

/// Directives whose lines are independent: if a server does not support one line, the others stay.
const BY_LINE: &[&str] = &["TemporaryFileSystem", "BindPaths", "BindReadOnlyPaths", "InaccessiblePaths"];

impl Directive {
    pub fn line(&self) -> String {
        format!("{}={}", self.name, self.value)
    }

    /// Its key in the list of left-out directives: its name, for some with its path.
    pub fn key(&self) -> String {
        match BY_LINE.contains(&self.name) {
            true => {
                format!("{}={}", self.name, self.value.split(':').next().unwrap_or_default().trim_start_matches('-'))
            }
            false => self.name.to_owned(),
        }
    }
}

/// A directive and its values for a cell; no values if this cell has no such line.
struct Rule {
    name: &'static str,
    values: fn(&Cell) -> Vec<String>,
}

const fn rule(name: &'static str, values: fn(&Cell) -> Vec<String>) -> Rule {
    Rule { name, values }
}

/// `yes`, unless one of these openings is set.
fn unless(cell: &Cell, openings: &[Opening]) -> Vec<String> {
    if openings.iter().any(|one| cell.openings.has(*one)) { vec![] } else { vec!["yes".into()] }
}

/// A value that systemd enforces by a filter of system calls. In the unit of an ordinary user such a filter implies
/// `NoNewPrivileges`, whatever the unit says. So sudo cannot work under any of them.
fn filter(cell: &Cell, value: &str) -> Vec<String> {
    if cell.openings.has(Opening::Sudo) { vec![] } else { text(value) }
}

fn by_filter(cell: &Cell) -> Vec<String> {
    filter(cell, "yes")
}

fn yes(_: &Cell) -> Vec<String> {
    vec!["yes".into()]
}

fn text(value: &str) -> Vec<String> {
    vec![value.into()]
}

/// Replaces `systemctl` inside a cell. OpenClaw asks it how much time it has to finish its work when it is stopped, and
/// the real one needs the bus, which is not there.
pub const SYSTEMCTL: &str = "/opt/tidepool/cell/systemctl";
/// Its text. The invocation id distinguishes units of the same name; it is that of the asking process.
pub const SYSTEMCTL_TEXT: &str = r#"#!/bin/sh
# Written by tidepool. What an assistant in its cell may ask systemd: how long it has when it is stopped.
id=$(tr '\0' '\n' <"/proc/$PPID/environ" | sed -n 's/^INVOCATION_ID=//p')
case "$*" in
  show\ *TimeoutStopUSec*) printf 'TimeoutStopUSec=5min 30s\nInvocationID=%s\nLoadState=loaded\n' "$id" ;;
  *) echo "there is no service manager in this cell" >&2; exit 1 ;;
esac
"#;

/// Metadata services of clouds, which hand a machine's credentials to any process on it.
const METADATA: &[&str] = &[
    "169.254.169.254",
    "169.254.170.2",
    "169.254.170.23",
    "fd00:ec2::254",
    "fd20:ce::254",
    "100.100.100.200",
    "168.63.129.16",
];

/// The metadata addresses that cannot be denied, because a name server has the same address.
pub fn metadata_left_open(resolvers: &[IpAddr]) -> Vec<IpAddr> {
    METADATA.iter().filter_map(|address| address.parse().ok()).filter(|address| resolvers.contains(address)).collect()
}

/// The ports for instances: they end below the ports that the kernel uses for outgoing connections.
const INSTANCE_PORTS: (i64, i64) = (18_789, 32_767);
/// OpenClaw's browser control, webhooks and browsers use ports up to this far above its own.
const BLOCK: i64 = 110;

const RULES: &[Rule] = &[
    // What it may change: only its home.
    rule("ProtectSystem", |_| text("strict")),
    rule("ProtectHome", |cell| if is_protected_home(&cell.home) { text("tmpfs") } else { text("yes") }),
    // The folder of the homes is replaced by an empty one that contains only its own home, so that it does not even see
    // which others exist. /run contains sockets of other services, such as the system bus, through which neighbours'
    // units can be read. The control groups contain the names of the units.
    rule("TemporaryFileSystem", |cell| {
        let homes = folder(&cell.home).filter(|_| !is_protected_home(&cell.home));
        let homes = homes.map(|folder| format!("{}:ro,mode=755", escaped(folder)));
        let others = [
            "/dev/shm:mode=1777,size=256M",
            "/run:ro,mode=755,size=1M",
            "/sys/fs/cgroup/system.slice:ro,mode=755,size=1M",
        ];
        homes.into_iter().chain(others.map(str::to_owned)).collect()
    }),
    rule("BindPaths", |cell| {
        let engine = cell.openings.has(Opening::Docker).then(|| "-/run/docker.sock".to_owned());
        [Some(escaped(&cell.home)), engine].into_iter().flatten().collect()
    }),
    // Name resolution needs these; Node reads its memory limit from its own control group.
    rule("BindReadOnlyPaths", |_| {
        let needed = [
            "-/run/systemd/resolve",
            "-/run/resolvconf",
            "-/run/NetworkManager",
            "-/run/nscd",
            "-/sys/fs/cgroup/system.slice/%n",
        ];
        let systemctl = format!("{SYSTEMCTL}:/usr/bin/systemctl");
        needed.into_iter().map(str::to_owned).chain([systemctl]).collect()
    }),
    rule("InaccessiblePaths", |_| {
        let hidden = [
            "-/var/log",
            "-/etc/systemd/system",
            "-/sys/fs/cgroup/user.slice",
            "-/sys/fs/cgroup/machine.slice",
            "-/sys/fs/cgroup/init.scope",
        ];
        hidden.map(str::to_owned).to_vec()
    }),
    rule("PrivateTmp", yes),
    rule("PrivateDevices", |cell| unless(cell, &[Opening::Devices, Opening::Sudo])),
    rule("DevicePolicy", |cell| if cell.openings.has(Opening::Devices) { vec![] } else { text("closed") }),
    rule("SupplementaryGroups", |cell| if cell.openings.has(Opening::Docker) { text("docker") } else { vec![] }),
    // Which processes it may see, and communicate with.
    rule("ProtectProc", |_| text("invisible")),
    rule("PrivateIPC", yes),
    // This also prevents it from controlling a process of its own user outside of the cell.
    rule("PrivateUsers", |cell| unless(cell, &[Opening::Sudo, Opening::Docker])),
    rule("KeyringMode", |_| text("private")),
    rule("RemoveIPC", yes),
    rule("UMask", |_| text("0077")),
    // Which privileges it may gain.
    rule("NoNewPrivileges", |cell| unless(cell, &[Opening::Sudo])),
    rule("CapabilityBoundingSet", |cell| if cell.openings.has(Opening::Sudo) { vec![] } else { text("") }),
    rule("AmbientCapabilities", |_| text("")),
    rule("RestrictNamespaces", |cell| {
        filter(cell, if cell.openings.has(Opening::Browser) { "user pid net" } else { "yes" })
    }),
    rule("RestrictRealtime", by_filter),
    rule("LockPersonality", by_filter),
    // The kernel.
    rule("ProtectKernelTunables", by_filter),
    rule("ProtectKernelModules", by_filter),
    rule("ProtectKernelLogs", by_filter),
    rule("ProtectControlGroups", yes),
    rule("ProtectClock", by_filter),
    rule("ProtectHostname", by_filter),
    rule("SystemCallArchitectures", |cell| filter(cell, "native")),
    rule("SystemCallFilter", |cell| {
        if cell.openings.has(Opening::Sudo) {
            return vec![];
        }
        let mut denied = vec![
            "@debug",
            "@cpu-emulation",
            "@obsolete",
            "@raw-io",
            "@reboot",
            "@swap",
            "@module",
            "@clock",
            "@keyring",
            "@mount",
            "@privileged",
        ];
        denied.extend(["io_uring_setup", "io_uring_enter", "io_uring_register", "userfaultfd"]);
        // Chromium drops its capabilities in every process, even if it has none, and ends if that fails. Its sandbox
        // changes the root of a process, which needs a capability that it has only in its own user namespace.
        let allowed = if cell.openings.has(Opening::Browser) { "capset chroot" } else { "capset" };
        vec!["@system-service".into(), format!("~{}", denied.join(" ")), allowed.into()]
    }),
    rule("SystemCallErrorNumber", |cell| filter(cell, "EPERM")),
    rule("RestrictAddressFamilies", |cell| filter(cell, "AF_UNIX AF_INET AF_INET6 AF_NETLINK")),
    // The network.
    rule("IPAddressDeny", |cell| {
        let is_resolver = |address: &str| address.parse::<IpAddr>().is_ok_and(|one| cell.resolvers.contains(&one));
        METADATA.iter().filter(|address| !is_resolver(address)).map(|address| (*address).to_owned()).collect()
    }),
    rule("SocketBindDeny", |cell| denied_ports(cell.port, &cell.others)),
    // How much it may use.
    rule("MemoryHigh", |cell| vec![format!("{}M", cell.limits.memory_mib * 9 / 10)]),
    rule("MemoryMax", |cell| vec![format!("{}M", cell.limits.memory_mib)]),
    rule("MemorySwapMax", |_| text("0")),
    rule("CPUWeight", |_| text("100")),
    rule("CPUQuota", |cell| vec![format!("{}%", cell.limits.cpu_percent)]),
    rule("TasksMax", |cell| vec![cell.limits.tasks.to_string()]),
];

/// Directives that a running unit takes over on a daemon-reload: changing them needs no restart.
const LIMITS: &[&str] = &["MemoryHigh", "MemoryMax", "MemorySwapMax", "CPUWeight", "CPUQuota", "TasksMax"];

/// Directives that a server may accept without enforcing them, and what it needs to enforce them.
pub const ENFORCED_BY: &[(&str, Enforcer)] = &[
    ("MemoryHigh", Enforcer::Controller("memory")),
    ("MemoryMax", Enforcer::Controller("memory")),
    ("MemorySwapMax", Enforcer::Controller("memory")),
    ("CPUWeight", Enforcer::Controller("cpu")),
    ("CPUQuota", Enforcer::Controller("cpu")),
    ("TasksMax", Enforcer::Controller("pids")),
    ("IPAddressDeny", Enforcer::Firewall),
    ("SocketBindDeny", Enforcer::BindFilter),
];

/// Keys of directives without which the others protect nothing. A server that does not support one of them gets no
/// cells, rather than weak ones.
const REQUIRED: &[&str] = &[
    "ProtectSystem",
    "TemporaryFileSystem=/run",
    "BindPaths",
    "PrivateTmp",
    "PrivateDevices",
    "PrivateUsers",
    "NoNewPrivileges",
    "CapabilityBoundingSet",
    "SystemCallFilter",
];

/// Whether a cell needs the directive with this key.
pub fn is_required(key: &str) -> bool {
    REQUIRED.iter().any(|one| key.strip_prefix(one).is_some_and(|rest| rest.is_empty() || rest.starts_with('=')))
}

/// What enforces a directive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enforcer {
    /// A cgroup controller of the kernel.
    Controller(&'static str),
    /// BPF programs on cgroups that drop packets.
    Firewall,
    /// BPF programs on cgroups that check bind().
    BindFilter,
}

/// The first line of the cell in a unit. The openings and the left-out keys follow on the same line.
const MARK: &str = "# The cell.";
const CANNOT: &str = " This server cannot do: ";
const OPEN: &str = " Left open: ";

impl Cell {
    /// Every directive that the server supports, in order.
    pub fn directives(&self) -> Result<Vec<Directive>> {
        path("home", &self.home)?;
        let all = RULES
            .iter()
            .flat_map(|rule| (rule.values)(self).into_iter().map(|value| Directive { name: rule.name, value }));
        Ok(all.filter(|directive| !self.left_out.contains(&directive.key())).collect())
    }

    /// The lines of a unit.
    pub(super) fn render(&self) -> Result<String> {
        let mut out = MARK.to_owned();
        if self.openings != Openings::default() {
            out += &format!("{OPEN}{}.", self.openings);
        }
        if !self.left_out.is_empty() {
            out += &format!("{CANNOT}{}.", self.left_out.join(", "));
        }
        out += "\n";
        for directive in self.directives()? {
            out += &directive.line();
            out += "\n";
        }
        Ok(out)
    }
}

/// The folder above a home.
fn folder(home: &str) -> Option<&str> {
    home.trim_end_matches('/').rsplit_once('/').map(|(folder, _)| folder).filter(|folder| !folder.is_empty())
}

/// Whether `ProtectHome` would hide it.
fn is_protected_home(home: &str) -> bool {
    ["/home/", "/root/", "/run/user/"].iter().any(|folder| home.starts_with(folder)) || home == "/root"
}

/// A path as a word in a list of paths, where a colon would start options.
fn escaped(path: &str) -> String {
    let text = percent(path).replace(':', "\\:");
    if text.contains([' ', '"', '\'', '\\']) { format!("\"{}\"", text.replace('"', "\\\"")) } else { text }
}

fn denied_ports(port: GatewayPort, others: &[i64]) -> Vec<String> {
    let own = port.get();
    let next = others.iter().filter(|port| **port > own).min().copied().unwrap_or(i64::MAX);
    let (first, last) = (own, (own + BLOCK).min(next - 1));
    let (low, high) = INSTANCE_PORTS;
    let range = |from: i64, to: i64| match from {
        from if from > to => None,
        from if from == to => Some(format!("tcp:{from}")),
        from => Some(format!("tcp:{from}-{to}")),
    };
    let around = match first > high || last < low {
        true => vec![range(low, high)],
        false => vec![range(low, first - 1), range(last + 1, high)],
    };
    let further = others.iter().filter(|port| !(low..=high).contains(*port)).map(|port| range(*port, *port));
    around.into_iter().chain(further).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn cell() -> Cell {
        Cell {
            home: "/srv/assistants/1".into(),
            port: GatewayPort::try_from(18_909).unwrap(),
            others: vec![18_789, 19_029],
            limits: Effective::default(),
            openings: Openings::default(),
            resolvers: vec![],
            left_out: vec![],
        }
    }

    fn values(cell: &Cell, name: &str) -> Vec<String> {
        let all = cell.directives().unwrap();
        all.into_iter().filter(|one| one.name == name).map(|one| one.value).collect()
    }

    #[test]
    fn it_never_has_what_breaks_the_assistant() {
        let text = cell().render().unwrap();
        for never in ["MemoryDenyWriteExecute", "ProcSubset", "RestrictSUIDSGID"] {
            assert!(!text.contains(never), "{never}");
        }
    }

    #[test]
    fn only_its_own_home_is_there() {
        assert_eq!(values(&cell(), "TemporaryFileSystem")[0], "/srv/assistants:ro,mode=755");
        assert_eq!(values(&cell(), "BindPaths"), ["/srv/assistants/1"]);
        assert_eq!(values(&cell(), "ProtectHome"), ["yes"]);
        let in_home = Cell { home: "/home/ada".into(), ..cell() };
        assert_eq!(values(&in_home, "ProtectHome"), ["tmpfs"]);
        assert!(values(&in_home, "TemporaryFileSystem")[0].starts_with("/dev/shm:"));
        let odd = Cell { home: "/srv/a b:c%h/1".into(), ..cell() };
        assert_eq!(values(&odd, "BindPaths"), ["\"/srv/a b\\:c%%h/1\""]);
        assert!(Cell { home: "/srv/a\nUser=root".into(), ..cell() }.directives().is_err());
    }

    #[test]
    fn the_ports_of_others_are_denied_and_its_own_block_is_not() {
        assert_eq!(values(&cell(), "SocketBindDeny"), ["tcp:18789-18908", "tcp:19020-32767"]);
        let near = Cell { others: vec![18_919, 40_000], ..cell() };
        assert_eq!(values(&near, "SocketBindDeny"), ["tcp:18789-18908", "tcp:18919-32767", "tcp:40000"]);
        let outside = Cell { port: GatewayPort::try_from(50_000).unwrap(), others: vec![], ..cell() };
        assert_eq!(values(&outside, "SocketBindDeny"), ["tcp:18789-32767"]);
        let moved = with_ports(&cell().render().unwrap(), GatewayPort::try_from(19_149).unwrap(), &[18_789]);
        let expected = Cell { port: GatewayPort::try_from(19_149).unwrap(), others: vec![18_789], ..cell() };
        assert_eq!(moved, expected.render().unwrap());
        assert_eq!(with_ports("[Service]\nUser=a\n", cell().port, &[1]), "[Service]\nUser=a\n");
    }

    #[test]
    fn a_resolver_at_the_metadata_address_can_be_asked() {
        assert!(values(&cell(), "IPAddressDeny").contains(&"169.254.169.254".to_owned()));
        let cloud = Cell { resolvers: vec!["169.254.169.254".parse().unwrap()], ..cell() };
        let denied = values(&cloud, "IPAddressDeny");
        assert!(!denied.contains(&"169.254.169.254".to_owned()) && denied.len() == METADATA.len() - 1);
        let resolvers = [IpAddr::from([192, 0, 2, 53]), IpAddr::from([168, 63, 129, 16])];
        assert_eq!(metadata_left_open(&resolvers), [resolvers[1]]);
    }

    #[test]
    fn an_opening_opens_that_alone() {
        let without = |opening: Opening| {
            let open = Cell { openings: Openings::of([opening]), ..cell() };
            let (all, less) = (cell().directives().unwrap(), open.directives().unwrap());
            let mut names: Vec<_> = all.iter().filter(|one| !less.contains(one)).map(|one| one.name).collect();
            names.dedup();
            names
        };
        assert_eq!(without(Opening::Devices), ["PrivateDevices", "DevicePolicy"]);
        assert_eq!(without(Opening::Docker), ["PrivateUsers"]);
        // Each of these implies `NoNewPrivileges`, or is useless without the others.
        let by_filter = "RestrictNamespaces RestrictRealtime LockPersonality ProtectKernelTunables ProtectKernelModules ProtectKernelLogs \
            ProtectClock ProtectHostname SystemCallArchitectures SystemCallFilter SystemCallErrorNumber RestrictAddressFamilies";
        let by_user = "PrivateDevices PrivateUsers NoNewPrivileges CapabilityBoundingSet";
        assert_eq!(without(Opening::Sudo).join(" "), format!("{by_user} {by_filter}"));
        assert_eq!(without(Opening::Browser), ["RestrictNamespaces", "SystemCallFilter"]);
        let calls = |openings: Openings| values(&Cell { openings, ..cell() }, "SystemCallFilter");
        let (closed, open) = (calls(Openings::default()), calls(Openings::of([Opening::Browser])));
        assert_eq!((&closed[..2], closed[2].as_str()), (&open[..2], "capset"));
        assert_eq!(open[2], "capset chroot", "the browser's sandbox needs this call, and no other");
    }

    #[test]
    fn what_a_server_cannot_do_is_left_out_by_name() {
        let left_out = ["PrivateUsers", "SocketBindDeny", "TemporaryFileSystem=/run"].map(str::to_owned).to_vec();
        let poor = Cell { left_out, ..cell() };
        let text = poor.render().unwrap();
        let first = "# The cell. This server cannot do: PrivateUsers, SocketBindDeny, TemporaryFileSystem=/run.\n";
        assert!(text.starts_with(first), "{text}");
        for gone in ["\nPrivateUsers=", "\nSocketBindDeny=", "\nTemporaryFileSystem=/run:"] {
            assert!(!text.contains(gone), "{gone}");
        }
        assert_eq!(left_out_of(&text), poor.left_out);
        assert!(left_out_of(&cell().render().unwrap()).is_empty());
        let open = Cell { openings: Openings::of([Opening::Docker, Opening::Browser]), ..poor.clone() };
        for (cell, left_out) in [(open.clone(), poor.left_out.clone()), (Cell { left_out: vec![], ..open }, vec![])] {
            let text = cell.render().unwrap();
            assert_eq!(
                (openings_of(&text), left_out_of(&text)),
                (cell.openings.clone(), left_out.iter().map(String::as_str).collect())
            );
        }
        assert_eq!(openings_of(&text), Openings::default());
        for (key, is) in [
            ("PrivateUsers", true),
            ("BindPaths=/srv/assistants/1", true),
            ("TemporaryFileSystem=/run", true),
            ("TemporaryFileSystem=/sys/fs/cgroup/system.slice", false),
            ("SocketBindDeny", false),
            ("PrivateUsersX", false),
        ] {
            assert_eq!(is_required(key), is, "{key}");
        }
        assert!(
            text.contains("\nTemporaryFileSystem=/srv/assistants:"),
            "one line of a directive does not take the others along"
        );
    }
}
