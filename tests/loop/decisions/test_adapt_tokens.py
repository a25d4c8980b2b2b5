"""Tokens: who holds one is its namespace with its scopes, as long as it is valid."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.access.capability_tokens import (
    ROOT_FILE,
    TokenRefused,
    caller,
    ensure_root,
    issue,
    listed,
    revoke,
)
from cockpit.access.principals import (
    PERSON,
    Caller,
    NamespaceInvalid,
    agent,
    check_namespace,
    kind_of,
)
from cockpit.access.token_scopes import (
    AGENT_SCOPES,
    APPROVE,
    CAP_ISSUE,
    CAP_REVOKE,
    PROPOSE,
    READ,
    ROOT_SCOPES,
    SCOPES,
    NotAllowed,
    ScopeUnknown,
    read_scopes,
)
from cockpit.core.errors import IllegalTransition, NotFound
from cockpit.store.db.database import Store


def issued(desk, namespace="ci", scopes=(PROPOSE,), by=PERSON, expires_s=None):
    return desk.store.write_now(
        lambda tx: issue(
            tx, namespace=namespace, scopes=frozenset(scopes), by=by, expires_s=expires_s
        )
    )


def who(desk, secret):
    return desk.store.write_now(lambda tx: caller(tx.connection, secret, tx.now()))


def code_of(desk, secret):
    with pytest.raises(TokenRefused) as refused:
        who(desk, secret)
    assert secret not in str(refused.value)
    return refused.value.code


def test_a_token_makes_its_holder_its_namespace(at_desk):
    desk = at_desk()
    token, secret = issued(desk, scopes=(PROPOSE, READ))
    assert who(desk, secret) == Caller("ci", frozenset({PROPOSE, READ}), token.cap_id)
    assert who(desk, f" {secret}\n").namespace == "ci"
    assert who(desk, "") == PERSON


@pytest.mark.parametrize("secret", ["x", "ckp_" + "A" * 43, "ckp_\u2028", "y" * 10_000])
def test_an_unknown_token_opens_nothing(at_desk, secret):
    assert code_of(at_desk(), secret) == "token_unknown"


def test_an_expired_token_opens_nothing(at_desk, clock):
    desk = at_desk()
    _, secret = issued(desk, expires_s=60)
    clock.advance(59)
    assert who(desk, secret).namespace == "ci"
    clock.advance(1)
    assert code_of(desk, secret) == "token_expired"


def test_a_revoked_token_opens_nothing_and_is_revoked_once(at_desk):
    desk = at_desk()
    token, secret = issued(desk)
    desk.store.write_now(lambda tx: revoke(tx, token.cap_id, PERSON))
    assert code_of(desk, secret) == "token_revoked"
    with pytest.raises(IllegalTransition):
        desk.store.write_now(lambda tx: revoke(tx, token.cap_id, PERSON))
    with pytest.raises(NotFound):
        desk.store.write_now(lambda tx: revoke(tx, "cap-none", PERSON))
    assert desk.actions("capability.") == ["capability.issued", "capability.revoked"]


def test_nobody_grants_what_they_do_not_have(at_desk):
    desk = at_desk()
    with pytest.raises(NotAllowed):
        issued(desk, by=agent("s-1"))
    deputy = Caller("ci", frozenset({CAP_ISSUE, PROPOSE}))
    issued(desk, "other", (PROPOSE,), deputy)
    with pytest.raises(NotAllowed):
        issued(desk, "other", (PROPOSE, APPROVE), deputy)
    token, _ = issued(desk)
    with pytest.raises(NotAllowed):
        desk.store.write_now(lambda tx: revoke(tx, token.cap_id, deputy))
    keeper = Caller("ci", frozenset({CAP_REVOKE}))
    desk.store.write_now(lambda tx: revoke(tx, token.cap_id, keeper))


def test_no_secret_is_in_the_file(at_desk, tmp_path):
    desk = at_desk()
    _, secret = issued(desk)
    made = desk.store.write_now(lambda tx: ensure_root(tx, tmp_path))
    assert made == tmp_path / ROOT_FILE
    root = made.read_text().strip()
    assert who(desk, root) == Caller("main", ROOT_SCOPES, listed_caps(desk)[1])
    desk.store.close()
    made.unlink()
    for path in tmp_path.rglob("*"):
        content = path.read_bytes() if path.is_file() else b""
        assert secret.encode() not in content
        assert root.encode() not in content


def listed_caps(desk):
    return [token.cap_id for token in desk.store.read_now(listed)]


def test_the_root_token_is_made_once_and_for_its_owner_alone(at_desk, tmp_path):
    desk = at_desk()
    path = desk.store.write_now(lambda tx: ensure_root(tx, tmp_path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert desk.store.write_now(lambda tx: ensure_root(tx, tmp_path)) is None
    path.unlink()
    assert desk.store.write_now(lambda tx: ensure_root(tx, tmp_path)) is None
    assert not path.exists()
    assert len(listed_caps(desk)) == 1


def test_a_crash_while_the_root_token_is_made_is_made_good(at_desk, tmp_path):
    desk = at_desk()

    def crash(tx):
        ensure_root(tx, tmp_path)
        raise RuntimeError("the power goes")

    with pytest.raises(RuntimeError):
        desk.store.write_now(crash)
    lost = (tmp_path / ROOT_FILE).read_text().strip()
    assert code_of(desk, lost) == "token_unknown"
    path = desk.store.write_now(lambda tx: ensure_root(tx, tmp_path))
    assert who(desk, path.read_text().strip()).namespace == "main"


def test_two_first_starts_at_once_make_one_root_token(tmp_path):
    def start(_):
        with Store.open(tmp_path / "cockpit.db") as store:
            return store.write_now(lambda tx: ensure_root(tx, tmp_path))

    with ThreadPoolExecutor(4) as pool:
        made = [path for path in pool.map(start, range(4)) if path is not None]
    assert made == [tmp_path / ROOT_FILE]
    with Store.open(tmp_path / "cockpit.db") as store:
        secret = made[0].read_text().strip()
        found = store.write_now(lambda tx: caller(tx.connection, secret, tx.now()))
        assert found.namespace == "main"


@pytest.mark.parametrize("name", ["main", "ci", "agent/s-1", "team.a/b_c-2", "0"])
def test_names_that_a_namespace_can_have(name):
    assert check_namespace(name) == name


@pytest.mark.parametrize(
    "name", ["", "Main", "a b", "../main", "a//b", "/a", "a/", "ｍain", "a\n", "x" * 101, "a\x00"]
)
def test_names_that_no_namespace_can_have(name):
    with pytest.raises(NamespaceInvalid):
        check_namespace(name)


def test_kinds_follow_from_names():
    assert [kind_of(name) for name in ("main", "agent/s-1", "ci", "main/x")] == [
        "person",
        "agent",
        "service",
        "service",
    ]
    assert agent("s-1").scopes == AGENT_SCOPES
    assert APPROVE not in AGENT_SCOPES


@given(st.frozensets(st.sampled_from(SCOPES), min_size=1))
def test_scopes_are_read(named):
    assert read_scopes(named) == named


@pytest.mark.parametrize("named", [[], ["orientation.*"], ["root"], [READ, "x"]])
def test_scopes_that_there_are_not(named):
    with pytest.raises(ScopeUnknown):
        read_scopes(named)
