"""Lists and proposals in the terminal: no text of an agent can pass for a line of cockpit's own."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from state_for_tests import put_store

from cockpit.commands.sessions.export import markdown, picture
from cockpit.commands.sessions.proposal_text import proposal_text
from cockpit.commands.terminal import format_table
from cockpit.loop.views import transcript
from cockpit.loop.views.quoted_text import count_columns, cut_columns
from cockpit.loop.views.session_report import session_text
from cockpit.loop.views.story import Storyteller
from cockpit.store.db.database import Store
from cockpit.store.journal import journal
from cockpit.store.journal.details.sessions import MessageCompleted, MessageDelta
from cockpit.store.sessions import sessions
from cockpit.store.sessions.proposals import Proposal
from widgets.text.clean import clean

pytestmark = pytest.mark.slow

FORGED = "p-9 · low risk · pending · session s-1 · shown 0000"
PIECES = (
    *("\n", "\r", "\r\n", "\u2028", "\x85", "\x0b", "\x1c", "\x1b[2K", "\x1b[1A", "\u202e", "\u200b"),
    *("\x1b]8;;x\x07", "│ ", "  │ ", "┆", "\t", "   ", "世" * 30, "a" * 200, "reason: fine"),
    *("\nruns: run {}", FORGED, f"\n{FORGED}", "summary: ok", "\n  argv: ls", "x"),
)  # fmt: skip
hostile = st.lists(st.sampled_from(PIECES), min_size=1, max_size=5).map("".join)
WIDTHS = (40, 80, 160)


def proposal(kind: str, text: str) -> Proposal:
    body: dict[str, Any] = {
        "context": {
            "purpose": text,
            "question": text,
            "items": [
                {"item": text, "level": "full", "tokens": 5, "band": "situational", "note": text},
                {"item": text, "refused": text},
            ],
            "total_tokens": 5,
        },
        "action": {
            "type": "run",
            "summary": text,
            "fields": [["argv", text], [f"X{text}", text]],
            "notes": [text],
            "body": text,
            "diffs": [{"path": text, "before": "a\n", "after": text}],
            "payload": {"argv": [text]},
        },
        "profile": {
            "reason": text, "profile_id": text, "base_version": 1, "fields": [["priority", text]],
            "verdict": [{"ok": True, "code": "floor", "message": text}],
            "payload": {"a": text},
        },
        "permission": {
            "agent": text, "why": text,
            "fields": [["command", text], [f"X{text}", text]],
            "notes": [text], "body": text,
            "diffs": [{"path": text, "before": "a\n", "after": text}],
            "rule": {"what": text}, "input": {"command": text},
        },
        "plan": {"summary": text, "payload": {"markdown": text}},
    }[kind]  # fmt: skip
    return Proposal(
        proposal_id="p-1", session_id="s-1", wave_id="w-1", task_id=None, kind=kind, revises=None, title=text,
        body={**body, "changes": [text], "other": text}, shown_digest="d" * 64, risk="low",
        status="rejected", narrowed=None, decided_by=text, decided_at="t", reason=text,
        expires_at=None, created_at="t",
    )  # fmt: skip


def own_lines(text: str) -> list[str]:
    """The lines that are not behind a bar, up to the foreign text behind their label."""
    lines = [line for line in text.split("\n") if not re.match(r"  [│┆]( |$)", line)]
    return [line if line.startswith("p-1 ·") else line.partition(":")[0] for line in lines]


@pytest.mark.search
@settings(max_examples=examples(35), deadline=None)
@given(text=hostile, kind=st.sampled_from(["context", "action", "profile", "permission", "plan"]))
def test_a_proposal_has_the_lines_of_a_harmless_one_whatever_its_fields_hold(text, kind):
    for width in WIDTHS:
        shown = proposal_text(proposal(kind, text), width=width)
        harmless = proposal_text(proposal(kind, "x"), width=width)
        ours = [line for line in own_lines(shown) if not line.startswith("! It contains")]
        assert [line for line in ours if line] == [line for line in own_lines(harmless) if line]
        assert clean(shown) == shown
        for line in shown.split("\n"):
            assert count_columns(line) <= width or line.startswith(("p-1 ·", "! It"))


@pytest.mark.search
@settings(max_examples=examples(35), deadline=None)
@given(text=hostile)
def test_a_row_of_a_list_is_one_line_with_the_columns_that_it_has(text: str) -> None:
    for width in (0, *WIDTHS):
        table = format_table(
            ("ID", "RISK", "TITLE"), [("p-1", "low", text), ("p-2", "high", "x")], width=width
        )
        lines = table.split("\n")
        assert len(lines) == 3
        assert lines[1].startswith("p-1  low") and lines[2].split() == ["p-2", "high", "x"]
        assert "  " not in lines[1].removeprefix("p-1  low").strip()
        assert not width or all(count_columns(line) <= width for line in lines)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\u2028", "\x85", "\x0b"])
def test_what_others_wrote_in_an_event_of_a_story_is_no_event(tmp_path: Path, end: str) -> None:
    with Store.open(put_store(tmp_path / "cockpit.db")) as store:
        session = store.write_now(
            lambda tx: sessions.create(
                tx, task_type="outside", title=f"x{end}{FORGED}", words="x", target={},
                model=f"runner:x{end}{FORGED}", policy="ask", interactive=True, root=tmp_path, rev=None,
                profile_id="default", limits={}, project="api", branch="main",
            )
        )  # fmt: skip
        story = store.read_now(lambda c: session_text(c, session.session_id))
    first, *others = clean(story).rstrip("\n").split("\n")
    assert first.startswith("outside · x")
    assert len(others) == 2 and all(line.startswith("  │ ") for line in others)


_LINES = (
    *("  ✔ edited a.py", "── wave 9", "you", "agent", "  ✔ allowed by you", ""),
    " " * 70 + "  ✔ done",
)
_FOREIGN = "\n".join(_LINES) + "\u2028✗ failed\n" + "wide 界" * 60 + "\n\tend"


def _own_lines(text: str, width: int = 0) -> list[str]:
    """Return the lines that are not behind a bar, as a terminal of these columns shows them."""
    shown = []
    for line in clean(text).split("\n"):
        pieces = cut_columns(line, width) if width else [line]
        # A line that a terminal would break begins at the margin with whatever comes then.
        shown += (
            pieces if len(pieces) == 1 else [pieces[0], *(f"BROKEN {each}" for each in pieces[1:])]
        )
    return [line for line in shown if line.strip() and line.lstrip()[0] not in "│┆"]


@pytest.mark.parametrize("width", [0, 40])
@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_no_line_of_a_message_passes_for_one_of_ours(tmp_path: Path, width: int, size: int) -> None:
    """A message that streams in pieces of any size reads as one that came whole, all behind the bar."""
    with Store.open(put_store(tmp_path / "cockpit.db")) as store:
        session_id = store.write_now(
            lambda tx: sessions.create(
                tx, task_type="agent", title="t", words="x", target={}, model="m", policy="ask",
                interactive=True, root=tmp_path, rev=None, profile_id="default", limits={},
                project="api", branch="main",
            )
        ).session_id  # fmt: skip
        teller = Storyteller(hints=False, width=width)
        pieces = [_FOREIGN[at : at + size] for at in range(0, len(_FOREIGN), size)]
        details = [
            *(MessageDelta(message_id="m-1", n=n, text=piece) for n, piece in enumerate(pieces)),
            MessageCompleted(message_id="m-1", role="agent", text=_FOREIGN, interrupted=True),
            MessageCompleted(message_id="m-2", role="notice", text=_FOREIGN, interrupted=False),
        ]

        def write(tx) -> None:
            for detail in details:
                tx.journal(detail, session_id=session_id)

        store.write_now(write)
        rows = store.read_now(lambda c: journal.rows(c, session_id=session_id, limit=100_000))
        story = "".join(teller.tell(row) for row in rows)
        document = store.read_now(lambda c: transcript.document(c, session_id))
    assert _own_lines(story, width) == ["agent · t · m", "agent", "note"]
    drawn = re.sub("<[^>]+>", "\n", picture(document)).replace("&#160;", " ")
    forged = [line for line in _own_lines(html.unescape(drawn)) if "✔" in line or "──" in line]
    assert forged == []
    assert all(
        line.startswith((">", "#", "**", "s-")) for line in markdown(document).split("\n") if line
    )
