//! The providers that the configuration names: the variables of three of them, and a file. They are read at the start and
//! cannot be edited here.

use std::collections::HashSet;
use std::time::Duration;

use base::id::{ProviderId, ProviderKeyId};
use base::{Error, Result, Secret};
use serde::Deserialize;
use store::model::ProviderKind;
use store::provider::Protocol;

use super::{
    DEFAULT_ANSWER, DEFAULT_CONNECT, Key, LONGEST_ANSWER, LONGEST_CONNECT, Provider, Source, check, hint, preset,
};

/// Where a provider of the variables is, and the key there.
#[derive(Clone, Debug)]
pub struct Access {
    /// Without the path of the endpoint.
    pub url: String,
    pub key: Secret,
}

/// The configured providers.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    pub anthropic: Option<Access>,
    pub openai: Option<Access>,
    pub google: Option<Access>,
    /// Those of the file.
    pub file: Vec<Provider>,
    /// Whether models whose provider has no key are answered by `echo`.
    pub echo: bool,
    /// Whether records may name private addresses, and http. Those of the configuration may, since it is root's.
    pub allow_local: bool,
}

impl Settings {
    /// The providers that cannot be edited. The variables come before the file.
    pub fn fixed(&self) -> Vec<Provider> {
        let of_variables = [
            (ProviderKind::Anthropic, &self.anthropic),
            (ProviderKind::Openai, &self.openai),
            (ProviderKind::Google, &self.google),
        ];
        let mut all: Vec<Provider> = of_variables
            .into_iter()
            .filter_map(|(kind, access)| {
                let access = access.as_ref()?;
                let preset = preset::find(kind, "")?;
                let name = kind.as_str();
                Some(Provider {
                    id: ProviderId::named(format!("environment-{name}")),
                    name: name.to_owned(),
                    kind,
                    preset,
                    base_url: access.url.clone(),
                    protocols: preset.protocols(),
                    enabled: true,
                    connect: DEFAULT_CONNECT,
                    answer: DEFAULT_ANSWER,
                    proxy: None,
                    keys: vec![key("environment", name, &access.key)],
                    source: Source::Environment,
                    allow_private: true,
                    is_overridden: false,
                    is_unreadable: false,
                    times: None,
                })
            })
            .collect();
        let names: HashSet<String> = all.iter().map(|provider| provider.name.clone()).collect();
        all.extend(self.file.iter().filter(|provider| !names.contains(&provider.name)).cloned());
        all
    }
}

/// A key of the configuration. Its id changes with the key, so that another key does not inherit what this one met.
fn key(source: &str, name: &str, secret: &Secret) -> Key {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, secret.expose().as_bytes());
    // Four bytes of a hash tell keys apart and do not help to find one.
    let short: String = digest.as_ref().iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    Key {
        id: ProviderKeyId::named(format!("{source}-{name}-{short}")),
        hint: hint(secret),
        secret: secret.clone(),
        created_at: None,
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    providers: Vec<Entry>,
}

/// A provider of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    kind: String,
    #[serde(default)]
    preset: String,
    base_url: Option<String>,
    protocols: Option<Vec<String>>,
    #[serde(default = "yes")]
    enabled: bool,
    connect_timeout_seconds: Option<u64>,
    answer_timeout_seconds: Option<u64>,
    proxy: Option<Secret>,
    #[serde(default)]
    keys: Vec<Secret>,
}

fn yes() -> bool {
    true
}

/// Reads the file: JSON if its text begins with a brace, else TOML. An error is one line that names the problem.
pub fn read_file(text: &str) -> Result<Vec<Provider>, String> {
    let refuse = |why: &dyn std::fmt::Display| unquoted(why.to_string().lines().next().unwrap_or_default());
    let file: File = if text.trim_start().starts_with('{') {
        serde_json::from_str(text).map_err(|e| refuse(&e))?
    } else {
        toml::from_str(text).map_err(|e: toml::de::Error| refuse(&place_of(&e, text)))?
    };
    let mut names = HashSet::new();
    let mut all = vec![];
    for entry in file.providers {
        let name = entry.name.clone();
        if !names.insert(name.clone()) {
            return Err(refuse(&format_args!("the provider `{name}` stands in it twice")));
        }
        let provider =
            entry.provider().map_err(|error| refuse(&format_args!("the provider `{name}`: {}", error.client)))?;
        all.push(provider);
    }
    Ok(all)
}

/// A parser's words without the values that it quotes, which may be keys. Names of fields stand in other quotes.
fn unquoted(why: &str) -> String {
    let (mut out, mut is_quoted, mut is_escaped) = (String::new(), false, false);
    for c in why.chars() {
        match c {
            '"' if !is_escaped => {
                is_quoted = !is_quoted;
                out.push_str(if is_quoted { "\"…" } else { "\"" });
            }
            _ if is_quoted => {}
            _ => out.push(c),
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    out
}

/// What is wrong with a TOML text, and where, without the text itself.
fn place_of(error: &toml::de::Error, text: &str) -> String {
    let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
    match line {
        Some(line) => format!("line {line}: {}", error.message()),
        None => error.message().to_owned(),
    }
}

impl Entry {
    fn provider(self) -> Result<Provider> {
        let name = check::name(&self.name)?;
        let kind = ProviderKind::parse(&self.kind).ok_or_else(|| Error::field("kind", "is unknown"))?;
        let preset = check::preset(kind, &self.preset)?;
        let base_url = check::base_url(self.base_url.as_deref().unwrap_or(preset.base_url), true)?;
        let protocols = match self.protocols {
            Some(words) => {
                let read = |word: &String| {
                    Protocol::parse(word).ok_or_else(|| Error::field("protocols", format_args!("`{word}` is unknown")))
                };
                check::protocols(preset, words.iter().map(read).collect::<Result<_>>()?)?
            }
            None => check::usual_protocols(preset),
        };
        let proxy = self.proxy.map(|proxy| check::proxy(proxy, true)).transpose()?;
        let seconds = |field, given: Option<u64>, usual: Duration, longest| {
            given.map_or(Ok(usual), |seconds| check::timeout(field, seconds, longest))
        };
        for given in &self.keys {
            check::key(given)?;
        }
        Ok(Provider {
            id: ProviderId::named(format!("file-{name}")),
            kind,
            preset,
            base_url,
            protocols,
            enabled: self.enabled,
            connect: seconds(
                "connect_timeout_seconds",
                self.connect_timeout_seconds,
                DEFAULT_CONNECT,
                LONGEST_CONNECT,
            )?,
            answer: seconds("answer_timeout_seconds", self.answer_timeout_seconds, DEFAULT_ANSWER, LONGEST_ANSWER)?,
            proxy,
            keys: self.keys.iter().map(|secret| key("file", &name, secret)).collect(),
            source: Source::File,
            allow_private: true,
            is_overridden: false,
            is_unreadable: false,
            times: None,
            name,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_toml_or_json() {
        let toml = "[[providers]]\nname = \"groq\"\nkind = \"compatible\"\npreset = \"groq\"\nkeys = [\"gsk_00000001\", \"gsk_00000002\"]\n\
                    [[providers]]\nname = \"rack\"\nkind = \"compatible\"\npreset = \"vllm\"\nbase_url = \"http://10.0.0.7:8000\"\n";
        let json = r#"{"providers": [
            {"name": "groq", "kind": "compatible", "preset": "groq", "keys": ["gsk_00000001", "gsk_00000002"]},
            {"name": "rack", "kind": "compatible", "preset": "vllm", "base_url": "http://10.0.0.7:8000"}]}"#;
        for text in [toml, json] {
            let read = read_file(text).unwrap();
            assert_eq!(read.len(), 2);
            assert_eq!((read[0].base_url.as_str(), read[0].keys.len()), ("https://api.groq.com/openai", 2));
            assert_eq!(read[0].keys[1].hint, "…0002");
            assert_ne!(read[0].keys[0].id, read[0].keys[1].id);
            assert!(read[1].keys.is_empty() && read[1].allow_private);
        }
    }

    #[test]
    fn what_is_wrong_is_named_in_one_line_without_a_key() {
        for (text, expected) in [
            ("[[providers]]\nname = \"a\"\nkeys = [\"sk-secret\"\n", "line"),
            ("[[providers]]\nname = \"a\"\nkind = \"nobody\"\n", "the provider `a`: kind"),
            ("[[providers]]\nname = \"a\"\nkind = \"compatible\"\npreset = \"x\"\n", "preset"),
            ("[[providers]]\nname = \"a\"\nkind = \"compatible\"\n", "base_url"),
            ("[[providers]]\nname = \"a\"\nkind = \"openai\"\nprotocols = [\"messages\"]\n", "protocols"),
            ("[[providers]]\nname = \"a\"\nkind = \"openai\"\nsecret = \"sk-secret\"\n", "secret"),
            ("{\"providers\": [{\"name\": \"a\"", "EOF"),
            ("[[providers]]\nname = \"a\"\nkind = \"openai\"\nkeys = \"sk-secret\"\n", "invalid type: string"),
            (
                "{\"providers\": [{\"name\": \"a\", \"kind\": \"openai\", \"keys\": \"sk-se\\\"cret\"}]}",
                "invalid type: string",
            ),
        ] {
            let error = read_file(text).unwrap_err();
            assert!(error.contains(expected), "{error}");
            assert!(!error.contains('\n') && !error.contains("sk-se"), "{error}");
        }
        let twice = "[[providers]]\nname = \"a\"\nkind = \"openai\"\n[[providers]]\nname = \"a\"\nkind = \"openai\"\n";
        assert!(read_file(twice).unwrap_err().contains("twice"));
    }

    #[test]
    fn the_variables_come_before_the_file() {
        let access = Access { url: "https://openai.internal".into(), key: Secret::new("of-the-variable") };
        let file = read_file("[[providers]]\nname = \"openai\"\nkind = \"openai\"\n").unwrap();
        let fixed = Settings { openai: Some(access), file, ..Settings::default() }.fixed();
        assert_eq!(fixed.len(), 1);
        assert_eq!(fixed[0].base_url, "https://openai.internal");
    }
}
