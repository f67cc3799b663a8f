"""What chat completions and responses have in common: errors, texts that fit a format, and their probabilities."""

from __future__ import annotations

from typing import Any

from .shared_api import SPEECH, Answer, dump, fitting


def error(status: int, message: str, kind: str, code: str | None = None, param: str | None = None) -> Answer:
    return Answer(status, dump({"error": {"message": message, "type": kind, "param": param, "code": code}}))


def invalid(message: str, param: str | None = None, code: str | None = None) -> Answer:
    return error(400, message, "invalid_request_error", code, param)


def reasoning_of(effort: Any) -> int:
    return 0 if effort in (None, "none") else 64


def text_of(form: dict[str, Any] | None, number: int = 0) -> str:
    if form and form.get("type") == "json_schema":
        return dump(fitting((form.get("json_schema") or form)["schema"])).decode()
    if form and form.get("type") == "json_object":
        return '{"answer": "Grüße"}'
    return SPEECH if number == 0 else f"{number}. {SPEECH}"


def logprob_of(word: str, top: int) -> dict[str, Any]:
    def one(text: str, value: float) -> dict[str, Any]:
        return {"token": text, "logprob": value, "bytes": list(text.encode())}

    return one(word, -0.01) | {"top_logprobs": [one(word + "?" * place, -0.01 - place) for place in range(top)]}
