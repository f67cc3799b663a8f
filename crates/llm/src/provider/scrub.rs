//! Takes a key out of what a provider answered: some quote a part of it.

/// The shortest part of a key that is taken out.
const SHORTEST: usize = 5;

/// The text with `***` for each part that is in the secret, too.
pub fn without(text: &str, secret: &str) -> String {
    if secret.len() < SHORTEST {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        // A key is ASCII, so a part of it ends at the border of a character.
        let mut length = 0;
        while length < rest.len() && rest.as_bytes()[length].is_ascii_graphic() && secret.contains(&rest[..=length]) {
            length += 1;
        }
        if length >= SHORTEST {
            out.push_str("***");
            rest = &rest[length..];
        } else {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_key_are_taken_out() {
        let key = "sk-abcdefghijklmnop1234";
        assert_eq!(without("Incorrect key: sk-abcdefghijklmnop1234.", key), "Incorrect key: ***.");
        assert_eq!(without("Incorrect key: sk-abcde***1234 öäü", key), "Incorrect key: ******1234 öäü");
        assert_eq!(without("all is well", key), "all is well");
        assert_eq!(without("", key), "");
    }
}
