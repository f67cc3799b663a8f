"""Responses as OpenAI's public reference describes them, streamed and not."""

from __future__ import annotations

import base64
from typing import Any

from .openai_common import invalid, logprob_of, reasoning_of, text_of
from .shared_api import CREATED, Answer, Request, Usage, dump, fitting, has_bad_media, pieces, tokens

# Kept for previous_response_id; all keys of the account see them.
_stored: set[str] = set()


def responses(request: Request) -> Answer:
    asked = request.json
    if not asked.get("input") and not asked.get("prompt"):
        return invalid("Missing required parameter: 'input'.", "input", "missing_required_parameter")
    if has_bad_media(asked["input"]):
        return invalid("Invalid image data.", "input", "invalid_base64")
    before = asked.get("previous_response_id")
    if before and before not in _stored:
        return invalid(f"Previous response with id '{before}' not found.", "previous_response_id", "previous_response_not_found")
    prompt, reasoning = (
        tokens(asked["input"], asked.get("instructions"), asked.get("tools"), before),
        reasoning_of((asked.get("reasoning") or {}).get("effort")),
    )
    output = _items(request, bool(reasoning))
    is_cut = any(item.get("status") == "incomplete" for item in output)
    usage = Usage(prompt, tokens(output) + reasoning, cached=0, cache_write=0, reasoning=reasoning)
    if asked.get("prompt_cache_key") and request.seen_before:
        usage.cached = prompt // 2
    whole = {
        "id": request.id("resp_", before),
        "object": "response",
        "created_at": CREATED,
        "status": "incomplete" if is_cut else "completed",
        "background": False,
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
        "instructions": asked.get("instructions"),
        "max_output_tokens": asked.get("max_output_tokens"),
        "model": f"{asked['model']}-2024-07-18",
        "output": output,
        "parallel_tool_calls": asked.get("parallel_tool_calls", True),
        "previous_response_id": before,
        "reasoning": {"effort": (asked.get("reasoning") or {}).get("effort"), "summary": None},
        "service_tier": asked.get("service_tier") or "default",
        "store": asked.get("store", True),
        "temperature": 1.0,
        "text": asked.get("text") or {"format": {"type": "text"}},
        "tool_choice": asked.get("tool_choice") or "auto",
        "tools": asked.get("tools") or [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": _response_usage(usage),
        "user": None,
        "metadata": asked.get("metadata") or {},
    }
    if whole["store"]:
        _stored.add(whole["id"])
    if not asked.get("stream"):
        return Answer(200, dump(whole), usage=usage)
    events = [
        b"event: " + event["type"].encode() + b"\ndata: " + dump(event | {"sequence_number": place}) + b"\n\n"
        for place, event in enumerate(_response_events(whole))
    ]
    return Answer(200, events=events, usage=usage)


def _items(request: Request, thinks: bool) -> list[dict[str, Any]]:
    asked, items = request.json, list[dict[str, Any]]()
    if thinks:
        item = {"id": request.id("rs_"), "type": "reasoning", "summary": [{"type": "summary_text", "text": "Weighing words."}]}
        if "reasoning.encrypted_content" in (asked.get("include") or []):
            item["encrypted_content"] = base64.b64encode(request.id("secret").encode()).decode()
        items.append(item)
    last = asked["input"][-1] if isinstance(asked["input"], list) else {}
    tools = [tool for tool in asked.get("tools") or [] if tool["type"] == "function"]
    if tools and last.get("type") != "function_call_output":
        for tool in tools[:1] if asked.get("parallel_tool_calls") is False else tools:
            items.append(
                {
                    "id": request.id("fc_", tool["name"]),
                    "type": "function_call",
                    "status": "completed",
                    "call_id": request.id("call_", tool["name"]),
                    "name": tool["name"],
                    "arguments": dump(fitting(tool.get("parameters") or {})).decode(),
                }
            )
        return items
    text = text_of((asked.get("text") or {}).get("format"))
    logprobs = (
        [logprob_of(word, asked.get("top_logprobs") or 0) for word in pieces(text)]
        if "message.output_text.logprobs" in (asked.get("include") or [])
        else []
    )
    words, limit = pieces(text), asked.get("max_output_tokens") or 1 << 30
    part = {"type": "output_text", "text": "".join(words[:limit]), "annotations": [], "logprobs": logprobs}
    return [
        *items,
        {
            "id": request.id("msg_"),
            "type": "message",
            "status": "completed" if len(words) <= limit else "incomplete",
            "role": "assistant",
            "content": [part],
        },
    ]


def _response_events(whole: dict[str, Any]) -> list[dict[str, Any]]:
    begun = whole | {"status": "in_progress", "output": [], "usage": None}
    events: list[dict[str, Any]] = [{"type": "response.created", "response": begun}, {"type": "response.in_progress", "response": begun}]
    for place, item in enumerate(whole["output"]):
        at = {"item_id": item["id"], "output_index": place}
        empty = {"message": {"content": []}, "function_call": {"arguments": ""}, "reasoning": {"summary": []}}[item["type"]]
        events.append({"type": "response.output_item.added", "output_index": place, "item": item | {"status": "in_progress"} | empty})
        if item["type"] == "function_call":
            events += [{"type": "response.function_call_arguments.delta", **at, "delta": piece} for piece in pieces(item["arguments"])]
            events.append({"type": "response.function_call_arguments.done", **at, "name": item["name"], "arguments": item["arguments"]})
        elif item["type"] == "reasoning":
            for number, part in enumerate(item["summary"]):
                of = at | {"summary_index": number}
                events.append({"type": "response.reasoning_summary_part.added", **of, "part": {"type": "summary_text", "text": ""}})
                events += [{"type": "response.reasoning_summary_text.delta", **of, "delta": piece} for piece in pieces(part["text"])]
                events += [
                    {"type": "response.reasoning_summary_text.done", **of, "text": part["text"]},
                    {"type": "response.reasoning_summary_part.done", **of, "part": part},
                ]
        else:
            part, of = item["content"][0], at | {"content_index": 0}
            events.append({"type": "response.content_part.added", **of, "part": part | {"text": "", "logprobs": []}})
            events += [
                {"type": "response.output_text.delta", **of, "delta": piece, "logprobs": part["logprobs"][number : number + 1]}
                for number, piece in enumerate(pieces(part["text"]))
            ]
            events += [
                {"type": "response.output_text.done", **of, "text": part["text"], "logprobs": part["logprobs"]},
                {"type": "response.content_part.done", **of, "part": part},
            ]
        events.append({"type": "response.output_item.done", "output_index": place, "item": item})
    return [*events, {"type": f"response.{whole['status']}", "response": whole}]


def response_failed_event(request: Request) -> bytes:
    """What OpenAI sends when a response fails on its way."""
    failed = {
        "id": request.id("resp_", None),
        "object": "response",
        "created_at": CREATED,
        "status": "failed",
        "error": {"code": "server_error", "message": "The model failed."},
        "incomplete_details": None,
        "instructions": None,
        "model": request.json.get("model"),
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "temperature": 1.0,
        "top_p": 1.0,
        "metadata": {},
        "usage": None,
    }
    return b"event: response.failed\ndata: " + dump({"type": "response.failed", "response": failed, "sequence_number": 99}) + b"\n\n"


def response_error_event() -> bytes:
    event = {"type": "error", "code": "server_error", "message": "The server had an error.", "param": None, "sequence_number": 99}
    return b"event: error\ndata: " + dump(event) + b"\n\n"


def _response_usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.prompt,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": 0},
        "output_tokens": usage.completion,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.prompt + usage.completion,
    }
