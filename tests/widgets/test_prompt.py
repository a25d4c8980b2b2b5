"""The prompt: Enter sends, a paste never does, and every key is posted."""

from typing import Any

import pytest
from stage import settle
from textual import events

from widgets.prompt.completions import Completions
from widgets.prompt.prompt import Prompt
from widgets.views import CompletionView

pytestmark = pytest.mark.slow

COMMANDS = ("review-pr", "resume", "rewind", "help")
FILES = ("src/app.py", "src/http.py", "README.md")


def complete(kind: str, prefix: str) -> list[CompletionView]:
    choices = COMMANDS if kind == "command" else FILES
    return [CompletionView(each, kind) for each in choices if each.startswith(prefix)]


@pytest.fixture
def prompt() -> Prompt:
    return Prompt(placeholder="say what to change", complete=complete)


def submitted(pilot: Any) -> list[str]:
    return [each.text for each in pilot.app.got(Prompt.Submitted)]


async def test_enter_sends_other_keys_break_lines_and_a_question_mark_asks_for_help(stage, prompt):
    async with stage(prompt) as pilot:
        assert "say what to change" in pilot.app.drawn
        prompt.focus()
        await pilot.press("question_mark")
        assert prompt.text == ""
        await pilot.press("a", "question_mark")
        assert prompt.text == "a?"
        assert len(pilot.app.got(Prompt.HelpRequested)) == 1, "only an empty prompt asks"
        for key in ("shift+enter", "ctrl+j", "alt+enter"):
            prompt.clear()
            await pilot.press("a", key, "b")
            assert prompt.text == "a\nb"
        assert not submitted(pilot)
        prompt.clear()
        await pilot.press(*"hello", "enter")
        assert submitted(pilot) == ["hello"]
        assert prompt.text == ""


async def test_what_was_sent_is_walked_through_and_searched(stage, prompt):
    async with stage(prompt) as pilot:
        prompt.entries = ["first", "second\nline"]
        prompt.focus()
        await pilot.press(*"draft", "up")
        assert prompt.text == "second\nline"
        await pilot.press("up")
        assert prompt.text == "second\nline"  # the cursor went up inside the entry
        await pilot.press("up", "up")
        assert prompt.text == "first"
        await pilot.press("down", "down", "down")
        assert prompt.text == "draft"
        prompt.clear()
        prompt.entries = ["run the tests", "review pr 24", "fix the tests"]
        await pilot.press("ctrl+r", *"tests")
        await settle(pilot)
        drawn = pilot.app.drawn
        assert "fix the tests" in drawn and "run the tests" in drawn
        assert "review pr 24" not in drawn
        await pilot.press("ctrl+r", "enter")
        assert prompt.text == "run the tests"
        assert not submitted(pilot)


async def test_commands_and_files_are_completed_and_escape_closes_the_list_first(stage, prompt):
    async with stage(prompt) as pilot:
        prompt.focus()
        popup = pilot.app.query_one(Completions)
        await pilot.press(*"/re")
        await settle(pilot)
        assert popup.open
        assert "review-pr" in pilot.app.drawn
        assert "help" not in pilot.app.drawn
        await pilot.press("down", "tab")
        await settle(pilot)
        assert prompt.text == "/resume "
        assert not popup.open
        prompt.clear()
        await pilot.press(*"look at @src", "up", "enter", *"now")
        assert prompt.text == "look at @src/http.py now"
        await pilot.press(*" me@src")
        await settle(pilot)
        assert not popup.open
        prompt.clear()
        await pilot.press(*"/re", "escape")
        assert not popup.open
        assert not pilot.app.got(Prompt.Escaped)
        await pilot.press("escape")
        assert len(pilot.app.got(Prompt.Escaped)) == 1


async def paste(pilot: Any, prompt: Prompt, text: str) -> None:
    prompt.post_message(events.Paste(text))
    await settle(pilot)


async def test_a_paste_never_sends_and_a_long_one_is_a_mark_until_it_is_sent(stage, prompt):
    long = "\n".join(f"line {number} [+2,000 lines]" for number in range(2_000))
    async with stage(prompt) as pilot:
        prompt.focus()
        await paste(pilot, prompt, "one\r\ntwo\x1b]52;c;AA\x07\n\r\nthree\n")
        assert prompt.text == "one\ntwo\n\nthree\n"
        assert not submitted(pilot)
        prompt.clear()
        await pilot.press(*"look:")
        await paste(pilot, prompt, long)
        assert prompt.text == "look:[+2,000 lines]"
        assert prompt.full_text == f"look:{long}"
        await paste(pilot, prompt, long + "!")  # another of the same length
        assert prompt.text == "look:[+2,000 lines][+2,000 lines #2]"
        await pilot.press("backspace")
        assert prompt.text == "look:[+2,000 lines]"
        await pilot.press("x", "enter")
        assert submitted(pilot) == [f"look:{long}x"]


async def test_the_draft_is_cleared_undone_put_aside_and_back(stage, prompt):
    async with stage(prompt) as pilot:
        prompt.focus()
        await pilot.press(*"one", "ctrl+j", *"two", "ctrl+u")
        assert prompt.text == "one\n"
        await pilot.press("ctrl+u")
        assert prompt.text == ""
        await pilot.press("ctrl+underscore")
        assert prompt.text == "one\n"
        await pilot.press("ctrl+s")
        assert prompt.text == ""
        await pilot.press(*"other", "ctrl+s", "ctrl+s")
        assert prompt.text == "other"
        await pilot.press("enter", "ctrl+s")
        assert prompt.text == "one\n"
        assert [each.drafts for each in pilot.app.got(Prompt.Stashed)][-1] == ()
        assert submitted(pilot) == ["other"]


async def test_keys_that_come_at_once_keep_their_order(stage, prompt):
    async with stage(prompt) as pilot:
        prompt.focus()
        await settle(pilot)
        for key in (*"abx", "backspace", "c", "left", "d", "home", "e", "end", "ctrl+w", "f"):
            pilot.app.post_message(events.Key(key, key if len(key) == 1 else None))
        await settle(pilot)
        assert prompt.text == "f"
