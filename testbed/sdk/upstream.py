"""The recording upstream: one server on loopback that is OpenAI, Anthropic and Google at once, keeps every request as it came, and fails as it
is asked to.

What goes wrong is said in the request's text, since that arrives through any gateway: `[fault NAME]` or `[fault NAME=NUMBER]`:

  status=503       answers with that status, in the provider's own shape; 429 has `Retry-After: 1`
  once=429         the same for the first request of a case; later ones are answered
  retry-after=N    another time to wait than one second; 0 names none
  slow             writes byte by byte
  gap=MS           waits between events
  silent=MS        waits before the first byte
  split=N          writes pieces of N bytes, wherever that cuts
  error-after=N    an error event after N events of a stream, and nothing behind it
  failed-after=N   the same with the event of a response that failed
  cut=N            closes the connection after N bytes of the body
  cut-event=N      the same, counted from behind the Nth event
  crlf             events whose lines end with \\r\\n, with comments between them
  gzip             a compressed answer, where the request allows one
"""

from __future__ import annotations

import gzip
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from . import anthropic_api, openai_api, responses_api
from .shared_api import Answer, Request, Usage

DIRECT, GATEWAY = "direct", "gateway"
PROVIDERS = ("openai", "anthropic", "google")
# Where a provider has its chat completions, if not below /v1.
PATHS = {"google": "/v1beta/openai"}
# Who asks is known by the key. Both keys of a provider belong to one account.
KEYS = {f"sk-{side}-{provider}-0123456789": (side, provider) for side in (DIRECT, GATEWAY) for provider in PROVIDERS}
_LONG_GAP = 30.0


def key_of(side: str, provider: str) -> str:
    return next(key for key, owner in KEYS.items() if owner == (side, provider))


@dataclass
class Recorded:
    """A request as it came, and what became of its answer."""

    side: str
    case: str
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    usage: Usage | None = None  # what the answer says
    sent: int = 0  # bytes of the answer's body
    left: bool = False  # the other side closed before it had all
    over: threading.Event = field(default_factory=threading.Event)


class Upstream:
    def __init__(self) -> None:
        self.recorded: list[Recorded] = []
        self._lock = threading.Lock()
        self._had: Counter[tuple[str, str]] = Counter()
        self._sdk = 0
        upstream = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                upstream.serve(self)

            do_POST = do_GET

            def log_message(self, format: str, *args: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, request: object, client_address: object) -> None:
                pass  # whoever left in the middle of a request

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def of(self, case: str, side: str) -> list[Recorded]:
        with self._lock:
            return [one for one in self.recorded if (one.case, one.side) == (case, side)]

    def forget(self) -> None:
        """For the next SDK, which starts again."""
        with self._lock:
            self.recorded.clear()
            self._had.clear()
            self._sdk += 1

    def serve(self, handler: Any) -> None:
        body = _body(handler)
        request = Request(handler.command, handler.path, {name.lower(): value for name, value in handler.headers.items()}, body)
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
        key = request.headers.get("x-api-key") or request.headers.get("api-key") or bearer
        side, provider = KEYS.get(key, ("", ""))
        note = Recorded(side, request.case, request.method, request.path, request.headers, body)
        with self._lock:
            self.recorded.append(note)
            request.seen_before, request.sdk = self._had[side, request.case], self._sdk
            self._had[side, request.case] += 1
        is_native = "/messages" in request.path or "anthropic-version" in request.headers
        try:
            answer = self._answer(request, side, provider, is_native)
            note.usage = answer.usage if answer.status == 200 else None
            _write(handler, request, answer, note, _error_event(request, is_native))
        except OSError:
            note.left, handler.close_connection = True, True
        finally:
            note.over.set()

    def _answer(self, request: Request, side: str, provider: str, is_native: bool) -> Answer:
        api_headers = (anthropic_api if provider == "anthropic" else openai_api).headers(request)
        if not side or (is_native and provider != "anthropic"):
            refused = anthropic_api.failure(request, 401) if is_native else openai_api.unauthorized()
            return _with(refused, api_headers)
        faults = request.faults
        status = faults.get("status", 0) or (faults.get("once", 0) if not request.seen_before else 0)
        if status:
            failed = anthropic_api.failure(request, status) if is_native else openai_api.failure(status)
            wait = str(faults.get("retry-after", 1))
            again = {"x-should-retry": "true" if status in (408, 409, 429) or status >= 500 else "false"}
            return _with(failed, api_headers | again | ({"retry-after": wait} if status == 429 and wait != "0" else {}))
        answer = (anthropic_api if is_native else openai_api).answer(request)
        return _with(answer, api_headers)


def _with(answer: Answer, headers: dict[str, str]) -> Answer:
    answer.headers = headers | {"content-type": "application/json" if answer.events is None else "text/event-stream; charset=utf-8"} | answer.headers
    return answer


def _error_event(request: Request, is_native: bool) -> Callable[[], bytes]:
    if is_native:
        return anthropic_api.error_event
    return responses_api.response_error_event if "/responses" in request.path else openai_api.error_event


def _body(handler: Any) -> bytes:
    """The body, decoded from its chunks; a gateway may compress it no further than it came."""
    if handler.headers.get("transfer-encoding", "").lower() == "chunked":
        whole = b""
        while size := int(handler.rfile.readline().split(b";")[0], 16):
            whole += handler.rfile.read(size)
            handler.rfile.readline()
        handler.rfile.readline()
    else:
        whole = handler.rfile.read(int(handler.headers.get("content-length") or 0))
    return gzip.decompress(whole) if handler.headers.get("content-encoding") == "gzip" else whole


def _write(handler: Any, request: Request, answer: Answer, note: Recorded, error_event: Callable[[], bytes]) -> None:
    faults = request.faults
    time.sleep(faults.get("silent", 0) / 1000)
    is_stream = answer.events is not None
    parts = list(answer.events) if answer.events is not None else [answer.body]
    if is_stream and "crlf" in faults:
        parts = [b": a comment\r\n\r\n" + part.replace(b"\n", b"\r\n") for part in parts]
    if is_stream and "error-after" in faults:
        parts = [*parts[: faults["error-after"]], error_event()]
    if is_stream and "failed-after" in faults:
        parts = [*parts[: faults["failed-after"]], responses_api.response_failed_event(request)]
    if "gzip" in faults and "gzip" in request.headers.get("accept-encoding", "") and answer.status == 200:
        answer.headers["content-encoding"], parts = "gzip", [gzip.compress(b"".join(parts), mtime=0)]
    handler.send_response(answer.status)
    for name, value in answer.headers.items():
        handler.send_header(name, value)
    whole = None if is_stream else sum(map(len, parts))
    handler.send_header(*(("transfer-encoding", "chunked") if whole is None else ("content-length", str(whole))))
    handler.end_headers()
    cut = faults["cut"] + sum(map(len, parts[: faults.get("cut-event", 0)])) if "cut" in faults else None
    for piece in _cut(_pieces(parts, faults), cut):
        if note.sent:
            time.sleep(min(faults.get("gap", 0) / 1000, _LONG_GAP) or (0.0003 if "slow" in faults else 0))
        handler.wfile.write(piece if whole is not None else b"%x\r\n%b\r\n" % (len(piece), piece))
        note.sent += len(piece)
    if cut is not None:
        handler.close_connection = True
    elif whole is None:
        handler.wfile.write(b"0\r\n\r\n")


def _pieces(parts: Iterable[bytes], faults: dict[str, int]) -> Iterator[bytes]:
    size = 1 if "slow" in faults else faults.get("split", 0)
    if not size:
        yield from parts
        return
    whole = b"".join(parts)
    yield from (whole[at : at + size] for at in range(0, len(whole), size))


def _cut(parts: Iterable[bytes], most: int | None) -> Iterator[bytes]:
    for part in parts:
        if most is not None and len(part) >= most:
            if most:
                yield part[:most]
            return
        most = None if most is None else most - len(part)
        yield part
