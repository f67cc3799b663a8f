"""drive.py [openai|anthropic]     runs cases with the official Python SDK: the plan on standard input, a line of JSON per case and target
on standard output. Runs in the environment that testbed/install.sh made; testbed/sdk/cases says what a case is, and drive.mjs is
the same for Node.
"""

from __future__ import annotations

import gzip
import json
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from typing import Any

import anthropic
import httpx2
import openai

WIDTH = 8  # cases at once
PRINTING = threading.Lock()
DIRECT = "direct"


class Compressing(httpx2.HTTPTransport):
    """For the requests that are sent compressed: no SDK does so by itself."""

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        body = gzip.compress(request.read())
        headers = [(name, value) for name, value in request.headers.items() if name.lower() not in ("content-length", "content-encoding")]
        packed = httpx2.Request(
            request.method, request.url, headers=[*headers, ("content-encoding", "gzip")], content=body, extensions=request.extensions
        )
        return super().handle_request(packed)


class Clients:
    """A client for each target and its options, made once: each has its connections."""

    def __init__(self, targets: dict[str, Any]) -> None:
        self._targets, self._lock, self._made = targets, threading.Lock(), dict[str, Any]()

    def get(self, sdk: str, target: str, provider: str, options: dict[str, Any]) -> Any:
        name = json.dumps([sdk, target, provider, options], sort_keys=True)
        with self._lock:
            if name not in self._made:
                self._made[name] = self._make(sdk, self._targets[target], provider, options)
            return self._made[name]

    def _make(self, sdk: str, target: Any, provider: str, options: dict[str, Any]) -> Any:
        key = options.get("key") or target["keys"][provider]
        headers: dict[str, Any] = dict(options.get("headers", {}))
        if (auth := options.get("auth", "bearer")) != "bearer":
            headers[auth] = key
        given = {"max_retries": options.get("retries", 0), "timeout": options.get("timeout", 60), "default_headers": headers, "api_key": key}
        if options.get("gzip"):
            given["http_client"] = httpx2.Client(transport=Compressing())
        if sdk == "openai":
            return openai.OpenAI(base_url=target["url"] + target["paths"].get(provider, "/v1"), **given)
        return anthropic.Anthropic(base_url=target["url"], **given)


CALLS = {
    "chat": lambda client: client.chat.completions,
    "responses": lambda client: client.responses,
    "embeddings": lambda client: client.embeddings,
    "messages": lambda client: client.messages,
    "beta-messages": lambda client: client.beta.messages,
    "count-tokens": lambda client: client.messages,
    "models": lambda client: client.models,
    "model": lambda client: client.models,
}
METHODS = {"count-tokens": "count_tokens", "models": "list", "model": "retrieve"}
FINAL = ("get_final_completion", "get_final_response", "get_final_message")


def plain(value: Any) -> Any:
    if isinstance(value, (openai.BaseModel, anthropic.BaseModel)):
        return value.model_dump(mode="json", exclude_unset=True, warnings=False)
    return [plain(one) for one in value] if isinstance(value, list) else value


def filled(value: Any, answers: list[Any]) -> Any:
    """The parameters, with what earlier steps answered in the places that ask for it: as the SDK's objects, as users pass them."""
    if isinstance(value, list):
        return [filled(one, answers) for one in value]
    if not isinstance(value, dict):
        return value
    if "$repeat" in value:
        return value["$repeat"][0] * value["$repeat"][1]
    if "$from" in value:
        return reduce(
            lambda at, part: at[int(part)] if part.isdigit() or part[0] == "-" else getattr(at, part), value["$from"][1:], answers[value["$from"][0]]
        )
    return {name: filled(one, answers) for name, one in value.items()}


class Step:
    """One call: what the SDK returned or raised, and the headers that came with it."""

    def __init__(self) -> None:
        self.answer: Any = None
        self.seen: dict[str, Any] = {}

    def run(self, client: Any, step: dict[str, Any], params: dict[str, Any]) -> None:
        call, mode = step["call"], step.get("mode", "whole")
        resource, method = CALLS[call](client), METHODS.get(call, "create")
        began = time.monotonic()
        try:
            getattr(self, f"_{mode}")(resource, method, params, step)
        except Exception as error:  # whatever the SDK raises is its answer
            self._failed(error)
        self.seen["seconds"] = round(time.monotonic() - began, 3)

    def _headers(self, response: Any) -> None:
        self.seen |= {"status": response.status_code, "headers": {name.lower(): value for name, value in response.headers.items()}}

    def _whole(self, resource: Any, method: str, params: dict[str, Any], _: Any) -> None:
        raw = getattr(resource.with_raw_response, method)(**params)
        self._headers(raw.http_response)
        self.answer = raw.parse()
        self.seen["value"] = plain(self.answer)

    def _chunks(self, resource: Any, method: str, params: dict[str, Any], step: dict[str, Any]) -> None:
        raw = getattr(resource.with_raw_response, method)(**params, stream=True)
        self._headers(raw.http_response)
        chunks = self.seen["chunks"] = []
        with raw.parse() as stream:
            if step.get("leave_after") == 0:
                return
            for chunk in stream:
                chunks.append(plain(chunk))
                if len(chunks) == step.get("leave_after"):
                    return

    def _bytes(self, resource: Any, method: str, params: dict[str, Any], step: dict[str, Any]) -> None:
        """The stream's own bytes, until so many are there."""
        got, most = b"", step.get("leave_after", 1 << 40)
        with getattr(resource.with_streaming_response, method)(**params, stream=True) as response:
            self._headers(response.http_response)
            try:
                for piece in response.iter_bytes() if most else ():
                    got += piece
                    if len(got) >= most:
                        break
            finally:
                self.seen["raw"] = got[:most].decode("latin-1")

    def _helper(self, resource: Any, _: str, params: dict[str, Any], _step: Any) -> None:
        events = self.seen["events"] = []
        with resource.stream(**params) as stream:
            self._headers(getattr(stream, "response", None) or stream._response)  # OpenAI's has no other way
            for event in stream:
                events.append(event.type)
            self.answer = next(getattr(stream, name) for name in FINAL if hasattr(stream, name))()
        self.seen["value"] = plain(self.answer)

    def _failed(self, error: Exception) -> None:
        fields: dict[str, Any] = {"class": type(error).__name__, "message": str(error)}
        for name in ("status_code", "code", "param", "type", "body", "request_id"):
            fields[name] = getattr(error, name, None)
        self.seen["error"] = fields
        if (response := getattr(error, "response", None)) is not None:
            self._headers(response)


def run(clients: Clients, targets: dict[str, Any], case: dict[str, Any], target: str) -> None:
    options = dict(case["client"])
    own = options.pop("gateway_key", "")
    if own and target != DIRECT:
        options["key"] = own
    answers, seen = [], []
    for step in case["steps"]:
        other = {"key": key} if (key := targets[target]["others"].get(step.get("by"))) else {}
        client = clients.get(case["sdk"], target, case["provider"], options | other)
        one = Step()
        try:
            params = filled(step["params"], answers)
        except (AttributeError, IndexError, TypeError, KeyError) as missing:
            seen.append({"error": {"class": "NoEarlierAnswer", "message": str(missing)}})
            break
        if "auth" in options:  # another header has the key
            params["extra_headers"] = {"Authorization": (openai if case["sdk"] == "openai" else anthropic).Omit()}
        one.run(client, step, params)
        answers.append(one.answer)
        seen.append(one.seen)
    with PRINTING:
        print(json.dumps({"case": case["name"], "target": target, "steps": seen}), flush=True)


def in_turn(clients: Clients, targets: dict[str, Any], cases: list[dict[str, Any]], target: str) -> None:
    for case in cases:
        run(clients, targets, case, target)
        time.sleep(case["rest"])


def main() -> int:
    plan = json.load(sys.stdin)
    targets, cases = plan["targets"], plan["cases"]
    clients = Clients(targets)
    with ThreadPoolExecutor(WIDTH) as pool:
        beside = [pool.submit(run, clients, targets, case, target) for case in cases for target in targets if target == DIRECT or not case["alone"]]
        for done in beside:
            done.result()
        # A provider that asked to wait is left alone: what comes after such a case comes after its rest.
        alone = [[case for case in cases if case["alone"] and case["provider"] == provider] for provider in ("openai", "anthropic")]
        for done in [pool.submit(in_turn, clients, targets, lane, target) for target in targets if target != DIRECT for lane in alone]:
            done.result()
    return 0


if __name__ == "__main__":
    sys.exit(main())
