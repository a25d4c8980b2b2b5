"""Every operation of the OpenAPI document: schemathesis, tokens and scopes.

``make test-http`` tries every operation, with many requests.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest
import schemathesis
from api_world import PATIENCE_S, api_client, fill_store, issue, told
from examples import examples
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks
from starlette.applications import Starlette

from cockpit.access import capability_tokens
from cockpit.access.principals import PERSON
from cockpit.access.token_scopes import SCOPES
from cockpit.api.application import OPERATIONS, application
from cockpit.api.operations import SCOPE, build_document
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx

pytestmark = pytest.mark.slow

DOCUMENT = build_document(OPERATIONS)
DOCUMENTED = [
    (path, method, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
]
EXAMPLES = int(os.environ.get("COCKPIT_HTTP_EXAMPLES", "2"))
OPERATIONS = 1_000 if "COCKPIT_HTTP_EXAMPLES" in os.environ else examples(4)
"""How many operations a run tries, by the seed that pytest prints."""
CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.response_headers_conformance,
    checks.negative_data_rejection,
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store.open(tmp_path_factory.mktemp("contract") / "cockpit.db") as opened:
        yield opened


@pytest.fixture(scope="module")
def existing(store: Store) -> Mapping[str, str]:
    """The ids of one row of each kind, by the name of the path's parameter."""
    return fill_store(store)


@pytest.fixture(scope="module")
def app(store: Store) -> Starlette:
    return application(store, RuntimeSettings())


def as_server(app: Starlette) -> Any:
    """The application, called at an address: the client that calls it in memory has a name for one."""

    async def served(scope: Any, receive: Any, send: Any) -> None:
        await app({**scope, "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2)}, receive, send)

    return served


@pytest.mark.search
def test_no_request_breaks_the_document(
    store: Store, app: Starlette, existing: Mapping[str, str]
) -> None:
    """No 5xx, no status, header or body that the document does not name, no invalid request accepted."""
    bearer = issue(store, "ci", *SCOPES)

    served = as_server(app)
    api = schemathesis.openapi.from_dict(DOCUMENT)
    api.app = served
    tried = []
    found = [each.ok() for each in api.get_all_operations()]
    assert len(found) == 22
    for operation in random.sample(found, min(len(found), OPERATIONS)):

        @settings(
            max_examples=EXAMPLES,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy())
        def send(case: Any) -> None:
            named = {
                name: existing[name] for name in case.path_parameters or () if name in existing
            }
            # Each second request is about something that is there.
            if named and len(tried) % 2:
                case.path_parameters = {**case.path_parameters, **named}
            if case.path == "/api/journal":
                case.query = {**(case.query or {}), "follow": "false"}
            tried.append(case.path)
            answer = case.call(app=served, headers=bearer, timeout=PATIENCE_S)
            case.validate_response(answer, checks=CHECKS)

        send()


@contextlib.asynccontextmanager
async def calling(app: Starlette) -> AsyncIterator[httpx2.AsyncClient]:
    async with api_client(app) as client:
        yield client


def refused_tokens(tmp_path: Path, store: Store) -> dict[str, str]:
    """Headers that open nothing, with the code of each: missing, wrong, foreign, revoked and expired."""

    def grant(tx: Tx, expires_s: float | None = None) -> tuple[str, str]:
        token, secret = capability_tokens.issue(
            tx, namespace="ci", scopes=frozenset(SCOPES), by=PERSON, expires_s=expires_s
        )
        return token.cap_id, secret

    cap_id, revoked = store.write_now(grant)
    store.write_now(lambda tx: capability_tokens.revoke(tx, cap_id, PERSON))
    _, late = store.write_now(lambda tx: grant(tx, 0))
    with Store.open(tmp_path / "other.db") as other:
        foreign = issue(other, "main", *SCOPES)
    return {
        "": "token_missing",
        "Bearer ckp_wrong": "token_unknown",
        foreign["Authorization"]: "token_unknown",
        f"Bearer {revoked}": "token_revoked",
        f"Bearer {late}": "token_expired",
    }


async def test_without_a_token_that_opens_it_nothing_is_served(
    tmp_path: Path, store: Store, app: Starlette, existing: Mapping[str, str]
) -> None:
    """Missing, wrong, revoked, expired and foreign tokens get 401, one without the scope gets 403."""
    codes = refused_tokens(tmp_path, store)
    lacking = {scope: issue(store, "ci", *(set(SCOPES) - {scope})) for scope in SCOPES}
    # Whoever may decide profile changes is asked for the other scope by the kind of the proposal.
    lacking["proposals.decide"] = issue(
        store, "ci", *(set(SCOPES) - {"proposals.decide", "orientation.approve"})
    )
    open_paths = []
    async with calling(app) as client:
        for path, method, operation in DOCUMENTED:
            address = path.format_map({**existing, "id": "p-none"})
            if SCOPE not in operation:
                open_paths.append(path)
                continue
            assert operation["security"] == [{"HTTPBearer": []}]
            # What is wrong with a token is found in one place for all of them.
            for authorization, code in [*codes.items()][: 1 if open_paths else None]:
                headers = {"Authorization": authorization} if authorization else {}
                answer = await client.request(method, address, headers=headers)
                body = told(answer, 401, code)
                assert "ckp_" not in str(body)
                assert answer.headers["www-authenticate"].startswith("Bearer")
            odd = re.sub(r"\{\w+\}", "a%0Ab", path)  # a name with a line break
            if odd != path and len(open_paths) < 2:
                told(await client.request(method, odd), 401, "token_missing")
            refused = await client.request(method, address, headers=lacking[operation[SCOPE]])
            assert operation[SCOPE] in told(refused, 403, "not_allowed")["detail"], path
    assert open_paths == ["/api/webhooks/github", "/health"]


async def test_the_document_names_no_other_body(app: Starlette) -> None:
    for path, _, operation in DOCUMENTED:
        for status, answer in operation["responses"].items():
            kinds = set(answer.get("content", {}))
            if status in ("4XX", "5XX"):
                assert kinds == {"application/problem+json"}, (path, status)
        assert {"4XX", "5XX"} < set(operation["responses"]), path
        content = operation.get("requestBody", {}).get("content", {})
        for body in content.values():
            assert body["schema"]["additionalProperties"] is False, path
