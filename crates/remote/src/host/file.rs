//! Files on a server: read as a whole, and written as a whole or not at all.
//!
//! A write is one script, in one round trip. It writes a temporary file in the same folder, compares the received
//! content with the sent one (a cut connection looks like the end of the input), keeps the old version beside the file,
//! and renames. A lock on the folder makes our own writers wait for each other. A change by another program is detected
//! by the file's hash, right before the rename.

use aws_lc_rs::digest;

use super::command::{Actor, Command};
use super::error::{Error, Result};
use super::{Host, Output};

/// How many older versions are kept beside a file, as `<name>.tidepool-<time>`.
pub const VERSIONS: usize = 5;

/// A larger file is not replaced, because all of it has to be read to check whether it changed.
const LARGEST: usize = 256 << 20;

/// A hash of a file's content, to detect a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hash(String);

impl Hash {
    pub fn of(bytes: &[u8]) -> Hash {
        let sum = digest::digest(&digest::SHA256, bytes);
        Hash(sum.as_ref().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// SHA-256, in hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The condition for a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expect {
    Any,
    Absent,
    /// The file still has the content that was read and edited.
    Unchanged(Hash),
}

#[derive(Clone, Debug)]
pub struct Write {
    path: String,
    bytes: Vec<u8>,
    expect: Expect,
    actor: Actor,
    mode: u32,
    owner: Option<String>,
    /// The tenant's home that the path must stay below.
    home: Option<String>,
}

impl Write {
    /// An existing file keeps its owner and mode. A new one gets the owner of its folder, and only the owner can read
    /// it.
    pub fn new(path: impl Into<String>, bytes: impl Into<Vec<u8>>, expect: Expect) -> Write {
        let (path, bytes) = (path.into(), bytes.into());
        Write { path, bytes, expect, actor: Actor::default(), mode: 0o600, owner: None, home: None }
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// The user that writes it. In a user's folder this must be that user: see `home`.
    pub fn by(mut self, actor: Actor) -> Write {
        self.actor = actor;
        self
    }

    /// Restricts the write to this home, and refuses to follow links.
    pub(super) fn below(mut self, home: &str) -> Write {
        self.home = Some(home.to_owned());
        self
    }

    /// The mode of a new file.
    pub fn mode(mut self, mode: u32) -> Write {
        self.mode = mode;
        self
    }

    /// The owner of a new file: `user` or `user:group`.
    pub fn owner(mut self, owner: impl Into<String>) -> Write {
        self.owner = Some(owner.into());
        self
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    /// The file had this content already, and was not touched.
    Same,
    New,
    /// The old content is kept under this name.
    Replaced {
        kept: String,
    },
}

/// An older version of a file, kept beside it by one of our writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    pub path: String,
    /// The suffix of its name: the time when it was replaced.
    pub stamp: String,
    pub size: u64,
}

/// The end of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tail {
    pub bytes: Vec<u8>,
    /// How large the whole file is.
    pub size: u64,
}

// Exit statuses of the scripts.
const CHANGED: i32 = 81;
const NOT_A_FILE: i32 = 82;
const TOO_LARGE: i32 = 84;
const NO_FOLDER: i32 = 85;
const LOCKED: i32 = 86;
const INCOMPLETE: i32 = 87;

const READ: &str = r#"
if [ -e "$1" ] && [ ! -f "$1" ]; then exit 82; fi
size=$(stat -Lc %s -- "$1") || exit 1
[ "$size" -le "$2" ] || exit 84
exec head -c "$(($2 + 1))" -- "$1"
"#;

// If the path is a link, the older version is beside the link's target, where a write put it.
const FIND_KEPT: &str = r#"
path=$(readlink -fnv -- "$1" && printf x) || exit 1
set -- "${path%x}.tidepool-$3" "$2"
"#;

const TAIL: &str = r#"
if [ -e "$1" ] && [ ! -f "$1" ]; then exit 82; fi
stat -Lc %s -- "$1" && exec tail -c "$2" -- "$1"
"#;

// A link is followed, as in a write.
const KEPT: &str = r#"
path=$(readlink -fnv -- "$1" && printf x) || exit 1; path=${path%x}
for kept in "$path".tidepool-[0-9]*; do
  [ ! -f "$kept" ] || stat -c '%s %n' -- "$kept" || exit 1
done
"#;

// A name may end in a line break, which $(…) would remove: hence the x. A link is followed, so that it stays a link. In
// a home it is not followed: the home's owner could lead us to a place that its cell forbids. There, all names are
// relative to a folder that is open and was verified to be below the home, so replacing folders meanwhile has no effect
// either.
const WRITE: &str = r#"
umask 077
path=$1 expect=$2 want=$3 mode=$4 owner=$5 versions=$6 largest=$7 home=$8
if [ -L "$path" ]; then
  [ -z "$home" ] || exit 82
  path=$(readlink -fnv -- "$path" && printf x) || exit 1; path=${path%x}
fi
shown=$path
dir=${path%/*}; dir=${dir:-/}
[ -d "$dir" ] || exit 85
if [ -n "$home" ]; then
  home=$(cd -P -- "$home" && pwd -P) || exit 85
  cd -P -- "$dir" || exit 1
  case $(pwd -P)/ in "$home"/*) ;; *) exit 82 ;; esac
  path=./${path##*/} dir=.
fi
exec 9<"$dir"
flock -w 10 9 || exit 86
hash() { if [ -e "$path" ]; then h=$(sha256sum <"$path") && h=${h%% *}; else h=absent; fi; }
if [ -e "$path" ]; then
  [ -f "$path" ] || exit 82
  [ "$(stat -Lc %s -- "$path")" -le "$largest" ] || exit 84
fi
hash || exit 1
now=$h
if [ "$now" = "$want" ]; then cat >/dev/null; echo same; exit 0; fi
[ "$expect" = any ] || [ "$now" = "$expect" ] || exit 81
rm -f -- "$dir"/.tidepool-new.*
tmp=$(mktemp -- "$dir/.tidepool-new.XXXXXXXX") || exit 1
trap 'rm -f -- "$tmp"' EXIT
trap 'exit 143' HUP INT TERM PIPE
cat >"$tmp" || exit 1
got=$(sha256sum <"$tmp") || exit 1
[ "${got%% *}" = "$want" ] || exit 87
if [ "$now" != absent ]; then
  # Only root can give a file to any group: whoever owns the file may keep it in the own one.
  chown -h --reference="$path" -- "$tmp" 2>/dev/null || [ "$(stat -c %u -- "$path")" = "$(id -u)" ] ||
    chown -h --reference="$path" -- "$tmp" || exit 1
  chmod --reference="$path" -- "$tmp" || exit 1
else
  if [ -n "$owner" ]; then chown -h -- "$owner" "$tmp" || exit 1
  elif [ "$(id -u)" = 0 ]; then chown -h --reference="$dir" -- "$tmp" || exit 1; fi
  chmod -- "$mode" "$tmp" || exit 1
fi
sync -- "$tmp" || exit 1
hash || exit 1
[ "$h" = "$now" ] || exit 81
if [ "$now" = absent ]; then
  ln -T -- "$tmp" "$path" || { [ ! -e "$path" ] || exit 81; exit 1; }
  sync -- "$dir"
  echo new
  exit 0
fi
stamp=$(date -u +%Y%m%dT%H%M%S.%NZ)
kept=$path.tidepool-$stamp
# A copy and not a hard link, which whoever watches the file would see first: OpenClaw misses what changes within five milliseconds of that.
# The owner of a home can put a link here meanwhile: it is copied as a link.
cp -pPT -- "$path" "$kept" || { rm -f -- "$kept"; exit 1; }
[ -f "$kept" ] && [ ! -L "$kept" ] && same=$(sha256sum <"$kept") && [ "${same%% *}" = "$now" ] || { rm -f -- "$kept"; exit 81; }
sync -- "$kept" && mv -fT -- "$tmp" "$path" || { rm -f -- "$kept"; exit 1; }
trap - EXIT
sync -- "$dir"
set -- "$path".tidepool-[0-9]*
while [ $# -gt "$versions" ]; do rm -f -- "$1"; shift; done
printf 'kept %s.tidepool-%s' "$shown" "$stamp"
"#;

impl Host {
    /// A file's content; `None` if there is no such file. A file larger than `limit` is an error.
    pub async fn read(&self, path: &str, limit: usize, actor: Actor) -> Result<Option<Vec<u8>>> {
        let command = Command::script("read-file", &[READ]).args([absolute(path)?, &limit.to_string()]);
        self.take(command, path, limit, actor).await
    }

    /// The content of an older version that is kept beside a file.
    pub async fn read_kept(&self, path: &str, stamp: &str, limit: usize, actor: Actor) -> Result<Option<Vec<u8>>> {
        if !stamp.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'.') {
            return Ok(None);
        }
        let script = Command::script("read-kept-version", &[FIND_KEPT, READ]);
        let command = script.args([absolute(path)?, &limit.to_string(), stamp]);
        self.take(command, path, limit, actor).await
    }

    async fn take(&self, command: Command, path: &str, limit: usize, actor: Actor) -> Result<Option<Vec<u8>>> {
        let output = self.run(&command.keep(limit).by(actor)).await?;
        if output.truncated {
            return Err(Error::TooLarge { path: path.to_owned(), limit });
        }
        if is_missing(&output) { Ok(None) } else { checked(output, path, limit).map(|output| Some(output.stdout)) }
    }

    /// The last bytes of a file, however large it is; `None` if there is no such file.
    pub async fn tail(&self, path: &str, limit: usize, actor: Actor) -> Result<Option<Tail>> {
        let command = Command::script("read-file-end", &[TAIL])
            .args([absolute(path)?, &limit.to_string()])
            .keep(limit + 32)
            .by(actor);
        let output = self.run(&command).await?;
        if is_missing(&output) {
            return Ok(None);
        }
        let output = checked(output, path, limit)?;
        let header = output.stdout.iter().position(|byte| *byte == b'\n').map(|end| output.stdout.split_at(end));
        let Some((size, bytes)) = header else { return Err(Error::odd("tail", "no size")) };
        let size = String::from_utf8_lossy(size).parse().map_err(|e| Error::odd("tail", e))?;
        Ok(Some(Tail { bytes: bytes[1..].to_vec(), size }))
    }

    /// The older versions that are kept beside a file, newest first; empty if there is no such file.
    pub async fn kept(&self, path: &str, actor: Actor) -> Result<Vec<Kept>> {
        let output = self.run(&Command::script("list-kept-versions", &[KEPT]).arg(absolute(path)?).by(actor)).await?;
        if is_missing(&output) {
            return Ok(vec![]);
        }
        let output = checked(output, path, 0)?;
        // A name with a line break is not one of ours, and does not parse.
        let mut kept: Vec<Kept> = output.text().lines().filter_map(kept_file).collect();
        kept.sort_by(|a, b| b.stamp.cmp(&a.stamp));
        Ok(kept)
    }

    /// Writes a file atomically, or leaves everything as it was.
    pub async fn write(&self, write: &Write) -> Result<Written> {
        let path = absolute(&write.path)?;
        let want = Hash::of(&write.bytes);
        let expect = match &write.expect {
            Expect::Any => "any",
            Expect::Absent => "absent",
            Expect::Unchanged(hash) => hash.as_str(),
        };
        let (mode, versions) = (format!("{:o}", write.mode & 0o7777), VERSIONS.to_string());
        let owner = write.owner.as_deref().unwrap_or_default();
        let command = Command::script("write-file", &[WRITE])
            .args([path, expect, want.as_str(), &mode, owner, &versions, &LARGEST.to_string()])
            .arg(write.home.as_deref().unwrap_or_default())
            .stdin(write.bytes.clone())
            .by(write.actor.clone());
        let output = checked(self.run(&command).await?, path, LARGEST)?;
        match output.text().as_str() {
            "same\n" => Ok(Written::Same),
            "new\n" => Ok(Written::New),
            text => match text.strip_prefix("kept ") {
                Some(kept) => Ok(Written::Replaced { kept: kept.to_owned() }),
                None => Err(Error::odd("a write", format_args!("{text:?}"))),
            },
        }
    }
}

fn kept_file(line: &str) -> Option<Kept> {
    let (size, path) = line.split_once(' ')?;
    let (_, stamp) = path.rsplit_once(".tidepool-")?;
    Some(Kept { path: path.to_owned(), stamp: stamp.to_owned(), size: size.parse().ok()? })
}

fn absolute(path: &str) -> Result<&str> {
    let name = path.rsplit('/').next().unwrap_or_default();
    let whole = path.starts_with('/') && !matches!(name, "" | "." | "..");
    if whole { Ok(path) } else { Err(Error::BadCommand("a path must be absolute and name a file")) }
}

fn is_missing(output: &Output) -> bool {
    let said = String::from_utf8_lossy(&output.stderr);
    output.status == 1 && ["No such file or directory", "Not a directory"].iter().any(|text| said.contains(text))
}

fn checked(output: Output, path: &str, limit: usize) -> Result<Output> {
    let name = path.to_owned();
    match output.status {
        0 => Ok(output),
        CHANGED => Err(Error::ChangedMeanwhile { path: name }),
        NOT_A_FILE => Err(Error::NotAFile { path: name }),
        TOO_LARGE => Err(Error::TooLarge { path: name, limit }),
        NO_FOLDER => Err(Error::NoFolder { path: name }),
        LOCKED => Err(Error::Locked { path: name }),
        INCOMPLETE => Err(Error::CutOff { command: "a write".into() }),
        _ => Err(Error::about_file(path, "a file", &output)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_what_sha256sum_says() {
        assert_eq!(Hash::of(b"").as_str(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }

    #[test]
    fn only_a_file_named_from_the_root_is_a_path() {
        assert!(absolute("/etc/x y").is_ok());
        for bad in ["", "x", "./x", "~/x", "/", "/etc/", "/etc/..", "/etc/."] {
            assert!(absolute(bad).is_err(), "{bad}");
        }
    }
}
