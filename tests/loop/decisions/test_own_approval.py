"""A service may approve changes, but not the one that it proposed itself."""

from __future__ import annotations

import pytest
from loop.decisions.adapt_world import desk

from cockpit.access.principals import PERSON, Caller
from cockpit.access.token_scopes import ADMIN, APPROVE, PROPOSE, NotAllowed

ONE = Caller("svc.one", frozenset({PROPOSE, APPROVE, ADMIN}))
OTHER = Caller("svc.other", frozenset({PROPOSE, APPROVE, ADMIN}))


@pytest.mark.parametrize("approver", [OTHER, PERSON])
def test_a_change_is_approved_by_another_than_its_proposer(tmp_path, approver):
    at = desk(tmp_path / "store.db")
    outcome = at.propose(at.payload(), ONE)
    with pytest.raises(NotAllowed, match="itself"):
        at.decide(outcome.proposal_id, "approved", ONE)
    assert at.decide(outcome.proposal_id, "approved", approver).status == "approved"
