"""Chat completions: every feature, whole and streamed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .case import CLAUDE, GEMINI, OPENAI_MODEL, PDF, PNG, SCHEMA, WAV, Case, Own, step_of, streamed


def chat(
    name: str, text: str = "", *, said: list[Any] | None = None, model: str = OPENAI_MODEL, mode: str = "whole", **params: Any
) -> dict[str, Any]:
    leave = {"leave_after": params.pop("leave_after")} if "leave_after" in params else {}
    said = said or [{"role": "user", "content": f"[case {name}] {text} Grüße?"}]
    return step_of("chat", {"model": model, "messages": said} | params, mode, **leave)


def _function(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": "Says “so”", "parameters": SCHEMA, "strict": True} | more}


def parts_of(name: str, *parts: dict[str, Any]) -> list[Any]:
    return [{"role": "user", "content": [{"type": "text", "text": f"[case {name}]"}, *parts]}]


def chat_features() -> Iterator[Case]:
    tools = [_function("weather"), _function("clock")]
    plain: dict[str, dict[str, Any]] = {
        "text": {},
        "temperature": {"temperature": 0.25, "top_p": 1e-7, "presence_penalty": -2, "frequency_penalty": 1.5},
        "tools-parallel": {"tools": tools},
        "tools-one": {"tools": tools, "parallel_tool_calls": False, "tool_choice": "required"},
        "tools-none": {"tools": tools, "tool_choice": "none"},
        "tool-custom": {"tools": [{"type": "custom", "custom": {"name": "code", "description": "Python"}}]},
        "schema": {"response_format": {"type": "json_schema", "json_schema": {"name": "weather", "schema": SCHEMA, "strict": True}}},
        "json-object": {"response_format": {"type": "json_object"}},
        "n": {"n": 3},
        "n-many": {"n": 40},
        "logprobs": {"logprobs": True, "top_logprobs": 3},
        "logprobs-n": {"logprobs": True, "top_logprobs": 1, "n": 2},
        "seed": {"seed": 4711},
        "tier-flex": {"service_tier": "flex"},
        "tier-priority": {"service_tier": "priority"},
        "reasoning": {"reasoning_effort": "high"},
        "stop": {"stop": ["\n\n", "世"]},
        "logit-bias": {"logit_bias": {"50256": -100}},
        "length": {"max_completion_tokens": 3},
        "max-tokens": {"max_tokens": 2},
        "metadata": {"metadata": {"a": "ü"}, "store": True, "user": "somebody", "safety_identifier": "x"},
        "verbosity": {"verbosity": "low"},
        "prediction": {"prediction": {"type": "content", "content": "def f(): ..."}},
        "modalities": {"modalities": ["text"]},
    }
    for feature, params in plain.items():
        name = f"chat-{feature}"
        case = Case(name, "openai", [chat(name, **params)])
        yield case
        yield streamed(case)
        if feature in ("text", "n", "tools-parallel", "logprobs", "reasoning"):
            yield streamed(case, name="stream-usage", stream_options={"include_usage": True})
    contents = {
        "image": {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}", "detail": "low"}},
        "image-address": {"type": "image_url", "image_url": {"url": "https://example.test/a.png?b=c&d=%20"}},
        "document": {"type": "file", "file": {"filename": "Größe.pdf", "file_data": f"data:application/pdf;base64,{PDF}"}},
        "sound": {"type": "input_audio", "input_audio": {"data": WAV, "format": "wav"}},
    }
    for kind, part in contents.items():
        name = f"chat-{kind}"
        case = Case(name, "openai", [chat(name, said=parts_of(name, part, part))])
        yield case
        yield streamed(case)
    yield from _chat_more(tools)


def _chat_more(tools: list[Any]) -> Iterator[Case]:
    name = "chat-roles"
    yield Case(
        name,
        "openai",
        [
            chat(
                name,
                said=[
                    {"role": "system", "content": f"[case {name}]"},
                    {"role": "developer", "content": [{"type": "text", "text": "“x” \\ \u0001 \u2028"}]},
                    {"role": "user", "content": "a", "name": "ada"},
                    {"role": "assistant", "content": "b", "refusal": None},
                    {"role": "user", "content": "😀"},
                ],
            )
        ],
    )
    name = "chat-tool-loop"
    question = {"role": "user", "content": f"[case {name}]"}
    results = [
        {"role": "tool", "tool_call_id": {"$from": [0, "choices", "0", "message", "tool_calls", str(at), "id"]}, "content": "17 °C"}
        for at in range(2)
    ]
    loop = Case(
        name,
        "openai",
        [chat(name, said=[question], tools=tools), chat(name, said=[question, {"$from": [0, "choices", "0", "message"]}, *results], tools=tools)],
    )
    yield loop
    yield streamed(loop)
    name = "chat-cache"
    cached = chat(name, "x" * 5000, prompt_cache_key="k")
    yield Case(name, "openai", [cached, cached])
    yield streamed(Case("chat-cache", "openai", [cached, cached]), mode="bytes", stream_options={"include_usage": True})
    for name, options in {
        "chat-no-obfuscation": {"include_obfuscation": False},
        "chat-both-options": {"include_obfuscation": False, "include_usage": True},
    }.items():
        yield Case(name, "openai", [chat(name, mode="chunks", stream_options=options)])
    for name in ("chat-helper", "chat-claude-helper"):
        claude = "claude" in name
        yield Case(
            name, "openai", [chat(name, mode="helper", model=CLAUDE if claude else OPENAI_MODEL)], provider="anthropic" if claude else "openai"
        )
    gemini = Case("chat-gemini", "openai", [chat("chat-gemini", model=GEMINI)], provider="google")
    yield gemini
    yield streamed(gemini)
    yield Case("chat-beta-header", "openai", [chat("chat-beta-header")], client={"headers": {"OpenAI-Beta": "assistants=v2"}})
    for claude in (
        Case("chat-claude", "openai", [chat("chat-claude", model=CLAUDE)], provider="anthropic"),
        Case("chat-claude-tools", "openai", [chat("chat-claude-tools", model=CLAUDE, tools=tools)], provider="anthropic"),
    ):
        yield claude
        yield streamed(claude)
    for auth in ("x-api-key", "api-key"):
        yield Case(f"chat-{auth}", "openai", [chat(f"chat-{auth}")], client={"auth": auth})
    yield Case("chat-large", "openai", [chat("chat-large", said=parts_of("chat-large", {"type": "text", "text": {"$repeat": ['ü😀 "\\', 500_000]}}))])
    yield Case(
        "chat-20mb",
        "openai",
        [chat("chat-20mb", said=parts_of("chat-20mb", {"type": "text", "text": {"$repeat": ["0123456789", 2_000_000]}}))],
        alone=True,
    )
    yield Case("chat-gzip-body", "openai", [chat("chat-gzip-body", "x" * 3000)], client={"gzip": True})
    yield Case(
        "chat-unknown-model",
        "openai",
        [chat("chat-unknown-model", model="no-such-model")],
        fails=True,
        own=Own(("NotFoundError",), (404,), "no-such-model"),
        asks=0,
    )
    yield Case(
        "chat-unknown-key",
        "openai",
        [chat("chat-unknown-key")],
        client={"gateway_key": "sk-nobody"},
        own=Own(("AuthenticationError",), (401,), "key"),
        asks=0,
    )
    yield Case(
        "chat-no-messages",
        "openai",
        [chat("chat-no-messages", model=OPENAI_MODEL) | {"params": {"model": OPENAI_MODEL, "messages": [], "user": "[case chat-no-messages]"}}],
        fails=True,
    )
