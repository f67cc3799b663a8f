//! What the protocols that cost something look like on the wire, by the providers' public documentation: a question, an
//! answer, and a stream where there is one, each with its usage.

use serde_json::{Value, json};

/// One protocol as a client and a provider speak it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    Chat,
    Messages,
    Responses,
    /// Has no words, and so no stream.
    Embeddings,
}

const NO_STREAM: &str = "embeddings are not streamed";

impl Wire {
    /// Those with an answer in words.
    pub const ALL: [Wire; 3] = [Wire::Chat, Wire::Messages, Wire::Responses];

    pub fn path(self) -> &'static str {
        match self {
            Wire::Chat => "/v1/chat/completions",
            Wire::Messages => "/v1/messages",
            Wire::Responses => "/v1/responses",
            Wire::Embeddings => "/v1/embeddings",
        }
    }

    /// The protocol of a path, with or without a query.
    pub fn at(path: &str) -> Option<Wire> {
        Wire::ALL.into_iter().chain([Wire::Embeddings]).find(|wire| path.split('?').next() == Some(wire.path()))
    }

    /// A model whose provider speaks it.
    pub fn model(self) -> &'static str {
        match self {
            Wire::Chat | Wire::Responses | Wire::Embeddings => "gpt-4o",
            Wire::Messages => "claude-opus-4-6",
        }
    }

    /// A question of the usual kind. It names no limit for the answer.
    pub fn ask(self, model: &str, text: &str) -> Value {
        match self {
            Wire::Responses | Wire::Embeddings => json!({"model": model, "input": text}),
            _ => json!({"model": model, "messages": [{"role": "user", "content": text}]}),
        }
    }

    pub fn streamed(self, model: &str, text: &str) -> Value {
        let mut question = self.ask(model, text);
        question["stream"] = json!(true);
        question
    }

    /// A question for a whole answer, and one for a stream where there is one.
    pub fn questions(self, text: &str) -> Vec<Value> {
        let whole = self.ask(self.model(), text);
        match self {
            Wire::Embeddings => vec![whole],
            _ => vec![whole, self.streamed(self.model(), text)],
        }
    }

    /// The text of a question.
    pub fn text_of(self, question: &Value) -> String {
        let text = match self {
            Wire::Responses | Wire::Embeddings => &question["input"],
            _ => &question["messages"][0]["content"],
        };
        text.as_str().unwrap_or_default().to_owned()
    }

    /// Usage as the provider tells it.
    pub fn usage(self, input: i64, output: i64) -> Value {
        match self {
            Wire::Chat => json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output}),
            // Part of the input was read from the cache, and part of it written there.
            Wire::Messages => {
                let (read, written) = (input / 2, input / 4);
                json!({"input_tokens": input - read - written, "cache_read_input_tokens": read,
                    "cache_creation_input_tokens": written, "output_tokens": output})
            }
            Wire::Responses => json!({"input_tokens": input, "input_tokens_details": {"cached_tokens": input / 2},
                "output_tokens": output, "output_tokens_details": {"reasoning_tokens": output / 2}, "total_tokens": input + output}),
            Wire::Embeddings => json!({"prompt_tokens": input, "total_tokens": input}),
        }
    }

    /// A whole answer; `None` tells no usage.
    pub fn whole(self, text: &str, usage: Option<(i64, i64)>) -> Value {
        let mut answer = match self {
            Wire::Chat => json!({"id": "c-1", "object": "chat.completion", "choices": [
                {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]}),
            Wire::Messages => json!({"id": "msg_1", "type": "message", "role": "assistant",
                "content": [{"type": "text", "text": text}], "stop_reason": "end_turn"}),
            Wire::Responses => json!({"id": "resp_1", "object": "response", "status": "completed",
                "output": [{"type": "message", "content": [{"type": "output_text", "text": text}]}]}),
            Wire::Embeddings => {
                json!({"object": "list", "data": [{"object": "embedding", "index": 0, "embedding": [0.5]}]})
            }
        };
        if let Some((input, output)) = usage {
            answer["usage"] = self.usage(input, output);
        }
        answer
    }

    fn event(self, data: &Value) -> String {
        match self {
            Wire::Chat => format!("data: {data}\n\n"),
            _ => format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap()),
        }
    }

    /// The events before the first word. The usage of the input is sent here, where the protocol does.
    pub fn beginning(self, input: Option<i64>) -> Vec<String> {
        let events = match self {
            Wire::Chat | Wire::Embeddings => vec![],
            Wire::Messages => {
                let mut message = json!({"id": "msg_1", "type": "message", "content": [], "stop_reason": null});
                if let Some(input) = input {
                    message["usage"] = self.usage(input, 1);
                }
                vec![
                    json!({"type": "message_start", "message": message}),
                    json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
                ]
            }
            Wire::Responses => {
                vec![
                    json!({"type": "response.created", "response": {"id": "resp_1", "status": "in_progress", "usage": null}, "sequence_number": 0}),
                ]
            }
        };
        events.iter().map(|data| self.event(data)).collect()
    }

    /// The events by which thinking begins that nobody sees.
    pub fn thinking(self) -> Vec<String> {
        let events = match self {
            Wire::Chat | Wire::Embeddings => vec![],
            Wire::Messages => {
                vec![
                    json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}}),
                ]
            }
            Wire::Responses => {
                vec![json!({"type": "response.output_item.added", "item": {"type": "reasoning", "id": "rs_1"}})]
            }
        };
        events.iter().map(|data| self.event(data)).collect()
    }

    pub fn word(self, word: &str) -> String {
        self.event(&match self {
            Wire::Chat => json!({"choices": [{"index": 0, "delta": {"content": word}}]}),
            Wire::Messages => {
                json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}})
            }
            Wire::Responses => json!({"type": "response.output_text.delta", "delta": word, "sequence_number": 1}),
            Wire::Embeddings => unreachable!("{NO_STREAM}"),
        })
    }

    /// The event that says why the answer ends; with the usage, where the protocol tells it there.
    pub fn finish(self, usage: Option<(i64, i64)>) -> String {
        let counts = usage.map(|(input, output)| self.usage(input, output));
        self.event(&match self {
            Wire::Chat => json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
            Wire::Messages => match counts {
                // The input was counted at the beginning.
                Some(counts) => json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"},
                    "usage": {"output_tokens": counts["output_tokens"]}}),
                None => json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
            },
            Wire::Responses => json!({"type": "response.completed", "sequence_number": 2,
                "response": {"id": "resp_1", "status": "completed", "usage": counts}}),
            Wire::Embeddings => unreachable!("{NO_STREAM}"),
        })
    }

    /// A word by which a test knows that the answer has finished.
    pub fn finish_word(self) -> &'static str {
        match self {
            Wire::Chat => "finish_reason",
            Wire::Messages => "stop_reason\":\"end_turn",
            Wire::Responses => "response.completed",
            Wire::Embeddings => unreachable!("{NO_STREAM}"),
        }
    }

    /// What comes behind the reason to end.
    pub fn end(self, usage: Option<(i64, i64)>) -> Vec<String> {
        match self {
            Wire::Chat => {
                let usage = usage
                    .map(|(input, output)| self.event(&json!({"choices": [], "usage": self.usage(input, output)})));
                usage.into_iter().chain(["data: [DONE]\n\n".to_owned()]).collect()
            }
            Wire::Messages => vec![self.event(&json!({"type": "message_stop"}))],
            Wire::Responses | Wire::Embeddings => vec![],
        }
    }

    /// A whole stream.
    pub fn stream(self, words: &[&str], usage: Option<(i64, i64)>) -> Vec<Vec<u8>> {
        let mut events = self.beginning(usage.map(|(input, _)| input));
        events.extend(words.iter().map(|word| self.word(word)));
        events.push(self.finish(usage));
        events.extend(self.end(usage));
        events.into_iter().map(String::into_bytes).collect()
    }
}
