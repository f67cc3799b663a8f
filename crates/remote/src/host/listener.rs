//! Proves that every socket on an instance's port belongs to the instance, after a connection is made and before
//! anything is sent over it.
//!
//! A neighbour on the server may bind the port while the gateway restarts, accept a connection, and leave the port to
//! the gateway again. So the check comes after the connection, and covers accepted sockets as well as listening ones.
//! The process that accepted our connection still has it, unless it is closed. A connection that is not accepted yet
//! waits in the queue of a listening socket, and ends with that socket. The kernel lists listening sockets before the
//! others of the same family, so a connection that is accepted meanwhile is seen in one of the two. For each socket the
//! list has the user who created it, which no user can change. Reading it needs no root, and it contains no text of a
//! tenant.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use super::command::{Actor, Command};
use super::error::{Error, Result};
use super::systemd::Unit;
use super::{Host, docker};

/// Whose sockets may answer on a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tenant {
    /// Those of the user who owns this home (the login user if it is empty), or whom the unit runs as: one of the
    /// system, if there is one.
    Service { home: String, unit: Option<Unit> },
    /// Those of Docker, for a port that it publishes for this container.
    Container { id: String },
}

/// Which accepted sockets of the port are checked, in addition to all listening ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// Those at the loopback address that a tunnel connects to.
    AtLoopback,
    /// All of them, for a connection that did not come through a tunnel.
    Anywhere,
}

/// A check takes some milliseconds; a server that needs longer than this does not answer.
const LIMIT: Duration = Duration::from_secs(5);
/// How many callers one check serves: their arguments must fit into one line.
const TOGETHER: usize = 64;

// The fields of /proc/net/tcp: 2 is the local address, 4 the state (0A is listening), 8 the user, 10 the inode. A
// socket without an inode belongs to no process: it waits to be accepted, or was closed.
const LOOK: &str = r#"
ports=$1; shift
echo "login $(id -u)"
[ $# -eq 0 ] || stat -c 'home %u %f %n' -- "$@" 2>/dev/null
six=/proc/net/tcp6
[ -r "$six" ] || six=
exec awk -v ports="$ports" '
  { port = $2; sub(/^.*:/, "", port) }
  !index(ports, " " port " ") { next }
  $4 == "0A" { kind = "listens" }
  $4 != "0A" { if ($10 == 0) next; kind = $2 ~ /(0100007F|7F000001):/ ? "accepted" : "elsewhere" }
  !seen[kind, port, $8]++ { print kind, port, $8 }
' /proc/net/tcp $six
"#;

// For sockets that the first check could not assign: the home's owner as root sees it, the user of the unit if it is
// loaded, and the names of the other users for the error message.
const SETTLE: &str = r#"
home=$1 unit=$2; shift 2
[ -z "$home" ] || stat -c 'home %u %f %n' -- "$home" 2>/dev/null
if [ -n "$unit" ] && [ "$(systemctl show -p LoadState --value -- "$unit")" = loaded ]; then
  user=$(systemctl show -p User --value -- "$unit")
  case $user in
    '') echo 'unit 0' ;;
    *[!0-9]*) echo "unit $(id -u -- "$user")" ;;
    *) echo "unit $user" ;;
  esac
fi
for uid; do echo "name $uid $(getent passwd "$uid" | cut -d: -f1)"; done
exit 0
"#;

/// Callers that wait for a check. A server runs one check at a time; it serves every caller that asked before it began,
/// and none that came later.
#[derive(Default)]
pub(super) struct Looks(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    is_looking: bool,
    asked: Vec<Asked>,
}

struct Asked {
    port: u16,
    /// Empty for the login user's home, and if none is needed.
    home: String,
    tell: oneshot::Sender<Result<Arc<Look>>>,
}

/// A server's answer about ports and homes.
#[derive(Debug, Default, PartialEq, Eq)]
struct Look {
    login: Option<u32>,
    homes: HashMap<String, u32>,
    sockets: Vec<Socket>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Socket {
    kind: Kind,
    port: u16,
    uid: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Listens,
    /// At 127.0.0.1, including a socket of both address families.
    Accepted,
    AcceptedElsewhere,
}

impl Host {
    /// Proves that the tenant answers on the port. Call it after the connection is made.
    pub async fn prove(&self, port: u16, tenant: &Tenant, accepted: Accepted) -> Result<()> {
        let home = match tenant {
            Tenant::Service { home, .. } => home.trim_end_matches('/'),
            Tenant::Container { .. } => "",
        };
        // The output is parsed line by line, so a line break in the home would corrupt it.
        if home.contains(char::is_control) {
            return Err(Error::BadCommand("the home of an instance"));
        }
        let look = self.look(port, home).await?;
        let users = look.users(port, accepted);
        match tenant {
            Tenant::Service { unit, .. } => {
                self.prove_service(port, home, unit.as_ref(), &users, look.owner(home)).await?;
            }
            Tenant::Container { id } => self.prove_published(port, id, &users).await?,
        }
        if look.listens(port) { Ok(()) } else { Err(Error::PortClosed { port }) }
    }

    async fn prove_service(
        &self,
        port: u16,
        home: &str,
        unit: Option<&Unit>,
        users: &BTreeSet<u32>,
        owner: Option<u32>,
    ) -> Result<()> {
        let mut own = BTreeSet::from_iter(owner);
        if users.is_subset(&own) {
            return Ok(());
        }
        let others = users.difference(&own).map(u32::to_string);
        let command = Command::script("find-unit-user", &[SETTLE])
            .args([home, unit.map_or("", Unit::as_str)])
            .args(others)
            .limit(LIMIT);
        let settled = match self.beside(&command).await {
            Ok(output) => Settled::parse(&output.ok("systemctl")?.text(), home),
            // Without sudo, the owner of the home is still known.
            Err(Error::NoSudo { .. }) if owner.is_some() => Settled::default(),
            Err(error) => return Err(error),
        };
        own.extend(settled.own);
        let strangers: Vec<String> = users.difference(&own).map(|uid| settled.names.named(*uid)).collect();
        if strangers.is_empty() { Ok(()) } else { Err(Error::Foreign { port, by: strangers.join(", ") }) }
    }

    async fn prove_published(&self, port: u16, container: &str, users: &BTreeSet<u32>) -> Result<()> {
        if !users.is_empty() && !docker::published(self, container).await?.contains(&port) {
            return Err(Error::Foreign { port, by: "something that is not its container".into() });
        }
        // Docker's own proxy, which runs as root, listens on a published port.
        match users.iter().find(|uid| **uid != 0) {
            Some(stranger) => Err(Error::Foreign { port, by: Names::default().named(*stranger) }),
            None => Ok(()),
        }
    }

    /// Waits for a check that begins after this call.
    async fn look(&self, port: u16, home: &str) -> Result<Arc<Look>> {
        let (tell, answer) = oneshot::channel();
        let is_first = {
            let mut waiting = self.looks().0.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.asked.push(Asked { port, home: home.to_owned(), tell });
            !std::mem::replace(&mut waiting.is_looking, true)
        };
        if is_first {
            tokio::spawn(look_for_all(self.clone()));
        }
        answer.await.unwrap_or_else(|_| Err(Error::CutOff { command: "a look at ports".into() }))
    }
}

/// Runs checks until no caller waits any more.
async fn look_for_all(host: Host) {
    loop {
        let batch: Vec<Asked> = {
            let mut waiting = host.looks().0.lock().unwrap_or_else(PoisonError::into_inner);
            let size = waiting.asked.len().min(TOGETHER);
            waiting.is_looking = size > 0;
            waiting.asked.drain(..size).collect()
        };
        if batch.is_empty() {
            return;
        }
        let looked = look_once(&host, &batch).await;
        for asked in batch {
            asked.tell.send(looked.clone()).ok();
        }
    }
}

async fn look_once(host: &Host, batch: &[Asked]) -> Result<Arc<Look>> {
    let ports: BTreeSet<u16> = batch.iter().map(|asked| asked.port).collect();
    let homes: BTreeSet<&str> = batch.iter().map(|asked| asked.home.as_str()).filter(|home| !home.is_empty()).collect();
    let words: String = ports.iter().map(|port| format!(" {port:04X} ")).collect();
    let command = Command::script("list-sockets", &[LOOK]).arg(words).args(homes).limit(LIMIT).by(Actor::Login);
    let output = host.beside(&command).await?.ok("a look at ports")?;
    if output.truncated {
        return Err(Error::odd("a look at ports", "more sockets than can be read"));
    }
    Look::parse(&output.text()).map(Arc::new)
}

impl Look {
    fn parse(text: &str) -> Result<Look> {
        let mut look = Look::default();
        for line in text.lines() {
            let odd = || Error::odd("a look at ports", format_args!("{line:?}"));
            let (word, rest) = line.split_once(' ').ok_or_else(odd)?;
            let kind = match word {
                "login" => {
                    look.login = Some(rest.parse().map_err(|_| odd())?);
                    continue;
                }
                "home" => {
                    look.homes.extend(owner_of_folder(rest).map(|(uid, name)| (name.to_owned(), uid)));
                    continue;
                }
                "listens" => Kind::Listens,
                "accepted" => Kind::Accepted,
                "elsewhere" => Kind::AcceptedElsewhere,
                _ => return Err(odd()),
            };
            let (port, uid) = rest.split_once(' ').ok_or_else(odd)?;
            let port = u16::from_str_radix(port, 16).map_err(|_| odd())?;
            look.sockets.push(Socket { kind, port, uid: uid.parse().map_err(|_| odd())? });
        }
        Ok(look)
    }

    /// The users who have sockets on the port.
    fn users(&self, port: u16, accepted: Accepted) -> BTreeSet<u32> {
        let counts = |socket: &&Socket| {
            socket.port == port && (socket.kind != Kind::AcceptedElsewhere || accepted == Accepted::Anywhere)
        };
        self.sockets.iter().filter(counts).map(|socket| socket.uid).collect()
    }

    fn listens(&self, port: u16) -> bool {
        self.sockets.iter().any(|socket| socket.port == port && socket.kind == Kind::Listens)
    }

    fn owner(&self, home: &str) -> Option<u32> {
        if home.is_empty() { self.login } else { self.homes.get(home).copied() }
    }
}

/// Owner and name from the output of `stat`, if it is a folder: the owner of a link in its place proves nothing.
fn owner_of_folder(text: &str) -> Option<(u32, &str)> {
    let mut words = text.splitn(3, ' ');
    let (uid, mode) = (words.next()?.parse().ok()?, u32::from_str_radix(words.next()?, 16).ok()?);
    (mode & 0xf000 == 0x4000).then(|| (uid, words.next().unwrap_or_default()))
}

/// The result of the second check.
#[derive(Debug, Default, PartialEq, Eq)]
struct Settled {
    own: Vec<u32>,
    names: Names,
}

/// Names of users by their uid.
#[derive(Debug, Default, PartialEq, Eq)]
struct Names(HashMap<u32, String>);

impl Settled {
    fn parse(text: &str, home: &str) -> Settled {
        let mut settled = Settled::default();
        for line in text.lines() {
            match line.split_once(' ') {
                Some(("home", rest)) => {
                    settled.own.extend(owner_of_folder(rest).filter(|(_, name)| *name == home).map(|(uid, _)| uid));
                }
                Some(("unit", uid)) => settled.own.extend(uid.parse::<u32>()),
                Some(("name", rest)) => {
                    let named = rest.split_once(' ').and_then(|(uid, name)| Some((uid.parse().ok()?, name.to_owned())));
                    settled.names.0.extend(named);
                }
                _ => {}
            }
        }
        settled
    }
}

impl Names {
    fn named(&self, uid: u32) -> String {
        match self.0.get(&uid).map(String::as_str) {
            None | Some("") => format!("user {uid}"),
            Some(name) => {
                let name: String = name.chars().filter(|c| !c.is_control()).take(64).collect();
                format!("user {name} ({uid})")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "login 0\nhome 1001 41c0 /srv/assistants/1\nhome 0 a1ff /srv/assistants/2\n\
        listens 4965 1001\naccepted 4965 1001\nelsewhere 4965 1002\nlistens 4969 1003\naccepted 4966 1004\n";

    #[test]
    fn sockets_are_counted_by_port_and_address() {
        let look = Look::parse(SAID).unwrap();
        assert_eq!(look.users(0x4965, Accepted::AtLoopback), BTreeSet::from([1001]));
        assert_eq!(look.users(0x4965, Accepted::Anywhere), BTreeSet::from([1001, 1002]));
        assert_eq!(look.users(0x4969, Accepted::AtLoopback), BTreeSet::from([1003]));
        assert_eq!(look.users(0x4966, Accepted::AtLoopback), BTreeSet::from([1004]), "it listened a moment ago");
        assert!(look.listens(0x4965) && !look.listens(0x4966) && !look.listens(1));
        assert_eq!(look.users(1, Accepted::Anywhere), BTreeSet::new());
        assert!(Look::parse("listens 4965\n").is_err() && Look::parse("rubbish\n").is_err());
        assert!(Look::parse("listens zz 0\n").is_err());
    }

    #[test]
    fn the_owner_is_that_of_a_folder_and_of_nothing_else() {
        let look = Look::parse(SAID).unwrap();
        assert_eq!(look.owner(""), Some(0));
        assert_eq!(look.owner("/srv/assistants/1"), Some(1001));
        assert_eq!(look.owner("/srv/assistants/2"), None, "a link");
        assert_eq!(look.owner("/srv/assistants/3"), None);
    }

    #[test]
    fn what_root_sees_is_added() {
        let settled = Settled::parse("home 1001 41c0 /srv/1\nunit 0\nname 1005 bob\nname 1006 \nunit x\n", "/srv/1");
        assert_eq!(settled.own, [1001, 0]);
        assert_eq!(
            (settled.names.named(1005), settled.names.named(1006)),
            ("user bob (1005)".into(), "user 1006".into())
        );
        assert!(Settled::parse("home 1001 41c0 /srv/10\n", "/srv/1").own.is_empty());
    }
}
