//! Finds lines that name places where credentials are stored.

/// A place in lower case, words of which the line must contain one (if any are given), and the reason for the finding.
struct Rule {
    place: &'static str,
    with: &'static [&'static str],
    why: &'static str,
}

const fn rule(place: &'static str, why: &'static str) -> Rule {
    Rule { place, with: &[], why }
}

const SSH: &str = "SSH keys";
const CLOUD: &str = "credentials of a cloud account";
const ACCOUNT: &str = "stored passwords or tokens of an account";
const SYSTEM: &str = "passwords or secrets of the machine";
const ASSISTANT: &str = "keys or tokens of the assistant itself";
const BROWSER: &str = "a browser's profile with its cookies and passwords";
const SETTINGS: &str = "a settings file that usually holds secrets";

const RULES: &[Rule] = &[
    rule("~/.ssh", SSH),
    rule(".ssh/", SSH),
    rule("id_rsa", SSH),
    rule("id_dsa", SSH),
    rule("id_ecdsa", SSH),
    rule("id_ed25519", SSH),
    rule("authorized_keys", SSH),
    rule(".aws/credentials", CLOUD),
    rule(".aws/config", CLOUD),
    rule(".config/gcloud", CLOUD),
    rule(".azure/", CLOUD),
    rule(".kube/config", CLOUD),
    rule("169.254.169.254", CLOUD),
    rule("metadata.google.internal", CLOUD),
    rule(".netrc", ACCOUNT),
    rule("_netrc", ACCOUNT),
    rule(".git-credentials", ACCOUNT),
    rule(".docker/config.json", ACCOUNT),
    rule(".npmrc", ACCOUNT),
    rule(".pypirc", ACCOUNT),
    rule(".pgpass", ACCOUNT),
    rule(".my.cnf", ACCOUNT),
    rule(".gnupg", ACCOUNT),
    rule(".config/gh/hosts.yml", ACCOUNT),
    rule(".vault-token", ACCOUNT),
    rule("login.keychain", ACCOUNT),
    rule("find-generic-password", ACCOUNT),
    rule("/etc/shadow", SYSTEM),
    rule("/etc/gshadow", SYSTEM),
    rule("/etc/sudoers", SYSTEM),
    rule("/proc/self/environ", SYSTEM),
    rule("auth-profiles.json", ASSISTANT),
    Rule { place: "openclaw.json", with: &["token", "auth", "apikey", "api_key", "secret"], why: ASSISTANT },
    rule("openclaw_gateway_token", ASSISTANT),
    rule(".openclaw/credentials", ASSISTANT),
    rule(".mozilla/firefox", BROWSER),
    rule(".config/google-chrome", BROWSER),
    rule(".config/chromium", BROWSER),
    rule("application support/google/chrome", BROWSER),
    rule("chrome\\user data", BROWSER),
    rule("firefox/profiles", BROWSER),
    rule("cookies.sqlite", BROWSER),
    rule("logins.json", BROWSER),
    rule("key4.db", BROWSER),
    rule(".env", SETTINGS),
];

/// Suffixes of settings files that are only examples and hold no secrets.
const SAMPLES: &[&str] = &[".example", ".sample", ".template", ".dist"];

/// The lines that name credentials; each reason at most once per line. The text is in lower case.
pub fn find(text: &str) -> Vec<(usize, &'static str)> {
    let mut found = vec![];
    // The shortest place has four characters.
    for (line, number) in text.split('\n').zip(1..).filter(|(line, _)| line.len() >= 4) {
        let mut reasons: Vec<&str> = vec![];
        for rule in RULES.iter().filter(|rule| points_at(line, rule)) {
            if !reasons.contains(&rule.why) {
                reasons.push(rule.why);
                found.push((number, rule.why));
            }
        }
    }
    found
}

fn points_at(line: &str, rule: &Rule) -> bool {
    let named = line.match_indices(rule.place).any(|(at, place)| {
        let (before, after) = (&line[..at], &line[at + place.len()..]);
        begins(before, place) && ends(place, after) && !SAMPLES.iter().any(|s| after.starts_with(s))
    });
    named && (rule.with.is_empty() || rule.with.iter().any(|word| line.contains(word)))
}

/// Whether the place begins here and not within another word: `process.env` is no `.env`, and `valid_rsa` no `id_rsa`.
fn begins(before: &str, place: &str) -> bool {
    let is_path = place.starts_with(['/', '~']);
    is_path || !before.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | ')' | ']'))
}

/// Whether the place ends here: `.envelope` is no `.env`.
fn ends(place: &str, after: &str) -> bool {
    !place.ends_with(|c: char| c.is_alphanumeric()) || !after.starts_with(|c: char| c.is_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_finds_its_example() {
        for rule in RULES {
            let with = rule.with.first().copied().unwrap_or_default();
            let line = format!("first\nread {} {with} now", rule.place);
            assert!(find(&line).contains(&(2, rule.why)), "{line}");
        }
    }

    #[test]
    fn other_words_are_no_places() {
        for honest in [
            "process.env.path",
            "import.meta.env",
            ".envelope",
            "cp .env.example of the project",
            "valid_rsa_key",
            "the environment",
            "see openclaw.json for the model list",
            "config.environment",
            "/etc/shadowsocks is another thing",
            "our .networks",
        ] {
            assert_eq!(find(honest), [], "{honest}");
        }
    }

    #[test]
    fn settings_files_are_found_in_any_folder() {
        for line in [
            "cat .env",
            "source ./.env",
            "app/.env.production",
            "`.env`",
            "cat $home/.ssh/id_ed25519",
            "/srv/a/.aws/credentials",
        ] {
            assert!(!find(line).is_empty(), "{line}");
        }
    }
}
