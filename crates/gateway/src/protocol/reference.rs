//! References to what is kept in the provider's account, which all sub keys share: uploaded files and stored items. The
//! gateway has no endpoint that makes them, so none belongs to the caller, and they are refused.

use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::Refusal;
use crate::field::Field;

/// A body with none of these refers to nothing. `\u00` is here because an escape can hide any of the others.
const WORDS: [&[u8]; 3] = [b"\"file_id\"", b"\"item_reference\"", b"\\u00"];
/// Contents within contents are not nested deeper than this.
const MOST_DEPTH: usize = 8;

/// A message, or a part of its content, in any of the protocols.
#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Field<'a>,
    #[serde(borrow, default)]
    file_id: Field<'a>,
    /// Of Anthropic's images and documents.
    #[serde(borrow, default)]
    source: Field<'a>,
    /// Of files in chat completions.
    #[serde(borrow, default)]
    file: Field<'a>,
    #[serde(borrow, default)]
    content: Field<'a>,
    /// What a tool answered, in the Responses API.
    #[serde(borrow, default)]
    output: Field<'a>,
}

#[derive(Deserialize)]
struct Holder<'a> {
    #[serde(borrow, default)]
    file_id: Field<'a>,
    /// A source of the type `content` has parts of its own.
    #[serde(borrow, default)]
    content: Field<'a>,
}

/// Checks the messages or the input of a request.
pub fn check(body: &[u8], messages: Field<'_>, name: &'static str) -> Result<(), Refusal> {
    if !WORDS.iter().any(|word| memmem::find(body, word).is_some()) {
        return Ok(());
    }
    list(messages, 0).map_err(|what| Refusal::bad_request(format!("{name}: {what}")).about(name))
}

const FILE: &str = "a file id refers to the provider's account, which others share; send the file itself";
const ITEM: &str = "an item reference refers to the provider's account, which others share; send the item itself";
const UNREADABLE: &str = "a part has a field twice, or parts are nested too deeply";

fn list(parts: Field<'_>, depth: usize) -> Result<(), &'static str> {
    let Some(json) = parts.json().filter(|json| json.starts_with(['[', '{'])) else { return Ok(()) };
    if depth > MOST_DEPTH {
        return Err(UNREADABLE);
    }
    if json.starts_with('{') {
        return part(json, depth);
    }
    let parts: Vec<&RawValue> = serde_json::from_str(json).map_err(|_| UNREADABLE)?;
    parts.iter().filter(|one| one.get().starts_with('{')).try_for_each(|one| part(one.get(), depth))
}

fn part(json: &str, depth: usize) -> Result<(), &'static str> {
    let part: Part<'_> = serde_json::from_str(json).map_err(|_| UNREADABLE)?;
    if part.kind.read::<std::borrow::Cow<'_, str>>().is_some_and(|kind| kind == "item_reference") {
        return Err(ITEM);
    }
    if part.file_id.is_given() {
        return Err(FILE);
    }
    for holder in [part.source, part.file] {
        let Some(json) = holder.json().filter(|json| json.starts_with('{')) else { continue };
        let holder: Holder<'_> = serde_json::from_str(json).map_err(|_| UNREADABLE)?;
        if holder.file_id.is_given() {
            return Err(FILE);
        }
        list(holder.content, depth + 1)?;
    }
    list(part.content, depth + 1)?;
    list(part.output, depth + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Body<'a> {
        #[serde(borrow)]
        messages: Field<'a>,
    }

    fn refused(messages: &str) -> Option<String> {
        let body = format!(r#"{{"messages":{messages}}}"#);
        let parsed: Body<'_> = serde_json::from_str(&body).unwrap();
        check(body.as_bytes(), parsed.messages, "messages").err().map(|refusal| refusal.message)
    }

    #[test]
    fn whatever_names_a_file_or_an_item_of_the_account_is_refused() {
        for part in [
            r#"{"type":"file","file":{"file_id":"file-1"}}"#,
            r#"{"type":"input_file","file_id":"file-1"}"#,
            r#"{"type":"input_image","f\u0069le_id":"file-1"}"#,
            r#"{"type":"image","source":{"type":"file","file_id":"file_1"}}"#,
            r#"{"type":"container_upload","file_id":"file_1"}"#,
            r#"{"type":"tool_result","content":[{"type":"document","source":{"type":"file","file_id":"file_1"}}]}"#,
            r#"{"type":"document","source":{"type":"content","content":[{"type":"image","source":{"file_id":"f"}}]}}"#,
            r#"{"type":"input_file","file_id":"file-1","file_id":null}"#,
            r#"{"type":"document","source":{"content":[{"file_id":"f"}],"content":[]}}"#,
        ] {
            assert!(refused(&format!(r#"[{{"role":"user","content":[{part}]}}]"#)).is_some(), "{part}");
        }
        assert!(refused(r#"[{"type":"item_reference","id":"msg_1"}]"#).unwrap().contains("item reference"));
        assert!(
            refused(r#"[{"type":"function_call_output","output":[{"type":"input_file","file_id":"f"}]}]"#).is_some()
        );
    }

    #[test]
    fn what_only_looks_like_it_passes() {
        for messages in [
            r#""file_id""#,
            r#"[{"role":"user","content":"\"file_id\": 7 \u0041"}]"#,
            r#"[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{"file_id":"mine"}}]}]"#,
            r#"[{"type":"function_call","arguments":"{\"file_id\":\"mine\"}","name":"file_id"}]"#,
            r#"[{"type":"input_file","file_id":null,"file_data":"data:,x"}]"#,
            r#"[7, null, "item_reference"]"#,
        ] {
            assert_eq!(refused(messages), None, "{messages}");
        }
    }
}
