"""Exact replacement: what is shown is what is written, whatever the text."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import pytest
from act_world import show
from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cockpit.access.confined_paths import Confined
from cockpit.act.adapters import ADAPTERS
from cockpit.act.model_tools import MalformedCall
from cockpit.act.sandbox.bubblewrap import Sandbox
from cockpit.act.text_edits import ActionRefused, find_offsets
from cockpit.act.workspace import Workspace

pytestmark = pytest.mark.slow

PLAIN = Sandbox(None, None, "not asked for")
texts = st.text(st.sampled_from("ab\n\r é😀\t"), max_size=60)
needles = st.text(st.sampled_from("ab\n\r é"), min_size=1, max_size=4)


@pytest.mark.search
@settings(max_examples=examples(35), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(before=texts, old=needles, new=texts, every=st.booleans())
def test_what_is_written_is_what_was_shown(before: str, old: str, new: str, every: bool) -> None:
    with tempfile.TemporaryDirectory() as place:
        asyncio.run(_edit_and_compare(Path(place), before, old, new, every))


async def _edit_and_compare(root: Path, before: str, old: str, new: str, every: bool) -> None:
    file = root / "f.txt"
    file.write_bytes(before.encode())
    ground = Workspace(Confined(root), PLAIN, None, {})
    try:
        proposal = await show(
            ground, "edit_file", path="f.txt", old=old, new=new, replace_all=every
        )
    except (ActionRefused, MalformedCall) as error:
        # Refused for a reason that can be checked: not there, not unique, or no change.
        assert "edit_file" in str(error) or "f.txt" in str(error)
        assert file.read_bytes() == before.encode()
        return
    shown_after = proposal.diffs[0].after
    assert shown_after is not None
    assert proposal.diffs[0].before == before
    adapter = ADAPTERS["edit_file"]
    assert await adapter.probe(proposal.payload, "k", ground) == "not_done"
    outcome = await adapter.perform(proposal.payload, "k", ground)
    assert outcome.failure is None
    assert file.read_bytes() == shown_after.encode()
    assert await adapter.probe(proposal.payload, "k", ground) == "done"
    applied = proposal.payload
    if applied["old"] == old:
        # In a CRLF file the new text's line ends are CRLF too: the payload says what really goes in.
        expected = before.replace(old, applied["new"])
        assert shown_after == expected if every else len(find_offsets(before, old)) == 1
    assert [p.name for p in root.iterdir()] == ["f.txt"]


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", b"x\r\ny\r\nz\r\nc\r\n"),
        (b"a\r\nb\r\nc", "c", "c\nd", b"a\r\nb\r\nc\r\nd"),
        (b"a\r\nb\nc\n", "b\nc", "d\ne", b"a\r\nd\ne\n"),
        (b"a\r\nb\r\nc\n", "a\nb", "x\ny", b"x\r\ny\r\nc\n"),
        ("\ufeffé = 1\n".encode(), "é = 1", "é = 2", "\ufeffé = 2\n".encode()),
    ],
)
async def test_line_ends_and_the_last_newline_are_kept(ground, before, old, new, after):
    file = ground.root / "f.txt"
    file.write_bytes(before)
    proposal = await show(ground, "edit_file", path="f.txt", old=old, new=new)
    assert (await ADAPTERS["edit_file"].perform(proposal.payload, "k", ground)).failure is None
    assert file.read_bytes() == after


@pytest.mark.parametrize(
    ("content", "arguments", "words"),
    [
        (b"x\nx\n", {"old": "x", "new": "y"}, "2 times (lines 1, 2)"),
        (b"if x:\n    y\n", {"old": "if x:\n  y", "new": "z"}, "Its first line is at line 1"),
        (b"x\n", {"old": "gone", "new": "y"}, "does not occur in the file"),
        (b"a\0b", {"old": "a", "new": "y"}, "binary"),
        (b"\xff\xfe", {"old": "a", "new": "y"}, "not UTF-8"),
        (b"x\n", {"old": "x", "new": "[masked:jwt]"}, "in place of a possible secret"),
        (b"x\n", {"old": "[masked:jwt]", "new": "y"}, "in place of a possible secret"),
        (None, {"old": "x", "new": "y"}, "Use write_file"),
    ],
)
async def test_an_edit_that_cannot_be_exact_is_refused(ground, content, arguments, words):
    if content is not None:
        (ground.root / "f.txt").write_bytes(content)
    with pytest.raises(ActionRefused) as caught:
        await show(ground, "edit_file", path="f.txt", **arguments)
    assert words in str(caught.value)


async def test_replace_all_says_how_many(ground: Workspace) -> None:
    (ground.root / "f.txt").write_text("x = x + x\n")
    proposal = await show(ground, "edit_file", path="f.txt", old="x", new="y", replace_all=True)
    assert proposal.notes == ("3 occurrences are replaced.",)
    assert proposal.diffs[0].after == "y = y + y\n"
