//! Who listens on a port, and whether that process may be ended to free the port.
//!
//! Only an OpenClaw gateway of the very instance that has the port may be ended. Any other process is reported and left
//! alone: it may be another tenant's healthy assistant, or have nothing to do with us.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Host;
use super::command::Command;
use super::error::{Error, Result};
use super::systemd::Unit;
use openclaw::{Layout, program};

/// A process that listens on the port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    pub pid: u32,
    /// When it started, in the kernel's ticks: the same pid with another start time is another process.
    pub started: u64,
    pub user: String,
    pub command: Vec<String>,
    /// The innermost service that it belongs to.
    pub unit: Option<String>,
    /// The state folder of an OpenClaw gateway, according to its environment.
    pub state_dir: Option<String>,
}

/// What listens on a port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listening {
    /// Addresses without the port: `127.0.0.1`, `0.0.0.0`, `[::1]`, `*`.
    pub addresses: Vec<String>,
    pub owners: Vec<Owner>,
}

impl Listening {
    pub fn is_free(&self) -> bool {
        self.addresses.is_empty()
    }
}

/// The instance that has the port.
#[derive(Clone, Debug)]
pub struct Instance<'a> {
    pub unit: &'a Unit,
    /// Its OPENCLAW_STATE_DIR.
    pub state_dir: &'a str,
    /// The user that it runs as, if only that user's processes are its own: another user's systemd may have a unit of
    /// the same name.
    pub user: Option<&'a str>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A gateway of this instance: in its unit, or left over from it.
    Own,
    /// A gateway of another instance.
    OtherGateway,
    Stranger,
}

impl Owner {
    pub fn judge(&self, instance: &Instance<'_>) -> Verdict {
        if !program::is_gateway(&self.command) {
            return Verdict::Stranger;
        }
        if instance.user.is_some_and(|user| user != self.user) {
            return Verdict::OtherGateway;
        }
        let own = match &self.unit {
            Some(unit) => unit == instance.unit.as_str(),
            // No unit restarts it: it was started by hand, or left over from a unit that is gone.
            None => {
                self.state_dir.as_deref().map(|dir| dir.trim_end_matches('/'))
                    == Some(instance.state_dir.trim_end_matches('/'))
            }
        };
        if own { Verdict::Own } else { Verdict::OtherGateway }
    }

    /// Whether it is a gateway of this user with this state folder, whatever started it.
    pub fn is_gateway_of(&self, user: &str, state_dir: &str) -> bool {
        let own = self.state_dir.as_deref().map(|dir| dir.trim_end_matches('/'));
        program::is_gateway(&self.command) && self.user == user && own == Some(state_dir.trim_end_matches('/'))
    }

    /// A description for people.
    pub fn describe(&self) -> String {
        let command = self.command.join(" ");
        let command: String = command.chars().filter(|c| !c.is_control()).take(80).collect();
        match &self.unit {
            Some(unit) => format!("pid {} of {} ({command}, {unit})", self.pid, self.user),
            None => format!("pid {} of {} ({command})", self.pid, self.user),
        }
    }
}

/// The result of freeing a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Freed {
    WasFree,
    /// Gateways of this instance held it, and were ended.
    Ended(Vec<Owner>),
    /// Another process holds it, and nothing was done.
    Held {
        by: Owner,
        verdict: Verdict,
    },
}

/// How often to look: a process that starts or stops listening at that moment may be missed.
const LOOKS: usize = 4;
const AGAIN: Duration = Duration::from_millis(150);
/// How long after SIGTERM a gateway gets SIGKILL. A left-over gateway has no work to finish.
const PATIENCE: Duration = Duration::from_secs(10);
/// The same for one that people use: it finishes what they asked for.
const SHUTDOWN: Duration = Duration::from_secs(60);

// A command line or a path may contain anything, line breaks included, so everything but numbers is sent as base64.
/// Defines the shell function `look PORT VARIABLE`, which prints what `parse` reads.
const LOOK: &str = r#"
look() {
variable=$2
PATH=$PATH:/usr/sbin:/sbin
found=$(ss -Hltnp "sport = :$1") || return
printf '%s\n' "$found" | sed 's/^/L /'
for pid in $(printf '%s\n' "$found" | grep -o 'pid=[0-9]*' | cut -d= -f2 | sort -un); do
  line=$(cat "/proc/$pid/stat" 2>/dev/null) || continue
  set -- ${line##*) }
  uid=$(sed -n 's/^Uid:[[:space:]]*\([0-9]*\).*/\1/p' "/proc/$pid/status" 2>/dev/null)
  user=$(id -nu "$uid" 2>/dev/null || echo "$uid")
  coded() { base64 -w0 2>/dev/null; }
  echo "P $pid ${20} $user =$(coded <"/proc/$pid/cmdline") =$(coded <"/proc/$pid/cgroup") =$(tr '\0' '\n' <"/proc/$pid/environ" | grep -E "^(HOME|$variable)=" | coded)"
done 2>/dev/null
}
"#;

// Each argument is pid:start, so that a pid that now belongs to another process is not touched.
const END: &str = r#"
lives() {
  line=$(cat "/proc/${1%:*}/stat" 2>/dev/null) || return 1
  set -- "$1" ${line##*) }
  [ "$2" != Z ] && [ "${21}" = "${1#*:}" ]
}
each() { signal=$1; shift; left=; for p; do if lives "$p"; then left=1; [ "$signal" = 0 ] || kill -s "$signal" "${p%:*}"; fi; done; }
tries=$1; shift
each TERM "$@"
while [ -n "$left" ] && [ "$tries" -gt 0 ]; do sleep 0.1; tries=$((tries - 1)); each 0 "$@"; done
each KILL "$@"
tries=20
while [ -n "$left" ] && [ "$tries" -gt 0 ]; do sleep 0.1; tries=$((tries - 1)); each 0 "$@"; done
[ -z "$left" ]
"#;

pub async fn look(host: &Host, port: u16) -> Result<Listening> {
    let command =
        Command::script("list-port-owners", &[LOOK, r#"look "$1" "$2""#]).args([&port.to_string(), program::STATE_DIR]);
    for _ in 0..LOOKS {
        let listening = parse(&host.succeed(&command).await?.text(), port)?;
        if listening.is_free() || !listening.owners.is_empty() {
            return Ok(listening);
        }
        tokio::time::sleep(AGAIN).await;
    }
    Err(Error::odd("ss", format_args!("it does not say who listens on port {port}")))
}

/// Frees an instance's port, if only the instance's own gateways hold it.
pub async fn free(host: &Host, port: u16, instance: &Instance<'_>) -> Result<Freed> {
    let listening = look(host, port).await?;
    let owners = match may_free(listening, instance) {
        Ok(owners) => owners,
        Err((by, verdict)) => return Ok(Freed::Held { by, verdict }),
    };
    if owners.is_empty() {
        return Ok(Freed::WasFree);
    }
    end(host, &owners, PATIENCE).await?;
    match may_free(look(host, port).await?, instance) {
        Ok(left) if left.is_empty() => Ok(Freed::Ended(owners)),
        Ok(left) => Err(Error::odd("a port", format_args!("{} came back", left[0].describe()))),
        Err((by, verdict)) => Ok(Freed::Held { by, verdict }),
    }
}

/// Ends the gateway of a user with this state folder, which nothing starts again. Returns how many processes that were.
pub async fn end_gateway(host: &Host, port: u16, user: &str, state_dir: &str) -> Result<usize> {
    let own = |owner: &Owner| owner.is_gateway_of(user, state_dir);
    let owners: Vec<Owner> = look(host, port).await?.owners.into_iter().filter(own).collect();
    if owners.is_empty() {
        return Ok(0);
    }
    end(host, &owners, SHUTDOWN).await?;
    Ok(owners.len())
}

/// Ends processes: with SIGTERM, and after that time with SIGKILL.
async fn end(host: &Host, owners: &[Owner], patience: Duration) -> Result<()> {
    let tries = (patience.as_millis() / 100).to_string();
    let pairs = owners.iter().map(|owner| format!("{}:{}", owner.pid, owner.started));
    let command = Command::script("end-processes", &[END]).arg(tries).args(pairs);
    host.succeed(&command.limit(patience * 2 + Duration::from_secs(30))).await.map(drop)
}

/// The processes to end; an error if one of them is not the instance's own.
fn may_free(listening: Listening, instance: &Instance<'_>) -> std::result::Result<Vec<Owner>, (Owner, Verdict)> {
    match listening.owners.iter().find(|owner| owner.judge(instance) != Verdict::Own) {
        Some(other) => Err((other.clone(), other.judge(instance))),
        None => Ok(listening.owners),
    }
}

pub fn parse(text: &str, port: u16) -> Result<Listening> {
    let mut listening = Listening::default();
    for line in text.lines() {
        if let Some(socket) = line.strip_prefix("L ") {
            // The fields are: state, two queues, local address.
            let Some(local) = socket.split_whitespace().nth(3) else { continue };
            match local.rsplit_once(':') {
                Some((address, number)) if number == port.to_string() => listening.addresses.push(address.to_owned()),
                _ => return Err(Error::odd("ss", format_args!("{local:?}"))),
            }
        } else if let Some(process) = line.strip_prefix("P ") {
            listening.owners.push(owner(process).ok_or_else(|| Error::odd("a look at a port", "a process"))?);
        }
    }
    Ok(listening)
}

fn owner(line: &str) -> Option<Owner> {
    let mut words = line.split(' ');
    let (pid, started, user) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?, words.next()?.to_owned());
    let mut coded = || {
        let bytes = STANDARD.decode(words.next()?.strip_prefix('=')?).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    let (command, cgroup, environment) = (coded()?, coded()?, coded()?);
    let command = command.trim_end_matches('\0').split('\0').map(str::to_owned).collect();
    let variable = |name: &str| environment.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    let state_dir = variable(program::STATE_DIR).map(str::to_owned);
    let state_dir =
        state_dir.or_else(|| variable("HOME").map(|home| Layout::of(home.trim_end_matches('/')).state_dir()));
    Some(Owner { pid, started, user, command, unit: unit_of(&cgroup), state_dir })
}

/// The innermost service in the path of systemd's own hierarchy.
fn unit_of(cgroup: &str) -> Option<String> {
    let path = |prefix: &str| cgroup.lines().find_map(|line| line.split_once(prefix).map(|(_, path)| path));
    let unit = |path: &str| path.rsplit('/').find(|part| part.ends_with(".service")).map(str::to_owned);
    path("0::").and_then(unit).or_else(|| path(":name=systemd:").and_then(unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(pid: u32, command: &str, cgroup: &str, environment: &str) -> String {
        let coded = |text: &str| STANDARD.encode(text);
        format!("P {pid} 4711 i1 ={} ={} ={}", coded(command), coded(cgroup), coded(environment))
    }

    const SYSTEM: &str = "9:name=systemd:/\n0::/system.slice/openclaw-a.service\n";
    const SESSION: &str = "0::/user.slice/user-0.slice/session-25.scope\n";

    #[test]
    fn owners_are_read_from_what_ss_and_proc_say() {
        let text = format!(
            "L LISTEN 0      511    127.0.0.1:18789 0.0.0.0:* users:((\"openclaw-gatewa\",pid=41,fd=20))\n\
             L LISTEN 0      511        [::1]:18789    [::]:* users:((\"openclaw-gatewa\",pid=41,fd=21))\n{}\n",
            line(41, "openclaw-gateway\0\0\0", SYSTEM, "HOME=/srv/assistants/1\n")
        );
        let found = parse(&text, 18789).unwrap();
        assert_eq!(found.addresses, ["127.0.0.1", "[::1]"]);
        let [owner] = found.owners.as_slice() else { panic!("{found:?}") };
        assert_eq!((owner.pid, owner.started, owner.user.as_str()), (41, 4711, "i1"));
        assert_eq!(owner.command, ["openclaw-gateway"]);
        assert_eq!(owner.unit.as_deref(), Some("openclaw-a.service"));
        assert_eq!(owner.state_dir.as_deref(), Some("/srv/assistants/1/.openclaw"));
        assert_eq!(parse("L \n", 18789).unwrap(), Listening::default());
        // Without root, ss shows no process: that is not a free port.
        assert!(!parse("L LISTEN 0 511 127.0.0.1:18789 0.0.0.0:*\n", 18789).unwrap().is_free());
    }

    #[test]
    fn only_a_gateway_of_the_same_instance_may_be_ended() {
        let unit = Unit::parse("openclaw-a").unwrap();
        let instance = Instance { unit: &unit, state_dir: "/srv/assistants/1/.openclaw", user: None };
        let judge = |command: &str, cgroup: &str, environment: &str| {
            owner(line(41, command, cgroup, environment).strip_prefix("P ").unwrap()).unwrap().judge(&instance)
        };
        let (own, other) =
            ("OPENCLAW_STATE_DIR=/srv/assistants/1/.openclaw/\n", "OPENCLAW_STATE_DIR=/srv/assistants/2/.openclaw\n");
        let node = "/usr/bin/node\0/opt/openclaw/openclaw.mjs\0gateway\0run\0--port\x0018789\0";
        assert_eq!(judge("openclaw-gateway\0", SYSTEM, ""), Verdict::Own);
        assert_eq!(judge("openclaw\0\0\0", SYSTEM, ""), Verdict::Own, "an older release");
        let of_user = |user| {
            let found = owner(line(41, "openclaw-gateway\0", SYSTEM, "").strip_prefix("P ").unwrap()).unwrap();
            found.judge(&Instance { user: Some(user), ..instance.clone() })
        };
        assert_eq!((of_user("i1"), of_user("i2")), (Verdict::Own, Verdict::OtherGateway));
        assert_eq!(judge(node, SYSTEM, ""), Verdict::Own);
        assert_eq!(judge(node, SESSION, own), Verdict::Own);
        assert_eq!(judge("openclaw-gateway\0", SESSION, "HOME=/srv/assistants/1\n"), Verdict::Own);
        assert_eq!(judge(node, SESSION, other), Verdict::OtherGateway);
        assert_eq!(judge(node, SESSION, ""), Verdict::OtherGateway);
        // Another unit keeps it alive, whatever its state folder is called.
        assert_eq!(judge(node, "0::/system.slice/openclaw-b.service\n", own), Verdict::OtherGateway);
        assert_eq!(
            judge(node, "0::/user.slice/user@1000.service/app.slice/openclaw-gateway.service\n", own),
            Verdict::OtherGateway
        );
        // In the unit, but not a gateway: a tool that the assistant started can be anything.
        assert_eq!(judge("python3\0-m\0http.server\0", SYSTEM, own), Verdict::Stranger);
        assert_eq!(judge("nginx: master process\0", SESSION, ""), Verdict::Stranger);
        assert_eq!(judge("vi\0/srv/openclaw-gateway\0", SESSION, own), Verdict::Stranger);
        assert_eq!(judge("", SYSTEM, own), Verdict::Stranger);
    }

    #[test]
    fn one_stranger_among_the_owners_is_enough_to_leave_all_alone() {
        let unit = Unit::parse("openclaw-a").unwrap();
        let instance = Instance { unit: &unit, state_dir: "/x", user: None };
        let one = |pid, command: &str| owner(line(pid, command, SYSTEM, "").strip_prefix("P ").unwrap()).unwrap();
        let both = Listening { addresses: vec![], owners: vec![one(1, "openclaw-gateway\0"), one(2, "nginx\0")] };
        assert!(matches!(may_free(both, &instance), Err((owner, Verdict::Stranger)) if owner.pid == 2));
    }
}
