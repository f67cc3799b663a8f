"""All cases: data for the drivers, and what may differ."""

from __future__ import annotations

from .case import Case, Own
from .chat import chat_features
from .faults import PROTOCOLS, failing, faults
from .lists import embedding_features, model_lists
from .messages import message_features
from .responses import response_features, response_refusals

__all__ = ["Case", "Own", "all_cases"]


def all_cases(every_byte: bool = False) -> list[Case]:
    """With `every_byte` streams are cut at, and left after, each byte of some events instead of a few."""
    made = [
        *chat_features(),
        *response_features(),
        *response_refusals(),
        *embedding_features(),
        *model_lists(),
        *message_features(),
        *(failing("embeddings", status) for status in (400, 429, 500)),
        *(case for protocol in PROTOCOLS for case in faults(protocol, every_byte)),
    ]
    names = [case.name for case in made]
    assert len(set(names)) == len(names), sorted({name for name in names if names.count(name) > 1})
    return made
