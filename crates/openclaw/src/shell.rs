//! Quotes words for a POSIX shell on another machine. Every value that becomes a part of a command goes through
//! `quote`.

use std::borrow::Cow;

use base::{Error, Result};

/// `text` as one word for the shell: nothing in it is expanded, split or run.
pub fn quote(text: &str) -> Result<Cow<'_, str>> {
    if text.contains('\0') {
        // An argument cannot contain NUL: the rest would be cut off.
        return Err(Error::internal("a word for a shell contains a NUL character"));
    }
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'.' | b'_' | b'-' | b',' | b':' | b'@' | b'+');
    if !text.is_empty() && text.bytes().all(plain) {
        return Ok(Cow::Borrowed(text));
    }
    Ok(Cow::Owned(format!("'{}'", text.replace('\'', r"'\''"))))
}

/// Removes the comments of a script, which need not be sent.
pub(crate) fn without_comments(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    lines.flat_map(|line| [line, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The output of a real shell for a command line.
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
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.min(2000), ..ProptestConfig::default() })]

        #[test]
        fn fuzz_a_shell_gives_back_what_was_quoted(
            words in proptest::collection::vec("([ -~\\n\\t]|\\PC){0,20}", 0..6),
        ) {
            let quoted: Vec<_> = words.iter().map(|word| quote(word).unwrap()).collect();
            let line = format!("printf '%s\\0' {}", quoted.join(" "));
            let mut expected: Vec<u8> = words.iter().flat_map(|word| [word.as_bytes(), b"\0"].concat()).collect();
            if words.is_empty() {
                expected = b"\0".to_vec();
            }
            prop_assert_eq!(run(&line), expected);
        }
    }
}
