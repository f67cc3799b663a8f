//! Words for a POSIX shell on another machine. Every value that becomes a part of a command goes through `quote`.

use std::borrow::Cow;
use std::fmt;

use base::{Error, Result};

/// `text` as one word that the shell takes as it is: nothing in it is expanded, split or run.
pub fn quote(text: &str) -> Result<Cow<'_, str>> {
    if text.contains('\0') {
        // No argument can hold one: what follows it would be cut off.
        return Err(Error::internal("a word for a shell contains a NUL character"));
    }
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'.' | b'_' | b'-' | b',' | b':' | b'@' | b'+');
    if !text.is_empty() && text.bytes().all(plain) {
        return Ok(Cow::Borrowed(text));
    }
    Ok(Cow::Owned(format!("'{}'", text.replace('\'', r"'\''"))))
}

/// A command as a list of arguments. It becomes a text only here, with every argument quoted.
#[derive(Clone, PartialEq, Eq)]
pub struct Command(Vec<String>);

impl Command {
    pub fn new(program: impl Into<String>) -> Command {
        Command(vec![program.into()])
    }

    pub fn arg(mut self, arg: impl Into<String>) -> Command {
        self.0.push(arg.into());
        self
    }

    pub fn args<T: Into<String>>(mut self, args: impl IntoIterator<Item = T>) -> Command {
        self.0.extend(args.into_iter().map(Into::into));
        self
    }

    /// The command as a shell reads it.
    pub fn render(&self) -> Result<String> {
        let mut line = String::new();
        for (i, arg) in self.0.iter().enumerate() {
            let word = quote(arg)?;
            if i > 0 {
                line.push(' ');
            }
            // Unquoted, a program of this name would be grammar.
            if i == 0 && RESERVED.contains(&arg.as_str()) {
                line.push_str(&format!("'{word}'"));
            } else {
                line.push_str(&word);
            }
        }
        Ok(line)
    }
}

const RESERVED: &[&str] =
    &["case", "do", "done", "elif", "else", "esac", "fi", "for", "if", "in", "then", "until", "while"];

/// Only the program: an argument may be a secret.
impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Command({:?}, {} arguments)", self.0.first(), self.0.len().saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What a real shell makes of a command line.
    fn run(line: &str) -> Vec<u8> {
        let output = std::process::Command::new("sh").arg("-c").arg(line).env_clear().output().unwrap();
        assert!(output.status.success(), "{line:?}");
        output.stdout
    }

    #[test]
    fn words_that_mean_something_are_quoted() {
        for (text, quoted) in [
            ("", "''"),
            ("/srv/a-b_c.d:e@f,g+1", "/srv/a-b_c.d:e@f,g+1"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("$(x)", "'$(x)'"),
            ("~", "'~'"),
            ("a=b", "'a=b'"),
            ("a\nb", "'a\nb'"),
            ("ä", "'ä'"),
        ] {
            assert_eq!(quote(text).unwrap(), quoted);
        }
        assert!(quote("a\0b").is_err());
        let command = Command::new("if").arg("then").args(["-n", "x y"]);
        assert_eq!(command.render().unwrap(), "'if' then -n 'x y'");
        assert_eq!(format!("{command:?}"), r#"Command(Some("if"), 3 arguments)"#);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.min(2000), ..ProptestConfig::default() })]

        #[test]
        fn fuzz_a_shell_gives_back_what_was_quoted(
            words in proptest::collection::vec("([ -~\\n\\t]|\\PC){0,20}", 0..6),
        ) {
            let mut command = Command::new("printf").arg("%s\\0");
            command = command.args(words.clone());
            let mut expected: Vec<u8> = words.iter().flat_map(|word| [word.as_bytes(), b"\0"].concat()).collect();
            if words.is_empty() {
                expected = b"\0".to_vec();
            }
            prop_assert_eq!(run(&command.render().unwrap()), expected);
        }
    }
}
