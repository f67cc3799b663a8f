"""Embeddings, and the lists of models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .case import CLAUDE, EMBEDDING, OPENAI_MODEL, Case, Own, step_of


def embed(name: str, given: Any = None, **params: Any) -> dict[str, Any]:
    return step_of("embeddings", {"model": EMBEDDING, "input": given or f"[case {name}] Grüße", "user": f"[case {name}]"} | params)


def embedding_features() -> Iterator[Case]:
    for feature, params in {
        "text": {},
        "list": {"given": ["Grüße", "世界", "😀"]},
        "tokens": {"given": [[1, 2, 3], [4, 5]]},
        "dimensions": {"dimensions": 4},
        "floats": {"encoding_format": "float"},
        "base64": {"encoding_format": "base64"},
    }.items():
        name = f"embeddings-{feature}"
        yield Case(name, "openai", [embed(name, **params)])
    yield Case("embeddings-gzip-body", "openai", [embed("embeddings-gzip-body")], client={"gzip": True})


def model_lists() -> Iterator[Case]:
    """The gateway's own list, so only their shape is the upstream's."""
    for sdk, model in (("openai", OPENAI_MODEL), ("anthropic", CLAUDE)):
        yield Case(f"models-{sdk}", sdk, [step_of("models", {})], asks=0, counts=False)
        yield Case(f"models-{sdk}-one", sdk, [step_of("model", {"model" if sdk == "openai" else "model_id": model})], asks=0, counts=False)
        yield Case(
            f"models-{sdk}-none",
            sdk,
            [step_of("model", {"model" if sdk == "openai" else "model_id": "no-such-model"})],
            fails=True,
            own=Own(("NotFoundError",), (404,)),
            asks=0,
            counts=False,
        )
