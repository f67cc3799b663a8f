"""Anthropic's messages: every feature, conversations whose thinking goes back as it came, and count_tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .case import CLAUDE, OPENAI_MODEL, PDF, PNG, SCHEMA, Case, Own, step_of, streamed


def message(
    name: str, text: str = "", *, said: list[Any] | None = None, model: str = CLAUDE, mode: str = "whole", call: str = "messages", **params: Any
) -> dict[str, Any]:
    leave = {"leave_after": params.pop("leave_after")} if "leave_after" in params else {}
    said = said or [{"role": "user", "content": f"[case {name}] {text} Grüße?"}]
    limit = {} if call == "count-tokens" else {"max_tokens": 4000}
    return step_of(call, {"model": model, "messages": said} | limit | params, mode, **leave)


def message_features() -> Iterator[Case]:
    tools = [{"name": name, "description": "Says “so”", "input_schema": SCHEMA} for name in ("weather", "clock")]
    plain: dict[str, dict[str, Any]] = {
        "text": {},
        "system": {"system": [{"type": "text", "text": "Be “so”.\n\\"}]},
        "tools-parallel": {"tools": tools},
        "tools-one": {"tools": tools, "tool_choice": {"type": "any", "disable_parallel_tool_use": True}},
        "tools-named": {"tools": tools, "tool_choice": {"type": "tool", "name": "clock"}},
        "tools-none": {"tools": tools, "tool_choice": {"type": "none"}},
        "schema": {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
        "thinking": {"thinking": {"type": "enabled", "budget_tokens": 2000}},
        "thinking-adaptive": {"thinking": {"type": "adaptive"}, "output_config": {"effort": "medium"}},
        "stop": {"stop_sequences": ["世"]},
        "length": {"max_tokens": 2},
        "tier": {"service_tier": "standard_only"},
        "metadata": {"metadata": {"user_id": "somebody"}},
    }
    for feature, params in plain.items():
        name = f"messages-{feature}"
        case = Case(name, "anthropic", [message(name, **params)])
        yield case
        yield streamed(case)
    contents = {
        "image": {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
        "image-address": {"type": "image", "source": {"type": "url", "url": "https://example.test/a.png?b=c"}},
        "document": {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PDF}, "title": "Größe"},
        "citations": {
            "type": "document",
            "source": {"type": "text", "media_type": "text/plain", "data": "The sky is blue."},
            "title": "Sky",
            "citations": {"enabled": True},
        },
    }
    for kind, part in contents.items():
        name = f"messages-{kind}"
        case = Case(name, "anthropic", [message(name, said=[{"role": "user", "content": [part, {"type": "text", "text": f"[case {name}]"}]}])])
        yield case
        yield streamed(case)
    yield from _message_conversations(tools)
    betas: dict[str, Any] = {"betas": ["context-1m-2025-08-07", "interleaved-thinking-2025-05-14"]}
    yield Case("messages-betas", "anthropic", [message("messages-betas", call="beta-messages", **betas)])
    yield Case("messages-betas-stream", "anthropic", [message("messages-betas-stream", call="beta-messages", mode="chunks", **betas)])
    for auth in ("x-api-key", "api-key"):  # the SDK itself sends a bearer
        yield Case(f"messages-{auth}", "anthropic", [message(f"messages-{auth}")], client={"auth": auth})
    yield Case("messages-helper", "anthropic", [message("messages-helper", mode="helper", tools=tools)])
    yield Case("messages-gzip-body", "anthropic", [message("messages-gzip-body", "x" * 3000)], client={"gzip": True})
    large = [
        {
            "role": "user",
            "content": [{"type": "text", "text": "[case messages-20mb]"}, {"type": "text", "text": {"$repeat": ["0123456789", 2_000_000]}}],
        }
    ]
    yield Case("messages-20mb", "anthropic", [message("messages-20mb", said=large)], alone=True)
    counted = Own(("NotFoundError",), (404,), "no-such-model")
    yield Case("messages-unknown-model", "anthropic", [message("messages-unknown-model", model="no-such-model")], fails=True, own=counted, asks=0)
    yield Case(
        "messages-unknown-key",
        "anthropic",
        [message("messages-unknown-key")],
        client={"gateway_key": "sk-nobody"},
        own=Own(("AuthenticationError",), (401,), "key"),
        asks=0,
    )
    yield Case(
        "messages-wrong-protocol",
        "anthropic",
        [message("messages-wrong-protocol", model=OPENAI_MODEL)],
        fails=True,
        own=Own(("BadRequestError",), (400,), "/v1/"),
        asks=0,
    )
    for feature, params in {
        "text": {},
        "tools": {"tools": tools, "system": "Be so."},
        "thinking": {"thinking": {"type": "enabled", "budget_tokens": 2000}},
    }.items():
        name = f"count-tokens-{feature}"
        yield Case(name, "anthropic", [message(name, call="count-tokens", **params)], counts=False)
    web = {"type": "web_search_20250305", "name": "web_search"}
    yield Case(
        "messages-web-search",
        "anthropic",
        [message("messages-web-search", tools=[web])],
        own=Own(("BadRequestError", "PermissionDeniedError"), (400, 403)),
        asks=0,
    )


def _message_conversations(tools: list[Any]) -> Iterator[Case]:
    def loop(name: str, calls: tuple[int, int], **params: Any) -> Case:
        question = {"role": "user", "content": f"[case {name}]"}
        results = [
            {"type": "tool_result", "tool_use_id": {"$from": [0, "content", str(at), "id"]}, "content": [{"type": "text", "text": "17 °C"}]}
            for at in calls
        ]
        again = [question, {"role": "assistant", "content": {"$from": [0, "content"]}}, {"role": "user", "content": results}]
        return Case(name, "anthropic", [message(name, said=[question], tools=tools, **params), message(name, said=again, tools=tools, **params)])

    for case in (loop("messages-tool-loop", (1, 2)), loop("messages-thinking-back", (3, 4), thinking={"type": "enabled", "budget_tokens": 2000})):
        yield case
        yield streamed(case)
    name = "messages-thinking-changed"
    changed = [
        {"role": "user", "content": f"[case {name}]"},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "Something else.", "signature": "AAAA"}, {"type": "text", "text": "a"}]},
        {"role": "user", "content": "b"},
    ]
    yield Case(name, "anthropic", [message(name, said=changed, thinking={"type": "enabled", "budget_tokens": 2000})], fails=True)
    name = "messages-cache"
    cached = message(
        name,
        system=[{"type": "text", "text": "x" * 5000, "cache_control": {"type": "ephemeral"}}],
        tools=[tools[0], tools[1] | {"cache_control": {"type": "ephemeral", "ttl": "1h"}}],
        tool_choice={"type": "none"},
    )
    case = Case(name, "anthropic", [cached, cached])
    yield case
    yield streamed(Case(name, "anthropic", [cached]))
    yield streamed(case, mode="bytes", name="bytes")
