"""The fold of a session: right about a real story."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from app_scenes import ALL, ITEMS, Scene, current, to_decide

from cockpit.app.state.band_meter import with_reported_cache
from cockpit.app.state.conversation import Conversation
from cockpit.app.state.session_fold import OpenSession
from cockpit.commands.sessions.linear_lists import list_sessions
from cockpit.store.journal import journal
from cockpit.store.journal.event_types import Action
from cockpit.store.journal.journal import Row
from widgets.views import CacheView, MeterView

pytestmark = pytest.mark.slow

NOW = datetime(2026, 1, 1, 12, 5, tzinfo=UTC)


def made_row(seq: int, action: str, detail: object, session: str = "s-1") -> Row:
    return Row(
        seq, "2026-01-01T12:00:00.000000Z", "t", session, "w1", "", "default", 3, "agent", str(action),
        "ok", None, "", json.dumps(detail), "",
    )  # fmt: skip


def test_a_story_reads_in_its_order(scene):
    to_decide(scene).say("agent", "It never resets.").advance("acting").edit()
    views = current(scene.store, scene.session_id).views(NOW, scene.session_id)
    assert [(turn.role, turn.text) for turn in views.turns] == [
        ("person", "review pr 24"),
        ("wave", "wave 1"),
        ("agent", views.turns[2].text),
        ("note", ""),
        ("wave", "wave 2 · act"),
        ("agent", "It never resets."),
        ("note", ""),
    ]
    assert [(line.text, line.right) for line in views.turns[3].lines] == [
        (
            "context · low risk · read 3 items: file:src/http/client.py:40-160 ·"
            " file:tests/test_retry.py · log:-5",
            "approved by you",
        )
    ]
    assert views.header.wave == 2
    assert views.header.phase == "act"
    assert views.header.tokens == 41_200
    assert views.header.state == "waits for you"
    assert views.meter.profile == "profile v7"
    assert [band.name for band in views.meter.bands][3] == "situational"


def test_the_queue_shows_what_was_stored(scene):
    scene.begin().wave("observing").ask().edit()
    state = current(scene.store, scene.session_id)
    front = state.views(NOW, scene.session_id).queue.front
    assert front is not None
    assert front.kind == "context"
    assert [item.item for item in front.items] == [item[0] for item in ITEMS]
    assert front.age_s == 300
    second = state.views(NOW, scene.session_id, front="p-action").queue
    assert (second.index, second.total) == (1, 2)
    assert second.front is not None
    assert second.front.diffs[0].path == "src/http/retry.py"
    stored = scene.store.read_now(
        lambda c: c.execute("SELECT shown_digest FROM proposals ORDER BY rowid").fetchall()
    )
    assert [front.digest, second.front.digest] == [digest for (digest,) in stored]


def test_only_a_proposal_of_the_followed_session_stands_in_front(scene):
    other = Scene(scene.store, scene.root).begin("other").wave("observing").ask("p-other")
    scene.begin().wave("observing").ask("p-mine")
    state = current(scene.store)
    for session_id, front in ((scene.session_id, "p-mine"), (other.session_id, "p-other")):
        queue = state.views(NOW, session_id, front="p-other").queue
        assert queue.front is not None
        assert (queue.front.proposal_id, queue.front.session) == (front, session_id)
        assert (queue.total, queue.others) == (2, 1)
        assert [row.proposal_id for row in queue.waiting] == ["p-other", "p-mine"]
    nowhere = state.views(NOW, "", front="p-other").queue
    assert (nowhere.front, nowhere.others) == (None, 2)


@pytest.mark.parametrize(
    ("verdict", "more", "said"),
    [
        ("approved", {"narrowed": [ITEMS[0][0]]}, "approved by you, narrowed to 1 item"),
        ("discussed", {}, "discussed by you"),
        ("expired", {"by": "deadline"}, "expired without a decision"),
        ("expired", {"by": "engine", "reason": "it failed"}, "withdrawn: it failed"),
    ],
)
def test_a_decision_is_told_where_it_was_asked(scene, verdict, more, said):
    scene.begin().wave("observing").ask().decide("p-context", verdict, **more)
    views = current(scene.store, scene.session_id).views(NOW, scene.session_id)
    assert said in [line.right for turn in views.turns for line in turn.lines]
    assert views.queue.front is None


def test_fragments_grow_one_turn_and_its_completion_replaces_them(scene):
    scene.begin().wave("observing").stream("The re", "try ")
    before = current(scene.store, scene.session_id)
    live = before.views(NOW, scene.session_id).turns[-1]
    assert (live.text, live.streaming) == ("The retry ", True)
    rows = scene.store.read_now(journal.rows)
    said = {"message_id": "m-live", "role": "agent", "text": "The retry loop.", "interrupted": True}
    before.fold([made_row(rows[-1].seq + 1, "message.completed", said, scene.session_id)])
    turn = before.views(NOW, scene.session_id).turns[-1]
    assert (turn.key, turn.text, turn.streaming, turn.interrupted) == (
        live.key, "The retry loop.", False, True,
    )  # fmt: skip


def test_a_session_has_one_state_on_every_surface(scene):
    """Whoever asks waits for the user, also where no process runs it; no end but done is called that."""
    ends = {
        "stopped, and asks": ("stopped", {}),
        "turn": ("waiting", {"for": "person", "why": "your turn"}),
        "question": ("completed", {"status": "needs_answer"}),
        "limit": ("completed", {"status": "limit"}),
        "blocked": ("completed", {"status": "blocked"}),
        "stopped": ("stopped", {}),
        "done": ("completed", {"status": "done"}),
    }
    for title, (entered, detail) in ends.items():
        each = Scene(scene.store, scene.root).begin(title=title).wave(*ALL)
        each = each.ask() if "asks" in title else each
        each.enter(entered, **detail)
    state = current(scene.store)
    views = state.views(NOW, "")
    states = {row.title: row.state for row in views.board.rows}
    waiting = ["stopped, and asks", "turn", "question"]
    assert states == {
        **dict.fromkeys(waiting, "waits for you"),
        "limit": "paused",
        "blocked": "blocked",
        "stopped": "stopped",
        "done": "done",
    }
    counts = "7 sessions   ? 3 wait for you   ■ 1 blocked   ! 1 paused   ✔ 1 done   □ 1 stopped"
    assert views.board.summary == counts
    listed = scene.store.read_now(list_sessions)
    assert [line.split(", ", 1)[1] for line in listed.splitlines()] == [
        f"{states[title]}: {title}" for title in reversed(ends)
    ]
    for session_id, session in state.listed.items():
        header = state.views(NOW, session_id).header
        assert header.state == states[session.title] and header.end_sign in "?!□✔■"


def test_a_thought_is_a_folded_turn_above_the_answer_that_was_streamed() -> None:
    said = {"message_id": "m-1", "role": "agent"}
    first, second, answer = fold_rows(
        (Action.MODEL_THOUGHT, {"text": "I think.", "blocks": 1, "kept": True}),
        (Action.MESSAGE_STARTED, said),
        (Action.MODEL_THOUGHT, {"text": "A [masked:key].", "blocks": 1, "kept": False}),
        (Action.MESSAGE_COMPLETED, {**said, "text": "Done.", "interrupted": False}),
    ).changed()
    assert (first.role, first.text, first.folded, first.lines) == ("thought", "I think.", True, ())
    assert second.lines[0].text == "not sent back: it may hold a secret"
    assert (second.before, answer.text) == (answer.key, "Done.")


def test_the_meter_says_what_cached_and_new_tokens_cost() -> None:
    view = MeterView(cache=CacheView(0, 0))
    spent = {"input_tokens": 12_000, "output_tokens": 9, "cached_tokens": 4_000, "cost_usd": 0.9}
    for priced, costs in (
        ({}, ("", "")),
        ({"input_usd": 0.84, "cached_usd": 0.04}, ("$0.04", "$0.80")),
    ):
        detail = {"model": "openai:gpt-6", "stop": "end", **spent, **priced}
        row = made_row(1, Action.MODEL_COMPLETED, detail)
        assert with_reported_cache(view, row).cache == CacheView(4_000, 8_000, "$0.90", costs)


def test_a_call_is_paid_by_the_bands_whose_tokens_were_sent() -> None:
    def packet(ordinal: int, situational: int, first: int) -> tuple[str, dict[str, object]]:
        used = {"identity": 4_000, "situational": situational, "reserve": 5_000}
        bands = [
            {"band": band, "used": count, "min": 0, "target": 1, "max": 2, "facts": 1, "dropped": 0}
            for band, count in used.items()
        ]
        epoch = {"first": first, "reason": "", "rendered_tokens": 4_000 + situational,
                 "cached_expected": 0, "headroom": 0}  # fmt: skip
        return str(Action.PACKET_COMPILED), {
            "digest": "d", "ordinal": ordinal, "token_used": 9, "token_budget": 99, "facts": 3,
            "dropped": 0, "drops": {}, "bands": bands, "epoch": epoch,
        }  # fmt: skip

    def spent(prompt: int, cached: int) -> tuple[str, dict[str, object]]:
        return str(Action.MODEL_COMPLETED), {
            "model": "openai:gpt-6", "stop": "end", "input_tokens": prompt, "output_tokens": 9,
            "cached_tokens": cached, "cost_usd": 1.5, "input_usd": 1.0, "cached_usd": 0.2,
        }  # fmt: skip

    session = OpenSession("s-1")
    story = [packet(1, 16_000, 1), spent(20_000, 0), packet(2, 36_000, 1), spent(40_000, 20_000)]
    for seq, (action, detail) in enumerate(story, 1):
        session.apply(made_row(seq, action, detail))
    # What was cached is shared by what each band had before; what is new is the situational band's.
    assert [(band.name, band.cost) for band in session.meter.bands] == [
        ("identity", "≈$0.04"),
        ("situational", "≈$0.96"),
        ("reserve", "$0.50"),
    ]
    first, second = session.meter.history
    assert (first.wave, first.is_fresh, first.cached, first.prompt) == (1, True, 0, 20_000)
    assert (second.wave, second.is_fresh, second.cached, second.cost) == (2, False, 20_000, "$1.50")


def fold_rows(*rows: tuple[str, dict[str, object]]) -> Conversation:
    talk = Conversation()
    for seq, (action, detail) in enumerate(rows, 1):
        talk.apply(made_row(seq, action, detail))
    return talk


def retry(attempt: int) -> tuple[str, dict[str, object]]:
    return "model.retried", {
        "model": "m", "reason": "overloaded", "attempt": attempt, "wait_s": 2.0 * attempt
    }  # fmt: skip


def test_retries_of_one_call_are_one_line_that_counts_them() -> None:
    answered = ("model.completed", {"model": "m", "input_tokens": 1, "output_tokens": 1})
    talk = fold_rows(retry(1), retry(2), retry(3), answered, retry(1))
    (turn,) = talk.changed()
    assert [line.right for line in turn.lines] == [
        "failed 3 times, again in 6 s",
        "again in 2 s",
    ]


def test_the_task_of_a_role_is_not_shown_as_typed_by_the_user() -> None:
    created = {"task_type": "fix", "title": "T-2 fixer", "words": "Fix T-2.", "role": "fixer"}
    typed = {"message_id": "m-1", "role": "person", "text": "T-2, fixer: add it"}
    talk = fold_rows(
        ("session.created", created),
        ("message.completed", typed),
        ("message.completed", {**typed, "message_id": "m-2", "text": "Only the parser, please."}),
    )
    assert [(turn.speaker or "you", turn.text) for turn in talk.changed()] == [
        ("task for the fixer", "Fix T-2."),
        ("you", "Only the parser, please."),
    ]
