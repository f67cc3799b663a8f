"""What must be true of the tables after whatever happened: the product's own rules, and those of the request log and of claims.
What an index of the schema forbids (two live bindings of an instance, two runs of a slot) is not asked for again.

The rules of store/src/invariant.rs are read from there, so that there is one list of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from .machine import ROOT

Ask = Callable[[str], list[tuple[str, ...]]]

_RULE = re.compile(r'Rule \{\s*name: "(?P<name>[^"]+)",\s*sql: "(?P<sql>[^"]+)",\s*\}')
_OURS = {
    "a request is in the log once": "SELECT request_id FROM request_log GROUP BY request_id HAVING COUNT(*) > 1",
    "the sums by quarters are those of the log":
        "SELECT s.token_name FROM (SELECT token_name, SUM(requests) AS n, SUM(prompt_tokens + completion_tokens) AS t, SUM(quota) AS q "
        "FROM usage_slot GROUP BY token_name) s LEFT JOIN (SELECT token_name, COUNT(*) AS n, SUM(prompt_tokens + completion_tokens) AS t, "
        "SUM(quota) AS q FROM request_log WHERE type = 2 GROUP BY token_name) r ON r.token_name = s.token_name "
        "WHERE s.n <> COALESCE(r.n, 0) OR s.t <> COALESCE(r.t, 0) OR s.q <> COALESCE(r.q, 0)",
    "every request of the log is in the sums":
        "SELECT DISTINCT token_name FROM request_log WHERE type = 2 AND token_name NOT IN (SELECT token_name FROM usage_slot)",
    "the sums by days are those by quarters":
        "SELECT d.token_name FROM (SELECT token_name, SUM(requests) AS n, SUM(quota) AS q FROM usage_daily GROUP BY token_name) d "
        "JOIN (SELECT token_name, SUM(requests) AS n, SUM(quota) AS q FROM usage_slot GROUP BY token_name) s "
        "ON s.token_name = d.token_name WHERE d.n <> s.n OR d.q <> s.q",
    "an employee has one claimed instance":
        "SELECT user_id FROM binding WHERE ended_at IS NULL AND origin = 'claimed' GROUP BY user_id HAVING COUNT(*) > 1",
}


def rules() -> dict[str, str]:
    source = (ROOT / "crates/store/src/invariant.rs").read_text(encoding="utf-8")
    found = {rule["name"]: re.sub(r"\\\n\s*", "", rule["sql"]) for rule in _RULE.finditer(source)}
    if len(found) != source.count("    Rule {\n"):
        raise ValueError(f"store/src/invariant.rs has rules that are not understood here; understood: {sorted(found)}")
    return found | _OURS


def broken(ask: Ask) -> Iterator[str]:
    """A line for each rule that something breaks, with up to five of those that do."""
    for name, sql in rules().items():
        if offenders := ask(sql):
            yield f"not so: {name}: {', '.join(row[0] for row in offenders[:5])}"
