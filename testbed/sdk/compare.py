"""Whether a case went through the gateway as it goes straight to the upstream: what the upstream got, what the SDK returned, and what
stands in the request log. Each function answers what is wrong, in words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from .cases import Case, Own
from .upstream import Recorded

# Headers of a request that reach the provider as the SDK sent them.
SENT = ("content-type", "accept", "openai-beta", "anthropic-beta", "anthropic-version")
# Headers of an answer that a client may act on.
RETURNED = re.compile(r"content-type|retry-after(-ms)?|x-should-retry|request-id|(x|anthropic)-ratelimit-.+|openai-(processing-ms|version)")
_OPTIONS = re.compile(rb'"stream_options":\{[^{}]*\},?|,"stream_options":\{[^{}]*\}')
# The classes that Python and Node have for errors by status.
_ERROR_TYPES = {
    "invalid_request_error",
    "authentication_error",
    "billing_error",
    "permission_error",
    "not_found_error",
    "request_too_large",
    "rate_limit_error",
    "api_error",
    "timeout_error",
    "overloaded_error",
}
_SHOWN = 300

Steps = list[dict[str, Any]]


def request_problems(case: Case, direct: list[Recorded], gateway: list[Recorded], sub_key: str) -> Iterator[str]:
    """What the upstream got."""
    wanted = len(direct) if case.asks is None else case.asks
    if len(gateway) != wanted:
        yield f"the upstream was asked {len(gateway)} times, not {wanted}"
    for one in gateway:
        if any(sub_key in value for value in one.headers.values()) or sub_key.encode() in one.body or sub_key in one.path:
            yield "the sub key reached the upstream"
    for mine, theirs in zip(direct, gateway, strict=False):
        if (mine.method, mine.path) != (theirs.method, theirs.path):
            yield f"{theirs.method} {theirs.path} instead of {mine.method} {mine.path}"
        if problem := body_problem(mine.body, as_asked(case, theirs.body), may_ask_for_usage=mine.path.endswith("/chat/completions")):
            yield problem
        for name in SENT:
            if mine.headers.get(name) != theirs.headers.get(name):
                yield f"the header {name} is {theirs.headers.get(name)!r} instead of {mine.headers.get(name)!r}"


def as_asked(case: Case, text: bytes) -> bytes:
    """With the name of the model that was asked for in the place of the one that stands in for it."""
    return text.replace(case.stand_in.encode(), case.steps[0]["params"]["model"].encode()) if case.stand_in else text


def body_problem(direct: bytes, gateway: bytes, *, may_ask_for_usage: bool) -> str:
    """Byte for byte, but for the wish for a stream's usage."""
    if direct == gateway:
        return ""
    if not may_ask_for_usage:
        return f"the body is not byte for byte the same: {first_difference(direct, gateway)}"
    mine, theirs = json.loads(direct), json.loads(gateway)
    if not mine.get("stream") or (mine.get("stream_options") or {}).get("include_usage"):
        return f"the body was changed without need: {first_difference(direct, gateway)}"
    if (mine.get("stream_options") or {}) | {"include_usage": True} != theirs.get("stream_options"):
        return f"stream_options became {theirs.get('stream_options')}"
    return (
        ""
        if _OPTIONS.sub(b"", direct, 1) == _OPTIONS.sub(b"", gateway, 1)
        else f"more than stream_options was changed: {first_difference(direct, gateway)}"
    )


def first_difference(mine: bytes, theirs: bytes) -> str:
    at = next((place for place, (one, other) in enumerate(zip(mine, theirs, strict=False)) if one != other), min(len(mine), len(theirs)))
    return f"at byte {at} {theirs[at : at + 60]!r} instead of {mine[at : at + 60]!r}"


def answer_problems(case: Case, direct: Steps, gateway: Steps) -> Iterator[str]:
    """What the SDK returned or raised."""
    failed = [step["error"] for step in direct if "error" in step]
    if case.fails is not None and bool(failed) != case.fails:
        yield f"straight to the upstream it {'fails: ' + shown(failed[0]) if failed else 'does not fail'}"
        return
    if len(direct) != len(gateway):
        yield f"it ended after {len(gateway)} of {len(direct)} calls: {shown(gateway[-1].get('error'))}"
        return
    if case.stand_in:
        gateway = json.loads(as_asked(case, json.dumps(gateway).encode()))
        if gateway[-1].get("headers", {}).get("x-tidepool-model") is None:
            yield "the answer does not say which model stands in"
    for number, (mine, theirs) in enumerate(zip(direct, gateway, strict=True), 1):
        where = f"call {number}: " if len(direct) > 1 else ""
        # What only the gateway refuses is the last call: those before it prepare it, and go through.
        asked = case if case.fails or number == len(direct) else replace(case, own=None)
        yield from (where + problem for problem in step_problems(asked, mine, theirs))


def step_problems(case: Case, mine: dict[str, Any], theirs: dict[str, Any]) -> Iterator[str]:
    if case.name.startswith("models-") and "value" in mine:
        yield from _shape_problems(mine, theirs)
        return
    for part in ("value", "events", "raw"):
        one, other = (without_empty_usage([step.get(part)])[0] for step in (mine, theirs))
        if one != other and not (case.own and "error" in theirs and part == "value"):
            yield f"{part}: {difference(one, other)}"
    chunks, others = without_empty_usage(mine.get("chunks", [])), without_empty_usage(theirs.get("chunks", []))
    if said_as_event(case, theirs):
        others = others[:-1]
    if chunks != others and not (case.own and not others and not case.fails):
        yield f"chunks: {difference(chunks, others)}"
    if said_as_event(case, theirs):
        return
    if case.own and ("error" in mine or not case.fails):
        yield from _own_problems(case, case.own, mine, theirs)
        return
    if without_id(mine.get("error")) != without_id(theirs.get("error")):
        yield f"error: {difference(without_id(mine.get('error')), without_id(theirs.get('error')))}; {shown(theirs.get('error'))}"
        if "error" not in mine:
            return
    if mine.get("status") != theirs.get("status"):
        yield f"status {theirs.get('status')} instead of {mine.get('status')}"
    yield from header_problems(mine.get("headers", {}), theirs.get("headers", {}))


def said_as_event(case: Case, step: dict[str, Any]) -> bool:
    """Whether the gateway said its error as the last event of the stream, where the SDK yields that."""
    chunks = step.get("chunks") or [{}]
    return bool(case.own and case.own.last_event and chunks[-1].get("type") == case.own.last_event)


def without_empty_usage(chunks: list[Any]) -> list[Any]:
    """A stream whose usage the gateway asks for says `"usage": null` in every chunk, as OpenAI's reference has it."""
    return [
        {name: value for name, value in chunk.items() if (name, value) != ("usage", None)} if isinstance(chunk, dict) else chunk for chunk in chunks
    ]


def without_id(error: dict[str, Any] | None) -> dict[str, Any]:
    """The SDK's error without the request's id: that is among the headers."""
    return {name: value for name, value in (error or {}).items() if name != "request_id"}


def _own_problems(case: Case, own: Own, mine: dict[str, Any], theirs: dict[str, Any]) -> Iterator[str]:
    error = theirs.get("error")
    if not error:
        yield f"no error, but {shown(theirs)}"
        return
    if error["class"] not in (*own.classes, (mine.get("error") or {}).get("class")) or (own.says and error["class"] not in own.classes):
        yield f"{error['class']} instead of {' or '.join(own.classes)}: {shown(error)}"
    if own.status and error.get("status_code") not in own.status:
        yield f"status {error.get('status_code')} instead of {own.status}"
    if own.says and own.says not in error["message"]:
        yield f"the message does not say {own.says!r}: {error['message'][:_SHOWN]}"
    if mine.get("status") == theirs.get("status") == 429:
        limits = {name: value for name, value in mine["headers"].items() if name == "retry-after" or "-ratelimit-" in name}
        yield from header_problems(limits, theirs["headers"])
    if (error.get("status_code") or 0) >= 400:
        yield from shape_of_error(error.get("body"), is_anthropic=case.sdk == "anthropic")


def shape_of_error(body: Any, *, is_anthropic: bool) -> Iterator[str]:
    """OpenAI's SDKs unwrap `error`, Anthropic's do not."""
    inner = body.get("error", body) if isinstance(body, dict) else None
    if not isinstance(inner, dict) or not isinstance(inner.get("message"), str) or not isinstance(inner.get("type"), str):
        yield f"no error of the API's shape: {shown(body)}"
    elif is_anthropic and (body.get("type") != "error" or inner["type"] not in _ERROR_TYPES):
        yield f"no error of Anthropic's shape: {shown(body)}"


def _shape_problems(mine: dict[str, Any], theirs: dict[str, Any]) -> Iterator[str]:
    """The gateway's own list of models has other members, but the same fields."""

    def fields(step: dict[str, Any]) -> Any:
        value = step.get("value")
        if not isinstance(value, dict):
            return value
        rows = value.get("data", [value])
        return sorted(set(value) - {"lifecycle"}), [sorted(name for name in row if name != "lifecycle") for row in rows[:1]]

    if fields(mine) != fields(theirs):
        yield f"fields: {difference(fields(mine), fields(theirs))}; {shown(theirs.get('error'))}"


def header_problems(mine: Mapping[str, str], theirs: Mapping[str, str]) -> Iterator[str]:
    for name, value in mine.items():
        if RETURNED.fullmatch(name) and theirs.get(name) != value:
            yield f"the header {name} is {theirs.get(name)!r} instead of {value!r}"
    # The gateway's own id stands in x-request-id, the provider's in x-upstream-request-id.
    if (wanted := mine.get("x-request-id")) and wanted not in (theirs.get("x-request-id"), theirs.get("x-upstream-request-id")):
        yield f"the upstream's request id {wanted} is lost"


def difference(mine: Any, theirs: Any, at: str = "") -> str:
    """The first place where two values differ."""
    if isinstance(mine, dict) and isinstance(theirs, dict):
        for name in [*mine, *theirs]:
            if name not in mine or name not in theirs or mine[name] != theirs[name]:
                return difference(mine.get(name, "(missing)"), theirs.get(name, "(missing)"), f"{at}.{name}")
    if isinstance(mine, list) and isinstance(theirs, list):
        for place, (one, other) in enumerate(zip(mine, theirs, strict=False)):
            if one != other:
                return difference(one, other, f"{at}[{place}]")
        return f"{at} has {len(theirs)} instead of {len(mine)}, then {shown((theirs[len(mine) :] or mine[len(theirs) :])[0])}"
    if isinstance(mine, str) and isinstance(theirs, str):
        return f"{at} {first_difference(mine.encode(), theirs.encode())}"
    return f"{at} is {shown(theirs)} instead of {shown(mine)}"


def shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


Row = dict[str, Any]


def row_of(step: dict[str, Any], rows: Mapping[str, Row]) -> Row | None:
    """The row of the request log whose id the answer's headers name."""
    headers = step.get("headers", {})
    return next((rows[headers[name]] for name in ("x-request-id", "request-id", "x-tidepool-request-id") if headers.get(name) in rows), None)


def row_problems(case: Case, steps: Steps, asked: list[Recorded], rows: Mapping[str, Row]) -> Iterator[str]:
    """What the log says of each call, against what the upstream said."""
    asked = asked[-1:] if case.stand_in else asked
    if not case.counts or len(asked) != len(steps):
        return
    for step, said, plan in zip(steps, asked, case.steps, strict=True):
        row = row_of(step, rows)
        if row is None:
            if not case.leaves and step.get("headers"):
                yield f"no row in the request log for {step['headers'].get('x-request-id') or step['headers'].get('request-id')}"
            continue
        yield from _row_problems(case, step, said, plan, row)


def _row_problems(case: Case, step: dict[str, Any], said: Recorded, plan: dict[str, Any], row: Row) -> Iterator[str]:
    if row["model"] != (case.stand_in or plan["params"]["model"]):
        yield f"the log has the model {row['model']}"
    if bool(row["is_stream"]) != (plan["mode"] != "whole"):
        yield f"the log says is_stream = {row['is_stream']}"
    if said.usage is None:
        if row["type"] == 2 or row["prompt_tokens"] or row["completion_tokens"]:
            yield f"an error of the upstream is logged as {shown(row)}"
        return
    is_whole = "error" not in step and not said_as_event(case, step) and not case.leaves
    if is_whole and (row["estimated"] or row["type"] != 2):
        yield f"what the upstream counted is estimated, or no success: {shown(row)}"
    if not row["estimated"] and row["type"] == 2:
        got, wanted = (row["prompt_tokens"], row["completion_tokens"]), (said.usage.prompt, said.usage.completion)
        if got != wanted:
            yield f"the log counts {got} tokens, the upstream said {wanted}"
        for column, value in (
            ("cache_read_tokens", said.usage.cached),
            ("cache_write_tokens", said.usage.cache_write),
            ("reasoning_tokens", said.usage.reasoning),
        ):
            if column in row and row[column] != value:
                yield f"the log has {column} = {row[column]}, the upstream said {value}"
    elif row["prompt_tokens"] < said.usage.prompt and said.sent:
        yield f"the estimate of the input, {row['prompt_tokens']}, is below what is billed, {said.usage.prompt}"


def leaving_problems(case: Case, asked: list[Recorded], seconds: float) -> Iterator[str]:
    """Whoever has left in the middle of a stream is not answered to its end at the account's cost."""
    for one, step in zip(asked, case.steps, strict=False):
        if not one.over.wait(seconds):
            yield "the upstream still writes after the client has left"
        elif step["mode"] == "chunks" and step.get("leave_after", 0) > 0 and not one.left:
            yield f"the upstream wrote its answer to the end ({one.sent} bytes) after the client had left"
