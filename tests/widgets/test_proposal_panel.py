"""The proposal panel shows everything that will be decided, and decides nothing."""

from typing import Any

import pytest
from msgspec.structs import replace
from stage import settle

from widgets.proposals.proposal_panel import ProposalPanel
from widgets.views import FileDiffView, ItemView, KeyHintView, ProposalView, QueueView

pytestmark = pytest.mark.slow

HINTS = (KeyHintView("⏎", "approve", strong=True), KeyHintView("esc", "discuss", strong=True))
ACTION = ProposalView(
    proposal_id="p2",
    kind="action",
    title="gh pr review 24 --request-changes",
    risk="medium",
    digest="d1",
    session="s3",
    task="T-42",
    role="implementer",
    age_s=12,
    left_s=250,
    revises="p1",
    changes=("the verdict is softer",),
    fields=(("argv", "gh pr review 24 --body-file review.md"), ("cwd", "/repo")),
    body="**Verdict** Changes needed.\n\n- one\n- two",
    notes=("runs without a sandbox",),
)
CONTEXT = ProposalView(
    proposal_id="p3",
    kind="context",
    title="Three files before I judge this",
    risk="low",
    digest="d2",
    purpose="judge the retry change",
    question="how does it reset?",
    escalation="else only style",
    items=(
        ItemView("file:src/client.py:40-160", 4_200, "situational"),
        ItemView("file:/etc/passwd", 900, "situational", refused="outside the project"),
        ItemView("issue:5", None, "exploration", "outline", note="recent"),
    ),
)
DIFF = FileDiffView("src/client.py", "a = 1\nb = 2\n", "a = 1\nb = 3\n")


async def show(pilot: Any, panel: ProposalPanel, front: ProposalView | None, **of: int) -> str:
    panel.show(QueueView(front, of.get("index", 0), of.get("total", 1)), HINTS)
    await settle(pilot)
    return str(pilot.app.drawn)


async def test_all_of_an_action_or_a_request_is_shown_and_narrowed(stage):
    panel = ProposalPanel()
    async with stage(panel, size=(90, 40)) as pilot:
        text = await show(pilot, panel, ACTION, total=2)
        for words in (
            "Proposals 1 of 2",
            "risk medium · 4m left",
            "ACTION",
            "gh pr review 24 --request-changes",
            "session s3 · T-42 · implementer",
            "12s ago",
            "revises p1",
            "Δ the verdict is softer",
            "argv",
            "gh pr review 24 --body-file review.md",
            "Verdict Changes needed.",
            "• two",
            "! runs without a sandbox",
            "⏎ approve   esc discuss",
        ):
            assert words in text
        # Until it is armed it is dim, and says so.
        assert panel.has_class("-unarmed")
        assert "…  ⏎ approve" in text
        panel.armed = True
        await settle(pilot)
        assert not panel.has_class("-unarmed")
        assert "…  ⏎ approve" not in pilot.app.drawn
        # The border says the risk in words.
        for risk in ("low", "high"):
            text = await show(pilot, panel, replace(ACTION, risk=risk, second_key=risk == "high"))
            assert f"risk {risk}" in text
            assert panel.has_class(f"-risk-{risk}")
            assert ("needs a second key" in text) is (risk == "high")
        # A request for context is a checklist.
        text = await show(pilot, panel, CONTEXT)
        assert "Purpose    judge the retry change" in text
        assert "Question   how does it reset?" in text
        assert "Escalation else only style" in text
        assert "✔  file:src/client.py:40-160" in text
        assert "4.2k  situational" in text
        assert "✗  file:/etc/passwd" in text
        assert "outside the project" in text
        assert "issue:5 · outline" in text and "?  exploration" in text
        assert "2 of 3 items · 4.2k tokens and 1 of unknown size" in text
        panel.focus()
        await pilot.press("space")
        assert not pilot.app.got(ProposalPanel.Narrowed)
        panel.narrowing = True
        await pilot.press("space")
        await settle(pilot)
        assert "[ ] file:src/client.py:40-160" in pilot.app.drawn
        assert "1 of 3 items · size unknown" in pilot.app.drawn
        await pilot.press("j", "space", "j", "space", "k", "k", "space")
        assert [each.items for each in pilot.app.got(ProposalPanel.Narrowed)] == [
            ("issue:5",),
            (),
            ("file:src/client.py:40-160",),
        ]
        assert panel.kept == ("file:src/client.py:40-160",)
        # Long values wrap; nothing that waits is calm.
        fields = (("argv", "git commit -m " + "word " * 60 + "END"),)
        items = (ItemView("file:" + "deep/" * 30 + "END.py", 10, "situational"),)
        long = replace(ACTION, title="title " * 30 + "LAST", fields=fields, items=items, body="")
        text = await show(pilot, panel, long)
        assert "LAST" in text and "END" in text and "END.py" in text
        text = await show(pilot, panel, None)
        assert "No proposals." in text
        assert "gh pr review" not in text
        assert not panel.has_class("-unarmed")
        await pilot.press("j", "k", "space", "d", "pagedown")


async def test_what_drawing_would_hide_is_told(stage):
    panel = ProposalPanel()
    invisible = "only line endings or invisible characters change"
    async with stage(panel, size=(90, 40)) as pilot:
        for before, after, told in (
            ("a\nb\n", "a\r\nb\r\n", invisible),
            ("a\n", "a\u200b\n", invisible),
            ("a\nb\n", "a\r\nc\r\n", "line endings change too"),
        ):
            diffs = (FileDiffView("a.py", before, after),)
            front = replace(ACTION, body="", notes=(), diffs=diffs)
            assert told in await show(pilot, panel, front)
        assert "! " not in (await show(pilot, panel, replace(front, diffs=(DIFF,))))
        fields = (("argv", "rm\u202e \u200bfile\x1b[8m"),)
        text = await show(pilot, panel, replace(ACTION, fields=fields))
        assert "rm file" in text
        assert "! 6 characters cannot be shown" in text
        assert "cannot be shown" not in await show(pilot, panel, ACTION)
        # Cells beyond the last column are drawn, too.
        body = "| a |\n|---|\n| 1 | hidden |"
        text = await show(pilot, panel, replace(ACTION, body=body))
        assert "| 1 | hidden |" in text


async def test_diffs_are_unified_or_side_by_side(stage):
    panel = ProposalPanel()
    front = replace(ACTION, body="", fields=(), notes=(), diffs=(DIFF,), revises="", changes=())
    async with stage(panel, size=(80, 30)) as pilot:
        text = await show(pilot, panel, front)
        assert "src/client.py" in text
        assert "+1 −1" in text
        rows = pilot.app.rows
        assert not any("b = 2" in row and "b = 3" in row for row in rows)
        assert any("-" in row and "b = 2" in row for row in rows)
        panel.focus()
        await pilot.press("d")
        await settle(pilot)
        assert any("b = 2" in row and "b = 3" in row for row in pilot.app.rows)
