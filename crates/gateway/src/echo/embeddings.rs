//! `echo` in embeddings: a vector of one length for everything, since it understands nothing.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{Heard, Said, Voice, words};

pub static VOICE: Voice = Voice { hear, whole, stream: |_| vec![] };

/// The length of a vector.
const LENGTH: usize = 8;

/// Each input is one word of the "message", so that the answer has as many vectors.
fn hear(body: &Value) -> Heard {
    let inputs: Vec<&Value> = match &body["input"] {
        // A list of numbers is one text, as tokens.
        Value::Array(all) if !all.iter().all(Value::is_number) => all.iter().collect(),
        one => vec![one],
    };
    let tokens = |input: &Value| match input {
        Value::String(text) => words(text),
        Value::Array(tokens) => tokens.len(),
        _ => 1,
    };
    let format = if body["encoding_format"] == "base64" { "base64" } else { "float" };
    Heard {
        last: [format].repeat(inputs.len()).join(" "),
        prompt: inputs.into_iter().map(tokens).sum(),
        ..Heard::default()
    }
}

fn whole(said: &Said<'_>) -> Value {
    let vector = |format: &&str| -> Value {
        match *format {
            "base64" => STANDARD.encode([1f32.to_le_bytes(); LENGTH].concat()).into(),
            _ => vec![1.0; LENGTH].into(),
        }
    };
    let each = said.words.iter().enumerate();
    let data: Vec<Value> =
        each.map(|(i, format)| json!({"object": "embedding", "index": i, "embedding": vector(format)})).collect();
    json!({
        "object": "list", "data": data, "model": said.model,
        "usage": {"prompt_tokens": said.prompt, "total_tokens": said.prompt},
    })
}
