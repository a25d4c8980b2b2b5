"""Tokens: who holds one is its namespace with its scopes, as long as it is valid."""

from __future__ import annotations

import stat

import pytest

from cockpit.access import capability_tokens, token_scopes
from cockpit.access.principals import PERSON, Caller, NamespaceInvalid, agent, check_namespace
from cockpit.core.errors import IllegalTransition, NotFound


def issued(desk, namespace="ci", scopes=(token_scopes.PROPOSE,), by=PERSON, expires_s=None):
    return desk.store.write_now(
        lambda tx: capability_tokens.issue(
            tx, namespace=namespace, scopes=frozenset(scopes), by=by, expires_s=expires_s
        )
    )


def who(desk, secret):
    return desk.store.write_now(
        lambda tx: capability_tokens.caller(tx.connection, secret, tx.now())
    )


def code_of(desk, secret):
    with pytest.raises(capability_tokens.TokenRefused) as refused:
        who(desk, secret)
    assert secret not in str(refused.value)
    return refused.value.code


def test_a_token_makes_its_holder_its_namespace(at_desk):
    desk = at_desk()
    token, secret = issued(desk, scopes=(token_scopes.PROPOSE, token_scopes.READ))
    assert who(desk, secret) == Caller(
        "ci", frozenset({token_scopes.PROPOSE, token_scopes.READ}), token.cap_id
    )
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
    desk.store.write_now(lambda tx: capability_tokens.revoke(tx, token.cap_id, PERSON))
    assert code_of(desk, secret) == "token_revoked"
    with pytest.raises(IllegalTransition):
        desk.store.write_now(lambda tx: capability_tokens.revoke(tx, token.cap_id, PERSON))
    with pytest.raises(NotFound):
        desk.store.write_now(lambda tx: capability_tokens.revoke(tx, "cap-none", PERSON))
    assert desk.actions("capability.") == ["capability.changed", "capability.changed"]


def test_nobody_grants_what_they_do_not_have(at_desk):
    desk = at_desk()
    with pytest.raises(token_scopes.NotAllowed):
        issued(desk, by=agent("s-1"))
    deputy = Caller("ci", frozenset({token_scopes.CAP_ISSUE, token_scopes.PROPOSE}))
    issued(desk, "other", (token_scopes.PROPOSE,), deputy)
    with pytest.raises(token_scopes.NotAllowed):
        issued(desk, "other", (token_scopes.PROPOSE, token_scopes.APPROVE), deputy)
    token, _ = issued(desk)
    with pytest.raises(token_scopes.NotAllowed):
        desk.store.write_now(lambda tx: capability_tokens.revoke(tx, token.cap_id, deputy))
    keeper = Caller("ci", frozenset({token_scopes.CAP_REVOKE}))
    desk.store.write_now(lambda tx: capability_tokens.revoke(tx, token.cap_id, keeper))


def test_no_secret_is_in_the_file(at_desk, tmp_path):
    desk = at_desk()
    _, secret = issued(desk)
    made = desk.store.write_now(lambda tx: capability_tokens.ensure_root(tx, tmp_path))
    assert made == tmp_path / capability_tokens.ROOT_FILE
    root = made.read_text().strip()
    assert who(desk, root) == Caller("main", frozenset(token_scopes.SCOPES), listed_caps(desk)[1])
    desk.store.close()
    made.unlink()
    for path in tmp_path.rglob("*"):
        content = path.read_bytes() if path.is_file() else b""
        assert secret.encode() not in content
        assert root.encode() not in content


def listed_caps(desk):
    return [token.cap_id for token in desk.store.read_now(capability_tokens.listed)]


def test_the_root_token_is_made_once_and_for_its_owner_alone(at_desk, tmp_path):
    desk = at_desk()
    path = desk.store.write_now(lambda tx: capability_tokens.ensure_root(tx, tmp_path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert desk.store.write_now(lambda tx: capability_tokens.ensure_root(tx, tmp_path)) is None
    path.unlink()
    assert desk.store.write_now(lambda tx: capability_tokens.ensure_root(tx, tmp_path)) is None
    assert not path.exists()
    assert len(listed_caps(desk)) == 1


@pytest.mark.parametrize(
    "name", ["", "Main", "a b", "../main", "a//b", "/a", "a/", "ｍain", "a\n", "x" * 101, "a\x00"]
)
def test_names_that_no_namespace_can_have(name):
    assert check_namespace("team.a/b_c-2") == "team.a/b_c-2"
    with pytest.raises(NamespaceInvalid):
        check_namespace(name)


@pytest.mark.parametrize("named", [[], ["orientation.*"], ["root"], [token_scopes.READ, "x"]])
def test_scopes_that_there_are_not(named):
    assert token_scopes.read_scopes(token_scopes.SCOPES) == frozenset(token_scopes.SCOPES)
    with pytest.raises(token_scopes.ScopeUnknown):
        token_scopes.read_scopes(named)
