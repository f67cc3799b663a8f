//! `echo` in Anthropic's Messages API.

use serde_json::{Value, json};

use super::{Heard, Said, Voice, hear_messages, named_event, streamed, text, words};

pub static VOICE: Voice = Voice { hear, whole, stream };
pub static COUNT_VOICE: Voice = Voice { hear, whole: |said| json!({"input_tokens": said.prompt}), stream: |_| vec![] };

fn hear(body: &Value) -> Heard {
    let heard = hear_messages(&body["messages"]);
    Heard { limit: body["max_tokens"].as_u64(), prompt: heard.prompt + words(&text(&body["system"])), ..heard }
}

fn stop_reason(said: &Said<'_>) -> &'static str {
    if said.is_cut { "max_tokens" } else { "end_turn" }
}

fn message(said: &Said<'_>, content: Value, stop_reason: Value, written: usize) -> Value {
    json!({
        "id": "msg_echo", "type": "message", "role": "assistant", "model": said.model, "content": content,
        "stop_reason": stop_reason, "stop_sequence": null,
        "usage": {"input_tokens": said.prompt, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": written},
    })
}

fn whole(said: &Said<'_>) -> Value {
    let content = json!([{"type": "text", "text": said.words.join(" ")}]);
    message(said, content, stop_reason(said).into(), said.completion)
}

fn stream(said: &Said<'_>) -> Vec<String> {
    let mut events = vec![
        json!({"type": "message_start", "message": message(said, json!([]), Value::Null, 1)}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
    ];
    events.extend(said.words.iter().enumerate().map(|(i, word)| {
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": streamed(i, word)}})
    }));
    events.extend([
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": stop_reason(said), "stop_sequence": null}, "usage": {"output_tokens": said.completion}}),
        json!({"type": "message_stop"}),
    ]);
    events.iter().map(named_event).collect()
}
