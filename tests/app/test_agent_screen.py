"""A session of an ACP agent on the screen, with a real process that follows a script."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from agents.acp_client.acp_world import Acp, open_acp
from app_world import screen_of, until, write
from app_world import whole_text as text_of
from msgspec.structs import replace
from textual.pilot import Pilot

from cockpit.app.application import CockpitApp
from cockpit.store.sessions import sessions

pytestmark = pytest.mark.slow


@pytest.fixture
async def acp(tmp_path: Path) -> AsyncIterator[Acp]:
    async with open_acp(tmp_path) as opened:
        opened.switch()
        yield opened


@asynccontextmanager
async def run(acp: Acp, *, session_id: str | None = None) -> AsyncIterator[Pilot[int]]:
    app = CockpitApp(acp.runtime, session_id=session_id)
    async with app.run_test(size=(160, 34)) as pilot:
        await until(pilot, lambda: app.feed.ready)
        yield pilot


async def shows(pilot: Pilot[int], *words: str) -> str:
    text = ""

    def look() -> bool:
        nonlocal text
        text = text_of(pilot)
        return all(word in text for word in words)

    try:
        await until(pilot, look)
    except AssertionError:
        raise AssertionError(f"{words} are not all on the screen:\n{text}") from None
    return text


async def says(pilot: Pilot[int], words: str) -> None:
    """Wait for a notice over the screen."""
    await until(pilot, lambda: any(words in each.message for each in pilot.app._notifications))


async def begins(acp: Acp, pilot: Pilot[int]) -> None:
    """Wait until the agent has the prompt."""
    host = screen_of(pilot).host
    await until(pilot, lambda: host.session_id and acp.rows(host.session_id, "runner.turn"))


async def send(pilot: Pilot[int], text: str) -> None:
    screen_of(pilot).prompt.put(text)
    screen_of(pilot).prompt._close()
    await pilot.press("enter")


def idle(acp: Acp, pilot: Pilot[int]) -> Callable[[], bool]:
    app = screen_of(pilot).host
    return lambda: bool(app.session_id) and not app.runs.any_running


async def test_a_session_of_a_completed_agent_is_shown_and_gets_a_mode_and_a_model(
    acp: Acp,
) -> None:
    async with run(acp) as pilot:
        prompt = screen_of(pilot).prompt
        await send(pilot, "/agent nobody do it")
        await says(pilot, "There is no agent 'nobody'")
        assert prompt.text == "/agent nobody do it"
        assert not screen_of(pilot).host.session_id
        prompt.put("")
        await write(pilot, "/agent sc", "r")
        await shows(pilot, "/agent scripted", "Scripted · installed")
        await pilot.press("tab")
        assert prompt.text == "/agent scripted "
        await send(pilot, "/agent scripted everything please")
        text = await shows(pilot, "All seen.", "plan: 1 of 2", "seen, not gated", "waits for you")
        assert "read · Read room.py" in text and "room.py:3" in text
        assert "✔ look" in text and "○ write" in text
        assert "thought: 3 words" in text and "First I look" not in text
        assert "def area" not in text
        assert " scripted " in text and "Auto" in text and "1/2" in text and "$0.25" in text
        screen_of(pilot).panes.conversation.focus()
        await pilot.press("right")
        await shows(pilot, "First I look.", "def area")
        await pilot.press("left")
        await until(pilot, lambda: "def area" not in text_of(pilot))
        # It is the last session, which `cockpit -c` resumes; it has no packets to look into.
        read = acp.runtime.store.read_now
        last = read(lambda c: sessions.find_latest(c, with_agents=True))
        assert last is not None and last.session_id == screen_of(pilot).host.session_id
        assert read(sessions.find_latest) is None
        # Its own commands, its modes and models.
        prompt.focus()
        await pilot.press("slash", "c")
        await shows(pilot, "/compact", "Shorten the history")
        await send(pilot, "/mode ask")
        await shows(pilot, "Mode is now Ask")
        await send(pilot, "/model LARGE")
        await shows(pilot, "Large")
        await send(pilot, "/mode nonsense")
        await says(pilot, "There is no mode 'nonsense'; there are auto, ask.")
        assert prompt.text == "/mode nonsense"
        await send(pilot, "/mode")
        await shows(pilot, "Auto", "now")
        await pilot.press("escape")
        await send(pilot, "/agent")
        await shows(pilot, "Start a session with", "Scripted")


async def test_an_agent_that_has_new_sessions_is_named_before_the_first(acp: Acp) -> None:
    engine = acp.runtime.engine
    acp.runtime.engine = replace(engine, settings=replace(engine.settings, agent="scripted"))
    async with run(acp) as pilot:
        text = await shows(pilot, "Agent    Scripted has each new session")
        header = text.split("\n", 1)[0]
        assert "it has no bands" in " ".join(text.split())
        assert " scripted" in header and "observe ›" not in header, header
        assert (await acp.runtime.default_model()).rpartition(":")[2] not in text
        await send(pilot, "/model large")
        await says(pilot, "Scripted has no session yet")
        screen_of(pilot).prompt.put("")
        await send(pilot, "answer me")
        await shows(pilot, "You said: me")
    # The commands of task types are the built-in agent's, whoever has the other sessions.
    session_id = await acp.runtime.start("/investigate where the room is drawn")
    assert acp.load(session_id).agent == ""


async def test_an_edit_is_allowed_and_a_message_waits_for_the_end_of_the_turn(acp: Acp) -> None:
    async with run(acp) as pilot:
        await send(pilot, "/agent scripted edit note.txt")
        await shows(pilot, "scripted asks", "note.txt")
        screen = screen_of(pilot)
        await until(pilot, lambda: screen.key_policy.front is not None)
        await until(pilot, lambda: screen.key_policy.is_armed)
        await pilot.press("enter")
        text = await shows(pilot, "I wrote it.", "edit · Write note.txt")
        assert "seen, not gated" not in text
        screen.panes.conversation.focus()
        await pilot.press("right")
        await shows(pilot, "+written by the agent")
        await until(pilot, idle(acp, pilot))
        # A message is queued while the agent works; an interrupt lets it in.
        before = screen.host.session_id
        screen.prompt.focus()
        await send(pilot, "/agent scripted --checkout hang")
        await until(pilot, lambda: screen.host.session_id != before)
        await begins(acp, pilot)
        await send(pilot, "answer me")
        await shows(pilot, "queued")
        await pilot.press("ctrl+c")
        await shows(pilot, "cancelled")
        await until(pilot, idle(acp, pilot))
        await send(pilot, "answer again")
        text = await shows(pilot, "You said: me")
        assert "queued" not in text


async def test_the_second_agent_gets_a_worktree_unless_the_user_says_otherwise(acp: Acp) -> None:
    async with run(acp) as pilot:
        host = screen_of(pilot).host
        await send(pilot, "/agent scripted hang")
        await begins(acp, pilot)
        first = host.session_id
        await send(pilot, "/agent scripted do touch second.txt")
        await until(pilot, lambda: host.session_id != first)
        own = Path(acp.load(host.session_id).cwd)
        assert own != acp.world.root
        assert acp.load(first).cwd == str(acp.world.root)
        await until(pilot, (own / "second.txt").exists)
        await shows(pilot, "works in a worktree of its own")
        before = host.session_id
        await send(pilot, "/agent scripted --worktree --checkout x")
        await says(pilot, "not in both")
        assert host.session_id == before


async def test_two_agents_that_start_at_once_do_not_share_the_checkout(acp: Acp) -> None:
    names = await asyncio.gather(*(acp.start("do true") for _ in range(3)))
    folders = [acp.load(name).cwd for name in names]
    assert len(set(folders)) == 3 and folders.count(str(acp.world.root)) == 1


async def test_a_session_is_resumed_and_forked(acp: Acp) -> None:
    async with run(acp) as pilot:
        await send(pilot, "/agent scripted answer first")
        await shows(pilot, "You said: first", "waits for you")
        session_id = screen_of(pilot).host.session_id
    await acp.runtime.close_agents()
    async with run(acp, session_id=session_id) as pilot:
        await shows(pilot, "You said: first", "waits for you")
        await send(pilot, "answer second")
        await shows(pilot, "You said: second")
        await send(pilot, "/fork")
        await until(pilot, lambda: screen_of(pilot).host.session_id != session_id)
        await shows(pilot, "(fork)")
        await send(pilot, "answer third")
        await shows(pilot, "You said: third")
