"""What goes wrong, in every protocol: errors, waits, cuts, slow providers, and clients that leave."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .case import CHAIN, CLAUDE, CONNECTION, OPENAI_MODEL, OTHER_MODEL, SPENT, Case, Own
from .chat import chat
from .lists import embed
from .messages import message
from .responses import respond

_EVENT = 330  # bytes that an event of the upstream has at most, about
PROTOCOLS = {"chat": chat, "responses": respond, "messages": message}
_SDK = {"messages": "anthropic"}
# What a stream that breaks off becomes: an event in the protocol's shape. OpenAI's SDKs yield that of a response as any other.
_CUT = {
    "chat": Own(CONNECTION),
    "responses": Own(CONNECTION, last_event="error"),
    "messages": Own((*CONNECTION, "APIStatusError")),
}
# Statuses of which the gateway says itself whose failure it is: the provider's key or account is not the caller's.
_OTHERS = {401: ("InternalServerError", "key"), 402: ("InternalServerError", "account"), 403: ("InternalServerError", "key")}


def failing(protocol: str, status: int, mode: str = "whole") -> Case:
    name = f"{protocol}-status-{status}{'' if mode == 'whole' else '-stream'}"
    ask = (
        embed(name, f"[case {name}] [fault status={status}]")
        if protocol == "embeddings"
        else PROTOCOLS[protocol](name, f"[fault status={status}]", mode=mode)
    )
    if status == 429:
        return Case(name, _SDK.get(protocol, "openai"), [ask], fails=True, own=Own(("RateLimitError",), (429,)), counts=False, alone=True, rest=1.1)
    if status in _OTHERS:
        return Case(name, _SDK.get(protocol, "openai"), [ask], fails=True, own=Own((_OTHERS[status][0],), says=_OTHERS[status][1]), counts=False)
    own = (
        Own(("OverloadedError",) if status == 529 and protocol == "messages" else ("InternalServerError", "ServiceUnavailableError"))
        if status >= 500
        else None
    )
    return Case(name, _SDK.get(protocol, "openai"), [ask], fails=True, own=own, counts=False)


def _waiting(protocol: str) -> Case:
    """A 429 makes its model wait, and no other of the same provider."""
    name, ask, model = f"{protocol}-other-model", PROTOCOLS[protocol], CLAUDE if protocol == "messages" else OPENAI_MODEL
    steps = [ask(name, "[fault once=429] [fault retry-after=2]", model=model), ask(name, model=OTHER_MODEL[model])]
    return Case(name, _SDK.get(protocol, "openai"), steps, fails=True, own=Own(("RateLimitError",), (429,)), alone=True, rest=2.1)


def faults(protocol: str, every_byte: bool) -> Iterator[Case]:
    sdk, ask = _SDK.get(protocol, "openai"), PROTOCOLS[protocol]

    def case(fault: str, text: str, mode: str = "chunks", **more: Any) -> Case:
        name = f"{protocol}-{fault}"
        # With it the upstream's bytes are the same either way.
        options = (
            {"stream_options": {"include_usage": True}}
            if protocol == "chat" and (mode == "bytes" or fault.startswith("cut-") and mode != "whole")
            else {}
        )
        step = {"leave_after": more.pop("leave_after")} if "leave_after" in more else {}
        return Case(name, sdk, [ask(name, text, mode=mode, **options, **step)], **more)

    for status in (400, 404, 422, 401, 402, 403, 500, 503, 529):
        yield failing(protocol, status)
    for status in (400, 500):
        yield failing(protocol, status, "chunks")
    yield failing(protocol, 429)
    yield failing(protocol, 429, "chunks")
    yield _waiting(protocol)
    # A key of ours whose quota is used up: the provider has nothing to do with it.
    spent = Own(("RateLimitError",), (429,), "quota")
    yield Case(f"{protocol}-key-spent", sdk, [ask(f"{protocol}-key-spent") | {"by": SPENT}], own=spent, asks=0, counts=False)
    if protocol in ("chat", "messages"):
        for mode in ("whole", "chunks"):
            name = f"{protocol}-fallback-{mode}"
            # Straight, the SDK tries the same model once more. With a sub key of its own: the one that stood in is asked first afterwards.
            step = ask(name, "[fault once=503]", model=CHAIN[0], mode=mode) | {"by": name}
            yield Case(name, sdk, [step], provider="anthropic", client={"retries": 1}, stand_in=CHAIN[1])
    for status in (429, 500):
        again = case(f"once-{status}", f"[fault once={status}]", "whole", client={"retries": 2})
        again.alone, again.rest = True, 0.2
        yield again
    yield case("slow-whole", "[fault slow]", "whole")
    yield case("slow", "[fault slow]")
    yield case("slow-bytes", "[fault slow]", "bytes")
    for size in (2, 3, 7, 64):
        yield case(f"split-{size}", f"[fault split={size}]", "bytes" if size in (3, 64) else "chunks")
    yield case("gap", "[fault gap=40]")
    yield case("silent", "[fault silent=400]")
    yield case("crlf", "[fault crlf]")
    yield case("crlf-split", "[fault crlf] [fault split=5]")
    yield case("crlf-bytes", "[fault crlf]", "bytes")
    yield case("gzip", "[fault gzip]", "whole")
    yield case("gzip-stream", "[fault gzip]")
    for events in (0, 1, 4):
        # OpenAI's SDKs yield the error event of a response as any other: they raise nothing, though nothing was counted.
        failing_stream = {"fails": None, "counts": False} if protocol == "responses" else {"fails": True}
        yield case(f"error-after-{events}", f"[fault error-after={events}]", **failing_stream)
    yield case("cut-whole", "[fault cut=100]", "whole", fails=True, own=Own((*CONNECTION, "InternalServerError")), counts=False)
    for at in (0, 1, 2, 5, 17, 100, 1500):
        yield case(f"cut-{at:04}", f"[fault cut={at}]", fails=True, own=_CUT[protocol])
    for at in range(_EVENT) if every_byte else (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 20, 60, 61, 100, 101, 102):
        yield case(f"cut-behind-event-{at:03}", f"[fault cut-event=3] [fault cut={at}]", fails=True, own=_CUT[protocol])
    yield from leaving(protocol, every_byte)


def leaving(protocol: str, every_byte: bool) -> Iterator[Case]:
    """The client goes: after some events, after any byte, or because it waits no longer."""
    sdk, ask = _SDK.get(protocol, "openai"), PROTOCOLS[protocol]
    for after in (0, 1, 3, 8):
        name = f"{protocol}-leave-{after}"
        yield Case(name, sdk, [ask(name, "[fault gap=150]", mode="chunks", leave_after=after)], leaves=True)
    options = {"stream_options": {"include_usage": True}} if protocol == "chat" else {}
    for after in range(1, 3 * _EVENT) if every_byte else (1, 2, 7, 40, 41, 180, 365, 512, 1024, 1400):
        name = f"{protocol}-leave-byte-{after:04}"
        yield Case(name, sdk, [ask(name, "[fault split=3] [fault gap=1]", mode="bytes", leave_after=after, **options)], leaves=True)
    name = f"{protocol}-timeout"
    yield Case(name, sdk, [ask(name, "[fault silent=1200]")], client={"timeout": 0.4}, fails=True, leaves=True)
