"""One registry: what it says is what keys, palette and help do."""

from __future__ import annotations

from collections import Counter

import pytest

from cockpit.app import key_hints
from cockpit.app.actions.action import Moment, spelled
from cockpit.app.actions.bindings import bindings
from cockpit.app.actions.registry import ACTIONS, FIXED, remapped
from cockpit.app.actions.screen_actions import Acts
from cockpit.app.dialogs.question import HelpText
from widgets.views import ProposalView, QueueView

BY_ID = {action.id: action for action in ACTIONS}


def test_every_action_that_has_a_key_of_ours_can_be_done():
    for action in ACTIONS:
        if action.bound:
            assert callable(getattr(Acts, action.id, None)), action.id


def test_no_chord_does_two_things():
    chords = Counter(key for action in ACTIONS if action.bound for key in action.keys)
    assert [key for key, times in chords.items() if times > 1] == []
    letters = Counter((action.pane, key) for action in ACTIONS for key in action.pane_keys)
    assert [key for key, times in letters.items() if times > 1] == []


def test_the_help_tells_every_action():
    text = HelpText(ACTIONS).render().plain
    for action in ACTIONS:
        assert action.title in text
        assert action.key in text


@pytest.mark.parametrize(
    ("moment", "there", "not_there"),
    [
        (Moment(), {"send"}, {"approve", "discuss", "narrow"}),
        (Moment(kind="context"), {"approve", "discuss", "narrow"}, {"edit", "send"}),
        (Moment(kind="action"), {"approve", "discuss", "edit"}, {"narrow", "send"}),
        (Moment(kind="action", empty=False), {"send"}, {"approve", "discuss", "edit", "reject"}),
        (Moment(kind="action", discussing=True), set(), {"approve"}),
        (Moment(running=True), {"interrupt"}, set()),
        (Moment(selection=True), set(), {"interrupt"}),
        (Moment(kind="action", waiting=2), {"next"}, set()),
    ],
)
def test_the_footer_tells_what_is_valid_now(moment, there, not_there):
    labels = [(hint.key, hint.label) for hint in key_hints.footer(ACTIONS, moment)]
    for name in there:
        assert (BY_ID[name].key, BY_ID[name].label) in labels
    for name in not_there:
        assert (BY_ID[name].key, BY_ID[name].label) not in labels


def test_a_key_of_the_users_replaces_ours_and_takes_it_from_others():
    actions, wrong = remapped({"palette": "ctrl+k", "board": ["ctrl+b", "f9"], "help": "ctrl+o"})
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
        ({"palette": "ctrl+k", "help": "ctrl+k"}, "does palette already"),
    ],
)
def test_what_is_wrong_with_keys_is_said(keys, word):
    actions, wrong = remapped(keys)
    assert len(wrong) == 1
    assert word in wrong[0]
    assert [action.keys for action in actions if action.id in FIXED] == [
        action.keys for action in ACTIONS if action.id in FIXED
    ]


def test_the_panel_tells_of_the_second_key():
    front = ProposalView("p", "action", "run rm", "high", "d", second_key=True)
    queue = QueueView(front, 0, 1)
    assert key_hints.deciding(ACTIONS, queue)[0].label == "then y approve"
    assert key_hints.deciding(ACTIONS, queue, second=True)[0].key == "y"
    assert key_hints.deciding(ACTIONS, QueueView()) == ()


@pytest.mark.parametrize(
    ("key", "word"),
    [("ctrl+p", "^p"), ("shift+tab", "⇧⇥"), ("alt+n", "alt+n"), ("enter", "⏎"), ("f1", "f1")],
)
def test_keys_are_written_as_people_do(key, word):
    assert spelled(key) == word
