"""The fold of a session: total over any rows, and indifferent to batches and to rows seen twice."""

from __future__ import annotations

import itertools
import json
from datetime import UTC, datetime

import pytest
from dice import Dice
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.app.state.replay import Replay
from cockpit.app.state.screen_state import State
from cockpit.app.state.work import COLUMNS
from cockpit.store.journal.event_types import Action
from cockpit.store.journal.journal import Row

pytestmark = [pytest.mark.slow, pytest.mark.search]

NOW = datetime(2026, 1, 1, 12, 5, tzinfo=UTC)
FIELDS = (
    "message_id", "role", "text", "interrupted", "ordinal", "phase", "proposal_id", "kind", "title", "risk",
    "revises", "expires_at", "shown_digest", "body", "decided_by", "reason", "narrowed", "edited",
    "action_id", "type", "message", "summary", "attempt", "request_id", "items", "facts", "tokens", "auto",
    "digest", "token_used", "token_budget", "dropped", "bands", "input_tokens", "output_tokens", "cost_usd",
    "status", "for", "words", "policy", "model", "task_type", "task_id", "wait_s", "guard", "tool",
    "waves_left", "operator", "from_wave", "effective_waves", "bands_before", "bands_after", "rules_before",
    "rules_after", "verdict", "story_id", "epic_id", "from", "to", "notes", "blocker", "description",
    "acceptance_criteria", "priority", "needs_rework", "progress_percent", "depends_on_task_id",
    "dependency_type", "patch", "next_step", "test_results", "files", "files_count", "uncommitted_changes",
    "task_ids", "chain_id", "session_id", "step", "outcome", "scope", "progress", "token_limit",
    "dropped_share", "batch", "size", "agent_session", "agent", "event", "answer", "at", "path",
)  # fmt: skip
KNOWN: tuple[object, ...] = (
    "m-1", "p-1", "a-1", "2026-01-01T12:00:00.000000Z", "T-1", "T-2", "S-1", "E-1", "T-9999999999999", "",
    "x", *COLUMNS, "archived", "open", "ch-1", "ch-2", "s-1", "s-2", 1, 2, "fix", "running", "clean", ["T-1"],
    {"kind": "epic", "id": "E-1"}, {"total": 3, "done": 1, "ready": 10**40},
)  # fmt: skip
ACTIONS = tuple(str(action) for action in Action)


def made_row(seq: int, dice: Dice) -> Row:
    """A row of any action, or of none, with any of the fields that a fold reads."""
    session = dice.one_of("", "s-1", "s-1", "s-2")
    detail = {
        dice.choice(FIELDS): dice.choice(KNOWN) if dice.number(0, 1) else dice.json()
        for _ in range(dice.number(0, 10))
    }
    return Row(
        seq, dice.one_of("2026-01-01T12:00:00.000000Z", "yesterday"), "t", session, f"{session}-w1", "",
        "default", 3, "agent", dice.text(12) if dice.number(0, 3) == 0 else dice.choice(ACTIONS), "ok", None,
        "", json.dumps(detail), "",
    )  # fmt: skip


def histories() -> st.SearchStrategy[list[Row]]:
    return st.lists(st.binary(min_size=4, max_size=4), max_size=40).map(
        lambda seeds: [made_row(seq, Dice(seed)) for seq, seed in enumerate(seeds, 1)]
    )


@given(histories(), st.lists(st.integers(0, 40), max_size=5))
@settings(max_examples=examples(60))
def test_no_row_stops_the_fold_and_batches_looks_and_doubles_change_nothing(rows, cuts):
    whole, parts = Replay("s-1").fold(rows), Replay("s-1")
    edges = sorted({0, len(rows), *(min(cut, len(rows)) for cut in cuts)})
    for start, end in itertools.pairwise(edges):
        parts.fold(rows[start:end])
        parts.views(NOW)
    parts.opened.fold(rows)
    assert repr(parts.views(NOW)) == repr(whole.views(NOW))
    State().name_changes(rows)


@given(histories(), st.integers(1, 7))
@settings(max_examples=examples(40))
def test_the_changes_since_a_revision_add_up_to_everything(rows, step):
    replay, known, revision = Replay("s-1"), {}, 0
    for start in range(0, len(rows), step):
        views = replay.fold(rows[start : start + step]).views(NOW, since=revision)
        known |= {turn.key: turn for turn in views.turns}
        revision = views.revision
    full = replay.views(NOW).turns
    assert repr(known) == repr({turn.key: turn for turn in full})
