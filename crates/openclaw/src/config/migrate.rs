//! Converts older forms of the configuration to the form of the version that will read it.

use std::fmt;

use base::Result;
use serde_json::{Map, Value, json};

use crate::document::Document;
use crate::version::Version;

/// The first release known to store its agents by name; older ones refuse that form.
const KNOWS_ENTRIES: Version = Version::new(2026, 8, 2);

/// What was converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Migrated {
    /// `gateway.token`, which is ignored or refused, became `gateway.auth.token`.
    Token,
    /// An address in `gateway.bind` became its keyword.
    Bind,
    /// `agents.list` became `agents.entries`.
    Agents,
}

impl fmt::Display for Migrated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Migrated::Token => "gateway.token → gateway.auth.token",
            Migrated::Bind => "gateway.bind from an address to a word",
            Migrated::Agents => "agents.list → agents.entries",
        })
    }
}

pub fn migrate(document: &mut Document, version: &Version) -> Result<Vec<Migrated>> {
    let mut done = vec![];
    if let Some(old) = document.get(["gateway", "token"]) {
        let current = ["gateway", "auth", "token"];
        if !document.has(current) {
            document.set(current, old)?;
        }
        document.remove(["gateway", "token"])?;
        done.push(Migrated::Token);
    }
    let word = match document.get_str(["gateway", "bind"]).as_deref() {
        Some("0.0.0.0" | "::" | "[::]" | "*") => Some("lan"),
        Some("127.0.0.1" | "localhost" | "::1" | "[::1]") => Some("loopback"),
        _ => None,
    };
    if let Some(word) = word {
        document.set(["gateway", "bind"], json!(word))?;
        done.push(Migrated::Bind);
    }
    if *version >= KNOWS_ENTRIES
        && let Some(Value::Array(list)) = document.get(["agents", "list"])
        && let Some(entries) = entries(document, &list)
    {
        document.remove(["agents", "list"])?;
        document.set(["agents", "entries"], Value::Object(entries))?;
        done.push(Migrated::Agents);
    }
    Ok(done)
}

/// The list as entries. `None` if OpenClaw's own doctor must decide: an id is one that it would rename, or occurs
/// twice.
fn entries(document: &Document, list: &[Value]) -> Option<Map<String, Value>> {
    let mut entries = match document.get(["agents", "entries"]) {
        None => Map::new(),
        Some(Value::Object(entries)) => entries,
        Some(_) => return None,
    };
    for agent in list {
        let mut agent = agent.as_object()?.clone();
        let Some(Value::String(id)) = agent.shift_remove("id") else { return None };
        if !is_agent_id(&id) || entries.contains_key(&id) {
            return None;
        }
        agent.shift_remove("default");
        entries.insert(id, Value::Object(agent));
    }
    // If there are several, one must be marked as the default. If none was marked, the first was the default.
    let marked = list.iter().find(|agent| agent.get("default") == Some(&Value::Bool(true))).or(list.first());
    let marked = marked.and_then(|agent| agent.get("id")).and_then(Value::as_str);
    let explicit = document.has(["agents", "ownership"]);
    if entries.len() > 1
        && !explicit
        && let Some(Value::Object(agent)) = marked.and_then(|id| entries.get_mut(id))
    {
        agent.insert("default".into(), Value::Bool(true));
    }
    (!entries.is_empty()).then_some(entries)
}

fn is_agent_id(id: &str) -> bool {
    let word = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    (1..=64).contains(&id.len()) && id.bytes().all(|b| word(b) || b == b'-') && !id.starts_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(text: &str, version: Version) -> (Value, Vec<Migrated>) {
        let mut document = Document::parse(text).unwrap();
        let done = migrate(&mut document, &version).unwrap();
        assert_eq!(migrate(&mut document, &version).unwrap(), []);
        (document.value(), done)
    }

    #[test]
    fn the_token_moves_to_where_it_is_read() {
        let (value, done) = after("{gateway:{token:'a'}}", Version::TESTED);
        assert_eq!((value, done), (json!({"gateway": {"auth": {"token": "a"}}}), vec![Migrated::Token]));
        let (value, _) = after("{gateway:{token:'a',auth:{token:'b'}}}", Version::new(2026, 5, 28));
        assert_eq!(value, json!({"gateway": {"auth": {"token": "b"}}}));
    }

    #[test]
    fn an_address_becomes_its_word() {
        assert_eq!(after("{gateway:{bind:'0.0.0.0'}}", Version::TESTED).0, json!({"gateway": {"bind": "lan"}}));
        assert_eq!(after("{gateway:{bind:'127.0.0.1'}}", Version::TESTED).0, json!({"gateway": {"bind": "loopback"}}));
        for kept in ["lan", "custom", "tailnet", "10.0.0.1"] {
            assert!(after(&format!("{{gateway:{{bind:'{kept}'}}}}"), Version::TESTED).1.is_empty());
        }
    }

    #[test]
    fn agents_are_kept_by_name_from_the_release_that_knows_it() {
        let one = "{agents:{defaults:{x:1},list:[{id:'main',default:true,name:'M'}]}}";
        let (value, done) = after(one, Version::TESTED);
        assert_eq!(value, json!({"agents": {"defaults": {"x": 1}, "entries": {"main": {"name": "M"}}}}));
        assert_eq!(done, [Migrated::Agents]);
        assert!(after(one, Version::new(2026, 7, 35)).1.is_empty());

        let (value, _) = after("{agents:{list:[{id:'a'},{id:'b',default:true}]}}", Version::TESTED);
        assert_eq!(value, json!({"agents": {"entries": {"a": {}, "b": {"default": true}}}}));
        let (value, _) = after("{agents:{list:[{id:'a'},{id:'b'}]}}", Version::TESTED);
        assert_eq!(value, json!({"agents": {"entries": {"a": {"default": true}, "b": {}}}}));
        let (value, _) = after("{agents:{ownership:'explicit',list:[{id:'a'},{id:'b'}]}}", Version::TESTED);
        assert_eq!(value, json!({"agents": {"ownership": "explicit", "entries": {"a": {}, "b": {}}}}));
    }

    #[test]
    fn a_list_that_needs_a_decision_is_left_to_openclaws_doctor() {
        for text in [
            "{agents:{list:[{id:'two.x'}]}}",
            "{agents:{list:[{id:'Main'}]}}",
            "{agents:{list:[{id:'a'},{id:'a'}]}}",
            "{agents:{list:[{id:'a'}],entries:{a:{}}}}",
            "{agents:{list:[{name:'no id'}]}}",
            "{agents:{list:['a']}}",
            "{agents:{list:[]}}",
            "{agents:{list:'a'}}",
        ] {
            let (_, done) = after(text, Version::TESTED);
            assert!(done.is_empty(), "{text}");
        }
    }
}
