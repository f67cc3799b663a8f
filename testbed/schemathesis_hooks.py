"""Loaded by schemathesis: keeps a run from removing the account that it runs as. `schemathesis.toml` names this file.

Requests use the ids and addresses of earlier answers. Once the run has made a second super_admin, ours can be revoked, and
everything after that would only test the answer 401.
"""

from __future__ import annotations

import os
from typing import Any

import schemathesis

OWN_EMAIL = os.environ["TIDEPOOL_TEST_OWN_EMAIL"]


@schemathesis.hook
def before_call(_context: Any, case: Any, _kwargs: dict[str, Any]) -> None:
    parameters = case.path_parameters or {}
    if case.method.upper() != "GET" and str(parameters.get("email", "")).lower() == OWN_EMAIL:
        parameters["email"] = "nobody@example.test"
