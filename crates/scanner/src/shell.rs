//! Finds commands that run downloaded or decoded content which nobody has read: `curl … | sh` and similar.

use std::collections::HashSet;

const PIPED: &str = "runs what it downloads, unseen";
const DECODED: &str = "runs what it decodes, unseen";
const SAVED: &str = "runs a file that was downloaded before";
const ENCODED: &str = "runs an encoded command that nobody can read";

/// Programs that fetch something.
const FETCHES: &[&str] =
    &["curl", "wget", "fetch", "aria2c", "iwr", "irm", "invoke-webrequest", "invoke-restmethod", "downloadstring"];
/// Programs that run their input. Those in `LANGUAGES` do so only when the command line names no program.
const SHELLS: &[&str] = &[
    "sh",
    "bash",
    "zsh",
    "dash",
    "ksh",
    "ash",
    "fish",
    "pwsh",
    "powershell",
    "cmd",
    "iex",
    "invoke-expression",
    "eval",
    "source",
];
const LANGUAGES: &[&str] =
    &["python", "python2", "python3", "perl", "ruby", "node", "deno", "bun", "php", "lua", "osascript"];
/// Words in front of a command that do not change what it does.
const PREFIXES: &[&str] = &["sudo", "doas", "env", "nohup", "exec", "command", "time", "nice", "then", "do", "&"];

/// How many lines one command may be spread over.
const SPREAD: usize = 20;
/// How many bytes are examined before a `$(` (for one word) and after it (for one command).
const BACK: usize = 24;
const AHEAD: usize = 120;

/// The lines that run what they fetch or decode; a reason is not repeated directly for the same line. The text is in
/// lower case.
pub fn find(text: &str) -> Vec<(usize, &'static str)> {
    let mut found: Vec<(usize, &'static str)> = vec![];
    let mut saved: HashSet<String> = HashSet::new();
    for (number, command) in commands(text) {
        let mut tell = |why| {
            if found.last() != Some(&(number, why)) {
                found.push((number, why));
            }
        };
        for part in cells(&command) {
            if let Some(why) = piped(&part).or_else(|| substituted(&part)).or_else(|| written_out(&part)) {
                tell(why);
            }
            if runs_saved(&part, &saved) {
                tell(SAVED);
            }
            let names = saves(&part);
            if !names.is_empty() {
                saved.extend(names);
                if runs_saved(&part, &saved) {
                    tell(SAVED);
                }
            }
        }
    }
    found
}

/// The lines, each with its number. Continued lines are joined, with the number of the first.
fn commands(text: &str) -> Vec<(usize, String)> {
    let mut all = vec![];
    let mut lines = text.split('\n').zip(1..);
    while let Some((line, number)) = lines.next() {
        let mut command = line.trim_end().to_owned();
        for _ in 0..SPREAD {
            let table = command.trim_start().starts_with('|');
            let goes_on = command.ends_with('\\') || (command.ends_with('|') && !table);
            let Some((next, _)) = goes_on.then(|| lines.next()).flatten() else { break };
            if command.ends_with('\\') {
                command.pop();
            }
            command.push(' ');
            command.push_str(next.trim());
        }
        all.push((number, command));
    }
    all
}

/// The cells of a row of a Markdown table, in which a pipe is written as `\|`. Any other line is one cell.
fn cells(line: &str) -> Vec<String> {
    let row = line.trim();
    if row.len() < 2 || !row.starts_with('|') || !row.ends_with('|') {
        return vec![line.to_owned()];
    }
    row.replace("\\|", "\u{0}")
        .split('|')
        .filter(|cell| !cell.is_empty())
        .map(|cell| cell.replace('\u{0}', "|"))
        .collect()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace().map(bare).filter(|w| !w.is_empty())
}

/// A word without the quotes and brackets around it.
fn bare(word: &str) -> &str {
    const AROUND: &str = "`'\"()[]{}<>,;:$*";
    word.trim_start_matches(|c| AROUND.contains(c)).trim_end_matches(|c| AROUND.contains(c) || ".!?".contains(c))
}

/// The program that a word names, without its folder.
fn program(word: &str) -> &str {
    let name = bare(word);
    name.rsplit('/').next().unwrap_or(name)
}

fn is(word: &str, list: &[&str]) -> bool {
    list.contains(&program(word))
}

fn fetches(text: &str) -> bool {
    words(text).any(|w| is(w, FETCHES)) || text.contains("downloadstring(")
}

fn decodes(text: &str) -> bool {
    let has = |list: &[&str]| text.split_whitespace().any(|w| list.contains(&bare(w)));
    (has(&["base64", "base32"]) && has(&["-d", "--decode", "-di"]))
        || (has(&["openssl"]) && has(&["-d"]))
        || (has(&["xxd"]) && has(&["-r", "-rp"]))
}

/// `curl … | sh`, with anything in between.
fn piped(text: &str) -> Option<&'static str> {
    let joined = text.replace("||", " ");
    let mut came = None;
    for stage in joined.split('|') {
        if came.is_some() && runs_its_input(stage) {
            return came;
        }
        if fetches(stage) {
            came = Some(PIPED);
        } else if came.is_none() && decodes(stage) {
            came = Some(DECODED);
        }
    }
    None
}

fn runs_its_input(stage: &str) -> bool {
    let mut rest = words(stage).skip_while(|w| w.starts_with('-') || w.contains('=') || is(w, PREFIXES));
    let Some(command) = rest.next() else { return false };
    let arguments: Vec<&str> = rest.take(8).collect();
    let given = |options: &[&str]| arguments.iter().any(|a| options.contains(a));
    if is(command, SHELLS) {
        return !given(&["-c"]);
    }
    let names_a_program = given(&["-c", "-e", "-m", "-n", "-p", "-ne", "-pe", "-pi", "-r", "--eval", "--print"])
        || arguments.first().is_some_and(|a| !a.starts_with('-') && a.contains(['.', '/']));
    is(command, LANGUAGES) && !names_a_program
}

/// `bash <(curl …)`, `eval "$(curl …)"`, `sh -c "$(wget …)"`.
fn substituted(text: &str) -> Option<&'static str> {
    for (mark, runs) in [
        ("<(", &["source", "."][..]),
        ("$(", &["-c", "-lc", "eval", "exec", "iex"]),
        ("`", &["-c", "-lc", "eval"]),
        ("(", &["iex", "invoke-expression"]),
    ] {
        for (at, _) in text.match_indices(mark) {
            let before = word_before(&text[..at]);
            if !(runs.contains(&before) || (mark == "<(" && (is(before, SHELLS) || is(before, LANGUAGES)))) {
                continue;
            }
            let inner = &text[at + mark.len()..];
            let inner = &inner[..inner.floor_char_boundary(AHEAD)];
            let inner = inner.split([')', '`']).next().unwrap_or_default();
            if inner.split_whitespace().next().is_some_and(|w| is(w, FETCHES)) || inner.contains("webclient") {
                return Some(PIPED);
            }
            if decodes(inner) {
                return Some(DECODED);
            }
        }
    }
    None
}

/// The last word of a text, without quotes.
fn word_before(text: &str) -> &str {
    let text = &text[text.ceil_char_boundary(text.len().saturating_sub(BACK))..];
    let text = text.trim_end_matches([' ', '\t', '"', '\'', '(']);
    let begin =
        text.bytes().rposition(|b| matches!(b, b' ' | b'\t' | b'`' | b';' | b'|' | b'&')).map_or(0, |at| at + 1);
    &text[begin..]
}

/// Code that downloads and runs within a language, and commands that are passed in an encoded form.
fn written_out(text: &str) -> Option<&'static str> {
    let has = |list: &[&str]| list.iter().any(|w| text.contains(w));
    if has(&["iex ", "iex(", "invoke-expression"]) && has(&["downloadstring(", "invoke-webrequest", "iwr ", "irm "]) {
        return Some(PIPED);
    }
    if has(&["exec(", "eval("]) && has(&["urlopen(", "requests.get(", "urllib.request"]) {
        return Some(PIPED);
    }
    if has(&["exec(", "eval("]) && has(&["b64decode(", "atob("]) {
        return Some(DECODED);
    }
    let powershell = words(text).any(|w| matches!(program(w), "powershell" | "powershell.exe" | "pwsh"));
    if powershell && words(text).any(|w| matches!(w, "-enc" | "-encodedcommand" | "-ec")) {
        return Some(ENCODED);
    }
    None
}

/// The names of the files that a command downloads to.
fn saves(text: &str) -> Vec<String> {
    if !words(text).any(|w| is(w, FETCHES)) {
        return vec![];
    }
    let all: Vec<&str> = text.split_whitespace().collect();
    let mut names = vec![];
    for (i, word) in all.iter().enumerate() {
        let to = i > 0
            && matches!(
                all[i - 1],
                "-o" | "--output" | "--output-document" | "-outfile" | ">" | "-fsslo" | "-slo" | "-lo" | "-qo"
            );
        if to || word.contains("://") {
            // The part after a ? or # of a URL is not part of the file name.
            let address = bare(word).split(['?', '#']).next().unwrap_or_default();
            let name = program(address);
            let host = address.contains("://") && address.matches('/').count() < 3;
            if !name.is_empty() && !host {
                names.push(name.to_owned());
            }
        }
    }
    names
}

/// Whether one of the downloaded files is run, or made executable.
fn runs_saved(text: &str, saved: &HashSet<String>) -> bool {
    if saved.is_empty() {
        return false;
    }
    let all: Vec<&str> = text.split_whitespace().collect();
    let is_saved = |word: &str| !word.contains("://") && saved.contains(program(word));
    all.iter().enumerate().any(|(i, word)| {
        let before = i.checked_sub(1).map_or("", |i| all[i]);
        let starts_a_command = i == 0
            || matches!(before, "&&" | ";" | "||" | "sudo" | "$" | "then" | "do" | "exec")
            || before.ends_with(';')
            || word.starts_with('`');
        let called = bare(word).starts_with(['.', '/']) && bare(word).contains('/') && starts_a_command;
        let handed =
            (is(before, SHELLS) || is(before, LANGUAGES) || matches!(before, "+x" | "755" | "u+x" | "a+x" | "."))
                && !before.contains("://");
        is_saved(word) && (called || handed)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(text: &str) -> Option<&'static str> {
        find(&text.to_ascii_lowercase()).first().map(|(_, why)| *why)
    }

    #[test]
    fn downloads_that_are_run_are_found() {
        for text in [
            "curl -fsSL https://x.example/install | sh",
            "curl https://x.example/i|bash",
            "wget -qO- https://x.example/i | sudo -E bash -",
            "curl \"https://x.example/?a=1;b=2&&c\" | sh",
            "curl x | tee log | bash -s -- --yes",
            "curl x |& /usr/bin/env bash",
            "curl x \\\n  -H 'a: b' \\\n  | sh",
            "curl x |\n  sh",
            "curl x | python3",
            "curl x | python3 -",
            "curl x | FOO=1 perl",
            "Run `curl -L x | bash`.",
            "| Step | `curl -L x \\| sh` |",
            "bash <(curl -s x)",
            "sh <( wget -O- x )",
            "source <(curl x)",
            ". <(curl x)",
            "python3 <(curl x)",
            "sh -c \"$(curl -fsSL x)\"",
            "bash -lc '$(wget x)'",
            "eval \"$(curl x)\"",
            "eval `curl x`",
            "iwr https://x.example/i.ps1 | iex",
            "iex (iwr https://x.example/i.ps1)",
            "iex ((New-Object Net.WebClient).DownloadString('https://x.example'))",
            "powershell -c \"irm x | iex\"",
            "python -c \"exec(urllib.request.urlopen('x').read())\"",
        ] {
            assert_eq!(why(text), Some(PIPED), "{text}");
        }
    }

    #[test]
    fn what_is_decoded_and_run_is_found() {
        for text in [
            "echo aGk= | base64 -d | sh",
            "echo aGk= | base64 --decode | bash",
            "bash <(echo aGk= | base64 -d)",
            "eval \"$(base64 -d < x)\"",
            "xxd -r -p x | sh",
            "openssl enc -aes-256-cbc -d -in x | bash",
            "exec(base64.b64decode('aGk='))",
            "eval(atob('aGk='))",
        ] {
            assert_eq!(why(text), Some(DECODED), "{text}");
        }
        assert_eq!(why("powershell.exe -NoP -Enc SQBFAFgA"), Some(ENCODED));
    }

    #[test]
    fn a_file_that_is_fetched_first_and_run_later_is_found() {
        for text in [
            "curl -o setup.sh https://x.example/a\nbash setup.sh",
            "curl -fsSLO https://x.example/setup.sh && sh setup.sh",
            "wget https://x.example/tool\nchmod +x tool",
            "wget https://x.example/tool?v=2 && ./tool",
            "curl x > /tmp/run.py\n\nthen\n\n    python3 /tmp/run.py --now",
            "curl -o /tmp/a https://x.example/a; /tmp/a",
        ] {
            assert_eq!(why(text), Some(SAVED), "{text}");
        }
    }

    #[test]
    fn ordinary_commands_are_not() {
        for text in [
            "curl -s https://api.example.com/v1/items | jq .",
            "curl -s x | python3 -m json.tool",
            "curl -s x | python3 -c 'import json,sys; print(json.load(sys.stdin))'",
            "curl -s x | node -e 'process.stdin.pipe(process.stdout)'",
            "curl -s x | python3 parse.py",
            "curl -s x | sort | uniq -c | head",
            "curl x || sh fallback.sh",
            "cat script.sh | bash",
            "| curl | bash |",
            "|---|---|",
            "In bash, use `curl` to look.",
            "The shell | a tale",
            "echo aGk= | base64 -d > file",
            "curl -o data.csv https://x.example/data\npython3 report.py data.csv",
            "total=$(curl -s x | wc -l)",
            "Fetch the page (curl works), then push.",
        ] {
            assert_eq!(why(text), None, "{text}");
        }
    }
}
