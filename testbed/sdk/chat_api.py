"""Chat completions as OpenAI's public reference describes them, streamed and not. Anthropic and Google answer in this shape too."""

from __future__ import annotations

from typing import Any

from .openai_common import invalid, logprob_of, reasoning_of, text_of
from .shared_api import CREATED, SPEECH, Answer, Request, Usage, dump, fitting, has_bad_media, pieces, tokens


def chat(request: Request) -> Answer:
    asked = request.json
    messages = asked.get("messages")
    if not messages:
        return invalid("Missing required parameter: 'messages'.", "messages", "missing_required_parameter")
    if has_bad_media(messages):
        return invalid("Invalid image data.", "messages", "invalid_base64")
    if asked.get("stream_options") and not asked.get("stream"):
        return invalid("The 'stream_options' parameter is only allowed when 'stream' is enabled.", "stream_options")
    if problem := _unanswered_calls(messages):
        return invalid(problem, "messages")
    choices = [_choice(request, number) for number in range(asked.get("n") or 1)]
    prompt, reasoning = tokens(messages, asked.get("tools")), reasoning_of(asked.get("reasoning_effort"))
    usage = Usage(prompt, sum(tokens(choice["message"]) for choice in choices) + reasoning, cached=0, reasoning=reasoning)
    if asked.get("prompt_cache_key") and request.seen_before:
        usage.cached = prompt // 2
    common = {
        "id": request.id("chatcmpl-"),
        "created": CREATED,
        "model": f"{asked['model']}-2024-07-18",
        "system_fingerprint": f"fp_{asked.get('seed', 0)}",
        "service_tier": {None: "default", "auto": "default"}.get(asked.get("service_tier"), asked.get("service_tier")),
    }
    if not asked.get("stream"):
        whole = {"object": "chat.completion"} | common | {"choices": choices, "usage": _chat_usage(usage)}
        return Answer(200, dump(whole), usage=usage)
    wants_usage = bool((asked.get("stream_options") or {}).get("include_usage"))
    chunks: list[dict[str, Any]] = [{"choices": [chunk]} for chunk in _interleaved([_chat_deltas(choice) for choice in choices])]
    if (asked.get("stream_options") or {}).get("include_obfuscation") is not False:
        chunks = [chunk | {"obfuscation": "x" * (len(dump(chunk)) % 7)} for chunk in chunks]
    if wants_usage:
        chunks = [chunk | {"usage": None} for chunk in chunks] + [{"choices": [], "usage": _chat_usage(usage)}]
    events = [b"data: " + dump({"object": "chat.completion.chunk"} | common | chunk) + b"\n\n" for chunk in chunks]
    return Answer(200, events=[*events, b"data: [DONE]\n\n"], usage=usage)


def _unanswered_calls(messages: list[dict[str, Any]]) -> str:
    waiting: set[str] = set()
    for message in messages:
        if message.get("role") == "tool":
            if message.get("tool_call_id") not in waiting:
                return "messages with role 'tool' must be a response to a preceding message with 'tool_calls'."
            waiting.discard(message["tool_call_id"])
        elif waiting:
            break
        waiting |= {call["id"] for call in message.get("tool_calls") or []}
    return f"An assistant message with 'tool_calls' must be followed by tool messages: {sorted(waiting)}" if waiting else ""


def _choice(request: Request, number: int) -> dict[str, Any]:
    asked = request.json
    message: dict[str, Any] = {"role": "assistant", "content": None, "refusal": None, "annotations": []}
    called, finish = _called(request, number), "tool_calls"
    if called:
        message["tool_calls"] = called
    else:
        message["content"], finish = text_of(asked.get("response_format"), number), "stop"
        if limit := asked.get("max_completion_tokens") or asked.get("max_tokens"):
            words = pieces(message["content"])
            if limit < len(words):
                message["content"], finish = "".join(words[:limit]), "length"
    logprobs = None
    if asked.get("logprobs") and message["content"]:
        logprobs = {"content": [logprob_of(word, asked.get("top_logprobs") or 0) for word in pieces(message["content"])], "refusal": None}
    return {"index": number, "message": message, "logprobs": logprobs, "finish_reason": finish}


def _called(request: Request, number: int) -> list[dict[str, Any]]:
    """A call of every tool that the request has, unless it brings the results of some."""
    asked = request.json
    if not asked.get("tools") or asked.get("tool_choice") == "none" or asked["messages"][-1].get("role") == "tool":
        return []
    calls: list[dict[str, Any]] = []
    for tool in asked["tools"]:
        kind = tool["type"]
        name, of = tool[kind]["name"], f"call_{number}"
        made = (
            {"name": name, "arguments": dump(fitting(tool[kind].get("parameters", {}))).decode()}
            if kind == "function"
            else {"name": name, "input": SPEECH}
        )
        calls.append({"id": request.id("call_", of, name), "type": kind, kind: made})
    return calls[:1] if asked.get("parallel_tool_calls") is False else calls


def _chat_deltas(choice: dict[str, Any]) -> list[dict[str, Any]]:
    message, logprobs = choice["message"], (choice["logprobs"] or {}).get("content")

    def chunk(delta: dict[str, Any], finish: str | None = None, place: int | None = None) -> dict[str, Any]:
        shown = {"content": [logprobs[place]], "refusal": None} if logprobs and place is not None else None
        return {"index": choice["index"], "delta": delta, "logprobs": shown, "finish_reason": finish}

    made = [chunk({"role": "assistant", "content": None if message.get("tool_calls") else "", "refusal": None})]
    for place, call in enumerate(message.get("tool_calls") or []):
        kind = call["type"]
        field = "arguments" if kind == "function" else "input"
        made.append(chunk({"tool_calls": [call | {"index": place, kind: call[kind] | {field: ""}}]}))
        made += [chunk({"tool_calls": [{"index": place, kind: {field: piece}}]}) for piece in pieces(call[kind][field])]
    made += [chunk({"content": word}, place=place) for place, word in enumerate(pieces(message["content"] or ""))]
    return [*made, chunk({}, choice["finish_reason"])]


def _interleaved(rows: list[list[Any]]) -> list[Any]:
    return [row[place] for place in range(max(map(len, rows))) for row in rows if place < len(row)]


def _chat_usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.prompt + usage.completion,
        "prompt_tokens_details": {"cached_tokens": usage.cached, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }
