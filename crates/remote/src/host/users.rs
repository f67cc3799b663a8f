//! The Unix users that assistants run as: created with their own home, and removed together with everything that they
//! left on the server.

use std::time::Duration;

use super::command::Command;
use super::error::{Error, Result};
use super::{Host, Output, home};

/// Searching /tmp on a busy server takes a while.
const VACATE: Duration = Duration::from_secs(120);
/// Searching a whole disk takes longer.
const SEARCH: Duration = Duration::from_secs(600);

/// A user to create.
#[derive(Clone, Debug)]
pub struct New<'a> {
    pub name: &'a str,
    pub uid: u32,
    /// Must not exist yet.
    pub home: &'a str,
    /// This uid was used before, so it is used again only if nothing on the server belongs to it any more.
    pub used_before: bool,
}

/// The result of creating a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    Yes,
    /// The uid or the name is in use on this server, or something still belongs to the uid.
    NumberTaken,
}

const MAKE: &str = r#"
set -eu
home=$1 user=$2 uid=$3 before=$4
parent=${home%/*}
mkdir -p -m 755 -- "${parent:-/}"
protected "$home" || exit 96
exec 9<"${parent:-/}"
flock -w 20 9
if [ -e "$home" ] || [ -L "$home" ]; then echo "$home is there already" >&2; exit 78; fi
if getent passwd "$uid" >/dev/null || getent group "$uid" >/dev/null || getent passwd "$user" >/dev/null || getent group "$user" >/dev/null; then exit 79; fi
if [ "$before" = yes ]; then
  for dir in / "${parent:-/}" /home /tmp /var /dev/shm /run; do
    if [ -d "$dir" ] && find "$dir" -xdev -uid "$uid" -print -quit 2>/dev/null | grep -q .; then exit 79; fi
  done
fi
# Another platform may have taken the number at this very moment: 4 says so, 9 of the name.
useradd --system -K SYS_UID_MAX=4000000000 -K SYS_GID_MAX=4000000000 --uid "$uid" --user-group --no-create-home --home-dir "$home" --shell /usr/sbin/nologin -- "$user" ||
  case $? in 4 | 9) exit 79 ;; *) exit 1 ;; esac
# useradd passes over an --expiredate of users of the system.
usermod --expiredate 1 -- "$user"
mkdir -m 700 -- "$home"
# While it is empty and root's: everything that is made in it later inherits the mark.
mark "$uid" "$home" || true
chown -h -- "$user:$user" "$home"
"#;

/// Creates a user that cannot log in, and its home. The account is expired from the beginning: even without a shell,
/// sshd would forward sockets for a user that puts a key into its own home, and those would be outside of every cell.
/// If the user cannot be created, that is an error; no other user is used instead.
pub async fn make(host: &Host, new: &New<'_>) -> Result<Made> {
    let (uid, before) = (new.uid.to_string(), if new.used_before { "yes" } else { "no" });
    let limit = if new.used_before { SEARCH } else { VACATE };
    let script = Command::script("make-user", &[home::SHELL, MARK, MAKE]);
    let output = host.run(&script.args([new.home, new.name, &uid, before]).limit(limit)).await?;
    match output.status {
        0 => Ok(Made::Yes),
        79 => Ok(Made::NumberTaken),
        96 => home::checked(output, new.home).map(|_| Made::NumberTaken),
        _ => Err(Error::failed("useradd", &output)),
    }
}

fn first_line(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or_default().chars().take(300).collect()
}

// First remove what could start processes again, then end the processes. `kill -1`, run as the user, ends all of its
// processes at once, so that none can escape by forking.
const CLOSE: &str = r#"
set -u
name=$1 wanted=$2
uid=$(id -u -- "$name" 2>/dev/null) || exit 0
[ -z "$wanted" ] || [ "$uid" = "$wanted" ] || { echo "$name has the number $uid instead of $wanted" >&2; exit 76; }
[ "$uid" -ge 100 ] && [ "$(getent passwd "$uid" | head -n 1 | cut -d: -f1)" = "$name" ] || { echo "the number of $name is another's too" >&2; exit 76; }
gid=$(id -g -- "$name")
usermod --expiredate 1 -- "$name" || exit 76
if command -v loginctl >/dev/null 2>&1; then
  loginctl disable-linger "$name" >/dev/null 2>&1
  loginctl terminate-user "$name" >/dev/null 2>&1
fi
rm -f -- "/var/lib/systemd/linger/$name" "/var/spool/cron/crontabs/$name" "/var/spool/cron/$name"
for dir in /var/spool/cron /var/spool/at; do
  if [ -d "$dir" ] && [ ! -L "$dir" ]; then find "$dir" -xdev -depth -uid "$uid" -delete 2>/dev/null; fi
done

running() {
  grep -lsE "^Uid:([[:space:]][0-9]+)*[[:space:]]$uid([[:space:]]|\$)" /proc/[0-9]*/status | while read -r status; do
    grep -qs '^State:.[ZX]' "$status" || { pid=${status#/proc/}; echo "${pid%/status}"; }
  done
}
round=0
while [ -n "$(running)" ] && [ "$round" -lt 100 ]; do
  setpriv --reuid="$uid" --regid="$gid" --clear-groups -- sh -c 'kill -KILL -1' 2>/dev/null
  # One that changed some of its numbers is not its own user's to end.
  if [ "$round" -ge 20 ]; then for pid in $(running); do kill -KILL "$pid" 2>/dev/null; done; fi
  round=$((round + 1))
  [ -z "$(running)" ] || sleep 0.1
done
left=
for pid in $(running); do left="$left process $pid"; done
"#;

const CLOSED: &str = r#"
[ -z "$left" ] || { echo "still there of $name:$left" >&2; exit 75; }
"#;

/// Closes a user's account, ends all of its processes, and removes its jobs of cron and at. The caller stops or starts
/// what must go on running.
pub async fn close(host: &Host, name: &str, uid: Option<u32>) -> Result<()> {
    ended(host, Command::script("close-user", &[CLOSE, CLOSED]), name, uid).await
}

async fn ended(host: &Host, script: Command, name: &str, uid: Option<u32>) -> Result<()> {
    let uid = uid.map_or_else(String::new, |uid| uid.to_string());
    let output = host.run(&script.args([name, &uid]).limit(VACATE)).await?;
    match output.status {
        0 => Ok(()),
        75 => Err(Error::NotVacated { why: first_line(&output) }),
        _ => Err(Error::failed("removing a user's traces", &output)),
    }
}

// Removes what the user left. `-execdir` and `-delete` follow no link that another user puts in the way.
const VACATE_SCRIPT: &str = r#"
places() {
  for dir in /tmp /var/tmp /dev/shm /dev/mqueue /run/lock /run/screen "/run/user/$uid" /var/lock /var/mail /var/spool/mail /var/spool/cron /var/spool/at /var/crash; do
    if [ -d "$dir" ] && [ ! -L "$dir" ]; then echo "$dir"; fi
  done
}
awk -v user="user_id=$uid" '$3 ~ /^fuse/ { n = split($4, o, ","); for (i = 1; i <= n; i++) if (o[i] == user) print $2 }' /proc/self/mounts |
  while read -r mount; do umount -l -- "$mount" 2>/dev/null; done
for dir in $(places); do
  find "$dir" -xdev -depth -uid "$uid" \( -delete -o -execdir chown -h root:root -- {} \; \) 2>/dev/null
done
objects() { # KIND COLUMN: those whose owner or maker it is
  awk -v uid="$uid" -v column="$2" 'NR > 1 && ($column == uid || $(column + 2) == uid) { print $2 }' "/proc/sysvipc/$1" 2>/dev/null
}
for id in $(objects shm 8); do ipcrm -m "$id"; done
for id in $(objects sem 5); do ipcrm -s "$id"; done
for id in $(objects msg 8); do ipcrm -q "$id"; done

for dir in $(places); do
  if find "$dir" -xdev -uid "$uid" -print -quit 2>/dev/null | grep -q .; then left="$left files in $dir"; fi
done
[ -z "$(objects shm 8)$(objects sem 5)$(objects msg 8)" ] || left="$left IPC objects"
"#;

/// Ends everything of a user and removes what it left outside of its home: processes, jobs of cron and at, its user
/// manager, files in folders that all users may write to, IPC objects. The account is closed first, so nothing can come
/// back. The home is not touched.
pub async fn vacate(host: &Host, name: &str, uid: Option<u32>) -> Result<()> {
    ended(host, Command::script("vacate-user", &[CLOSE, VACATE_SCRIPT, CLOSED]), name, uid).await
}

// The project id for quotas is the user's uid. `mark` marks a folder, and everything created in it later inherits the
// mark. A home from before users were created with the mark is marked by its owner, who may mark its own files; root
// marks the home itself once everything in it is marked.
const MARK: &str = r#"
mark() { # UID FOLDER
  chattr -p "$1" +P "$2" 2>/dev/null || xfs_io -r -c "chproj $1" -c 'chattr +P' "$2" >/dev/null 2>&1
}
is_marked() { [ "$(lsattr -pd "$2" 2>/dev/null | awk '{ print $1; exit }')" = "$1" ]; }
"#;

// A server without quotas can still have assistants, so every missing part ends with status 3, which is reported.
const LIMIT_DISK: &str = r#"
home=$1 kib=$2 inodes=$3
protected "$home" || exit 3
[ -d "$home" ] && [ ! -L "$home" ] || exit 97
uid=$(stat -c %u -- "$home")
found=$(findmnt -no FSTYPE,OPTIONS -T "$home" 2>/dev/null) || exit 3
mount=$(findmnt -no TARGET -T "$home") || exit 3
case $found in
  *prjquota* | *pquota*) ;;
  *) exit 3 ;;
esac
if ! is_marked "$uid" "$home"; then
  as_owner 100 "$home" sh -c '
    cd -- "$2" && find . -xdev -mindepth 1 -type d -exec chattr -p "$1" +P {} + && find . -xdev -type f -exec chattr -p "$1" {} +' \
    sh "$uid" "$home" </dev/null >&2 || exit 3
  mark "$uid" "$home" || exit 3
fi
case $found in
  xfs*) xfs_quota -x -c "limit -p bhard=${kib}k ihard=$inodes $uid" "$mount" >&2 || exit 3 ;;
  *) setquota -P "$uid" 0 "$kib" 0 "$inodes" "$mount" >&2 || exit 3 ;;
esac
"#;

/// The limit of inodes, since a file system has a limited number of files: one for each 16 KiB, as ext4 reserves them,
/// and at least enough for any assistant.
fn inodes(kib: i64) -> i64 {
    if kib == 0 { 0 } else { (kib / 16).max(100_000) }
}

/// Limits a home's disk space; 0 removes the limit. Returns whether the server supports it: the file system of the
/// homes needs project quotas.
pub async fn limit_disk(host: &Host, home: &str, mib: i64) -> Result<bool> {
    let kib = mib.saturating_mul(1024);
    let (kib, inodes) = (kib.to_string(), inodes(kib).to_string());
    let script = Command::script("limit-disk", &[home::SHELL, MARK, LIMIT_DISK]);
    let output = host.run(&script.args([home, &kib, &inodes]).limit(VACATE)).await?;
    match output.status {
        3 => Ok(false),
        _ => home::checked(output, home).map(|_| true),
    }
}

/// What to do with the account of a user that gets a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Account {
    /// No login is possible through anything that uses PAM: sshd, cron, at.
    Closed,
    /// A login is possible: sudo uses PAM too, and refuses an expired account.
    Open,
    /// The platform did not create it, so it is not changed.
    Foreign,
}

// `systemctl mask` creates the same link to /dev/null.
const PREPARE: &str = r#"
uid=$(id -u -- "$1") || exit
[ "$uid" -ge 100 ] || { echo "$1 is a user of the system" >&2; exit 76; }
ends=$(getent shadow "$1" | cut -d: -f8)
case $2 in
  closed) [ "$ends" = 1 ] || usermod --expiredate 1 -- "$1" || exit ;;
  open) [ -z "$ends" ] || usermod --expiredate '' -- "$1" || exit ;;
esac
mask=/etc/systemd/system/user@$uid.service
[ -L "$mask" ] || ln -s /dev/null "$mask" || exit
systemctl stop "user@$uid.service" 2>/dev/null
exit 0
"#;

/// Closes the ways to run programs outside of a user's cell: its account, and its own systemd manager, which systemd
/// starts for anyone who asks logind.
pub async fn prepare_for_cell(host: &Host, name: &str, account: Account) -> Result<()> {
    let account = match account {
        Account::Closed => "closed",
        Account::Open => "open",
        Account::Foreign => "foreign",
    };
    host.succeed(&Command::script("prepare-user", &[PREPARE]).args([name, account]).limit(VACATE)).await.map(drop)
}

const REMOVE: &str = r#"
uid=$(id -u -- "$1" 2>/dev/null) || exit 0
mask=/etc/systemd/system/user@$uid.service
[ "$(readlink -- "$mask")" != /dev/null ] || rm -f -- "$mask"
userdel -- "$1"
status=$?
# 6 and 8 and 12: it was gone already, somebody is logged in, its mail could not be removed.
id -u -- "$1" >/dev/null 2>&1 && exit $status
getent group "$1" >/dev/null && groupdel -- "$1" 2>/dev/null
exit 0
"#;

/// Removes a user after `vacate`. Its home stays.
pub async fn remove(host: &Host, name: &str) -> Result<()> {
    host.succeed(&Command::script("remove-user", &[REMOVE]).arg(name)).await.map(drop)
}
