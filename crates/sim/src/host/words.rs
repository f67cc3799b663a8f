//! Parses the command line that the login shell gets: the user, the environment variables and the arguments.
//!
//! No shell is needed. The platform quotes every word, so a line has words, quotes and backslashes, but nothing to
//! expand. A command inside of a cell is a line of its own, in a variable.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A command without the shell's quotes and without `sudo`, `env` and `timeout` in front of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Invocation {
    pub user: String,
    pub env: Vec<(String, String)>,
    pub argv: Vec<String>,
}

impl Invocation {
    /// Parses a line; `None` if it does not have the form of the platform's commands.
    pub fn read(line: &str, login: &str) -> Option<Invocation> {
        let (_mark, rest) = line.split_once("; exec ")?;
        let mut words = words(rest).into_iter().peekable();
        let mut invocation = Invocation { user: login.to_owned(), ..Invocation::default() };
        while let Some(word) = words.next() {
            match word.as_str() {
                "env" => {
                    if words.next_if_eq("-u").is_some() {
                        words.next()?;
                    }
                    while let Some(pair) = words.next_if(|word| is_pair(word)) {
                        let (name, value) = pair.split_once('=')?;
                        invocation.env.push((name.to_owned(), value.to_owned()));
                    }
                }
                "sudo" | "runuser" => {
                    invocation.user = "root".to_owned();
                    loop {
                        match words.next()?.as_str() {
                            "-u" => invocation.user = words.next()?,
                            "--" => break,
                            _ => {}
                        }
                    }
                }
                // The simulation ignores the cell, except for its user.
                "systemd-run" => {
                    let mut command = None;
                    loop {
                        let word = words.next()?;
                        if word == "--" {
                            break;
                        } else if let Some(user) = word.strip_prefix("User=") {
                            invocation.user = user.to_owned();
                        } else if let Some(coded) = word.strip_prefix("--setenv=TIDEPOOL_COMMAND=") {
                            command = Some(String::from_utf8(STANDARD.decode(coded).ok()?).ok()?);
                        }
                    }
                    words = self::words(command?.strip_prefix("exec ")?).into_iter().peekable();
                }
                "timeout" => {
                    // -k GRACE LIMIT
                    words.nth(2)?;
                }
                _ => {
                    invocation.argv.push(word);
                    invocation.argv.extend(words);
                    return Some(invocation);
                }
            }
        }
        None
    }

    pub fn variable(&self, name: &str) -> Option<&str> {
        self.env.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

fn is_pair(word: &str) -> bool {
    let name = word.split_once('=').map(|(name, _)| name);
    name.is_some_and(|name| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
}

/// The words of a line, without their quotes.
pub fn words(line: &str) -> Vec<String> {
    let mut words = vec![];
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\n' => words.extend(word.take()),
            '\'' => word.get_or_insert_default().extend(chars.by_ref().take_while(|c| *c != '\'')),
            '\\' => word.get_or_insert_default().extend(chars.next()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_a_shell_would() {
        let line = r"printf '\002'; printf '\002' >&2; exec env LC_ALL=C sudo -n -u a-1 -- env LC_ALL=C 'HOME=/srv/a b' timeout -k 2.000 30.000 sh -c 'it'\''s
two lines' sh '' /x";
        let read = Invocation::read(line, "ops").unwrap();
        assert_eq!(read.user, "a-1");
        assert_eq!(read.variable("HOME"), Some("/srv/a b"));
        assert_eq!(read.argv, ["sh", "-c", "it's\ntwo lines", "sh", "", "/x"]);
        let plain = Invocation::read("x; exec env LC_ALL=C timeout -k 2 3 id -un", "root").unwrap();
        assert_eq!((plain.user.as_str(), plain.argv.join(" ").as_str()), ("root", "id -un"));
        let command = STANDARD.encode("exec env -u TIDEPOOL_COMMAND LC_ALL=C timeout -k 2 3 id -un");
        let confined = format!(
            "x; exec systemd-run --wait -p User=a-1 -p PrivateTmp=yes --setenv=TIDEPOOL_COMMAND={command} -- sh -c run"
        );
        let confined = Invocation::read(&confined, "root").unwrap();
        assert_eq!((confined.user.as_str(), confined.argv.join(" ").as_str()), ("a-1", "id -un"));
        assert_eq!(Invocation::read("ls", "root"), None);
    }
}
