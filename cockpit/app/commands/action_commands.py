"""Commands of the prompt that are actions of the screen: ``/help``, ``/new``, ``/theme NAME`` and the like.

Each action that has a ``command`` is one; some take words that the action would ask for. Specified in
``docs/reference/screen.md``, commands.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from cockpit.app.actions.registry import ACTIONS
from cockpit.app.commands.command_record import CommandRefused, PromptCommand
from cockpit.app.dialogs.small_dialogs import PickOne
from cockpit.loop.decisions.approval_policy import POLICY_WIDTH, is_narrower
from widgets.forms.pick_list import mark_current

if TYPE_CHECKING:
    from cockpit.app.host import Host

_FORMATS = ("md", "json", "svg")


async def _act(host: Host, words: str, *, action_id: str) -> None:
    """Do what the action does, where it is valid now."""
    del words  # those that take words have a function of their own
    action = next(action for action in host.actions if action.id == action_id)
    if not action.when(host.main.context):
        raise CommandRefused(f"/{action.command} needs {action.needs}.")
    host.main.act(action_id)


async def _resume(host: Host, words: str) -> None:
    """Follow the session that the words name by the beginning of its id or by its title; else list them."""
    from cockpit.app.actions.session_actions import followable_sessions

    if not words:
        await _act(host, "", action_id="sessions")
        return
    rows = list(followable_sessions(host))
    wanted = words.casefold()
    matches = [
        key for key, title, _ in rows if key.startswith(wanted) or title.casefold() == wanted
    ]
    matches = matches or [key for key, title, _ in rows if wanted in title.casefold()]
    if not matches:
        raise CommandRefused(f"No session is named {words[:60]!r}. /resume alone lists them.")
    if len(matches) > 1:
        raise CommandRefused(
            f"{len(matches)} sessions are named {words[:60]!r}. /resume alone lists them."
        )
    host.trail.clear()
    host.attach(matches[0])


async def _ask(host: Host, words: str) -> None:
    """Open the list of the project's knowledge, with a question or without."""
    from cockpit.app.actions.list_actions import open_list_screen

    open_list_screen(host, "knowledge", " ".join(words.split()))


async def _theme(host: Host, words: str) -> None:
    """Switch to the theme that the words name; else list them."""
    if not words:
        await _act(host, "", action_id="theme")
        return
    if words not in host.available_themes:
        names = ", ".join(sorted(host.available_themes))
        raise CommandRefused(f"There is no theme {words[:60]!r}; there are {names}.")
    host.choose_theme(words)


async def _policy(host: Host, words: str) -> None:
    """Change the approval policy of the followed session; a wider one only by the keys that ask twice."""
    session = host.session
    if session is None:
        raise CommandRefused("/policy needs a session.")
    from cockpit.app.actions.session_actions import set_policy

    if not words:
        rows = [(name, name, "") for name in POLICY_WIDTH]
        dialog = PickOne(
            "Approval policy", mark_current(rows, session.policy), first=session.policy
        )
        host.open_screen(dialog, partial(_pick_policy, host))
        return
    if words not in POLICY_WIDTH:
        raise CommandRefused(
            f"There is no policy {words[:60]!r}; there are {', '.join(POLICY_WIDTH)}."
        )
    if is_narrower(session.policy, words):
        raise CommandRefused(
            f"{words} is wider than {session.policy}. Shift+Tab goes to it, and Ctrl+Y agrees."
        )
    set_policy(host, words)


def _pick_policy(host: Host, name: str | None) -> None:
    if name:
        host.send_message(f"/policy {name}")


async def _export(host: Host, words: str) -> None:
    """Write the followed session to a file, as ``cockpit sessions export`` does."""
    from cockpit.app.command_process import run_cockpit

    if not host.session_id:
        raise CommandRefused("/export needs a session.")
    parts = words.split(maxsplit=1)
    form = parts.pop(0) if parts and parts[0] in _FORMATS else ""
    name = parts[0] if parts else f"{host.session_id}.{form or 'md'}"
    if len(parts) > 1 or name.startswith("-"):
        raise CommandRefused(
            "/export takes md, json or svg, and the name of a file, for example /export md"
            " session.md."
        )
    arguments = ["sessions", "export", host.session_id, name, *(("--format", form) if form else ())]
    host.show_notice((await run_cockpit(host.engine.place, arguments)).strip() or f"Wrote {name}")


async def _show_branch(host: Host, words: str) -> None:
    """Show the branch that the words name by the id of a task, a chain or a session; else let pick."""
    from cockpit.app.actions.branch_actions import open_branch

    if words:
        open_branch(host, words)
    else:
        await _act(host, "", action_id="branch")


async def _review(host: Host, words: str) -> None:
    """Start a review of a pull request, branch or range in a session of its own."""
    if not words:
        here = f" Here: /review {host.welcome.review}." if host.welcome.review else ""
        raise CommandRefused(
            f"/review takes the number of a pull request, a branch or a range of commits.{here}"
        )
    await host.start_session(f"/review-pr {words}")


_WITH_WORDS: Mapping[str, tuple[str, Callable[[Host, str], Awaitable[None]]]] = {
    "diff": ("ID of a task, chain or session: show its branch", _show_branch),
    "resume": ("ID or title: follow another session", _resume),
    "theme": ("NAME: change the theme", _theme),
    "policy": ("NAME: change the approval policy", _policy),
    "knowledge": ("QUESTION: passages of the project that answer it", _ask),
    "review": ("a pull request, branch or range: review it", _review),
    "export": ("[md|json|svg] [FILE]: write the session to a file", _export),
}
"""Commands of actions that take words, with their hints."""

COMMANDS = tuple(
    PromptCommand(action.command, *_WITH_WORDS[action.command])
    if action.command in _WITH_WORDS
    else PromptCommand(
        action.command,
        action.title[0].lower() + action.title[1:],
        partial(_act, action_id=action.id),
        takes_words=False,
    )
    for action in ACTIONS
    if action.command
)
