//! What is asked and answered in each protocol: a question of a usual length, and an answer whole or in 21 pieces.

use serde_json::{Value, json};

pub struct Exchange {
    pub name: &'static str,
    pub path: &'static str,
    pub question: String,
    pub answer: String,
    pub is_stream: bool,
}

const QUESTION: &str =
    "A question of a usual length, with some words that nobody reads, so that the body is neither empty nor large.";
const ANSWER: &str =
    "An answer of a length that is usual for a short question, so that the body is neither empty nor large.";
const PIECES: usize = 21;

/// All of them, each protocol whole and then streamed.
pub fn all() -> Vec<Exchange> {
    let whole = |name, path, question: Value, answer: &Value| Exchange {
        name,
        path,
        question: question.to_string(),
        answer: answer.to_string(),
        is_stream: false,
    };
    let streamed = |name, path, question: Value, answer| Exchange {
        name,
        path,
        question: question.to_string(),
        answer,
        is_stream: true,
    };
    let mut chat = json!({"model": "gpt-4o", "messages": [{"role": "system", "content": "Be brief."},
        {"role": "user", "content": QUESTION}], "temperature": 0.7, "max_tokens": 256});
    let mut messages = json!({"model": "claude-sonnet-4-6", "system": "Be brief.", "max_tokens": 256,
        "messages": [{"role": "user", "content": QUESTION}]});
    let mut responses = json!({"model": "gpt-4o", "instructions": "Be brief.", "input": QUESTION,
        "max_output_tokens": 256, "store": false});
    let embeddings = json!({"model": "gpt-4o", "input": QUESTION});
    let mut all = vec![
        whole("chat", "/v1/chat/completions", chat.clone(), &chat_answer()),
        whole("messages", "/v1/messages", messages.clone(), &message(&json!([{"type": "text", "text": ANSWER}]), 20)),
        whole("responses", "/v1/responses", responses.clone(), &response("completed")),
        whole("embeddings", "/v1/embeddings", embeddings, &embedding()),
    ];
    chat["stream"] = json!(true);
    chat["stream_options"] = json!({"include_usage": true});
    messages["stream"] = json!(true);
    responses["stream"] = json!(true);
    all.push(streamed("chat", "/v1/chat/completions", chat, chat_stream()));
    all.push(streamed("messages", "/v1/messages", messages, message_stream()));
    all.push(streamed("responses", "/v1/responses", responses, response_stream()));
    all
}

fn chat_answer() -> Value {
    json!({"id": "chatcmpl-bench", "object": "chat.completion", "created": 0, "model": "gpt-4o",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": ANSWER}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 25, "completion_tokens": 20, "total_tokens": 45}})
}

fn chat_stream() -> String {
    let chunk = |choices: Value, usage: Value| {
        let chunk = json!({"id": "chatcmpl-bench", "object": "chat.completion.chunk", "created": 0, "model": "gpt-4o",
            "choices": choices, "usage": usage});
        format!("data: {chunk}\n\n")
    };
    let word = chunk(json!([{"index": 0, "delta": {"content": " word"}, "finish_reason": null}]), Value::Null);
    let last = chunk(json!([]), json!({"prompt_tokens": 25, "completion_tokens": PIECES, "total_tokens": 46}));
    format!("{}{last}data: [DONE]\n\n", word.repeat(PIECES))
}

/// An event whose data names its type, as Anthropic and the responses of OpenAI have it.
fn event(data: &Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or_default())
}

fn message(content: &Value, output: usize) -> Value {
    json!({"id": "msg_bench", "type": "message", "role": "assistant", "model": "claude-sonnet-4-6", "content": content,
        "stop_reason": "end_turn", "stop_sequence": null, "usage": {"input_tokens": 25, "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0, "output_tokens": output}})
}

fn message_stream() -> String {
    let word = json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": " word"}});
    let before = [
        json!({"type": "message_start", "message": message(&json!([]), 1)}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
    ];
    let behind = [
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null},
            "usage": {"output_tokens": PIECES}}),
        json!({"type": "message_stop"}),
    ];
    let all = before.iter().chain(std::iter::repeat_n(&word, PIECES)).chain(&behind);
    all.map(event).collect()
}

fn response(status: &str) -> Value {
    let is_over = status == "completed";
    let output = json!([{"id": "msg_bench", "type": "message", "role": "assistant", "status": status,
        "content": [{"type": "output_text", "text": ANSWER, "annotations": []}]}]);
    let usage = json!({"input_tokens": 25, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": PIECES,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 46});
    json!({"id": "resp_bench", "object": "response", "created_at": 0, "status": status, "model": "gpt-4o", "error": null,
        "output": if is_over { output } else { json!([]) }, "usage": if is_over { usage } else { Value::Null }})
}

fn response_stream() -> String {
    let begun = json!({"type": "response.created", "sequence_number": 0, "response": response("in_progress")});
    let word = |number: usize| {
        json!({"type": "response.output_text.delta", "sequence_number": number, "item_id": "msg_bench", "output_index": 0,
            "content_index": 0, "delta": " word"})
    };
    let over = json!({"type": "response.completed", "sequence_number": PIECES + 1, "response": response("completed")});
    let words = (1..=PIECES).map(word);
    std::iter::once(begun).chain(words).chain(std::iter::once(over)).map(|data| event(&data)).collect()
}

fn embedding() -> Value {
    let vector: Vec<f64> = (0..256).map(|place| f64::from(place) / 1000.0).collect();
    json!({"object": "list", "model": "gpt-4o", "data": [{"object": "embedding", "index": 0, "embedding": vector}],
        "usage": {"prompt_tokens": 25, "total_tokens": 25}})
}
