//! `echo` in chat completions.

use serde_json::{Value, json};

use super::{Heard, Said, Voice, hear_messages, streamed};

pub static VOICE: Voice = Voice { hear, whole, stream };

fn hear(body: &Value) -> Heard {
    let limit = body["max_completion_tokens"].as_u64().or_else(|| body["max_tokens"].as_u64());
    let wants_usage = body["stream_options"]["include_usage"] == true;
    Heard { limit, wants_usage, ..hear_messages(&body["messages"]) }
}

fn usage(said: &Said<'_>) -> Value {
    let total = said.prompt + said.completion;
    json!({"prompt_tokens": said.prompt, "completion_tokens": said.completion, "total_tokens": total})
}

fn finish(said: &Said<'_>) -> &'static str {
    if said.is_cut { "length" } else { "stop" }
}

fn whole(said: &Said<'_>) -> Value {
    let message = json!({"role": "assistant", "content": said.words.join(" ")});
    json!({
        "id": "chatcmpl-echo", "object": "chat.completion", "created": 0, "model": said.model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish(said)}],
        "usage": usage(said),
    })
}

fn stream(said: &Said<'_>) -> Vec<String> {
    let chunk = |choices: Value| {
        json!({
            "id": "chatcmpl-echo", "object": "chat.completion.chunk", "created": 0, "model": said.model,
            "choices": choices,
        })
    };
    let delta = |delta: Value, finish: Value| chunk(json!([{"index": 0, "delta": delta, "finish_reason": finish}]));
    let mut chunks = vec![delta(json!({"role": "assistant", "content": ""}), Value::Null)];
    let words = said.words.iter().enumerate();
    chunks.extend(words.map(|(i, word)| delta(json!({"content": streamed(i, word)}), Value::Null)));
    chunks.push(delta(json!({}), finish(said).into()));
    if said.wants_usage {
        let mut last = chunk(json!([]));
        last["usage"] = usage(said);
        chunks.push(last);
    }
    let mut events: Vec<String> = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    events.push("data: [DONE]\n\n".into());
    events
}
