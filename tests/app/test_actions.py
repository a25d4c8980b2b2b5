"""The registry of actions: bindings, footer, help, ``[keys]`` and the reference page agree with it."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest
from msgspec import structs

from cockpit.app import key_hints
from cockpit.app.actions.context import ActionContext
from cockpit.app.actions.registry import ACTIONS, FIXED, remap
from cockpit.app.actions.screen_actions import ScreenActions, bindings
from cockpit.app.dialogs.help import HelpText

BY_ID = {action.id: action for action in ACTIONS}


def test_ids_are_unique_and_every_binding_finds_its_action():
    assert len(BY_ID) == len(ACTIONS)
    actions = ScreenActions(ACTIONS)
    for binding in bindings(ACTIONS):
        action_id = binding.action.split("'")[1]
        assert callable(actions.get(action_id).run), action_id
    for action in ACTIONS:
        # A key can be clicked as well, in the footer or in the menu of keys.
        assert action.press or action.palette, f"{action.id} has no way in"
        assert action.run is not None or (action.keys and not action.palette), action.id


def test_no_chord_does_two_things():
    chords = Counter(key for action in ACTIONS if action.is_bound for key in action.keys)
    assert [key for key, times in chords.items() if times > 1] == []
    letters = Counter((action.pane, key) for action in ACTIONS for key in action.pane_keys)
    assert [key for key, times in letters.items() if times > 1] == []


def test_the_help_tells_every_action():
    text = " ".join(HelpText(ACTIONS).render().plain.split())
    for action in ACTIONS:
        assert action.title in text
        assert action.key in text


@pytest.mark.parametrize(
    ("context", "there", "not_there"),
    [
        (ActionContext(), {"send"}, {"approve", "discuss", "narrow"}),
        (
            ActionContext(proposal_kind="context", can_narrow=True),
            {"approve", "discuss", "narrow"},
            {"edit", "send"},
        ),
        (
            ActionContext(proposal_kind="action", prompt_empty=False),
            {"send"},
            {"approve", "discuss", "edit", "reject"},
        ),
        (ActionContext(proposal_kind="action", discussing=True), set(), {"approve"}),
        (ActionContext(session_runs=True), {"interrupt"}, set()),
        (ActionContext(proposal_kind="action", proposal_count=2), {"next"}, set()),
    ],
)
def test_the_footer_tells_what_is_valid_now(context, there, not_there):
    labels = [(hint.key, hint.label) for hint in key_hints.footer_hints(ACTIONS, context)]
    for name in there:
        assert (BY_ID[name].key, BY_ID[name].label) in labels
    for name in not_there:
        assert (BY_ID[name].key, BY_ID[name].label) not in labels


CHANGES: dict[str, tuple[object, ...]] = {
    "proposal_kind": ("action", "context", "permission"),
    "task_status": ("todo", "in_progress", "review", "done", "blocked", "archived"),
    "chain_status": ("running", "stopped"),
    "proposal_count": (2,),
}
"""Values of a context that conditions of actions ask for; those that are true or false are turned."""


@pytest.mark.parametrize(
    "action", [each for each in ACTIONS if each.id != "save"], ids=lambda action: action.id
)
def test_each_action_is_reached_by_its_keys_or_the_palette_where_it_is_valid(action):
    """No other action that is valid with it takes its key. (A form saves by itself.)"""
    pane = action.pane or "prompt"
    base = ActionContext(pane="work" if pane == "tasks" else pane)
    turned = [(n, not v) for n, v in structs.asdict(base).items() if isinstance(v, bool)]
    options = [*turned, *((name, value) for name, some in CHANGES.items() for value in some)]
    options.append(("row_verbs", (action.id.removeprefix(f"{action.pane}_"),)))
    tries = (dict(few) for count in range(4) for few in combinations(options, count))
    contexts = (structs.replace(base, **few) for few in tries)
    screen = ScreenActions(ACTIONS)
    for context in filter(action.when, contexts):
        keys = {each.id: key for key, each in screen.pressable(context)}
        is_listed = action.id in {each.id for each in screen.valid(context)}
        if action.id in keys if action.press else is_listed:
            break
    else:
        raise AssertionError("nothing reaches it")
    assert is_listed or not action.palette


def test_a_key_of_the_users_replaces_ours_and_takes_it_from_others():
    actions, wrong = remap({"palette": "ctrl+k", "board": ["ctrl+b", "f9"], "help": "ctrl+o"})
    by_id = {action.id: action for action in actions}
    assert wrong == []
    assert by_id["palette"].keys == ("ctrl+k",)
    assert by_id["board"].keys == ("ctrl+b", "f9")
    assert by_id["help"].keys == ("ctrl+o",)
    assert by_id["expand"].keys == ()
    assert by_id["expand"].key == ""
    assert "ctrl+p" not in {binding.key for binding in bindings(actions)}


@pytest.mark.parametrize(
    ("keys", "word"),
    [
        ({"fly": "ctrl+k"}, "no such action"),
        ({"approve": "ctrl+k"}, "cannot be changed"),
        ({"palette": "enter"}, "does"),
        ({"palette": "ctrl+k", "help": "ctrl+k"}, "already does palette"),
    ],
)
def test_what_is_wrong_with_keys_is_said(keys, word):
    actions, wrong = remap(keys)
    assert len(wrong) == 1
    assert word in wrong[0]
    assert [action.keys for action in actions if action.id in FIXED] == [
        action.keys for action in ACTIONS if action.id in FIXED
    ]
