"""OpenAI's responses: every feature, and what a gateway whose account strangers share must refuse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .case import OPENAI_MODEL, PDF, PNG, REFUSED, SCHEMA, Case, step_of, streamed


def respond(name: str, text: str = "", *, given: Any = None, model: str = OPENAI_MODEL, mode: str = "whole", **params: Any) -> dict[str, Any]:
    leave = {"leave_after": params.pop("leave_after")} if "leave_after" in params else {}
    return step_of("responses", {"model": model, "input": given or f"[case {name}] {text} Grüße?"} | params, mode, **leave)


def response_features() -> Iterator[Case]:
    tools = [{"type": "function", "name": name, "parameters": SCHEMA, "strict": True} for name in ("weather", "clock")]
    plain: dict[str, dict[str, Any]] = {
        "text": {},
        "instructions": {"instructions": "Be “so”.\n\\"},
        "tools-parallel": {"tools": tools},
        "tools-one": {"tools": tools, "parallel_tool_calls": False, "tool_choice": "required"},
        "schema": {"text": {"format": {"type": "json_schema", "name": "weather", "schema": SCHEMA, "strict": True}}},
        "reasoning": {"reasoning": {"effort": "medium", "summary": "auto"}},
        "logprobs": {"include": ["message.output_text.logprobs"], "top_logprobs": 2},
        "tier": {"service_tier": "flex"},
        "metadata": {"metadata": {"a": "ü"}, "user": "somebody"},
        "limits": {"max_output_tokens": 500, "temperature": 0.5, "top_p": 0.9, "truncation": "auto"},
        "unstored": {"store": False},
        "length": {"max_output_tokens": 3},
    }
    for feature, params in plain.items():
        name = f"responses-{feature}"
        case = Case(name, "openai", [respond(name, **params)])
        yield case
        yield streamed(case)
    contents = {
        "image": {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "auto"},
        "document": {"type": "input_file", "filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PDF}"},
    }
    for kind, part in contents.items():
        name = f"responses-{kind}"
        yield Case(name, "openai", [respond(name, given=[{"role": "user", "content": [{"type": "input_text", "text": f"[case {name}]"}, part]}])])
    name = "responses-tool-loop"
    question = {"role": "user", "content": f"[case {name}]"}
    results = [{"type": "function_call_output", "call_id": {"$from": [0, "output", str(at), "call_id"]}, "output": "17 °C"} for at in range(2)]
    calls = [{"$from": [0, "output", str(at)]} for at in range(2)]
    loop = Case(name, "openai", [respond(name, given=[question], tools=tools), respond(name, given=[question, *calls, *results], tools=tools)])
    yield loop
    yield streamed(loop)
    name = "responses-reasoning-back"
    asked: dict[str, Any] = {"reasoning": {"effort": "high", "summary": "auto"}, "store": False, "include": ["reasoning.encrypted_content"]}
    question = {"role": "user", "content": f"[case {name}]"}
    back = Case(
        name,
        "openai",
        [
            respond(name, given=[question], **asked),
            respond(
                name, given=[question, {"$from": [0, "output", "0"]}, {"$from": [0, "output", "1"]}, {"role": "user", "content": "And?"}], **asked
            ),
        ],
    )
    yield back
    yield streamed(back)
    name = "responses-cache"
    cached = respond(name, "x" * 5000, prompt_cache_key="k")
    yield Case(name, "openai", [cached, cached])
    name = "responses-previous-of-another-key"
    yield Case(name, "openai", [respond(name), respond(name, previous_response_id={"$from": [0, "id"]}) | {"by": "other"}], own=REFUSED, asks=1)
    name = "responses-previous"
    yield Case(name, "openai", [respond(name), respond(name, previous_response_id={"$from": [0, "id"]})])
    for after in (0, 5):
        name = f"responses-failed-after-{after}"
        yield Case(name, "openai", [respond(name, f"[fault failed-after={after}]", mode="chunks")], counts=False)
    yield Case("responses-helper", "openai", [respond("responses-helper", mode="helper")])
    yield Case("responses-gzip-body", "openai", [respond("responses-gzip-body", "x" * 3000)], client={"gzip": True})
    yield Case("responses-api-key", "openai", [respond("responses-api-key")], client={"auth": "api-key"})
    yield Case(
        "responses-20mb",
        "openai",
        [
            respond(
                "responses-20mb",
                given=[
                    {
                        "role": "user",
                        "content": [
                            {"type": "input_text", "text": "[case responses-20mb]"},
                            {"type": "input_text", "text": {"$repeat": ["0123456789", 2_000_000]}},
                        ],
                    }
                ],
            )
        ],
        alone=True,
    )


def response_refusals() -> Iterator[Case]:
    """What the gateway keeps from an account that strangers share."""
    for feature, params in {
        "background": {"background": True},
        "web-search": {"tools": [{"type": "web_search"}]},
        "conversation": {"conversation": "conv_of_somebody"},
        "file-id": {
            "given": [
                {
                    "role": "user",
                    "content": [{"type": "input_text", "text": "[case responses-file-id]"}, {"type": "input_file", "file_id": "file-of-somebody"}],
                }
            ]
        },
    }.items():
        name = f"responses-{feature}"
        yield Case(name, "openai", [respond(name, **params)], own=REFUSED, asks=0)
    name = "responses-previous-of-others"
    yield Case(name, "openai", [respond(name, previous_response_id="resp_of_somebody")], fails=True, own=REFUSED, asks=0)
