//! Cells on a server: which directives the server supports, the security score of a unit, and how a program is run
//! inside the cell of a unit.

use std::net::IpAddr;
use std::time::Duration;

use super::Host;
use super::command::Command;
use super::error::{Error, Result};
use super::file::{Expect, Write};
use super::systemd::Unit;

/// A program is started for every directive, which takes long on a busy server.
const TRY: Duration = Duration::from_secs(120);
const QUICK: Duration = Duration::from_secs(30);
/// How long systemd may take to start a program in a cell.
const PATIENCE: Duration = Duration::from_secs(15);

/// What a server supports of a cell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ability {
    /// The keys of the parts that it refuses, each with the server's message.
    pub refused: Vec<(String, String)>,
    /// Why all the other parts together cannot be started; `None` if they can.
    pub broken: Option<String>,
    /// The cgroup controllers that it has.
    pub controllers: Vec<String>,
    /// Whether packets to a denied address are dropped.
    pub firewall: bool,
    /// Whether a filter on bind() works.
    pub bind_filter: bool,
    /// The name servers that programs on the server use.
    pub resolvers: Vec<IpAddr>,
}

// Each part is two arguments: its key and its lines. All parts are tried as nobody, a user who owns nothing. A
// directive is refused if systemd-run does not know or understand it, or if the program ends with one of systemd's own
// statuses or by the filter's signal. Any other failure (a timeout, a bus that went away because systemd re-executed
// itself) proves nothing about the directive, so it is tried once more by itself. If that fails without a clear reason
// too, the script ends without printing `end`. All of them together are tried in the same way.
const ABILITY: &str = r#"
set -u
folder=$(mktemp -d) || exit 1
trap 'rm -rf -- "$folder"' EXIT
trap 'exit 143' HUP INT TERM PIPE
try() { # NUMBER
  number=$1
  set --
  while IFS= read -r line; do set -- "$@" -p "$line"; done <"$folder/lines.$number"
  timeout -k 2 20 systemd-run --quiet --wait --collect --pipe -p User=nobody "$@" true </dev/null >"$folder/said.$number" 2>&1
  echo $? >"$folder/status.$number"
}
said() { printf '%s status %s' "$(tr '\n' ' ' <"$folder/said.$1" | cut -c 1-200)" "$(cat "$folder/status.$1")"; }
is_refused() { # NUMBER
  case $(cat "$folder/status.$1") in
  1) grep -qE 'Unknown assignment|nknown property|Cannot set property|Failed to parse|Failed to set unit properties|Invalid|not supported' "$folder/said.$1" ;;
  2[0-3][0-9] | 24[0-5] | 255) true ;;
  *) false ;;
  esac
}
number=0
while [ $# -gt 1 ]; do
  printf '%s\n' "$1" >"$folder/key.$number"
  printf '%s\n' "$2" >"$folder/lines.$number"
  try "$number" &
  shift 2
  number=$((number + 1))
  [ $((number % 8)) != 0 ] || wait
done
wait
: >"$folder/all"
last=$number at=0
while [ "$at" -lt "$last" ]; do
  [ "$(cat "$folder/status.$at")" = 0 ] || try "$at"
  if [ "$(cat "$folder/status.$at")" = 0 ]; then
    cat "$folder/lines.$at" >>"$folder/all"
  elif is_refused "$at"; then
    printf 'refused %s %s\n' "$(cat "$folder/key.$at")" "$(said "$at")"
  else
    printf 'disturbed %s %s\n' "$(cat "$folder/key.$at")" "$(said "$at")"
    exit 0
  fi
  at=$((at + 1))
done
set --
while IFS= read -r line; do set -- "$@" -p "$line"; done <"$folder/all"
# That a program ran does not show that a directive took effect: some are passed over where the kernel cannot do them. So it says what it is.
without=
shows() { # LINE STATUS: where this line of a unit was tried, the program inside must have this line in its status
  ! grep -qx -- "$1" "$folder/all" || grep -qx -- "$2" "$folder/said.whole" || without="$without ${1%%=*}"
}
look='cat /proc/self/status; echo "Users: $(readlink /proc/self/ns/user)"'
# If systemd is reloaded before the program starts, it reads the command line of such a unit from a file, and splits it into other words.
# So the script comes by standard input, and the command line is plain words.
together() {
  printf '%s\n' "$look" | timeout -k 2 20 systemd-run --quiet --wait --collect --pipe -p User=nobody "$@" sh -s >"$folder/said.whole" 2>&1
  echo $? >"$folder/status.whole"
}
together "$@"
[ "$(cat "$folder/status.whole")" = 0 ] || together "$@"
if [ "$(cat "$folder/status.whole")" = 0 ]; then
  users=$(sed -n 's/^Users: //p' "$folder/said.whole")
  [ -z "$users" ] || [ "$users" = "$(readlink /proc/self/ns/user)" ] || echo 'Users: own' >>"$folder/said.whole"
  shows NoNewPrivileges=yes 'NoNewPrivs:[[:space:]]*1'
  shows CapabilityBoundingSet= 'CapBnd:[[:space:]]*0*'
  shows 'SystemCallFilter=.*' 'Seccomp:[[:space:]]*2'
  shows PrivateUsers=yes 'Users: own'
  if [ -z "$without" ]; then echo whole; else echo "broken it takes these, and they have no effect:$without"; fi
elif is_refused whole; then
  printf 'broken %s\n' "$(said whole)"
else
  printf 'disturbed together %s\n' "$(said whole)"
  exit 0
fi
printf 'controllers %s\n' "$(cat /sys/fs/cgroup/cgroup.controllers 2>/dev/null)"
if command -v bash >/dev/null 2>&1; then
  # The program inside says what became of its packet: one that did not run proves nothing.
  send='if (exec 3<>/dev/udp/127.0.0.99/9 && printf x >&3) 2>/dev/null; then echo sent; else echo dropped; fi'
  inside() { # SCRIPT SHELL DIRECTIVE
    printf '%s\n' "$1" | timeout -k 2 20 systemd-run --quiet --wait --collect --pipe -p User=nobody -p "$3" "$2" -s 2>/dev/null
  }
  if [ "$(bash -c "$send")" = sent ] && [ "$(inside "$send" bash IPAddressDeny=127.0.0.99)" = dropped ]; then
    echo firewall
    listen='timeout 2 systemd-socket-activate -l 127.0.0.1:59999 true </dev/null 2>&1 | grep -q "not permitted" && echo refused'
    if systemctl --version | grep -q '+BPF_FRAMEWORK' && [ "$(inside "$listen" sh SocketBindDeny=any)" = refused ]; then echo bind-filter; fi
  fi
fi
# Whom resolved asks is no business of programs, unless this file is a link to its own list.
cat /etc/resolv.conf 2>/dev/null | sed -n 's/^nameserver[[:space:]]\{1,\}\([0-9a-fA-F.:]*\).*$/resolver \1/p' | sort -u | head -n 20
echo end
"#;

/// A part of a cell that a server supports or not: its key, and its lines (`Name=value`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub key: String,
    pub lines: Vec<String>,
}

/// Tries the parts of a cell, each by itself and then all together. An error means that nothing was learned about the
/// server.
pub async fn ability(host: &Host, parts: &[Part]) -> Result<Ability> {
    // A unit file doubles percent signs; systemd-run takes them as they are.
    let args = parts.iter().flat_map(|part| [part.key.clone(), part.lines.join("\n").replace("%%", "%")]);
    let output = host.succeed(&Command::script("try-cell", &[ABILITY]).args(args).limit(TRY)).await?;
    parse(&output.text())
}

fn parse(text: &str) -> Result<Ability> {
    let mut ability = Ability::default();
    let mut ended = false;
    let mut disturbed = None;
    for line in text.lines() {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "refused" => {
                let (name, why) = rest.split_once(' ').unwrap_or((rest, ""));
                ability.refused.push((name.to_owned(), why.trim().to_owned()));
            }
            "disturbed" => disturbed = Some(rest.trim().to_owned()),
            "broken" => ability.broken = Some(rest.trim().to_owned()),
            "controllers" => ability.controllers = rest.split_whitespace().map(str::to_owned).collect(),
            "firewall" => ability.firewall = true,
            "bind-filter" => ability.bind_filter = true,
            "resolver" => ability.resolvers.extend(rest.trim().parse::<IpAddr>()),
            "end" => ended = true,
            _ => {}
        }
    }
    match disturbed {
        Some(why) => Err(Error::odd("systemd-run", format_args!("it was disturbed when this was tried: {why}"))),
        None if ended => Ok(ability),
        None => Err(Error::odd("systemd-run", "the answer has no end")),
    }
}

/// Installs a program on the server that cells mount in place of another. Root owns it, and every user may run it.
pub async fn put_program(host: &Host, path: &str, text: &str) -> Result<()> {
    let folder = path.rsplit_once('/').map_or("/", |(folder, _)| folder);
    host.succeed(&Command::new("mkdir").args(["-p", "-m", "755", "--", folder])).await?;
    host.write(&Write::new(path, text, Expect::Any).mode(0o755)).await.map(drop)
}

/// The exposure of a unit according to `systemd-analyze security`, in tenths; `None` if the server does not report it.
pub async fn score(host: &Host, unit: &Unit) -> Result<Option<i64>> {
    let command = Command::new("systemd-analyze").args(["security", "--no-pager", "--", unit.as_str()]).limit(QUICK);
    Ok(read_score(&host.run(&command).await?.text()))
}

/// `→ Overall exposure level for x.service: 1.2 OK :-)`
fn read_score(text: &str) -> Option<i64> {
    let line = text.lines().rev().find(|line| line.contains("Overall exposure level"))?;
    let (whole, tenth) = line.rsplit_once(": ")?.1.split(' ').next()?.split_once('.')?;
    Some(whole.parse::<i64>().ok()? * 10 + tenth.parse::<i64>().ok()?)
}

/// The cell that a program is run in: that of a unit, sharing the unit's private folders while the unit runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inside {
    pub user: String,
    pub unit: Unit,
    /// The lines of the unit's cell.
    pub lines: Vec<String>,
}

impl Inside {
    /// The arguments that go before the program's own, with a variable that the program gets.
    pub(super) fn words(&self, limit: Duration, variable: &str) -> Vec<String> {
        // The program inside has its own time limit; this one is for a systemd that does not answer.
        let longest = (limit + PATIENCE).as_secs().to_string();
        let front = [
            "env",
            "LC_ALL=C",
            "timeout",
            "-k",
            "2",
            &longest,
            "systemd-run",
            "--quiet",
            "--wait",
            "--collect",
            "--pipe",
        ];
        let mut words: Vec<String> = front.map(str::to_owned).to_vec();
        let own = [
            format!("User={}", self.user),
            // OpenClaw's lock on its state is in /tmp, which is private to the unit. Only a program that shares it sees
            // that the gateway runs.
            format!("JoinsNamespaceOf={}", self.unit),
            // The program is not our child process: this ends it if our connection is cut.
            format!("RuntimeMaxSec={longest}"),
        ];
        // A unit file doubles percent signs; systemd-run takes them as they are.
        for line in own.into_iter().chain(self.lines.iter().map(|line| line.replace("%%", "%"))) {
            words.push("-p".to_owned());
            words.push(line);
        }
        words.push(format!("--setenv={variable}"));
        words.push("--".to_owned());
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_and_a_torn_one_is_refused() {
        let text = "refused PrivateUsers Failed to set up user namespacing status 217\nwhole\ncontrollers cpu memory\nfirewall\n\
            resolver 169.254.169.254\nresolver not\nend\n";
        let read = parse(text).unwrap();
        assert_eq!(read.refused, [("PrivateUsers".into(), "Failed to set up user namespacing status 217".into())]);
        assert_eq!(read.controllers, ["cpu", "memory"]);
        assert!(read.firewall && !read.bind_filter && read.broken.is_none());
        assert_eq!(read.resolvers, ["169.254.169.254".parse::<IpAddr>().unwrap()]);
        assert!(parse("whole\n").is_err());
        let disturbed =
            parse("refused A b status 1\ndisturbed NoNewPrivileges the bus went away status 1\n").unwrap_err();
        assert!(disturbed.to_string().contains("NoNewPrivileges the bus went away"), "{disturbed}");
        assert_eq!(parse("broken it failed \nend\n").unwrap().broken.as_deref(), Some("it failed"));
    }

    #[test]
    fn a_score_is_in_tenths() {
        let text = "✗ PrivateNetwork= x\n\n→ Overall exposure level for oc-1.service: 1.2 OK :-)\n";
        assert_eq!(read_score(text), Some(12));
        assert_eq!(read_score("→ Overall exposure level for a.service: 10.0 DANGEROUS 😨"), Some(100));
        assert_eq!(read_score("Unknown command verb security."), None);
    }
}
