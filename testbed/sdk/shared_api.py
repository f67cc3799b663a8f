"""What both providers' APIs of the recording upstream are made of: a request, an answer, and values that fit a JSON schema.

Answers are made of the request and the case's name alone, so that the same request gets the same answer whichever way it came.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import Any

CREATED = 1_790_000_000
# Bytes of two, three and four, a quote, a backslash and a line break: whoever cuts or escapes wrongly is seen.
SPEECH = 'Grüße, 世界! 😀 He said "so" \\ and\nleft.'
# A request says in its text which case it belongs to, and what should go wrong: [case NAME] [fault cut=120].
_CASE = re.compile(rb"\[case ([\w.-]+)\]")
_FAULT = re.compile(rb"\[fault ([\w-]+)(?:=(\d+))?\]")


@dataclass
class Usage:
    """What the answer says, in the platform's terms: `prompt` is all input, `completion` has the reasoning in it. What it does not say is None."""

    prompt: int = 0
    completion: int = 0
    cached: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]  # names in lower case
    body: bytes
    seen_before: int = 0  # how often the account has had this case
    sdk: int = 0  # the number of the SDK that asks: an id is never given twice
    json: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        try:
            parsed = json.loads(self.body) if self.body else {}
        except ValueError:
            parsed = None
        self.json = parsed if isinstance(parsed, dict) else {}
        self.is_json = isinstance(parsed, dict)

    @property
    def case(self) -> str:
        found = _CASE.search(self.body)
        return found[1].decode() if found else ""

    @property
    def faults(self) -> dict[str, int]:
        return {name.decode(): int(number or 0) for name, number in _FAULT.findall(self.body)}

    def id(self, prefix: str, *more: object) -> str:
        text = "/".join([str(self.sdk), self.case, str(len(self.json.get("messages") or self.json.get("input") or "")), *map(str, more)])
        return prefix + hashlib.sha256(text.encode()).hexdigest()[:24]


@dataclass
class Answer:
    """`events` are the pieces of a stream, else `body` is all of it."""

    status: int
    body: bytes = b""
    events: list[bytes] | None = None
    headers: dict[str, str] = field(default_factory=dict)
    usage: Usage | None = None


def dump(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def tokens(*values: Any) -> int:
    """About as many as a real model would count: one for four bytes."""
    return 3 + sum(len(dump(value)) for value in values if value) // 4


def pieces(text: str) -> list[str]:
    """Text as a model streams it, a word at a time."""
    return re.findall(r"\s*\S+|\s+$", text)


def fitting(schema: dict[str, Any]) -> Any:
    """A value that a JSON schema allows."""
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = kind[0]
    if kind == "object" or "properties" in schema:
        return {name: fitting(part) for name, part in schema.get("properties", {}).items()}
    if kind == "array":
        return [fitting(schema.get("items", {}))]
    return {"integer": 7, "number": 1.5, "boolean": True, "null": None}.get(str(kind), 'Zürich "west"')


def has_bad_media(value: Any) -> bool:
    """Whether some data: address or base64 of the request has been damaged."""
    if isinstance(value, list):
        return any(map(has_bad_media, value))
    if isinstance(value, dict):
        return any(map(has_bad_media, value.values()))
    if isinstance(value, str) and value.startswith("data:"):
        try:
            return not base64.b64decode(value.partition(";base64,")[2], validate=True)
        except ValueError:
            return True
    return False
