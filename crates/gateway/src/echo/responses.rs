//! `echo` in OpenAI's Responses API. It keeps nothing: a request that continues an earlier answer is heard alone.

use serde_json::{Value, json};

use super::{Heard, Said, Voice, hear_messages, named_event, streamed, text, words};

pub static VOICE: Voice = Voice { hear, whole, stream };

fn hear(body: &Value) -> Heard {
    let mut heard = match &body["input"] {
        Value::String(said) => Heard { last: said.clone(), prompt: words(said), ..Heard::default() },
        items => hear_messages(items),
    };
    heard.prompt += words(&text(&body["instructions"]));
    Heard { limit: body["max_output_tokens"].as_u64(), ..heard }
}

fn item(text: &str, status: &str) -> Value {
    let content = match status {
        "in_progress" => json!([]),
        _ => json!([{"type": "output_text", "text": text, "annotations": []}]),
    };
    json!({"id": "msg_echo", "type": "message", "role": "assistant", "status": status, "content": content})
}

fn response(said: &Said<'_>, id: &str, status: &str, output: Value, usage: Value) -> Value {
    let incomplete = if status == "incomplete" { json!({"reason": "max_output_tokens"}) } else { Value::Null };
    json!({
        "id": id, "object": "response", "created_at": 0, "status": status, "model": said.model, "output": output,
        "error": null, "incomplete_details": incomplete, "instructions": null, "metadata": {},
        "parallel_tool_calls": true, "tool_choice": "auto", "tools": [], "usage": usage,
    })
}

fn ended(said: &Said<'_>, id: &str) -> Value {
    let status = if said.is_cut { "incomplete" } else { "completed" };
    let usage = json!({
        "input_tokens": said.prompt, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": said.completion,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": said.prompt + said.completion,
    });
    response(said, id, status, json!([item(&said.words.join(" "), "completed")]), usage)
}

/// Every answer has an id of its own.
fn fresh_id() -> String {
    format!("resp_echo{}", base::id::fresh().replace('-', ""))
}

fn whole(said: &Said<'_>) -> Value {
    ended(said, &fresh_id())
}

fn stream(said: &Said<'_>) -> Vec<String> {
    let id = fresh_id();
    let begun = response(said, &id, "in_progress", json!([]), Value::Null);
    let part = |text: &str| json!({"type": "output_text", "text": text, "annotations": []});
    let all = said.words.join(" ");
    let at = |kind: &str, more: Value| {
        let mut event = json!({"type": kind, "item_id": "msg_echo", "output_index": 0, "content_index": 0});
        if let (Some(event), Value::Object(more)) = (event.as_object_mut(), more) {
            event.extend(more);
        }
        event
    };
    let mut events = vec![
        json!({"type": "response.created", "response": begun}),
        json!({"type": "response.in_progress", "response": begun}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": item("", "in_progress")}),
        at("response.content_part.added", json!({"part": part("")})),
    ];
    events.extend(
        said.words
            .iter()
            .enumerate()
            .map(|(i, word)| at("response.output_text.delta", json!({"delta": streamed(i, word), "logprobs": []}))),
    );
    let last = ended(said, &id);
    events.extend([
        at("response.output_text.done", json!({"text": all, "logprobs": []})),
        at("response.content_part.done", json!({"part": part(&all)})),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item(&all, "completed")}),
        json!({"type": format!("response.{}", last["status"].as_str().unwrap_or_default()), "response": last}),
    ]);
    for (number, event) in events.iter_mut().enumerate() {
        event["sequence_number"] = number.into();
    }
    events.iter().map(named_event).collect()
}
