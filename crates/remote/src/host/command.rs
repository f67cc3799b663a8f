//! A command is a list of arguments. Only this file turns it into a line for a shell, and it quotes every value.
//!
//! The line for the server has these parts, from outside in: a mark where the command's own output begins, `sudo` to
//! become root, `systemd-run` if it runs inside a cell, a locale that makes messages recognizable, a time limit that
//! the server enforces (an abandoned command would hold one of sshd's sessions for ever), `runuser` to become another
//! user, and the arguments.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use super::cell::Inside;
use super::docker;
use super::error::{Error, Result};
use super::output::{MARK_FORMAT, Output};

/// The default time limit of a command.
const LIMIT: Duration = Duration::from_secs(30);
/// The default limit of the output that is kept.
const KEEP: usize = 1 << 20;
/// After the time limit a command gets SIGTERM; this much later it gets SIGKILL.
pub(super) const KILL_AFTER: Duration = Duration::from_secs(2);
/// The line is one argument of the shell, and Linux limits an argument to 128 KiB.
const LONGEST: usize = 120 * 1024;
/// The variable that holds the command inside of a cell, and what runs it there.
///
/// systemd expands dollar signs in the words of a transient unit. It also writes these words to a file, and reads other
/// words if it is reloaded before the program has started. So the words that it gets have nothing to expand or to quote.
const CELL_COMMAND: &str = "TIDEPOOL_COMMAND";
const RUN_CELL_COMMAND: &str = "eval \"`printenv TIDEPOOL_COMMAND | base64 -d`\"; exit 127";

/// The user that runs a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Actor {
    /// The user who logged in.
    Login,
    #[default]
    Root,
    /// A named user of the server. Files in a folder that this user owns are safe to write only as this user: root
    /// would follow the links that the user puts there.
    User(String),
    /// A user inside a cell, for programs that run code of a tenant.
    Inside(Inside),
    /// The user of a container, inside of it. Programs and paths are the container's own.
    Container(String),
}

impl Actor {
    /// A user who owns nothing and may do nothing, for programs that are only asked for their version.
    pub fn nobody() -> Actor {
        Actor::User("nobody".into())
    }
}

/// The user who logged in, as far as the line depends on it.
#[derive(Clone, Debug)]
pub(super) struct Login {
    pub user: String,
    pub is_root: bool,
}

#[derive(Clone)]
pub struct Command {
    name: String,
    argv: Vec<String>,
    env: Vec<(String, String)>,
    pub(super) stdin: Bytes,
    pub(super) limit: Duration,
    pub(super) keep: usize,
    actor: Actor,
}

impl Command {
    pub fn new(program: impl Into<String>) -> Command {
        let program = program.into();
        Command {
            name: program.clone(),
            argv: vec![program],
            env: vec![],
            stdin: Bytes::new(),
            limit: LIMIT,
            keep: KEEP,
            actor: Actor::default(),
        }
    }

    /// A script in POSIX sh, given in one or more parts. Its name is `$0`, so the shell's own messages begin with it;
    /// `$1`, `$2`… are the arguments that follow.
    ///
    /// Each script of the product has a name of its own, in kebab-case and with the verb first, written as a literal:
    /// simulated servers (`sim::host`) recognise a script by its name, and a test there looks for all names.
    pub fn script(name: &str, parts: &[&str]) -> Command {
        Command { name: name.to_owned(), ..Command::new("sh").arg("-c").arg(parts.concat()).arg(name) }
    }

    /// A script whose text may be longer than an argument, so the shell reads it from standard input. Its name is `$1`,
    /// because `sh -s` has no place for a `$0`.
    pub fn long_script(name: &str, text: impl Into<Vec<u8>>) -> Command {
        Command { name: name.to_owned(), ..Command::new("sh").args(["-s", name]).stdin(text) }
    }

    pub fn arg(mut self, arg: impl Into<String>) -> Command {
        self.argv.push(arg.into());
        self
    }

    pub fn args<I: IntoIterator<Item: Into<String>>>(mut self, args: I) -> Command {
        self.argv.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable. Every user of the server can read it, as it becomes an argument: pass secrets
    /// through standard input.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Command {
        self.env.push((name.into(), value.into()));
        self
    }

    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Command {
        self.stdin = bytes.into().into();
        self
    }

    /// How long it may take on the server.
    pub fn limit(mut self, limit: Duration) -> Command {
        self.limit = limit;
        self
    }

    /// How many bytes of its output are kept.
    pub fn keep(mut self, bytes: usize) -> Command {
        self.keep = bytes;
        self
    }

    pub fn by(mut self, actor: Actor) -> Command {
        self.actor = actor;
        self
    }

    /// The name in errors and logs, which is that of the program or of the script: never with arguments.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The line for the login shell.
    pub(super) fn line(&self, login: &Login) -> Result<String> {
        if self.name().is_empty() {
            return Err(Error::BadCommand("it has no name"));
        }
        let mut words: Vec<&str> = Vec::with_capacity(self.argv.len() + 12);
        match &self.actor {
            Actor::User(user) | Actor::Inside(Inside { user, .. }) if user.is_empty() || user.starts_with('-') => {
                return Err(Error::BadCommand("its user's name"));
            }
            Actor::User(user) if *user == login.user => {}
            // sudo's own messages must be recognizable too.
            Actor::User(_) | Actor::Root | Actor::Inside(_) | Actor::Container(_) if !login.is_root => {
                words.extend(["env", "LC_ALL=C", "sudo", "-n", "--"]);
            }
            Actor::User(_) | Actor::Root | Actor::Inside(_) | Actor::Container(_) | Actor::Login => {}
        }
        let pairs: Vec<String> = self.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
        if !self.env.iter().all(|(name, _)| is_variable(name)) {
            return Err(Error::BadCommand("the name of an environment variable"));
        }
        let is_inside = matches!(self.actor, Actor::Inside(_));
        let mut rest = if is_inside { vec!["env", "-u", CELL_COMMAND, "LC_ALL=C"] } else { vec!["env", "LC_ALL=C"] };
        if !matches!(self.actor, Actor::Container(_)) {
            rest.extend(pairs.iter().map(String::as_str));
        }
        let (grace, limit) = (seconds(KILL_AFTER), seconds(self.limit));
        rest.extend(["timeout", "-k", &grace, &limit]);
        if let Actor::User(user) = &self.actor
            && *user != login.user
        {
            // `runuser` comes after `timeout`, which runs as root: a user can stop its own processes, and would make us
            // wait for ever. `env` reports a missing program by its status; `runuser` has one status for every failure.
            rest.extend(["runuser", "-u", user, "--", "env"]);
        }
        if let Actor::Container(id) = &self.actor {
            // The time limit ends Docker's client. What runs inside then is the container's own affair.
            rest.extend(["docker", "exec", "-i", docker::named(id)?, "env", "LC_ALL=C"]);
            rest.extend(pairs.iter().map(String::as_str));
        }
        rest.extend(self.argv.iter().map(String::as_str));
        let cell = match &self.actor {
            Actor::Inside(inside) => inside.words(self.limit, &cell_command(&rest)?),
            _ => vec![],
        };
        if is_inside {
            words.extend(cell.iter().map(String::as_str));
            words.extend(["sh", "-c", RUN_CELL_COMMAND]);
        } else {
            words.append(&mut rest);
        }

        let mut mark = String::from("printf ");
        quote(MARK_FORMAT, &mut mark)?;
        let mut line = format!("{mark}; {mark} >&2; ");
        write_command(&words, &mut line)?;
        if line.len() > LONGEST {
            Err(Error::BadCommand("it is too long: pass it by standard input"))
        } else {
            Ok(line)
        }
    }

    /// Returns the output; an error if the server's time limit ended the command, or if sudo refused it.
    pub(super) fn judged(&self, login: &Login, output: Output) -> Result<Output> {
        match self.timed_out(&output).or_else(|| self.refused_by_sudo(login, &output)) {
            Some(error) => Err(error),
            None => Ok(output),
        }
    }

    fn refused_by_sudo(&self, login: &Login, output: &Output) -> Option<Error> {
        let asked = match &self.actor {
            Actor::Login => false,
            Actor::Root | Actor::Inside(_) | Actor::Container(_) => !login.is_root,
            Actor::User(user) => !login.is_root && *user != login.user,
        };
        let said = output.stderr.starts_with(b"sudo: ") || output.stderr.starts_with(b"Sorry, user ");
        let missing = output.status == 127 && output.stderr.starts_with(b"env: 'sudo'");
        let refused = asked && (output.status == 1 && said || missing);
        refused.then(|| Error::NoSudo { user: login.user.clone(), why: output.complaint() })
    }

    /// `timeout` exits with 124, or with 137 if it had to kill.
    fn timed_out(&self, output: &Output) -> Option<Error> {
        let over = matches!(output.status, 124 | 137) && output.took >= self.limit;
        over.then(|| self.too_late())
    }

    pub(super) fn too_late(&self) -> Error {
        Error::CommandTimedOut { command: self.name().to_owned(), limit: self.limit }
    }

    pub(super) fn cut_off(&self) -> Error {
        Error::CutOff { command: self.name().to_owned() }
    }
}

/// Arguments may be confidential, so only the name is shown.
impl std::fmt::Debug for Command {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Command").field("name", &self.name()).field("actor", &self.actor).finish_non_exhaustive()
    }
}

/// The assignment of the variable that holds a command inside of a cell.
fn cell_command(words: &[&str]) -> Result<String> {
    let mut line = String::new();
    write_command(words, &mut line)?;
    Ok(format!("{CELL_COMMAND}={}", STANDARD.encode(line)))
}

/// Appends a command that takes the place of its shell.
fn write_command(words: &[&str], line: &mut String) -> Result<()> {
    line.push_str("exec");
    for word in words {
        line.push(' ');
        quote(word, line)?;
    }
    Ok(())
}

fn is_variable(name: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(letter) && name.chars().all(|c| letter(c) || c.is_ascii_digit())
}

fn seconds(duration: Duration) -> String {
    // `timeout 0` would mean no limit at all.
    format!("{:.3}", duration.max(Duration::from_millis(1)).as_secs_f64())
}

/// Quotes one word for a POSIX shell. Single quotes and backslashes stand outside of the quoted text, each behind a
/// backslash, because fish interprets backslashes inside single quotes. So fish reads the same word.
fn quote(word: &str, line: &mut String) -> Result<()> {
    if word.contains('\0') {
        return Err(Error::BadCommand("it holds a NUL character"));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:,+@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        line.push_str(word);
        return Ok(());
    }
    line.push('\'');
    for c in word.chars() {
        match c {
            '\'' => line.push_str(r"'\''"),
            '\\' => line.push_str(r"'\\'"),
            c => line.push(c),
        }
    }
    line.push('\'');
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::process;

    use proptest::prelude::*;

    use super::*;

    fn login(user: &str) -> Login {
        Login { user: user.into(), is_root: user == "root" }
    }

    /// The words as a real shell reads them.
    fn words_in(shell: &str, words: &[String]) -> Vec<String> {
        let mut line = String::from("printf '%s\\0'");
        for word in words {
            line.push(' ');
            quote(word, &mut line).unwrap();
        }
        let output = process::Command::new(shell).arg("-c").arg(&line).output().unwrap();
        assert!(output.status.success(), "{line}");
        let text = String::from_utf8(output.stdout).unwrap();
        text.split_terminator('\0').map(str::to_owned).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn every_word_comes_out_of_a_shell_as_it_went_in(words in prop::collection::vec("[^\0]{0,12}|['\"\\\\$`\n!*? ]{1,8}", 1..6)) {
            prop_assert_eq!(words_in("sh", &words), words.clone());
            prop_assert_eq!(words_in("bash", &words), words);
        }
    }

    #[test]
    fn hostile_words_stay_words() {
        let words: Vec<String> =
            ["$(id)", "`id`", "'; id; '", "a'b\"c", "\\", "\\'", "\n", "-rf", "", "*", "~", "!!", "ä\u{1F41A}", "a\\"]
                .map(str::to_owned)
                .to_vec();
        assert_eq!(words_in("sh", &words), words);
        assert_eq!(words_in("bash", &words), words);
    }

    #[test]
    fn a_line_says_who_how_long_and_what() {
        let command = Command::new("systemctl").args(["is-active", "a b"]).limit(Duration::from_secs(10));
        let line = |actor: Actor, user: &str| {
            let line = command.clone().by(actor).line(&login(user)).unwrap();
            line.strip_prefix(r"printf ''\\'002tidepool'\\'003'; printf ''\\'002tidepool'\\'003' >&2; ")
                .unwrap()
                .to_owned()
        };
        let command = "env 'LC_ALL=C' timeout -k 2.000 10.000 systemctl is-active 'a b'";
        assert_eq!(line(Actor::Root, "root"), format!("exec {command}"));
        assert_eq!(line(Actor::Login, "ops"), format!("exec {command}"));
        assert_eq!(line(Actor::User("ops".into()), "ops"), format!("exec {command}"));
        assert_eq!(line(Actor::Root, "ops"), format!("exec env 'LC_ALL=C' sudo -n -- {command}"));
        let theirs = "env 'LC_ALL=C' timeout -k 2.000 10.000 runuser -u i1 -- env systemctl is-active 'a b'";
        assert_eq!(line(Actor::User("i1".into()), "ops"), format!("exec env 'LC_ALL=C' sudo -n -- {theirs}"));
        assert_eq!(line(Actor::User("i1".into()), "root"), format!("exec {theirs}"));
        let inside = Inside {
            user: "i1".into(),
            unit: super::super::systemd::Unit::parse("oc").unwrap(),
            lines: vec!["PrivateTmp=yes".into(), "BindPaths=/srv/a%%b".into()],
        };
        let cell = "env 'LC_ALL=C' timeout -k 2 25 systemd-run --quiet --wait --collect --pipe -p 'User=i1' -p 'JoinsNamespaceOf=oc.service' -p 'RuntimeMaxSec=25' \
            -p 'PrivateTmp=yes' -p 'BindPaths=/srv/a%b'";
        let run = "-- sh -c 'eval \"`printenv TIDEPOOL_COMMAND | base64 -d`\"; exit 127'";
        // What systemd gets, and what runs inside.
        let opened = |line: &str| {
            let (front, rest) = line.split_once(" '--setenv=TIDEPOOL_COMMAND=").unwrap();
            let (coded, end) = rest.split_once("' ").unwrap();
            let command = String::from_utf8(STANDARD.decode(coded).unwrap()).unwrap();
            (format!("{front} {end}"), command)
        };
        let confined = command.replace("env 'LC_ALL=C'", "env -u TIDEPOOL_COMMAND 'LC_ALL=C'");
        for (login, front) in [("root", ""), ("ops", "env 'LC_ALL=C' sudo -n -- ")] {
            let (outside, within) = opened(&line(Actor::Inside(inside.clone()), login));
            assert_eq!(outside, format!("exec {front}{cell} {run}"));
            assert_eq!(within, format!("exec {confined}"));
        }
        let script = Command::script("show-folder", &["echo ", "\"${1%/*}\""]).arg("/a/b");
        let script = |actor: Actor| script.clone().by(actor).line(&login("root")).unwrap();
        let (confined, theirs) = (script(Actor::Inside(inside)), script(Actor::User("i1".into())));
        assert!(!confined.contains('$'), "{confined}");
        let (_, confined) = opened(&confined);
        assert!(confined.ends_with("sh -c 'echo \"${1%/*}\"' show-folder /a/b"), "{confined}");
        assert!(theirs.ends_with("runuser -u i1 -- env sh -c 'echo \"${1%/*}\"' show-folder /a/b"), "{theirs}");
        let long = Command::long_script("sweep", "echo").line(&login("root")).unwrap();
        assert!(long.ends_with(" sh -s sweep"), "{long}");
    }

    #[test]
    fn what_no_shell_can_be_given_is_refused() {
        let refused = |command: Command| matches!(command.line(&login("root")), Err(Error::BadCommand(_)));
        assert!(refused(Command::new("")));
        assert!(refused(Command::new("echo").arg("a\0b")));
        assert!(refused(Command::new("echo").env("A=B", "c")));
        assert!(refused(Command::new("echo").env("-i", "c")));
        assert!(refused(Command::new("echo").by(Actor::User("-u".into()))));
        assert!(refused(Command::new("echo").arg("x".repeat(130 * 1024))));
        assert!(!refused(Command::new("echo").env("HOME", "/a b")));
    }

    #[test]
    fn arguments_are_not_shown() {
        let shown = format!("{:?}", Command::new("curl").arg("a-token-of-nobody").env("KEY", "another-one"));
        assert!(shown.contains("curl") && !shown.contains("token") && !shown.contains("another"), "{shown}");
        let shown = format!("{:?}", Command::script("read-it", &["cat"]).arg("a-token-of-nobody"));
        assert!(shown.contains("read-it") && !shown.contains("token"), "{shown}");
    }

    #[test]
    fn a_status_of_124_before_the_time_is_the_commands_own() {
        let command = Command::script("wait-long", &["x"]).limit(Duration::from_secs(1));
        let output = |status, took| Output { status, took: Duration::from_millis(took), ..Output::default() };
        let late = command.timed_out(&output(124, 1005)).map(|error| error.to_string());
        assert_eq!(late.as_deref(), Some("wait-long did not end within 1 s"));
        assert!(command.timed_out(&output(137, 3005)).is_some());
        assert!(command.timed_out(&output(124, 20)).is_none());
        assert!(command.timed_out(&output(1, 1005)).is_none());
    }
}
