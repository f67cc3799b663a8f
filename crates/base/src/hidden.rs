//! Characters that a reader does not see: direction controls, zero-width characters, tags, variation selectors that
//! carry data. They are not reported where a script or an emoji needs them.

/// A set of characters, and why they are reported. `reason` may still accept one because of its neighbours.
type Rule = (fn(char) -> bool, &'static str);

const RULES: &[Rule] = &[
    (
        |c| matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'),
        "direction control: the text reads in another order than it is shown",
    ),
    (is_joiner, "zero-width joiner where no script needs one"),
    (
        |c| {
            matches!(c, '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}'
                | '\u{200b}' | '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{3164}'
                | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}')
        },
        "zero-width or invisible character",
    ),
    (is_tag, "tag characters: invisible letters that a model can read"),
    (is_selector, "variation selector where no character varies: it can carry hidden data"),
    (
        |c| c.is_control() && !matches!(c, '\t' | '\n' | '\r'),
        "control character: a terminal may act on it instead of showing it",
    ),
];

fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}')
}

fn is_tag(c: char) -> bool {
    matches!(c, '\u{e0000}'..='\u{e007f}')
}

fn is_selector(c: char) -> bool {
    matches!(c, '\u{180b}'..='\u{180d}' | '\u{180f}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

/// Characters of scripts and emoji that zero-width characters may join.
fn joins(c: char) -> bool {
    matches!(c, '\u{600}'..='\u{109f}' | '\u{1780}'..='\u{18af}' | '\u{2190}'..='\u{2bff}' | '\u{fb50}'..='\u{fdff}' | '\u{fe0f}' | '\u{1f000}'..='\u{1faff}')
        && special(c).is_none_or(|_| c == '\u{fe0f}')
}

fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// The flags of England, Scotland and Wales are a black flag and these tags.
const FLAGS: &[&str] = &[
    "\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
    "\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}",
    "\u{e0067}\u{e0062}\u{e0077}\u{e006c}\u{e0073}\u{e007f}",
];

fn special(c: char) -> Option<&'static str> {
    if matches!(c, ' '..='~' | '\t' | '\n' | '\r') {
        return None;
    }
    RULES.iter().find(|(is, _)| is(c)).map(|(_, why)| *why)
}

/// Why the character is reported between these neighbours, or `None` if it is acceptable. `before` is the preceding
/// character as it will be shown: after a hidden one that is the `}` of its escape, which makes nothing acceptable.
fn reason(before: Option<char>, c: char, after: Option<char>) -> Option<&'static str> {
    let why = special(c)?;
    let excused = match c {
        _ if is_joiner(c) => before.is_some_and(joins) && after.is_some_and(|a| joins(a) && special(a).is_none()),
        '\u{e0100}'..='\u{e01ef}' => before.is_some_and(is_ideograph),
        '\u{180b}'..='\u{180d}' | '\u{180f}' => before.is_some_and(|b| matches!(b, '\u{1820}'..='\u{18aa}')),
        // A keycap: digit, selector, frame.
        '\u{fe0f}' if after == Some('\u{20e3}') => before.is_some_and(|b| matches!(b, '0'..='9' | '#' | '*')),
        _ if is_selector(c) => before.is_some_and(|b| !b.is_ascii() && special(b).is_none()),
        // The byte order mark that some editors put at the beginning of a file.
        '\u{feff}' => before.is_none(),
        _ => false,
    };
    (!excused).then_some(why)
}

/// Calls `tell` for each character, with the reason if it is hidden.
fn walk(text: &str, mut tell: impl FnMut(usize, char, Option<&'static str>)) {
    let mut before = None;
    let mut excused_until = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let after = chars.peek().map(|(_, c)| *c);
        let why = if at < excused_until { None } else { reason(before, c, after) };
        if c == '\u{1f3f4}' {
            let rest = &text[at + c.len_utf8()..];
            if let Some(flag) = FLAGS.iter().find(|flag| rest.starts_with(**flag)) {
                excused_until = at + c.len_utf8() + flag.len();
            }
        }
        before = Some(if why.is_some() { '}' } else { c });
        tell(at, c, why);
    }
}

/// The lines with hidden characters; each reason at most once per line.
pub fn find(text: &str) -> Vec<(usize, &'static str)> {
    let mut found: Vec<(usize, &'static str)> = vec![];
    let mut line = 1;
    walk(text, |_, c, why| {
        if let Some(why) = why
            && !found.iter().rev().take_while(|(l, _)| *l == line).any(|(_, w)| *w == why)
        {
            found.push((line, why));
        }
        if c == '\n' {
            line += 1;
        }
    });
    found
}

/// The byte offset of the first hidden character.
pub fn first(text: &str) -> Option<usize> {
    let mut first = None;
    walk(text, |at, _, why| {
        if first.is_none() && why.is_some() {
            first = Some(at);
        }
    });
    first
}

/// Whether the text has a character that a reader does not see.
pub fn hides(text: &str) -> bool {
    first(text).is_some()
}

/// The text without its hidden characters.
pub fn without(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    walk(text, |_, c, why| {
        if why.is_none() {
            out.push(c);
        }
    });
    out
}

/// The text with its hidden characters written as `\u{…}`.
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    walk(text, |_, c, why| match why {
        Some(_) => out.extend(c.escape_unicode()),
        None => out.push(c),
    });
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_finds_its_example() {
        let examples = ["a\u{202e}b", "a\u{200d}b", "a\u{200b}b", "a\u{e0041}b", "a\u{fe0f}b", "a\u{1b}[31mb"];
        assert_eq!(examples.len(), RULES.len());
        for (example, (_, why)) in examples.iter().zip(RULES) {
            assert_eq!(find(example), [(1, *why)], "{example:?}");
        }
    }

    #[test]
    fn data_behind_a_character_is_found() {
        for smuggled in [
            "😀\u{fe01}\u{fe02}",
            "😀\u{e0141}\u{e0142}",
            "🏴\u{e0061}\u{e0062}\u{e007f}",
            "😀\u{200d}",
            "a\u{200c}b",
            "x\n\u{feff}",
        ] {
            assert!(hides(smuggled), "{smuggled:?}");
        }
    }

    #[test]
    fn what_scripts_and_emoji_need_is_no_finding() {
        for honest in [
            "👩‍💻",
            "👁️‍🗨️",
            "❤️",
            "1️⃣",
            "🏴󠁧󠁢󠁥󠁮󠁧󠁿",
            "می‌خواهم",
            "क्‍ष",
            "葛\u{e0100}",
            "\u{feff}first",
            "tab\tline\r\n",
            "naïve – “quoted” …",
        ] {
            assert_eq!(find(honest), [], "{honest:?}");
            assert_eq!(visible(honest), honest);
        }
    }

    #[test]
    fn hidden_characters_are_made_visible() {
        assert_eq!(visible("a\u{200b}b\u{1b}c"), "a\\u{200b}b\\u{1b}c");
        assert_eq!(without("a\u{200b}b\u{1b}c"), "abc");
    }
}
