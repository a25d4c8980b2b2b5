"""`edit` is offered where the action has a text to edit, and only there."""

import pytest
from msgspec.structs import replace

from cockpit.app.state.proposal_queue import as_pending, proposal
from cockpit.config.load_settings import load_settings
from cockpit.core.clock import SystemClock
from cockpit.loop.decisions.edit_action import NotEditable
from cockpit.store.sessions.proposals import UNEDITABLE_ACTIONS, Proposal

EMPTY = Proposal(**{**dict.fromkeys(Proposal.__struct_fields__, ""), "kind": "action", "body": {}})


@pytest.mark.parametrize("action_type", ["take_worktree", "drop_worktree", "adopt_tool", "settle"])
def test_an_action_without_a_text_offers_no_edit(action_type):
    assert not is_offered(action_type)
    assert is_offered("github")


def test_every_effect_of_an_approval_agrees(tmp_path):
    effects = load_settings(tmp_path, env={}).runtime.approval_effects
    for action_type, effect in effects.items():
        stored = replace(EMPTY, body={"type": action_type, "payload": {"markdown": "# A"}})
        try:
            effect.editable_text(stored)
        except NotEditable:
            assert action_type in UNEDITABLE_ACTIONS
        else:
            assert action_type not in UNEDITABLE_ACTIONS


def is_offered(action_type):
    shown = as_pending(replace(EMPTY, body={"type": action_type}))
    return proposal(shown, SystemClock().now(), None).editable
